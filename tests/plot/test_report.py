"""The report is one file that loads nothing, shows texts as they are, and holds the numbers of the
summary."""

import base64
import hashlib
import json
import re
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from annealvi import TemperedLDA, TopicModel
from annealvi.datasets import make_topic_corpus
from annealvi.plot import report as module
from annealvi.plot.report import write_report
from annealvi.topics import describe, merge_topics
from tests.asserts import refused
from tests.marks import cases
from tests.topics.models import Given

pytest.importorskip("plotly", reason="needs plotly, the extra 'report'")


class Parts(HTMLParser):
    """The attributes of a page's elements."""

    def __init__(self, text):
        super().__init__()
        self.elements = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def values(self, name):
        return [attributes[name] for _, attributes in self.elements if name in attributes]


@pytest.fixture
def report(summary, documents, tmp_path):
    path = tmp_path / "topics.html"
    options = dict(title="A <i>title</i>", times=documents[3], groups=documents[4], other=summary)
    write_report(summary, path, n_documents=60, **options)
    return path.read_text(encoding="utf-8")


def test_nothing_is_loaded(report):
    parts = Parts(report)
    assert [tag for tag, _ in parts.elements if tag in {"link", "img", "iframe"}] == []
    assert parts.values("src") == []
    assert all(address.startswith("#") for address in parts.values("href"))
    assert any("default-src 'none'" in content for content in parts.values("content"))


def test_the_browser_may_run_these_scripts_only(report):
    scripts = re.findall(r"<script>(.*?)</script>", report, re.DOTALL)
    assert len(scripts) == 2
    for script in scripts:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in report
    assert "unsafe-eval" not in report and "script-src 'unsafe-inline'" not in report


def test_texts_are_data(report, summary):
    assert "<script>document.title" not in report
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', report)[1]
    assert "<" not in data
    texts = [document.get("text") for document in json.loads(data)["documents"].values()]
    assert any("<script>document.title = 'hacked'</script></script><!--" in t for t in texts)


def test_facts_and_escaped_labels_and_titles(report, summary):
    assert "<h1>A &lt;i&gt;title&lt;/i&gt;</h1>" in report
    assert f"checksum of the topics {summary.checksum}" in report
    rows = re.findall(r'<a href="#topic-(\d)">(.*?)</a>', report)
    assert {int(k): unescape(label) for k, label in rows} == dict(enumerate(summary.labels))
    assert "<b>$" not in report and "3 topics · 60 documents · 20 different words" in report
    assert f"{summary.quality['diversity']:.3f}" in report


def test_weak_topics_have_their_reason(summary, tmp_path):
    model = Given(summary.topics, summary.shares)
    model.topic_support_ = np.array([1, 0.25, 1])
    model.topic_similarity_ = np.array([[0.9, 0.5, 0.12]])
    summary = describe(model, summary.counts, summary.feature_names)
    write_report(summary, tmp_path / "a.html")
    text = (tmp_path / "a.html").read_text(encoding="utf-8")
    cells = dict(re.findall(r'<tr data-topic="(\d)">.*?<p class="weak">(.*?)</p>', text))
    assert cells.keys() == {"1"}
    assert cells["1"].startswith("Weak: a new fit finds it with probability 0.")
    assert (
        f'<td class="number">{summary.probability[1]:.2f}</td><td class="number">–</td>'
        '<td class="number">0.50</td></tr>'
    ) in text
    held = module.records(summary, 6, 0, 0.6, None, "YE", None)
    reasons = summary.trust.reason.tolist()
    assert [topic["weak"] for topic in held["topics"]] == reasons and reasons[1]


def test_sections_are_those_with_figures(summary, tmp_path):
    write_report(summary, tmp_path / "a.html", title="caf\udce9")  # from a file name, say
    text = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "<h1>caf?</h1>" in text and 'data-sections="fit"' in text
    assert '<a href="#time">' not in text
    assert '<a href="#fit">' in text


@pytest.mark.slow
def test_the_summary_hands_all_parameters_on(summary, documents, tmp_path):
    given = dict(title="A", times=documents[3], freq="2YE", groups=documents[4], other=summary)
    given |= dict(n_words=3, n_documents=1, relevance=0.2)
    write_report(summary, tmp_path / "a.html", **given)
    summary.write_report(tmp_path / "b.html", **given)
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_a_value_is_not_filled_in_again():
    assert module.fill("{{a}} {{b}}", {"a": "{{b}}", "b": "\\1"}) == "{{b}} \\1"


@cases(
    "options, error, message",
    (dict(n_words=0), ValueError, "'n_words' parameter of write_report"),
    (dict(title=3), ValueError, "'title' parameter of write_report"),
    (dict(times=[1, 2]), ValueError, "'times' .* TopicSummary.over_time must be .* one entry"),
    (dict(groups=["a"]), ValueError, "'groups' .* TopicSummary.by_group must be .* one entry"),
    (dict(times=["no"] * 60), ValueError, r"'times\[0\]' .*over_time must be a datetime"),
    (dict(other=3), TypeError, "'other' must be a TopicSummary"),
)
def test_bad_input_writes_nothing(summary, tmp_path, options, error, message):
    path = tmp_path / "topics.html"
    path.write_text("an older report")
    refused(message, write_report, summary, path, **options, error=error)
    assert [file.name for file in tmp_path.iterdir()] == ["topics.html"]
    assert path.read_text() == "an older report"


def test_places_that_cannot_be_written(summary, tmp_path):
    for wrong in (tmp_path, tmp_path / "none" / "topics.html"):
        refused("The report cannot be written", write_report, summary, wrong, error=OSError)
    refused("'path' parameter of write_report", write_report, summary, 3)


