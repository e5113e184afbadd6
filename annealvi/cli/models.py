"""Models in the commands ``annealvi label``, ``show``, ``label-topics`` and ``compare``."""

from __future__ import annotations

import csv
import io
import os
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from annealvi._optional import import_optional
from annealvi.cli.inputs import Corpus, read_corpus
from annealvi.exceptions import BadParameter
from annealvi.files import read as read_file
from annealvi.files import replacing
from annealvi.matrices import summed
from annealvi.metrics.topics import topic_checksum
from annealvi.progress import Progress
from annealvi.storage import ESTIMATOR, KIND, estimator_of, save
from annealvi.topics import TopicSummary, TopicVectorizer, compare_topics, describe
from annealvi.topics.described import Topics
from annealvi.topics.shares import check_times
from annealvi.topics.source import Source, in_columns, lda_in
from annealvi.topics.times import read_times
from annealvi.topics.trust import UNKNOWN, Together, probability_of, reasons, similarity_of

LEGENDS = {
    "probability": "probability: that a new fit finds the topic",
    "similarity": "similarity: how similar the topic is to its match in other fits (cosine); these "
    "are the fits that were made to choose the number of topics",
}
MARKED = "* weak topics may be missing in a new fit, unclear ones mean little: read their documents"


def counts_of(source: Source, corpus: Corpus, origin: str) -> Any:
    """Return the counts of the model's words in documents."""
    if corpus.texts is not None and source.count is None:
        raise ValueError(
            f"{origin} was fitted to counts without a vocabulary, so it cannot be applied to the "
            f"texts of {corpus.origin}. Pass counts with the same columns."
        )
    if corpus.texts is not None:
        return source.count(corpus.texts)
    X = corpus.counts
    if corpus.words is not None and source.count is not None:
        X = in_columns(X, corpus.words, source.topics.words)
    if X.shape[1] != len(source.topics.words):
        raise ValueError(
            f"{corpus.origin} must have counts of the same {len(source.topics.words):,} words as "
            f"{origin}. Got counts of {X.shape[1]:,} words."
        )
    return X


def described(
    source: Source,
    corpus: Corpus,
    X: csr_matrix,
    chosen: Namespace,
    *,
    other: Any = None,
    refits: int = 0,
) -> TopicSummary:
    """Summarise documents and their counts, with the labels that the commands show."""
    summary = describe(
        source.whole,
        X,
        source.topics.words,
        texts=corpus.texts,
        titles=corpus.columns.get("title"),
        other=other,
        refits=refits,
        n_jobs=-1,
        verbose=not chosen.quiet,
    )
    summary.labels.show(source.topics.labels)  # without changing the model
    return summary


def print_topics(topics: Topics, n_words: int, together: Together | None = None) -> None:
    """Print a table of the topics, largest first, with their numbers, shares and words.

    If known, the columns probability (that a new fit finds the topic) and similarity (how well it
    matches topics of other fits) are added.  Weak and unclear topics have a star; the reasons
    follow below.
    """
    marked = reasons(topics, together)
    measures = {}
    if topics.evidence is not None:
        measures["probability"] = probability_of(topics.evidence)
    similarity = similarity_of(topics)
    if np.isfinite(similarity).all():  # NaN if it is unknown
        measures["similarity"] = similarity
    print("  ".join(["topic", "share", *measures, "words"]))
    order = np.argsort(-topics.sizes, kind="stable").tolist()
    for k in order:
        cells = [f"{k:>5}{'*' if marked[k] else ' '} {topics.sizes[k]:>5.1%}"]
        cells += [f"{values[k]:>{len(name)}.2f}" for name, values in measures.items()]
        label = f"{topics.named[k]}: " if k in topics.named else ""
        print("  ".join([*cells, label + " ".join(topics.top(k, n_words))]))
    for name in measures:
        print(LEGENDS[name])
    if topics.evidence is None:
        print(UNKNOWN)
    if any(marked):
        print(MARKED)
    for k in order:
        if marked[k]:
            print(f"{k:>5}* {marked[k]}")


def _missing_tokenizer(text: str) -> list[str]:
    """Stand for a function of the user, which files do not contain, until texts are read."""
    raise ValueError(
        "The model was fitted with a function that splits texts into words. Files do not contain "
        "functions, so apply the model to texts in Python: annealvi.load(path, vectorizer=...)."
    )


