"""How long do effects with ten refits take?

    python -m bench.studies.refit_time

The effects are those of field and year on 40 topics of 20,000 arXiv abstracts
(arxiv_texts20k.jsonl.gz).
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pandas as pd

from annealvi import TopicModel
from annealvi.datasets import DATA_VARIABLE
from annealvi.topics import describe, refit
from bench import parser


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--topics", type=int, default=40)
    options.add_argument("--refits", type=int, default=10)
    arguments = options.parse_args()
    path = Path(os.environ.get(DATA_VARIABLE, "../shared/data")) / "arxiv_texts20k.jsonl.gz"
    papers = pd.read_json(path, lines=True, dtype=False)
    texts = papers.title + " " + papers.abstract
    data = {
        "field": papers.category.str.split(".").str[0],
        "year": papers.created.str[:4].astype(int),
    }
    begin = time.perf_counter()
    model = TopicModel(arguments.topics, random_state=0).fit(texts)
    fitted = time.perf_counter()
    refits = refit(model, texts, arguments.refits, verbose=1)
    effects = describe(model, texts, refits=refits).effects("~ field + bs(year, df=4)", data)
    print(effects)
    print(f"fit {fitted - begin:.1f} s, effects {time.perf_counter() - fitted:.1f} s")


if __name__ == "__main__":
    main()
