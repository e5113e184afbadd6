"""Every instruction set and any number of threads give the same bits: kernels, and whole fits.

Therefore the other tests need only the one in use.  Kernels that are not here have a test of the
same beside their others.
"""

import numpy as np
import pytest

from annealvi._kernels import fmm, special
from annealvi.model import Batch, Tempering
from bench.speed.fits import lda_fits, mixture_fits, proximity_fits
from tests._kernels import test_fmm, test_lda
from tests._kernels.test_special import arguments
from tests.asserts import same_bits
from tests.marks import cases, slow_values
from tests.models.lda.naive import DTYPES

dtypes = pytest.mark.parametrize("dtype", DTYPES)
ALL_FITS = lda_fits() | mixture_fits() | proximity_fits()
FITS = {name: fit for name, fit in ALL_FITS.items() if "threads" not in name}
QUICK = ["LDA: default", "LDA: scikit-learn's, online", "FMM: default", "GMM: default"]


@pytest.mark.parametrize("name", ["exp", "log", "digamma", "lgamma", "exp_digamma"])
@dtypes
def test_special_functions(name, dtype):
    x = arguments(dtype)
    if name == "exp":
        x = np.concatenate([np.log(x), -x])
    others = (0.3,) if name == "exp_digamma" else ()
    same_bits(lambda _: getattr(special, name)(x, *others), 1)


@pytest.mark.thinned
@pytest.mark.parametrize("n_topics", [1, 2, 5, 8, 9, 16, 17, 24, 33, 100])
@pytest.mark.parametrize("prune", [False, True])
@dtypes
def test_topic_model(counts, dtype, prune, n_topics):
    X = counts.astype(dtype)
    each = np.random.RandomState(2).uniform(0.1, 1, 60).astype(dtype)

    def steps(b, exact, n_threads):
        options = dict(exact=exact, n_iterations=30, prune=prune and not exact)
        model = test_lda.make(n_topics, 41, dtype, n_threads=n_threads, **options)
        tempering = Tempering(b)
        for moments in (True, False):
            local = model.local_step(Batch(X, slice(0, 60)), tempering, moments=moments)
            model.global_step(local.statistics, 0.3, 2.5, tempering)
            yield [model.components, local.energy]
        if np.ndim(b) == 0:
            gamma = model.infer(X, tempering)
            yield [gamma, model.bounds(X, gamma, tempering)]

    for b, exact in ((1.0, False), (0.4, False), (each, False), (1.0, True)):
        same_bits(lambda n, b=b, exact=exact: list(steps(b, exact, n)), 1, 3)


@pytest.mark.parametrize("n_components", [1, 3, 17])
@pytest.mark.parametrize("kind", ["one", "datum", "element"])
@dtypes
def test_factors(dtype, kind, n_components):
    *problem, first = test_fmm.make(n_components, 7 * fmm.BLOCK - 5, dtype)
    b, limit = test_fmm.inverse_temperatures(kind, first.shape, dtype), np.abs(problem[0])
    centre = np.full(n_components, 0.1, dtype=dtype)

    def compute(n):
        nu, held, out = first.copy(), np.full_like(first, np.nan), np.empty((2, first.shape[1]))
        for _ in range(3):
            fmm.sweep(*problem, b, n, nu)
            fmm.held_sweep(*problem, 0.4, centre, 0.1 - limit, limit + 0.1, n, nu, held)
        fmm.energy(*problem, nu, n, out[0])
        fmm.entropy(nu, n, out[1])
        return [nu, held, out]

    same_bits(compute)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of fits that are too short
@cases("name", *QUICK, *slow_values(*(name for name in FITS if name not in QUICK)))
def test_fits(name):
    same_bits(lambda _: FITS[name](), 1)
