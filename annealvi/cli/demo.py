"""``annealvi demo``: the topics of the bundled abstracts, from their texts, and a report."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from annealvi._optional import import_optional
from annealvi.cli.console import Console, FitProgress, size_of
from annealvi.cli.models import Topics, sparkline
from annealvi.datasets import load_arxiv_abstracts
from annealvi.lda import TemperedLDA
from annealvi.topics import TopicModel, TopicVectorizer, describe

N_TOPICS = 30


def demo(output: str = "annealvi_demo.html") -> None:
    """Fit topics to the bundled abstracts, print them and write a report."""
    for module in ("pandas", "plotly"):
        import_optional(module, "demo", "annealvi demo")
    if Path(output).is_dir() or not Path(output).parent.is_dir():
        raise OSError(f"cannot write the report to {output!r}: it must be a file in a folder.")
    console = Console()
    abstracts = load_arxiv_abstracts(texts=True)
    print(f"{len(abstracts.texts):,} abstracts of arXiv, {N_TOPICS} topics", flush=True)
    vectorizer = TopicVectorizer(stop_words="english")
    X = vectorizer.fit_transform(abstracts.texts)
    print(vectorizer.dropped_.note(), flush=True)
    lda = TemperedLDA(
        N_TOPICS,
        random_state=0,
        total_samples=float(X.shape[0]),
        callback=FitProgress(console, X, "fitting"),
    )
    lda.fit(X).set_params(callback=None)
    console.clear()
    topics = Topics(TopicModel.from_parts(vectorizer, lda), "the demo")
    classes = abstracts.target_names[abstracts.target]
    summary = describe(topics.lda, X, topics.words, texts=abstracts.texts, titles=abstracts.titles)
    summary.labels = topics.labels
    _print(summary, classes, abstracts.created)
    summary.to_html(
        output, title="Topics of 3,000 arXiv abstracts", times=abstracts.created, groups=classes
    )
    print(f"\nReport: {output} ({size_of(os.path.getsize(output))}), to be opened in a browser.")
    print("For your own texts: annealvi fit --help")


def _print(summary: Any, classes: Any, times: Any) -> None:
    """Print the topics, largest first: share, course over the years, main class, words."""
    over, by = summary.over(times), summary.by(classes)
    years = over.index.year
    drawn = over[over["n_documents"] >= 20] if len(over) else over
    first, last = (drawn.index.year[at] for at in (0, -1)) if len(drawn) else (years[0], years[-1])
    span = over[(years >= first) & (years <= last)]
    head = f"{first} to {last}"
    width = max(len(span), len(head))
    wide = max(len(str(name)) for name in by.index)
    print(f"\ntopic  share  {head:<{width}}  {'mostly in':<{wide + 5}}  words")
    for k in np.argsort(-summary.topic_shares, kind="stable").tolist():
        label = summary.labels[k]
        column = by[label] * by["n_documents"]
        part = column.max() / column.sum()
        course = f"{sparkline(span[label]):<{width}}"
        mostly = f"{column.idxmax():<{wide}} {part:>4.0%}"
        words = " ".join(summary.words(k, 7))
        print(f"{k:>5}  {summary.topic_shares[k]:>5.1%}  {course}  {mostly}  {words}")
