"""The numbers and names that each figure of topics shows.

:mod:`annealvi.plot.topics` draws these data with matplotlib, and :mod:`annealvi.plot.interactive`
with plotly.  Only public attributes and methods of a summary are used.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import leaves_list
from scipy.optimize import linear_sum_assignment
from sklearn.metrics.pairwise import cosine_similarity

from annealvi._optional import import_optional

#: The default numbers of topics in figures of bars and of curves.
N_BARS = 20
N_CURVES = 8
#: Shares of few documents are uncertain and can be extreme.  Therefore groups with fewer than
#: FEW_DOCUMENTS documents, and all but the N_GROUPS largest groups, are combined into one group,
#: and periods with fewer documents are not drawn.
FEW_DOCUMENTS = 20
N_GROUPS = 40
#: A numeric covariate with more values than FEW_VALUES is drawn as curves with bands, for at most
#: N_BANDS topics.
FEW_VALUES = 10
N_BANDS = 5
#: The maximum number of characters of a name in a figure.
WIDTH = 40


class Bars(NamedTuple):
    """Words of a topic, most probable first."""

    name: str
    words: list[str]
    probabilities: NDArray  # p(w|k)


class Places(NamedTuple):
    """Places of topics in the plane, and optionally of documents."""

    x: NDArray
    y: NDArray
    shares: NDArray
    written: list[str]  # the names above the circles, or "" if there is no space
    documents: NDArray  # of shape (n_documents, 2), or (0, 2) without documents
    nearest: NDArray[np.intp]  # the topic of each document


class Grid(NamedTuple):
    """A matrix of numbers, whose rows and columns have names."""

    values: NDArray
    rows: list[str]
    columns: list[str]
    row_numbers: NDArray[np.intp]


class Courses(NamedTuple):
    """Shares of topics in periods or groups."""

    labels: list[Any]  # periods or groups
    values: NDArray  # (n_labels, n_topics)
    margins: NDArray  # half the widths of 95% intervals, in the same shape
    of_refits: NDArray | None  # the part of the margins that is between refits, if there are refits
    n_documents: NDArray[np.intp]
    topics: list[int]
    names: list[str]


class Contrast(NamedTuple):
    """Words of a topic that a group uses more than other groups, with differences of log-odds."""

    name: str
    words: list[str]
    log_odds: NDArray
    low: NDArray
    high: NDArray


def has_attributes(value: Any, *names: str) -> bool:
    """Whether an object has attributes with these names; a class does not count."""
    return not isinstance(value, type) and all(hasattr(value, name) for name in names)


def check_summary(summary: Any, name: str = "summary") -> Any:
    """Return a summary of topics, or raise TypeError if the object called `name` is none."""
    if not has_attributes(
        summary, "topics", "labels", "topic_shares", "feature_names", "similar", "weights"
    ):
        raise TypeError(
            f"{name!r} must be a TopicSummary, the result of annealvi.topics.describe(model, "
            f"documents). Got {summary!r}."
        )
    return summary


def check_summaries(first: Any, second: Any, names: tuple[str, str]) -> None:
    """Raise TypeError or ValueError if two objects are not summaries with the same vocabulary."""
    for summary, name in zip((first, second), names, strict=True):
        check_summary(summary, name)
    if not np.array_equal(first.feature_names, second.feature_names):
        raise ValueError(
            f"{names[0]!r} and {names[1]!r} must have the same vocabulary, in the same order. "
            f"Got vocabularies of {len(first.feature_names)} and {len(second.feature_names)} words."
        )


def shorten(text: str, width: int = WIDTH) -> str:
    """Convert a text to a single line, and truncate it to a number of characters."""
    text = " ".join(str(text).split())
    return text if len(text) <= width else text[: width - 1].rstrip(" ,") + "…"  # one character


def topic_names(summary: Any, width: int = WIDTH) -> list[str]:
    """Return the number and label of each topic, as a text of at most `width` characters."""
    return [shorten(f"{topic} {label}", width) for topic, label in enumerate(summary.labels)]


def by_size(summary: Any) -> list[int]:
    """Return the numbers of all topics, the largest topic first."""
    return np.argsort(-summary.topic_shares, kind="stable").tolist()


def choose_topics(summary: Any, topics: Any, n_largest: int) -> list[int]:
    """Return the numbers of the topics to draw; by default the `n_largest` largest topics."""
    if topics is None:
        return by_size(summary)[:n_largest]
    return summary.labels.numbers(topics)


def bars(summary: Any, topics: Any, n_words: int, relevance: float | None) -> list[Bars]:
    """Return the most relevant words of topics with p(w|k), most probable first.

    None means the largest topics, and the `relevance` of the summary.
    """
    check_summary(summary)
    names = topic_names(summary)
    if relevance is None:
        relevance = summary.relevance
    bars_of_topics = []
    for topic in choose_topics(summary, topics, N_BARS):
        table = summary.weights(topic, n_words, relevance)
        table = table.sort_values("probability", ascending=False, kind="stable")
        bars_of_topics.append(
            Bars(
                name=names[topic],
                words=[shorten(word, width=30) for word in table["word"]],
                probabilities=table["probability"].to_numpy(float),
            )
        )
    return bars_of_topics


def places(summary: Any, documents: bool = False) -> Places:
    """Compute places of topics in the plane, where similar topics are close to each other."""
    table = check_summary(summary).map()
    x, y, shares = (table[name].to_numpy(float) for name in ("x", "y", "share"))
    names = [shorten(label, width=30) for label in summary.labels]
    # of documents, if they are drawn
    points = np.zeros((0, 2))
    nearest = np.zeros(0, dtype=np.intp)
    if documents:
        document_map = summary.map(documents=True)
        points = document_map[["x", "y"]].to_numpy(float)
        nearest = document_map["topic"].to_numpy(np.intp)
    return Places(
        x=x,
        y=y,
        shares=shares,
        written=_written_names(x, y, shares, names),
        documents=points,
        nearest=nearest,
    )


#: The size of a map of topics, in pixels; all numbers below are in pixels too.
MAP_SIZE = (560, 400)
#: The radius of the largest circle of a map.
RADIUS = 17
#: Half the width of a character, and the height of a line.
HALF_CHARACTER = 3.3
LINE_HEIGHT = 16
#: The space around the number in a circle.
PADDING = 6


def _written_names(x: NDArray, y: NDArray, shares: NDArray, names: list[str]) -> list[str]:
    """Choose which names to write on a map, so that none covers another topic's name or number.

    Names stand above the circles of topics, and the names of large topics are placed first.  If a
    name does not fit, only its first word is written, or no name at all.
    """
    # places in pixels; a map without extent in a direction is divided by 1
    across, up = (
        size * (values - values.min()) / (np.ptp(values) or 1.0)
        for size, values in zip(MAP_SIZE, (x, y), strict=True)
    )
    # the middles of the names, above circles whose area is proportional to the share
    name_heights = up + RADIUS * np.sqrt(shares / max(shares.max(), 1e-12)) + 9
    written = [""] * len(names)
    half_widths = np.full(len(names), -np.inf)  # of the names that are already written, or -inf
    for k in np.argsort(-shares, kind="stable"):
        gaps = np.abs(across - across[k])  # horizontal distances to all topics
        for name in (names[k], names[k].split(", ")[0]):
            half_width = HALF_CHARACTER * len(name) + 4
            # whether the name would cover a written name, or the number of another topic
            on_name = gaps < half_widths + half_width
            on_name &= np.abs(name_heights - name_heights[k]) < LINE_HEIGHT
            on_circle = gaps < half_width + PADDING
            on_circle &= np.abs(up - name_heights[k]) < LINE_HEIGHT - 3
            on_circle[k] = False  # its own number is replaced by the name
            if not (on_name | on_circle).any():
                written[k] = name
                half_widths[k] = half_width
                break
    return written


def alike(summary: Any) -> Grid:
    """Return distances between topics, with similar topics side by side."""
    similarity = check_summary(summary).similar()
    order = np.arange(1)  # a single topic has no hierarchy
    if len(summary.topics) > 1:
        order = leaves_list(similarity.linkage)
    return _topic_grid(similarity.distances, summary, order, order)


def together(summary: Any) -> Grid:
    """Return the correlations between the shares of topics, with similar topics side by side."""
    order = alike(summary).row_numbers
    values = np.full((len(order), len(order)), np.nan)  # NaN for a topic with itself
    for pair in summary.together().itertuples():
        # in both triangles
        values[[pair.topic, pair.other], [pair.other, pair.topic]] = pair.correlation
    return _topic_grid(values, summary, order, order)


def _topic_grid(values: NDArray, summary: Any, rows: NDArray, columns: NDArray) -> Grid:
    """Make a Grid with names of topics as rows and numbers of topics as columns, in this order."""
    names = topic_names(summary)
    return Grid(
        values=values[np.ix_(rows, columns)],
        rows=[names[k] for k in rows],
        columns=[str(k) for k in columns],
        row_numbers=rows,
    )


def over_time(summary: Any, times: Any, freq: Any, topics: Any) -> Courses:
    """Return the shares of topics in each period, and the numbers of documents.

    `topics` are numbers or labels; None means the largest topics.  Shares are NaN in periods with
    few documents, unless all periods have few documents.
    """
    check_summary(summary)
    if not hasattr(times, "__len__") and hasattr(times, "__iter__"):
        times = list(times)  # because they are read twice
    table = summary.over_time(times, freq)
    errors = [summary.over_time(times, freq, value=value) for value in _errors(summary)]
    table.index = _beginnings(table.index)
    drawn = _courses(summary, table, errors, topics, n_largest=N_CURVES)
    few = drawn.n_documents < FEW_DOCUMENTS
    if few.all():
        return drawn
    return drawn._replace(values=np.where(few[:, None], np.nan, drawn.values))


def _beginnings(index: Any) -> Any:
    """Return the beginnings of periods.

    Pandas labels a year by its last day.  In a figure, the next year begins there.
    """
    if index.freq is None:  # periods without a name in pandas, whose index is their first day
        return index
    try:
        return index.to_period().to_timestamp()
    except (ValueError, AttributeError):  # periods that pandas lacks, such as half months
        return index


def by_group(summary: Any, groups: Any, topics: Any) -> Courses:
    """Return the shares of topics in each group, and the numbers of documents."""
    shares, *errors = largest_groups(check_summary(summary), groups, N_GROUPS)
    return _courses(summary, shares, errors, topics, n_largest=len(summary.topics))


def largest_groups(summary: Any, groups: Any, n_groups: int) -> list[Any]:
    """Return the results of `by_group` for the largest groups: shares, and `_errors`.

    Small groups are combined into the last group, unless all groups are small.
    """
    if not hasattr(groups, "__len__") and hasattr(groups, "__iter__"):
        groups = list(groups)  # because they are read twice
    values = ("share", *_errors(summary))
    tables = [summary.by_group(groups, value=value) for value in values]
    table = tables[0]
    n_documents = table.iloc[:, 0].to_numpy()  # of each group
    small = (n_documents < FEW_DOCUMENTS) & (n_documents.max() >= FEW_DOCUMENTS)
    small[np.argsort(-n_documents, kind="stable")[n_groups:]] = True  # all but the largest
    if small.sum() > 1:  # a single small group keeps its name
        small_groups = set(table.index[small])
        name = f"{len(small_groups)} others"
        pandas = import_optional("pandas", "annealvi.plot")
        # the documents of small groups as one group; the others have no group (None)
        combined: Any = [name if group in small_groups else None for group in groups]
        if isinstance(groups, pandas.Series):  # aligned with the documents by its index
            combined = pandas.Series(combined, groups.index)
        # dtype object, because a categorical index cannot contain the new name
        large = table.index[~small].astype(object)
        tables = [
            pandas.concat([frame[~small].set_axis(large), summary.by_group(combined, value=value)])
            for frame, value in zip(tables, values, strict=True)
        ]
    # `concat` has lost the name of the index
    return [frame.rename_axis(table.index.name) for frame in tables]


def words_by_group(
    summary: Any, topic: Any, groups: Any, n_words: int, prior: float
) -> list[Contrast]:
    """Return the words of a topic that each group uses more often than the other groups.

    Only the largest groups are included, without those that rarely use the topic.
    """
    check_summary(summary)
    table = summary.words_by_group(topic, groups, n_words, prior)
    # the number of documents of each group, the largest first
    sizes = summary.by_group(groups)["n_documents"].sort_values(ascending=False, kind="stable")
    contrasts = [
        Contrast(
            name=shorten(f"{group} ({sizes[group]:,})"),
            words=[shorten(word, width=30) for word in words["word"]],
            log_odds=words["log_odds"].to_numpy(),
            low=words["low"].to_numpy(),
            high=words["high"].to_numpy(),
        )
        for group, words in table.groupby("group", sort=False, observed=True)
        if group in sizes.index[:N_BARS]
    ]
    if not contrasts:
        raise ValueError(
            "'groups' must contain a group that uses a word of the topic more than the others do, "
            "at least five times. Got none."
        )
    return contrasts


def _errors(summary: Any) -> list[str]:
    """Return the kinds of errors of shares that a summary has."""
    return ["std_error"] if summary.refits is None else ["std_error", "refits"]


def _courses(summary: Any, table: Any, errors: list[Any], topics: Any, n_largest: int) -> Courses:
    """Take the shares of the topics to draw from tables of shares and of their `_errors`."""
    chosen = choose_topics(summary, topics, n_largest)
    names = topic_names(summary)
    columns = np.add(chosen, 1)  # the first column is n_documents
    margins = [1.96 * error.iloc[:, columns].to_numpy(float) for error in errors]
    return Courses(
        labels=list(table.index),
        values=table.iloc[:, columns].to_numpy(float),
        margins=margins[0],
        of_refits=margins[1] if len(margins) > 1 else None,
        n_documents=table.iloc[:, 0].to_numpy(np.intp),
        topics=chosen,
        names=[names[k] for k in chosen],
    )


def group_grid(drawn: Courses) -> Grid:
    """Make a Grid with topics as rows, and groups with numbers of documents as columns."""
    groups = zip(drawn.labels, drawn.n_documents, strict=True)
    return Grid(
        values=drawn.values.T,
        rows=drawn.names,
        columns=[f"{shorten(label, width=24)} ({n})" for label, n in groups],
        row_numbers=np.asarray(drawn.topics),
    )


def ranks(summary: Any, topics: Any, n_words: int) -> list[Bars]:
    """Return the most probable words of each topic with their probabilities."""
    chosen = choose_topics(check_summary(summary), topics, N_CURVES)
    names = topic_names(summary)
    curves = []
    for topic in chosen:
        probabilities = np.asarray(summary.topics[topic], dtype=float)
        order = np.argsort(-probabilities, kind="stable")[:n_words]  # columns, best first
        words = summary.feature_names[order].tolist()
        curves.append(Bars(names[topic], words, probabilities[order]))
    return curves


def matches(first: Any, second: Any) -> Grid:
    """Return the cosines between the topics of one fit (rows) and those of another (columns).

    The diagonal has the one-to-one matches with the largest total cosine, in descending order.
    """
    check_summaries(first, second, ("first", "second"))
    cosines = np.clip(cosine_similarity(first.topics, second.topics), 0.0, 1.0)
    rows, columns = linear_sum_assignment(cosines, maximize=True)
    best = np.argsort(-cosines[rows, columns], kind="stable")
    # topics without a match, if one fit has more topics, come last
    rows = np.append(rows[best], np.setdiff1d(np.arange(len(cosines)), rows))
    columns = np.append(columns[best], np.setdiff1d(np.arange(cosines.shape[1]), columns))
    return _topic_grid(cosines, first, rows, columns)
