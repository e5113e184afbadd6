"""Documents that no topic explains
================================

Which documents have a high temperature, and which words do they contain?

Prints the documents with the highest and the lowest temperatures, and their words.  Draws two
histograms: the temperatures of true documents, and those of documents of random words.

::

    python examples/hot_documents.py [--seed 0] [--jobs 2] [--output hot_documents.png]
    python examples/hot_documents.py --full [--corpus reuters21578] [--documents 10000]

Local variational tempering (Mandt et al. 2016) learns a temperature for each document.  This script
shows ``document_temperatures_``, which compare each document with an average document of its
length.  Documents that the topics explain as well as expected have temperatures near 1.  Documents
whose words do not belong together have higher temperatures.

As a check, 5% of the documents, drawn at random, are replaced before the fit.  The words of the new
documents are drawn by the frequencies of the whole corpus.  The area under the ROC curve (AUC)
measures how well the temperature separates these documents from the others.  The AUC of the
log-likelihood per word is printed for comparison; this likelihood is also low for short documents
and for rare subjects.  For each document, the script prints words that are frequent in it and rare
elsewhere, and its title or category in the corpus.

Options
-------
default
    The 3,000 abstracts of the package.

--full
    The last --documents of --corpus, which is read from the folder that the environment variable
    ANNEALVI_DATA names (default ``../shared/data``).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from _shared import at_least_one, or_exit, save
from numpy.typing import NDArray
from scipy import sparse
from sklearn.metrics import roc_auc_score

from annealvi import LocalVariational, TemperedLDA
from annealvi.datasets import load_arxiv_abstracts, load_corpus

PLANTED = 0.05
SHORTEST = 20  # words of a document that is printed; shorter ones say little either way
#: Arrays of a corpus that say what a document is.
LABELS = ("title", "pkg", "label", "topics", "primary_cat", "year")


class Corpus(NamedTuple):
    """Documents, words, and what is known about a document."""

    X: sparse.csr_matrix
    words: NDArray
    describe: Callable[[int], str]


def load(full: bool, name: str, n_documents: int) -> Corpus:
    """The bundled abstracts, or the last documents of a corpus."""
    if not full:
        abstracts = load_arxiv_abstracts()
        categories = abstracts.target_names[abstracts.target]
        return Corpus(abstracts.data, abstracts.feature_names, lambda d: str(categories[d]))
    stored = or_exit(load_corpus, name)
    X = stored.data[-n_documents:]
    known = [stored[label][-X.shape[0] :] for label in LABELS if label in stored]
    return Corpus(X, stored.feature_names, lambda d: ", ".join(str(one[d]) for one in known))


def plant(
    X: sparse.csr_matrix, rng: np.random.RandomState
) -> tuple[sparse.csr_matrix, NDArray[np.bool_]]:
    """Redraw some documents from the word frequencies, at their own lengths."""
    planted = np.zeros(X.shape[0], dtype=bool)
    planted[rng.permutation(X.shape[0])[: max(1, round(PLANTED * X.shape[0]))]] = True
    lengths = np.asarray(X.sum(axis=1)).ravel().astype(int)
    frequencies = np.asarray(X.sum(axis=0)).ravel()
    frequencies /= frequencies.sum()
    X = X.tolil(copy=True)
    for row in np.flatnonzero(planted):
        X[row] = rng.multinomial(lengths[row], frequencies)
    return X.tocsr(), planted


def log_likelihood(lda: TemperedLDA, X: sparse.csr_matrix) -> NDArray[np.float64]:
    """Mean log-likelihood of the words of each document, given its topics."""
    beta = lda.components_ / lda.components_.sum(axis=1, keepdims=True)
    theta = lda.transform(X)
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    log_p = X.data * np.log(np.einsum("ek,ke->e", theta[rows], beta[:, X.indices]))
    return np.bincount(rows, log_p, X.shape[0]) / np.asarray(X.sum(axis=1)).ravel()


def listing(corpus: Corpus, rows: NDArray, temperatures: NDArray, n_words: int = 9) -> str:
    """One line per document: temperature, length, what it is, its words."""
    rarity = -np.log(np.maximum(1, corpus.X.getnnz(axis=0)) / corpus.X.shape[0])
    lines = []
    for row in rows:
        document = corpus.X[[row]]
        telling = document.data * rarity[document.indices]
        top_words = document.indices[np.argsort(-telling, kind="stable")[:n_words]]
        words = " ".join(corpus.words[top_words])
        said = corpus.describe(row)[:24]
        lines.append(f"{temperatures[row]:6.2f}{document.sum():6.0f}  {said:<24}  {words}")
    return "\n".join(lines)


def draw(temperatures: NDArray, planted: NDArray[np.bool_], auc: float) -> Any:
    """Histograms of both kinds of documents."""
    figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
    top = float(np.quantile(temperatures[planted], 0.99))
    bins = np.linspace(temperatures.min(), max(top, np.quantile(temperatures, 0.995)), 45)
    shown = np.minimum(temperatures, bins[-1])
    for chosen, label in ((~planted, "documents"), (planted, "planted: random words")):
        ax.hist(
            shown[chosen],
            bins,
            density=True,
            alpha=0.6,
            label=f"{label} ({np.count_nonzero(chosen)})",
        )
    ax.set(
        xlabel="temperature a document would choose",
        ylabel="share of each kind",
        yticks=[],
        title=f"Random words run hot: AUC {auc:.3f}",
    )
    ax.legend()
    return figure


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--full", action="store_true", help="fit --corpus")
    parser.add_argument("--corpus", default="reuters21578")
    parser.add_argument("--documents", type=int, default=10_000, help="of --corpus")
    parser.add_argument("--topics", type=int, help="by default 30, with --full 100")
    parser.add_argument("--passes", type=int, default=10)
    parser.add_argument("--show", type=int, default=8, help="documents in each list")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--output", default="hot_documents.png")
    arguments = parser.parse_args(argv)
    at_least_one(parser, arguments, ("documents", "topics", "passes", "show"))
    corpus = load(arguments.full, arguments.corpus, arguments.documents)
    X, planted = plant(corpus.X, np.random.RandomState(arguments.seed))
    lda = TemperedLDA(
        arguments.topics or (100 if arguments.full else 30),
        doc_topic_prior=0.1,
        topic_word_prior=0.01,
        learning_method="online",
        learning_offset=64,
        batch_size=100 if arguments.full else 32,
        max_iter=arguments.passes,
        temperature=LocalVariational(normaliser="corpus"),
        preset="sklearn",  # the mean field, from random starts
        random_state=arguments.seed,
        n_jobs=arguments.jobs,
    ).fit(X)
    temperatures = lda.document_temperatures_
    auc = roc_auc_score(planted, temperatures)
    by_likelihood = roc_auc_score(planted, -log_likelihood(lda, X))
    print(
        f"{np.count_nonzero(planted)} of {X.shape[0]} documents are random words: "
        f"AUC {auc:.3f} by temperature, {by_likelihood:.3f} by likelihood a word\n"
        f"median temperature {np.median(temperatures[planted]):.2f} of these, "
        f"{np.median(temperatures[~planted]):.2f} of the others"
    )
    lengths = np.asarray(X.sum(axis=1)).ravel()
    candidates = np.flatnonzero(~planted & (lengths >= SHORTEST))
    order = candidates[np.argsort(temperatures[candidates])]
    for name, rows in (("hottest", order[::-1]), ("coolest", order)):
        print(f"\nThe {name} documents: temperature, words, what they are, their words")
        print(listing(corpus, rows[: arguments.show], temperatures))
    print()
    save(draw(temperatures, planted, auc), arguments.output)


if __name__ == "__main__":
    main()
