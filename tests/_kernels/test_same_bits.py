"""Every instruction set gives the same bits: each kernel, and whole fits.

Therefore the other tests need only the one in use.
"""

import numpy as np
import pytest

from annealvi import _kernels
from annealvi._kernels import fmm, mmm, special
from annealvi._kernels.layout import padded_rows
from annealvi.model import Batch, Tempering
from annealvi.partition import PowerGrid, even_grid, exponential_grid, log_partition
from bench.speed.fits import lda_fits, mixture_fits, proximity_fits
from bench.speed.same_bits import digest
from tests._kernels import test_fmm, test_lda, test_mmm, test_partition
from tests._kernels.test_lda_collapsed import collapse
from tests._kernels.test_special import arguments
from tests.marks import cases, slow_values
from tests.models.lda.naive import DTYPES

dtypes = pytest.mark.parametrize("dtype", DTYPES)
ALL_FITS = lda_fits() | mixture_fits() | proximity_fits()
FITS = {name: fit for name, fit in ALL_FITS.items() if "threads" not in name}
QUICK = ["LDA: default", "LDA: scikit-learn's, online", "FMM: default", "GMM: default"]


def assert_same_bits(compute):
    """Whatever is computed is the same with each instruction set of this machine."""
    before, digests = _kernels.instruction_set(), {}
    try:
        for name in _kernels.available_instruction_sets():
            _kernels.use_instruction_set(name)
            digests[name] = digest(compute())
    finally:
        _kernels.use_instruction_set(before)
    assert len(set(digests.values())) == 1, digests


@pytest.mark.parametrize("name", ["exp", "log", "digamma", "lgamma", "exp_digamma"])
@dtypes
def test_special_functions(name, dtype):
    x = arguments(dtype)
    if name == "exp":
        x = np.concatenate([np.log(x), -x])
    others = (0.3,) if name == "exp_digamma" else ()
    assert_same_bits(lambda: getattr(special, name)(x, *others))


@pytest.mark.thinned
@pytest.mark.parametrize("n_topics", [1, 2, 5, 8, 9, 16, 17, 24, 33, 100])
@pytest.mark.parametrize("prune", [False, True])
@dtypes
def test_topic_model(counts, dtype, prune, n_topics):
    X = counts.astype(dtype)
    each = np.random.RandomState(2).uniform(0.1, 1, 60).astype(dtype)

    def steps(b, start):
        model = test_lda.make(
            n_topics, 41, dtype, start=start, n_iterations=30, prune=prune and start == "constant"
        )
        tempering = Tempering(b)
        for moments in (True, False):
            local = model.local_step(Batch(X, slice(0, 60)), tempering, moments=moments)
            model.global_step(local.statistics, 0.3, 2.5, tempering)
            yield [model.topics.components, local.energy]
        if np.ndim(b) == 0:
            gamma = model.documents.infer(X, tempering)
            yield [gamma, model.documents.bound(X, gamma, tempering)]

    for b, start in ((1.0, "constant"), (0.4, "constant"), (each, "constant"), (1.0, "random")):
        assert_same_bits(lambda b=b, start=start: list(steps(b, start)))


@pytest.mark.parametrize("n_topics", [1, 7, 8, 20, 50])
@dtypes
def test_collapsed_topic_model(counts, dtype, n_topics):
    beta = np.random.RandomState(0).gamma(0.1, 1.0, (41, n_topics)) + 1e-6
    assert_same_bits(lambda: collapse(counts, beta, 0.1, dtype=dtype))


@pytest.mark.parametrize("n_topics", [1, 8, 50])
@dtypes
def test_multinomial_mixture(dtype, n_topics):
    X, rng = test_mmm.documents(dtype=dtype), np.random.RandomState(1)
    rows, first = rng.normal(size=(40, n_topics)), rng.normal(size=n_topics)

    def compute():
        phi, energies, sums = test_mmm.product(X, rows, first), *np.empty((2, X.shape[0]))
        mmm.normalise(0.3, 1, np.empty((1, n_topics)), phi, energies, sums)
        return [phi, energies, sums]

    assert_same_bits(compute)


@pytest.mark.parametrize("n_components", [1, 3, 17])
@pytest.mark.parametrize("kind", ["one", "datum", "element"])
@dtypes
def test_factors(dtype, kind, n_components):
    *problem, first = test_fmm.make(n_components, fmm.BLOCK + 45, dtype)
    b = test_fmm.inverse_temperatures(kind, first.shape, dtype)

    def compute():
        nu, out = first.copy(), np.empty((2, first.shape[1]))
        fmm.sweep(*problem, b, 1, nu)
        fmm.energy(*problem, nu, 1, out[0])
        fmm.entropy(nu, 1, out[1])
        return [nu, out]

    assert_same_bits(compute)


@test_partition.grids
def test_sums_of_powers(b):
    grid = PowerGrid(b)
    for size in test_partition.SIZES:
        logs = padded_rows(test_partition.logs_of(3, size), np.float64, -np.inf)
        weights = padded_rows(np.ones((grid.n_points, size)), np.float64)
        assert_same_bits(lambda logs=logs: [grid.row_sums(logs), grid.column_sums(logs)])
        assert_same_bits(lambda logs=logs, weights=weights: grid.row_sums(logs, weights))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:One draw dominates")
@pytest.mark.parametrize("form", ["collapsed", "explicit"])
@pytest.mark.parametrize("b", [even_grid(10, 9), exponential_grid(10, 9)], ids=["even", "exp"])
def test_draws(form, b, counts):
    prior = test_partition.LDAPrior.from_counts(counts, 5, form=form)
    options = dict(n_samples=9, random_state=0)
    assert_same_bits(lambda: vars(log_partition(prior, b, "monte-carlo", **options)))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of fits that are too short
@cases("name", *QUICK, *slow_values(*(name for name in FITS if name not in QUICK)))
def test_fits(name):
    assert_same_bits(FITS[name])