@pytest.fixture
def held(summary, documents):
    return module.records(summary, 6, 4, 0.6, documents[3], "YE", documents[4])


def ranked(held, topic, relevance):
    """The words that the page shows, by its own formula."""
    found = held["topics"][topic]
    logs = zip(found["words"], found["logs"], strict=True)
    scores = [log - (1 - relevance) * held["logs"][word] for word, log in logs]
    order = np.argsort(-np.array(scores), kind="stable")[: held["nWords"]]
    return [held["vocabulary"][found["words"][i]] for i in order]


@pytest.mark.slow
@pytest.mark.parametrize("relevance", module.STEPS)
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
            assert document["title"] == row["title"] and document["text"] == row["text"]
            shares = dict(document["topics"])
            assert_allclose(shares[topic], row["share"], atol=1e-5)
            assert min(shares.values()) >= module.SMALLEST_SHARE


@pytest.mark.parametrize("titles", [None, ["same"] * 59 + ["another"]])
def test_equal_documents_are_shown_once(summary, monkeypatch, titles):
    best = summary.documents(0, 30)
    texts = list(summary.texts)
    for number in best.index[1:25]:  # more than are looked at first
        texts[number] = texts[best.index[0]]
    monkeypatch.setattr(summary, "titles", titles)
    monkeypatch.setattr(summary, "texts", texts)
    first, *others = summary.documents(0, 60).index
    assert first == best.index[0] and not set(others) & set(best.index[1:25])
    assert len(others) == 35 and others[:5] == best.index[25:30].tolist()
    held = module.records(summary, 6, 4, 0.6, None, "YE", None)
    assert held["topics"][0]["documents"] == [first, *others[:3]]


def test_long_texts_are_cut(summary, monkeypatch):
    monkeypatch.setattr(module, "TEXT_LENGTH", 10)
    text = module.document(summary, 3)["text"]
    assert len(text) == 10 and text.endswith("…")
    assert module.clean("\ud800 stays \x00 readable", 100) == "? stays \x00 readable"


def test_neighbours_are_the_nearest_topics(summary, held):
    distances = summary.similar().distances
    for topic in range(3):
        order = [k for k in np.argsort(distances[topic]) if k != topic]
        assert held["topics"][topic]["near"] == order


def test_courses_and_groups(summary, documents, held):
    table = summary.over_time(documents[3])
    assert_allclose(np.transpose(held["courses"]["shares"]), table.iloc[:, 1:], atol=1e-5)
    assert held["courses"]["nDocuments"] == [12] * 5 and held["groups"]["labels"] == ["a", "b"]
    table = summary.by_group(documents[4])
    assert_allclose(np.transpose(held["groups"]["shares"]), table.iloc[:, 1:], atol=1e-5)


def test_a_period_without_documents_is_a_gap(summary, documents):
    times = [2000 if year < 2002 else 2005 for year in documents[3]]
    held = module.records(summary, 6, 0, 0.6, times, "YE", None)
    assert held["courses"]["nDocuments"] == [24, 0, 0, 0, 0, 36]
    assert held["courses"]["shares"][0][1:5] == [None] * 4
    json.dumps(held, allow_nan=False)


def test_figures_are_there_for_what_is_known(summary, documents):
    assert list(module.figures(summary, None, "YE", None, None)) == ["map", "fit"]
    everything = module.figures(summary, documents[3], "YE", documents[4], summary)
    assert list(everything) == ["map", "time", "groups", "stability", "fit"]
    json.dumps(everything, allow_nan=False)


@pytest.mark.slow
def test_a_hundred_topics_of_a_hundred_thousand_long_documents(tmp_path):
    D, K, V, rng = 100_000, 100, 5000, np.random.RandomState(0)
    model = Given(rng.gamma(0.05, size=(K, V)) + 1e-9, rng.dirichlet(np.full(K, 0.05), D))
    words, ends = rng.randint(V, size=D * 10), np.arange(D + 1) * 10
    X = sparse.csr_matrix((np.ones(len(words)), words, ends), shape=(D, V))
    X.sum_duplicates()
    titles = [f"The title of document {number}" for number in range(D)]
    summary = describe(model, X, texts=["A long text. " * 300] * D, titles=titles)
    path, numbers = tmp_path / "topics.html", np.arange(D)
    write_report(summary, path, times=1990 + numbers % 30, groups=numbers % 100, other=summary)
    assert path.stat().st_size < 25e6  # a sample of 5,000 documents


def test_topics_that_were_merged_have_no_history_of_a_fit(tmp_path):
    X = make_topic_corpus(60, 40, 4, random_state=0).data
    lda = merge_topics(TemperedLDA(4, max_iter=5, random_state=0).fit(X), [[0, 1]])
    write_report(describe(lda, X), tmp_path / "topics.html")
    assert 'data-sections=""' in (tmp_path / "topics.html").read_text(encoding="utf-8")


def test_groups_of_texts_with_an_index(tmp_path):
    texts = pd.Series(["star planet moon", "bread butter jam"] * 20, index=range(100, 140))
    summary = TopicModel(2, random_state=0).fit(texts).describe(texts)
    groups = pd.Series(["a", "b"] * 20, index=texts.index)
    for number, given in enumerate((groups, groups[::-1], groups.tolist())):
        write_report(summary, tmp_path / f"{number}.html", groups=given)
    pages = [(tmp_path / f"{number}.html").read_bytes() for number in range(3)]
    assert pages[0] == pages[1] == pages[2]
