"""``annealvi label``, ``show`` and ``compare``."""

import csv
import io

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.feature_extraction.text import CountVectorizer

import annealvi
from annealvi.metrics import topic_checksum
from annealvi.topics import TopicVectorizer
from annealvi.topics.source import Source
from annealvi.topics.trust import probability_of
from tests.marks import cases

from .conftest import TOPICS


def test_weak_topics_have_a_star_and_a_reason(call, jsonl, tmp_path, monkeypatch):
    path, options = tmp_path / "m.safetensors", ("--n-topics", 8, "--quiet")
    call("fit", jsonl, *options, "--model", path)
    probability = probability_of(Source(annealvi.load(path)).topics.evidence)
    monkeypatch.setattr("annealvi.topics.trust.LEAST_PROBABILITY", 2)
    for done in (call("fit", jsonl, *options), call("show", path)):
        lines = done.out.splitlines()
        at = next(place for place, line in enumerate(lines) if line.startswith("* weak topics "))
        stars = {int(line[:5]) for line in lines[:at] if line[5:6] == "*"}
        said = {int(line[:5]): line[7:] for line in lines[at + 1 :]}
        assert stars == set(said) == set(range(8))
        for k, reason in said.items():
            assert f"weak: a new fit finds it with probability {probability[k]:.2f} (" in reason
    assert call("show", path, "--topic", 5).out.splitlines()[1] == said[5]


def test_labels(call, model, jsonl, rows):
    done = call("label", model, jsonl, "--name", "id", "--shares")
    found = list(csv.DictReader(io.StringIO(done.out)))
    assert [row["document"] for row in found] == [row["id"] for row in rows]
    shares = annealvi.load(model).transform([row["text"] for row in rows])
    for row, own, text in zip(found, shares, rows, strict=True):
        assert int(row["topic"]) == own.argmax()
        assert float(row["share"]) == pytest.approx(own.max(), abs=1e-4)
        assert [float(row[f"share_{k}"]) for k in range(3)] == pytest.approx(own, abs=1e-4)
        assert set(row["label"].split(", ")) <= set(TOPICS[text["kind"]])


def test_a_document_without_known_words(call, model, tmp_path):
    path = tmp_path / "new.txt"
    path.write_text("star and planet\nnothing that is known\n", encoding="utf-8")
    done = call("label", model, path)
    rows = done.out.splitlines()
    assert rows[0] == "document,topic,label,share"
    assert rows[1].startswith("0,") and rows[2] == "1,,,"
    assert "1 documents contain no word of the model" in done.err


def test_labels_to_a_file(call, model, jsonl):
    done = call("label", model, jsonl, "--output", "labels.csv", "--quiet")
    assert not done.out and not done.err
    text = (done.place / "labels.csv").read_text(encoding="utf-8")
    assert text == call("label", model, jsonl).out
    failed = call("label", model, jsonl, "--output", "no/labels.csv")
    assert failed.status == 2 and "'no/labels.csv' must be a file in a folder" in failed.err


def test_show(call, model):
    done = call("show", model, "--words", 6)
    assert "TopicModel: 3 topics, 18 words" in done.out
    checksum = topic_checksum(annealvi.load(model).lda_)
    assert f"checksum of the topics: {checksum}\n" in done.out
    assert "*" not in done.out
    lines = done.out.splitlines()
    assert "share  probability  words" in lines[-5] and lines[-1].startswith(
        "probability: that a new"
    )
    topics = [set(line.split()[3:]) for line in lines[-4:-1]]
    assert sorted(map(sorted, topics)) == sorted(map(sorted, TOPICS.values()))
    one = call("show", model, "--topic", 1, "--words", 3).out.splitlines()
    lda = annealvi.load(model).lda_
    probability = np.sort(lda.components_[1] / lda.components_[1].sum())[-1]
    found = probability_of(Source(annealvi.load(model)).topics.evidence)
    assert one[0].endswith(f"probability {found[1]:.2f})")
    shown = [float(line.split("%")[0]) for line in one[1:]]
    assert len(one) == 4 and shown[0] == pytest.approx(100 * probability, abs=0.01)
    assert shown == sorted(shown, reverse=True)
    failed = call("show", model, "--topic", 3)
    assert failed.status == 2 and ", from 0 to 2. Got 3" in failed.err


