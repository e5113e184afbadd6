"""A stream whose words change: does a growing vocabulary improve the prediction of later texts?

    python -m bench.studies.streams                     # about five minutes on one core
    python -m bench.studies.streams --texts 3000 --topics 10
    python -m bench.studies.streams --random 10000000   # memory with this many random words

20,000 arXiv abstracts (arxiv_texts20k.jsonl.gz) are used in the order of their dates, 1990 to 2019,
in blocks of 500.  Each block is first predicted and then learned.  To predict a document, its
shares are inferred from every second token, and the other tokens are scored, in nats per token.
Stop words are not used.  A word of the vocabulary has probability (1 - u) sum_k theta_k beta_kw.  u
is the share of unknown tokens in the last predicted block.  It is divided evenly among all words of
the 20,000 abstracts that are not in the vocabulary.  The rows of the table are:

first block      the vocabulary is that of the first block, by the limits of TopicVectorizer
first ten        the vocabulary is that of the first ten blocks, and is known from the beginning
growing          `TopicModel.partial_fit` with default settings
fit on all       `TopicModel.fit` to all 20,000 abstracts, including those that are predicted

The table also contains the CPU time of a block.  The script also prints how much the shares of the
first block's documents change when a later block adds words, before the counts are learned.
"""

from __future__ import annotations

import copy
import gzip
import json
import os
import resource
import time
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.base import clone

from annealvi import TemperedLDA, TopicModel
from annealvi.datasets import DATA_VARIABLE
from annealvi.topics import TopicVectorizer
from annealvi.topics.vectorizer import with_stop_words
from bench import CHECKOUT, parser

FIXED = "first block"
TEN = "first ten"
GROWING = "growing"
ALL = "fit on all"


