"""``annealvi fit``: from files to topics, a model and a report."""

import json
import re
import sys
import warnings
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from scipy import sparse

import annealvi
from annealvi.cli import fit as module
from annealvi.cli.commands import make_parser
from annealvi.topics.languages import stop_words_of
from tests.marks import cases

from .conftest import TOPICS

SEEDS = {"Meals": ["Bread", "soup"], "sailing": ["ship", "keel"]}


def topics_of(out):
    """Words of each printed topic; before them stand number, share and perhaps probability."""
    legends = ("probability:", "similarity:", "The probability")
    head, *lines = [line.split() for line in out.splitlines() if not line.startswith(legends)]
    return [set(line[head.index("words") :]) for line in lines]


def planted(out):
    return sorted(map(sorted, topics_of(out))) == sorted(map(sorted, TOPICS.values()))


def test_texts_of_every_kind_give_the_same_topics(call, jsonl, table, folder, tmp_path, rows):
    lines = tmp_path / "lines.txt"
    lines.write_text("\n".join(row["text"] for row in rows), encoding="utf-8")
    paths = (jsonl, table, folder, lines)
    outs = [call("fit", path, "--n-topics", 3, "--words", 6) for path in paths]
    for done in outs:
        assert done.status == 0, done.err
        assert planted(done.out)
        assert "read 36 documents" in done.err
        assert "18 words of 36 documents are counted" in done.err
    assert outs[0].out == outs[1].out == outs[3].out and not list(outs[0].place.iterdir())


def test_printed_shares_are_those_of_the_report(call, jsonl, rows):
    texts = [row["text"] for row in rows[:5]] * 6 + [row["text"] for row in rows[5:]]
    lines = jsonl.parent / "uneven.txt"
    lines.write_text("\n".join(texts), encoding="utf-8")
    done = call("fit", lines, "--n-topics", 4, "--model", "m", "--report", "r.html")
    model = annealvi.load("m")
    shares = model.describe(texts).topic_shares
    assert np.abs(model.components_.sum(axis=1) / model.components_.sum() - shares).max() > 1e-3
    printed = re.findall(r"^ +(\d+)[* ] +([\d.]+)%", done.out, re.MULTILINE)
    assert len(printed) == 4
    report = Path("r.html").read_text("utf-8")
    for topic, share in printed:
        assert f"{shares[int(topic)]:.1%}" == f"{share}%"
        assert re.search(rf'data-topic="{topic}">.*?<td class="number">{share}%', report)


def test_columns_are_joined(call, table, jsonl):
    one = call("fit", table, "--text", "title", "--text", "text", "--n-topics", 3, "--model", "m")
    assert one.status == 0
    model = annealvi.load("m")
    assert "star" in model.feature_names_ and model.counts(["star\nstar"]).sum() == 2
    # each title repeats a word of its text
    assert one.out != call("fit", jsonl, "--n-topics", 3).out


def test_the_model_is_that_of_the_library(call, jsonl, rows):
    done = call("fit", jsonl, "--n-topics", 3, "--model", "topics.safetensors", "--random-state", 5)
    assert "wrote topics.safetensors\n" in done.err
    model = annealvi.load("topics.safetensors")
    texts = [row["text"] for row in rows]
    expected = annealvi.TopicModel(3, random_state=5).fit(texts)
    np.testing.assert_array_equal(model.components_, expected.components_)
    np.testing.assert_array_equal(model.transform(texts), expected.transform(texts))
    assert model.vocabulary_note_ == expected.vocabulary_note_


@pytest.mark.parametrize("kind", ["json", "file"])
def test_seed_words(call, jsonl, rows, tmp_path, kind):
    given = json.dumps(SEEDS)
    if kind == "file":
        (tmp_path / "seeds.json").write_text(given, encoding="utf-8")
        given = tmp_path / "seeds.json"
    options = ("--n-topics", 3, "--random-state", 5, "--max-df", 0.5)
    done = call("fit", jsonl, *options, "--seed-words", given, "--model", "m")
    assert done.status == 0, done.err
    assert (
        "annealvi fit: warning: 1 seed words are not in the vocabulary and have no effect: "
        in done.err
    )
    assert re.search(r"^ +0 .*  Meals: .*bread", done.out, re.MULTILINE)
    assert re.search(r"^ +1 .*  sailing: .*ship", done.out, re.MULTILINE)
    model, texts = annealvi.load("m"), [row["text"] for row in rows]
    expected = annealvi.TopicModel(3, random_state=5, seed_words=SEEDS)
    expected.set_params(vectorizer__max_df=0.5)
    with pytest.warns(UserWarning, match="1 seed words are not"):
        expected.fit(texts)
    np.testing.assert_array_equal(model.components_, expected.components_)
    assert model.seed_topics_ == expected.seed_topics_ == {"Meals": 0, "sailing": 1}
    assert model.seed_words == SEEDS and model.lda.topic_word_prior is None
    assert "0: Meals (" in call("show", done.place / "m", "--topic", 0).out
    assert ",0,Meals,0." in call("label", done.place / "m", jsonl).out


