"""Languages: their stop words, texts in another language, and functions that split texts."""

import random

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.pipeline import make_pipeline

from annealvi import TopicModel
from annealvi.topics import TopicVectorizer
from annealvi.topics.languages import language_of, languages_in
from tests.asserts import refused

SENTENCES = {
    "english": "The planets and the stars can be seen at night and they shine over the sea",
    "german": "Die Planeten und die Sterne sind in der Nacht zu sehen und leuchten über dem Meer",
    "french": "Les planètes et les étoiles sont dans le ciel de la nuit et nous les regardons",
}


def texts(*languages, n=12):
    rng = random.Random(0)
    sentences = [SENTENCES[name].split() for name in languages]
    return [" ".join(rng.sample(words, len(words))) for words in sentences for _ in range(n)]


@pytest.mark.parametrize("stop_words", ["german", "de", "German", " DE ", "german,", "Deutsch"])
def test_a_language_has_several_names(stop_words):
    pytest.importorskip("stop_words")
    words = TopicModel(2, stop_words=stop_words, random_state=0).fit(texts("german")).feature_names_
    assert "planeten" in words and not {"die", "und", "der"} & {*words}


def test_stop_words_of_several_languages():
    pytest.importorskip("stop_words")
    model = TopicModel(2, stop_words="english,german", random_state=0)
    words = {*model.fit(texts("english", "german")).feature_names_}
    assert {"planets", "planeten"} <= words and not {"the", "and", "die", "und"} & words
    assert model.vocabulary_.languages is None
    model.set_params(stop_words="german,x")
    refused("'stop_words' .* must be 'english', another of", model.fit, texts("english"))


@pytest.mark.filterwarnings("ignore:.* contain no word of the model")
@pytest.mark.parametrize(
    "languages", [("german",), ("english", "french"), ("english", "english", "english", "german")]
)
def test_texts_in_another_language_are_told(languages):
    pytest.importorskip("stop_words")
    with pytest.warns(UserWarning, match=rf"texts seem to be in {languages[-1]} \(.*stop_words"):
        model = TopicModel(2, random_state=0).fit(texts(*languages))
    share = 1 - languages.count("english") / len(languages)
    assert model.vocabulary_.languages == {languages[-1]: pytest.approx(share)}
    assert f"{languages[-1]} ({share:.0%})" in model.vocabulary_note_


def test_texts_in_two_languages_are_told(recwarn):
    pytest.importorskip("stop_words")
    rng = random.Random(0)
    words = f"{SENTENCES['english']} {SENTENCES['german']}".lower().split()
    both = [" ".join(rng.sample(words, len(words))) for _ in range(30)]
    with pytest.warns(UserWarning, match=r"texts seem to be in german \(100%\)"):
        TopicModel(2, random_state=0).fit(both)
    TopicModel(2, stop_words="en,de", random_state=0).fit(both)
    names = [f"{text} der Spiegel, la Grande Nation" for text in texts("english")]
    TopicModel(2, random_state=0).fit(names)
    assert not recwarn.list


def test_lists_with_quotation_marks_and_of_several_words_are_known():
    pytest.importorskip("stop_words")
    assert language_of(["\u05e9\u05dc", "\u05d0\u05d7\u05e8\u05ea", "star"]) == "hebrew"
    assert language_of(["khó", "mở", "đáng", "star"]) == "vietnamese"


def test_english_is_known_without_a_package():
    pytest.importorskip("stop_words")
    model = TopicModel(2, stop_words="german", random_state=0)
    with pytest.warns(UserWarning, match=r"texts seem to be in english \(100%\)"):
        model.fit(texts("english"))


@pytest.mark.parametrize("names", [["german", "english"], ("German", "ENGLISH"), ["de", "en_GB"]])
def test_names_of_languages_in_a_list_are_words(names):
    message = rf"stop_words=\['.*excludes these words.* pass '{','.join(names)}'"
    with pytest.warns(UserWarning, match=message):
        TopicModel(2, stop_words=np.array(names), random_state=0).fit(texts("english"))
    assert languages_in("klingon") is None and languages_in("fr, EN") == ["french", "english"]
    assert languages_in("no") == ["norwegian"] and languages_in(",") is None


def test_names_of_languages_in_the_list_of_a_vectorizer_are_words():
    vectorizer = TopicVectorizer(stop_words=["german", "english"])
    with pytest.warns(UserWarning, match="excludes these words.* pass 'german,english' as"):
        TopicModel(2, vectorizer=vectorizer, random_state=0).fit(texts("english"))


def cut(text):
    if len(text) > 60:
        raise OSError("too long")
    return text.split()


def test_fractions_are_told_once(recwarn):
    blocks = [texts("english"), texts("english")]
    model = TopicModel(2, vectorizer=TfidfVectorizer(), stop_words=None, random_state=0)
    with pytest.warns(UserWarning, match="TfidfVectorizer computes fractions, such as .*counts"):
        model.partial_fit(blocks[0])
    model.partial_fit(blocks[1]).transform(blocks[1])
    assert not recwarn.list
    pipeline = make_pipeline(CountVectorizer(), TfidfTransformer(use_idf=False))
    with pytest.warns(UserWarning, match="Pipeline computes fractions"):
        TopicModel(2, vectorizer=pipeline, stop_words=None, random_state=0).fit(blocks[0])


@pytest.mark.parametrize("name", ["tokenizer", "analyzer"])
def test_the_text_for_which_a_tokenizer_fails_is_named(name):
    short = ["moon star", "bread butter"] * 5
    vectorizer = TopicVectorizer(**{name: cut})
    message = (
        rf"documents.10.' .* that the {name} of TopicVectorizer can read.* 80 bytes. OSError: too"
    )
    refused(message, TopicModel(2, vectorizer=vectorizer).fit, [*short, "a " * 40])
    model = TopicModel(2, vectorizer=vectorizer, stop_words=None, random_state=0).fit(short)
    refused(message, model.transform, [*short, "a " * 40])
