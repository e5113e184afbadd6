"""Writing systems, contractions, lists of words, and texts without words."""

import threading
import unicodedata
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer

import annealvi
from annealvi.topics import TopicModel, TopicVectorizer, choose_n_topics, refine_topics
from tests.asserts import refused
from tests.marks import cases

TOKENS = [["star", "planet", "New York"], ["bread", "butter", "c++"], ["Star", "moon", "bread"]] * 8
WRITTEN = {
    "Hindi": "रोटी दूध चीनी कटोरी हिन्दी",
    "Tamil": "தமிழ் வானம் நிலவு சூரியன் கடல்",
    "Bengali": "বাংলা আকাশ সূর্য নদী পৃথিবী",
    "Malayalam": "മലയാളം ആകാശം നദി സൂര്യൻ കടൽ",
    "Thai, split": "น้ำ ดวงอาทิตย์ ที่ดิน ภูเขา กรุงเทพ",
    "Khmer, split": "ភាសា ខ្មែរ មេឃ ទន្លេ ព្រះអាទិត្យ",
    "Burmese, split": "မြန်မာ ကောင်းကင် နေမင်း မြစ် ပင်လယ်",
    "Arabic": "كِتَابٌ مُحَمَّد مَدْرَسَة قَلَمٌ بَيْتٌ",
    "Persian, with joiners": "می\u200cخواهم کتاب\u200cها آسمان خورشید رودخانه",
    "Hebrew": "שָׁלוֹם עוֹלָם סֵפֶר מַיִם יֶלֶד",
    "Vietnamese": "tiếng việt nước trời biển",
    "Yoruba": "ọ̀rọ̀ omi òòrùn ilẹ̀ òkun",
    "Greek": "ουρανός θάλασσα ήλιος ποτάμι ψωμί",
    "Korean": "하늘 바다 태양 강물 한국어",
}


def composed(words):
    return sorted(unicodedata.normalize("NFC", word) for word in words)


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("language", WRITTEN)
def test_words_are_counted_whole(language, form):
    text = unicodedata.normalize(form, WRITTEN[language])
    vectorizer = TopicVectorizer()
    vectorizer.fit([text, unicodedata.normalize("NFC", text) + ", 12.", f"({text})"])
    assert_array_equal(composed(vectorizer.get_feature_names_out()), composed(text.split()))
    assert vectorizer.transform([text.split()[0]]).sum() == 1


def test_capitals_with_a_dot_and_soft_hyphens():
    words = TopicVectorizer().fit(["İstanbul İZMİR co\u00adoperate istanbul"])
    assert words.vocabulary_.keys() == {"istanbul", "izmir", "cooperate"}
    assert "İstanbul" in TopicVectorizer(lowercase=False).fit(["İstanbul"]).vocabulary_


CONTRACTIONS = {
    "don't won't DIDN'T star": {"star"},
    "she isn’t, they aren’t: star": {"star"},
    "we'll they've You'VE we’ll star": {"star"},
    "the donkey won a veil, said the llama": {"donkey", "won", "veil", "said", "llama"},
    "o'clock l'homme d'un rock'n'roll": {"clock", "homme", "rock", "roll"},
    "don‘t can`t mustn´t star": {"star"},
}


@pytest.mark.parametrize("text", CONTRACTIONS)
def test_no_piece_of_a_contraction_is_counted(text):
    texts = [text, "bread and butter"] * 3
    model = TopicModel(1, random_state=0).set_params(lda__max_iter=1).fit(texts)
    assert {*model.feature_names_} - {"bread", "butter", "un"} == CONTRACTIONS[text]


@pytest.mark.parametrize(
    ("text", "words"),
    {
        "м'ята п’ять мʼята 'слово'": {"мʼята", "пʼять", "слово"},  # Ukrainian
        'צה"ל צה״ל ג\'ירפה "שלום" ״שלום״': {"צה״ל", "ג׳ירפה", "שלום"},
        "o‘zbek oʻzbek ‘kitob’": {"oʻzbek", "kitob"},
        "COL·LEGI il·lusió N·m": {"col·legi", "il·lusió"},
        "كتـــاب كتاب": {"كتاب"},
        "l'eau d’accord ‘orage’": {"eau", "accord", "orage"},
        "𞤢𞤣𞤤𞤢𞤥𞥄 𞤆𞤵𞤤": {"𞤢𞤣𞤤𞤢𞤥𞥄", "𞤨𞤵𞤤"},  # Adlam, beyond U+FFFF
    }.items(),
)
def test_signs_within_words(text, words):
    assert TopicVectorizer().fit([text]).vocabulary_.keys() == words


