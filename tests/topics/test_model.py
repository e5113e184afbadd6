"""TopicModel: it is a vectorizer and a TemperedLDA, under scikit-learn's conventions."""

import copy
import inspect
import re
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import annealvi
from annealvi import Annealed, TemperedLDA, TopicModel
from annealvi.callbacks import Checkpoint
from annealvi.topics import TopicVectorizer, describe
from tests.asserts import refusals, refused
from tests.callbacks import stop_at
from tests.marks import cases
from tests.topics.corpus import WORDS, make_texts

TEXTS = make_texts()
SEA, MANY = {"sea": ["ship"]}, TemperedLDA(total_samples="many")
LABELS = np.arange(len(TEXTS)) % 3
NEW = ["A ship and a star", "bread", "nothing but bread"]


def make(n_topics=3, **parameters):
    return TopicModel(n_topics, **{"lda": TemperedLDA(max_iter=3), "random_state": 0} | parameters)


@pytest.fixture(scope="module")
def model():
    return TopicModel(3, random_state=0).fit(TEXTS)


def test_topics_of_texts(model):
    found = {frozenset(words) for words in model.top_words(8)}
    assert found == {frozenset(words) for words in WORDS.values()}
    shares = model.transform(TEXTS)
    assert shares.shape == (60, 3)
    for topic in range(3):
        assert len(set(shares[topic::3].argmax(axis=1))) == 1


def test_it_is_a_vectorizer_and_a_tempered_lda(model):
    vectorizer = TopicVectorizer(stop_words="english")
    X = vectorizer.fit_transform(TEXTS)
    lda = TemperedLDA(3, random_state=0).fit(X)
    assert_array_equal(model.components_, lda.components_)
    assert_array_equal(model.feature_names_, vectorizer.get_feature_names_out())
    assert_array_equal(model.transform(TEXTS), lda.transform(X))
    assert_array_equal(model.counts(NEW).toarray(), vectorizer.transform(NEW).toarray())
    assert model.score(TEXTS) == lda.score(X)
    shares = TopicModel(3, random_state=0).fit_transform(documents=iter(TEXTS))
    assert_array_equal(shares, model.transform(documents=TEXTS))
    assert type(model.lda_) is TemperedLDA and type(model.vectorizer_) is TopicVectorizer


def test_methods_have_the_parameters_of_what_they_call(model):
    X = model.counts(NEW)
    options = dict(normalize=False, temperature=2.0)
    assert_array_equal(model.transform(NEW, **options), model.lda_.transform(X, **options))
    assert_array_equal(make().fit_predict(TEXTS), model.predict(TEXTS))
    single = make(single_topic=False)
    assert_array_equal(single.fit_predict(TEXTS), single.lda_.predict(model.counts(TEXTS)))
    both = [list(inspect.signature(f).parameters) for f in (describe, model.describe)]
    assert [name for name in both[0] if name not in ("model", "feature_names")] == both[1]


def test_parameters_of_the_parts():
    parts = dict(lda__temperature=Annealed(3.0), lda__max_iter=2, vectorizer__ngram_range=(1, 2))
    model = make(lda=None).set_params(**parts)
    model.set_params(lda__temperature__start=4.0)
    assert model.lda.temperature.start == 4.0 and isinstance(model.vectorizer, TopicVectorizer)
    model.fit(TEXTS)
    assert model.lda_.temperature.start == 4.0 and model.lda_.max_iter == 2
    assert model.lda_.n_components == 3 and model.lda.n_components == 10
    assert "bread butter" in model.feature_names_ and "the" not in model.feature_names_
    with pytest.raises(ValueError, match="Invalid parameter 'made_up' for estimator TemperedLDA"):
        make(lda=None, vectorizer=None).set_params(lda__made_up=1, vectorizer__min_df=2)
    model = make(lda=None)
    refused("made_up", model.set_params, vectorizer__min_df=2, made_up=1)
    assert model.vectorizer is None


