"""Compare clusters of documents with known labels: purity and normalised mutual information (NMI).

    python -m bench.studies.classes fit [--methods ...] [--corpora ...] [--topics ...] [--seeds 5]
    python -m bench.studies.classes report
    python -m bench.studies.classes choose    how starts, passes and T0 of the mixture were chosen
    python -m bench.studies.classes words     are the mixture's words as good as those of topics?
    python -m bench.studies.classes topics    LDA that starts from the mixture, on shortened texts

The protocols are those of papers on neural topic models and on short-text clustering: models are
fitted to the training documents, and the cluster of each test document is scored.  If there are no
test documents, all documents are scored.  `fit` keeps its results in --folder and repeats nothing.
Methods whose library is not installed are skipped.  `report` writes the tables of
docs/record/classes.md.  It reads results that are not in the folder from classes.json, which it
also writes.  Seconds are CPU seconds of the fit.
"""

from __future__ import annotations

import gzip
import json
import os
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.decomposition import NMF, LatentDirichletAllocation
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.metrics import normalized_mutual_info_score

import annealvi.mixtures.mmm as ours
from annealvi import Annealed, TemperedLDA, TemperedMultinomialMixture
from annealvi.datasets import DATA_VARIABLE, load_corpus
from annealvi.metrics import document_completion, purity, topic_coherence, topic_diversity
from bench import CHECKOUT, parser
from bench.markdown import between_markers, table

DOCS = CHECKOUT / "docs" / "record" / "classes.md"
KEPT = CHECKOUT / "bench" / "studies" / "classes.json"

#: Long and short labelled corpora, with the numbers of clusters that are fitted.
LONG = {"labelled_20ng": (50, 100), "labelled_agnews": (50, 100)}
SHORT = {
    "labelled_searchsnippets": (8, 50, 100),
    "labelled_biomedical": (20, 50, 100),
    "labelled_tweet": (89, 50, 100),
    "labelled_m10": (10, 50, 100),
}
#: Corpora on which the defaults were chosen.
CHOSEN_ON = {
    "bbc_news": (20, 50),
    "arxiv_demo3k": (15, 50),
    "reuters21578": (30, 50),
    "titles": (30, 80),
}
#: The bundled abstracts, shortened to n random words.
THINNED = {f"arxiv_demo3k, {n} words": (15, 50) for n in (6, 12, 25, 50)}
CORPORA = LONG | SHORT | CHOSEN_ON | THINNED
#: For corpora with many labels, the least number of documents of a label that is used.
LEAST = {"reuters21578": 50, "titles": 200}

#: Purity and NMI at K = 50 as published in the table of the HiCOT paper (2025).
PUBLISHED = {
    "ETM": {"labelled_20ng": (0.347, 0.319), "labelled_agnews": (0.679, 0.224)},
    "ECRTM": {"labelled_20ng": (0.560, 0.524), "labelled_agnews": (0.802, 0.367)},
    "FASTopic (embeddings)": {"labelled_20ng": (0.583, 0.528), "labelled_agnews": (0.831, 0.352)},
    "NeuroMax (embeddings)": {"labelled_20ng": (0.623, 0.570), "labelled_agnews": (0.804, 0.410)},
    "HiCOT (embeddings)": {"labelled_20ng": (0.626, 0.583), "labelled_agnews": (0.857, 0.412)},
}


class Corpus(NamedTuple):
    """The counts that are fitted, and the counts with labels that are scored."""

    X: sparse.csr_matrix
    scored: sparse.csr_matrix
    labels: NDArray


