"""The page of ``annealvi open`` in a browser: a study from its file to its results."""

import json
import os
import signal
import subprocess
import sys
import time

import pandas
import pytest

import annealvi
from annealvi.datasets import load_arxiv_abstracts
from tests.app.conftest import HOSTILE, documents
from tests.browser import find_chromium

pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.skipif(find_chromium() is None, reason="Chromium is not installed"),
    pytest.mark.skipif(sys.platform == "win32", reason="the pipe to Chromium is of POSIX systems"),
]
SIZES = {"desk": dict(width=1300, height=900), "phone": dict(width=390, height=844)}
VIEWS = ("topics", "report", "documents", "compare", "downloads")
#: Seconds in which a fit ends.
FIT = 300
#: Pairs of colours of texts that can be seen and the lowest contrast among them, as in WCAG 2.
CONTRAST = """(() => {
  const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
  const luminance = (colour) => rgb(colour).slice(0, 3).map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor;
      if ((rgb(colour)[3] ?? 1) > 0) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const low = [];
  for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.checkVisibility() || e.closest(":disabled")) continue;
    const pair = [luminance(getComputedStyle(e).color), luminance(behind(e))].sort((a, b) => b - a);
    const ratio = (pair[0] + 0.05) / (pair[1] + 0.05);
    if (ratio < 4.5) low.push([e.tagName, e.textContent.slice(0, 30), ratio]);
  }
  return JSON.stringify(low);
})()"""


