"""A TopicModel of counts whose words are known, and what it does with texts."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import FunctionTransformer

import annealvi
from annealvi import TemperedLDA, TopicModel
from annealvi.callbacks import Checkpoint
from annealvi.exceptions import BadParameter
from annealvi.topics import TopicVectorizer, describe, merge_topics, reduce_topics, refine_topics
from annealvi.topics.refits import refit
from tests.asserts import refused
from tests.callbacks import stop_at
from tests.marks import cases
from tests.topics.corpus import make_texts

TEXTS = make_texts(40)
COUNTER = TopicVectorizer(min_df=1, max_df=1.0).fit(TEXTS)
X, WORDS = COUNTER.transform(TEXTS), COUNTER.get_feature_names_out()
PLAIN = TopicModel(3, vectorizer=COUNTER, stop_words=None, random_state=0)
COUNTED = TopicModel(3, random_state=0).fit_counts(X, WORDS)


@cases(
    "counts, words",
    *((X, WORDS), (X.toarray(), list(WORDS)), (sparse.coo_array(X), pd.Index(WORDS))),
    (pd.DataFrame(X.toarray(), columns=WORDS), iter(WORDS)),
)
def test_counts_give_the_model_of_the_texts_they_come_from(counts, words):
    model, expected = TopicModel(3, random_state=0).fit_counts(counts, words), PLAIN.fit(TEXTS)
    assert_array_equal(model.components_, expected.components_)
    assert_array_equal(model.transform(TEXTS), expected.transform(TEXTS))
    assert_array_equal(model.predict(TEXTS), expected.predict(TEXTS))
    assert_array_equal(model.feature_names_, WORDS)
    assert model.top_words(3) == expected.top_words(3)
    assert (model.n_topics, model.vectorizer, model.lda) == (3, None, None)
    assert model.vocabulary_note_ == f"{len(WORDS)} passed words are counted."


def test_seeds_and_a_number_that_is_chosen():
    seed_words = {"first": [WORDS[3]], "second": [WORDS[-1].upper()]}
    given = TopicModel("auto", seed_words=seed_words, random_state=0)
    model = given.fit_counts(X, WORDS)
    expected = PLAIN.set_params(n_topics="auto", seed_words=seed_words).fit(TEXTS)
    PLAIN.set_params(n_topics=3, seed_words=None)
    assert model.seed_topics_ == {"first": 0, "second": 1}
    assert_array_equal(model.components_, expected.components_)
    assert model.choice_.recommended == len(model.components_)
    assert_array_equal(model.topic_similarity_, expected.topic_similarity_)
    methods = describe(model, X).methods()
    assert f"was chosen from {', '.join(map(str, model.choice_.n_topics))} by" in methods
    assert "vocabulary was learned from" not in methods
    assert "Seed words were used for the topics first and second." in methods


def test_all_given_words_are_counted_in_texts(tmp_path):
    counts = [[2, 1, 0], [0, 1, 2], [1, 0, 1]]
    model = TopicModel(1, random_state=0).fit_counts(counts, ["the", "moon", "US"])
    annealvi.save(model, tmp_path / "m")
    for found in (model, annealvi.load(tmp_path / "m")):
        assert found.counts(["The moon of the US", "us"]).toarray().tolist() == [[1, 1, 1], [0] * 3]
    model.fit_counts(counts, ["the", "moon", "us"])
    assert model.counts(["The moon of the US"]).toarray().tolist() == [[2, 1, 1]]
    own = TopicModel(1, vectorizer=CountVectorizer(ngram_range=(1, 2), stop_words=["the"]))
    own.fit_counts(counts, ["the moon", "moon", "sun"])
    assert own.counts(["The moon"]).toarray().tolist() == [[1, 1, 0]]


def test_a_file_an_edit_and_a_summary(tmp_path):
    annealvi.save(COUNTED, tmp_path / "m")
    loaded = annealvi.load(tmp_path / "m")
    assert_array_equal(loaded.transform(TEXTS), COUNTED.transform(TEXTS))
    assert_array_equal(loaded.predict(TEXTS), COUNTED.predict(TEXTS))
    summary = describe(loaded, X)
    assert_array_equal(summary.feature_names, WORDS)
    assert_array_equal(summary.shares, describe(loaded, TEXTS).shares)
    assert_array_equal(summary.document_topics, COUNTED.predict(TEXTS))
    merged, lda = merge_topics(loaded, [[0, 1]]), loaded.lda_
    assert isinstance(merged, TopicModel) and merged.transform(TEXTS).shape == (40, 2)
    for documents in (X, TEXTS):
        refined = refine_topics(merged, documents, max_iter=2)
        of_lda = refine_topics(merged.lda_, X, max_iter=2)
        assert_array_equal(refined.components_, of_lda.components_)
        reduced, of_lda = reduce_topics(loaded, 2, documents), reduce_topics(lda, 2, X)
        assert_array_equal(reduced.components_, of_lda.components_)
        assert_array_equal(refit(loaded, documents, 2).similarity, refit(lda, X, 2).similarity)
    assert_array_equal(loaded.partial_fit(TEXTS).feature_names_, WORDS)


def test_a_fit_goes_on_from_a_checkpoint(tmp_path):
    callback = [Checkpoint(tmp_path / "c", seconds=0), stop_at(3, ZeroDivisionError)]
    lda = TemperedLDA(max_iter=3, batch_size=10, n_init=1, callback=callback)
    model = TopicModel(2, lda=lda, random_state=0)
    with pytest.raises(ZeroDivisionError):
        model.fit_counts(X, WORDS)
    model.set_params(lda__callback=None).fit_counts(X, WORDS, resume=tmp_path / "c")
    whole = TopicModel(2, lda=model.lda, random_state=0).fit_counts(X, WORDS)
    assert_array_equal(model.components_, whole.components_)


def test_a_new_fit_and_a_failed_one():
    model = TopicModel(3, random_state=0).fit_counts(X, WORDS)
    before = model.components_
    with pytest.raises(BadParameter):
        model.fit_counts(X, WORDS[1:])
    assert model.components_ is before or np.array_equal(model.components_, before)
    model.set_labels({0: "one"}).fit_counts(X, WORDS)
    assert not model.topic_labels_
    with pytest.warns(UserWarning, match="no word of the model's vocabulary"):
        model.transform(["nothing that is known"])


@cases(
    "counts, words, kind, message",
    (X, WORDS[:-1], ValueError, f"'words' .* one entry for each of the {len(WORDS)} columns"),
    (X, None, ValueError, "'words' parameter of TopicModel.fit_counts must be a sequence"),
    (X, "words", ValueError, "'words' .* must be a sequence.* Got 'words'"),
    ([[1, 2], [2, 1]], ["a", "a"], ValueError, r"'words\[1\]' .* differs from .* Got 'a'"),
    ([[1, 2], [2, 1]], ["a", 3], TypeError, r"'words\[1\]' .* must be a str.* Got 3"),
    (X * -1, WORDS, ValueError, "Negative values in data passed to TopicModel.fit_counts"),
    (X * 0.5, WORDS, ValueError, "'X' .*fit_counts must be integer counts. Got 0.5"),
    ([[1, np.nan], [2, 1]], ["a", "b"], ValueError, "Input X contains NaN"),
    (
        X[:1],
        WORDS,
        ValueError,
        "'X' .* at least two documents, not all 0. Got '1 documents",
    ),
    (X * 0, WORDS, ValueError, "'X' .* not all 0. Got '40 documents with 0 words'"),
    (X[:0], WORDS, ValueError, "0 sample"),
    (TEXTS, WORDS, TypeError, "Got texts instead. Fit a TopicModel"),
    ([[1, 2], [2, 1]], ["a", "b"], ValueError, "at most the number of words, 2. Got 3"),
)
def test_what_is_no_count_and_no_word(counts, words, kind, message):
    refused(message, TopicModel(3).fit_counts, counts, words, error=kind)


def test_a_vectorizer_whose_words_cannot_be_given():
    model = TopicModel(3, vectorizer=FunctionTransformer(feature_names_out="one-to-one"))
    refused(
        "'vectorizer' .* be a CountVectorizer or None", model.fit_counts, X, WORDS, error=TypeError
    )
