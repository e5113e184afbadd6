"""``annealvi fit``: topics of documents, a report and a model."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from annealvi._optional import import_optional
from annealvi.cli.console import Console, FitProgress, size_of
from annealvi.cli.inputs import Corpus, as_roles, read_corpus, read_text, read_words
from annealvi.cli.models import Topics
from annealvi.lda import TemperedLDA
from annealvi.storage import save
from annealvi.topics import TopicModel, TopicVectorizer, describe
from annealvi.topics.choice import choose_for
from annealvi.topics.seeds import check_seeds, plant_seeds
from annealvi.topics.shares import over_time
from annealvi.topics.vectorizer import count_words

EXAMPLE = '{"space": ["nasa", "orbit"]}'


def read_seeds(given: str | None, encoding: str) -> dict[str, list[str]]:
    """Return the seed words that an option names."""
    if given is None:
        return {}
    written = given.lstrip().startswith("{")
    text = given if written else read_text(Path(given), encoding)
    where = "--seeds" if written else f"--seeds: {given!r}"
    try:
        seeds = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{where} must be JSON, such as {EXAMPLE} ({error}).") from error
    if not isinstance(seeds, dict) or not seeds:
        raise ValueError(f"{where} must be a JSON object, such as {EXAMPLE}. Got {text:.60}.")
    for name, words in seeds.items():
        if not name.strip() or not _are_words(words):
            raise ValueError(
                f"{where} must be names of topics with lists of words, such as {EXAMPLE}. Got "
                f"{json.dumps({name: words}, ensure_ascii=False):.60}."
            )
    return seeds


def _are_words(words: Any) -> bool:
    return isinstance(words, list) and bool(words) and all(isinstance(w, str) for w in words)


#: The command, in messages of the library.
OWNER = "annealvi fit"
#: Most classes whose topics a report can show.
MOST_CLASSES = 500


def fit(chosen: argparse.Namespace) -> None:
    """Fit topics, print them, and write what is asked for."""
    console = Console(chosen.quiet)
    if chosen.jobs is not None and chosen.jobs < 1 and chosen.jobs != -1:
        raise ValueError(f"--jobs must be -1 or at least 1. Got {chosen.jobs}.")
    _check_outputs(chosen)
    stop_words = _stop_words(chosen)
    seeds = read_seeds(chosen.seeds, chosen.encoding)
    corpus = read(chosen, console)
    if len(corpus) < 2:
        raise ValueError(f"{corpus.origin} has 1 document: topics need at least 2.")
    _check_columns(corpus, chosen)
    vectorizer, X, words = _count(corpus, chosen, stop_words, seeds, console)
    seeds = check_seeds(seeds, None, vectorizer, OWNER)
    sought = {word for listed in seeds.values() for word in listed}
    if missing := sorted(sought.difference([] if words is None else words.tolist())):
        console.say(f"seed words that are not counted: {', '.join(missing)}")
    if chosen.topics == "auto":
        console.progress("choosing the number of topics")
        lda = TemperedLDA(random_state=chosen.random_state, n_jobs=chosen.jobs)
        choice = choose_for(X, lda, least=max(1, len(seeds)))
        chosen.topics = choice.recommended
        console.say(f"chose {chosen.topics} topics: {choice.rule}")
    if X.shape[1] < chosen.topics:
        raise ValueError(
            f"--topics: there are more topics than words, {chosen.topics:,} and {X.shape[1]:,}."
        )
    if len(seeds) > chosen.topics:
        raise ValueError(f"--seeds: there are {len(seeds)} of them, and --topics {chosen.topics}.")
    fits = []
    for number in range(2 if chosen.second_fit else 1):
        what = f"fitting {chosen.topics} topics" + (" once more" if number else "")
        seed = chosen.random_state + number
        fits.append(_fit(X, chosen, seed, seeds, words, FitProgress(console, X, what)))
        console.clear()
    lda = fits[0]
    bound = -np.log(lda.bound_)
    console.say(f"fitted {chosen.topics} topics: bound {bound:.3f} nats a word")
    model: TopicModel | TemperedLDA = lda
    if vectorizer is not None:
        model = TopicModel.from_parts(vectorizer, lda)
    if seeds:
        model = model.with_lda(lda, {name: topic for topic, name in enumerate(seeds)})
        model.set_params(seeds=seeds, lda__topic_word_prior=None)
    topics = Topics(model, "the model")
    if chosen.model is not None:
        save(model, chosen.model)
        console.say(f"wrote {chosen.model} ({size_of(os.path.getsize(chosen.model))})")
    if chosen.report is not None:
        console.progress("writing the report")
        write_report(topics, X, words, corpus, fits[1:], chosen.report, freq=chosen.freq)
        console.clear()
        console.say(f"wrote {chosen.report} ({size_of(os.path.getsize(chosen.report))})")
    print_topics(topics, chosen.words)


def read(chosen: argparse.Namespace, console: Console) -> Corpus:
    """Read the documents that the options name."""
    console.progress(f"reading {chosen.path}")
    corpus = read_corpus(
        chosen.path,
        as_roles(chosen),
        format=chosen.format,
        encoding=chosen.encoding,
        files=chosen.files,
        vocabulary=chosen.vocabulary,
    )
    note = f"; {corpus.note}" if corpus.note else ""
    plural = "s" * (len(corpus) != 1)
    console.say(f"read {len(corpus):,} document{plural} of {chosen.path}{note}")
    return corpus


def print_topics(topics: Topics, n_words: int) -> None:
    """Print the topics, largest first: number, share and words."""
    print("topic  share  words")
    for k in np.argsort(-topics.shares, kind="stable").tolist():
        name = f"{topics.seeded[k]}: " if k in topics.seeded else ""
        print(f"{k:>5}  {topics.shares[k]:>5.1%}  {name}{' '.join(topics.top(k, n_words))}")


def write_report(
    topics: Topics,
    X: sparse.csr_matrix,
    words: Any,
    corpus: Corpus,
    others: list[TemperedLDA],
    path: str,
    *,
    freq: str = "YE",
    title: str | None = None,
) -> None:
    """Write the report of a fit."""
    names = topics.words if words is None else words
    texts = corpus.texts
    summary = describe(
        topics.lda, X, names, texts=texts, titles=corpus.titles, other=next(iter(others), None)
    )
    summary.labels = topics.labels
    other = describe(others[0], X, names) if others else None
    options: dict[str, Any] = {"times": corpus.times, "groups": corpus.groups, "other": other}
    if corpus.times is not None:
        options["freq"] = freq
    if title is None:
        title = f"Topics of {Path(corpus.origin.strip(chr(39))).name}"
    given = {name: value for name, value in options.items() if value is not None}
    summary.to_html(path, title=title, **given)


def _fit(
    X: Any,
    chosen: argparse.Namespace,
    seed: int,
    seeds: dict[str, list[str]],
    words: Any,
    progress: Any,
) -> TemperedLDA:
    lda = TemperedLDA(
        chosen.topics,
        random_state=seed,
        max_iter=chosen.passes,
        n_jobs=chosen.jobs,
        total_samples=float(X.shape[0]),
        callback=progress,
    )
    if seeds:
        try:
            plant_seeds(lda, seeds, words, X, owner=OWNER)
        except ValueError as error:
            message = str(error).replace(f"The 'seeds' parameter of {OWNER}", "--seeds")
            raise ValueError(message) from error
    return lda.fit(X).set_params(callback=None, init="auto")


def _count(
    corpus: Corpus,
    chosen: argparse.Namespace,
    stop_words: Any,
    seeds: dict[str, list[str]],
    console: Console,
) -> tuple[Any, sparse.csr_matrix, Any]:
    """The vectorizer, the counts and the words; None where there is none."""
    if corpus.texts is None:
        words = corpus.words
        if not corpus.counts.nnz:
            raise ValueError(f"{corpus.origin} has documents without a word.")
        if words is None and seeds:
            raise ValueError(
                "--seeds needs the words of the counts: name a file of them by --vocabulary."
            )
        if words is None:
            console.say(
                "the words are not known: name a file of them by --vocabulary, a word on each line"
            )
            return None, corpus.counts, None
        lowercase = not any(word != word.lower() for word in words)
        vectorizer = TopicVectorizer(vocabulary=words.tolist(), lowercase=lowercase)
        return vectorizer.fit([""]), corpus.counts, words
    console.progress("counting words")
    limits = {"min_df": chosen.min_df, "max_df": chosen.max_df}
    given = {name: value for name, value in limits.items() if value is not None}
    vectorizer = TopicVectorizer(stop_words=stop_words, **given)
    written = check_seeds(seeds, None, vectorizer, OWNER)
    kept = frozenset(word for listed in written.values() for word in listed)
    try:
        vectorizer, X, vocabulary = count_words(vectorizer, corpus.texts, kept=kept)
        vectorizer.dropped_ = vocabulary
    except ValueError as error:
        message, advised, _ = str(error).partition(" Give a smaller 'min_df'")
        if not advised:
            raise
        raise ValueError(f"{message} Give a smaller --min-df or a larger --max-df.") from error
    console.say(vocabulary.note())
    return vectorizer, X, vocabulary.words


def _stop_words(chosen: argparse.Namespace) -> Any:
    """What --stop-words stands for."""
    if chosen.stop_words == "none":
        return None
    if chosen.stop_words == "english":
        return "english"
    if not Path(chosen.stop_words).is_file():
        raise FileNotFoundError(
            "--stop-words must be english, none, or a file with a word on each line. "
            f"There is no file {chosen.stop_words!r}."
        )
    words = [word for word in read_words(Path(chosen.stop_words), chosen.encoding) if word]
    return words or None


def _check_outputs(chosen: argparse.Namespace) -> None:
    """Raise an error before the fit if what is asked for cannot be written after it."""
    named = {"--report": chosen.report, "--model": chosen.model}
    paths: dict[str, str] = {}
    for option, path in named.items():
        if path is None:
            continue
        place = Path(path)
        if place.is_dir() or not path:
            raise IsADirectoryError(f"{option}: {path!r} must be a file, and is a folder.")
        if option == "--report" and place.suffix.lower() not in ("", ".htm", ".html"):
            raise ValueError(f"--report: {path!r} must end in .html: it is a page for a browser.")
        if not place.parent.is_dir():
            raise FileNotFoundError(f"{option}: there is no folder {str(place.parent)!r}.")
        if not os.access(place.parent, os.W_OK):
            raise PermissionError(f"{option}: nothing can be written to {str(place.parent)!r}.")
        real = os.path.realpath(path)
        if real == os.path.realpath(chosen.path):
            raise ValueError(f"{option}: {path!r} is the file of the documents.")
        if real in paths:
            raise ValueError(f"{option} and {paths[real]} must be two files. Got {path!r} twice.")
        paths[real] = option
    if chosen.report is not None:
        import_optional("pandas", "report", "--report")
        import_optional("plotly", "report", "--report")
    elif chosen.time is not None or chosen.group is not None or chosen.second_fit:
        option = "--second-fit" if chosen.second_fit else "--class"
        option = "--time" if chosen.time is not None else option
        raise ValueError(f"{option} is for the report: name its file by --report.")


def _check_columns(corpus: Corpus, chosen: argparse.Namespace) -> None:
    """Raise ValueError before the fit if times or classes are not what the report needs."""
    if corpus.times is not None:
        pandas = import_optional("pandas", "report", "--time")
        one = np.ones((len(corpus), 1))
        try:
            over_time(one, one[:, 0], ["all"], corpus.times, chosen.freq, pandas)
        except ValueError as error:
            message = str(error).replace("'times' must", f"--time: {chosen.time!r} must")
            message = message.replace("; read others with pandas.to_datetime and its format", "")
            raise ValueError(message.replace("'freq'", "--freq")) from error
    if corpus.groups is not None:
        n_classes = len(set(corpus.groups) - {None})
        if not 1 <= n_classes <= MOST_CLASSES:
            raise ValueError(
                f"--class {chosen.group}: a report can show from 1 to {MOST_CLASSES} classes. "
                f"Got {n_classes:,}."
            )
