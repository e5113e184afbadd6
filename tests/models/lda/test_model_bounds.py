"""The terms of LDA's bound that the kernels sum: of documents and of topics."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import gammaln, psi

from annealvi.models.dirichlet import negative_kl
from annealvi.models.lda import LDA

DTYPES = (np.float32, np.float64)


def kl_by_scipy(x, prior):
    """-KL of each row by its definition."""
    sums = x.sum(axis=-1, keepdims=True)
    inner = (prior - x) * (psi(x) - psi(sums)) + gammaln(x) - gammaln(prior)
    return inner.sum(axis=-1) + gammaln(prior.sum(axis=-1)) - gammaln(sums[..., 0])


@pytest.mark.parametrize("dtype", DTYPES)
def test_negative_kl_of_documents(dtype):
    rng = np.random.RandomState(1)
    gamma = rng.gamma(0.5, 4, (300, 20)).astype(dtype) + dtype(0.05)
    prior = rng.uniform(0.05, 2, 20)
    expected = kl_by_scipy(gamma.astype(np.float64), prior)
    assert_allclose(negative_kl(prior, gamma, 2), expected, rtol=1e-12)
    assert negative_kl(prior, gamma[:0]).shape == (0,)


@pytest.mark.parametrize("form", ["likelihood", "posterior"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (90,), (6, 90)])
def test_topic_bound(shape, dtype, form):
    rng = np.random.RandomState(2)
    eta = rng.uniform(0.01, 2, shape)
    model = LDA(6, 90, alpha=0.1, eta=eta, dtype=dtype)
    model.topics.assign(rng.gamma(0.5, 4, (6, 90)) + 0.05)
    b = 0.7 if form == "posterior" else 1.0
    prior = np.broadcast_to(b * eta, (6, 90))
    expected = kl_by_scipy(model.topics.components.astype(np.float64), prior).sum()
    assert_allclose(model.topics.bound(b), expected, rtol=1e-12)