def test_the_seed_is_that_of_the_model_or_of_the_lda():
    seeded = TemperedLDA(max_iter=2, random_state=5)
    assert make(lda=seeded, random_state=None).fit(TEXTS).lda_.random_state == 5
    assert make(lda=seeded, random_state=7).fit(TEXTS).lda_.random_state == 7
    assert seeded.random_state == 5


@cases(
    "stop_words, vectorizer, there, gone",
    *((None, None, {"the", "ship"}, set()), (["ship"], None, {"the"}, {"ship"})),
    (("Ship", "STAR"), None, {"the"}, {"ship", "star"}),
    ("english", CountVectorizer(stop_words=["ship"]), {"the"}, {"ship"}),
    *(("english", kind(), {"ship"}, {"the"}) for kind in (CountVectorizer, TfidfVectorizer)),
)
@pytest.mark.filterwarnings("ignore:TfidfVectorizer computes fractions")
def test_stop_words(stop_words, vectorizer, there, gone):
    words = set(make(stop_words=stop_words, vectorizer=vectorizer).fit(TEXTS[:45]).feature_names_)
    assert there <= words and not gone & words


@pytest.mark.slow
def test_clone_search_and_pipelines():
    pipeline = make_pipeline(make(), LogisticRegression())
    grid = {"topicmodel__n_topics": [2, 3], "topicmodel__lda__temperature": [1, "auto"]}
    search = GridSearchCV(pipeline, grid, cv=2).fit(TEXTS, LABELS)
    assert search.best_score_ == 1.0
    assert_array_equal(search.best_estimator_.predict(TEXTS[:3]), range(3))
    search = GridSearchCV(make(lda=None), {"lda__max_iter": [1, 2]}, cv=2).fit(pd.Series(TEXTS))
    assert np.all(np.isfinite(search.cv_results_["mean_test_score"]))
    model = make(seed_words=SEA, stop_words=["the", "of"])
    copied = clone(model)
    assert repr(copied) == repr(model) and copied.lda is not model.lda
    assert_array_equal(copied.fit(TEXTS).components_, model.fit(TEXTS).components_)


def test_names_of_the_output(model):
    frame = copy.copy(model).set_output(transform="pandas").transform(pd.Series(TEXTS[:2]))
    assert frame.columns.tolist() == ["topicmodel0", "topicmodel1", "topicmodel2"]
    assert_array_equal(frame.to_numpy(), model.transform(TEXTS[:2]))


def test_a_stream_of_blocks():
    stream, one_by_one = (make(lda=TemperedLDA(total_samples=60)) for _ in range(2))
    blocks = [TEXTS[:24], [*TEXTS[24:], "unknown words"]]
    with pytest.warns(
        UserWarning, match=r"1 of the 37 texts contain no .* \(positions 36, counted from 0\)"
    ):
        assert stream.partial_fit(iter(block) for block in blocks) is stream
    vectorizer = TopicVectorizer(stop_words="english").fit(blocks[0])
    lda = TemperedLDA(3, total_samples=60, random_state=0)
    for block in blocks:
        lda.partial_fit(vectorizer.transform(block))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            one_by_one.partial_fit(block)
    assert_array_equal(stream.components_, lda.components_)
    assert_array_equal(one_by_one.components_, lda.components_)


def test_a_bad_block_leaves_what_was_learned():
    stream = make()
    message = r"'documents\[1\]\[0\]' .*TopicModel.partial_fit must be a str"
    refused(message, stream.partial_fit, [TEXTS[:30], [None]], error=TypeError)
    assert_array_equal(stream.components_, make().partial_fit(TEXTS[:30]).components_)
    refused(r"at least 2 documents. Got 1", make().partial_fit, ["a star"])
    stream.partial_fit(["a star"])