def test_compare(call, model, jsonl, tmp_path):
    assert call("compare", model, model).out.splitlines()[-1].endswith("same topics): 1.00")
    other = tmp_path / "other"
    call("fit", jsonl, "--n-topics", 4, "--model", other, "--text", "text", "--text", "kind")
    done = call("compare", model, other)
    assert "18 of 18 and 21 words are in both models" in done.out
    rows = done.out.splitlines()[2:-1]
    assert all(float(row.split()[0]) > 0.5 and " -> " in row for row in rows)
    assert {row.split()[1] for row in rows} <= {"matched", "split", "merged", "vanished", "new"}
    strange = tmp_path / "strange"
    annealvi.save(
        annealvi.TopicModel(2, random_state=0).fit(["red blue", "green yellow"] * 3), strange
    )
    failed = call("compare", model, strange)
    assert failed.status == 2 and "has words in common" in failed.err


def test_what_is_no_model(call, jsonl, tmp_path):
    toy = annealvi.TemperedGaussianMixture(2, random_state=0).fit(np.eye(6))
    annealvi.save(toy, tmp_path / "gmm")
    for path, words in {
        jsonl: "is not an annealvi file",
        tmp_path: "Is a directory",
        tmp_path / "nowhere": "No such file or directory",
        tmp_path / "gmm": "must contain a topic model. Got a TemperedGaussianMixture",
    }.items():
        done = call("show", path)
        assert done.status == 2 and words in done.err and len(done.err.splitlines()) == 1


def test_labels_that_are_set_are_shown_by_the_commands(call, refused, model, jsonl, tmp_path):
    before = annealvi.load(model).transform(["star and bread"])
    done = call("label-topics", model, "1=my topic", "2= other = one ")
    assert done.status == 0 and "my topic: " in done.out and "other = one: " in done.out
    loaded = annealvi.load(model)
    assert loaded.topic_labels_ == {1: "my topic", 2: "other = one"}
    assert (loaded.transform(["star and bread"]) == before).all()
    assert "my topic: " in call("show", model).out
    assert call("show", model, "--topic", 1).out.startswith("topic 1: my topic (")
    rows = csv.DictReader(io.StringIO(call("label", model, jsonl).out))
    assert {"my topic", "other = one"} < {row["label"] for row in rows}
    content = model.read_bytes()
    for wrong in ("3=x", "1", "one=x", "1=", "0=my topic"):
        assert "label" in refused("label-topics", model, wrong)
    assert model.read_bytes() == content


def split(text):
    return text.split()


@cases(
    "vectorizer",
    TopicVectorizer(tokenizer=split, min_df=1),
    TopicVectorizer(preprocessor=str.upper, min_df=1),
    CountVectorizer(analyzer=split),
)
def test_a_model_with_the_users_own_function(call, refused, jsonl, rows, tmp_path, vectorizer):
    """Files contain no functions, which only texts need: topics can be shown and labelled."""
    texts = [row["text"] for row in rows]
    model = annealvi.TopicModel(3, vectorizer=vectorizer, random_state=0).fit(texts)
    path = tmp_path / "m"
    annealvi.save(model, path)
    word = model.top_words(1)[0][0]
    assert word in call("show", path).out and word in call("show", path, "--topic", 0).out
    assert f"my topic: {word}" in call("label-topics", path, "0=my topic").out
    assert call("compare", path, path).out.endswith("same topics): 1.00\n")
    loaded = annealvi.load(path, vectorizer=vectorizer)
    assert loaded.topic_labels_ == {0: "my topic"}
    assert_array_equal(loaded.transform(texts), model.transform(texts))
    for command in ("label", "paper"):
        error = refused(command, path, jsonl)
        assert "Files do not contain functions" in error and "annealvi.load(path, vec" in error
