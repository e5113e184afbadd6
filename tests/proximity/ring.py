"""The ring of starts of Figure 1 of Altosaar et al. (2018), and its data."""

import numpy as np

SEEDS, STARTS = 3, 34
TRUTH = np.array([5.0, 5.0])


def ring():
    angle = 2 * np.pi * np.arange(SEEDS * STARTS) / (SEEDS * STARTS)
    return TRUTH + 95 * np.stack([np.cos(angle), np.sin(angle)], axis=1)


def make_data():
    """Of each seed, of shape (SEEDS, 100, 1)."""
    data = []
    for seed in range(SEEDS):
        rng = np.random.RandomState(seed)
        z = rng.random_sample((100, 2)) < 0.5
        data.append((z @ TRUTH + rng.standard_normal(100))[:, None])
    return np.array(data)


def share_near(means):
    return float(np.mean(np.linalg.norm(means - TRUTH, axis=1) < 5))
