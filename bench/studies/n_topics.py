"""Which rule finds the number of topics, what makes it cheaper, and how to reduce topics.

    python -m bench.studies.n_topics [planted] [real] [cheaper] [reduce] [--write]

Each part prints its tables; with --write all of them go to docs/n_topics.md.  Together they take
seven minutes of CPU time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from annealvi import TemperedLDA
from annealvi.datasets import load_arxiv_abstracts, load_corpus, make_topic_corpus
from annealvi.topics import Choice, choose
from annealvi.topics.choice import ENOUGH, RULES
from bench import CHECKOUT, parser
from bench.markdown import between_markers, spread, table
from bench.studies.study import reducing, warm

DOCS = CHECKOUT / "docs" / "n_topics.md"
SMALL, LARGE = (2, 3, 5, 8, 12, 20, 30), (5, 10, 20, 50, 100, 200)
DEFAULT = (10, 20, 50, 100, 200)


class Planted(NamedTuple):
    """A corpus drawn from LDA, and the numbers of topics that are compared."""

    n_topics: int
    n_documents: int
    n_features: int
    length: int
    alpha: float
    eta: float
    ks: tuple[int, ...]

    def draw(self, seed: int) -> sparse.csr_matrix:
        return make_topic_corpus(
            self.n_documents,
            self.n_features,
            self.n_topics,
            document_length=self.length,
            doc_topic_prior=self.alpha,
            topic_word_prior=self.eta,
            random_state=seed,
        ).data

    def steps_off(self, recommended: int) -> int:
        """Steps of the grid from the number that is nearest to the planted one, as a ratio."""
        ks = np.array(self.ks)
        nearest = int(np.argmin(np.abs(np.log(ks / self.n_topics))))
        return abs(self.ks.index(recommended) - nearest)


PLANTED = (
    Planted(3, 500, 300, 80, 0.1, 0.05, SMALL),
    Planted(5, 600, 400, 60, 0.3, 0.05, SMALL),
    Planted(5, 600, 800, 40, 0.1, 0.1, SMALL),
    Planted(8, 1000, 600, 60, 0.1, 0.1, SMALL),
    Planted(12, 800, 500, 80, 0.1, 0.05, SMALL),
    Planted(20, 1000, 1000, 80, 0.1, 0.05, SMALL),
    Planted(5, 500, 200, 100, 0.1, 0.05, LARGE),
    Planted(8, 1500, 800, 60, 0.5, 0.05, LARGE),
    Planted(10, 1000, 500, 80, 0.1, 0.05, LARGE),
    Planted(10, 1000, 3000, 150, 0.1, 0.05, LARGE),
    Planted(15, 1500, 1000, 50, 0.2, 0.1, LARGE),
    Planted(20, 1000, 500, 80, 0.1, 0.05, LARGE),
    Planted(20, 2000, 1000, 60, 0.05, 0.02, LARGE),
    Planted(30, 2000, 1000, 60, 0.05, 0.1, LARGE),
    Planted(50, 2000, 1000, 80, 0.05, 0.02, LARGE),
    Planted(50, 2000, 2000, 100, 0.1, 0.05, LARGE),
    Planted(70, 2000, 1000, 100, 0.05, 0.05, LARGE),
    Planted(100, 3000, 2000, 80, 0.03, 0.02, LARGE),
    Planted(100, 3000, 4000, 40, 0.05, 0.01, LARGE),
    Planted(200, 4000, 3000, 60, 0.02, 0.02, LARGE),
)
#: Real corpora, and how many of their documents are used at most.
REAL = {
    "arXiv abstracts (bundled)": None,
    "bbc_news": None,
    "kos": None,
    "20ng_etm": 20_000,
    "debian_desc": 20_000,
    "arxiv_100k": 20_000,
}
#: Those on which less work is compared with more.
LARGE_CORPORA = ("20ng_etm", "debian_desc", "arxiv_100k")
FEWER, FEWEST = 5000, 2500


def load(corpus: str) -> sparse.csr_matrix:
    if corpus.startswith("arXiv"):
        return load_arxiv_abstracts().data
    X = sparse.csr_matrix(load_corpus(corpus).data)
    X = X[np.diff(X.indptr) > 0]
    return X[np.random.RandomState(0).permutation(X.shape[0])[: REAL[corpus]]]


def largest(name: str) -> Callable[[NDArray, dict[str, NDArray]], tuple[int, str]]:
    """The rule that takes the largest mean of a measure."""
    return lambda ks, measures: (int(np.argmax(measures[name].mean(axis=1))), "")


def one_error(ks: NDArray, measures: dict[str, NDArray]) -> tuple[int, str]:
    """The smallest number within one standard error of the best held-out prediction."""
    heldout = measures["heldout"]
    best = int(np.argmax(heldout.mean(axis=1)))
    behind = heldout[best] - heldout
    error = behind.std(axis=1, ddof=1) / np.sqrt(heldout.shape[1])
    return int(np.flatnonzero(behind.mean(axis=1) <= error)[0]), ""


ALL_RULES: dict[str, Any] = {
    "quality (the default)": RULES["quality"],
    f"{ENOUGH:.0%} of the gain held out": RULES["heldout"],
    "highest held out": largest("heldout"),
    "smallest within a standard error of it": one_error,
    "highest coherence": largest("coherence"),
    "highest stability": largest("stability"),
}


def recommended(choice: Choice, rule: str) -> int:
    return int(choice.ks[ALL_RULES[rule](choice.ks, choice.measures)[0]])


def measures(choice: Choice) -> str:
    """A table of all measures of one corpus."""
    names = ("heldout", "coherence", "diversity", "quality", "stability")
    rows = []
    for row, k in enumerate(choice.ks):
        values = [spread(choice.measures[name][row]) for name in names]
        rows.append([f"**{k}**" if k == choice.recommended else str(k), *values])
    return table(["K", "held out", "coherence", "diversity", "quality", "stability"], rows)


def planted() -> list[str]:
    """Planted numbers of topics, and what each rule says."""
    rows, off = [], {rule: [] for rule in ALL_RULES}
    for seed, corpus in enumerate(PLANTED):
        start = time.process_time()
        choice = choose(corpus.draw(100 + seed), corpus.ks, random_state=0)
        seconds = time.process_time() - start
        found = {rule: recommended(choice, rule) for rule in ALL_RULES}
        for rule, k in found.items():
            off[rule].append(corpus.steps_off(k))
        about = [str(value) for value in corpus[:-1]]
        rows.append([*about, *(str(k) for k in found.values()), f"{seconds:.1f}"])
    header = ["planted K", "D", "V", "words each", "α", "η", *ALL_RULES, "CPU s"]
    hits = [
        [rule, *(f"{sum(n <= most for n in steps)} of {len(steps)}" for most in (0, 1))]
        for rule, steps in off.items()
    ]
    return [
        "### Planted corpora",
        table(["rule", "the nearest of the numbers", "within one step"], hits),
        f"Numbers compared: {SMALL} in the first {sum(c.ks is SMALL for c in PLANTED)} rows, "
        f"{LARGE} in the others. Three runs.",
        table(header, rows),
    ]


def real() -> list[str]:
    """Real corpora: measures, and what the two criteria say."""
    parts, rows = ["### Real corpora"], []
    for corpus in REAL:
        X = load(corpus)
        start = time.process_time()
        choice = choose(X, random_state=0)
        seconds = time.process_time() - start
        found = [str(recommended(choice, rule)) for rule in ALL_RULES]
        rows.append([corpus, str(X.shape[0]), str(choice.n_documents), *found, f"{seconds:.1f}"])
        parts += [f"**{corpus}**: {choice.rule}", measures(choice)]
    header = ["corpus", "documents", "used", *ALL_RULES, "CPU s"]
    return [parts[0], table(header, rows), *parts[1:]]


def cheaper() -> list[str]:
    """Whether samples, short fits and warm starts change the choice."""
    rows = []
    for corpus in LARGE_CORPORA:
        X = load(corpus)
        usual = TemperedLDA(5, max_iter=None).fit(X[:FEWER]).n_iter_
        half = TemperedLDA(max_iter=round(usual / 2))
        ways: dict[str, Callable[[], Choice]] = {
            f"all {X.shape[0]} documents": lambda X=X: choose(
                X, n_runs=2, max_documents=None, random_state=0
            ),
            f"{FEWER} (the default)": lambda X=X: choose(X, n_runs=2, random_state=0),
            f"{FEWEST}": lambda X=X: choose(X, n_runs=2, max_documents=FEWEST, random_state=0),
            f"{FEWER}, half the passes": lambda X=X, half=half: choose(
                X, n_runs=2, model=half, random_state=0
            ),
            f"{FEWER}, warm starts": lambda X=X: warm.choose(X, DEFAULT, FEWER, n_runs=2),
        }
        for name, way in ways.items():
            start = time.process_time()
            choice = way()
            seconds = time.process_time() - start
            quality = choice.measures["quality"].mean(axis=1)
            rows.append(
                [
                    corpus,
                    name,
                    *(f"{value:.3f}" for value in quality),
                    *(str(recommended(choice, rule)) for rule in list(ALL_RULES)[:2]),
                    f"{seconds:.1f}",
                ]
            )
    numbers = [f"quality at {k}" for k in DEFAULT]
    header = ["corpus", "documents, fits", *numbers, *list(ALL_RULES)[:2], "CPU s"]
    return ["### Less work", table(header, rows)]


def reduced() -> list[str]:
    """Ways to reduce topics, by held-out likelihood before and after `refine`."""
    corpora = {
        "planted 20": (PLANTED[12].draw(7), 40, (20, 10)),
        "planted 50": (PLANTED[15].draw(7), 100, (50, 25)),
        "bbc_news": (load("bbc_news"), 100, (50, 20)),
        "20ng_etm": (load("20ng_etm")[:FEWER], 100, (50, 20)),
        "debian_desc": (load("debian_desc")[:FEWER], 100, (50, 20)),
    }
    rows, totals = reducing.compare(corpora)
    header = ["corpus", "from, to", *reducing.WAYS, "a new fit"]
    return ["### Fewer topics", table(header, rows), table(*totals)]


PARTS = {"planted": planted, "real": real, "cheaper": cheaper, "reduce": reduced}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; default: all")
    options.add_argument("--write", action="store_true", help=f"into {DOCS.name}")
    arguments = options.parse_args()
    tables: list[str] = []
    start = time.process_time()
    for name in arguments.parts or PARTS:
        tables += PARTS[name]()
        print(f"[{name}: {time.process_time() - start:.0f} CPU seconds so far]", flush=True)
    tables.append(f"All of it took {time.process_time() - start:.0f} CPU seconds.")
    print(*tables, sep="\n\n")
    if arguments.write:
        between_markers(DOCS, "\n\n".join(tables))


if __name__ == "__main__":
    main()
