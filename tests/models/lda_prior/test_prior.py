"""log C(T) of LDA's prior: estimates, bounds, and extreme hyperparameters."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import psi

from annealvi.models.dirichlet import centre
from annealvi.models.lda_prior import LDAPrior
from annealvi.partition import exponential_grid, log_partition
from annealvi.partition.estimate import PowerGrid
from tests.asserts import refusals, refused
from tests.marks import quick_values
from tests.models.lda_prior.priors import PRIORS, B, T, arrays, prior_of, priors

FORMS = ("explicit", "collapsed")


EACH = [(form, number) for form in FORMS for number in range(len(PRIORS))]
QUICK = [("explicit", 0), ("explicit", 3), ("collapsed", 2)]


@pytest.mark.parametrize("each", quick_values(EACH, *QUICK))
def test_monte_carlo_and_bounds(each):
    form, (alpha, eta) = each[0], PRIORS[each[1]]
    prior = prior_of(alpha, eta, (3, 3), form)
    exact = None
    if form == "explicit" or (alpha, eta) == (1.0, 1.0):  # others are out of reach, or slow
        exact = log_partition(prior, T, "exact").values
    options = dict(n_samples=400, n_theta=200, random_state=0, n_jobs=2)
    estimate = log_partition(prior, T, "monte-carlo", **options)
    assert estimate.method == "monte-carlo" and np.all(estimate.standard_error[1:] < 0.05)
    assert np.all(estimate.effective_sample_size > 100)
    lower = log_partition(prior, T, "jensen", n_samples=400, n_theta=200, random_state=1)
    assert_array_equal(lower.values, lower.bounds[1])
    assert np.all(lower.bounds[0, 1:] < lower.bounds[1, 1:])
    if exact is not None:
        assert np.all(np.abs(estimate.values - exact)[1:] < 3 * estimate.standard_error[1:])
        noise = 0.005 if form == "collapsed" else 0.0  # of the draws
        assert np.all(lower.bounds[:, 1:] < exact[1:] + noise)
    for result in (estimate, lower, log_partition(prior, T, "map")):
        assert abs(result.values[0]) <= 1e-12 and np.all(np.diff(result.values) > 0)


@pytest.mark.parametrize("eta", [np.full((2, 3), 40.0), [[9.0, 30, 60], [70, 0.2, 8]]])
@pytest.mark.parametrize("form", FORMS)
def test_monte_carlo_of_large_priors(form, eta):
    """With alpha_k = sum_v eta_kv one document's words are Dirichlet with the sums of eta."""
    eta = np.asarray(eta)
    prior = prior_of(eta.sum(axis=1), eta, (8,), form)
    same = prior if form == "explicit" else prior_of(1.0, eta.sum(axis=0), (8,), K=1)
    estimate = log_partition(prior, T, "monte-carlo", n_samples=200, random_state=0)
    exact = log_partition(same, T, "exact").values
    assert np.all(estimate.standard_error[1:] < 0.02)
    assert np.all(np.abs(estimate.values - exact)[1:] < 3 * estimate.standard_error[1:])


@pytest.mark.parametrize(("D", "n_theta"), [(20, 10), pytest.param(60, 20, marks=pytest.mark.slow)])
def test_documents_have_theta_of_their_own(D, n_theta):
    """C would be too high by 5 standard errors and more if they shared theta."""
    prior = prior_of(0.3, 0.5, [2] * D, V=2)
    options = dict(n_samples=1500, n_theta=n_theta, random_state=0, n_jobs=2)
    estimate = log_partition(prior, T, "monte-carlo", **options)
    exact = log_partition(prior, T, "exact").values
    assert np.all(np.abs(estimate.values - exact)[1:] < 3 * estimate.standard_error[1:])


