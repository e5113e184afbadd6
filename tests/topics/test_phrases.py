"""Phrases, and languages without spaces between words."""

import importlib.util

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import annealvi
from annealvi import TopicModel
from annealvi.topics import TopicVectorizer
from tests.asserts import refused

RNG = np.random.RandomState(0)
FILL = [f"word{chr(97 + i)}{chr(97 + j)}" for i in range(12) for j in range(12)]


def texts(n=60):
    """Texts with a phrase of two words, one of three and one with a stop word."""
    made = []
    for number in range(n):
        words = [*RNG.choice(FILL, 12)]
        words[2:2] = ["monte", "carlo"] if number % 2 else ["bose", "einstein", "condensate"]
        words[8:8] = ["state", "of", "the", "art"]
        made.append(" ".join(words))
    return made


def test_phrases_are_words():
    documents = texts()
    vectorizer = TopicVectorizer(phrases=True, stop_words="english")
    X = vectorizer.fit_transform(documents)
    phrases = {word for word in vectorizer.vocabulary_ if " " in word}
    assert phrases == {"monte carlo", "bose einstein condensate"}
    assert not {"monte", "carlo", "einstein"} & set(vectorizer.vocabulary_)
    assert (vectorizer.transform(documents) != X).nnz == 0
    counts = vectorizer.transform(["Monte Carlo carlo", "bose einstein condensate condensate"])
    assert counts.sum() == 2
    plain = TopicVectorizer(stop_words="english").fit(documents)
    assert not any(" " in word for word in plain.vocabulary_)


def test_phrases_of_lists_of_words_of_a_vocabulary_and_of_a_tokenizer():
    documents = [text.split() for text in texts()]
    assert "monte carlo" in TopicVectorizer(phrases=True).fit(documents).vocabulary_
    given = TopicVectorizer(phrases=True, vocabulary=["monte carlo", "carlo"])
    assert_array_equal(given.transform(["monte carlo carlo carlo"]).toarray(), [[1, 2]])
    split = TopicVectorizer(phrases=True, tokenizer=str.split, token_pattern=None)
    assert "monte carlo" in split.fit(texts()).vocabulary_
    few = TopicVectorizer(phrases=True, max_features=3).fit(texts())
    assert {"monte carlo", "bose einstein condensate"} <= set(few.vocabulary_)


#: What is between two words, and whether the words are neighbours.
APART = [", ", ". ", ": ", "; ", " (", " 2 ", "-2 ", "/", " x ", " - ", " --- ", " — ", "…"]
APART += ["\n\n", "\n \n", "\r\n\r\n", "\n* ", "\n  - ", "\n\t+ ", "\n• ", "\n1. ", " don't "]
TOGETHER = [
    " ",
    "  ",
    "\n",
    "\r\n  ",
    "\t",
    "\u00a0",
    "-",
    "‐",
    "–",
    "--",
    "-\n",
    "'s ",
    "’s ",
    "' ",
]


@pytest.mark.parametrize("between", APART + TOGETHER)
def test_phrases_do_not_cross_punctuation_numbers_and_ends_of_lines(between):
    documents = [text.replace("monte carlo", f"monte{between}carlo") for text in texts()]
    vectorizer = TopicVectorizer(phrases=True).fit(documents)
    assert ("monte carlo" in vectorizer.vocabulary_) == (between in TOGETHER)
    given = TopicVectorizer(phrases=True, vocabulary=["monte carlo", "monte", "carlo"])
    counts = given.transform([f"Monte{between}Carlo"]).toarray()
    assert counts.tolist() == [[1, 0, 0] if between in TOGETHER else [0, 1, 1]]
    # phrases change no other words
    plain = TopicVectorizer(min_df=1, max_df=1.0).build_analyzer()
    split = TopicVectorizer(min_df=1, max_df=1.0, phrases=True).build_analyzer()
    assert split(documents[1]) == plain(documents[1])


def test_the_words_of_a_tokenizer_or_a_pattern_are_all_neighbours():
    documents = [text.replace("monte carlo", "monte. carlo") for text in texts()]
    functions = {"tokenizer": lambda text: text.replace(".", "").split(), "token_pattern": None}
    for parameters in functions, {"token_pattern": r"\w\w+"}:
        vectorizer = TopicVectorizer(phrases=True, **parameters).fit(documents)
        assert "monte carlo" in vectorizer.vocabulary_


