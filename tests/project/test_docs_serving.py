"""The table of docs/serving.md has the rows that its command prints."""

import re
from pathlib import Path

import pytest

from annealvi import TopicModel
from annealvi.datasets import load_arxiv_abstracts
from bench.speed.serving import serve

PAGE = Path(__file__).resolve().parents[2] / "docs" / "serving.md"


def test_rows(tmp_path):
    if not Path("/proc/self/status").exists():
        pytest.skip("memory is read from /proc/self, which this system does not have")
    texts = load_arxiv_abstracts(texts=True).texts[:60]
    model = TopicModel(3, random_state=0).fit(texts)
    model.save(tmp_path / "topics.safetensors")
    measured = dict(serve(tmp_path / "topics.safetensors", texts))
    table = PAGE.read_text(encoding="utf-8").split("|---|---|---|\n")[1]
    lines = re.findall(r"^\| (.+?) \|", table, flags=re.MULTILINE)
    # the page's command serves 1,000 texts three times
    assert list(measured) == [line.replace("1,000", "60").replace("3,000", "180") for line in lines]
    assert measured["topics, words"] == f"3, {len(model.feature_names_)}"
    times = [value for name, value in measured.items() if name.startswith("one text")]
    assert len(times) == 3 and all(float(value.split()[0]) > 0 for value in times)
