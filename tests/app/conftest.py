"""A study of a small corpus, whose topics are fitted once, and clients of its server."""

import asyncio
import random
import shutil
import time
from pathlib import Path

import httpx
import pandas
import pytest

from annealvi.app.server import make_app
from annealvi.app.study import Study
from annealvi.cli.inputs import read_columns

TOKEN = "secret"
WORDS = {
    "space": ["star", "planet", "orbit", "moon", "comet", "rocket"],
    "food": ["bread", "butter", "cheese", "apple", "honey", "soup"],
    "sea": ["ship", "harbour", "sailor", "wave", "anchor", "island"],
    "music": ["violin", "melody", "concert", "singer", "drum", "opera"],
}
#: HTML that would show an alert if a page did not escape it, and a formula of Excel.
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>"
FORMULA = '=HYPERLINK("http://example.org")'
SETTINGS = dict(
    text="text", title="title", time="date", group="kind", freq="year", language="english"
)


def documents():
    """Documents of four themes, some of them hostile."""
    draw = random.Random(0)
    rows = []
    for number in range(80):
        kind = list(WORDS)[number % 4]
        text = " ".join(draw.choices(WORDS[kind], k=25))
        rows.append(dict(title=f"No. {number}", text=text, date=f"{2000 + number // 20}-05-01"))
        rows[-1]["kind"] = kind
    rows[0] |= dict(title=HOSTILE, text=f"{rows[0]['text']} {HOSTILE}")
    rows[1] |= dict(title=FORMULA, kind=HOSTILE)
    rows[5] |= dict(kind=HOSTILE)
    return pandas.DataFrame(rows)


class Client:
    """Sends requests to the server of a study, without a network."""

    def __init__(self, study):
        self.app = make_app(study, TOKEN)

    async def ask(self, *requests):
        """Send requests at the same time, each a method, a path and options of httpx."""
        transport = httpx.ASGITransport(self.app)
        base = f"http://127.0.0.1:8000/{TOKEN}/"
        async with httpx.AsyncClient(transport=transport, base_url=base, timeout=60) as client:
            sent = [client.request(*request, **options) for *request, options in requests]
            return await asyncio.gather(*sent)

    def get(self, path, **options):
        return asyncio.run(self.ask(("GET", path, options)))[0]

    def post(self, path, **options):
        return asyncio.run(self.ask(("POST", path, options)))[0]


def settled(study, seconds=120):
    """Wait for the end of a fit and of what follows it; return the study."""
    end = time.monotonic() + seconds
    while study.process is not None or study.busy:
        assert time.monotonic() < end
        time.sleep(0.05)
    return study


@pytest.fixture(scope="session")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("documents") / "papers.csv"
    documents().to_csv(path, index=False)
    return path


@pytest.fixture(scope="session")
def fitted(table, tmp_path_factory):
    """The folder of a study with four topics, which a process of its own has fitted."""
    folder = tmp_path_factory.mktemp("fitted") / "study"
    study = Study(folder, read_columns)
    client = Client(study)
    answer = client.post("upload?name=papers.csv", content=table.read_bytes())
    assert answer.status_code == 200, answer.text
    answer = client.post("study/fit", json={**SETTINGS, "n_topics": 4})
    assert answer.status_code == 200, answer.text
    assert client.post("study/state", json={}).json()["line"] is not None
    settled(study)
    assert not study.problem
    return folder


@pytest.fixture
def study(fitted, tmp_path):
    """A study of its own with the same topics."""
    folder = Path(shutil.copytree(fitted, tmp_path / "study"))
    study = settled(Study(folder, read_columns))
    assert study.summary is not None, study.problem
    return study


@pytest.fixture
def client(study):
    return Client(study)


@pytest.fixture
def empty(tmp_path):
    return Client(Study(tmp_path / "empty", read_columns))