def test_tags_and_links_separate_phrases():
    for tags in ("</li><li>", " https://example.org "):
        documents = [text.replace("monte carlo", f"monte{tags}carlo") for text in texts()]
        vectorizer = TopicVectorizer(phrases=True, clean=True).fit(documents)
        assert "monte carlo" not in vectorizer.vocabulary_
        assert "bose einstein condensate" in vectorizer.vocabulary_


def test_parts_of_phrases_that_are_too_frequent_or_contain_stop_words_are_left_out():
    documents = texts(400)
    # "new upstream release" in most texts, and "new upstream" alone in some
    for number in range(300):
        documents[number] += ". new upstream" + " release" * (number < 280)
    vectorizer = TopicVectorizer(phrases=True).fit(documents)
    assert not {"new upstream", "new upstream release"} & set(vectorizer.vocabulary_)
    documents = [f"{text}, no longer needed" for text in texts(400)[:60]] + texts(400)[60:]
    assert "no longer needed" in TopicVectorizer(phrases=True).fit(documents).vocabulary_
    vectorizer = TopicVectorizer(phrases=True, stop_words=["no"]).fit(documents)
    assert "longer needed" not in vectorizer.vocabulary_


def test_phrases_are_saved_and_kept_in_a_stream(tmp_path):
    documents = texts(80)
    model = TopicModel(2, vectorizer=TopicVectorizer(phrases=True), random_state=0).fit(documents)
    annealvi.save(model, tmp_path / "model")
    loaded = annealvi.load(tmp_path / "model")
    assert_array_equal(loaded.transform(documents), model.transform(documents))
    assert "monte carlo" in loaded.feature_names_
    apart = [text.replace("monte carlo", "monte, carlo") for text in documents]
    assert_array_equal(loaded.transform(apart), model.transform(apart))
    assert np.abs(model.transform(apart) - model.transform(documents)).max() > 0
    stream = TopicModel(2, vectorizer=TopicVectorizer(phrases=True), random_state=0)
    stream.partial_fit(documents[:40]).partial_fit(documents[40:])
    assert "monte carlo" in stream.feature_names_ and "carlo" not in stream.feature_names_


def test_what_phrases_cannot_be():
    refused("'phrases'", TopicVectorizer(phrases=True, ngram_range=(1, 2)).fit, texts())
    refused("'phrases'", TopicVectorizer(phrases=True, analyzer="char").fit, texts())
    refused("'phrases'", TopicVectorizer(phrases="yes").fit, texts())
    refused("'language'", TopicVectorizer(language="de").fit, texts())
    split = TopicVectorizer(language="zh", tokenizer=str.split, token_pattern=None)
    refused("'language'", split.fit, texts())


ASIA = {
    "zh": (
        "jieba",
        ["自然语言处理是人工智能的方向。", "用户可以安装软件包。"],
        {"人工智能", "软件包"},
    ),
    "ja": (
        "sudachipy",
        ["自然言語処理は重要な分野です。", "ファイルを用いる。"],
        {"分野", "用いる"},
    ),
    "th": ("pythainlp", ["ปัญญาประดิษฐ์ และภาษา", "ระบบปฏิบัติการ"], {"ภาษา", "ระบบปฏิบัติการ"}),
}


@pytest.mark.parametrize("language", ASIA)
def test_languages_without_spaces(language, tmp_path, monkeypatch):
    package, documents, words = ASIA[language]
    if importlib.util.find_spec(package) is None:
        with pytest.raises(ImportError, match=rf"language='{language}'.*pip install"):
            TopicVectorizer(language=language).fit(documents)
        pytest.skip(f"{package} is not installed")
    monkeypatch.setenv("HOME", str(tmp_path))
    model = TopicModel(2, vectorizer=TopicVectorizer(language=language), random_state=0)
    model.fit(documents * 5)
    assert words <= set(model.feature_names_)
    assert all(len(word) > 1 for word in model.feature_names_)
    annealvi.save(model, tmp_path / "model")
    loaded = annealvi.load(tmp_path / "model")
    assert loaded.vectorizer_.language == language
    assert_array_equal(loaded.transform(documents), model.transform(documents))
    joining = TopicVectorizer(language=language, phrases=True).fit(documents * 5)
    assert words <= {word for phrase in joining.vocabulary_ for word in phrase.split()}
    assert not any("。" in phrase or "\0" in phrase for phrase in joining.vocabulary_)
    long = model.transform([documents[0] * 5000])
    assert np.isfinite(long).all()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]  # nothing is cached