def corpus(name: str) -> Corpus:
    """Read the corpus with this name."""
    if name == "titles":
        return _titles()
    data = load_corpus(name.partition(",")[0])
    X = sparse.csr_matrix(data.data)
    if name.startswith("labelled"):
        csr = data.test_data.astype(float), data.test_indices, data.test_indptr
        test = sparse.csr_matrix(csr, shape=tuple(data.test_shape))
        return Corpus(X, test, data.test_labels)
    key = {"bbc_news": "label", "reuters21578": "topics"}.get(name, "primary_cat")
    labels = np.asarray(data[key])
    if name == "reuters21578":  # only articles with one topic
        one = np.array([len(topics.replace(",", " ").split()) == 1 for topics in labels])
        X = X[one]
        labels = labels[one]
    if "," in name:
        rng = np.random.default_rng(0)
        length = int(name.split()[1])
        X.data = rng.binomial(X.data.astype(int), length * X.shape[0] / X.sum()).astype(float)
        X.eliminate_zeros()
    return _of_large_labels(X, labels, LEAST.get(name, 1))


def _titles() -> Corpus:
    """Read the titles of 20,000 abstracts, and the first category of each."""
    path = Path(os.environ[DATA_VARIABLE], "arxiv_texts20k.jsonl.gz")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    counter = CountVectorizer(stop_words="english", min_df=5, max_df=0.25)
    X = counter.fit_transform([record["title"] for record in records]).astype(float)
    labels = np.array([record["category"].split()[0] for record in records])
    return _of_large_labels(X, labels, LEAST["titles"])


def _of_large_labels(X: sparse.csr_matrix, labels: NDArray, min_documents: int) -> Corpus:
    known = np.diff(X.indptr) > 0
    X = X[known]
    names, number = np.unique(labels[known], return_inverse=True)
    large = np.isin(number, np.flatnonzero(np.bincount(number) >= min_documents))
    return Corpus(X[large], X[large], names[number[large]])


# --------------------------------------------------------------------------- methods

#: A method yields its name, the clusters of the scored documents, and CPU seconds.
Found = Iterator[tuple[str, NDArray, float]]
OURS = "`TemperedLDA`"
FROM_TOPICS = "mixture from the topics"
MIXTURE = "mixture, merged runs"


def lda(c: Corpus, K: int, seed: int) -> Found:
    """Fit annealvi's LDA, and yield the results of several rules for clusters."""
    start = time.process_time()
    fitted = TemperedLDA(K, random_state=seed).fit(c.X)
    seconds = time.process_time() - start
    yield f"{OURS}, largest share", fitted.transform(c.scored).argmax(axis=1), seconds
    yield f"{OURS}, `predict`", fitted.predict(c.scored), seconds
    mixture = TemperedMultinomialMixture(K, init=fitted.components_).fit(c.X)
    both = time.process_time() - start
    yield f"{OURS}, {FROM_TOPICS}", mixture.predict(c.scored), both


def mixture(**parameters: Any) -> Callable[[Corpus, int, int], NDArray]:
    """Return a function that fits the multinomial mixture with these parameters."""

    def predicted(c: Corpus, K: int, seed: int) -> NDArray:
        one = TemperedMultinomialMixture(K, random_state=seed, **parameters).fit(c.X)
        return one.predict(c.scored)

    return predicted


def scikit_learn(c: Corpus, K: int, seed: int) -> NDArray:
    fitted = LatentDirichletAllocation(K, random_state=seed).fit(c.X)
    return fitted.transform(c.scored).argmax(axis=1)


def nmf(c: Corpus, K: int, seed: int) -> NDArray:
    weights = TfidfTransformer().fit(c.X)
    fitted = NMF(K, init="nndsvda", random_state=seed).fit(weights.transform(c.X))
    return fitted.transform(weights.transform(c.scored)).argmax(axis=1)


def words(X: sparse.csr_matrix) -> list[list[str]]:
    """Convert documents to lists of words."""
    return [
        np.repeat(X.indices[a:b], X.data[a:b].astype(int)).astype(str).tolist()
        for a, b in pairwise(X.indptr)
    ]


