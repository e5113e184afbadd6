"""Tables for a paper, and the paragraph on methods, each sentence of which is true."""

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import NMF

import annealvi
from annealvi import (
    Annealed,
    TemperedLDA,
    TemperedMultinomialMixture,
    TopicModel,
    Variational,
)
from annealvi.exceptions import BadParameter
from annealvi.topics import TopicVectorizer, describe, merge_topics, refine_topics, write_table
from tests.asserts import refused
from tests.marks import cases
from tests.topics.corpus import make_texts
from tests.topics.models import fitted

TEXTS = make_texts(60)
TEXTS[0] += " zebra"  # too rare


@pytest.fixture(scope="module")
def model():
    return TopicModel(3, random_state=7).fit(TEXTS)


@pytest.fixture(scope="module")
def summary(model):
    return describe(model, TEXTS)


def test_a_csv_file_has_all_digits(summary, tmp_path):
    path = tmp_path / "topics.csv"
    write_table(summary.table, path)
    pd.testing.assert_frame_equal(pd.read_csv(path, index_col="topic"), summary.table)
    groups = np.array(["a", "b"])[np.arange(60) % 2]
    write_table(summary.by_group(groups), path)
    found = pd.read_csv(path, index_col="group")
    pd.testing.assert_frame_equal(found, summary.by_group(groups), check_index_type=False)