@cases(
    "parameters, error, message",
    (dict(n_topics=25), ValueError, "'n_topics' .* at most the number of words, 24. Got 25"),
    (dict(vectorizer=HashingVectorizer()), ValueError, "'get_feature_names_out'"),
    (dict(lda=TemperedLDA(max_iter=-1)), ValueError, "'max_iter' parameter of TemperedLDA"),
    (dict(seed_words=["ship"]), TypeError, "must be a dict of names to lists .* Got \\['ship'\\]"),
    (dict(stop_words=[1]), ValueError, "'stop_words' parameter of TopicModel must be 'engl"),
    (dict(vectorizer=TopicVectorizer(min_df=61)), ValueError, "All words of the 60 docu"),
    (dict(seed_words=SEA, lda=MANY), ValueError, "'total_samples' parameter of TemperedLDA"),
)
@pytest.mark.parametrize("method", ["fit", "fit_transform", "partial_fit"])
def test_parameters(parameters, error, message, method):
    model = make(**parameters)
    refused(message, getattr(model, method), TEXTS, error=error)
    assert not hasattr(model, "components_") and not model.__sklearn_is_fitted__()


@cases(
    "texts, error, message",
    ([], ValueError, "'documents' parameter of TopicModel.{0} must be at least {1} document"),
    (
        "a text",
        TypeError,
        "'documents' parameter of TopicModel.{0} must be a list, .* Put a single",
    ),
    (["a", None], TypeError, r"'documents\[1\]' .*TopicModel.{0} must be a str. Got None"),
    (np.ones((3, 24)), TypeError, "{0} must be a list.* Pass word counts to TemperedLDA"),
)
def test_texts(texts, error, message, model):
    for method in ("fit", "fit_transform", "transform", "score", "counts"):
        least = 2 if method.startswith("fit") else 1
        before = model.components_
        refused(message.format(method, least), getattr(model, method), texts, error=error)
        assert_array_equal(model.components_, before)


test_corpora_without_words = refusals(
    make().fit,
    (["a star"], "at least 2 documents. Got 1"),
    (["", ""], "empty vocabulary"),
    (["the of", "and"], "empty vocabulary"),
    (
        [f"word{i}" for i in range(30)],
        "All words of the 30 documents are excluded.* 30 words are in",
    ),
)


def test_documents_without_words_are_allowed():
    with pytest.warns(UserWarning, match=r"2 of the 62 texts contain no word .*60, 61"):
        shares = make().fit_transform([*TEXTS, "", "the"])
    assert_array_equal(shares[60], shares[61])
    assert shares[60] == pytest.approx(1 / 3)


def test_an_unfitted_model():
    for method in ("transform", "score", "counts"):
        with pytest.raises(NotFittedError, match="This TopicModel instance is not fitted yet"):
            getattr(make(), method)(TEXTS)
    refused("not fitted", make().top_words, error=NotFittedError)
    for name in ("components_", "feature_names_", "lda_", "vectorizer_", "dropped_words_"):
        assert not hasattr(make(), name)


def test_an_interrupted_fit_keeps_its_topics():
    model = make(lda=TemperedLDA(callback=stop_at(1, ZeroDivisionError)))
    with pytest.raises(ZeroDivisionError):
        model.fit(TEXTS)
    assert len(model.top_words(3)) == 3 and model.transform(NEW).shape == (3, 3)


class Interrupted(CountVectorizer):
    meanwhile = None  # something else that happens, as in another thread

    def transform(self, raw_documents):
        if Interrupted.meanwhile is not None:
            Interrupted.meanwhile()
        return super().transform(raw_documents)


@pytest.mark.parametrize("method", ["transform", "score"])
def test_readers_beside_a_fit_see_the_words_of_its_topics(method, monkeypatch):
    model = make(vectorizer=Interrupted()).fit(TEXTS)
    other = [text + " zebra" for text in TEXTS[:40]]
    expected = getattr(model, method)(NEW)
    monkeypatch.setattr(Interrupted, "meanwhile", lambda: model.fit(other))
    assert_array_equal(getattr(model, method)(NEW), expected)
    assert "zebra" in model.feature_names_


