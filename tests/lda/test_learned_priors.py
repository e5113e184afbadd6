"""TemperedLDA with priors that are learned, as a user meets it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from annealvi import Annealed, LocalVariational, TemperedLDA, Variational
from annealvi.datasets import make_topic_corpus
from annealvi.models.lda.priors import COLD
from tests.asserts import refused
from tests.lda.fits import without_words
from tests.marks import cases, slow_values

BOTH = dict(doc_topic_prior="learn", topic_word_prior="learn")
TEMPERATURES = {
    "default": {},
    "posterior": dict(temperature=Annealed(form="posterior")),
    "variational": dict(temperature="variational"),
    "local": dict(temperature="local"),
    "scikit-learn's": dict(preset="sklearn"),
}
pytestmark = pytest.mark.filterwarnings("ignore:The learned temperature did not cool")


@pytest.fixture(scope="module")
def X():
    counts = make_topic_corpus(90, 60, 4, document_length=40, random_state=0).data
    return without_words(counts, [7, 30])


def make(**kwargs):
    settings = dict(n_components=4, random_state=0, batch_size=16, max_iter=8)
    return TemperedLDA(**(settings | BOTH | kwargs))


def planted(alpha, n_documents, length, seed=0):
    """Documents of topics that share few words, and these topics."""
    rng = np.random.RandomState(seed)
    topics = rng.dirichlet(np.full(80, 0.05), len(alpha))
    shares = rng.dirichlet(alpha, n_documents)
    counts = [rng.multinomial(length, share @ topics) for share in shares]
    return sparse.csr_matrix(np.array(counts, dtype=float)), topics


def test_a_planted_alpha_is_recovered():
    """Documents that are fitted loosely keep some of topics that they do not have."""
    alpha = np.array([0.05, 0.1, 0.2, 0.5])
    X, topics = planted(alpha, 3000, 400)
    options = dict(topic_word_prior=0.01, init=1e5 * topics + 1e-3)
    lda = make(learning_method="batch", temperature=1, max_iter=60, **options)
    lda.set_params(mean_change_tol=1e-5, max_doc_update_iter=1000).fit(X[:1500])
    assert_allclose(lda.doc_topic_prior_, alpha, rtol=0.15)
    lda = make(batch_size=50, mean_change_tol=1e-4, total_samples=3000, **options)
    lda.set_params(max_doc_update_iter=500)
    for _ in range(4):
        lda.partial_fit(X)
    assert_allclose(lda.doc_topic_prior_, alpha, rtol=0.2)


@pytest.mark.thinned
@pytest.mark.parametrize("method", ["batch", "online"])
@pytest.mark.parametrize("kind", TEMPERATURES)
def test_priors_stay_while_it_is_hot_and_move_then(X, kind, method):
    seen = []

    def look(lda, monitor):
        seen.append((monitor.temperature, lda.doc_topic_prior_, lda.topic_word_prior_))

    lda = make(learning_method=method, callback=look, max_iter=20, **TEMPERATURES[kind]).fit(X)
    start = 0.25  # 1/K
    hot = [priors for T, *priors in seen if T > COLD * (1 + 1e-12)]
    assert all(np.all(alpha == start) and eta == start for alpha, eta in hot)
    assert hot or kind == "scikit-learn's"
    assert np.ptp(lda.doc_topic_prior_) > 0 and lda.topic_word_prior_ != start
    assert lda.doc_topic_prior_.shape == (4,) and isinstance(lda.topic_word_prior_, float)


def test_learning_starts_from_the_prior_of_the_preset(X):
    for preset, start in (("annealvi", 0.1), ("sklearn", 0.05)):
        lda = make(preset=preset, n_components=20, max_iter=0).fit(X)
        assert (lda.doc_topic_prior_, lda.topic_word_prior_) == (start, start)


def test_only_what_is_asked_for_is_learned(X):
    alpha = make(topic_word_prior=None).fit(X)
    assert np.ptp(alpha.doc_topic_prior_) > 0 and alpha.topic_word_prior_ == 0.25
    eta = make(doc_topic_prior=None).fit(X)
    assert eta.doc_topic_prior_ == 0.25 and eta.topic_word_prior_ != 0.25


@pytest.mark.thinned
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("method", ["batch", "online"])
@pytest.mark.parametrize("estimate", ["map", "variational"])
@cases(
    "counts",
    *(np.zeros((4, 9)), np.eye(1, 9), np.eye(5, 9, 8), np.full((3, 9), 1e6)),
    *(np.eye(9), np.ones((4, 1))),
    ids=["none", "one word", "four of five empty", "long documents", "a word each", "one feature"],
)
@pytest.mark.parametrize("n_components", [5, *slow_values(1)])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_limits_hold_where_there_is_nothing_to_learn_from(
    counts, dtype, method, estimate, n_components
):
    lda = make(
        n_components=n_components, learning_method=method, estimate=estimate,
        temperature=1, max_iter=40, batch_size=2, dtype=dtype,
    ).fit(counts)  # fmt: skip
    centre = {1: 1.0, 5: 0.2}[n_components]
    alpha, eta = np.asarray(lda.doc_topic_prior_), lda.topic_word_prior_
    assert np.all((alpha >= centre / 100) & (alpha <= centre * 100))
    assert centre / 10 <= eta <= centre * 10
    assert np.all(np.isfinite(lda.components_)) and np.all(lda.components_ > 0)
    assert np.all(np.isfinite(lda.transform(counts)))
    if n_components == 1:
        assert np.all(alpha == 1)


def test_assigned_priors_are_taken_and_learned_from(X):
    lda = make(total_samples=90).partial_fit(X)
    learned = lda.doc_topic_prior_
    lda.doc_topic_prior_, lda.topic_word_prior_ = 0.7, 0.3
    plain = make(doc_topic_prior=0.7, topic_word_prior=0.3)
    plain.components_ = lda.components_.astype(lda.settings_["dtype"])
    assert_array_equal(lda.transform(X), plain.transform(X))
    assert lda.score(X) == plain.score(X)
    lda.partial_fit(X[:16])
    assert np.all(lda.doc_topic_prior_ != learned)
    assert np.all(abs(lda.doc_topic_prior_ - 0.7) < abs(learned - 0.7))  # on the way from it


def test_words_may_keep_priors_of_their_own(X):
    lda = make(total_samples=90).partial_fit(X)
    lda.topic_word_prior_ = eta = np.linspace(0.1, 1, 60)
    assert_array_equal(lda.partial_fit(X).topic_word_prior_, eta)


@pytest.mark.parametrize("kind", [Variational, LocalVariational])
def test_a_learned_temperature_starts_anew_only_with_assigned_priors(X, kind, monkeypatch):
    attached = []
    attach = kind.attach
    monkeypatch.setattr(
        kind, "attach", lambda self, model: (attached.append(1), attach(self, model))
    )
    lda = make(temperature=kind(start=1.05), total_samples=90).partial_fit(X)
    before = len(attached)
    for _ in range(3):
        lda.partial_fit(X)
    assert len(attached) == before
    assert kind is LocalVariational or np.ptp(lda.doc_topic_prior_) > 0
    lda.doc_topic_prior_ = 0.3
    lda.partial_fit(X)
    assert len(attached) == before + 1
    lda.partial_fit(X)
    assert len(attached) == before + 1


@pytest.mark.parametrize("name", ["doc_topic_prior_", "topic_word_prior_"])
def test_learn_is_no_prior_to_assign(X, name):
    lda = make().fit(X)
    refused(f"The '{name}' parameter .* Got 'learn' instead", setattr, lda, name, "learn")


def test_priors_are_learned_from_all_blocks_of_a_batch(monkeypatch):
    X = make_topic_corpus(200, 60, 3, document_length=30, random_state=0).data
    settings = BOTH | dict(learning_method="batch", dtype="float64", random_state=0, max_iter=5)
    whole = TemperedLDA(3, **settings).fit(X)
    # blocks of 64 documents, the smallest
    monkeypatch.setattr("annealvi.models.lda.engine.BLOCK_DOCUMENTS", 1)
    monkeypatch.setattr("annealvi.models.lda.engine.BLOCK_BYTES", 1)
    monkeypatch.setattr("annealvi.models.lda.engine.LARGEST_BLOCK", 1)
    in_blocks = TemperedLDA(3, **settings).fit(X)
    assert_allclose(in_blocks.doc_topic_prior_, whole.doc_topic_prior_, rtol=1e-6)
    assert_allclose(in_blocks.components_, whole.components_, rtol=1e-6)