@pytest.mark.parametrize("budget", [100, 1000, 10**6])
def test_documents_are_shared_out_evenly(budget, monkeypatch):
    monkeypatch.setattr("annealvi.models.lda_prior.prior.GROUPS_BLOCK", budget)
    prior = prior_of(0.3, 0.5, [3] * 17 + [0] * 4 + [2] * 5 + [9])
    lengths, shares = prior._groups(PowerGrid(B), 10)
    assert shares.shape[1] == min(23, budget // 20)
    assert_array_equal(lengths, [2, 3, 9])
    assert_array_equal(shares.sum(axis=1), [5, 17, 1])
    for counts in (*shares, shares.sum(axis=0)):
        assert np.ptp(counts) <= 1


@pytest.mark.parametrize("alpha", [1 / 500, 0.1])
def test_h_of_1_of_sparse_priors(alpha):
    """The threshold below which a temperature cools under the prior, in the spec's terms."""
    K, V = 500, 8000
    prior = LDAPrior(K, V, [10], doc_topic_prior=alpha, topic_word_prior=alpha)
    step = 1e-5
    values = prior.log_mean_word([1 + step, 1.0, 1 - step])
    expected = psi(K * alpha + 1) - psi(alpha + 1) + psi(V * alpha + 1) - psi(alpha + 1)
    assert abs(values[1]) < 1e-12
    assert_allclose((values[2] - values[0]) / (2 * step), expected, rtol=1e-6)


@priors
def test_log_mean_word_is_that_of_draws(alpha, eta):
    rng, (a, e) = np.random.default_rng(0), arrays(alpha, eta)
    theta = rng.dirichlet(a, 40_000)
    sums = np.stack([np.sum(rng.dirichlet(row, 40_000)[..., None] ** B, axis=1) for row in e], 1)
    words = np.einsum("nkm,nkm->nm", theta[..., None] ** B, sums)
    values = prior_of(alpha, eta).log_mean_word(B)
    error = words.std(axis=0) / words.mean(axis=0) / 200
    assert np.all(np.abs(values - np.log(words.mean(axis=0))) < 4 * error + 1e-12)


def test_log_mean_word_of_huge_priors():
    """Near-certain topics and words: S = (KV)^(1 - b)."""
    prior = LDAPrior(4, 100, [10], doc_topic_prior=1e12, topic_word_prior=1e12)
    assert_allclose(prior.log_mean_word(B), (1 - B) * np.log(400), atol=1e-9)


def test_map_is_at_the_mode_where_there_is_one():
    alpha, eta = np.array([3.0, 1.5]), np.array([[2.0, 5.0, 1.5], [3.0, 2.0, 9.0]])
    theta = (alpha - 1) / (alpha - 1).sum()
    beta = (eta - 1) / (eta - 1).sum(axis=1, keepdims=True)
    for form in FORMS:
        values = log_partition(prior_of(alpha, eta, (4, 3), form), T, "map").values
        joint = theta[:, None] * beta
        p = joint.ravel() if form == "explicit" else joint.sum(axis=0)
        assert_allclose(values, 7 * np.log(np.sum(p[:, None] ** B, axis=0)), atol=1e-11)
    assert_allclose(centre(np.array([0.5, 2.5])), [1 / 6, 5 / 6])


def test_priors_may_be_written_as_numbers_rows_or_matrices():
    for form in FORMS:
        row, matrix = (np.full(3, 0.5), np.full(4, 1.7)), (0.5, np.full((3, 4), 1.7))
        both = [(0.5, 1.7), row, matrix]
        priors = [prior_of(alpha, eta, [5], form, K=3, V=4) for alpha, eta in both]
        methods = ("map", "exact" if form == "explicit" else "map")
        values = [log_partition(prior, T, method).values for method in methods for prior in priors]
        assert_allclose(values[1:3], values[:1] * 2, atol=1e-11)
        assert_allclose(values[4:], values[3:4] * 2, atol=1e-11)
    default = LDAPrior(4, 9, [3])
    assert default.doc_topic_prior == default.topic_word_prior == 0.25


def test_errors_of_the_callback_end_it():
    seen = []

    def stop(done, total):
        seen.append(done)
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        log_partition(prior_of(1.0, 1.0), T, "monte-carlo", callback=stop, n_jobs=2)
    assert seen == [1, 2, 3]


@pytest.mark.parametrize("b", [0.02, 0.5])
def test_probabilities_that_underflow_are_heard_where_it_matters(b):
    """At T = 50 a word of probability 1e-300 counts as 1e-6; theta beta ~ Dir(2 eta)."""
    eta = 1 / 500
    prior = prior_of(3 * eta, eta, (3,), "collapsed")
    exact = log_partition(prior_of(1.0, 2 * eta, (3,), K=1), [1, 1 / b], "exact").values[1]
    result = log_partition(prior, [1, 1 / b], n_samples=200, random_state=0, method="monte-carlo")
    assert abs(result.values[1] - exact) < 3 * result.standard_error[1]
    assert result.standard_error[1] < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_extreme_hyperparameters_give_finite_results(form):
    priors = dict(doc_topic_prior=1 / 500, topic_word_prior=1 / 500)
    prior = LDAPrior(500, 8000, [100_000] * 10_000, form=form, **priors)
    assert prior.n_words == 10**9
    temperatures = exponential_grid(10, 20)
    with pytest.warns(UserWarning, match="effective sample size"):
        estimate = log_partition(prior, temperatures, n_samples=2, n_theta=4, random_state=0)
    assert estimate.method == "monte-carlo"  # exact is out of reach
    assert np.all(np.isfinite(estimate.standard_error))
    lower = log_partition(prior, temperatures, "jensen", n_samples=2, n_theta=4, random_state=0)
    for values in (
        estimate.values,
        *lower.bounds,
        log_partition(prior, temperatures, "map").values,
    ):
        assert values[0] == 0 and np.all(np.isfinite(values))
        assert np.all(np.diff(values) > 0)


@pytest.mark.parametrize("method", ["monte-carlo", "jensen"])
def test_a_prior_may_have_any_layout(method):
    eta = np.random.RandomState(0).random_sample((3, 30)) + 0.1
    found = []
    for array in (eta, np.asfortranarray(eta)):
        prior = LDAPrior(3, 30, [5, 2], doc_topic_prior=0.5, topic_word_prior=array)
        found.append(log_partition(prior, T, method, n_samples=5, random_state=0).values)
    assert_array_equal(*found)


@pytest.mark.parametrize("value", [1e-300, 1e299])
def test_priors_at_the_edges_of_the_range(value):
    for form in FORMS:
        prior = prior_of(value, value, (3, 3), form)
        for method in ("monte-carlo", "jensen", "map"):
            values = log_partition(prior, T, method, n_samples=5, random_state=0).values
            assert np.all(np.isfinite(values))
            if method != "map":  # all is certain, or all is even
                size = 6 if form == "explicit" else 3
                assert_allclose(values, (1 - B) * (0 if value < 1 else 6 * np.log(size)), atol=1e-6)


test_bad_input = refusals(
    lambda options: LDAPrior(
        **dict(n_components=2, n_features=3, document_lengths=[3, 3]) | options
    ),
    (dict(n_components=0), "'n_components' parameter of LDAPrior must be an int"),
    (dict(n_features=2.5), "'n_features' parameter of LDAPrior must be an int"),
    (dict(document_lengths=[3, -1]), r"'document_lengths'.*integers.*Got -1"),
    (dict(document_lengths=[3, 2.5]), r"'document_lengths'.*integers.*Got 2.5"),
    (dict(document_lengths=[3, np.nan]), r"'document_lengths'.*integers.*Got nan"),
    (dict(document_lengths=np.array([np.inf], np.float16)), "integers.*Got inf"),
    (dict(document_lengths=[2**53, 1]), "integers whose sum is at most 9007199254740992. Got 9007"),
    (
        dict(document_lengths=[2**53] * 2000),
        "at most 9007199254740992. Got 18014398509481984000 instead",
    ),
    (dict(document_lengths=[]), r"'document_lengths'.*one-dimensional.*Got shape \(0,\)"),
    (dict(document_lengths=7), r"'document_lengths'.*one-dimensional.*Got shape \(\)"),
    (dict(document_lengths=[0, 0]), r"one positive length. Got only zeros for 2 documents"),
    (dict(doc_topic_prior=0.0), r"'doc_topic_prior'.*positive and finite.*Got 0.0"),
    (dict(doc_topic_prior=[1.0, 2.0, 3.0]), r"'doc_topic_prior'.*shape \(2,\).*\(3,\)"),
    (dict(topic_word_prior=np.inf), r"'topic_word_prior'.*positive and finite.*Got inf"),
    (dict(topic_word_prior=np.ones((3, 2))), r"'topic_word_prior'.*\(3,\) or \(2, 3\)"),
    (dict(form="marginal"), "'form' parameter of LDAPrior must be a str among"),
)


@pytest.mark.parametrize("inverse", ["a", [], [1.0, 0.0], [np.nan], [[1.0]], 0.5])
def test_log_mean_word_of_what_is_no_temperature(inverse):
    with pytest.raises(ValueError, match=r"'inverse' parameter of LDAPrior.log_mean_word must be"):
        prior_of(1.0, 1.0).log_mean_word(inverse)


def test_a_word_has_no_closed_form_in_the_collapsed_form():
    refused("form='explicit'", prior_of(1.0, 1.0, form="collapsed").log_mean_word, B)


def test_from_counts():
    X = sparse.csr_matrix([[1, 0, 2], [0, 0, 0], [1, 1, 1]])
    for counts in (X, X.toarray()):
        prior = LDAPrior.from_counts(counts, 2, doc_topic_prior=0.5)
        assert (prior.n_components, prior.n_features) == (2, 3)
        assert (prior.n_documents, prior.n_words) == (3, 6)
        expected = log_partition(prior_of(0.5, 0.5, (3, 0, 3)), T).values
        assert_array_equal(log_partition(prior, T).values, expected)
