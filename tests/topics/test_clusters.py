"""Classes of documents: predict of topics and of a TopicModel, in summaries and in files."""

import copy

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.decomposition import NMF
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import normalized_mutual_info_score as nmi

import annealvi
from annealvi import TemperedMultinomialMixture, TopicModel
from annealvi.storage import load
from annealvi.topics import describe, drop_topics, merge_topics, refit
from tests.asserts import refused
from tests.topics.corpus import make_texts

TEXTS = make_texts(60)
KINDS = np.arange(60) % 3
SHORT = [" ".join(text.split()[:4]) for text in TEXTS]


@pytest.fixture(scope="module")
def model():
    return TopicModel(3, random_state=0).fit(TEXTS)


def test_predict_is_bayes_rule_on_topics(model):
    lda, X = model.lda_, model.counts(TEXTS)
    topics = lda.components_ / lda.components_.sum(axis=1, keepdims=True)
    weights = lda.components_.sum(axis=1) / lda.components_.sum()
    expected = (X @ np.log(topics).T + np.log(weights)).argmax(axis=1)
    assert_array_equal(lda.predict(X), expected)
    assert_array_equal(lda.predict(X.astype(np.float32)), expected)
    for row in range(0, 60, 7):  # of which the words of the document are looked at alone
        assert lda.predict(X[row]) == expected[row]
    assert_array_equal(lda.predict(sparse.csr_matrix((2, X.shape[1]))), [weights.argmax()] * 2)


def test_classes_are_those_of_a_mixture_that_starts_from_the_topics(model):
    X = model.counts(TEXTS)
    mixture = TemperedMultinomialMixture(3, init=model.lda_.components_).fit(X)
    assert_array_equal(model.mixture_.components_, mixture.components_)
    clusters = model.predict(TEXTS)
    assert_array_equal(clusters, mixture.predict(X))
    assert nmi(KINDS, clusters) == 1
    assert_array_equal(clusters, model.transform(TEXTS).argmax(axis=1))  # class k is topic k


def test_without_a_mixture_the_topics_predict(model):
    X = model.counts(TEXTS)
    without = TopicModel(3, random_state=0, single_topic=False).fit(TEXTS)
    assert_array_equal(without.components_, model.components_)
    stream = copy.copy(model)
    assert stream.mixture_ is model.mixture_
    stream.partial_fit(TEXTS)
    for other in (without, stream, merge_topics(model, [[0, 1]]), drop_topics(model, [2])):
        assert not hasattr(other, "mixture_")
        assert_array_equal(other.predict(TEXTS), other.lda_.predict(X))
    assert hasattr(model, "mixture_")
    assert not hasattr(copy.copy(model).set_params(single_topic=False).fit(TEXTS), "mixture_")


def test_classes_in_a_file(model, tmp_path):
    annealvi.save(model, tmp_path / "a")
    again = load(tmp_path / "a")
    assert_array_equal(again.mixture_.components_, model.mixture_.components_)
    assert_array_equal(again.predict(TEXTS), model.predict(TEXTS))
    annealvi.save(TopicModel(3, random_state=0, single_topic=False).fit(TEXTS), tmp_path / "b")
    assert not hasattr(load(tmp_path / "b"), "mixture_")
    tree = model.state_dict()
    tree["mixture"] = TopicModel(2, random_state=0).fit(TEXTS).state_dict()["mixture"]
    refused(r"'state.mixture' must be clusters of the topics", TopicModel(3).load_state_dict, tree)


def test_classes_in_a_summary(model):
    texts = [*TEXTS, "nothing that is known"]
    with pytest.warns(UserWarning, match="1 of the 61 texts"):
        summary = describe(model, texts)
    with pytest.warns(UserWarning, match="1 of the 61 texts"):
        assert_array_equal(summary.document_topics, model.predict(texts))
    counts = np.bincount(model.predict(TEXTS), minlength=3)  # a text without words is left out
    assert summary.table["documents"].tolist() == counts.tolist()
    X = model.counts(texts)
    assert_array_equal(describe(model.lda_, X).document_topics, model.lda_.predict(X))
    of_nmf = describe(NMF(3, random_state=0).fit(X), X[:60])
    assert_array_equal(of_nmf.document_topics, of_nmf.shares.argmax(axis=1))