def gensim(c: Corpus, K: int, seed: int) -> NDArray:
    """Fit gensim's LDA with one pass, as the library TopMost does."""
    from gensim.models import LdaModel

    def bags(X: sparse.csr_matrix) -> list[list[tuple[int, int]]]:
        return [
            [(int(v), int(n)) for v, n in zip(X.indices[a:b], X.data[a:b], strict=True)]
            for a, b in pairwise(X.indptr)
        ]

    names = {word: str(word) for word in range(c.X.shape[1])}
    fitted = LdaModel(bags(c.X), num_topics=K, id2word=names, random_state=seed)
    return fitted.inference(bags(c.scored))[0].argmax(axis=1)


def tomotopy(c: Corpus, K: int, seed: int) -> NDArray:
    import tomotopy as library

    model = library.LDAModel(k=K, seed=seed)
    for document in words(c.X):
        model.add_doc(document or ["0"])
    model.train(300, workers=1)
    documents = [model.make_doc(document or ["0"]) for document in words(c.scored)]
    return np.array(model.infer(documents, workers=1)[0]).argmax(axis=1)


def topica(kind: str, sweeps: int) -> Callable[[Corpus, int, int], NDArray]:
    def predicted(c: Corpus, K: int, seed: int) -> NDArray:
        import topica as library

        model = getattr(library, kind)(K, seed=seed)
        model.fit(words(c.X), iters=sweeps)
        return np.asarray(model.transform(words(c.scored))).argmax(axis=1)

    return predicted


PLAIN = {"temperature": 1, "init": "kmeans++"}
METHODS: dict[str, Callable[[Corpus, int, int], Any]] = {
    "lda": lda,
    MIXTURE: mixture(),
    "mixture, one run": mixture(init="kmeans++"),
    "mixture, best of 12 runs": mixture(init="kmeans++", n_init=12),
    "mixture, one run, T = 1": mixture(**PLAIN),
    "scikit-learn, LDA": scikit_learn,
    "NMF of tf-idf": nmf,
    "gensim, one pass": gensim,
    "tomotopy, 300 sweeps": tomotopy,
    "topica, LDA, 1,000 sweeps": topica("LDA", 1000),
    "topica, GSDMM, 30 sweeps": topica("GSDMM", 30),
}
#: The rows of the tables, in order.
ROWS = [
    *(f"{OURS}, {how}" for how in ("largest share", "`predict`", FROM_TOPICS)),
    *list(METHODS)[1:],
]


def fit(names: list[str], corpora: list[str], sizes: list[int] | None, n_seeds: int, to: Path):
    """Make the fits that are not in the folder yet."""
    to.mkdir(parents=True, exist_ok=True)
    for of in corpora:
        c = corpus(of)
        for K in sizes or CORPORA[of]:
            for seed in range(n_seeds):
                for name in names:
                    path = to / f"{name.replace(' ', '_').replace(',', '')}-{of}-{K}-{seed}.json"
                    if path.exists():
                        continue
                    try:
                        scores = list(run(name, c, K, seed))
                    except ImportError as error:
                        print(f"{name} is skipped: {error}")
                        continue
                    path.write_text(
                        json.dumps([[row, of, K, seed, *all_] for row, *all_ in scores])
                    )
                    for row, *numbers in scores:
                        print(
                            of, K, seed, row, *(f"{number:.3f}" for number in numbers), flush=True
                        )


