"""What the report holds are the numbers of the summary."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

from annealvi.plot.report import records


@pytest.fixture
def held(summary, documents):
    return records.records(summary, 6, 4, 0.6, documents[3], "YE", documents[4])


def ranked(held, topic, relevance):
    """The words that the page shows, by its own formula."""
    found = held["topics"][topic]
    scores = [
        log - (1 - relevance) * held["logs"][word]
        for word, log in zip(found["words"], found["logs"], strict=True)
    ]
    order = np.argsort(-np.array(scores), kind="stable")[: held["nWords"]]
    return [held["vocabulary"][found["words"][i]] for i in order]


@pytest.mark.parametrize("relevance", records.STEPS)
def test_the_words_at_each_step_of_the_slider(summary, held, relevance):
    for topic in range(3):
        shown = ranked(held, topic, relevance)
        wanted = summary.weights(topic, 6, relevance)
        scores = wanted.set_index("word")["relevance"]
        # numbers have five digits, so words that are alike to five digits may change places
        assert_allclose(scores[shown], wanted["relevance"], atol=1e-4)


def test_documents(summary, held):
    for topic in range(3):
        rows = summary.documents(topic, 4)
        assert held["topics"][topic]["documents"] == list(rows.index)
        for number, row in rows.iterrows():
            document = held["documents"][number]
            assert document["title"] == row["title"]
            assert document["text"] == row["text"]
            shares = dict(document["topics"])
            assert_allclose(shares[topic], row["share"], atol=1e-5)
            assert min(shares.values()) >= records.LEAST_SHARE


@pytest.mark.parametrize("titles", [None, ["same"] * 59 + ["another"]])
def test_equal_documents_are_shown_once(summary, monkeypatch, titles):
    best = summary.documents(0, 30)
    texts = list(summary.texts)
    for number in best.index[1:25]:  # more than are looked at first
        texts[number] = texts[best.index[0]]
    monkeypatch.setattr(summary, "titles", titles)
    monkeypatch.setattr(summary, "texts", texts)
    shown = records.documents(summary, 4)[0]
    assert shown == [best.index[0], *best.index[25:28]]
    assert records.documents(summary, 100)[0] == list(
        dict.fromkeys([best.index[0], *summary.documents(0, 60).index[25:]])
    )


def test_documents_without_texts_are_told_apart_by_their_numbers(summary, monkeypatch):
    monkeypatch.setattr(summary, "titles", None)
    monkeypatch.setattr(summary, "texts", None)
    assert records.documents(summary, 7)[1] == list(summary.documents(1, 7).index)


def test_long_texts_are_cut(summary, monkeypatch):
    monkeypatch.setattr(records, "TEXT_LENGTH", 10)
    text = records.document(summary, 3)["text"]
    assert len(text) == 10
    assert text.endswith("…")
    assert records.clean("\ud800 stays \x00 readable", 100) == "? stays \x00 readable"


def test_neighbours_are_the_nearest_topics(summary, held):
    distances = summary.similar().distances
    for topic in range(3):
        order = [k for k in np.argsort(distances[topic]) if k != topic]
        assert held["topics"][topic]["near"] == order


def test_courses_and_groups(summary, documents, held):
    table = summary.over(documents[3])
    assert_allclose(np.transpose(held["courses"]["shares"]), table.iloc[:, 1:], atol=1e-5)
    assert held["courses"]["nDocuments"] == [12] * 5
    assert held["groups"]["labels"] == ["a", "b"]
    table = summary.by(documents[4])
    assert_allclose(np.transpose(held["groups"]["shares"]), table.iloc[:, 1:], atol=1e-5)


def test_a_period_without_documents_is_a_gap(summary, documents):
    times = [2000 if year < 2002 else 2005 for year in documents[3]]
    held = records.records(summary, 6, 0, 0.6, times, "YE", None)
    assert held["courses"]["nDocuments"] == [24, 0, 0, 0, 0, 36]
    assert held["courses"]["shares"][0][1:5] == [None] * 4
    json.dumps(held, allow_nan=False)


def test_without_documents_times_and_groups(summary):
    held = records.records(summary, 6, 0, 0.6, None, "YE", None)
    assert held["courses"] is held["groups"] is None
    assert held["documents"] == {}


def test_figures_are_there_for_what_is_known(summary, documents):
    pytest.importorskip("plotly", reason="needs plotly, the extra 'report'")
    assert list(records.figures(summary, None, "YE", None, None)) == ["map", "fit"]
    everything = records.figures(summary, documents[3], "YE", documents[4], summary)
    assert list(everything) == ["map", "time", "groups", "stability", "fit"]
    json.dumps(everything, allow_nan=False)


def test_quality(summary):
    found = {name: value for name, value, _ in records.quality(summary)}
    assert found == {
        "Coherence (NPMI)": summary.quality["coherence"],
        "Diversity": summary.quality["diversity"],
    }
