"""Validation by people: sheets with questions about topics, and scores of the answers."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Sequence
from itertools import pairwise, product
from numbers import Real
from os import PathLike, fspath
from typing import Any, NamedTuple

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from annealvi._optional import import_optional
from annealvi.checks import COUNT, checked, validated
from annealvi.corpus.files import naming, opened
from annealvi.exceptions import BadParameter, warn_user
from annealvi.topics.summary import TopicSummary
from annealvi.topics.words import most_relevant

#: The first bytes of workbooks: of .xlsx, .ods and .numbers, and of .xls.
WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
#: The number of topics of a document that are shown with the intruder.
N_SHOWN = 3
_SEED = {"random_state": ["random_state"]}
_SAMPLED = {"n": COUNT, "n_words": COUNT, "n_characters": COUNT, **_SEED}


class Sheet(NamedTuple):
    """Questions for people (coders), and a key that they must not see, as pandas DataFrames."""

    #: What coders see: a row for each ``question``, with an empty column ``answer``.
    questions: Any
    #: The same rows with the topic and, for intrusions, the right answer.
    key: Any


class Scores(NamedTuple):
    """Scores of the answers of coders."""

    #: A pandas DataFrame with the precision, or the share of 1s, for each topic; see
    #: :func:`score_answers`.
    table: Any
    #: The precision, or the share of 1s, over all answers.
    overall: float
    #: Krippendorff's nominal alpha; None if there is one coder, or if all answers are the same.
    alpha: float | None
    #: The number of coders.
    n_coders: int


@validated(n_questions=COUNT, n_words=COUNT, **_SEED)
def word_intrusion(
    summary: TopicSummary, n_questions: int = 2, *, n_words: int = 5, random_state: Any = None
) -> Sheet:
    """Make a sheet of word-intrusion questions: which of six words does not fit the other five?

    Five of the words are from the same topic.  People find the sixth word, the intruder, if the
    words of this topic belong together.  The intruder is drawn from the top words of other topics,
    without the half of these words that are most probable in this topic.

    Parameters
    ----------
    summary : TopicSummary
        The result of :func:`annealvi.topics.describe`.
    n_questions : int, default=2
        Number of questions on each topic.  The first question shows the topic's top words, the
        second question the next words, and so on.
    n_words : int, default=5
        Number of words of the topic in a question, without the intruder.
    random_state : int, RandomState instance or None, default=None
        Random seed for the choice of intruders and the order of questions and options.  None means
        the `random_state` of the summary's model.

    Returns
    -------
    Sheet
        ``questions`` has the columns ``option_1`` to ``option_6``, and ``answer``, in which coders
        enter the number of an option.  ``key`` has the columns ``topic``, ``label``, ``answer``
        (the right option), ``intruder`` and ``options`` (the number of options).

    Raises
    ------
    ValueError
        If a topic has too few words, or if all top words of other topics are also its top words.

    References
    ----------
    Chang, Boyd-Graber, Gerrish, Wang, Blei (2009), *Reading Tea Leaves: How Humans Interpret Topic
    Models*, NIPS.

    Examples
    --------
    >>> from annealvi import TemperedLDA
    >>> from annealvi.datasets import load_arxiv_abstracts
    >>> from annealvi.topics import describe, score_answers, word_intrusion
    >>> abstracts = load_arxiv_abstracts()
    >>> lda = TemperedLDA(10, random_state=0, max_iter=2).fit(abstracts.data)
    >>> sheet = word_intrusion(describe(lda, abstracts.data, abstracts.feature_names))
    >>> sheet.questions.shape
    (20, 7)
    >>> score_answers(sheet.key, sheet.key).overall  # all answers are right
    1.0
    """
    rng = _generator(summary, random_state)
    rows: list[Any] = []  # what `_sheet` needs of each question
    n_top = n_questions * n_words
    # the columns of the top words of each topic
    tops = [
        most_relevant(topic, summary.word_shares, n_top, summary.relevance)
        for topic in summary.topics
    ]
    leading = np.concatenate([columns[:n_words] for columns in tops])
    for k, top in enumerate(tops):
        if len(top) < n_top:
            raise BadParameter(
                "n_questions",
                f"at most {len(top) // n_words}, because topic {k} has {len(top)} words, "
                f"{n_words} per question",
                n_questions,
            )
        # candidates for intruders: the leading words of other topics
        pool = np.setdiff1d(leading, top)
        if not len(pool):
            raise BadParameter(
                "summary",
                f"a summary in which other topics' top words differ from those of topic {k}",
                summary,
            )
        # drawn from the half that is least probable in this topic
        pool = pool[np.argsort(summary.topics[k, pool], kind="stable")]
        intruders = rng.choice(pool[: (len(pool) + 1) // 2], n_questions)
        for columns, intruder in zip(top.reshape(-1, n_words), intruders, strict=True):
            words = summary.feature_names[[*columns, intruder]].tolist()
            hidden = {"topic": k, "label": summary.labels[k], "intruder": words[-1]}
            # nothing is shown but the options
            rows.append(({}, words, hidden))
    return _sheet(rows, rng)


@validated(**_SAMPLED)
def topic_intrusion(
    summary: TopicSummary,
    n: int = 2,
    *,
    n_words: int = 8,
    n_characters: int = 600,
    random_state: Any = None,
) -> Sheet:
    """Make a sheet of topic-intrusion questions: which of four topics is not in the document?

    A question shows the beginning of a document, the document's three largest topics, and a fourth
    topic, the intruder.  The other topics are ranked by their shares in the document, and the
    intruder is drawn from the lower half.

    Parameters
    ----------
    summary : TopicSummary
        A summary with texts and at least four topics.
    n : int, default=2
        Number of documents for each topic, drawn from the documents in which the topic is the
        largest.  If there are fewer documents, all of them are used.
    n_words : int, default=8
        Number of words that describe a topic.
    n_characters : int, default=600
        Number of characters of each document that are shown.
    random_state : int, RandomState instance or None, default=None
        Random seed for documents, intruders and the order of questions and options.  None means the
        `random_state` of the summary's model.

    Returns
    -------
    Sheet
        ``questions`` has the columns ``text``, ``option_1`` to ``option_4``, and ``answer``, in
        which coders enter the number of an option.  ``key`` has the columns ``topic`` (the largest
        topic), ``label``, ``answer`` (the right option), ``intruder``, ``document`` and ``options``
        (the number of options).

    Raises
    ------
    ValueError
        If the summary has no texts or fewer than four topics.

    References
    ----------
    Chang, Boyd-Graber, Gerrish, Wang, Blei (2009), *Reading Tea Leaves: How Humans Interpret Topic
    Models*, NIPS.
    """
    rng = _generator(summary, random_state, texts=True)
    n_topics = len(summary.topics)
    if n_topics <= N_SHOWN:
        raise BadParameter("summary", f"a summary of at least {N_SHOWN + 1} topics", summary)
    rows: list[Any] = []  # what `_sheet` needs of each question
    words = [", ".join(summary.words(k, n_words)) for k in range(n_topics)]
    # the topics of each document, the largest share first
    order = np.argsort(-summary.shares, axis=1, kind="stable")
    for k in range(n_topics):
        for document in _drawn(summary, order[:, 0] == k, n, rng):
            other_topics = order[document, N_SHOWN:]
            intruder = rng.choice(other_topics[len(other_topics) // 2 :])  # the lower half
            hidden = {
                "topic": k,
                "label": summary.labels[k],
                "intruder": intruder,
                "document": document,
            }
            options = [words[topic] for topic in (*order[document, :N_SHOWN], intruder)]
            rows.append((_beginning_of(summary, document, n_characters), options, hidden))
    return _sheet(rows, rng)


@validated(**_SAMPLED, bounds=["array-like"])
def document_sample(
    summary: TopicSummary,
    n: int = 2,
    *,
    bounds: Sequence[float] = (0.1, 0.5),
    n_words: int = 8,
    n_characters: int = 600,
    random_state: Any = None,
) -> Sheet:
    """Draw documents for coders: for each topic, documents with small, medium and large shares.

    A question shows the beginning of a document and the words of a topic.  Coders answer 1 if the
    document is about the topic, otherwise 0.

    Parameters
    ----------
    summary : TopicSummary
        A summary with texts.
    n : int, default=2
        Number of documents for each topic and stratum, where a stratum is a range of shares.  If
        there are fewer documents, all of them are used.
    bounds : sequence of float, default=(0.1, 0.5)
        Shares that separate the strata, in increasing order, between 0 and 1.
    n_words : int, default=8
        Number of words that describe a topic.
    n_characters : int, default=600
        Number of characters of each document that are shown.
    random_state : int, RandomState instance or None, default=None
        Random seed for the documents and the order of questions.  None means the `random_state` of
        the summary's model.

    Returns
    -------
    Sheet
        ``questions`` has the columns ``text``, ``words`` and ``answer``, which is empty.  ``key``
        has the columns ``topic``, ``label``, ``document``, ``share`` and ``stratum``, such as
        ``"0.1 to 0.5"``.

    Raises
    ------
    ValueError
        If the summary has no texts, or if `bounds` are not increasing numbers between 0 and 1.
    """
    rng = _generator(summary, random_state, texts=True)
    limits = [0.0, *(value for value in bounds if isinstance(value, Real)), 1.0]
    if len(limits) != len(bounds) + 2 or not all(np.diff(limits) > 0):
        raise BadParameter("bounds", "increasing numbers between 0 and 1", bounds)
    rows: list[Any] = []  # what `_sheet` needs of each question
    # the number of the stratum of each share
    strata = np.searchsorted(limits[1:-1], summary.shares, side="right")
    for k in range(len(summary.topics)):
        words = ", ".join(summary.words(k, n_words))
        for stratum, (low, high) in enumerate(pairwise(limits)):
            for document in _drawn(summary, strata[:, k] == stratum, n, rng):
                hidden = {
                    "topic": k,
                    "label": summary.labels[k],
                    "document": document,
                    "share": summary.shares[document, k],
                    "stratum": f"{low:g} to {high:g}",
                }
                shown = {**_beginning_of(summary, document, n_characters), "words": words}
                rows.append((shown, [], hidden))  # without options
    return _sheet(rows, rng)


@checked
def score_answers(key: Any, answers: Any) -> Scores:
    r"""Score the answers of coders to the questions of a sheet.

    Parameters
    ----------
    key : pandas.DataFrame or path of a .csv file
        The `key` of the :class:`Sheet`.
    answers : pandas.DataFrame or path of a .csv file, or a list of these
        The questions of the sheet with the column ``answer`` filled in, as one table for each
        coder.  A file can be in UTF-8, UTF-16 or the encoding of Excel (cp1252), with commas,
        semicolons or tabs between the columns, or a workbook, of which the first sheet with a
        column ``question`` is read.  Only the columns ``question`` and ``answer`` are read.
        Questions may be missing, and answers may be empty.

    Returns
    -------
    Scores
        For word or topic intrusion, ``table`` has a row for each topic.  The columns are ``label``,
        the number of ``answers``, ``precision`` (the share of right answers), the limits ``low``
        and ``high`` of Wilson's 95% interval, and ``chance`` (the precision of random answers).
        The interval assumes independent answers.  For document samples, ``table`` has a row for
        each topic and stratum, with ``yes`` (the share of 1s) for ``precision``, and no ``chance``.

    Raises
    ------
    ValueError
        If `key` or a table of answers lacks a column or repeats a question, or if answers contain a
        question that is not in `key` or an answer that is not an option.
    ImportError
        If krippendorff is not installed and there are several coders.

    Notes
    -----
    The agreement of coders is Krippendorff's :math:`\alpha = 1 - D_o / D_e`, which is 1 if coders
    always agree, and 0 if they agree as often as by chance (Krippendorff, *Content Analysis*, 2019,
    chapter 12).  For word or topic intrusion, coders agree if they choose the same option.
    """
    pandas = import_optional("pandas", "score_answers")
    right = _table(key, "key", ("topic", "label"), pandas)
    # the key of a document sample contains no answers
    intrusions = "answer" in right.columns
    needed = ("answer", "options") if intrusions else ("stratum",)
    right = _table(right, "key", needed, pandas)  # again, to check these columns
    tables = {"answers": answers}
    if isinstance(answers, list | tuple):
        tables = {f"answers[{coder}]": table for coder, table in enumerate(answers)}
    if not tables:
        raise BadParameter("answers", "a table, or a list of tables", answers)
    values = np.array(
        [
            _answers(_table(table, name, ("answer",), pandas), right, name, pandas)
            for name, table in tables.items()
        ]
    )
    answered = ~np.isnan(values)  # (n_coders, n_questions)
    if not answered.any():
        raise BadParameter("answers", "tables with at least one answer", "none")
    hits = values == (right["answer"].to_numpy(float) if intrusions else 1)
    by = ["topic"] if intrusions else ["topic", "stratum"]
    frame = right[[*by, "label"]].assign(answers=answered.sum(0), hits=hits.sum(0))
    # sums over answers of the probability of a right guess; divided by their number below
    if intrusions:
        frame["chance"] = frame["answers"] / right["options"].astype(float)
    table = frame.groupby([*by, "label"]).sum().reset_index("label")
    n = table["answers"]
    table["precision" if intrusions else "yes"] = table["hits"] / n  # NaN without answers
    table["low"], table["high"] = _wilson(table["hits"].to_numpy(), n.to_numpy())
    if intrusions:
        table["chance"] = table.pop("chance") / n
    overall = float(hits[answered].mean())
    return Scores(table.drop(columns="hits"), overall, _alpha(values), len(tables))


# ---------------------------------------------------------------------------- details


def _generator(summary: Any, random_state: Any, *, texts: bool = False) -> RandomState:
    """Return a generator of random numbers; without a random_state, that of the model is used.

    An error is raised if `summary` is not a TopicSummary (with texts, if `texts`).
    """
    if not isinstance(summary, TopicSummary):
        raise BadParameter("summary", "a TopicSummary, the result of describe", type(summary))
    if texts and summary.texts is None:
        raise BadParameter(
            "summary",
            "a TopicSummary with texts",
            summary,
            "Pass the texts to describe, as its parameter 'texts'.",
        )
    return check_random_state(summary.random_state if random_state is None else random_state)


def _drawn(summary: TopicSummary, is_candidate: NDArray, n: int, rng: RandomState) -> list[int]:
    """Draw at most n documents with words from those for which `is_candidate` is True."""
    candidates = np.flatnonzero(is_candidate & (summary.lengths > 0))
    return rng.permutation(candidates)[:n].tolist()


def _beginning_of(summary: TopicSummary, document: int, n_characters: int) -> dict[str, str]:
    """Return the title of a document, if known, and its beginning, cut at the end of a word."""
    text = " ".join((summary.texts or [])[document].split())
    beginning = text[:n_characters]
    cut = beginning.rpartition(" ")[0] or beginning  # up to the last space
    shown = {"text": text if text == beginning else f"{cut} ..."}
    return shown if summary.titles is None else {"title": summary.titles[document], **shown}


def _sheet(
    rows: Sequence[tuple[dict[str, Any], list[str], dict[str, Any]]], rng: RandomState
) -> Sheet:
    """Make a sheet of shuffled questions; each row is what a question shows, its options, its key.

    The options are shuffled too; before, the intruder is the last option.
    """
    pandas = import_optional("pandas", "A sheet of questions")
    questions = []
    key = []
    for row in rng.permutation(len(rows)):
        shown, options, hidden = rows[row]
        if options:
            order = rng.permutation(len(options)).tolist()
            hidden |= {
                "answer": order.index(len(options) - 1) + 1,  # the intruder's place, from 1
                "options": len(options),
            }
            shown |= {f"option_{n}": options[position] for n, position in enumerate(order, 1)}
        questions.append({**shown, "answer": ""})
        key.append(hidden)
    index = pandas.RangeIndex(1, len(rows) + 1, name="question")
    return Sheet(pandas.DataFrame(questions, index=index), pandas.DataFrame(key, index=index))


def _table(table: Any, name: str, needed: Sequence[str], pandas: Any) -> Any:
    """Check a table, or read it from a file, and return it indexed by question.

    `name` is its name in messages, and `needed` the columns that it must have.
    """
    if isinstance(table, str | PathLike):
        table = _read_table(table, needed, pandas)
    if not isinstance(table, pandas.DataFrame):
        raise BadParameter(name, "a DataFrame or the path of a .csv file", type(table))
    # the tables of a Sheet have the questions as index, files have them as a column
    if "question" not in table.columns and table.index.name == "question":
        table = table.reset_index()
    missing = {"question", *needed} - set(table.columns)
    if missing:
        raise BadParameter(
            name,
            f"a table with the columns {', '.join(('question', *needed))}",
            f"a table without {', '.join(sorted(missing))}",
            "The first row of a file must contain these names, and its columns must be separated "
            "by commas, semicolons or tabs; save it as 'CSV UTF-8'.",
        )
    for question in table["question"][table["question"].duplicated()]:  # raises for the first
        raise BadParameter(name, "a table with each question once", f"question {question} twice")
    return table.set_index("question")


def _read_table(path: str | PathLike, needed: Sequence[str], pandas: Any) -> Any:
    """Read a table as programs for tables save it, with any of their separators and encodings."""
    texts = _texts_of(path, needed, pandas)
    # the text and the separator with which the header has a column "question"
    for text, separator in product(texts, ("\t", ";", ",")):
        header = pandas.read_csv(io.StringIO(text), sep=separator, nrows=0).columns.str.strip()
        if "question" in header:
            break
    else:  # an error names the missing columns
        return pandas.DataFrame(columns=header)
    with naming(path, "a table", "Each row must have as many columns as the header."):
        table = pandas.read_csv(io.StringIO(text), sep=separator)
    # pandas takes the first columns as an index if the header is shorter than the rows: they begin
    # with names, as R writes them, or they end in separators
    if table.iloc[:, -1].isna().all() and not table.index.equals(pandas.RangeIndex(len(table))):
        table = table.reset_index().iloc[:, : len(header)]
    table = table.set_axis(header, axis=1).dropna(how="all")  # Excel also saves empty rows
    numbers = pandas.to_numeric(table["question"], errors="coerce")
    remarks = table[numbers.isna()]
    if 0 < len(remarks) < len(table):
        warn_user(
            f"{fspath(path)!r} has {len(remarks)} rows without the number of a question, which "
            f"are not read. The first is {remarks.iloc[0].dropna().tolist()!r:.80}."
        )
        table = table.assign(question=numbers).drop(remarks.index)
    return table


def _texts_of(path: str | PathLike, needed: Sequence[str], pandas: Any) -> list[str]:
    """Return the text of a file, or of each sheet of a workbook, from the header on."""
    name = fspath(path)
    with open(path, "rb") as file:
        content = file.read()
    if not content.startswith(WORKBOOKS):
        with opened(path, "a table") as stream:  # it may be compressed
            content = stream.read()
    if content.startswith(WORKBOOKS):
        import_optional("openpyxl", "Reading a workbook")  # pandas uses it
        try:
            sheets = pandas.read_excel(io.BytesIO(content), sheet_name=None, header=None)
        except Exception as error:  # each format has its own errors
            raise ValueError(
                f"{name!r} cannot be read as a workbook. Save it as .xlsx or 'CSV UTF-8'. "
                f"Got {type(error).__name__}: {error}"
            ) from error
        texts = [sheet.to_csv(index=False, header=False) for sheet in sheets.values()]
    elif content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        texts = [content.decode("utf-16")]
    else:
        try:
            texts = [content.decode("utf-8-sig")]  # with or without a byte order mark
        except UnicodeDecodeError:
            texts = [content.decode("cp1252", "replace")]
            if "label" in needed:  # only numbers are read of other tables
                warn_user(
                    f"{name!r} is not in the encoding UTF-8. It is read as cp1252, so check the "
                    "labels, or save it in UTF-8."
                )
    # without the line sep=; for Excel, which does not show it, and without empty rows
    above = r'\A(?:"?sep=.*\n|[;,\s]*\n)*'
    texts = list(filter(str.strip, (re.sub(above, "", text) for text in texts)))
    if not texts:
        raise ValueError(f"{name!r} is empty.")
    if "\0" in texts[0]:  # of other encodings of Unicode
        raise ValueError(f"{name!r} is not in the encoding UTF-8. Save it as 'CSV UTF-8'.")
    return texts


def _answers(table: Any, right: Any, name: str, pandas: Any) -> NDArray:
    """Return the answers of a coder to all questions of the key; a missing answer is NaN.

    `table` contains the answers, `right` the key, and `name` is the table's name in messages.
    """
    for question in table.index.difference(right.index, sort=False):  # here too
        raise BadParameter(name, "answers only to questions of the key", f"question {question}")
    text = table["answer"].map(lambda value: value.strip() if isinstance(value, str) else value)
    text = text.where(text != "")
    # an answer that is not a number becomes NaN, and is found below because its text is not missing
    text = text.reindex(right.index)
    answers = pandas.to_numeric(text, errors="coerce").astype(float)
    # numbers of options from 1 on; for document samples 0 or 1
    lowest = int("options" in right)
    highest = (right if lowest else right.assign(options=1))["options"]
    is_allowed = answers.between(lowest, highest) & (answers % 1 == 0)
    bad = text[text.notna() & ~is_allowed]
    for question, answer in bad.items():
        raise BadParameter(
            f"{name}[{question}]",
            f"an integer from {lowest} to {int(highest[question])}, or empty",
            answer,
        )
    return answers.to_numpy()


def _wilson(hits: NDArray, n: NDArray) -> NDArray:
    """Compute Wilson's 95% intervals of shares; without answers they are NaN."""
    from scipy.stats import binomtest

    limits = np.full((2, len(n)), np.nan)  # lower and upper limits
    for row in np.flatnonzero(n):
        test = binomtest(hits[row], n[row])
        limits[:, row] = test.proportion_ci(method="wilson")
    return limits


def _alpha(answers: NDArray) -> float | None:
    """Compute Krippendorff's alpha of answers, with a row for each coder."""
    common = answers[:, (~np.isnan(answers)).sum(axis=0) > 1]  # questions with several answers
    if len(np.unique(common[~np.isnan(common)])) < 2:  # undefined if all answers are equal
        return None
    krippendorff = import_optional("krippendorff", "The agreement of coders")
    return float(krippendorff.alpha(common, level_of_measurement="nominal"))