def run(name: str, c: Corpus, K: int, seed: int) -> Iterator[tuple[str, float, float, float]]:
    """Fit a method, and yield its scores."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if name == "lda":
            predictions = list(lda(c, K, seed))
        else:
            predictions = [(name, METHODS[name](c, K, seed), time.process_time() - start)]
    for row, classes, seconds in predictions:
        nmi = normalized_mutual_info_score(c.labels, classes)
        yield row, purity(c.labels, classes), float(nmi), seconds


def kept(folder: Path) -> dict[tuple, tuple]:
    """Read the purity, NMI and seconds for each method, corpus, K and seed.

    Results in the folder have priority over those in the file.
    """
    rows = json.loads(KEPT.read_text()) if KEPT.exists() else []
    for path in sorted(folder.glob("*.json")):
        rows += json.loads(path.read_text())
    return {tuple(row[:4]): tuple(row[4:]) for row in rows}


def cell(results: dict[tuple, tuple], row: str, of: str, K: int) -> NDArray | None:
    """The purity, NMI and seconds of a row, as means over seeds."""
    values = [value for key, value in results.items() if key[:3] == (row, of, K)]
    return np.mean(values, axis=0) if values else None


def score_table(
    results: dict[tuple, tuple], corpora: dict[str, tuple[int, ...]], rows: list[str]
) -> str:
    """Make the table of purity, NMI and seconds."""
    columns = [(of, K) for of, sizes in corpora.items() for K in sizes]
    lines = []
    for row in rows:
        cells = []
        for of, K in columns:
            means = cell(results, row, of, K)
            if means is None:
                published = PUBLISHED.get(row, {}).get(of) if K == 50 else None
                cells.append(f"{published[0]:.3f} / {published[1]:.3f}" if published else "–")
            else:
                cells.append(f"{means[0]:.3f} / {means[1]:.3f} ({means[2]:.1f} s)")
        lines.append([row, *cells])
    header = [f"{of.removeprefix('labelled_')}, {K}" for of, K in columns]
    return table(["", *header], lines)


DIFFERENCES = (
    *("method", "compared with", "corpora and K"),
    *("purity: mean gain", "least gain", "NMI: mean gain", "least gain"),
)


def gains(
    results: dict[tuple, tuple], of: dict[str, tuple[int, ...]], row: str, over: str
) -> list[str]:
    """The mean and the least gain in purity and NMI of one row over another row."""
    pairs = [
        (a[:2], b[:2])
        for name, sizes in of.items()
        for K in sizes
        if (a := cell(results, row, name, K)) is not None
        and (b := cell(results, over, name, K)) is not None
    ]
    change = np.array([a - b for a, b in pairs])
    mean = change.mean(axis=0)
    lowest = change.min(axis=0)
    numbers = [f"{number:+.3f}" for pair in zip(mean, lowest, strict=True) for number in pair]
    return [row, over, str(len(pairs)), *numbers]


def report(folder: Path) -> None:
    """Write the tables into the page, and the results into classes.json."""
    results = kept(folder)
    listed = sorted(
        [*key, *(round(number, 4) for number in value)] for key, value in results.items()
    )
    KEPT.write_text("[\n" + ",\n".join(json.dumps(row) for row in listed) + "\n]\n")
    topics = f"{OURS}, {FROM_TOPICS}"
    gsdmm = "topica, GSDMM, 30 sweeps"
    share = f"{OURS}, largest share"
    short = {name: SHORT[name][:1] for name in SHORT}
    first = ROWS[:7]
    differences = [
        gains(results, LONG | SHORT, topics, share),
        gains(results, LONG | SHORT, MIXTURE, share),
        gains(results, short, MIXTURE, gsdmm),
        gains(results, short, MIXTURE, "mixture, one run"),
        gains(results, short, MIXTURE, "mixture, best of 12 runs"),
    ]
    paragraphs = [
        "### Long texts",
        score_table(results, LONG, [*ROWS[:4], *ROWS[7:], *PUBLISHED]),
        "### Short texts",
        score_table(results, SHORT, ROWS),
        "### Differences",
        table(DIFFERENCES, differences),
        "### The corpora on which defaults were chosen",
        score_table(results, CHOSEN_ON, first),
        "### Abstracts with fewer words",
        score_table(results, THINNED, first[:4]),
    ]
    between_markers(DOCS, "\n\n".join(paragraphs))


def choose() -> None:
    """Print purity, NMI and CPU seconds of the mixture with other numbers of merged starts."""
    settings = [(12, 6, 3.0), (8, 10, 3.0), (5, 15, 3.0), *((12, 6, T) for T in (1.5, 5.0, 10.0))]
    before = (ours.RUNS, ours.PASSES, ours.COOLING)
    lines = []
    for n_starts, n_passes, hottest in settings:
        ours.RUNS = n_starts
        ours.PASSES = n_passes
        ours.COOLING = Annealed(hottest, length=1.0)
        cells = []
        for of, sizes in CHOSEN_ON.items():
            c = corpus(of)
            scores = [next(run(MIXTURE, c, K, seed))[1:] for K in sizes for seed in (0, 1)]
            cells.append("{:.3f} / {:.3f} ({:.1f} s)".format(*np.mean(scores, axis=0)))
        lines.append([n_starts, n_passes, hottest, *cells])
    ours.RUNS, ours.PASSES, ours.COOLING = before
    print(table(["starts", "passes", "T0", *CHOSEN_ON], lines))


def top_words() -> None:
    """Print NPMI and diversity of the ten most relevant words of topics and of clusters."""
    lines = []
    for of, (K, *_) in (CHOSEN_ON | SHORT).items():
        X = corpus(of).X
        X = X[np.random.default_rng(0).permutation(X.shape[0])]
        fitted = X[: X.shape[0] // 2]
        held_out = X[X.shape[0] // 2 :]
        cells = []
        for kind in (TemperedLDA, TemperedMultinomialMixture):
            ones = [kind(K, random_state=seed).fit(fitted) for seed in (0, 1)]
            npmi = np.mean([topic_coherence(one, held_out, relevance=0.7) for one in ones])
            diverse = np.mean([topic_diversity(one, n_words=10, relevance=0.7) for one in ones])
            cells.append(f"{npmi:.3f}, {diverse:.2f}")
        lines.append([of, K, *cells])
    print(table(["corpus", "K", "topics", "classes"], lines))


def topics() -> None:
    """Print the gain in held-out log-likelihood per word if LDA starts from the mixture."""
    lines = []
    rng = np.random.default_rng(0)
    for of in ("arxiv_100k", "kos", "reuters21578", "imdb_100k"):
        X = sparse.csr_matrix(load_corpus(of).data, dtype=int)
        X = X[rng.permutation(X.shape[0])[:8000]]
        for length in (6, 12, 25, 50):
            Z = X.copy()
            Z.data = rng.binomial(Z.data, min(1.0, length * X.shape[0] / X.sum()))
            Z.eliminate_zeros()
            Z = Z[:, np.bincount(Z.indices, minlength=Z.shape[1]) >= 5].astype(float)
            Z = Z[np.diff(Z.indptr) > 1]
            fitted = Z[: Z.shape[0] * 4 // 5]
            held_out = Z[Z.shape[0] * 4 // 5 :]
            for K in (20, 100):
                plain = TemperedLDA(K, random_state=0).fit(fitted)
                one = TemperedMultinomialMixture(K, random_state=0).fit(fitted)
                begun = TemperedLDA(K, init=one.components_, n_init=1, random_state=0).fit(fitted)
                a, b = (
                    document_completion(lda, held_out, random_state=0) for lda in (plain, begun)
                )
                lines.append([of, length, K, f"{a:.3f}", f"{b - a:+.3f}"])
    gain = np.array([float(line[-1]) for line in lines])
    print(table(["corpus", "words", "K", "default", "from the mixture"], lines))
    print(f"mean {gain.mean():+.3f}, worse in {np.sum(gain < 0)} of {len(gain)}")


STAGES = {"choose": choose, "words": top_words, "topics": topics}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("stage", choices=["fit", "report", *STAGES])
    options.add_argument("--folder", type=Path, default=CHECKOUT / "build" / "classes")
    options.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    options.add_argument("--corpora", nargs="+", choices=list(CORPORA), default=list(CORPORA))
    options.add_argument("--topics", nargs="+", type=int)
    options.add_argument("--seeds", type=int, default=5)
    chosen = options.parse_args()
    if chosen.stage == "report":
        report(chosen.folder)
    elif chosen.stage in STAGES:
        STAGES[chosen.stage]()
    else:
        fit(chosen.methods, chosen.corpora, chosen.topics, chosen.seeds, chosen.folder)


if __name__ == "__main__":
    main()
