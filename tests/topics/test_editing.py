"""Topics are merged, dropped, reduced and refined in new models; the old ones stay as they are."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import rel_entr
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.exceptions import NotFittedError

import annealvi
from annealvi import TemperedLDA, TopicModel
from annealvi.datasets import make_topic_corpus
from annealvi.metrics import component_recovery
from annealvi.topics import drop_topics, merge_topics, reduce_topics, refine_topics
from tests.asserts import refused
from tests.marks import cases

CORPUS = make_topic_corpus(80, 60, 4, document_length=40, random_state=0)
TEXTS = ["stars and planets", "planets near stars", "bread with butter", "butter, bread, jam"] * 5
DIFFERENT = r"a list of different ints in the range \[0, 5\], numbers of topics. Got "
X = CORPUS.data


def fitted(n_topics=6, **parameters):
    return TemperedLDA(n_topics, max_iter=3, random_state=0, **parameters).fit(X)


@pytest.fixture(scope="module")
def lda():
    return fitted(dtype="float64")


def with_topics(topics, **parameters):
    model = TemperedLDA(len(topics), **parameters)
    model.components_ = np.asarray(topics, float)
    return model


def test_merged_topics_have_the_counts_of_both(lda):
    before, eta, alpha = lda.components_.copy(), lda.topic_word_prior_, lda.doc_topic_prior_
    merged = merge_topics(lda, [[4, 1], [0, 2]])
    counts = before - eta
    # in the places of 0, 3, 4 (with 1) and 5
    expected = np.array([counts[0] + counts[2], counts[3], counts[4] + counts[1], counts[5]]) + eta
    assert_allclose(merged.components_, expected, rtol=1e-12)
    assert_array_equal(merged.components_[[1, 3]], before[[3, 5]])
    assert_allclose(merged.doc_topic_prior_, alpha * np.array([2, 1, 2, 1]))
    assert_array_equal(lda.components_, before)
    assert merged.n_components == 4 and lda.n_components == 6


def test_shares_of_a_merged_topic_are_sums():
    # words of topics 0 and 1 are different, so documents cannot tell a difference
    topics = np.kron(np.eye(3), np.full(4, 50.0)) + 0.1
    model = with_topics(topics, doc_topic_prior=0.1, topic_word_prior=0.1)
    documents = np.random.RandomState(0).poisson(3, (10, 12))
    shares, merged = model.transform(documents), merge_topics(model, [[0, 1]]).transform(documents)
    assert_allclose(merged, np.column_stack([shares[:, 0] + shares[:, 1], shares[:, 2]]), atol=1e-2)


def test_an_edited_model_is_a_whole_estimator(tmp_path):
    names = [f"wörd {column}" for column in range(60)]
    X_names = pd.DataFrame(X.toarray().astype(np.float32), columns=names)
    edited = merge_topics(TemperedLDA(4, max_iter=2, random_state=0).fit(X_names), [[0, 3]])
    assert_array_equal(edited.feature_names_in_, names)
    assert edited.n_features_in_ == 60 and edited.components_.dtype == np.float32
    annealvi.save(edited, tmp_path / "edited")
    loaded = annealvi.load(tmp_path / "edited")
    assert_array_equal(loaded.transform(X_names), edited.transform(X_names))
    assert loaded.top_words(3) == edited.top_words(3)
    before, steps = edited.components_.copy(), edited.n_batch_iter_
    edited.partial_fit(X_names)
    assert edited.n_batch_iter_ > steps > 2 and not np.array_equal(edited.components_, before)
    assert len(edited.fit(X_names).components_) == 3


def test_priors_with_a_row_for_each_topic():
    alpha = np.array([0.1, 0.2, 0.3, 0.4])
    eta = np.full((4, 60), 0.1)
    eta[0, :5] = eta[2, 5:9] = 3.0
    merged = merge_topics(fitted(4, doc_topic_prior=alpha, topic_word_prior=eta), [[0, 2]])
    assert_allclose(merged.doc_topic_prior_, [0.4, 0.2, 0.4])
    assert_array_equal(merged.topic_word_prior_[0], np.maximum(eta[0], eta[2]))
    assert_array_equal(merged.topic_word_prior_[1:], eta[[1, 3]])
    # a later fit begins with these too
    assert_array_equal(merged.doc_topic_prior, merged.doc_topic_prior_)
    assert_array_equal(merged.fit(X).topic_word_prior_, merged.topic_word_prior)


def test_topics_that_are_given_do_not_stay_the_start_of_a_later_fit():
    lda = fitted(4, init=np.random.RandomState(0).gamma(100, 0.01, (4, 60)))
    assert drop_topics(lda, [0]).fit(X).components_.shape == (3, 60)


def test_dropped_topics_leave_the_others_as_they_are(lda):
    left = drop_topics(lda, [4, 0])
    assert_array_equal(left.components_, lda.components_[[1, 2, 3, 5]])
    assert_allclose(left.doc_topic_prior_, 1.5 * lda.doc_topic_prior_)
    assert_array_equal(drop_topics(lda, 2).components_, lda.components_[[0, 1, 3, 4, 5]])
    assert_allclose(left.transform(X).sum(axis=1), 1)


def test_reduce_finds_the_copies_of_each_topic():
    rng = np.random.RandomState(0)
    copies = np.vstack([CORPUS.topics, CORPUS.topics]) * 1000 + rng.uniform(0.01, 0.2, (8, 60))
    model = with_topics(copies, topic_word_prior=0.01)
    reduced = reduce_topics(model, 4)
    assert component_recovery(CORPUS.topics, reduced.components_, threshold=0.99)[0] == 4
    # in the order of the first copies
    cosines = np.corrcoef(np.vstack([reduced.components_, CORPUS.topics]))[:4, 4:]
    assert_array_equal(cosines.argmax(axis=1), range(4))
    assert reduce_topics(model, 8).components_ == pytest.approx(copies)
    assert_allclose(reduce_topics(model, 1).components_[0], (copies - 0.01).sum(axis=0) + 0.01)


@pytest.mark.parametrize("documents", [None, X])
def test_reduce_loses_the_least_information(lda, documents):
    topics = lda.components_ / lda.components_.sum(axis=1, keepdims=True)
    sizes = lda.components_.sum(axis=1)
    if documents is not None:
        sizes = np.asarray(X.sum(axis=1)).ravel() @ lda.transform(X)
    sizes = sizes / sizes.sum()

    def loss(a, b):
        mean = (sizes[a] * topics[a] + sizes[b] * topics[b]) / (sizes[a] + sizes[b])
        return sum(sizes[k] * rel_entr(topics[k], mean).sum() for k in (a, b))

    best = min(combinations(range(6), 2), key=lambda pair: loss(*pair))
    expected = merge_topics(lda, [best]).components_
    assert_array_equal(reduce_topics(lda, 5, documents).components_, expected)


def test_sizes_in_the_documents_decide_which_topics_are_merged():
    # 0 and 1 are nearly alike, 2 and 3 less so, but the documents are all of 0 and 1
    topics = np.array([[8, 2, 1, 1], [6, 3, 1, 1], [1, 1, 9, 3], [1, 1, 3, 9]]) * 100.0
    model, documents = with_topics(topics), np.array([[8, 2, 0, 0], [9, 4, 0, 0]] * 20)
    assert_array_equal(reduce_topics(model, 3).components_[1:], topics[2:])
    assert_array_equal(reduce_topics(model, 3, documents).components_[:2], topics[:2])


def test_refine_improves_the_bound_and_keeps_topics_in_their_places(lda):
    reduced = reduce_topics(fitted(8), 4)
    before = reduced.components_.copy()
    refined = refine_topics(reduced, X)
    assert refined.perplexity(X) < reduced.perplexity(X)
    assert_array_equal(reduced.components_, before)
    cosines = np.corrcoef(np.vstack([before, refined.components_]))[:4, 4:]
    assert_array_equal(cosines.argmax(axis=1), range(4))
    assert_array_equal(refined.temperature_path_, np.ones(10))
    assert_allclose(refined.doc_topic_prior_, reduced.doc_topic_prior_)
    assert_array_equal(refine_topics(reduced, X, max_iter=2).temperature_path_, [1, 1])


def test_refine_restores_the_parameters():
    lda = fitted(5, n_init=2, validation_fraction=0.2)
    refined = refine_topics(drop_topics(lda, 0), X)
    assert repr(refined.get_params()) == repr(lda.get_params() | {"n_components": 4})
    assert not hasattr(refined, "validation_score_")


def test_learned_priors_go_on_learning():
    lda = fitted(5, doc_topic_prior="learn", topic_word_prior="learn")
    merged = merge_topics(lda, [[0, 1]])
    assert_allclose(merged.doc_topic_prior_[0], lda.doc_topic_prior_[:2].sum())
    assert merged.topic_word_prior_ == lda.topic_word_prior_
    assert len(np.unique(refine_topics(merged, X).doc_topic_prior_)) == 4


def test_callbacks_are_called_by_refine():
    seen = []
    lda = TemperedLDA(3, max_iter=1, callback=lambda estimator, monitor: seen.append(monitor.step))
    merged = merge_topics(lda.fit(X), [[0, 1]])
    before = len(seen)
    refine_topics(merged, X, max_iter=4)
    assert seen[before:] == [1, 2, 3, 4]


def test_models_of_texts():
    seed_words = {"space": ["stars"], "food": ["bread"], "jam": ["jam"]}
    model = TopicModel(4, seed_words=seed_words, random_state=0).fit(TEXTS)
    merged = merge_topics(model, [[1, 2]])
    assert isinstance(merged, TopicModel) and merged.n_topics == len(merged.components_) == 3
    assert merged.seed_topics_ == {"space": 0, "food": 1, "jam": 1}
    assert drop_topics(model, 0).seed_topics_ == {"food": 0, "jam": 1}
    for edited in (merged, reduce_topics(model, 2, TEXTS), refine_topics(merged, TEXTS)):
        assert_allclose(edited.transform(TEXTS).sum(axis=1), 1)
        assert_array_equal(edited.feature_names_, model.feature_names_)
    assert model.n_topics == len(model.components_) == 4
    assert refine_topics(merged, TEXTS).seed_topics_ == merged.seed_topics_


@cases(
    "groups, message",
    *((wrong, "a list of lists of topics, such") for wrong in (3, "01", [1, 2], ["a", "b"])),
    *(([[0, wrong]], f"{DIFFERENT}{wrong!r}") for wrong in ("a", 1.5, True, 6, -1)),
    ([[0]], r"a list of groups of at least two topics. Got \[0\]"),
    *((twice, DIFFERENT) for twice in ([[0, 1], [1, 2]], [[2, 2]])),
)
def test_wrong_groups(lda, groups, message):
    refused(f"'groups' parameter of merge_topics must be {message}", merge_topics, lda, groups)


@cases(
    "topics, message",
    (range(6), "a list that leaves at least one topic. Got 'all 6 topics'"),
    *((wrong, DIFFERENT) for wrong in ([0, 0], 9, "a", 1.0)),
)
def test_wrong_topics(lda, topics, message):
    refused(f"'topics' parameter of drop_topics must be {message}", drop_topics, lda, topics)


@pytest.mark.parametrize("n", [0, 7, 2.0, "a", True, 10**400])
def test_wrong_numbers(lda, n):
    refused(
        r"'n_topics' parameter of reduce_topics must be an int in .*\[1, 6\]", reduce_topics, lda, n
    )
    if n not in (7, True):
        message = "'max_iter' parameter of refine_topics must be an int in"
        refused(message, refine_topics, lda, X, max_iter=n)


def test_other_words_and_documents_without_words(lda):
    refused("X has 59 features, but TemperedLDA is expecting 60", refine_topics, lda, X[:, :59])
    message = "'documents' parameter of reduce_topics must be documents that contain words"
    refused(message, reduce_topics, lda, 3, np.zeros((2, 60)))


def test_what_is_no_model_of_ours():
    refused("not fitted", merge_topics, TemperedLDA(), [[0, 1]], error=NotFittedError)
    refused("not fitted", merge_topics, TopicModel(), [[0, 1]], error=NotFittedError)
    for wrong in (LatentDirichletAllocation(3, max_iter=1).fit(X), None, CORPUS.topics):
        with pytest.raises(TypeError, match="must be a fitted TemperedLDA or TopicModel"):
            drop_topics(wrong, 0)
