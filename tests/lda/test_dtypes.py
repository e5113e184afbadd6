"""The dtype that a fit computes in, and the dtypes of what it shows and answers."""

import copy
import pickle
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

import annealvi
from annealvi import LocalVariational, TemperedLDA, Variational
from annealvi.datasets import load_arxiv_abstracts, make_topic_corpus
from annealvi.lda.settings import MOST_PRIOR, extent, in_dtype
from tests.asserts import refused
from tests.marks import cases

SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)


def computed_in(lda):
    """The dtype of a fit's arithmetic, and of its settings."""
    assert lda.settings_["dtype"] == lda.dtype_.name
    return lda.dtype_


@pytest.mark.thinned
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("given", [np.int64, np.float32, np.float64])
@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("auto", SINGLE), ("float32", SINGLE), ("float64", DOUBLE), (np.float64, DOUBLE)],
)
def test_the_default_computes_in_float32_whatever_the_dtype_of_X(X, method, given, dtype, expected):
    lda = TemperedLDA(3, dtype=dtype, max_iter=1, random_state=0)
    assert computed_in(getattr(lda, method)(X.astype(given))) == expected
    assert computed_in(getattr(clone(lda), method)(X.toarray().astype(given))) == expected


def test_scikit_learns_local_step_keeps_the_dtype_of_X(X):
    lda = TemperedLDA(3, max_iter=1, random_state=0, preset="sklearn")
    assert computed_in(lda.fit(X)) == computed_in(lda.fit(X.astype(int))) == DOUBLE
    assert computed_in(lda.fit(X.astype(np.float32))) == SINGLE
    assert computed_in(lda.set_params(dtype="float32").fit(X)) == SINGLE


@cases(
    ("init", "expected"), (np.float64, DOUBLE), (np.float32, SINGLE), (list, DOUBLE), (int, SINGLE)
)
def test_given_topics_are_not_rounded(X, init, expected):
    topics = np.random.RandomState(0).uniform(1, 9, (3, X.shape[1]))
    topics = topics.tolist() if init is list else topics.astype(init)
    lda = TemperedLDA(3, init=topics, max_iter=1, random_state=0)
    for method in ("fit", "partial_fit"):
        assert computed_in(getattr(clone(lda), method)(X)) == expected
        assert computed_in(getattr(clone(lda), method)(X.astype(np.float32))) == expected
    assigned = TemperedLDA(3)
    assigned.components_ = topics
    shown = SINGLE if init is np.float32 else DOUBLE
    assert assigned.dtype_ == expected and assigned.components_.dtype == shown
    assert_array_equal(assigned.components_, topics)
    assert assigned.partial_fit(X).dtype_ == expected
    for dtype in ("float32", "float64"):
        assigned = TemperedLDA(3, dtype=dtype)
        assigned.components_ = topics
        assert assigned.dtype_ == dtype and assigned.components_.dtype == shown


def test_counts_that_float32_does_not_have(X):
    lda = TemperedLDA(3, max_iter=1, random_state=0).fit(X)
    for method in ("transform", "score", "partial_fit"):
        message = r"float32 counts in X must be 0 or at least 1.4e-45. Got 1e-46"
        refused(message, getattr(lda, method), X * 0 + 1e-46 * X.astype(bool))
    assert computed_in(TemperedLDA(3, max_iter=1).fit(X * 1e-46)) == DOUBLE
    zeros = sparse.csr_matrix(X)
    zeros.data[:3] = 0
    assert np.isfinite(lda.transform(zeros)).all()