class Server:
    """The command ``annealvi open`` in a process of its own."""

    def __init__(self, folder, *arguments):
        command = [sys.executable, "-P", "-m", "annealvi", "open", "--no-browser"]
        command += ["--folder", str(folder), *map(str, arguments)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        lines = [self.process.stdout.readline() for _ in range(2)]
        assert lines[0] == f"The study is in {folder}\n"
        self.link = lines[1].split()[1]

    def stop(self, number=signal.SIGINT):
        self.process.send_signal(number)
        self.process.wait(60)
        self.process.stdout.close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    from tests.browser import Page

    with Page(tmp_path_factory.mktemp("profile"), online=True) as page:
        yield page


@pytest.fixture
def page(browser):
    """The browser, whose page has no errors but those of requests that a server did not accept."""
    browser.complaints.clear()
    browser.requests.clear()
    yield browser
    expected = ("status of 400", "ERR_CONNECTION_REFUSED", "ERR_CONNECTION_RESET")
    assert not [c for c in browser.complaints if not any(text in c for text in expected)]
    assert all(
        link.startswith(("http://127.0.0.1:", "data:", "about:")) for link in browser.requests
    )


@pytest.fixture
def serve():
    servers = []

    def start(*arguments):
        servers.append(Server(*arguments))
        return servers[-1]

    yield start
    for server in servers:
        if server.process.poll() is None:
            server.stop()


def part(page, name, seconds=60):
    """Wait until the page shows one of its parts."""
    page.wait(f"document.body && document.body.dataset.part === {name!r}", seconds)


def idle(page, seconds=60):
    page.wait("!document.body.hasAttribute('aria-busy')", seconds)


def message(page):
    idle(page)
    return page.value("(e => e.hidden ? '' : e.textContent)(document.getElementById('message'))")


def choose(page, name, value):
    """Choose a value of a field of the settings."""
    page.value(
        f"(e => {{ e.value = {json.dumps(value)}; "
        "e.dispatchEvent(new Event('change', {bubbles: true})); })"
        f"(document.getElementById('form').{name})"
    )


def show(page, view):
    page.value(f"document.querySelector('[data-view={view}]').click()")


def rows(page, selector="#topics tbody tr"):
    return page.value(f"document.querySelectorAll({selector!r}).length")


def percent(page):
    return page.value("document.getElementById('progress').value || 0")


def test_a_study_without_code(page, serve, tmp_path):
    abstracts = load_arxiv_abstracts(texts=True)
    columns = dict(title=abstracts.titles, abstract=abstracts.texts, created=abstracts.created)
    columns["field"] = abstracts.target_names[abstracts.target]
    # six copies, because a fit of one copy can end before the page shows its progress
    table = pandas.concat([pandas.DataFrame(columns)] * 6)
    table.to_csv(tmp_path / "papers.csv", index=False)
    (tmp_path / "broken.xlsx").write_bytes(b"no Excel file")
    folder = tmp_path / "study"
    server = serve(folder)
    page.go(server.link, **SIZES["desk"])

    part(page, "start")
    page.upload("#file", tmp_path / "broken.xlsx")
    page.wait("!document.getElementById('message').hidden")
    assert "broken.xlsx' cannot be read as a .xlsx file" in message(page)
    page.upload("#file", tmp_path / "papers.csv")
    part(page, "settings")
    fields = ("text", "title", "time", "group")
    guessed = [page.value(f"document.getElementById('form').{name}.value") for name in fields]
    assert guessed == ["abstract", "title", "created", "field"]

    choose(page, "time", "title")  # the wrong column
    page.click("button.main")
    page.wait("!document.getElementById('message').hidden")
    assert "must contain dates" in message(page)
    choose(page, "time", "created")
    choose(page, "n_topics", "40")

    page.click("button.main")
    part(page, "working")
    page.wait("document.getElementById('progress').value > 3", FIT)
    assert "time left" in page.value("document.getElementById('progress-text').textContent")
    page.click("#cancel")
    part(page, "settings")
    assert not page.value("document.getElementById('stopped').hidden")
    before = (folder / "checkpoint.safetensors").stat().st_mtime_ns

    page.click("#resume")
    part(page, "working")
    page.wait("document.getElementById('progress').value > 8", FIT)
    os.kill(server.process.pid, signal.SIGKILL)
    server.process.wait()
    server.process.stdout.close()
    end = time.monotonic() + 60
    while (folder / "checkpoint.safetensors").stat().st_mtime_ns == before:
        assert time.monotonic() < end  # the fit has written a checkpoint, and ends
        time.sleep(0.1)

    server = serve(folder)
    page.go(server.link, **SIZES["desk"])
    # a fast fit ends before the process notices that the server was killed
    page.wait("['settings', 'results'].includes(document.body && document.body.dataset.part)", 60)
    if page.value("document.body.dataset.part") == "settings":
        page.click("#resume")
    part(page, "results", FIT)
    assert rows(page) == 40
    assert page.value("document.activeElement.tagName") == "H2"

    page.click("#label-3")
    page.value("document.activeElement.select()")
    page.call("Input.insertText", text=HOSTILE)
    page.key("Tab")
    idle(page)
    assert page.value("document.getElementById('label-3').value") == HOSTILE
    page.click("#tick-0")
    page.click("#tick-5")
    page.click("#merge")
    page.wait("document.querySelectorAll('#topics tbody tr').length === 39")
    idle(page)
    page.click("#tick-7")
    page.click("#drop-topics")
    page.wait("document.querySelectorAll('#topics tbody tr').length === 38")
    idle(page)
    page.click("#undo")
    page.wait("document.querySelectorAll('#topics tbody tr').length === 39")
    idle(page)
    assert message(page) == ""

    show(page, "documents")
    page.wait("document.querySelectorAll('#list-documents li').length === 25")
    page.click("#search [name=query]")
    page.call("Input.insertText", text="quantum")
    page.key("Enter")
    page.wait("/^1 to 25 of [1-9],\\d{3} doc/.test(document.getElementById('number').textContent)")
    page.wait(
        "/quantum/i.test(document.getElementById('document').contentDocument?.body?.textContent)"
    )
    show(page, "compare")
    page.wait("document.querySelectorAll('#shares tbody tr').length === 15")
    choose_in = (
        "(e => {{ e.value = 'time'; e.dispatchEvent(new Event('change', {{bubbles: true}})); }})"
    )
    page.value(choose_in.format() + "(document.querySelector('#comparison [name=role]'))")
    page.wait("/^\\d{4}/.test(document.querySelector('#shares tbody th')?.textContent)")
    show(page, "report")
    ready = "document.getElementById('report').contentDocument?.body?.dataset.ready === 'true'"
    page.wait(ready, 120)

    show(page, "downloads")
    downloads = tmp_path / "downloads"
    downloads.mkdir()
    behaviour = dict(behavior="allow", downloadPath=str(downloads))
    page.call("Browser.setDownloadBehavior", **behaviour)
    for name in ("study.py", "documents.csv", "topics.safetensors", "tables.xlsx"):
        page.click(f"#files a[download='{name}']")
        end = time.monotonic() + 60
        while not (downloads / name).exists():
            assert time.monotonic() < end
            time.sleep(0.1)
    saved = annealvi.load(downloads / "topics.safetensors")
    (downloads / "topics.safetensors").unlink()
    subprocess.run([sys.executable, "study.py"], cwd=downloads, check=True, timeout=FIT)
    again = annealvi.load(downloads / "topics.safetensors")
    assert again.components_.tobytes() == saved.components_.tobytes()
    assert again.topic_labels_ == saved.topic_labels_ == {3: HOSTILE}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dark", [False, True])
def test_everything_can_be_read_and_has_a_name(page, serve, fitted, table, tmp_path, size, dark):
    """Widths, contrast, and names of controls for screen readers."""

    def check():
        time.sleep(0.3)
        assert page.value("document.documentElement.scrollWidth <= innerWidth")
        assert json.loads(page.value(CONTRAST)) == []
        tree = page.call("Accessibility.getFullAXTree")["nodes"]
        roles = {"button", "textbox", "combobox", "checkbox", "spinbutton", "searchbox", "link"}
        named = [
            node.get("name", {}).get("value")
            for node in tree
            if not node["ignored"] and node.get("role", {}).get("value") in roles
        ]
        assert named and all(named)

    page.go(serve(tmp_path / "empty").link, dark=dark, **SIZES[size])
    part(page, "start")
    check()
    page.upload("#file", table)
    part(page, "settings")
    check()
    page.go(serve(fitted).link, dark=dark, **SIZES[size])
    part(page, "results")
    for view in VIEWS:
        show(page, view)
        idle(page)
        check()


def test_the_page_can_be_used_with_the_keyboard(page, serve, fitted):
    page.go(serve(fitted).link, **SIZES["desk"])
    part(page, "results")
    reached = []
    for _ in range(20):
        page.key("Tab")
        reached.append(
            page.value("document.activeElement.id || document.activeElement.textContent")
        )
    assert {"Topics", "Report", "change", "tick-0", "label-0"} <= set(reached)
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.value(outline) != "none"


def test_hostile_documents_run_nothing(page, serve, fitted):
    page.go(serve(fitted).link, **SIZES["desk"])
    part(page, "results")
    page.value("window.alert = () => { document.title = 'attacked'; }")
    for view in VIEWS:
        show(page, view)
        time.sleep(0.5)
    show(page, "documents")
    text = json.dumps(documents()["text"][0][:30])
    page.wait(
        f"document.getElementById('document').contentDocument?.body?.textContent.includes({text})"
    )
    assert page.value("document.querySelectorAll('main img, main script').length") == 0
    assert page.value("document.title") != "attacked"


def test_a_page_whose_server_has_ended_says_so(page, serve, fitted):
    server = serve(fitted)
    page.go(server.link, **SIZES["desk"])
    part(page, "results")
    server.stop(signal.SIGKILL)
    page.click("#undo") if not page.value("document.getElementById('undo').disabled") else None
    page.value("dispatchEvent(new Event('focus'))")
    page.wait("!document.getElementById('message').hidden")
    assert "annealvi open --folder" in message(page)
