"""The vocabulary: its limits by the size of the corpus, stop words, what is taken out of texts."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from annealvi.corpus import stream_texts
from annealvi.topics import TopicVectorizer
from annealvi.topics import vectorizer as module
from annealvi.topics.markup import cleaned
from annealvi.topics.vectorizer import LANGUAGES, count_words, with_stop_words
from tests.asserts import refused
from tests.marks import cases
from tests.topics.corpus import make_texts

TEXTS = ["rare bird sings", "bird sings", "bird sings often", "bird sings often", "bird 1999"]


@cases(
    "n, low, high",
    *((1, 1, 50), (19, 1, 50), (20, 2, 50), (400, 2, 80), (3000, 6, 600), (20_000, 15, 4000)),
)
def test_limits_by_the_number_of_documents(n, low, high):
    assert (module.fewest_documents(n), module.most_documents(n)) == (low, high)


def test_defaults_leave_out_what_is_too_rare_or_too_frequent():
    texts = [f"everywhere w{i // 2}x single{i}" for i in range(100)]
    vectorizer = TopicVectorizer()
    X = vectorizer.fit_transform(texts)
    assert vectorizer.get_feature_names_out().tolist() == sorted(f"w{i}x" for i in range(50))
    assert X.shape == (100, 50) and X.sum() == 100
    assert vectorizer.dropped_.dropped["max_df"] == ["everywhere"]
    assert vectorizer.dropped_.n_dropped == {"min_df": 100, "max_df": 1, "stop_words": 0}
    note = vectorizer.dropped_.note()
    assert note.startswith("50 words of 100 documents are counted.")
    assert "max_df: 1 word is in more than 50 documents (everywhere)." in note
    assert "min_df: 100 words are in fewer than 2 documents (single0, " in note


LIMITS = [{}, {"min_df": 2}, {"min_df": 2, "max_df": 0.8}, {"min_df": 0.4, "max_df": 4}]
LIMITS += [{"max_features": 2}, {"max_features": 2, "max_df": 4}]
LIMITS += [{"stop_words": ["often"], "ngram_range": (1, 2)}, {"vocabulary": ["sings", "bird"]}]


@pytest.mark.parametrize("given", LIMITS)
def test_given_limits_are_those_of_scikit_learn(given):
    plain = CountVectorizer(**given)
    expected = plain.fit_transform(TEXTS)
    words = plain.get_feature_names_out()
    for vectorizer in (CountVectorizer(**given), TopicVectorizer(**{"max_df": 1.0} | given)):
        if isinstance(vectorizer, TopicVectorizer):
            vectorizer.set_params(token_pattern=plain.token_pattern)
        fitted, X, vocabulary = count_words(vectorizer, TEXTS)
        assert_array_equal(X.toarray(), expected.toarray())
        assert_array_equal(vocabulary.words, words)
        assert_array_equal(fitted.transform(TEXTS).toarray(), expected.toarray())
        assert fitted.get_params() == vectorizer.get_params()
        assert not hasattr(vectorizer, "vocabulary_")


def test_words_begin_with_a_letter():
    vectorizer = TopicVectorizer().fit(["a 1999 b2b Ärger 3d x_1 _y", "über 12"])
    assert vectorizer.get_feature_names_out().tolist() == ["b2b", "x_1", "ärger", "über"]


def test_lists_of_words_are_counted_after_a_fit_too():
    lists = [["Star", "moon"], ["moon", "jam", "jam"]]
    vectorizer = TopicVectorizer(min_df=1, max_df=1.0)
    X = vectorizer.fit_transform(lists).toarray()
    assert_array_equal(vectorizer.transform(lists).toarray(), X)
    assert_array_equal(vectorizer.transform(["star moon", "jam moon jam"]).toarray(), X)
    blocks = list(stream_texts(iter(lists), vectorizer, block_size=1))
    assert_array_equal(np.vstack([block.toarray() for block in blocks]), X)
    assert vectorizer.transform([]).shape == (0, 3)
    refused(r"'raw_documents\[1\]' .* must be a str. Got None", vectorizer.transform, ["a", None])


def test_words_that_are_kept():
    vectorizer = TopicVectorizer(min_df=2, max_df=4, max_features=1)
    _, X, vocabulary = count_words(vectorizer, TEXTS, kept=frozenset({"rare", "bird"}))
    assert vocabulary.words.tolist() == ["bird", "rare"]
    assert vocabulary.dropped["max_features"] == ["sings", "often"]
    assert X.sum() == 6


@pytest.mark.filterwarnings("ignore:TfidfVectorizer computes fractions")
def test_another_vectorizer_counts_as_it_does():
    vectorizer = TfidfVectorizer(min_df=2)
    _, X, vocabulary = count_words(vectorizer, TEXTS)
    assert_array_equal(X.toarray(), clone(vectorizer).fit_transform(TEXTS).toarray())
    assert vocabulary.words.tolist() == ["bird", "often", "sings"] and not vocabulary.dropped


@cases(
    "vectorizer, message",
    (
        TopicVectorizer(min_df=6),
        r"All words of the 5 documents are excluded. 0 words .* min_df: 4 ",
    ),
    (CountVectorizer(min_df=0.9, max_df=1), "max_df must not be less than min_df"),
    (CountVectorizer(min_df="all"), "'min_df' parameter of CountVectorizer must be a float"),
    (CountVectorizer(vocabulary=[1]), r"'vocabulary' .* must be a list of str. Got \[1\]"),
    (TopicVectorizer(token_pattern=None), "'token_pattern' .* of TopicVectorizer .* Got None"),
    (TopicVectorizer(token_pattern="("), "'token_pattern' .* a regular expression"),
    (CountVectorizer(dtype="no"), "'dtype' parameter of CountVectorizer must be a dtype of"),
    (TopicVectorizer(min_df="all"), "'min_df' parameter of TopicVectorizer must be .*'auto'"),
    (TopicVectorizer(stop_words=[None]), "'stop_words' .* of TopicVectorizer must be a list of"),
    (TopicVectorizer(stop_words="german"), "'stop_words' parameter .* Got 'german' instead"),
    (
        make_pipeline(CountVectorizer(), FunctionTransformer(np.log1p)),
        "steps all have get_feature_names_out.* feature_names_out is 'one-to-one'",
    ),
)
def test_errors(vectorizer, message):
    if isinstance(vectorizer, TopicVectorizer):
        refused(message, vectorizer.fit_transform, TEXTS)
        if vectorizer.stop_words == "german":
            refused(message, vectorizer.build_analyzer)
    else:
        refused(f"(?s){message}", count_words, vectorizer, TEXTS)


def test_a_limit_that_is_open_gives_way_to_the_other():
    assert count_words(TopicVectorizer(min_df=60), ["word"] * 70)[2].words.tolist() == ["word"]
    texts = ["some word"] * 1 + ["other word"] * 19
    assert count_words(TopicVectorizer(max_df=1), texts)[2].words.tolist() == ["some"]


def test_stop_words_are_written_as_the_vectorizer_writes_words():
    texts = ["C'est la vie", "Est-ce que la vie", "aujourd'hui la VIE"] * 10
    given = with_stop_words(TopicVectorizer(), ["C'est", "aujourd'hui", "LA"])
    words = given.fit(texts).get_feature_names_out()  # and no warning
    assert words.tolist() == ["ce", "que", "vie"]


@pytest.mark.parametrize("words", [["the"], None, "english"])
def test_stop_words_of_a_vectorizer_come_first(words):
    assert with_stop_words(CountVectorizer(stop_words=["of"]), words).stop_words == ["of"]


@pytest.mark.parametrize("words", [[1, 2], ["a", 1], ["a", None], [["a"], ["b", "c"]], np.ones(2)])
def test_stop_words_that_are_none(words):
    refused("'stop_words' parameter must be 'english'", with_stop_words, TopicVectorizer(), words)


def test_at_most_ten_thousand_words_are_remembered(monkeypatch):
    monkeypatch.setattr(module, "REMEMBERED", 3)
    _, _, vocabulary = count_words(
        TopicVectorizer(min_df=60, max_df=1.0), [*make_texts(), "sea", "sea"] * 2
    )
    assert len(vocabulary.dropped["min_df"]) == 3 < vocabulary.n_dropped["min_df"]


@pytest.mark.filterwarnings("ignore:The parameter 'token_pattern' will not be used")
def test_functions_of_the_users_own():
    with pytest.raises(TypeError, match=r"can only concatenate str"):
        TopicVectorizer(analyzer=lambda text: text + 1).fit(["one", "two"])
    with pytest.raises(TypeError, match=r"must be a vectorizer whose words are str. Got None"):
        TopicVectorizer(analyzer=lambda text: [None]).fit(["one", "two"])
    for given in ({"analyzer": str.split}, {"tokenizer": str.split, "token_pattern": None}):
        words = TopicVectorizer(min_df=1, **given).fit(["a b", "b c"])
        assert words.get_feature_names_out().tolist() == ["a", "b", "c"]


PAGES = {
    '<p style="color: red">Planets and <b>comets</b></p>': "planets and comets",
    "<a href='x'\n title=\"more > a\"\n class=link>moon</a><br/>orbit<BR />sky": "moon orbit sky",
    "inter<b>national</b> <i>bread</i>butter": "international breadbutter",
    "<li>one</li><li>two</li><td>three</td>": "one two three",
    "sugar < salt and honey > syrup": "sugar salt and honey syrup",
    "if x <y and z> then <john@example.org> wrote": "if and then john example org wrote",
    "3<b and c>d plums": "and plums",
    "<script>var tracker = '<b>no</b>'; if (a < 3) { b > 2 }</script>moon": "moon",
    "<STYLE>p { margin: 0 }</STYLE ><!-- a > b <i>todo</i> -->moon": "moon",
    "moon<!-- first\nsecond -->orbit<!doctype html>sky": "moon orbit sky",
    "caf&eacute; M&uuml;nchen cr&#232;me &#353;koda": "café münchen crème škoda",
    "planets&nbsp moon&amp;nbsp;sun &amp;amp; &amp;mdash; sky&nbsp": "planets moon sun sky",
    "bread&NonBreakingSpace;butter &amp;quot;toast&amp;quot; jam": "bread butter toast jam",
    "text <![CDATA[moon <b>sun</b>]]> end": "text moon sun end",
    "&lt;p&gt;bread &lt;br&gt; butter&lt;/p&gt;": "bread butter",
    "Привет<br>мир &laquo;слово&raquo;": "привет мир слово",
    "<p>星星 行星</p>": "星星 行星",
    "AT&T R&D &unknown; <unclosed moon": "at unclosed moon",
    "<custom-tag data-x='1' hidden>moon</custom-tag><o:p>sky</o:p>": "moon sky",
    "RT @me: moon https://x.org/?a=1&amp;b=2 \\alpha \\begin{x} sky": "moon sky",
    '<input type="text" disabled value="secret">moon<img alt="picture" src=x>': "moon",
}


@pytest.mark.parametrize("page", PAGES)
def test_what_a_reader_sees_is_counted(page):
    analyze = TopicVectorizer(clean=True).build_analyzer()
    assert analyze(page) == PAGES[page].split()


SIGNS = {
    "The _Nautilus_ of __Great Eastern__ and _init_": "the nautilus of great eastern and init",
    "*moon* **sun** ~sky~ new_york x_ _y": "moon sun sky new_york",
    "s\u0332t\u0332a\u0332r\u0332 s\u0336u\u0336n\u0336 за\u0301мок": "star sun замок",
    "planets\u00b9\u00b2 CO\u2082 \U0001d5ef\U0001d5f2 \ufb01nance": "planets co2 be finance",
    "we'll we\u2019ve they\u02bcre I`ll WE'VE you 're": "we we they we you",
    r"we\'ll they\\'ve don\'t go": "we they go",
    "don't isn\u2019t won\u02bct can\u2032t o'clock veil llama": "clock veil llama",
    "_I_'ll *You*'ve _they_\u2019re star": "you they star",
    "we \u2019ll they \u2019ve you \u2019re it' ll gaol' re": "we they you it gaol re",
    "it''s they''ll don''t don\\u2019t they\\u2019ll go": "it they they go",
    "don\u055at don\u275ct don\u2035t isn\x91t they\x91ll": "they",
    "ինչպե\u055eս ի\u055eնչ այո\u055c": "ինչպես ինչ այո",
    "O'zbek o\u2019zbek o`zbek o\u2018zbek yo'l": "oʻzbek oʻzbek oʻzbek oʻzbek yoʻl",
    "g'alaba bo`lgan tog`li": "gʻalaba boʻlgan togʻli",
    "O'Neil o'clock Chicago'da l'école dog's": "neil clock chicago da école dog",
    "п`ять п\u2032ять п*ять об\u00b4єкт п\u2019ять хв*ст": "пʼять пʼять пʼять обʼєкт пʼять хв ст",
    "Auf\u200clage ex\u200eam\u200bple de\u180emo n\u0334a\u034fme": "auflage example demo name",
    "می\u200cخواهم": "می\u200cخواهم",
    "ⓗⓔⓛⓛⓞ 🅷🅴🅻🅻🅾 ᴴᵉˡˡᵒ 🅐🅑 wordⓐ satʰ": "hello hello hello ab word satʰ",
    "word① wordᵃ wordª ①moon ②": "word word word moon",
    "dogsʼ ʼtwas lʼécole cʼest quʼil cʼhoar sanʼat": "dogs twas école est qu il cʼhoar sanʼat",
    "Lehrer*innen Lehrer:innen Leser_innen note:inn": "lehrerinnen lehrerinnen leserinnen note inn",
    "Sch¨onberg Dvoˇrák ˇCech Fran¸cais ¨amor¨": "schönberg dvořák čech français amor",
}


@pytest.mark.parametrize("text", SIGNS)
def test_signs_that_are_no_letters_are_no_part_of_a_word(text):
    assert TopicVectorizer().build_analyzer()(text) == SIGNS[text].split()


def test_words_with_underscores_are_told():
    vectorizer = TopicVectorizer(min_df=1, max_df=1.0).fit(["new_york _moon_", "moon"])
    assert {*vectorizer.vocabulary_} == {"new_york", "moon"}
    assert "Words with underscores (1) are" in vectorizer.dropped_.note()


NAMES = {
    r"Schr\"odinger Schr{\"o}dinger Schr\"{o}dinger": "schrödinger schrödinger schrödinger",
    r"Poincar\'e {\'E}tale \v{C}ech Erd\H os \c{c}a": "poincaré étale čech erdős ça",
    r"S\o ren {\O}rsted \L{}\'od\'z Stra{\ss}e na\"{\i}ve": "søren ørsted łódź straße naïve",
    r'Schr\\"odinger \dj or\dj e {\th}orn {\TH}orn': "schrödinger đorđe þorn þorn",
    r"G\"{\rm o}del na\text{\"i}ve Schr\\\"odinger M\"u{}ller": "gödel naïve schrödinger müller",
    r"Vi\d{\^e}t Vi\d{\^{e}}t l\'âme": "việt việt âme",
    r"don\'t it\'s \"over\" and \"Over\" \alpha \beta x": "it over and over",
}


@pytest.mark.parametrize("text", NAMES)
def test_accents_of_latex_are_letters(text):
    assert TopicVectorizer(clean=True).build_analyzer()(text) == NAMES[text].split()


def test_a_long_text_may_have_many_accents():  # minutes, if all letters before each were copied
    text = cleaned(r"Schr\"odinger and the G\"odel number " * 200_000)
    assert text == "Schrödinger and the Gödel number " * 200_000


OPEN = {"<!-- menu ": "", "<script>": "", "<!doctype ": "planets", '<a href="': "planets"}


@pytest.mark.parametrize("start", OPEN)
def test_a_long_page_may_have_what_does_not_end(start):  # minutes, if its parts were read again
    page = "<p>stars</p>" + start + '<tr class="row"><td>planets</td></tr> ' * 50_000
    assert {*cleaned(page).split()} >= {"stars"} | {*OPEN[start].split()}
    assert ("planets" in cleaned(page)) == bool(OPEN[start])


TWEETS = [
    "RT @nasa: the <b>launch</b> &amp; the landing https://t.co/x1",
    "rt @esa a launch of the rocket www.esa.int/rocket &#39;now&#39;",
    r"We prove \begin{equation} \alpha + \beta \end{equation}, and write to a@b.org",
]


def test_links_names_entities_and_commands_can_be_taken_out():
    vectorizer = TopicVectorizer(min_df=1, max_df=1.0, clean=True).fit(TWEETS)
    words = set(vectorizer.get_feature_names_out())
    assert {"launch", "landing", "rocket", "now", "prove", "org"} <= words
    gone = {"https", "co", "www", "esa", "nasa", "rt", "amp", "alpha", "begin", "equation"}
    assert not gone & words
    found = {"tags": 2, "links": 2, "retweets": 2, "mentions": 2, "entities": 3, "commands": 4}
    assert vectorizer.dropped_.cleaned == found
    taken = "tags (2), retweets (2), mentions (2), entities (3), links (2), commands (4)"
    assert f" clean: {taken} were removed." in vectorizer.dropped_.note()
    as_it_is = TopicVectorizer(min_df=1, max_df=1.0).fit(TWEETS)
    assert gone <= {*as_it_is.get_feature_names_out()} and as_it_is.dropped_.cleaned is None
    own = TopicVectorizer(min_df=1, max_df=1.0, clean=True, preprocessor=str.upper)
    assert "LAUNCH" in own.fit(TWEETS).vocabulary_ and "AMP" not in own.vocabulary_


def test_repeated_documents_are_counted():
    texts = ["a star", "a planet", "a star", "a star", "A star"]
    note = TopicVectorizer().fit(texts).dropped_.note()
    assert " 2 documents repeat an earlier document exactly." in note
    assert "repeat" not in TopicVectorizer().fit(["a star", "a planet"]).dropped_.note()


def test_stop_words_of_a_language():
    package = pytest.importorskip("stop_words")
    words = with_stop_words(TopicVectorizer(), "german").stop_words
    assert set(package.get_stop_words("german")) <= set(words) and "nicht" in words
    assert {*LANGUAGES} <= {*package.AVAILABLE_LANGUAGES}
    with pytest.raises(ValueError, match=r"'stop_words' .* 'german'.* Got 'klingon'"):
        with_stop_words(TopicVectorizer(), "klingon")


def test_a_frequent_word_of_short_texts_may_be_their_subject():
    texts = [f"illegal w{n % 7}" if n % 5 < 2 else f"w{n % 7}" for n in range(300)]
    assert "illegal" in TopicVectorizer().fit(texts).vocabulary_  # in 120 of 300 texts
    long = TopicVectorizer().fit([" ".join([text] * 30) for text in texts])
    assert long.dropped_.dropped["max_df"] == ["illegal"] and long.dropped_.limits["max_df"] == 60
    most = [f"illegal {text}" if n % 5 == 2 else text for n, text in enumerate(texts)]
    assert TopicVectorizer().fit(most).dropped_.dropped["max_df"] == ["illegal"]  # in 180
