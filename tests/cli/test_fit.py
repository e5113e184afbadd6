"""``annealvi fit``: from files to topics, a model and a report."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

import annealvi
from annealvi.cli import fit as module

from .conftest import TOPICS


def topics_of(out):
    """Words of each printed topic."""
    return [set(line.split()[2:]) for line in out.splitlines()[1:]]


def planted(out):
    return sorted(map(sorted, topics_of(out))) == sorted(map(sorted, TOPICS.values()))


def test_texts_of_every_kind_give_the_same_topics(call, jsonl, table, folder, tmp_path, rows):
    lines = tmp_path / "lines.txt"
    lines.write_text("\n".join(row["text"] for row in rows), encoding="utf-8")
    outs = [
        call("fit", path, "--topics", 3, "--words", 6) for path in (jsonl, table, folder, lines)
    ]
    for done in outs:
        assert done.status == 0, done.err
        assert planted(done.out)
        assert "read 36 documents" in done.err
        assert "18 words of 36 documents are counted" in done.err
        assert re.search(r"fitted 3 topics: bound -\d\.\d{3} nats a word", done.err)
    assert outs[0].out == outs[1].out == outs[3].out
    assert not list(outs[0].place.iterdir())


def test_columns_are_joined(call, table, jsonl):
    one = call("fit", table, "--text", "title", "--text", "text", "--topics", 3, "--model", "m")
    assert one.status == 0
    model = annealvi.load("m")
    assert "star" in model.feature_names_
    assert model.counts(["star\nstar"]).sum() == 2
    # each title repeats a word of its text
    two = call("fit", jsonl, "--topics", 3)
    assert one.out != two.out


def test_the_model_is_that_of_the_library(call, jsonl, rows):
    done = call("fit", jsonl, "--topics", 3, "--model", "topics.safetensors", "--random-state", 5)
    assert "wrote topics.safetensors (" in done.err
    model = annealvi.TopicModel.load("topics.safetensors")
    texts = [row["text"] for row in rows]
    expected = annealvi.TopicModel(3, random_state=5).fit(texts)
    np.testing.assert_array_equal(model.components_, expected.components_)
    np.testing.assert_array_equal(model.transform(texts), expected.transform(texts))
    assert model.vocabulary_note_ == expected.vocabulary_note_


def test_the_report(call, jsonl):
    pytest.importorskip("pandas")
    pytest.importorskip("plotly")
    columns = ("--time", "date", "--class", "kind")
    done = call("fit", jsonl, "--topics", 3, *columns, "--second-fit", "--report", "topics.html")
    assert done.status == 0, done.err
    page = (done.place / "topics.html").read_text(encoding="utf-8")
    assert "Topics of papers.jsonl" in page
    for section in ("time", "groups", "stability", "fit"):
        assert f'id="{section}"' in page
    assert "On planet" in page or "On star" in page  # titles
    assert [path.name for path in done.place.iterdir()] == ["topics.html"]


def test_a_number_of_topics_that_is_chosen(call, jsonl, monkeypatch):
    def choose(X, lda):
        assert X.shape == (36, 18) and lda.random_state == 4
        return SimpleNamespace(recommended=3, rule="three are best.")

    monkeypatch.setattr(module, "choose_for", choose)
    done = call("fit", jsonl, "--topics", "auto", "--random-state", 4, "--words", 6)
    assert "chose 3 topics: three are best." in done.err and planted(done.out)


def test_words(call, jsonl, tmp_path):
    stop = tmp_path / "stop.txt"
    stop.write_text("star\nbread\nship\n", encoding="utf-8")
    done = call("fit", jsonl, "--topics", 3, "--words", 6, "--stop-words", stop)
    assert set.union(*topics_of(done.out)) == {
        word for words in TOPICS.values() for word in words
    } - {"star", "bread", "ship"}
    assert "20 words" not in call("fit", jsonl, "--topics", 3, "--stop-words", "none").err
    few = call("fit", jsonl, "--topics", 2, "--min-df", 12)
    assert "are in fewer than 12" in few.err


def test_quiet_says_nothing(call, jsonl):
    done = call("fit", jsonl, "--topics", 3, "--quiet")
    assert (
        done.status == 0
        and not done.err
        and planted(call("fit", jsonl, "--topics", 3, "--words", 6).out)
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--report", "no/topics.html"], "--report: there is no folder 'no'"),
        (["--report", "topics.pdf"], "--report: 'topics.pdf' must end in .html: it is a page"),
        (["--model", "."], "--model: '.' must be a file, and is a folder"),
        (["--report", "x", "--model", "x"], "must be two files. Got 'x' twice"),
        (["--time", "date"], "--time is for the report: name its file by --report"),
        (["--second-fit"], "--second-fit is for the report"),
        (["--topics", "19"], "more topics than words, 19 and 18"),
        (["--topics", "0"], "--topics: must be a whole number, at least 1, got '0'"),
        (["--min-df", "x"], "--min-df: must be a number of documents, such as 5, or a share"),
        (["--min-df", "12", "--max-df", "5"], "max_df corresponds to < documents than min_df"),
        (["--min-df", "0.9", "--max-df", "0.95"], "Give a smaller --min-df or a larger --max-df."),
        (
            ["--stop-words", "german"],
            "--stop-words must be english, none, or a file with a word on each line. "
            "There is no file 'german'.",
        ),
        (["--vocabulary", "x"], "--vocabulary is for counts of words"),
        (["--files", "*.txt"], "--files is for folders"),
        (["--topics", "3", "--jobs", "0"], "--jobs must be -1 or at least 1"),
    ],
)
def test_wrong_options(refused, jsonl, options, words):
    assert words in refused("fit", jsonl, *options)


def test_the_model_would_replace_the_documents(refused, jsonl):
    before = jsonl.read_bytes()
    assert "is the file of the documents" in refused("fit", jsonl, "--model", jsonl)
    assert jsonl.read_bytes() == before


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--time", "title"], "--time: 'title' must hold datetimes"),
        (["--time", "date", "--freq", "fortnight"], "--freq must be a period by a name of pandas"),
        (["--class", "id"], "--class id: a report can show from 1 to 20 classes. Got 36"),
    ],
)
def test_columns_that_the_report_cannot_show(refused, jsonl, monkeypatch, options, words):
    """They are found out before the fit."""
    pytest.importorskip("pandas")
    pytest.importorskip("plotly")
    monkeypatch.setattr(module, "MOST_CLASSES", 20)
    monkeypatch.setattr(module, "_fit", None)
    assert words in refused("fit", jsonl, "--topics", 3, "--report", "x.html", *options)


def test_without_the_extra(refused, jsonl, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "plotly", None)
    error = refused("fit", jsonl, "--report", "x.html")
    assert "--report needs plotly" in error and "annealvi[report]" in error


def test_an_interrupt(call, jsonl, monkeypatch):
    def stop(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "_fit", stop)
    done = call("fit", jsonl, "--topics", 3, "--model", "m")
    assert done.status == 130 and done.err.endswith("annealvi fit: interrupted\n")
    assert not list(done.place.iterdir())