@pytest.mark.thinned
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@cases(
    ("scale", "parameters", "fails"),
    (1e33, {}, True),
    (1e-40, {}, False),
    (1, {"doc_topic_prior": 1e-40}, True),
    (1, {"topic_word_prior": 2 * MOST_PRIOR}, False),
    (1, {"topic_word_prior": np.full(60, 1e40)}, True),
    (1, {"init": np.full((3, 60), 1e30, np.float32)}, True),
)
def test_what_float32_cannot_hold_is_computed_in_float64(X, method, scale, parameters, fails):
    lda = TemperedLDA(3, max_iter=2, random_state=0, **parameters)
    assert computed_in(getattr(lda, method)(X * scale)) == DOUBLE
    assert np.all(np.isfinite(lda.transform(X * scale)))
    if fails:
        refused("float32", lda.set_params(dtype="float32").fit, X * scale)


@pytest.mark.thinned
@pytest.mark.parametrize("dtype", ["auto", "float32", "float64"])
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_topics_are_shown_in_the_dtype_of_X(X, method, dtype):
    for given, expected in ((np.float32, SINGLE), (np.float64, DOUBLE), (np.int64, DOUBLE)):
        lda = TemperedLDA(3, dtype=dtype, max_iter=1, random_state=0)
        getattr(lda, method)(X.astype(given))
        for other in (lda, copy.deepcopy(lda)):
            assert other.components_.dtype == other.exp_dirichlet_component_.dtype == expected
        lda.components_ = np.ones((3, X.shape[1]), np.float32)
        assert lda.components_.dtype == expected


@pytest.mark.parametrize("fitted", ["float32", "float64"])
def test_a_fit_goes_on_in_its_dtype(X, fitted):
    lda = TemperedLDA(3, dtype=fitted, max_iter=1, random_state=0).fit(X)
    other = "float32" if fitted == "float64" else "float64"
    lda.set_params(dtype=other)
    for given in (np.float32, np.float64, np.int64):
        assert lda.partial_fit(X.astype(given)).dtype_ == fitted
    lda.components_ = np.ones((4, 60), other)
    assert lda.dtype_ == fitted
    assert lda.fit(X).dtype_ == other


def test_files_and_pickles_keep_the_dtype(X, tmp_path):
    for dtype in ("float32", "float64"):
        lda = TemperedLDA(3, dtype=dtype, max_iter=1, random_state=0).fit(X)
        annealvi.save(lda, tmp_path / "lda")
        for read in (annealvi.load(tmp_path / "lda"), pickle.loads(pickle.dumps(lda))):
            assert read.dtype == dtype and computed_in(read) == dtype
            assert read.components_.dtype == DOUBLE
            more = [copy.deepcopy(each).partial_fit(X).components_ for each in (read, lda)]
            assert_array_equal(*more)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["auto", "float32", "float64"])
@cases(("given", "expected"), (np.int64, DOUBLE), (np.float32, SINGLE), (np.float64, DOUBLE))
def test_answers_have_the_dtype_of_X(X, dtype, given, expected):
    Z, rounding = X.astype(given), 5 * np.finfo(expected).eps
    lda = TemperedLDA(3, dtype=dtype, max_iter=2, random_state=0)
    answers = [lda.fit_transform(Z), lda.transform(Z), lda.transform(Z, method="cvb0")]
    answers += [lda.transform(Z.toarray())]
    for theta in answers:
        assert theta.dtype == expected
        assert_allclose(theta.sum(axis=1, dtype=np.float64), 1, rtol=rounding)
    assert lda.transform(Z, normalize=False).dtype == expected
    assert lda.fit_transform(Z, normalize=False).dtype == expected
    assert_allclose(answers[0], answers[1], rtol=1e-3)
    assert type(lda.score(Z)) is type(lda.perplexity(Z)) is type(lda.bound_) is float
    assert lda.document_temperatures(Z).dtype == DOUBLE


@pytest.mark.slow
@pytest.mark.parametrize(("given", "most"), [(np.float32, 1), (np.float64, 5), (np.int64, 9)])
def test_a_fit_keeps_no_copy_in_double_precision(given, most):
    """Bytes for each entry: none, its count in float32, and for integers its index as well."""
    X = sparse.random(2000, 300, 0.5, "csr", random_state=0)
    X.data = np.ceil(X.data)
    X, kept = X.astype(given), []

    def note(lda, monitor):
        kept.append(tracemalloc.get_traced_memory()[0] - before)

    lda = TemperedLDA(2, callback=note, batch_size=10, max_iter=1, init="random", temperature=1)
    lda.set_params(random_state=0, n_init=1)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        lda.fit(X)
    finally:
        tracemalloc.stop()
    # beside the buffers of the steps
    assert (most - 1) * X.nnz < min(kept) and max(kept) < (most + 0.5) * X.nnz