SENTENCES = {
    "Chinese": ["我喜欢看星星和行星", "面包和黄油很好吃", "科学家发现了新的行星"],
    "Japanese": ["私は星を見るのが好きです", "パンとバターはおいしい", "新しい惑星を発見した"],
    "Thai": ["ฉันชอบดูดาวบนท้องฟ้า", "ขนมปังกับเนยอร่อยมาก", "นักวิทยาศาสตร์พบดาวเคราะห์"],
    "Khmer": ["ខ្ញុំចូលចិត្តមើលផ្កាយនៅលើមេឃ", "នំប៉័ងនិងប៊ឺឆ្ងាញ់ណាស់", "អ្នកវិទ្យាសាស្ត្របានរកឃើញភពថ្មី"],
    "short Chinese": ["很好吃，味道不错。", "天空很美", "我喜歡看星星"],
    "Lao": ["ພວກເຮົາມັກເບິ່ງດາວ", "ເຂົ້າຈີ່ແລະເນີຍແຊບ"],
    "Burmese": ["ကျွန်တော်ကြယ်တွေကိုကြည့်ရတာကြိုက်တယ်", "ပေါင်မုန့်နဲ့ထောပတ်ကအရမ်းအရသာရှိတယ်"],
    "Chinese beside English": ["stars and planets", "我喜欢看星星和行星", "bread with butter"],
}


@pytest.mark.parametrize("language", SENTENCES)
def test_sentences_without_spaces_are_told(language):
    with pytest.warns(UserWarning, match=r"no\s+spaces, so .*tokenizer"):
        TopicVectorizer().fit(SENTENCES[language] * 4)


@cases("text", "我 喜欢 看 星星 和 行星", "ฉัน ชอบ ดู ดาว บน ท้องฟ้า", "コンピューター と 星")
def test_texts_that_are_split_are_fine(text):
    TopicVectorizer(token_pattern=r"\S+").fit([text, text])
    TopicVectorizer().fit([text, f"{text} 月亮 星空"])


class Locked:
    def __init__(self):
        self.lock = threading.RLock()

    def __call__(self, text):
        with self.lock:
            return [text[place : place + 2] for place in range(0, len(text), 2)]

    split = __call__


@pytest.mark.parametrize("kind", [TopicVectorizer, CountVectorizer])
@pytest.mark.parametrize("what", ["tokenizer", "analyzer", "method"])
def test_functions_that_cannot_be_copied(kind, what, tmp_path):
    given = {what: Locked()} if what != "method" else {"tokenizer": Locked().split}
    vectorizer = kind(**given, **({} if what == "analyzer" else {"token_pattern": None}))
    texts = ["星星行星月亮", "面包黄油牛奶"] * 6
    model = TopicModel(2, vectorizer=vectorizer, random_state=0).fit(texts)
    annealvi.save(model, tmp_path / "model")
    again = annealvi.load(tmp_path / "model", vectorizer=vectorizer)
    assert_array_equal(again.transform(texts), model.transform(texts))
    assert "星星" in model.feature_names_


def test_a_clone_has_the_same_functions():
    model = TopicModel(2, vectorizer=TopicVectorizer(tokenizer=Locked()))
    assert clone(model).vectorizer.tokenizer is model.vectorizer.tokenizer
    assert clone(model).vectorizer is not model.vectorizer


@cases("tokenizer", "jieba", lambda text: None, lambda text: text, lambda text: [1], lambda text: 3)
def test_tokenizers_return_words(tokenizer):
    wanted = "'tokenizer' parameter of .*Vectorizer must be .* a list of str"
    for kind in (TopicVectorizer, CountVectorizer):
        model = TopicModel(2, vectorizer=kind(tokenizer=tokenizer, token_pattern=None))
        refused(wanted, model.fit, ["a star", "a moon"], error=(TypeError, ValueError))


def test_lists_of_words_are_texts():
    model = TopicModel(2, random_state=0).fit(TOKENS)
    words = ["bread", "butter", "c++", "moon", "new york", "planet", "star"]
    assert_array_equal(model.feature_names_, words)
    counts = model.counts([("star", "star"), np.array(["bread"]), []])
    assert counts.sum(axis=1).ravel().tolist() == [[2, 1, 0]]
    assert len(model.describe(TOKENS).shares) == len(TOKENS)
    of_text = model.transform(["star planet new york"])
    assert model.transform(TOKENS[:1]) == pytest.approx(of_text, abs=0.2)
    assert choose_n_topics(TOKENS, [2, 3], random_state=0).recommended in (2, 3)
    message = r"'documents\[1\]\[1\]' .* must be a str. Got .*int"
    refused(message, model.fit, [["a"], ["b", 1]], error=TypeError)