@pytest.mark.slow
def test_seed_words_and_a_number_that_is_chosen(call, jsonl):
    seeds = json.dumps({word: [word] for words in TOPICS.values() for word in words[:2]})
    options = ("--seed-words", seeds, "--second-fit", "--report", "r")
    done = call("fit", jsonl, "--n-topics", "auto", *options)
    assert done.status == 0 and "6 topics were chosen" in done.err


def test_stability_of_a_number_that_is_chosen(call, jsonl, rows, tmp_path):
    counts, words = tmp_path / "counts.npz", sorted(set().union(*TOPICS.values()))
    X = [[row["text"].split().count(word) for word in words] for row in rows]
    sparse.save_npz(counts, sparse.csr_matrix(X))
    (tmp_path / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    for path in (counts, jsonl):
        done = call("fit", path, "--n-topics", "auto", "--model", "m")
        head, *lines = [line.split() for line in done.out.splitlines()]
        assert head[:4] == ["topic", "share", "probability", "similarity"]
        similarity = annealvi.load(done.place / "m").topic_similarity_
        for line in lines[: similarity.shape[1]]:
            topic = int(line[0].rstrip("*"))
            assert float(line[3]) == pytest.approx(np.median(similarity[:, topic]), abs=0.006)


def test_seed_words_of_counts(call, refused, tmp_path):
    counts = tmp_path / "counts.npz"
    sparse.save_npz(counts, sparse.csr_matrix(np.tile([[3, 1, 0], [0, 1, 3]], (20, 1))))
    seeds = ("--n-topics", 2, "--seed-words", '{"last": ["sail"]}')
    assert "contains no words, so --seed-words needs --vocabulary" in refused("fit", counts, *seeds)
    (tmp_path / "vocab.txt").write_text("bread\nand\nsail\n", encoding="utf-8")
    printed = call("fit", counts, *seeds).out
    assert re.search(r"^ +0 .*  last: sail", printed, re.MULTILINE)
    # seed words allow only one run
    assert "The probability that a new fit finds a topic is unknown" in printed


@cases(
    "seeds, words",
    ("nowhere.json", "'nowhere.json': No such file"),
    ("{", "--seed-words must be JSON, such as"),
    ('{"sea": "ship"}', "a dict of names to lists of words, .* Got {'sea': 'ship'}"),
    ('{"a": ["keel", "mast"]}', "at least one word of the corpus for each topic"),
    ('{"a": ["star"], "b": ["moon"], "c": ["ship"]}', "at most .* Got 3"),
)
def test_wrong_seed_words(refused, jsonl, seeds, words):
    pattern = ".*".join(re.escape(part) for part in words.split(".*"))
    assert re.search(pattern, refused("fit", jsonl, "--n-topics", 2, "--seed-words", seeds))


def test_the_report(call, jsonl):
    pytest.importorskip("pandas")
    pytest.importorskip("plotly")
    columns = ("--time", "date", "--group", "kind")
    done = call("fit", jsonl, "--n-topics", 3, *columns, "--second-fit", "--report", "topics.html")
    assert done.status == 0, done.err
    page = (done.place / "topics.html").read_text(encoding="utf-8")
    assert "Topics of papers.jsonl" in page
    for section in ("time", "groups", "stability", "fit"):
        assert f'id="{section}"' in page
    assert "On planet" in page or "On star" in page  # titles
    assert [path.name for path in done.place.iterdir()] == ["topics.html"]


def test_words(call, jsonl, tmp_path):
    stop = tmp_path / "stop.txt"
    stop.write_text("star\nbread\nship\n", encoding="utf-8")
    done = call("fit", jsonl, "--n-topics", 3, "--words", 6, "--stop-words", stop)
    words = {word for words in TOPICS.values() for word in words}
    assert set.union(*topics_of(done.out)) == words - {"star", "bread", "ship"}
    assert "20 words" not in call("fit", jsonl, "--n-topics", 3, "--stop-words", "none").err
    assert (
        "are in fewer than 12 documents" in call("fit", jsonl, "--n-topics", 2, "--min-df", 12).err
    )


def test_texts_are_cleaned_and_stop_words_are_those_of_a_language(call, rows, tmp_path):
    lines = tmp_path / "tweets.txt"
    texts = [f"RT @me: {row['text']} &amp; nicht https://t.co" for row in rows]
    lines.write_text("\n".join(texts), encoding="utf-8")
    options = ["fit", lines, "--n-topics", 3, "--words", 6, "--max-df", "1.0", "--min-df", 1]
    assert "clean:" not in call(*options).err
    found = "retweets (36), mentions (36), entities (36), links (36) were removed."
    assert f" clean: {found}" in call(*options, "--clean").err
    pytest.importorskip("stop_words")
    done = call(*options, "--clean", "--stop-words", "german")
    assert done.status == 0 and "on the list of stop words (" in done.err
    assert "nicht" not in done.out


def test_few_documents_for_the_topics_are_told(call, jsonl):
    few = "36 documents for 3 topics are fewer than 20 documents per topic"
    assert few in call("fit", jsonl, "--n-topics", 3).err
    assert "fewer than 20" not in call("fit", jsonl, "--n-topics", 1).err


def test_more_topics_than_documents_are_told(rows):
    texts = [row["text"] for row in rows[:15]]
    with pytest.warns(UserWarning, match="more topics than documents: 16 topics for 15 documents"):
        annealvi.TopicModel(16, random_state=0).fit(texts)


@cases(
    "words, left_out",
    ("german,english", {"nicht", "und", "the", "and"}),
    ("German", {"nicht", "und"}),
    ("de", {"nicht", "und"}),
    ("deutsch,", {"nicht", "und"}),
    ("en_GB, de-AT", {"nicht", "und", "the", "and"}),
)
def test_stop_words_of_languages(words, left_out):
    pytest.importorskip("stop_words")
    chosen = make_parser().parse_args(["fit", "x", "--stop-words", words])
    model = module._unfitted_model(chosen)
    texts = ["the and und nicht planet"] * 5 + ["und the and nicht moon"] * 5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        counted = set(model.set_params(n_topics=1).fit(texts).feature_names_)
    assert counted == {"the", "and", "und", "nicht", "planet", "moon"} - left_out


def test_exact_copies_are_dropped(call, jsonl):
    line = jsonl.read_text("utf-8").splitlines()[0]
    with jsonl.open("a", encoding="utf-8") as stream:
        stream.write(f"{line}\n" * 3)
    done = call("fit", jsonl, "--n-topics", 3, "--time", "date", "--report", "r", "--drop-copies")
    assert "dropped 3 exact copies" in done.err and "read 36 documents" in done.err
    assert "repeat" not in done.err
    assert "3 documents repeat an earlier" in call("fit", jsonl, "--n-topics", 3).err


def test_quiet_says_nothing(call, jsonl):
    done = call("fit", jsonl, "--n-topics", 3, "--words", 6, "--quiet")
    assert done.status == 0 and not done.err and planted(done.out)


@cases(
    "options, words",
    (["--report", "no/topics.html"], "--report: 'no/topics.html' must be a file in a folder"),
    (["--model", "../papers.jsonl/x"], "--model: '../papers.jsonl/x' must be a file in a folder"),
    (["--model", "."], "--model: '.' must be a file in a folder"),
    (["--report", "x", "--model", "x"], "must be different files. Got 'x' for both"),
    (
        ["--time", "date"],
        "--time affects only the report. Add --report with a file name",
    ),
    (["--second-fit"], "--second-fit affects only the report"),
    (["--n-topics", "19"], "at most the number of words, 18. Got 19"),
    (["--n-topics", "0"], "--n-topics: must be an integer of at least 1. Got '0'"),
    (["--min-df", "x"], "--min-df: must be a number of documents, such as 5, a fraction"),
    (["--min-df", "12", "--max-df", "5"], "max_df must not be less than min_df"),
    (["--min-df", "0.9", "--max-df", "0.95"], "Use a smaller 'min_df' or a larger 'max_df'"),
    (["--stop-words", "klingon"], "--stop-words must be 'none', a file, or one of arabic, bul"),
    (["--vocabulary", "x"], "--vocabulary can only be used with word counts"),
    (["--files", "*.txt"], "--files can only be used with a folder of texts"),
    (["--encoding", "klingon"], "--encoding: must be the name of an encoding, such as utf-8"),
    (["--n-topics", "3", "--jobs", "0"], "n_jobs == 0 in Parallel has no meaning"),
)
def test_wrong_options(refused, jsonl, options, words):
    assert words in refused("fit", jsonl, *options)


def test_the_model_would_replace_the_documents(refused, jsonl):
    before = jsonl.read_bytes()
    assert "--model and PATH must be different files" in refused("fit", jsonl, "--model", jsonl)
    assert jsonl.read_bytes() == before


@cases(
    "options, words",
    (["--time", "title"], "must be a datetime"),
    (["--time", "date", "--freq", "fortnight"], "must be a period such as "),
)
def test_times_that_the_report_cannot_show(refused, jsonl, monkeypatch, options, words):
    pytest.importorskip("plotly")
    monkeypatch.setattr(module, "_fit_model", None)
    assert words in refused("fit", jsonl, "--n-topics", 3, "--report", "x.html", *options)


def test_without_plotly(refused, jsonl, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly", None)
    told = {"--report": refused("fit", jsonl, "--report", "x"), "annealvi demo": refused("demo")}
    for what, error in told.items():
        assert f"{what} needs plotly and pandas." in error
        assert error.endswith("pip install plotly pandas")


@pytest.mark.parametrize("option", ["--model", "--report"])
def test_topics_are_printed_if_a_file_cannot_be_written(call, jsonl, monkeypatch, option):
    full = Mock(side_effect=OSError(28, "No space left on device", "x"))
    monkeypatch.setattr(module, "save", full)
    monkeypatch.setattr(module.TopicModel, "describe", full)
    monkeypatch.setattr(module, "described", full)
    done = call("fit", jsonl, "--n-topics", 3, "--words", 6, option, "x")
    assert done.status == 2 and planted(done.out)
    assert done.err.endswith("annealvi fit: 'x': No space left on device\n")


def test_an_interrupt(call, jsonl, monkeypatch):
    monkeypatch.setattr(module.TopicModel, "fit", Mock(side_effect=KeyboardInterrupt))
    done = call("fit", jsonl, "--n-topics", 3, "--model", "m")
    assert done.status == 130 and done.err.endswith("annealvi fit: interrupted\n")
    assert not list(done.place.iterdir())


def test_each_document_has_a_single_topic(call, jsonl, rows):
    done = call("fit", jsonl, "--n-topics", 3, "--single-topic", "--model", "m", "--words", 6)
    assert done.status == 0 and planted(done.out)
    model = annealvi.load("m")
    assert model.single_topic is True
    assert np.array_equal(model.components_, model.mixture_.components_)
    assert call("show", "m", "--words", 6).status == 0
    labels = call("label", "m", jsonl, "--name", "id").out.splitlines()
    topics = model.predict([row["text"] for row in rows])
    assert [line.split(",")[1] for line in labels[1:]] == [str(topic) for topic in topics]


def test_what_cannot_work_is_refused_before_the_texts_are_read(call, jsonl, monkeypatch):
    monkeypatch.setattr("annealvi.cli.models.read_corpus", Mock(side_effect=AssertionError))
    monkeypatch.setitem(sys.modules, "stop_words", None)
    stop_words_of.cache_clear()
    done = call("fit", jsonl, "--stop-words", "romanian")
    assert done.status == 2 and "pip install stop-words" in done.err
    monkeypatch.setitem(sys.modules, "plotly", None)
    done = call("fit", jsonl, "--report", "r.html")
    assert done.status == 2 and "--report needs plotly and pandas" in done.err


def test_dates_are_read_once(call, table, monkeypatch):
    pandas = pytest.importorskip("pandas")
    texts_of_dates = []

    def to_datetime(values, *args, plain=pandas.to_datetime, **options):
        texts_of_dates.append([value for value in values if isinstance(value, str)])
        return plain(values, *args, **options)

    monkeypatch.setattr(pandas, "to_datetime", to_datetime)
    options = ("--n-topics", 3, "--time", "date", "--report", "r.html")
    assert call("fit", table, *options).status == 0
    assert [len(texts) for texts in texts_of_dates if texts] == [3]  # three different dates
