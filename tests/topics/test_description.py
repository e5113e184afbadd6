"""What is given to describe: models, texts, titles, documents held out, another fit."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from annealvi import TopicModel
from annealvi.metrics import (
    document_completion,
    topic_coherence,
    topic_diversity,
    topic_stability,
)
from annealvi.topics import describe
from tests.topics.models import COUNTS, WORDS, Given, fitted

TEXTS = ["moon orbit moon", "goal team goal", "orbit comet the", "the team"] * 5


def test_quality_is_that_of_the_metrics():
    lda, X = fitted()
    summary = describe(lda, X[:60], held_out=X[60:], other=lda, random_state=3)
    assert summary.quality == {
        "coherence": pytest.approx(topic_coherence(lda, X[:60]).mean()),
        "diversity": topic_diversity(lda),
        "held_out": pytest.approx(document_completion(lda, X[60:], random_state=3)),
        "stability": pytest.approx(1),
    }
    assert_allclose(summary.coherence, topic_coherence(lda, X[:60]))
    other = Given(np.ones((3, 60)))
    assert describe(lda, X, other=other).quality["stability"] == pytest.approx(
        topic_stability(lda, other.components_)
    )


def test_texts_titles_and_seeds_of_a_topic_model():
    model = TopicModel(2, random_state=0, seeds={"sport": ["goal", "team"]}).fit(TEXTS)
    summary = describe(model, iter(TEXTS))
    assert summary.texts == TEXTS
    assert summary.words("sport", 1) == ["goal"]
    assert "goal" in summary.documents("sport", 1).text.iloc[0]
    held_out = describe(model, TEXTS, held_out=TEXTS[:7]).quality["held_out"]
    assert held_out == pytest.approx(document_completion(model.lda_, model.counts(TEXTS[:7])))
    given = describe(Given(), COUNTS, WORDS, texts=pd.Series(list("abcde")))
    assert given.documents(0, 1).text.tolist() == ["a"]


def test_another_fit_of_other_words_is_refused():
    models = [TopicModel(2, random_state=0).fit(t) for t in (TEXTS, TEXTS[1:3] * 5)]
    with pytest.raises(ValueError, match=r"'other' must be a fit of the same words\. .* 4 against"):
        describe(models[0], TEXTS, other=models[1])
    assert describe(models[0], TEXTS, other=models[0]).quality["stability"] == pytest.approx(1)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (dict(titles=["a"]), ValueError, r"'titles' must have one entry .* 5 documents. Got 1"),
        (dict(texts=["a"] * 6), ValueError, r"'texts' must have one entry .* 5 documents. Got 6"),
        (dict(titles=[None] * 5), TypeError, r"titles\[0\] of describe must be a str. Got None"),
        (dict(feature_names=["a"]), ValueError, "one name for each of the 8 features"),
        (dict(other=3), TypeError, "The 'other' parameter of describe must be a topic model"),
        (dict(other=Given([[1.0, 2.0]])), ValueError, "same number of features"),
        (dict(held_out=COUNTS[:, 1:]), ValueError, "held_out has 7 features"),
    ],
)
def test_descriptions_that_cannot_be(options, error, message):
    with pytest.raises(error, match=message):
        describe(Given(), COUNTS, **options)
