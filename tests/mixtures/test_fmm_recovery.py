"""TemperedFMM finds planted components: the toys of the papers, from many starts."""

import numpy as np
import pytest

from annealvi import Annealed, Variational
from annealvi.datasets import load_shapes, make_shape_mixture
from annealvi.metrics import component_recovery
from tests.mixtures.fits import toy_factors

pytestmark = pytest.mark.statistical

SEEDS = range(20)
FEW = range(4)
BARS = np.array(
    [np.outer(row, np.ones(4)).ravel() for row in np.eye(4)]
    + [np.outer(np.ones(4), column).ravel() for column in np.eye(4)]
)
METHODS = {
    "VI": dict(temperature=1, max_iter=100),
    "best of 10 VI": dict(temperature=1, max_iter=100, n_init=10),
    "AVI": dict(temperature=Annealed(10, length=0.5, shape="exponential"), max_iter=200),
    "VT": dict(temperature=Variational(t_max=100, damping=0.03), max_iter=200),
}


# Measured (bench/studies/mixtures.py): 4.4, 7.0, 8.0 and 7.8 of the shapes, 6.2, 7.9, 8.0 and
# 7.9 of the bars.
@pytest.mark.parametrize(
    ("shapes", "seeds"),
    [
        pytest.param(BARS, FEW, id="bars"),
        pytest.param(load_shapes(), SEEDS, id="shapes, 20 seeds", marks=pytest.mark.slow),
        pytest.param(BARS, SEEDS, id="bars, 20 seeds", marks=pytest.mark.slow),
    ],
)
def test_tempering_finds_the_components_of_the_toy(shapes, seeds):
    """Mandt et al. (2016), Fig. 4, with N = 1,000: the same starts, nu = pi, m ~ N(0, sigma_mu)."""
    found = {name: [] for name in METHODS}
    elbo = {name: [] for name in METHODS}
    for seed in seeds:
        toy = make_shape_mixture(1000, shapes=shapes, random_state=seed)
        for name, options in METHODS.items():
            fmm = toy_factors(init="prior", random_state=seed, **options).fit(toy.data)
            found[name].append(component_recovery(fmm.components_, toy.components)[0])
            elbo[name].append(fmm.lower_bound_)
    mean = {name: np.mean(values) for name, values in found.items()}
    assert min(mean["AVI"], mean["VT"]) >= 7.5, mean
    margin = 2 if shapes is not BARS else 1.5  # bars are easier for plain inference
    assert min(mean["AVI"], mean["VT"]) >= mean["VI"] + margin, mean
    best = np.max(list(elbo.values()), axis=0)
    assert np.mean(elbo["VT"]) >= np.mean(best) - 0.3


# Measured with other seeds: -11.0 and -10.5, and 5.0 and 5.9
# of the shapes found.
@pytest.mark.slow
def test_seeds_help_plain_inference():
    """Directions of rows of X are a better start than random ones where nothing is negative."""
    bounds, found = np.empty((2, len(SEEDS))), np.empty((2, len(SEEDS)))
    for seed in SEEDS:
        toy = make_shape_mixture(1000, random_state=seed)
        for i, init in enumerate(("random", "kmeans++")):
            fmm = toy_factors(init=init, temperature=1, random_state=seed).fit(toy.data)
            bounds[i, seed] = fmm.lower_bound_
            found[i, seed] = component_recovery(fmm.components_, toy.components)[0]
    assert bounds[1].mean() > bounds[0].mean()
    assert found[1].mean() > found[0].mean()