@pytest.mark.slow
@pytest.mark.parametrize("seed_words", [None, SEA])
def test_a_stopped_fit_is_resumed(seed_words, tmp_path):
    path = tmp_path / "run"

    def make_lda(*callbacks):
        return TemperedLDA(max_iter=4, batch_size=30, callback=[Checkpoint(path, 0), *callbacks])

    with pytest.raises(ZeroDivisionError):
        make(lda=make_lda(stop_at(3, ZeroDivisionError)), seed_words=seed_words).fit(TEXTS)
    resumed = make(lda=make_lda(), seed_words=seed_words).fit(TEXTS, resume=path)
    whole = make(lda=TemperedLDA(max_iter=4, batch_size=30), seed_words=seed_words).fit(TEXTS)
    assert_array_equal(resumed.components_, whole.components_)


def test_the_same_words_with_other_topics(model):
    other = TemperedLDA(2, max_iter=2, random_state=1).fit(model.counts(TEXTS))
    edited = model.with_lda(other, {"sea": 1})
    assert edited.n_topics == 2 and edited.transform(NEW).shape == (3, 2)
    assert edited.seed_topics_ == {"sea": 1} and model.n_topics == 3
    assert_array_equal(edited.feature_names_, model.feature_names_)
    assert model.transform(NEW).shape == (3, 3)
    with pytest.raises(ValueError, match=r"'lda' .* to the 24 words .* Got 'n_features_in_=7'"):
        model.with_lda(TemperedLDA(2, max_iter=1).fit(np.ones((5, 7))))
    refused("not fitted", model.with_lda, TemperedLDA(2), error=NotFittedError)
    with pytest.raises(TypeError, match=r"'lda' parameter of TopicModel.with_lda .* Got 'lda'"):
        model.with_lda("lda")
    message = r"'seed_topics' .* must be a dict of names to topic numbers"
    for seed_words in (["sea"], {"sea": 2}, {"sea": -1}, {1: 1}):
        refused(message, model.with_lda, other, seed_words)


def same(loaded, model):
    address = re.compile("0x[0-9A-F]+")
    shown = [address.sub("", repr(each.get_params(deep=False))) for each in (loaded, model)]
    assert shown[0] == shown[1]
    assert_array_equal(loaded.feature_names_, model.feature_names_)
    assert_array_equal(loaded.transform(NEW), model.transform(NEW))
    assert loaded.dropped_words_ == model.dropped_words_
    assert loaded.vocabulary_note_ == model.vocabulary_note_
    assert loaded.seed_topics_ == model.seed_topics_ and loaded.score(TEXTS) == model.score(TEXTS)
    more = [copy.copy(each).partial_fit(TEXTS[:9]).components_ for each in (loaded, model)]
    assert_array_equal(*more)


@cases(
    "parameters",
    {},
    {"lda": None, "vectorizer": TopicVectorizer(ngram_range=(1, 2), max_features=50)},
    {"vectorizer": CountVectorizer(min_df=2, binary=True, dtype=np.float64)},
    {"vectorizer": CountVectorizer(vocabulary=["ship", "star", "wave", "bread"])},
    {"stop_words": ["the", "of"], "lda": TemperedLDA(max_iter=2, temperature=Annealed(2.0))},
    {"seed_words": {"sea": ["ship"], "$": ("star",)}, "random_state": np.random.RandomState(1)},
)
@pytest.mark.filterwarnings("ignore:7 of the 60 texts")
def test_a_file_holds_the_words_too(parameters, tmp_path):
    model, path = make(**parameters).fit(TEXTS), tmp_path / "topics.safetensors"
    annealvi.save(model, path)
    loaded = annealvi.load(path)
    same(loaded, model)
    annealvi.save(loaded, path)  # in the place of the file that is mapped
    same(annealvi.load(path), model)


def test_a_stream_in_a_file(tmp_path):
    model = make(lda=TemperedLDA(total_samples=60)).partial_fit(TEXTS[:30])
    annealvi.save(model, tmp_path / "a")
    same(annealvi.load(tmp_path / "a"), model)


def split(text):
    return text.split()


def test_functions_are_given_again(tmp_path):
    vectorizer, path = CountVectorizer(tokenizer=split, token_pattern=None), tmp_path / "a"
    model = make(vectorizer=vectorizer, stop_words=None).fit(TEXTS)
    annealvi.save(model, path)
    refused(
        r"The file does not contain the parameter 'vectorizer', .*load.path, vector",
        annealvi.load,
        path,
    )
    same(annealvi.load(path, vectorizer=vectorizer), model)


