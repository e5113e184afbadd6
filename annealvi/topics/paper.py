"""Output for a paper: tables as files, and a paragraph on how the topics were found."""

from __future__ import annotations

from datetime import date
from os import PathLike, fsdecode
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annealvi._optional import import_optional
from annealvi._version import __version__
from annealvi.checks import checked
from annealvi.exceptions import BadParameter
from annealvi.files import replacing
from annealvi.topics.described import DescribedDocuments, Topics
from annealvi.topics.languages import SCIKIT_LEARN, languages_in
from annealvi.topics.trust import probability_of

#: A table with more rows than this is a longtable, which can continue on the next page.
N_ROWS = 40
#: A column with texts longer than the first number has lines of the given width in LaTeX.
_LONG = 40
_WIDE = r"p{0.4\linewidth}"
_SPECIAL = str.maketrans(
    {
        **{character: rf"\{character}" for character in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
    }
)
_REFERENCES = {
    "Abrol et al. 2014": "F. Abrol, S. Mandt, R. Ranganath, D. Blei. Deterministic annealing for "
    "stochastic variational inference. arXiv:1412.1810, 2014.",
    "Blei et al. 2003": "D. Blei, A. Ng, M. Jordan. Latent Dirichlet allocation. Journal of "
    "Machine Learning Research 3, 2003.",
    "Hoffman et al. 2013": "M. Hoffman, D. Blei, C. Wang, J. Paisley. Stochastic variational "
    "inference. Journal of Machine Learning Research 14, 2013.",
    "Lau et al. 2014": "J. H. Lau, D. Newman, T. Baldwin. Machine reading tea leaves: "
    "automatically evaluating topic coherence and topic model quality. EACL, 2014.",
    "Mandt et al. 2016": "S. Mandt, J. McInerney, F. Abrol, R. Ranganath, D. Blei. Variational "
    "tempering. AISTATS, 2016.",
    "Minka 2000": "T. Minka. Estimating a Dirichlet distribution. Technical report, 2000.",
    "Nigam et al. 2000": "K. Nigam, A. McCallum, S. Thrun, T. Mitchell. Text classification from "
    "labeled and unlabeled documents using EM. Machine Learning 39, 2000.",
    "annealvi": f"The annealvi developers. annealvi: annealed and tempered variational inference. "
    f"Version {__version__}.",
}


#: The model of TemperedMultinomialMixture, in words.
MIXTURE = "a mixture of multinomials (Nigam et al. 2000)"

# ------------------------------------------------------------------------------ tables


@checked
def write_table(frame: Any, path: str | PathLike) -> None:
    """Write a table to a .csv file, or to a .tex file for the LaTeX package booktabs.

    Parameters
    ----------
    frame : pandas.DataFrame
        A table, such as the `table` of a :class:`TopicSummary` or the result of its methods
        `by_group` and `over_time`.  The index is also written, unless it has no name and contains
        only row numbers.
    path : path
        The file, whose name ends in ``.csv`` or ``.tex``.  A .csv file contains all digits.  A .tex
        file contains a ``tabular`` environment, without a ``table`` environment around it.  A table
        of more than 40 rows is a ``longtable`` of the LaTeX package longtable, which continues on
        the next page.  Numbers have two decimals, or three decimals in a column of numbers between
        -1 and 1.

    Raises
    ------
    ValueError
        If `frame` is not a DataFrame, if its index has the name of a column, or if the name of the
        file has another ending.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import pandas as pd
    >>> from annealvi.topics import write_table
    >>> frame = pd.DataFrame({"label": ["R & D"], "share": [0.25]})
    >>> write_table(frame, "shares.tex")  # doctest: +SKIP
    """
    pandas = import_optional("pandas", "write_table")
    if not isinstance(frame, pandas.DataFrame):
        raise BadParameter("frame", "a pandas DataFrame", type(frame))
    try:
        name = fsdecode(path)
    except TypeError:
        raise BadParameter("path", "a str or a path", path) from None
    suffix = Path(name).suffix
    if suffix not in (".csv", ".tex"):
        raise BadParameter("path", "a file that ends in .csv or .tex", name)
    # columns for the index, unless it contains only row numbers
    levels = ["" if level is None else level for level in frame.index.names]
    for level in levels:
        if level and level in frame.columns:
            raise BadParameter(
                "frame",
                "a DataFrame whose index has a different name than each column",
                level,
                "Rename the index by frame.rename_axis('name').",
            )
    if any(levels) or not isinstance(frame.index, pandas.RangeIndex):
        frame = frame.reset_index(names=levels, allow_duplicates=True)
    text = frame.to_csv(index=False, lineterminator="\n") if suffix == ".csv" else _latex(frame)
    # the file is replaced only when the new one is complete
    with replacing(Path(name)) as partial:
        partial.write_text(text, encoding="utf-8", newline="")


def _latex(frame: Any) -> str:
    """Make a tabular or longtable, with numbers aligned on the right and texts on the left."""
    alignment = ""
    columns = []
    for _, column in frame.items():
        decimals = 2
        numeric = column.dtype.kind in "iufb"
        if numeric and np.abs(column.dropna().to_numpy(float)).max(initial=0) < 1:
            decimals = 3
        values = column.astype(object).where(column.notna(), None)  # None for missing values
        cells = [_cell(value, decimals) for value in values]
        columns.append(cells)
        if numeric:
            alignment += "r"
        else:
            # lines of long texts are broken
            alignment += _WIDE if max(map(len, cells), default=0) > _LONG else "l"
    head = " & ".join(_escaped(name) for name in frame.columns)
    # columns become rows
    rows = [" & ".join(row) + r" \\" for row in zip(*columns, strict=True)]
    environment = "tabular"
    end_of_head = r"\midrule"
    if len(rows) > N_ROWS:
        environment = "longtable"
        end_of_head = r"\midrule \endhead"  # each page begins with the head
    lines = [rf"\begin{{{environment}}}{{{alignment}}}", r"\toprule", head + r" \\", end_of_head]
    return "\n".join([*lines, *rows, r"\bottomrule", rf"\end{{{environment}}}", ""])


def _cell(value: Any, decimals: int) -> str:
    """Format a value of a table; a missing value becomes an empty text."""
    if value is None:
        return ""
    if isinstance(value, date):
        return f"{value:%Y-%m-%d}"
    if not isinstance(value, float | np.floating):
        return _escaped(value)
    text = f"{value:,.{decimals}f}"
    # math mode, so that LaTeX prints a minus sign instead of a hyphen
    # in which a comma needs braces, or a space follows it
    return f"${text.replace(',', '{,}')}$" if float(value) < 0 else text


def _escaped(value: Any) -> str:
    """Escape the special characters of LaTeX in a text."""
    return " ".join(str(value).split()).translate(_SPECIAL)


# ----------------------------------------------------------------------- the paragraph


def methods(
    topics: Topics, documents: DescribedDocuments, quality: dict[str, float], checksum: str
) -> str:
    """Write a paragraph on how the topics were found; see `TopicSummary.methods`."""
    facts = topics.facts
    n_topics, n_features = topics.components.shape
    is_lda = "priors" in facts  # other models have only a few facts
    name = facts["kind"]
    if is_lda:
        name = "latent Dirichlet allocation (Blei et al. 2003)"
    elif "mixture" in facts:
        name = MIXTURE
    sentences = [f"The model is {name} with {n_topics} topics over {n_features:,} words."]
    sentences += _vocabulary(facts)
    if is_lda:
        sentences += _fitted(facts)
    if "mixture" in facts:
        if is_lda:
            sentences.append(f"Each document was assigned to one topic by {MIXTURE}.")
        sentences += _mixed(facts["mixture"])
    n_words = documents.lengths.sum()
    n_known = np.count_nonzero(documents.lengths)
    sentences.append(
        f"The topics are described on {len(documents.lengths):,} documents. Of these, {n_known:,} "
        f"contain words of the vocabulary, with {n_words:,.0f} words in total and "
        f"{n_words / n_known:.1f} words per document."
    )
    sentences += _measured(quality, topics.evidence, documents.refits)
    sentences.append(
        f"All numbers were computed with annealvi {__version__}. The checksum of the topics is "
        f"{checksum}."
    )
    text = " ".join(sentences)
    # the names of cited references are in the text
    cited = [reference for name, reference in _REFERENCES.items() if name in text]
    return "\n".join([text, "", *cited, ""])


def _vocabulary(facts: dict[str, Any]) -> list[str]:
    """Describe the words that were counted, the choice of the number of topics, and seed words."""
    sentences = []
    vocabulary = facts["vocabulary"]
    if vocabulary is not None:
        n_dropped = vocabulary.n_dropped
        texts = {
            "min_df": "in fewer than {:,} documents",
            "max_df": "in more than {:,} documents",
            "max_features": "rarer than the {:,} most frequent",
        }
        # for each limit that excluded words, their number and the limit
        left_out = [
            f"{n_dropped[limit]:,} {text.format(vocabulary.limits.get(limit, 0))}"
            for limit, text in texts.items()
            if n_dropped.get(limit)
        ]
        if left_out:
            sentences.append(f"These words were excluded: {_joined(left_out)}.")
        if n_dropped.get("stop_words"):
            sentences.append(
                f"{n_dropped['stop_words']:,} stop words were excluded, which are on "
                f"{_stop_list(facts.get('stop_words'))}."
            )
        if facts["tokenizer"]:
            sentences.append(
                f"The texts were split into words by the function {facts['tokenizer']}."
            )
        if facts["phrases"]:
            n_phrases = sum(" " in word for word in vocabulary.words.tolist())
            sentences.append(f"Phrases ({n_phrases:,}) are counted as words.")
        if vocabulary.cleaned:
            removed = [f"{what} ({n:,})" for what, n in vocabulary.cleaned.items()]
            sentences.append(f"The texts were cleaned: {_joined(removed)} were removed.")
        sentences.append(f"The vocabulary was learned from {vocabulary.n_documents:,} documents.")
    choice = facts["choice"]
    if choice is not None:
        criterion = "held-out likelihood"
        if choice.criterion == "quality":
            criterion = "coherence and diversity"
        compared = ", ".join(map(str, choice.n_topics))
        sentences.append(f"The number of topics was chosen from {compared} by {criterion}.")
    if facts["seeded"]:
        sentences.append(f"Seed words were used for the topics {_joined(facts['seeded'])}.")
    return sentences


def _fitted(facts: dict[str, Any]) -> list[str]:
    """Describe the priors and, if the topics are those of a single fit, how it was made."""
    settings = facts.get("settings", {})  # empty if the topics are not those of a single fit
    doc_topic_prior, topic_word_prior = facts["priors"]
    sentences = [
        _prior("the topics of a document", doc_topic_prior, settings.get("doc_topic_prior")),
        _prior("the words of a topic", topic_word_prior, settings.get("topic_word_prior")),
    ]
    if not settings:
        return [
            *sentences,
            "The topics do not come from a single fit. Describe here how they were made.",
        ]
    method = "variational inference"
    if settings["learning_method"] == "online":
        method = "stochastic variational inference (Hoffman et al. 2013)"
    sentences.append(f"The fit was made by {method}{_temperature(facts)}.")
    if settings["learning_method"] == "online":
        sentences.append(f"Each step used {settings['batch_size']:,} documents.")
    n_runs = settings["n_init"]
    if n_runs > 1 and settings["merged"]:
        sentences.append(f"The topics of {n_runs} runs were merged into one fit.")
    elif n_runs > 1:
        sentences.append(f"The best of {n_runs} runs was kept.")
    sentences.append(_seed(facts["seed"]))
    return sentences


def _mixed(facts: dict[str, Any]) -> list[str]:
    """Describe the priors of a mixture of multinomials, and how it was fitted."""
    weight_prior, word_prior = facts["priors"]
    return [
        f"The priors of the mixture add {weight_prior:.3g} to the number of documents of a topic, "
        f"and {word_prior:.3g} to the count of each word in a topic.",
        f"The mixture was fitted by variational inference{_temperature(facts)}.",
        _seed(facts["seed"]),
    ]


def _seed(random_state: Any) -> str:
    if isinstance(random_state, int | np.integer):
        return f"The random seed was {random_state}."
    return "No random seed was set."


def _stop_list(stop_words: Any) -> str:
    """Name a list of stop words."""
    if isinstance(stop_words, str) and stop_words == SCIKIT_LEARN:
        return "the English list of scikit-learn"
    languages = languages_in(stop_words) if isinstance(stop_words, str) else None
    if languages is None:  # also of an unknown name, which was set after the fit
        return "a list that was passed"
    lists = [
        "the English list of scikit-learn, without words such as system and interest"
        if language == "english"
        else f"the {language.title()} list of the Python package stop-words"
        for language in languages
    ]
    return _joined(lists)


def _prior(whose: str, prior: Any, setting: Any) -> str:
    """Describe a prior, which was learned if its setting is a text."""
    size = f"{np.min(prior):.3g}"
    if np.ptp(prior) > 0:  # several numbers
        size += f" to {np.max(prior):.3g}"
    if isinstance(setting, str):
        size += ", learned from the data (Minka 2000)"
    return f"The Dirichlet prior of {whose} is {size}."


def _temperature(facts: dict[str, Any]) -> str:
    """Describe the temperatures of a fit, as the end of a sentence; empty if T was 1."""
    path = facts["path"]  # the temperature of each step
    temperature = facts["settings"]["temperature"]
    kind = temperature if isinstance(temperature, str) else type(temperature).__name__
    highest = path.max()
    last = path[-1]
    if kind.lower() in ("variational", "localvariational", "local"):
        return " with a temperature learned from the data (Mandt et al. 2016)"
    if highest == last:
        return "" if last == 1 else f" at the temperature {last:.3g} (Mandt et al. 2016)"
    if kind not in ("Annealed", "annealed"):
        return f" with temperatures between {highest:.3g} and {path.min():.3g} ({kind})"
    source = "Mandt et al. 2016"
    if getattr(temperature, "form", "") == "posterior":
        source = "Abrol et al. 2014"
    return f", annealed from the temperature {highest:.3g} to {last:.3g} ({source})"


def _measured(
    quality: dict[str, float], evidence: dict[str, NDArray] | None, refits: Any
) -> list[str]:
    """Describe measures of the topics; `evidence` is that of Topics, `refits` of a TopicSummary."""
    sentences = []
    if np.isfinite(quality["coherence"]):
        sentences.append(
            f"The mean coherence of topics in these documents is {quality['coherence']:.2f} (NPMI "
            "of the ten most probable words, Lau et al. 2014)."
        )
    if "held_out_log_likelihood" in quality:
        sentences.append(
            "Held-out documents have a log-likelihood of "
            f"{quality['held_out_log_likelihood']:.3f} nats per word, measured by document "
            "completion."
        )
    if "stability" in quality:
        cosine = quality["stability"]
        sentences.append(f"The mean cosine between matched topics of two fits is {cosine:.2f}.")
    if evidence is not None and refits is None:
        probability = probability_of(evidence)
        sentences.append(
            "The probability that a new fit finds a topic, estimated from the runs of the fit, is "
            f"at least 0.5 for {np.count_nonzero(probability >= 0.5)} of the {len(probability)} "
            "topics."
        )
    if refits is not None:
        n_refits, n_topics = refits.similarity.shape
        sentences.append(
            f"The model was fitted {n_refits} more times, with other random seeds and to documents "
            f"drawn with replacement. At least half of these fits found "
            f"{np.count_nonzero(refits.found_again >= 0.5)} of the {n_topics} topics again (topics "
            "were matched one to one, with a cosine of at least 0.7). Standard errors include the "
            "variation of estimates between the fits."
        )
    return sentences


def _joined(names: list[str]) -> str:
    """Join names by commas, and the last by "and"."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
