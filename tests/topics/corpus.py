"""Small made-up texts, with three topics."""

import numpy as np

WORDS = {
    "space": ["star", "planet", "orbit", "moon", "rocket", "comet", "galaxy", "nasa"],
    "kitchen": ["bread", "butter", "flour", "oven", "sugar", "salt", "recipe", "dough"],
    "sea": ["ship", "wave", "harbour", "sail", "anchor", "storm", "fish", "coast"],
}


def make_texts(n=60, n_words=15, seed=0):
    """Texts of one topic each, one topic after another."""
    rng, names = np.random.RandomState(seed), list(WORDS)
    return [
        "The " + " ".join(rng.choice(WORDS[names[i % 3]], n_words)) + " of 2020." for i in range(n)
    ]
