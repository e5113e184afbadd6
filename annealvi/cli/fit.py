"""The commands ``annealvi fit``, which finds topics in documents, and ``annealvi demo``."""

from __future__ import annotations

import json
import os
from argparse import Namespace
from pathlib import Path
from typing import Any

from sklearn.base import clone

from annealvi._optional import import_optional
from annealvi.callbacks import ProgressBar
from annealvi.cli.inputs import Corpus, read_text
from annealvi.cli.models import (
    check_columns,
    check_output,
    counts_of,
    described,
    print_topics,
    progress,
    read,
    say,
)
from annealvi.datasets import load_arxiv_abstracts
from annealvi.exceptions import warn_user
from annealvi.lda import TemperedLDA
from annealvi.plot.pictures import by_size
from annealvi.progress import QUICK
from annealvi.storage import save
from annealvi.topics import TopicModel, TopicVectorizer, describe
from annealvi.topics.described import sizes_in
from annealvi.topics.languages import LANGUAGES, languages_in, stop_words_of
from annealvi.topics.source import Source
from annealvi.topics.trust import Together, few_documents


def fit(chosen: Namespace) -> None:
    """Fit topics, print them, and write the files that the options name."""
    _check_outputs(chosen)
    estimator = _unfitted_model(chosen)
    corpus = read(chosen)
    check_columns(corpus, chosen)
    model = _fit_model(estimator, corpus, chosen)
    source = Source(model)
    few = few_documents(len(corpus), len(source.components_))
    if few:
        warn_user(f"{few} Use fewer topics.")
    with progress(chosen, "counting words"):
        X = counts_of(source, corpus, "the model")
    sizes = None
    try:
        if chosen.model is not None:
            save(model, chosen.model)
            say(chosen, f"wrote {chosen.model}")
        if chosen.report is not None:
            second = None  # the second model
            if chosen.second_fit:
                # the same number of topics, even if it was chosen for the first model
                estimator.set_params(
                    n_topics=len(source.components_), random_state=chosen.random_state + 1
                )
                second = _fit_model(estimator, corpus, chosen)
            summary = described(source, corpus, X, chosen, other=second)
            sizes = summary.topic_shares
            with progress(chosen, "writing the report"):
                summary.write_report(
                    chosen.report,
                    title=f"Topics of {Path(chosen.path).name}",
                    times=corpus.columns.get("time"),
                    freq=chosen.freq,
                    groups=corpus.columns.get("group"),
                    other=None if second is None else describe(second, X, source.topics.words),
                )
            say(chosen, f"wrote {chosen.report}")
    finally:  # the topics are printed even if a file cannot be written
        # with the shares of topics in the documents, which the report contains too
        if sizes is None:
            sizes = sizes_in(source.describe(source.read(X, "documents"), refits=None))
        topics = source.topics_of(sizes, source.topics.words)
        print_topics(topics, chosen.words, Together.of(source.components_, X))


def _unfitted_model(chosen: Namespace) -> TopicModel:
    """Return the unfitted TopicModel that the options describe."""
    seeds = chosen.seed_words
    if seeds is not None:
        if not seeds.lstrip().startswith("{"):  # not JSON, but the name of a file
            seeds = read_text(seeds, chosen.encoding)
        try:
            seeds = json.loads(seeds)
        except (ValueError, RecursionError) as error:
            raise ValueError(
                f'--seed-words must be JSON, such as {{"space": ["nasa", "orbit"]}}. ({error})'
            ) from error
    return TopicModel(
        chosen.n_topics,
        vectorizer=TopicVectorizer(min_df=chosen.min_df, max_df=chosen.max_df, clean=chosen.clean),
        lda=TemperedLDA(max_iter=chosen.passes, n_jobs=chosen.jobs),
        seed_words=seeds,
        stop_words=_stop_words(chosen),
        random_state=chosen.random_state,
        single_topic=chosen.single_topic or "predict",
    )


def _stop_words(chosen: Namespace) -> str | list[str] | None:
    """Return the stop words that --stop-words names: of languages, of a file, or none."""
    if chosen.stop_words.lower() == "none":
        return None
    languages = languages_in(chosen.stop_words)
    if languages is not None:
        for language in languages:
            stop_words_of(language)  # raises an error if the list is missing
        return chosen.stop_words
    if not Path(chosen.stop_words).is_file():
        raise ValueError(
            f"--stop-words must be 'none', a file, or one of {', '.join(sorted(LANGUAGES))}, "
            "or its code, such as de, or several of them, separated by commas. "
            f"Got {chosen.stop_words!r}."
        )
    lines = read_text(chosen.stop_words, chosen.encoding).split("\n")
    return [line.strip() for line in lines if line.strip()]


