"""The recipes of docs/do/coming_from.md run, each where its library is installed."""

import gzip
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer

from tests.marks import cases, slow_values

PAGE = Path(__file__).resolve().parents[2] / "docs" / "do" / "coming_from.md"
TEXT = PAGE.read_text(encoding="utf-8")
SECTIONS = dict(section.split("\n", 1) for section in TEXT.split("\n## ")[1:])
LIBRARIES = r"^(?:from|import) (bertopic|gensim|tomotopy|pyLDAvis|topicwizard)"
STATE = """#doc source pos typeindex type topic
#alpha : 0.1 0.1
#beta : 0.01
0 NA 0 0 star 0
0 NA 1 1 field 0
1 NA 0 2 gene 1
"""


def blocks(text):
    return re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)


def agree(found, expected):
    assert np.abs(found - expected).mean() < 0.02
    assert np.mean(found.argmax(axis=1) == expected.argmax(axis=1)) > 0.95


def check_gensim(made):
    assert (made["back"].data != made["X"]).nnz == 0
    theirs = made["theirs"]
    shares = [[b for _, b in theirs.get_document_topics(d, 0.0)] for d in made["corpus"]]
    agree(made["shares"], np.array(shares))


def check_bertopic(made):
    """Each line of the table's second column runs."""
    made["vectorizer"] = CountVectorizer()
    ours = re.findall(r"^\| .+ \| `([^`]+)` \|$", SECTIONS["BERTopic"], flags=re.MULTILINE)
    assert ours
    for line in ours:
        exec(compile(line, PAGE.name, "exec"), made)
    assert made["topics"].shape == (300,)


def check_table(name, n_lines):
    """A check that all code in the last column of the section's table runs."""

    def check(made):
        rows = re.findall(r"^\| .+ \| (.+) \|$", SECTIONS[name], flags=re.MULTILINE)
        lines = [line for row in rows for line in re.findall(r"`([^`]+)`", row)]
        assert len(lines) == n_lines
        for line in lines:
            eval(compile(line, PAGE.name, "eval"), made)

    return check


def holds(text):
    """A check that a line of Python is true of what the recipe made."""

    def check(made):
        assert eval(text, made), text

    return check


CHECKS = {
    "scikit-learn": holds("difference < 1e-6"),
    "gensim": check_gensim,
    "tomotopy": lambda made: agree(
        made["shares"], np.array([doc.get_topic_dist() for doc in made["theirs"].docs])
    ),
    "MALLET": lambda made: agree(made["shares"], made["state"].doc_topic),
    "R's stm": check_table("R's stm", 26),
    "keyATM": check_table("keyATM", 6),
    "BERTopic": check_bertopic,
    "BERTopic's clusters by our topics": holds(
        "len(clusters) == summary.by_group(clusters)['n_documents'].sum() == 300"
    ),
    "UCI and LDA-C": holds(
        "kos.data.toarray().tolist() == ap.data.toarray().tolist() == [[4, 0, 1], [0, 5, 0]]"
        " and model.counts(['star, gene']).toarray().tolist() == [[1, 1, 0]]"
    ),
    "pyLDAvis": holds("len(prepared.topic_coordinates) == 5"),
    "topicwizard": holds("data['topic_term_matrix'].shape[0] == 5 and figure.data"),
}
FAST = ["MALLET", "UCI and LDA-C"]


@pytest.mark.filterwarnings("ignore")  # those of the other libraries
@cases("name", *FAST, *slow_values(*(name for name in CHECKS if name not in FAST)))
def test_recipes(name, tmp_path, monkeypatch):
    assert list(SECTIONS) == list(CHECKS)
    text = SECTIONS[name]
    for library in set(re.findall(LIBRARIES, text, flags=re.MULTILINE)):
        pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)
    Path("state.gz").write_bytes(gzip.compress(STATE.encode()))
    Path("docword.kos.txt.gz").write_bytes(gzip.compress(b"2\n3\n3\n1 1 4\n1 3 1\n2 2 5\n"))
    Path("ap.dat").write_text("2 0:4 2:1\n1 1:5\n")
    for words in ("vocab.txt", "vocab.kos.txt"):
        Path(words).write_text("star\ngene\nfield\n")
    made = {}
    for block in blocks(TEXT)[:1] + blocks(text):
        exec(compile(block, PAGE.name, "exec"), made)
    CHECKS[name](made)
