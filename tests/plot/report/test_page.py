"""The report is one file that loads nothing and shows texts as they are."""

import base64
import hashlib
import inspect
import json
import re
from html import unescape
from html.parser import HTMLParser

import pytest

from annealvi.plot.report import page, write_report

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
    assert "unsafe-eval" not in report
    assert "script-src 'unsafe-inline'" not in report


def test_texts_are_data(report, summary):
    assert "<script>document.title" not in report
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', report)[1]
    assert "<" not in data
    texts = [document.get("text") for document in json.loads(data)["documents"].values()]
    assert any("<script>document.title = 'hacked'</script></script><!--" in t for t in texts)


def test_labels_and_titles_are_escaped(report, summary):
    assert "<h1>A &lt;i&gt;title&lt;/i&gt;</h1>" in report
    rows = re.findall(r'<a href="#topic-(\d)">(.*?)</a>', report)
    assert {int(k): unescape(label) for k, label in rows} == dict(enumerate(summary.labels))
    assert "<b>$" not in report


def test_characters_that_no_file_can_hold(summary, tmp_path):
    write_report(summary, tmp_path / "a.html", title="caf\udce9")  # from a file name, say
    assert "<h1>caf?</h1>" in (tmp_path / "a.html").read_text(encoding="utf-8")


def test_facts_and_table_are_there_without_scripts(report, summary):
    assert len(Parts(report).values("data-topic")) == 3
    assert "3 topics · 60 documents · 20 different words" in report
    assert f"{summary.quality['diversity']:.3f}" in report


def test_sections_are_those_with_figures(summary, tmp_path):
    write_report(summary, tmp_path / "a.html")
    text = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert 'data-sections="fit"' in text
    assert '<a href="#time">' not in text
    assert '<a href="#fit">' in text


def test_the_summary_says_all_parameters_of_the_report(summary):
    own, all_ = (
        list(inspect.signature(function).parameters.values())
        for function in (summary.to_html, write_report)
    )
    assert [(p.name, p.default, p.kind) for p in own] == [
        (p.name, p.default, p.kind) for p in all_[1:]
    ]


def test_the_summary_hands_all_parameters_on(summary, documents, tmp_path):
    given = dict(title="A", times=documents[3], freq="2YE", groups=documents[4], other=summary)
    given |= dict(n_words=3, n_documents=1, relevance=0.2)
    write_report(summary, tmp_path / "a.html", **given)
    summary.to_html(tmp_path / "b.html", **given)
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_the_same_summary_gives_the_same_file(summary, tmp_path):
    for name in "ab":
        summary.to_html(tmp_path / f"{name}.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_a_value_is_not_filled_in_again():
    assert page.fill("{{a}} {{b}}", {"a": "{{b}}", "b": "\\1"}) == "{{b}} \\1"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (dict(n_words=0), ValueError, "'n_words' parameter of write_report"),
        (dict(n_documents=-1), ValueError, "'n_documents' parameter of write_report"),
        (dict(relevance=1.5), ValueError, "'relevance' parameter of write_report"),
        (dict(title=3), ValueError, "'title' parameter of write_report"),
        (dict(times=[1, 2]), ValueError, "'times' must have one entry"),
        (dict(groups=["a"]), ValueError, "'groups' must have one entry"),
        (dict(times=["no time"] * 60), ValueError, "'times' must hold"),
        (dict(other=3), TypeError, "'other' must be a TopicSummary"),
    ],
)
def test_bad_input_writes_nothing(summary, tmp_path, options, error, message):
    path = tmp_path / "topics.html"
    path.write_text("an older report")
    with pytest.raises(error, match=message):
        write_report(summary, path, **options)
    assert [file.name for file in tmp_path.iterdir()] == ["topics.html"]
    assert path.read_text() == "an older report"


def test_places_that_cannot_be_written(summary, tmp_path):
    for wrong in (tmp_path, tmp_path / "none" / "topics.html"):
        with pytest.raises(OSError, match="cannot write the report"):
            write_report(summary, wrong)
    with pytest.raises(ValueError, match="'path' parameter of write_report"):
        write_report(summary, 3)


def test_without_plotly(summary, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "plotly.offline", None)
    with pytest.raises(ImportError, match=r"annealvi\[report\]"):
        write_report(summary, tmp_path / "topics.html")
    assert not list(tmp_path.iterdir())
