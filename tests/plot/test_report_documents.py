"""The report's page of documents: what is in its data."""

import json
import re

import numpy as np

from annealvi.plot import report
from annealvi.topics import describe
from tests.topics.models import COUNTS, WORDS, Given

TEXTS = ["orbit the comet", "goal team", "moon </script>", "team", ""]


def data_of(path):
    page = path.read_text(encoding="utf-8")
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])


def test_all_documents_with_the_topics_of_their_words(tmp_path):
    summary = describe(Given(), COUNTS, WORDS, texts=TEXTS, titles=list("abcde"))
    summary.write_report(tmp_path / "a.html", groups=list("uuvvw"), n_documents=1)
    data = data_of(tmp_path / "a.html")
    assert data["reading"]["numbers"] == [0, 1, 2, 3, 4] and data["reading"]["nDocuments"] == 5
    first = data["documents"]["0"]
    assert first["text"] == TEXTS[0] and first["group"] == "u"
    document = summary.document(0)
    words = [data["reading"]["words"][number] for number, _, _ in first["words"]]
    assert words == document.words.tolist()
    best = document.responsibilities.argmax(axis=1)
    assert [topic for _, topic, _ in first["words"]] == best.tolist()
    percent = np.rint(100 * document.responsibilities.max(axis=1))
    assert [share for _, _, share in first["words"]] == percent.tolist()


def test_no_texts_and_no_documents(tmp_path):
    summary = describe(Given(), COUNTS, WORDS, texts=TEXTS)
    summary.write_report(tmp_path / "a.html", n_documents=0)
    assert data_of(tmp_path / "a.html")["reading"]["numbers"] == []
    assert "orbit the comet" not in (tmp_path / "a.html").read_text(encoding="utf-8")
    describe(Given(), COUNTS, WORDS).write_report(tmp_path / "b.html")
    assert data_of(tmp_path / "b.html")["reading"]["numbers"] == []


def test_a_sample_of_many_documents(monkeypatch):
    summary = describe(Given(), COUNTS, WORDS, texts=TEXTS)
    monkeypatch.setattr(report, "N_READ", 3)
    assert report.readable_documents(summary) == [0, 2, 4]
    monkeypatch.setattr(report, "READ_BYTES", 100)
    assert len(report.readable_documents(summary)) < 3