@pytest.mark.parametrize("kind", [tuple, list, np.array, pd.Series, pd.Index])
def test_lists_of_words_of_any_kind(kind):
    model = TopicModel(2, random_state=0).fit(pd.Series([kind(words) for words in TOKENS]))
    assert model.counts([kind(["star", "c++"])]).sum() == 2


@pytest.mark.parametrize("kind", [set, iter, dict.fromkeys])
def test_words_without_an_order_or_a_length(kind):
    documents, message = [kind(words) for words in TOKENS], "must be a str.* document as a list"
    refused(message, TopicModel(2).fit, documents, error=TypeError)


def test_the_analyzer_of_the_user_gets_lists_of_words():
    vectorizer = CountVectorizer(analyzer=list)
    model = TopicModel(2, vectorizer=vectorizer, stop_words=None, random_state=0).fit(TOKENS)
    assert_array_equal(model.feature_names_, vectorizer.fit(TOKENS).get_feature_names_out())
    assert model.predict(TOKENS).shape == (24,)


def test_lists_of_words_in_a_stream():
    with pytest.warns(UserWarning, match="words of one document.* generator"):
        model = TopicModel(2, random_state=0).partial_fit(TOKENS)
    assert model.vocabulary_.n_documents == len(TOKENS)
    texts = [" ".join(words) for words in TOKENS]
    for blocks in ([texts, texts[:9]], (part for part in (texts, texts[:9]))):
        assert TopicModel(2, random_state=0).partial_fit(blocks).vocabulary_.n_documents == 33
    refused("generator of lists", TopicModel(2).partial_fit, iter(TOKENS[1:]))
    mixed = [["star", "a long text", "the moon"], ["bread", "butter", "jam"]] * 5
    refused("generator of lists", TopicModel(2).partial_fit, mixed)


def test_texts_without_words_are_told_wherever_they_come_in():
    texts = ["stars planets moon", "bread butter jam"] * 7 + ["123", "the of", ""]
    empty = r"3 of the 17 texts contain no word .* \(positions 14, 15, 16, counted from 0\)"
    model = TopicModel(2, random_state=0)
    names = ("fit", "fit_transform", "transform", "predict", "score", "describe", "partial_fit")
    for method in (
        *(getattr(model, name) for name in names),
        partial(refine_topics, model),
        lambda texts: choose_n_topics(texts, [2, 3], random_state=0),
        lambda texts: TopicModel(1).fit_counts(model.counts(texts), model.feature_names_),
    ):
        with pytest.warns(UserWarning, match=empty) as told:
            method(texts)
        assert [warning.filename for warning in told] == [__file__]


def test_stop_words_of_the_texts_are_shown():
    texts = ["the fire burned down the forest", "a fire in the system", "rain on the bill"] * 8
    model = TopicModel(2, random_state=0).fit(texts)
    assert {"fire", "system", "bill"} <= {*model.feature_names_}
    assert model.dropped_words_["stop_words"] == ["the", "down", "in", "on"]
    assert not model.dropped_words_["min_df"] and not model.dropped_words_["max_df"]
    stop_words = "stop_words: 4 words are on the list of stop words (the, down, in, on)."
    assert f" words of 24 documents are counted. {stop_words}" in model.vocabulary_note_


def test_a_loaded_model_keeps_its_pattern(tmp_path):
    annealvi.save(TopicModel(2, random_state=0).fit(TOKENS), tmp_path / "model")
    pattern = annealvi.load(tmp_path / "model").vectorizer_.token_pattern
    assert pattern != "auto"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TopicVectorizer(token_pattern=pattern).fit(["रोटी दूध"])


def test_texts_of_numbers_and_limits_that_contradict():
    numbers = [*map(str, range(24))]
    refused("empty vocabulary: the 24 texts, such as '0'", TopicModel(2).fit, numbers)
    model = TopicModel(2, vectorizer=TopicVectorizer(min_df=20, max_df=0.5))
    refused(
        r"at most 12 of 24 texts \(max_df=0.5\) and at least 20 \(min_df=20\)",
        model.fit,
        ["a star"] * 24,
    )
