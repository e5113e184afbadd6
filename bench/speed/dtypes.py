"""Default fits in float64 against float32: CPU seconds, and held-out log-likelihood per word.

    python -m bench.speed.dtypes

The training documents of bench/studies/splits.py are fitted from three seeds, in the two dtypes in
turn, on one thread.  The median of the seconds is printed, and the mean of the log-likelihood of
the test documents.
"""

from __future__ import annotations

import sys
import time
import warnings
from statistics import mean, median

from sklearn.exceptions import ConvergenceWarning

from annealvi import TemperedLDA
from annealvi.metrics import document_completion
from bench import parser
from bench.studies.splits import load

CORPORA = ("bbc_news", "debian_desc")
SIZES, SEEDS = (20, 100), range(3)
DTYPES = ("float64", "float32")


def measure(corpus: str, n_topics: int) -> str:
    """A row of the table."""
    documents = load(corpus)
    seconds: dict[str, list[float]] = {dtype: [] for dtype in DTYPES}
    held_out: dict[str, list[float]] = {dtype: [] for dtype in DTYPES}
    for seed in SEEDS:
        for dtype in DTYPES:
            lda = TemperedLDA(n_topics, dtype=dtype, random_state=seed)
            before = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                lda.fit(documents.train)
            seconds[dtype].append(time.process_time() - before)
            held_out[dtype].append(float(document_completion(lda, documents.test)))
    cells = [f"{median(seconds[dtype]):.2f}" for dtype in DTYPES]
    cells += [f"{mean(held_out[dtype]):.4f}" for dtype in DTYPES]
    return f"| {corpus} | {n_topics} | {' | '.join(cells)} |"


def main() -> int:
    parser(__doc__).parse_args()
    print("| corpus | K | seconds, float64 | float32 | held out, float64 | float32 |")
    print("|---|---|---|---|---|---|")
    for corpus in CORPORA:
        for n_topics in SIZES:
            print(measure(corpus, n_topics), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