@pytest.mark.filterwarnings("ignore:TfidfVectorizer computes fractions")
def test_files_of_other_estimators(tmp_path):
    for vectorizer in (TfidfVectorizer(), type("Own", (CountVectorizer,), {})()):
        other = make(vectorizer=vectorizer).fit(TEXTS)
        with pytest.raises(TypeError, match=r"'vectorizer.* parameter.* cannot be w"):
            annealvi.save(other, tmp_path / "b")
    refused("not fitted", annealvi.save, make(), tmp_path / "b", error=NotFittedError)
    assert not (tmp_path / "b").exists()


def test_from_parts(model, tmp_path):
    vectorizer = TopicVectorizer(stop_words="english")
    lda = TemperedLDA(3, random_state=0).fit(vectorizer.fit_transform(TEXTS))
    made = TopicModel.from_parts(vectorizer, lda)
    assert_array_equal(made.components_, model.components_)
    assert made.vocabulary_note_ == model.vocabulary_note_
    assert made.n_topics == 3 and made.lda is not lda and made.vectorizer is not vectorizer
    annealvi.save(made, tmp_path / "m")
    loaded = annealvi.load(tmp_path / "m")
    assert_array_equal(loaded.transform(TEXTS), model.transform(TEXTS))
    # the parameters fit it again
    assert_array_equal(made.fit(TEXTS).components_, model.components_)
    other = TemperedLDA(2, random_state=0).fit(np.eye(3))
    message = r"the 24 words of the vectorizer\. Got 'n_features_in_=3"
    refused(message, TopicModel.from_parts, vectorizer, other)


def test_shares_by_collapsed_inference(model):
    shares = model.transform(TEXTS, method="cvb0")
    assert_array_equal(shares, model.lda_.transform(model.counts(TEXTS), method="cvb0"))
    assert np.any(shares != model.transform(TEXTS))
    refused("'method'", model.transform, TEXTS, method="gibbs")


def test_very_short_texts_warn():
    texts = [f"{first} {second}" for first in WORDS["sea"] for second in WORDS["space"]]
    with pytest.warns(UserWarning, match="Texts are short, with 2.0 counted words") as told:
        make(2).fit(texts * 2)
    assert told[0].filename == __file__
    make(2).fit(texts[:50])  # a small example


@pytest.mark.filterwarnings("ignore:1 of the 62 texts")
def test_a_file_holds_stop_words_of_a_language_and_what_was_cleaned(tmp_path, monkeypatch):
    pytest.importorskip("stop_words")
    texts = [*TEXTS, "http://a.b nicht", TEXTS[0]]
    model = make(stop_words="german", vectorizer=TopicVectorizer(clean=True)).fit(texts)
    annealvi.save(model, tmp_path / "model")
    monkeypatch.setitem(sys.modules, "stop_words", None)
    loaded = annealvi.load(tmp_path / "model")
    assert loaded.stop_words == "german" and "nicht" in loaded.vectorizer_.stop_words
    note = loaded.vocabulary_note_
    assert " clean: links (1) were removed. 1 document repeats an earlier document exactly." in note
    assert note == model.vocabulary_note_ and loaded.vectorizer_.clean
    assert_array_equal(loaded.transform(TEXTS), model.transform(TEXTS))


@pytest.mark.parametrize("output", ["pandas", "default"])
def test_the_output_of_the_lda_is_its_own(output):
    inner = make(lda=TemperedLDA().set_output(transform=output))
    assert type(inner.fit_transform(TEXTS)) is type(inner.transform(TEXTS)) is np.ndarray
    assert inner.describe(TEXTS).shares.shape == (len(TEXTS), 3)
    table = make().set_output(transform="pandas").fit(TEXTS).transform(TEXTS)
    assert list(table.columns) == ["topicmodel0", "topicmodel1", "topicmodel2"]
