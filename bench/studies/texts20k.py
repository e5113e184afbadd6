"""The 20,000 arXiv abstracts that several studies read (arxiv_texts20k.jsonl.gz)."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import numpy as np
from sklearn.utils import Bunch

from annealvi.datasets import DATA_VARIABLE


def read_abstracts(n: int = 20_000) -> Bunch:
    """Read n evenly spaced abstracts in the order of their dates, with categories and years."""
    path = Path(os.environ[DATA_VARIABLE], "arxiv_texts20k.jsonl.gz")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        papers = sorted(map(json.loads, file), key=lambda row: row["created"])
    papers = papers[:: len(papers) // n][:n]
    return Bunch(
        texts=[f"{paper['title']}. {paper['abstract']}" for paper in papers],
        categories=np.array([paper["category"] for paper in papers]),
        years=np.array([int(paper["created"][:4]) for paper in papers]),
    )