def _fit_model(estimator: TopicModel, corpus: Corpus, chosen: Namespace) -> Any:
    """Fit a model; return it, or its TemperedLDA if the words of counts are unknown."""
    model = clone(estimator)
    if not chosen.quiet:
        model.set_params(lda__callback=ProgressBar("fitting", delay=QUICK))
    if corpus.texts is not None:
        model.fit(corpus.texts)
        say(chosen, model.vocabulary_note_)
    elif corpus.words is not None:
        model.fit_counts(corpus.counts, corpus.words)
    elif model.seed_words:
        raise ValueError("A file of counts contains no words, so --seed-words needs --vocabulary.")
    elif model.single_topic is True:
        raise ValueError("A file of counts has no words, so --single-topic needs --vocabulary.")
    else:
        say(chosen, "numbers are shown, because the words are unknown; pass --vocabulary")
        numbers = map(str, range(corpus.counts.shape[1]))  # stand for words
        model.set_params(single_topic=False).fit_counts(corpus.counts, numbers)
    if model.n_topics == "auto":
        say(chosen, f"{len(model.components_)} topics were chosen: {model.choice_.rule}")
    if corpus.texts is None and corpus.words is None:
        return model.lda_
    return model


def _check_outputs(chosen: Namespace) -> None:
    """Raise an error before the fit if an output file cannot be written after it."""
    used = {os.path.realpath(chosen.path): "PATH"}  # the option of each path, to find equal paths
    for option, path in {"--report": chosen.report, "--model": chosen.model}.items():
        if path is not None:
            check_output(option, path)
            real = os.path.realpath(path)
            if real in used:
                raise ValueError(
                    f"{option} and {used[real]} must be different files. Got {path!r} for both."
                )
            used[real] = option
    if chosen.report is not None:
        import_optional("plotly", "--report", "pandas")  # raises an error if they are missing
        return
    for option in ("time", "group", "second_fit"):
        if getattr(chosen, option):
            raise ValueError(
                f"--{option.replace('_', '-')} affects only the report. "
                "Add --report with a file name."
            )


# ------------------------------------------------------------------------------- demo


def demo(chosen: Namespace) -> None:
    """Fit topics to the bundled abstracts, print them and write a report."""
    import_optional("plotly", "annealvi demo", "pandas")
    check_output("--output", chosen.output)
    abstracts = load_arxiv_abstracts(texts=True)
    # flushed, because the fit takes some time
    print(f"fitting 30 topics to {len(abstracts.texts):,} abstracts of arXiv", flush=True)
    corpus = Corpus("the abstracts", columns={}, texts=abstracts.texts)
    model = _fit_model(TopicModel(30, random_state=0), corpus, chosen)
    groups = abstracts.target_names[abstracts.target]
    summary = describe(model, abstracts.texts, titles=abstracts.titles)
    _print_demo(summary, groups, abstracts.created)
    summary.write_report(
        chosen.output,
        title="Topics of 3,000 arXiv abstracts",
        times=abstracts.created,
        groups=groups,
    )
    print(f"\nThe report is {chosen.output}. Open it in a browser.")
    print("To find topics in your own texts, see annealvi fit --help")


def _print_demo(summary: Any, groups: Any, times: Any) -> None:
    """Print the share, shares over the years, main group and words of each topic."""
    over_time = summary.over_time(times)
    # without the first years, which have few documents
    over_time = over_time[over_time["n_documents"] >= 20]
    by_group = summary.by_group(groups)
    years = f"{over_time.index.year[0]} to {over_time.index.year[-1]}"
    # the widths of columns: a bar for each year, and the names of the groups
    course_width = max(len(over_time), len(years))
    group_width = max(map(len, by_group.index))
    print(f"\ntopic  share  {years:<{course_width}}  {'mostly in':<{group_width + 5}}  words")
    for k in by_size(summary):
        label = summary.labels[k]
        # the sum of the topic's shares in the documents of each group
        in_groups = by_group[label] * by_group["n_documents"]
        shares = over_time[label]
        # the number of a bar, from 0 to 7
        heights = (8 * shares / shares.max()).clip(0, 7).astype(int)
        print(
            f"{k:>5}",
            f"{summary.topic_shares[k]:>5.1%}",
            f"{''.join('▁▂▃▄▅▆▇█'[height] for height in heights):<{course_width}}",
            f"{in_groups.idxmax():<{group_width}} {in_groups.max() / in_groups.sum():>4.0%}",
            " ".join(summary.words(k, 7)),
            sep="  ",
        )