def abstracts(n: int) -> list[str]:
    """Read n evenly spaced abstracts, in the order of their dates."""
    path = Path(os.environ[DATA_VARIABLE], "arxiv_texts20k.jsonl.gz")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        records = sorted(map(json.loads, file), key=lambda row: row["created"])
    return [f"{row['title']}. {row['abstract']}" for row in records[:: len(records) // n]][:n]


def counts(model: TopicModel, words: list[list[str]]) -> sparse.csr_matrix:
    """Count the words of texts that have already been split into words."""
    return copy.copy(model.vectorizer_).set_params(analyzer=list).transform(words)


class Predictions:
    """The scores of a method, one number for each block."""

    def __init__(self, n_words: int, unknown: float) -> None:
        self.n_words = n_words
        self.unknown = unknown
        self.scores: list[float] = []
        self.shares: list[float] = []
        self.seconds: list[float] = []

    def predict(self, model: TopicModel, words: list[list[str]]) -> None:
        known = model.vectorizer_.vocabulary_
        shares = model.lda_.transform(counts(model, [tokens[::2] for tokens in words]))
        topics = model.components_ / model.components_.sum(axis=1, keepdims=True)
        of_unknown = np.log(self.unknown / max(1, self.n_words - len(known)))
        total = 0.0
        n = 0
        n_unknown = 0
        for tokens, theta in zip(words, shares, strict=True):
            columns = [known[word] for word in tokens[1::2] if word in known]
            total += np.log((1 - self.unknown) * (theta @ topics[:, columns])).sum()
            rest = len(tokens[1::2]) - len(columns)
            total = total + rest * of_unknown
            n = n + len(tokens[1::2])
            n_unknown = n_unknown + rest
        self.scores.append(total / n)
        self.shares.append(n_unknown / n)
        self.unknown = max(n_unknown, 1) / n


def moved(model: TopicModel, first: sparse.csr_matrix, n_new: int) -> float:
    """The largest change of shares if words are added without counts."""
    lda = copy.copy(model.lda_)
    before = lda.transform(first)
    after = lda.add_words(n_new).transform(
        sparse.hstack([first, sparse.csr_matrix((first.shape[0], n_new))], format="csr")
    )
    return float(np.abs(after - before).max())


def study(texts: list[str], n_topics: int, size: int) -> dict[str, Predictions]:
    plain = with_stop_words(TopicVectorizer(), "english")  # the vectorizer of TopicModel
    words = [*map(plain.build_analyzer(), texts)]
    n_words = len({word for tokens in words for word in tokens})
    blocks = [slice(start, start + size) for start in range(0, len(texts), size)]
    one, ten = (clone(plain).fit(texts[:n]).vocabulary_ for n in (size, 10 * size))
    vectorizers = {
        FIXED: TopicVectorizer(vocabulary=one),
        TEN: TopicVectorizer(vocabulary=ten),
        GROWING: None,
        ALL: None,
    }
    predictions = {}
    steps = []
    for name, vectorizer in vectorizers.items():
        lda = TemperedLDA(total_samples=len(texts))
        model = TopicModel(
            n_topics, vectorizer=vectorizer, lda=lda, random_state=0, single_topic=False
        )
        if name == ALL:
            model.fit(texts)
        unknown = 0.0
        first = None
        for number, rows in enumerate(blocks):
            if number:
                predictions[name].predict(model, words[rows])
            begin = time.process_time()
            n_before = 0
            if name != ALL:
                if number:
                    n_before = len(model.feature_names_)
                    before = copy.copy(model)
                    begin = time.process_time()
                model.partial_fit(texts[rows])
            seconds = time.process_time() - begin
            if not number:
                known = model.vectorizer_.vocabulary_
                unknown = np.mean([word not in known for tokens in words[rows] for word in tokens])
                predictions[name] = Predictions(n_words, float(unknown))
            elif name == GROWING and len(model.feature_names_) > n_before:
                first = counts(before, words[blocks[0]])
                n_new = len(model.feature_names_) - n_before
                steps.append((number + 1, n_new, moved(before, first, n_new)))
            predictions[name].seconds.append(seconds)
        print(f"{name}: {len(model.feature_names_):,} words at the end", flush=True)
    number, n_new, change = max(steps, key=lambda step: step[-1])
    print(f"\nlargest change of a share in the first block by added words: {change:.1e}")
    print(f"(the {n_new} words of block {number}; median of the blocks ", end="")
    print(f"{np.median([step[-1] for step in steps]):.1e})")
    return predictions


def table(predictions: dict[str, Predictions]) -> None:
    n = len(predictions[FIXED].scores)
    spans = {f"blocks {a + 2} to {b + 1}": slice(a, b) for a, b in ((0, 10), (10, n), (n - 10, n))}
    print(f"\n| vocabulary | {' | '.join(spans)} | unknown at the end | ms a block |")
    print("|---|" + "---|" * (len(spans) + 2))
    for name, of_method in predictions.items():
        means = " | ".join(f"{np.mean(of_method.scores[span]):.3f}" for span in spans.values())
        time_each = "" if name == ALL else f"{1000 * np.median(of_method.seconds[1:]):.0f}"
        print(f"| {name} | {means} | {100 * np.mean(of_method.shares[-10:]):.1f}% | {time_each} |")


def draw(predictions: dict[str, Predictions], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    colours = {FIXED: "#0072b2", TEN: "#56b4e9", GROWING: "#d55e00", ALL: "#444444"}
    fig, axes = plt.subplots(1, 2, figsize=(8, 2.8), layout="constrained")
    base = np.array(predictions[FIXED].scores)
    for name, of_method in predictions.items():
        style = {"color": colours[name], "label": name, "ls": "--" if name == ALL else "-"}
        blocks = np.arange(2, len(base) + 2)
        axes[0].plot(blocks, np.array(of_method.scores) - base, **style)
        axes[1].plot(blocks, 100 * np.array(of_method.shares), **style)
    axes[0].set_ylabel("gain, nats a token")
    axes[1].set_ylabel("unknown tokens, %")
    axes[1].set_ylim(0)
    fig.legend(*axes[1].get_legend_handles_labels(), frameon=False, loc="outside right center")
    for axis in axes:
        axis.set_xlabel("block of abstracts, 1990 to 2019")
        axis.spines[["top", "right"]].set_visible(False)
    fig.savefig(path, dpi=110)


def random_words(n: int) -> None:
    """Stream random words together with texts, and print the memory in use."""
    rng = np.random.RandomState(0)
    texts = abstracts(1000)
    model = TopicModel(20, lda=TemperedLDA(total_samples=n // 200), random_state=0)
    model.partial_fit(texts)
    size = 100_000
    done = 0
    while done < n:
        codes = rng.randint(26, size=(size, 10), dtype=np.uint8) + ord("a")
        letters = codes.tobytes().decode()
        strange = [letters[10 * i : 10 * i + 10] for i in range(size)]
        starts = zip(texts[:500], range(0, size, size // 500), strict=True)
        block = [" ".join([text, *strange[i : i + size // 500]]) for text, i in starts]
        model.partial_fit(block)
        done += size
        if done % (n // 10) < size:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            n_left = sum(model.vocabulary_.n_dropped[name] for name in ("min_df", "max_df"))
            print(
                f"{done:,} words: {n_left:,} candidates, peak of memory {peak:.0f} MB", flush=True
            )


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--texts", type=int, default=20_000)
    options.add_argument("--topics", type=int, default=50)
    options.add_argument("--block", type=int, default=500)
    options.add_argument("--random", type=int, default=0)
    options.add_argument(
        "--figure", type=Path, default=CHECKOUT / "docs" / "record" / "streams.png"
    )
    arguments = options.parse_args()
    if arguments.random:
        random_words(arguments.random)
        return
    predictions = study(abstracts(arguments.texts), arguments.topics, arguments.block)
    table(predictions)
    draw(predictions, arguments.figure)


if __name__ == "__main__":
    main()
