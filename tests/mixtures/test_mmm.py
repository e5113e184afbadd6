"""TemperedMultinomialMixture as a user meets it: planted classes, bad input, empty classes."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import normalized_mutual_info_score as nmi

from annealvi import TemperedLDA, TemperedMultinomialMixture
from tests.asserts import refused
from tests.marks import cases
from tests.mixtures.fits import COUNTS, mmm

CLASSES = np.repeat(np.arange(3), 30)


def planted(n_classes, n_documents, n_words, length, seed):
    """Documents of classes whose words are drawn from Dir(0.1), and their classes."""
    rng = np.random.RandomState(seed)
    words = rng.dirichlet(np.full(n_words, 0.1), n_classes)
    classes = rng.randint(n_classes, size=n_documents)
    lengths = rng.poisson(length, n_documents) + 1
    X = [rng.multinomial(n, words[k]) for n, k in zip(lengths, classes, strict=True)]
    return sparse.csr_matrix(np.array(X)), classes


def test_planted_classes_are_found():
    one = mmm().fit(COUNTS)
    assert nmi(CLASSES, one.predict(COUNTS)) == 1
    assert np.array_equal(one.predict(COUNTS), mmm().fit_predict(COUNTS))
    np.testing.assert_allclose(one.weights_, 1 / 3, atol=0.01)
    assert one.components_.shape == (3, 12) and one.weights_.sum() == pytest.approx(1)


@pytest.mark.slow
@pytest.mark.statistical
def test_merged_runs_find_more_than_one_start_and_than_no_annealing():
    """20 classes of texts of ten words."""
    found = {"merged": [], "kmeans++": [], "plain": []}
    for seed in range(5):
        X, classes = planted(20, 1500, 400, 10, seed)
        for name in found:
            options = dict(temperature=1, init="kmeans++") if name == "plain" else dict(init=name)
            one = TemperedMultinomialMixture(20, random_state=seed, **options).fit(X)
            found[name].append(nmi(classes, one.predict(X)))
    mean = {name: np.mean(values) for name, values in found.items()}
    assert mean["merged"] >= 0.97
    assert mean["merged"] >= mean["kmeans++"] + 0.01 and mean["kmeans++"] >= mean["plain"], mean


def test_classes_of_topics():
    lda = TemperedLDA(3, random_state=0).fit(COUNTS)
    one = mmm(init=lda.components_).fit(COUNTS)
    assert nmi(CLASSES, one.predict(COUNTS)) == 1
    topics = lda.components_ / lda.components_.sum(axis=1, keepdims=True)
    ours = one.components_ / one.components_.sum(axis=1, keepdims=True)
    assert np.array_equal((topics @ ours.T).argmax(axis=1), range(3))  # class k is topic k


def test_init_of_any_size():
    one, huge = (mmm(init=scale * COUNTS[::30]).fit(COUNTS) for scale in (1.0, 1e307))
    np.testing.assert_allclose(one.components_, huge.components_)


@pytest.mark.slow
def test_empty_classes_are_said():
    with pytest.warns(
        ConvergenceWarning, match=r"\d of the 9 clusters contain no documents. Use a small"
    ):
        one = mmm(n_components=9, word_prior=5.0).fit(COUNTS)
    points = np.repeat([[5, 0, 0, 0], [0, 5, 0, 0]], 50, axis=0)
    with pytest.warns(ConvergenceWarning, match="2 of the 4 clusters contain no documents"):
        mmm(n_components=4, init=np.eye(4)).fit(points)
    assert np.all(np.isfinite(one.predict_proba(COUNTS)))
    with pytest.warns(ConvergenceWarning):
        assert len(mmm(n_components=200).fit(COUNTS).weights_) == 200  # more than documents


@pytest.mark.parametrize("scale", [1e-300, 1e-5, 1e290])
def test_counts_of_any_size(scale):
    one = mmm(temperature=1).fit(scale * COUNTS)
    assert np.all(np.isfinite(one.score_samples(scale * COUNTS))) and np.isfinite(one.lower_bound_)


def test_documents_without_words_get_the_weights():
    X = np.vstack([COUNTS, np.zeros((5, 12))])
    one = mmm().fit(X)
    np.testing.assert_allclose(one.predict_proba(X)[-5:], [one.weights_] * 5, rtol=1e-10)
    assert np.all(np.isfinite(mmm().fit(np.zeros((4, 6))).score_samples(X[:, :6])))


@pytest.mark.thinned
@pytest.mark.parametrize("method", ["fit", "predict"])
@cases(
    "X, error, message",
    (-COUNTS, ValueError, "Negative values in data passed to TemperedMultinomialMixture"),
    (COUNTS * np.nan, ValueError, "contains NaN"),
    (1e307 * COUNTS, ValueError, "counts in X must sum to at most"),
    (COUNTS[0], ValueError, "Expected 2D array, got 1D array"),
    (["a text", "two"], TypeError, "must be a matrix of word counts. Got texts"),
    (np.zeros((0, 12)), ValueError, r"Found array with 0 sample\(s\)"),
)
def test_data(method, X, error, message):
    one = mmm() if method == "fit" else mmm().fit(COUNTS)
    refused(message, getattr(one, method), X, error=error)