def test_a_tex_file_is_a_tabular_of_booktabs(tmp_path):
    columns = {
        "a_b": ["R & D", "50% of $x^2$", None],
        "n": [1, -2, 3],
        "x": [0.0123, -1234.5, np.nan],
        "share": [0.0123, 0.5, -0.1],
        "day": pd.to_datetime(["2020-01-31", "2020-02-29", "2020-03-31"]),
        "words": ["w" * 50, "{\\~}", "<|>"],
    }
    write_table(pd.DataFrame(columns), tmp_path / "t.tex")
    lines = (tmp_path / "t.tex").read_text(encoding="utf-8").splitlines()
    assert lines == [
        r"\begin{tabular}{lrrrlp{0.4\linewidth}}",
        r"\toprule",
        r"a\_b & n & x & share & day & words \\",
        r"\midrule",
        rf"R \& D & 1 & 0.01 & 0.012 & 2020-01-31 & {'w' * 50} \\",
        r"50\% of \$x\textasciicircum{}2\$ & -2 & $-1{,}234.50$ & 0.500 & 2020-02-29 & "
        r"\{\textbackslash{}\textasciitilde{}\} \\",
        r" & 3 &  & $-0.100$ & 2020-03-31 & \textless{}\textbar{}\textgreater{} \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


def test_missing_values_of_every_kind_are_empty_cells(tmp_path):
    kinds = {"Int64": [7, None], "Float64": [0.5, None], "boolean": [True, None]}
    columns = {kind: pd.array(values, dtype=kind) for kind, values in kinds.items()}
    columns |= {"string": pd.array(["a", None], dtype="string"), "nothing": [np.nan, np.nan]}
    columns["time"] = pd.to_datetime(["2020-01-31", None])
    write_table(pd.DataFrame(columns), tmp_path / "t.tex")
    lines = (tmp_path / "t.tex").read_text(encoding="utf-8").splitlines()
    assert lines[4:6] == [r"7 & 0.500 & True & a &  & 2020-01-31 \\", r" &  &  &  &  &  \\"]


def test_the_index_is_written_unless_it_only_counts(tmp_path):
    frame, path = pd.DataFrame({"x": [1, 2]}, index=["a", "b"]), tmp_path / "t.csv"
    write_table(frame, str(path))
    assert path.read_text() in (",x\na,1\nb,2\n", '"",x\na,1\nb,2\n')
    two = frame.set_axis(pd.MultiIndex.from_tuples([(1, "a"), (1, "b")], names=["topic", "term"]))
    counted = frame.reset_index(drop=True)
    for table, text in ((two, "topic,term,x\n1,a,1\n1,b,2\n"), (counted, "x\n1\n2\n")):
        write_table(table, path)
        assert path.read_text() == text


def test_a_long_table_continues_on_the_next_page(tmp_path):
    for n, name in ((40, "tabular"), (41, "longtable")):
        write_table(pd.DataFrame({"x": range(n)}), tmp_path / "t.tex")
        lines = (tmp_path / "t.tex").read_text().splitlines()
        assert [lines[0], lines[-1]] == [rf"\begin{{{name}}}{{r}}", rf"\end{{{name}}}"]
        assert lines[3].endswith(r"\endhead") == (n > 40)


def test_bad_tables(tmp_path):
    frame = pd.DataFrame({"group": [1]}, index=pd.Index(["a"], name="group"))
    message = "index has a different name than each column. Got 'group'"
    refused(message, write_table, frame, tmp_path / "t.csv", error=BadParameter)
    refused("'frame'.*a pandas DataFrame", write_table, [1], tmp_path / "t.csv", error=BadParameter)
    for path in (tmp_path / "t.xlsx", tmp_path / "csv", 3):
        refused("'path'", write_table, pd.DataFrame(), path, error=BadParameter)
    assert not list(tmp_path.iterdir())


def test_the_paragraph_has_the_numbers_of_the_fit(model, summary):
    paragraph, references = summary.methods().split("\n\n")
    lda, words = model.lda_, int(summary.lengths.sum())
    for part in (
        f"with 3 topics over {len(model.feature_names_)} words.",
        "These words were excluded: 1 in fewer than 2 documents.",
        " stop words were excluded, which are on the English list of scikit-learn, without words "
        "such as system and interest. The vocabulary was learned from 60 documents.",
        f"prior of the topics of a document is {lda.doc_topic_prior_:.3g}.",
        f"annealed from the temperature {lda.temperature_path_.max():.3g} to 1 (Mandt et al. 2016)",
        f"The topics of {lda.settings_['n_init']} runs were merged",
        "The random seed was 7.",
        f"on 60 documents. Of these, 60 contain words of the vocabulary, with {words} words",
        f"coherence of topics in these documents is {summary.quality['coherence']:.2f} (NPMI",
        f"is at least 0.5 for {(summary.probability >= 0.5).sum()} of the 3 topics.",
        f"with annealvi {annealvi.__version__}. The checksum of the topics is {summary.checksum}.",
    ):
        assert part in paragraph, part
    assert "Latent Dirichlet allocation. Journal" in references
    assert "Abrol" in references.split("tempering")[0]  # an author of the paper on tempering
    assert "Deterministic" not in references and "Minka" not in references


@cases(
    "parameters, there, not_there",
    ({"temperature": 1, "n_init": 1}, "made by variational inference. The random", "temperature"),
    ({"temperature": 2.5}, "at the temperature 2.5 (Mandt", "annealed from"),
    ({"temperature": Annealed(3.0, form="posterior")}, "from the temperature 3", "Mandt et al"),
    ({"doc_topic_prior": "learn"}, "learned from the data (Minka 2000)", "Dirichlet prior of d"),
    ({"n_init": 2, "doc_topic_prior": "learn"}, "The best of 2 runs was kept.", "merged"),
    ({"learning_method": "online", "batch_size": 20}, "Each step used 20 documents.", "stop words"),
    ({"random_state": None}, "No random seed was set.", "The random seed was"),
    ({"temperature": Variational(t_max=3, grid=5)}, "learned from the data (Mandt", "annealed fr"),
)
@pytest.mark.filterwarnings("ignore:The learned temperature did not cool")  # in so few passes
def test_other_fits(parameters, there, not_there):
    X = fitted()[1]
    lda = TemperedLDA(4, **{"max_iter": 4, "random_state": 0, **parameters}).fit(X)
    paragraph = describe(lda, X).methods().split("\n\n")[0]
    assert there in paragraph and not_there not in paragraph


def test_a_second_fit_and_documents_that_were_held_out(model, summary):
    other = TopicModel(3, random_state=8).fit(TEXTS)
    more = describe(model, TEXTS, other=other, held_out=TEXTS[:20])
    text = more.methods()
    assert f"of two fits is {more.quality['stability']:.2f}." in text
    assert f"log-likelihood of {more.quality['held_out_log_likelihood']:.3f} nats" in text
    assert "Held-out" not in summary.methods() and "two fits" not in summary.methods()


def test_how_edited_topics_were_made_is_not_made_up(model):
    for edited in (merge_topics(model, [[0, 1]]), refine_topics(model, TEXTS, max_iter=1)):
        text = describe(edited, TEXTS).methods()
        assert "not come from a single fit. Describe here" in text
        assert "runs" not in text and "The random seed" not in text and "annealed from" not in text
    streamed = TopicModel(3, lda=TemperedLDA(total_samples=60)).partial_fit(TEXTS)
    assert "not come from a single fit. Describe here" in describe(streamed, TEXTS).methods()


def test_a_model_of_another_library():
    X = fitted()[1]
    text = describe(NMF(3, random_state=0, max_iter=500).fit(X), X).methods()
    assert text.startswith("The model is NMF with 3 topics over 60 words. The topics are described")
    assert "Blei et al" not in text and "Dirichlet" not in text


LINKED = ["see https://t.co the star planet", "see https://t.co the bread butter"] * 15


@pytest.mark.parametrize(
    "options, listed",
    [
        ({}, "2 stop words were excluded, which are on the English list of scikit-learn, without"),
        (
            {"stop_words": ["the"]},
            "1 stop words were excluded, which are on a list that was passed",
        ),
        ({"vectorizer__stop_words": ["the"]}, "which are on a list that was passed"),
        ({"vectorizer__stop_words": "english"}, "on the English list of scikit-learn. The texts"),
        ({"single_topic": True}, "2 stop words were excluded, which are on the English list"),
        ({"vectorizer__tokenizer": str.split}, "split into words by the function split."),
        ({"vectorizer__phrases": True}, "Phrases (0) are counted as words."),
        (
            {"stop_words": "de,english"},
            "the German list of the Python package stop-words and the",
        ),
    ],
)
def test_the_paragraph_names_the_stop_words_and_the_cleaning(options, listed):
    model = TopicModel(2, vectorizer=TopicVectorizer(clean=True), random_state=0)
    if "german" in listed.lower():
        pytest.importorskip("stop_words")
    text = model.set_params(**options).fit(LINKED).describe(LINKED).methods()
    assert "The texts were cleaned: links (30) were removed." in text
    assert listed in text


def test_the_paragraph_does_not_name_a_list_that_was_set_after_the_fit():
    model = TopicModel(2, stop_words=["the"], random_state=0).fit(LINKED)
    text = model.set_params(stop_words="klingon").describe(LINKED).methods()
    assert "stop words were excluded, which are on a list that was passed." in text


def test_the_paragraph_on_a_mixture():
    X = np.array([[3, 1, 0, 0], [0, 0, 2, 2]] * 15)
    mixture = TemperedMultinomialMixture(2, word_prior=0.2, random_state=7).fit(X)
    text = describe(mixture, X).methods()
    assert "The model is a mixture of multinomials (Nigam et al. 2000) with 2 topics" in text
    assert "add 1 to the number of documents of a topic, and 0.2 to the count" in text
    assert "annealed from the temperature 3 to 1 (Mandt et al. 2016). The random seed was 7" in text
    assert "K. Nigam, A. McCallum" in text and "Blei et al. 2003" not in text
    model = TopicModel(2, random_state=3).fit(LINKED)
    text = model.describe(LINKED).methods()
    assert "No random seed" not in text
    assert "Each document was assigned to one topic by a mixture of multinomials (Nigam" in text
