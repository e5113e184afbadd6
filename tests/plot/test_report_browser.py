"""The report in a browser without a network: clicks, the slider, phone and dark mode."""

import base64
import sys

import numpy as np
import pytest

from annealvi.plot.report import write_report
from tests.browser import find_chromium

pytest.importorskip("plotly", reason="needs plotly, the extra 'report'")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_chromium() is None, reason="Chromium is not installed"),
    pytest.mark.skipif(sys.platform == "win32", reason="the pipe to Chromium is of POSIX systems"),
]
PHONE = dict(width=390, height=844)
LARGEST = "#list li:first-child button"
WORDS = "[...document.querySelectorAll('#words .name')].map(e => e.textContent)"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    from tests.browser import Page

    with Page(tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.fixture
def page(browser):
    browser.complaints.clear()
    browser.requests.clear()
    yield browser
    assert browser.complaints == []
    assert {address.partition(":")[0] for address in browser.requests} <= {"file", "data", "about"}


@pytest.fixture
def report(summary, documents, tmp_path):
    path = tmp_path / "topics.html"
    write_report(summary, path, times=documents[3], groups=documents[4], other=summary, n_words=6)
    return path


def text(page, selector):
    return page.value(f"document.querySelector({selector!r}).textContent")


def enter(page, name, value):
    """Write a value into a field of the page, as a user does."""
    page.value(
        f"(() => {{ const e = document.getElementById({name!r}); e.value = {value!r};"
        "e.dispatchEvent(new Event('input')); })()"
    )


def test_the_page_shows_the_largest_topic(page, report, summary):
    page.open(report)
    largest = int(summary.topic_shares.argmax())
    assert text(page, "#topic-number") == f"Topic {largest}"
    assert text(page, "#topic-label") == summary.labels[largest]
    assert page.value(WORDS) == summary.words(largest, 6)
    assert page.value("[...document.querySelectorAll('section')].filter(e => e.hidden).length") == 0


def test_a_weak_topic_says_why_on_a_phone_too(page, summary, monkeypatch, tmp_path):
    monkeypatch.setattr(summary._topics, "evidence", None)
    monkeypatch.setattr(summary._topics, "similarity", np.array([[0.9, 0.12, 0.9]]))
    write_report(summary, tmp_path / "a.html")
    page.open(tmp_path / "a.html", **PHONE)
    page.click("#list [data-topic='1']")
    assert text(page, "#topic-weak") == "Weak: other fits found no similar topic (cosine 0.12)."
    assert page.value("getComputedStyle(document.getElementById('topic-weak')).display") == "block"
    right = "document.querySelector('#rows .weak').getBoundingClientRect().right"
    assert page.value(right) < PHONE["width"]
    page.click("#list [data-topic='0']")
    assert page.value("getComputedStyle(document.getElementById('topic-weak')).display") == "none"


def test_a_click_on_the_map_shows_the_topic(page, report, summary):
    page.open(report)
    for topic in (1, 0, 2):
        page.click(f"#figure-map .points path:nth-child({topic + 1})")
        page.wait(f"document.querySelector('#topic-number').textContent === 'Topic {topic}'")
        assert page.value(WORDS) == summary.words(topic, 6)
        assert page.value("location.hash") == f"#topic-{topic}"
        current = page.value("document.querySelector('#list [aria-current=true]').dataset.topic")
        assert current == str(topic)


def test_a_click_in_the_list_and_the_buttons(page, report, summary):
    page.open(report)
    order = (-summary.topic_shares).argsort().tolist()
    page.click("#list li:nth-child(3) button")
    assert text(page, "#topic-number") == f"Topic {order[2]}"
    page.click("#next")
    assert text(page, "#topic-number") == f"Topic {order[0]}"
    page.click("#previous")
    page.click("#previous")
    assert text(page, "#topic-number") == f"Topic {order[1]}"
    page.click("#near button")
    assert text(page, "#topic-number") != f"Topic {order[1]}"


def test_the_slider_ranks_words_as_the_summary_does(page, report, summary):
    page.open(report)
    topic = int(summary.topic_shares.argmax())
    for relevance in (0, 0.35, 1):
        enter(page, "relevance", relevance)
        assert text(page, "#relevance-value") == f"λ = {relevance:.2f}"
        shown = page.value(WORDS)
        scores = summary.weights(topic, 6, relevance).set_index("word")["relevance"]
        assert scores[shown].tolist() == pytest.approx(scores.tolist(), abs=1e-4)


def test_html_in_a_text_a_title_a_label_and_a_word_is_shown_as_text(
    page, summary, documents, tmp_path
):
    path = tmp_path / "all.html"
    write_report(summary, path, n_documents=60, times=documents[3])
    page.open(path)
    page.click("#list [data-topic='0']")
    label = summary.labels[0]
    assert text(page, "#topic-label") == label
    shown = page.value("document.querySelector('#documents').textContent")
    assert shown.count("<script>document.title = 'hacked'</script></script><!--") == 1
    assert "& <i>more</i>" in text(page, "#documents")
    assert page.value("document.title") == "Topics"
    assert page.value("document.querySelectorAll('main b').length") == 12  # the page's own
    assert page.value("document.querySelectorAll('main i, #documents script').length") == 0
    page.value("document.getElementById('time').scrollIntoView()")
    page.wait("document.querySelectorAll('#figure-time .legendtext').length === 3")
    legend = "document.querySelectorAll('#figure-time .legendtext')"
    names = page.value(f"[...{legend}].map(e => e.textContent)")
    assert f"0 {label}" in names


def test_a_click_on_a_class_shows_the_topic(page, report, summary):
    page.open(report)
    page.click("#list li:nth-child(2) button")
    page.value("document.getElementById('groups').scrollIntoView()")
    page.wait("document.querySelector('#figure-groups .nsewdrag') !== null")
    page.click("#figure-groups .nsewdrag", 0.25, 0.1)  # the first row: the largest topic
    largest = int(summary.topic_shares.argmax())
    page.wait(f"document.querySelector('#topic-number').textContent === 'Topic {largest}'")


def test_search_finds_topics_by_their_words(page, report, summary):
    page.open(report)
    word = summary.words(2, 1)[0]
    enter(page, "search", word)
    shown = "[...document.querySelectorAll('#list li')].filter(e => !e.hidden)"
    assert page.value(f"{shown}.map(e => e.firstChild.dataset.topic)") == ["2"]


def test_a_search_without_a_match_says_so(page, report, summary):
    page.open(report)
    for word, hidden in (("zebra", False), (summary.words(2, 1)[0], True), ("", True)):
        enter(page, "search", word)
        assert page.value("document.getElementById('no-match').hidden") is hidden


FIGURES = ("map", "course", "time", "groups", "stability", "fit")


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("size", [dict(), PHONE], ids=["desktop", "phone"])
def test_everything_is_drawn_for_a_printer(page, report, size, dark):
    page.open(report, dark=dark, **size)
    width = "document.querySelector('#figure-{} .main-svg').getBoundingClientRect().width"
    before = page.value(width.format("map"))
    page.value("dispatchEvent(new Event('beforeprint'))")
    shown = {name: page.value(width.format(name)) for name in FIGURES}  # none is blank
    assert all(300 < w <= 950 for w in shown.values()) and shown["map"] == 950
    assert page.value("document.documentElement.scrollWidth") <= max(970, size.get("width", 1280))
    styles = "getComputedStyle(document.querySelector({!r})).{}"
    assert page.value(styles.format("#words .own", "printColorAdjust")) == "exact"
    assert page.value(styles.format("#list", "display")) == "none"  # the table has all topics
    tick = page.value(styles.format("#figure-time .xtick text", "fill"))
    assert tick == page.value(styles.format("body", "color")) == "rgb(29, 35, 43)"
    page.value("dispatchEvent(new Event('afterprint'))")
    page.wait(f"{width.format('map')} === {before}")


def test_a_pdf_has_all_sections(page, report):
    page.open(report)
    content = base64.b64decode(page.call("Page.printToPDF")["data"])
    assert content.startswith(b"%PDF") and 4 <= content.count(b"/Type /Page\n") <= 20
    page.wait("!document.documentElement.classList.contains('printed')")


def test_the_table_is_sorted_by_a_click(page, report, summary):
    page.open(report)
    rows = "[...document.querySelectorAll('#rows tr')].map(e => Number(e.dataset.topic))"
    assert page.value(rows) == (-summary.topic_shares).argsort().tolist()
    page.click("#headings th:first-child button")
    assert page.value(rows) == [2, 1, 0]
    page.click("#headings th:first-child button")
    assert page.value(rows) == [0, 1, 2]
    page.click("#headings th:nth-child(6) button")
    shown = [f"{summary.exclusivity[k]:.2f}" for k in page.value(rows)]
    assert shown == sorted(shown, reverse=True)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("size", [dict(), PHONE], ids=["desktop", "phone"])
def test_everything_is_drawn_and_nothing_is_wider_than_the_window(page, report, size, dark):
    page.open(report, dark=dark, **size)
    for name in ("time", "groups", "stability", "fit"):
        page.value(f"document.getElementById({name!r}).scrollIntoView()")
        page.wait(f"document.querySelector('#figure-{name}.js-plotly-plot .main-svg') !== null")
    assert page.value("document.documentElement.scrollWidth") <= size.get("width", 1280)
    colours = "getComputedStyle(document.{}).{}"
    background = page.value(colours.format("body", "backgroundColor"))
    assert background == ("rgb(20, 23, 27)" if dark else "rgb(245, 246, 248)")
    label = "querySelector('#figure-time .xtick text')"
    assert page.value(colours.format(label, "fill")) == page.value(colours.format("body", "color"))


def test_the_colours_follow_a_change_to_dark(page, report):
    page.open(report)
    features = [{"name": "prefers-color-scheme", "value": "dark"}]
    page.call("Emulation.setEmulatedMedia", features=features)
    page.wait(
        "getComputedStyle(document.querySelector('#figure-map .textpoint text')).fill"
        " === getComputedStyle(document.body).color"
    )
