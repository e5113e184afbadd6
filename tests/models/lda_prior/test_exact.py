"""Exact log C(T) of LDA's prior: enumerated by brute force, and known in closed form."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import gammaln

from annealvi.models.lda_prior import LDAPrior
from annealvi.partition import OutOfReach, log_partition
from tests.marks import cases
from tests.models.lda_prior.priors import PRIORS, B, T, arrays, prior_of, priors


def beta_nodes(a, c, step=0.25):
    """The trapezoidal rule for Beta(a, c) in logit x, where it is as good as exact."""
    s = np.arange(-60 / min(a, 1), 60 / min(c, 1), step)
    log_x, log_y = -np.logaddexp(0, -s), -np.logaddexp(0, s)
    log_weight = a * log_x + c * log_y - gammaln(a) - gammaln(c) + gammaln(a + c)
    return log_x, log_y, step * np.exp(log_weight)


class Moments:
    """E prod_i x_i^{b n_i} for x ~ Dir(prior), stick by stick, by quadrature."""

    def __init__(self, prior, b):
        self.rules = [beta_nodes(prior[i], prior[i + 1 :].sum()) for i in range(len(prior) - 1)]
        self.b, self.known = b, {}

    def __call__(self, counts):
        if counts not in self.known:
            value = 1.0
            for i, (log_x, log_y, weight) in enumerate(self.rules):
                here, after = counts[i], sum(counts[i + 1 :])
                value *= weight @ np.exp(self.b * (here * log_x + after * log_y))
            self.known[counts] = value
        return self.known[counts]


def enumerate_words_and_topics(alpha, eta, lengths, b):
    """C of the explicit form: the sum over all words w and assignments z, one by one."""
    K, V = eta.shape
    theta, beta = Moments(alpha, b), [Moments(row, b) for row in eta]
    document = np.repeat(np.arange(len(lengths)), lengths)
    total = 0.0
    for tokens in itertools.product(itertools.product(range(K), range(V)), repeat=len(document)):
        per_document = np.zeros((len(lengths), K), dtype=int)
        per_topic = np.zeros((K, V), dtype=int)
        for d, (k, v) in zip(document, tokens, strict=True):
            per_document[d, k] += 1
            per_topic[k, v] += 1
        term = 1.0
        for counts in per_document.tolist():
            term *= theta(tuple(counts))
        for moments, counts in zip(beta, per_topic.tolist(), strict=True):
            term *= moments(tuple(counts))
        total += term
    return total


@pytest.mark.slow
@cases("alpha, eta", PRIORS[0], pytest.param(*PRIORS[3], marks=pytest.mark.slow))
def test_exact_is_the_sum_over_all_words_and_topics(alpha, eta):
    """V = 3, K = 2, two documents of 3 words: 46,656 terms, each an integral."""
    for b, value in zip(B, log_partition(prior_of(alpha, eta), T, "exact").values, strict=True):
        expected = np.log(enumerate_words_and_topics(*arrays(alpha, eta), (3, 3), b))
        assert_allclose(value, expected, atol=1e-8)


@pytest.mark.slow
@priors
def test_exact_of_documents_of_different_lengths(alpha, eta):
    lengths = (1, 0, 3, 1)
    exact = log_partition(prior_of(alpha, eta, lengths), T, "exact").values
    for b, value in zip(B, exact, strict=True):
        expected = np.log(enumerate_words_and_topics(*arrays(alpha, eta), lengths, b))
        assert_allclose(value, expected, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "eta"), [(1.0, 1.0), ([0.6, 1.3], [0.8, 1.1])])
def test_exact_collapsed_is_the_integral(alpha, eta):
    """V = K = 2: one coordinate for theta and one for each topic, by another rule."""
    exact = log_partition(prior_of(alpha, eta, (3, 2), "collapsed", V=2), T, "exact").values
    a, e = arrays(alpha, eta, V=2)
    x, _, theta_weight = beta_nodes(*a, step=0.8)
    (y1, _, weight1), (y2, _, weight2) = (beta_nodes(*row, step=0.8) for row in e)
    theta = np.exp(x)[:, None, None]
    first = theta * np.exp(y1)[:, None] + (1 - theta) * np.exp(y2)
    second = theta * -np.expm1(y1)[:, None] + (1 - theta) * -np.expm1(y2)
    for b, value in zip(B[::2], exact[::2], strict=True):
        words = first**b + second**b
        documents = np.prod([np.tensordot(theta_weight, words**n, 1) for n in (3, 2)], axis=0)
        assert_allclose(value, np.log(weight1 @ documents @ weight2), atol=1e-8)


@pytest.mark.slow
def test_exact_collapsed_where_mixtures_of_topics_are_dirichlet():
    """If alpha_k = sum_v eta_kv, then sum_k theta_k beta_k ~ Dir(sum_k eta_k)."""
    eta = [0.8, 0.9, 1.3]
    exact = log_partition(prior_of(np.sum(eta), eta, (3,), "collapsed"), T, "exact").values
    # one topic of that prior: both forms are the same, and the explicit one is tested above
    alone = prior_of(1.0, 2 * np.array(eta), (3,), K=1)
    assert_allclose(exact, log_partition(alone, T, "exact").values, atol=1e-8)


@pytest.mark.parametrize("value", [1e6, 1e10, 1e15, 1e299])
def test_exact_of_large_priors(value):
    """Certain to be even: S = (KV)^(1 - b), K^(1 - b) or V^(1 - b), to 1 / a."""
    for alpha, eta, size in [(value, value, 6), (value, 1e15, 6), ([value, value], value, 6)]:
        values = log_partition(prior_of(alpha, eta, (40, 1)), T, "exact").values
        assert abs(values[0]) <= 1e-8
        assert_allclose(values, 41 * (1 - B) * np.log(size), atol=max(1e-8, 1e4 / value))
    with pytest.raises(ValueError, match=r"'doc_topic_prior'.*the range of sums of 2 numbers"):
        log_partition(prior_of(1e308, 1e308), T, "exact")


def test_exact_refuses_what_is_too_large():
    with pytest.raises(OutOfReach, match=r"20 topics, 50 features, 300 words.*monte-carlo"):
        log_partition(LDAPrior(20, 50, [100] * 3), T, "exact")
    with pytest.raises(OutOfReach, match=r"relative error.*monte-carlo"):
        log_partition(LDAPrior(3, 5, [10], form="collapsed"), T, "exact")
