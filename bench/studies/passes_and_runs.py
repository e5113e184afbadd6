"""The effects of `max_iter` and `n_init` on CPU seconds, held-out log-likelihood and support.

    python -m bench.studies.passes_and_runs fit [--corpora bbc_news kos ...] [--topics 20 100]
        [--seeds 6] [--output passes_and_runs.jsonl]
    python -m bench.studies.passes_and_runs table BEFORE.jsonl AFTER.jsonl

`fit` makes fits with several values of one of these parameters; the other one has its default.  For
each fit that is not in the file yet, it adds a line to the file.  A tenth of the documents, but at
most 2,000, is held out.  Of arxiv_100k and debian_desc the first 20,000 documents are used.  The
script also works with other commits.  `table` compares the files of two commits: it prints means
over seeds, and the standard error of the difference in nats per word.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from annealvi import TemperedLDA
from annealvi.datasets import load_corpus
from annealvi.metrics import document_completion
from bench import parser
from bench.markdown import table

SETTINGS: list[dict[str, Any]] = [
    *({"max_iter": n} for n in (None, 1, 3, 5, 10, 20, 40)),
    *({"n_init": n} for n in (1, 2, 4, 8, 16, 32)),
]
MOST = 20_000


def fit(corpora: list[str], topics: list[int], n_seeds: int, output: Path) -> None:
    done = set()
    if output.exists():
        for line in output.read_text().splitlines():
            done.add(json.dumps(json.loads(line)["key"]))
    for name in corpora:
        X = load_corpus(name).data[:MOST]
        n = min(2000, X.shape[0] // 10)
        order = np.random.RandomState(0).permutation(X.shape[0])
        train = X[order[n:]]
        held_out = X[order[:n]]
        for K in topics:
            for seed in range(n_seeds):
                for parameters in SETTINGS:
                    key = [name, K, parameters, seed]
                    if json.dumps(key) not in done:
                        with output.open("a") as file:
                            file.write(
                                json.dumps(
                                    {"key": key, **one(train, held_out, K, parameters, seed)}
                                )
                                + "\n"
                            )


def one(train: Any, held_out: Any, K: int, parameters: dict[str, Any], seed: int) -> dict[str, Any]:
    lda = TemperedLDA(K, random_state=seed, **parameters)
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lda.fit(train)
    seconds = time.process_time() - begin
    return {
        "seconds": seconds,
        "held_out": float(document_completion(lda, held_out, random_state=0)),
        "n_init": int(lda.settings_["n_init"]),
        "max_iter": int(lda.settings_["max_iter"]),
        "support": hasattr(lda, "topic_support_"),
    }


def compare(before: Path, after: Path) -> None:
    runs_of_files: list[dict[str, list[dict[str, Any]]]] = []
    for path in (before, after):
        cells: dict[str, list[dict[str, Any]]] = {}
        for line in path.read_text().splitlines():
            row = json.loads(line)
            cells.setdefault(json.dumps(row["key"][:3]), []).append(row)
        runs_of_files.append(cells)
    lines = []
    for key in runs_of_files[0]:
        pairs = [
            sorted(cells.get(key, []), key=lambda row: row["key"][3]) for cells in runs_of_files
        ]
        if len(pairs[0]) != len(pairs[1]):
            continue
        scores = [np.array([row["held_out"] for row in rows]) for rows in pairs]
        gain = scores[1] - scores[0]
        error = gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else np.nan
        name, K, parameters = json.loads(key)
        kept = [", one kept" * (not rows[0]["support"]) for rows in pairs]
        runs = [f"{rows[0]['n_init']} x {rows[0]['max_iter']}" for rows in pairs]
        cells_of = [run + which for run, which in zip(runs, kept, strict=True)]
        seconds = [np.mean([row["seconds"] for row in rows]) for rows in pairs]
        what = " ".join(f"{k}={v}" for k, v in parameters.items())
        lines.append(
            [
                *(name, K, what, *cells_of, f"{seconds[0]:.1f}", f"{seconds[1]:.1f}"),
                *(f"{scores[0].mean():.3f}", f"{gain.mean():+.3f}", f"{error:.3f}"),
            ]
        )
    head = ["corpus", "K", "given", "runs before", "after", "CPU s before", "after"]
    print(table([*head, "held out before", "gain", "its error"], lines))


def main() -> int:
    options = parser(__doc__)
    options.add_argument("command", choices=["fit", "table"])
    options.add_argument("files", nargs="*", type=Path)
    options.add_argument("--corpora", nargs="+", default=["bbc_news", "kos", "arxiv_100k"])
    options.add_argument("--topics", nargs="+", type=int, default=[20, 100])
    options.add_argument("--seeds", type=int, default=6)
    options.add_argument("--output", type=Path, default=Path("passes_and_runs.jsonl"))
    arguments = options.parse_args()
    if arguments.command == "table":
        compare(*arguments.files)
    else:
        fit(arguments.corpora, arguments.topics, arguments.seeds, arguments.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