@pytest.fixture(scope="module")
def abstracts():
    return load_arxiv_abstracts().data[:600]


def both(X, **parameters):
    """Fits in float32 and float64."""
    return [
        TemperedLDA(8, dtype=dtype, random_state=0, **parameters).fit(X)
        for dtype in ("float32", "float64")
    ]


@pytest.mark.slow
@cases(
    "parameters",
    {},
    {"n_init": 1},
    {"estimate": "variational"},
    {"doc_topic_prior": "learn", "topic_word_prior": "learn"},
    {"temperature": Variational()},
    {"temperature": LocalVariational()},
    ids=str,
)
def test_float32_follows_float64(abstracts, parameters):
    single, double = both(abstracts, max_iter=6, **parameters)
    assert single.dtype_ == SINGLE and double.dtype_ == DOUBLE
    assert single.bound_ == pytest.approx(double.bound_, rel=1e-3)
    assert_allclose(single.temperature_path_, double.temperature_path_, rtol=2e-3)
    assert_allclose(single.doc_topic_prior_, double.doc_topic_prior_, rtol=2e-2)
    assert_allclose(single.topic_word_prior_, double.topic_word_prior_, rtol=2e-3)
    score = double.score(abstracts)
    assert single.score(abstracts) == pytest.approx(score, rel=1e-3)


def test_totals_of_many_words_lose_nothing():
    """Sums above 2^24, in steps that are no numbers of float32 there."""
    X = sparse.csr_matrix(np.full((3, 4000), 2.0**14 + 1))
    parameters = {"learning_method": "batch", "max_iter": 1, "temperature": 1, "random_state": 0}
    single, double = (TemperedLDA(1, dtype=d, **parameters).fit(X) for d in ("float32", "float64"))
    assert_allclose(single.perplexity(X), double.perplexity(X), rtol=1e-6)
    # each of the 4,000 is rounded alike
    assert_allclose(single.components_.sum(dtype=float), double.components_.sum(), rtol=1e-8)


@pytest.mark.filterwarnings("ignore:The perplexity of X")  # cancelled digits of such a prior
def test_shares_of_a_prior_that_float32_does_not_hold():
    """The fit is in float64 then; documents in float32 have shares, but no gamma."""
    X = make_topic_corpus(20, 30, 3, random_state=0).data.astype(np.float32)
    lda = TemperedLDA(2, doc_topic_prior=1e200, max_iter=2, random_state=0)
    shares = lda.fit_transform(X)
    assert shares.dtype == np.float32
    np.testing.assert_allclose(shares, 0.5)
    np.testing.assert_array_equal(lda.transform(X), shares)
    np.testing.assert_array_equal(lda.transform(X.astype(float), normalize=False), 1e200)
    for method in (lda.transform, lda.fit_transform):
        refused(r"must be at most 3\.4e\+38, the largest float32", method, X, normalize=False)


def test_counts_are_looked_at_a_part_at_a_time():
    """A corpus on disk may have more entries than memory has bytes."""
    X = sparse.csr_matrix(np.ones((1000, 3000), np.float32))
    tracemalloc.start()
    try:
        found = extent(X), in_dtype(X, SINGLE), in_dtype(X[:1], DOUBLE)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found[0] == (X.nnz, 1.0)
    assert peak < X.nnz / 2
    X.data[5], X.data[7] = 0, 0.25
    assert extent(X) == (X.nnz - 1.75, 0.25)
    assert extent(sparse.csr_matrix((3, 4))) == (0, np.inf)