def read_topics(path: str) -> Source:
    """Read a model that ``annealvi fit`` or :func:`annealvi.save` wrote."""
    tree = read_file(path, KIND)["tree"]
    if "vectorizer" in ESTIMATOR.load(tree, "")["functions"]:
        # a vectorizer whose function only raises an error
        model = estimator_of(tree, {"vectorizer": TopicVectorizer(tokenizer=str.split)})
        model.vectorizer_.set_params(tokenizer=_missing_tokenizer)
    else:
        model = estimator_of(tree)
    if lda_in(model) is None:
        raise ValueError(f"{path!r} must contain a topic model. Got a {type(model).__name__}.")
    return Source(model)


def check_output(option: str, path: str) -> None:
    """Raise OSError before the work if a file cannot be written after it."""
    folder = Path(path).parent
    # a file that exists may be in a folder that is read-only
    is_writable = os.access(folder, os.W_OK) or os.access(path, os.W_OK)
    if Path(path).is_dir() or not folder.is_dir() or not is_writable:
        raise OSError(f"{option}: {path!r} must be a file in a folder that you can write to.")


def say(chosen: Namespace, line: str) -> None:
    """Print a line to stderr, unless the user chose --quiet."""
    if not chosen.quiet:
        print(line, file=sys.stderr, flush=True)


def progress(chosen: Namespace, what: str, total: int = 0) -> Progress:
    """Return a line on stderr that shows how far something is, unless the user chose --quiet."""
    return Progress(what, total, shown=not chosen.quiet)


def check_columns(corpus: Corpus, chosen: Namespace) -> None:
    """Raise errors in the columns of times and groups before the fit or the refits.

    The times are replaced by datetimes, so that they are read only once.
    """
    times = corpus.columns.get("time")
    if times is not None:
        pandas = import_optional("pandas", "--time")
        with progress(chosen, "reading dates"):
            corpus.columns["time"] = read_times(times, pandas).tolist()
            check_times(corpus.columns["time"], chosen.freq)
    groups = corpus.columns.get("group")
    if groups is not None and all(group is None for group in groups):
        raise BadParameter("groups", "a column with at least one group that is not missing", None)


def read(chosen: Namespace) -> Corpus:
    """Read the documents that the options name, and report their number."""
    with progress(chosen, f"reading {chosen.path}"):
        corpus = read_corpus(chosen)
    if vars(chosen).get("drop_copies") and corpus.texts is not None:
        firsts: dict[str, int] = {}  # the number of the first document with each text
        for number, text in enumerate(corpus.texts):
            firsts.setdefault(text, number)
        say(chosen, f"dropped {len(corpus) - len(firsts):,} exact copies of earlier texts")
        corpus = corpus.take(firsts.values())
    n_empty = sum(not text.strip() for text in corpus.texts or ())
    documents = "1 document" if len(corpus) == 1 else f"{len(corpus):,} documents"
    note = f"; {n_empty:,} of them are empty" if n_empty else ""
    say(chosen, f"read {documents} from {chosen.path}{note}")
    return corpus


# --------------------------------------------------------------------------- commands


def label(chosen: Namespace) -> None:
    """Write a table with the topic to which each document is assigned, and the topic's share."""
    is_anndata = chosen.output is not None and chosen.output.endswith(".h5ad")
    if chosen.output is not None:
        check_output("--output", chosen.output)
        if is_anndata:
            import_optional("anndata", "Writing a .h5ad file")
    source = read_topics(chosen.model)
    corpus = read(chosen)
    with progress(chosen, "counting words"):
        X = counts_of(source, corpus, repr(chosen.model))
    if is_anndata:
        _annotate(source, corpus, X, chosen)
        return
    has_words = summed(X, axis=1) > 0
    table = io.StringIO(newline="")
    writer = csv.writer(table, lineterminator="\n")
    header = ["document", "topic", "label", "share"]
    if chosen.shares:
        header += [f"share_{k}" for k in range(len(source.topics.labels))]
    writer.writerow(header)
    names = corpus.columns.get("name", range(len(corpus)))
    with progress(chosen, "shares of topics"):
        shares = source.transform(X)
        topics = source.document_topics(X, shares).tolist()
    for name, row, topic, has_topic in zip(names, shares, topics, has_words.tolist(), strict=True):
        cells = [name, "", "", ""]  # no topic
        if has_topic:
            cells[1:] = [topic, source.topics.labels[topic], f"{row[topic]:.4f}"]
        if chosen.shares:
            cells += [f"{share:.4f}" for share in row]
        writer.writerow(cells)
    if not has_words.all():
        say(
            chosen,
            f"{(~has_words).sum():,} documents contain no word of the model and are in no topic",
        )
    if chosen.output is None:
        sys.stdout.write(table.getvalue())
        return
    with replacing(Path(chosen.output)) as partial:
        # names of files can contain bytes that are no characters of UTF-8
        partial.write_text(table.getvalue(), "utf-8", "backslashreplace", newline="")
    say(chosen, f"wrote {chosen.output}")


