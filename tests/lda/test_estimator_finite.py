"""No input gives NaN or infinity without a word: an error that says why, or a finite answer."""

import math
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from annealvi import Annealed, TemperedLDA, Variational
from annealvi.datasets import make_topic_corpus

X = make_topic_corpus(30, 20, 3, document_length=20, random_state=0).data
EMPTY = np.zeros((5, 20))
LARGEST = {np.float32: 3e38, np.float64: 1.7e308}


def answers(lda, Z=X):
    """Everything that an estimator answers, one after another."""
    return np.concatenate(
        [
            np.ravel(answer)
            for answer in (
                lda.components_,
                lda.exp_dirichlet_component_,
                lda.transform(Z),
                lda.score(Z),
                lda.perplexity(Z),
                lda.temperature_path_,
                lda.doc_topic_prior_,
                lda.topic_word_prior_,
                getattr(lda, "bound_", 0.0),
            )
        ]
    )


def full(value, dtype=np.float64):
    """Documents with one entry of this value, and one of 1."""
    Z = np.zeros((4, 20), dtype)
    Z[0, 3], Z[1, 2] = value, 1
    return Z


# ------------------------------------------------------------------- counts


@pytest.mark.parametrize("temperature", ["auto", "variational"])
@pytest.mark.parametrize("preset", ["annealvi", "sklearn"])
@pytest.mark.parametrize(
    ("value", "dtype"),
    [(1e35, np.float32), (3e38, np.float32), (1e305, np.float64), (1.7e308, np.float64)],
)
def test_counts_whose_sums_overflow(value, dtype, preset, temperature):
    lda = TemperedLDA(3, preset=preset, temperature=temperature, random_state=0, max_iter=3)
    Z = np.repeat(full(value, dtype), 2, axis=0)
    for method in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match=r"counts in X must sum to at most .* Got"):
            getattr(lda, method)(Z)
        assert not hasattr(lda, "components_") and not hasattr(lda, "n_features_in_")
    before = answers(lda.partial_fit(X.astype(dtype)))
    for method in ("partial_fit", "fit", "transform", "score", "perplexity"):
        with pytest.raises(ValueError, match="counts in X must sum to at most"):
            getattr(lda, method)(Z)
        assert_array_equal(answers(lda), before)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_counts_up_to_the_limit_give_finite_answers(dtype):
    for value, method in (
        (1e-30, "fit"),
        (0.9 * LARGEST[dtype] / 4e8, "fit"),
        (1e20, "partial_fit"),
    ):
        Z = full(value, dtype)
        for temperature in (1, "auto", "variational", "local"):
            lda = TemperedLDA(3, temperature=temperature, random_state=0, max_iter=3)
            found = answers(getattr(lda, method)(Z), Z)
            assert np.all(np.isfinite(found)), (value, method, temperature)


def test_counts_times_the_population():
    lda = TemperedLDA(3, total_samples=1e25, random_state=0)
    with pytest.raises(
        ValueError, match=r"times total_samples .* float32. Got 1e\+06 times 1e\+25"
    ):
        lda.partial_fit(full(1e6, np.float32))


@pytest.mark.parametrize("total_samples", [1e-308, 1e305])
def test_populations_out_of_range(total_samples):
    lda = TemperedLDA(3, total_samples=total_samples, random_state=0)
    with pytest.raises(ValueError, match="total_samples"):
        lda.partial_fit(X)
    assert not hasattr(lda, "components_")
    lda = TemperedLDA(3, random_state=0).fit(X).set_params(total_samples=1e305)
    with pytest.raises(ValueError, match="total_samples"):
        lda.perplexity(X, sub_sampling=True)


# ----------------------------------------------------------------- no words


def test_a_corpus_without_words():
    for preset in ("annealvi", "sklearn"):
        lda = TemperedLDA(3, preset=preset, random_state=0).fit(EMPTY)
        assert lda.bound_ == 1 and np.all(np.isfinite(lda.components_))
    lda = TemperedLDA(3, random_state=0)
    for method in ("batch", "online"):  # a portion of a stream may have none
        lda.set_params(learning_method=method).partial_fit(EMPTY)
        assert np.all(np.isfinite(lda.components_)) and np.isfinite(lda.score(EMPTY))
        np.testing.assert_allclose(lda.transform(EMPTY), 1 / 3)
        with pytest.raises(ValueError, match=r"perplexity.* needs documents with words"):
            lda.perplexity(EMPTY)


def test_all_words_held_out():
    Z = np.zeros((40, 5))
    Z[np.random.RandomState(0).permutation(40)[:20], 0] = 9
    seeds = range(30)
    failed = 0
    for seed in seeds:
        lda = TemperedLDA(2, validation_fraction=0.95, max_iter=1, random_state=seed)
        try:
            lda.fit(Z)
        except ValueError as error:
            assert "must have words" in str(error)
            failed += 1
        else:
            assert np.isfinite(lda.bound_)
    assert 0 < failed < len(seeds)


def test_a_perplexity_beyond_the_largest_float_warns():
    lda = TemperedLDA(3, random_state=0, topic_estimate="variational").fit(X)
    with pytest.warns(RuntimeWarning, match="perplexity of X.* exceeds the largest float"):
        assert lda.perplexity(full(1e-3)[:1]) == math.inf