class Odd(NMF):
    answer = None

    def predict(self, X):
        return self.answer


@pytest.mark.parametrize("answer", [["a"] * 60, [-1] * 60, [3] * 60, [0] * 5, np.eye(60, 3)])
def test_classes_that_are_no_topics_are_not_taken(model, answer):
    X = model.counts(TEXTS)
    odd = Odd(3, random_state=0).fit(X)
    odd.answer = answer
    summary = describe(odd, X)
    assert_array_equal(summary.document_topics, summary.shares.argmax(axis=1))
    assert summary.table["documents"].sum() == 60


def test_a_mixture_is_described_as_topics_are(model):
    X = model.counts(TEXTS)
    summary = describe(model.mixture_, X, model.feature_names_, texts=TEXTS)
    assert_array_equal(summary.shares, model.mixture_.predict_proba(X))
    assert_array_equal(summary.document_topics, model.mixture_.predict(X))
    assert summary.words(0, 4) == model.mixture_.top_words(4, model.feature_names_)[0]


@pytest.mark.filterwarnings("ignore:TfidfVectorizer computes fractions")
def test_short_texts_are_called_so(model):
    assert "short" in model.vocabulary_note_  # 15 words of which some are too rare
    short = TopicModel(3, random_state=0).fit(SHORT)
    X = short.counts(SHORT)
    assert f"Texts are short, with {X.sum() / 60:.1f} counted words" in short.vocabulary_note_
    weights = TopicModel(3, vectorizer=TfidfVectorizer(), random_state=0).fit(TEXTS)
    assert "short" not in weights.vocabulary_note_
    long = TopicModel(3, random_state=0).fit(make_texts(60, n_words=60))
    assert "short" not in long.vocabulary_note_


def test_a_model_in_which_each_text_has_a_single_topic(tmp_path):
    model = TopicModel(3, single_topic=True, random_state=0).fit(SHORT)
    X = model.counts(SHORT)
    mixture = TemperedMultinomialMixture(3, random_state=0).fit(X)
    assert_array_equal(model.components_, mixture.components_)
    assert_array_equal(model.transform(SHORT), mixture.predict_proba(X))
    assert_array_equal(model.predict(SHORT), model.transform(SHORT).argmax(axis=1))
    assert model.score(SHORT) == mixture.score(X)
    assert model.top_words(3) == mixture.top_words(3, model.feature_names_)
    fitted = TopicModel(3, single_topic=True, random_state=0).fit_transform(SHORT)
    assert_array_equal(fitted, model.transform(SHORT))
    model.set_labels({0: "first"})
    annealvi.save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert_array_equal(loaded.transform(SHORT), model.transform(SHORT))
    summary = loaded.describe(SHORT, refits=3)
    assert_allclose(summary.shares, model.transform(SHORT), rtol=1e-9)
    assert summary.labels[0] == "first"
    assert summary.checksum == describe(mixture, X).checksum
    assert_array_equal(summary.refits.shares, refit(mixture, X, 3, random_state=0).shares)
    summary.labels = {1: "second"}
    assert loaded.topic_labels_ == {0: "first", 1: "second"}
    assert "is a mixture of multinomials (Nigam et al. 2000) with 3 topics" in summary.methods()
    refused("without single_topic=True", merge_topics, model, [[0, 1]], error=TypeError)
    refused("'single_topic' .* in partial_fit", TopicModel(3, single_topic=True).partial_fit, SHORT)


def test_seed_words_stay_in_their_topic_with_a_single_topic():
    words = TopicModel(3, random_state=0).fit(TEXTS).top_words(3)[1]
    seeded = TopicModel(3, single_topic=True, seed_words={"mine": words}, random_state=0).fit(SHORT)
    assert set(words) & set(seeded.top_words(5)[0])