def _annotate(source: Source, corpus: Corpus, X: csr_matrix, chosen: Namespace) -> None:
    """Write an AnnData with the results, which is the AnnData that was read or a new one."""
    anndata = import_optional("anndata", "Writing a .h5ad file")
    cells = anndata.read_h5ad(chosen.path) if chosen.path.endswith(".h5ad") else None
    adata = described(source, corpus, X, chosen).to_anndata(cells)
    if cells is None and "name" in corpus.columns:
        adata.obs_names = corpus.columns["name"]
    with replacing(Path(chosen.output)) as partial:
        adata.write_h5ad(partial)
    say(chosen, f"wrote {chosen.output}")


def show(chosen: Namespace) -> None:
    """Print the topics of a model, or one of them."""
    source = read_topics(chosen.model)
    topics = source.topics
    if chosen.topic is not None:
        k = chosen.topic
        n_topics = len(topics.labels)
        if k >= n_topics:
            raise ValueError(
                f"--topic must be a topic of {chosen.model!r}, from 0 to {n_topics - 1}. Got {k}."
            )
        probability = ""
        if topics.evidence is not None:
            probability = f", probability {probability_of(topics.evidence)[k]:.2f}"
        print(f"topic {k}: {topics.labels[k]} ({topics.sizes[k]:.1%} of the words{probability})")
        if reason := reasons(topics)[k]:
            print(reason)
        probabilities = topics.components[k]
        columns = topics.columns(k, chosen.words or 20)  # of the most relevant words
        for column in columns[np.argsort(-probabilities[columns], kind="stable")]:
            print(f"{probabilities[column]:>8.2%}  {topics.words[column]}")
        return
    facts = topics.facts
    kind = type(source.whole).__name__
    print(f"{kind}: {len(topics.labels)} topics, {len(topics.words):,} words")
    print(f"checksum of the topics: {topic_checksum(source.model)}")
    vocabulary = facts["vocabulary"]
    if vocabulary is not None and vocabulary.dropped:
        print(vocabulary.note())
    if facts.get("bound") is not None:  # the perplexity, exp(-bound)
        print(f"bound: {-np.log(facts['bound']):.3f} nats per word")
    print_topics(topics, chosen.words or 8)


def label_topics(chosen: Namespace) -> None:
    """Set labels of topics in the file of a model, and print the topics."""
    source = read_topics(chosen.model)
    if source.count is None:
        raise ValueError(
            f"{chosen.model!r} was fitted without a vocabulary, so its topics cannot have labels."
        )
    labels = {}
    for text in chosen.assignment:
        topic, equals, name = text.partition("=")
        if not equals or not topic.strip().isdecimal():
            raise ValueError(
                f"A label must be passed as TOPIC=LABEL, such as 3=robots. Got {text!r}."
            )
        labels[int(topic)] = name.strip()
    save(source.whole.set_labels(labels), chosen.model)
    print_topics(source.topics, chosen.words)


def compare(chosen: Namespace) -> None:
    """Print which topics of two models match, split, were merged, vanished or are new."""
    first = read_topics(chosen.model)
    second = read_topics(chosen.other)
    table = compare_topics(first.whole, second.whole)
    n_words = table.attrs["n_words"]
    if n_words < max(len(first.topics.words), len(second.topics.words)):
        print(
            f"{n_words:,} of {len(first.topics.words):,} and {len(second.topics.words):,} words "
            "are in both models"
        )
    print("similarity  finding   topics")
    for row in table.itertuples():
        # the matched topics of each model, with their words
        sides = [
            ", ".join(f"{k} ({' '.join(source.topics.top(k, chosen.words))})" for k in numbers)
            for source, numbers in ((first, row.topics), (second, row.others))
        ]
        print(f"{row.cosine:>10.2f}  {row.kind:<8}  {' -> '.join(side or '-' for side in sides)}")
    mean = table.attrs["stability"]
    print(f"stability (mean similarity, 1 if both models have the same topics): {mean:.2f}")