# --------------------------------------------------- parameters at their ends


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["doc_topic_prior", "topic_word_prior"])
def test_priors_whose_sums_overflow(name, dtype):
    wrong = float(np.finfo(dtype).max) / 2
    with pytest.raises(ValueError, match=rf"{name!r} .* range of sums of .* of float"):
        TemperedLDA(3, dtype=dtype, **{name: wrong}).fit(X.astype(dtype))
    lda = TemperedLDA(3, random_state=0).fit(X.astype(dtype))
    before = lda.transform(X)
    with pytest.raises(ValueError, match=rf"{name}_' .* range of sums of"):
        setattr(lda, f"{name}_", wrong)
    assert_array_equal(lda.transform(X), before)


@pytest.mark.parametrize("temperature", [1e50, Annealed(1e50), Variational(t_max=1e100)])
def test_temperatures_that_float32_cannot_hold(temperature):
    lda = TemperedLDA(3, temperature=temperature, random_state=0, max_iter=3)
    for dtype in ("float32", "float64"):
        for method in ("fit", "partial_fit"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # T stays high
                found = getattr(clone(lda).set_params(dtype=dtype), method)(X)
            assert np.all(np.isfinite(answers(found)))
            assert np.all(np.isfinite(found.transform(X, temperature=1e50)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_temperatures_that_no_float_can_hold(dtype):
    with pytest.raises(ValueError, match=r"temperature must be at most 4.49e\+307. Got 1e\+308"):
        TemperedLDA(3, temperature=1e308, dtype=dtype, max_iter=1).fit(X)


# ------------------------------------------------ what the user writes to topics


# ----------------------------------------------- what an error leaves of a stream


def test_an_error_in_the_first_step_of_a_portion_changes_nothing(monkeypatch):
    lda = TemperedLDA(3, batch_size=10, random_state=0)

    def broken(*arguments, **options):
        raise ValueError("broken")

    for method in ("fit", "partial_fit"):
        with monkeypatch.context() as context:
            context.setattr("annealvi.models.lda.LDA.local_step", broken)
            with pytest.raises(ValueError, match="broken"):
                getattr(lda, method)(X)
        assert not hasattr(lda, "components_") and not hasattr(lda, "n_features_in_")
    before = answers(lda.fit(X))
    with monkeypatch.context() as context:
        context.setattr("annealvi.models.lda.LDA.local_step", broken)
        with pytest.raises(ValueError, match="broken"):
            lda.partial_fit(X)
    assert_array_equal(answers(lda), before)
    assert lda.n_batch_iter_ == TemperedLDA(3, batch_size=10, random_state=0).fit(X).n_batch_iter_


@pytest.mark.filterwarnings("ignore:The perplexity of X")
@pytest.mark.parametrize(("dtype", "prior"), [(np.float32, 1e30), (np.float64, 1e200)])
def test_documents_that_start_far_below_their_prior(dtype, prior, instruction_set):
    lda = TemperedLDA(3, preset="sklearn", doc_topic_prior=prior, max_iter=2, random_state=0)
    theta = lda.fit_transform(X.astype(dtype))
    assert np.all(np.isfinite(lda.components_))
    assert_allclose(theta, 1 / 3, rtol=1e-6)


def test_small_steps_towards_a_huge_prior():
    """The sums over words follow from step to step; the prior's digits must not cover theirs."""
    lda = TemperedLDA(2, topic_word_prior=1e30, learning_offset=1e305, random_state=0)
    lda.partial_fit(X[:1])
    assert np.all(np.isfinite(lda.components_))
    assert_allclose(lda.transform(X).sum(axis=1), 1)
    assert np.all(np.isfinite(lda.document_temperatures(X)))


@pytest.mark.parametrize("estimate", ["map", "variational"])
def test_tiny_steps_with_a_large_prior(estimate):
    """A step of 1e-213 had set lambda to 0, where the prior was a million times lambda."""
    X = np.random.RandomState(0).poisson(2, (11, 8)).astype(np.float32)
    lda = TemperedLDA(
        2, topic_word_prior=1e10, learning_offset=1e305, topic_estimate=estimate, random_state=0
    ).partial_fit(X)
    assert lda.components_.min() > 0
    assert np.all(np.isfinite(lda.transform(X)))
    assert np.isfinite(lda.score(X))


def test_a_callback_that_changes_the_words_of_the_documents():
    """The kernels prepare what they read for the words that are there now."""
    rng = np.random.RandomState(0)
    low, high = (
        np.sort([rng.choice(1000, 30, replace=False) for _ in range(60)]).astype(np.int32).ravel()
        for _ in range(2)
    )
    indptr = np.arange(0, 60 * 30 + 1, 30, dtype=np.int32)
    Z = sparse.csr_matrix((np.ones(60 * 30), low, indptr), shape=(60, 50_000))

    def callback(estimator, monitor):
        if monitor.step == 7:  # of 18, when the order of the words is kept
            Z.indices[:] = 49_000 + high

    fit = {"max_iter": 6, "batch_size": 20, "finish_iter": 0, "random_state": 0}
    lda = TemperedLDA(5, callback=callback, **fit).fit(Z)
    assert np.isfinite(lda.components_).all()
    prior = lda.topic_word_prior_
    n_words = lda.components_[:, np.unique(Z.indices)].sum() - 5 * prior * len(np.unique(Z.indices))
    assert n_words > 0.5 * Z.sum()  # the last steps have learned them
