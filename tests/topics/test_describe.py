"""What is given to describe: models of several kinds, documents, texts, another fit."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.decomposition import NMF, LatentDirichletAllocation
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from annealvi import TemperedLDA, TopicModel
from annealvi.metrics import document_completion, topic_coherence, topic_diversity, topic_stability
from annealvi.topics import describe
from tests.asserts import refusals, refused
from tests.marks import cases
from tests.topics.models import COMPONENTS, COUNTS, SHARES, WORDS, Given, fitted

TEXTS = ["moon orbit moon", "goal team goal", "orbit comet the", "the team"] * 5


def test_a_data_frame_has_names():
    X = pd.DataFrame(COUNTS, columns=WORDS)
    model = TemperedLDA(2, max_iter=2, random_state=0).fit(X)
    summary = describe(model, X)
    assert_array_equal(summary.feature_names, WORDS)
    assert_allclose(summary.shares, model.transform(X))  # and no warning of names
    assert_array_equal(describe(Given(), X).feature_names, WORDS)
    assert_array_equal(describe(Given(), COUNTS).feature_names, [str(n) for n in range(8)])
    assert_array_equal(describe(model, X, list("abcdefgh")).feature_names, list("abcdefgh"))


def test_a_topic_model_takes_texts_and_counts():
    model = TopicModel(2, random_state=0, seed_words={"space": ["moon", "orbit"]}).fit(TEXTS)
    for texts in (TEXTS, pd.Series(TEXTS), iter(TEXTS), np.array(TEXTS)):
        summary = describe(model, texts)
        assert summary.texts == TEXTS
        assert_array_equal(summary.counts.toarray(), model.counts(TEXTS).toarray())
    assert describe(model, model.counts(TEXTS)).texts is None
    assert {name: summary.labels.index(name) for name in ["space"]} == model.seed_topics_
    assert_array_equal(summary.feature_names, model.feature_names_)
    assert_allclose(summary.shares, model.transform(TEXTS))


def test_a_pipeline_of_scikit_learn():
    lda = LatentDirichletAllocation(2, max_iter=2, random_state=0)
    model = make_pipeline(CountVectorizer(), lda).fit(TEXTS)
    summary = describe(model, TEXTS)
    assert summary.texts == TEXTS
    assert_array_equal(summary.feature_names, model[0].get_feature_names_out())
    assert_allclose(summary.shares, model.transform(TEXTS))
    nameless = make_pipeline(CountVectorizer(), FunctionTransformer(), lda).fit(TEXTS)
    refused("steps all have get_feature_names_out", describe, nameless, TEXTS)
    of_counts = describe(make_pipeline(lda), summary.counts)
    assert_allclose(of_counts.shares, model.transform(TEXTS))


def test_weights_of_a_factorisation_become_shares():
    """W_dk H_kv is the number of words v that topic k has in document d."""
    model = NMF(2, random_state=0, max_iter=500).fit(COUNTS.astype(float))
    parts = model.transform(COUNTS.astype(float))[:, :, None] * model.components_[None]
    words = parts.sum(axis=2)[:4]
    found = describe(model, COUNTS.astype(float)).shares
    assert_allclose(found[:4], words / words.sum(axis=1, keepdims=True))
    assert_allclose(found[4], 0.5)  # no words


def test_a_word_of_probability_0_makes_no_infinity():
    summary = describe(Given([[1.0, 0.0], [1.0, 0.0]], [[0.5, 0.5]]), [[0, 2]])
    assert_allclose(summary.outliers().log_likelihood, np.log(1e-12))


@pytest.mark.parametrize("model", [None, 3, "lda", COMPONENTS, Given, object()])
def test_what_is_no_topic_model(model):
    with pytest.raises(TypeError, match="'model' parameter of describe must be a topic model with"):
        describe(model, COUNTS)


def test_models_that_are_not_fitted():
    pipeline = make_pipeline(CountVectorizer(), LatentDirichletAllocation())
    for model in (TemperedLDA(), TopicModel(), LatentDirichletAllocation(), pipeline):
        refused("not fitted", describe, model, COUNTS, error=NotFittedError)


test_components_that_cannot_be = refusals(
    lambda components: describe(Given(components), COUNTS),
    (-COMPONENTS, "'components_' .* must be an array of non-negative numbers. Got -90"),
    (COMPONENTS * np.nan, "components_ contains NaN"),
    (COMPONENTS[0], "Expected 2D array"),
    (COMPONENTS * [[1], [0], [1]], r"'components_\[1\]' .* positive and finite sum. Got 0.0"),
    (COMPONENTS * 1e306, r"'components_\[0\]' .* positive and finite sum. Got inf"),
)


@cases(
    "shares, message",
    (SHARES[:, :2], r"shape \(5, 3\), one number for each document .* Got shape \(5, 2\)"),
    (SHARES[:4], r"Got shape \(4, 3\)"),
    (SHARES[0], r"Got shape \(3,\)"),
    (-SHARES, "returns shares. Got -0.9"),
    (SHARES * np.nan, "finite numbers"),
    (None, "Got shape"),
)
def test_shares_that_cannot_be(shares, message):
    refused(f"'transform' .* must be .*{message}", describe, Given(shares=shares), COUNTS)


test_documents_that_cannot_be = refusals(
    lambda documents: describe(Given(), documents),
    (COUNTS[:, :7], "documents has 7 features, but Given is expecting 8 features"),
    (-COUNTS, "Negative values in data passed to describe as documents"),
    (COUNTS * 0, "'documents' .* vocabulary of 8 words. Got '5 documents without such words'"),
    (COUNTS[:0], "Found array with 0 sample"),
    (COUNTS * 1e304, "counts in X must sum to at most"),
    (None, "Expected 2D array|could not convert|Unsupported|dtype"),
    (TEXTS, "'documents' .* must be word counts, because the model is a Given. Got .*list"),
    ([], "must be word counts, because the model is a Given"),
    ("moon", r"'documents' .* must be a list of texts .* Put a single text"),
)


def test_texts_that_cannot_be():
    model = TopicModel(2, random_state=0).fit(TEXTS)
    with pytest.raises(TypeError, match=r"'documents\[1\]' parameter of describe must be a str"):
        describe(model, ["moon", None])
    with pytest.raises(ValueError, match=r"'held_out' .* with words of the model's vocabulary"):
        describe(model, TEXTS, held_out=["nothing", "here"])
    refused("at least 1 document", describe, model, [])


def test_quality_is_that_of_the_metrics():
    lda, X = fitted()
    summary = describe(lda, X[:60], held_out=X[60:], other=lda, random_state=3)
    assert summary.quality == {
        "coherence": pytest.approx(topic_coherence(lda, X[:60]).mean()),
        "diversity": topic_diversity(lda),
        "held_out_log_likelihood": pytest.approx(document_completion(lda, X[60:], random_state=3)),
        "stability": pytest.approx(1),
    }
    assert_allclose(summary.coherence, topic_coherence(lda, X[:60]))
    other = Given(np.ones((3, 60)))
    expected = topic_stability(lda, other.components_)
    assert describe(lda, X, other=other).quality["stability"] == pytest.approx(expected)


def test_texts_titles_and_seeds_of_a_topic_model():
    model = TopicModel(2, random_state=0, seed_words={"sport": ["goal", "team"]}).fit(TEXTS)
    summary = describe(model, iter(TEXTS))
    assert summary.texts == TEXTS and summary.words("sport", 1) == ["goal"]
    assert "goal" in summary.documents("sport", 1).text.iloc[0]
    held_out = describe(model, TEXTS, held_out=TEXTS[:7]).quality["held_out_log_likelihood"]
    assert held_out == pytest.approx(document_completion(model.lda_, model.counts(TEXTS[:7])))
    second = TopicModel(2, random_state=0).fit(TEXTS[1:3] * 5)
    with pytest.raises(
        ValueError, match=r"'other' .* must be a fitted model with the same words\. Got Topic"
    ):
        describe(model, TEXTS, other=second)
    given = describe(Given(), COUNTS, WORDS, texts=pd.Series(list("abcde")))
    assert given.documents(0, 1).text.tolist() == ["a"]


test_descriptions_that_cannot_be = refusals(
    lambda options: describe(Given(), COUNTS, **options),
    (dict(titles=["a"]), r"'titles' .* one entry .* 5 documents. Got '1 entries"),
    (dict(texts=["a"] * 6), r"'texts' .* one entry .* 5 documents. Got '6 entries"),
    (dict(titles=[None] * 5), r"'titles\[0\]' parameter of describe must be a str. Got None"),
    (dict(feature_names=["a"]), r"one name for each of the 8 features. Got shape \(1,\)"),
    (dict(other=3), "The 'other' parameter of describe must be a topic model"),
    (dict(other=Given([[1.0, 2.0]])), "same number of features"),
    (dict(held_out=COUNTS[:, 1:]), "held_out has 7 features"),
)


def test_texts_and_titles_are_matched_by_the_index():
    names = [f"d{number}" for number in range(5)]
    X = pd.DataFrame(COUNTS, index=names)
    titles = pd.Series(TEXTS[:5], names)
    summary = describe(Given(), X, texts=titles[::-1], titles=titles[::-1])
    assert summary.texts == summary.titles == TEXTS[:5]
    message = "must be a Series with the index of the documents"
    refused(f"'titles' .* {message}", describe, Given(), X, titles=titles.reset_index(drop=True))
    refused(f"'texts' .* {message}", describe, Given(), X, texts=titles[:2])
    # counts in an array have no index
    summary = describe(Given(), COUNTS, texts=titles, titles=titles[::-1])
    assert summary.titles == TEXTS[:5] and list(summary.index) == names
    for table in (summary.map(documents=True), summary.document_table):
        assert list(table.index) == names


def test_a_table_of_texts_is_told():
    model = TopicModel(2, random_state=0).fit(TEXTS)
    table = pd.DataFrame({"text": TEXTS})
    refused("documents must be a matrix of numbers.* 'moon.*pass one column", model.describe, table)
    refused("X must be a matrix of numbers.* pass one column", TemperedLDA(2).fit, table)
