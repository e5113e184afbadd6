"""A model from its parts."""

import numpy as np
import pytest

from annealvi import TemperedLDA, TopicModel
from annealvi.topics import TopicVectorizer

TEXTS = ["stars and planets", "planets of stars", "bread and butter", "butter on bread"] * 3


def test_from_parts(tmp_path):
    """It is the model that a fit gives, and it can be saved."""
    vectorizer = TopicVectorizer(stop_words="english")
    X = vectorizer.fit_transform(TEXTS)
    lda = TemperedLDA(2, random_state=0).fit(X)
    model = TopicModel.from_parts(vectorizer, lda)
    fitted = TopicModel(2, random_state=0).fit(TEXTS)
    np.testing.assert_array_equal(model.components_, fitted.components_)
    assert model.vocabulary_note_ == fitted.vocabulary_note_
    assert model.n_topics == 2 and model.lda is not lda and model.vectorizer is not vectorizer
    model.save(tmp_path / "m")
    loaded = TopicModel.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.transform(TEXTS), fitted.transform(TEXTS))
    # the parameters fit it again
    np.testing.assert_array_equal(model.fit(TEXTS).components_, fitted.components_)


def test_parts_that_do_not_belong_together():
    vectorizer = TopicVectorizer().fit(TEXTS)
    lda = TemperedLDA(2, random_state=0).fit(np.eye(3))
    with pytest.raises(ValueError, match=r"the 7 words of the vectorizer\. Got n_features_in_=3"):
        TopicModel.from_parts(vectorizer, lda)


def test_shares_by_collapsed_inference():
    model = TopicModel(2, random_state=0).fit(TEXTS)
    shares = model.transform(TEXTS, method="cvb0")
    np.testing.assert_array_equal(shares, model.lda_.transform(model.counts(TEXTS), method="cvb0"))
    assert np.any(shares != model.transform(TEXTS))
    with pytest.raises(ValueError, match="'method'"):
        model.transform(TEXTS, method="gibbs")
