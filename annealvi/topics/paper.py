"""Output for a paper: tables as files, and a paragraph on how the topics were found."""

from __future__ import annotations

import os
import re
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from annealvi._optional import import_optional
from annealvi._version import __version__
from annealvi.checks import checked
from annealvi.exceptions import BadParameter
from annealvi.files import replacing
from annealvi.topics.described import Described

#: A column with texts longer than the first number has lines of the given width in LaTeX.
_LONG, _WIDE = 40, r"p{0.4\linewidth}"
_SPECIAL = {
    **{character: rf"\{character}" for character in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}
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
    "annealvi": f"The annealvi developers. annealvi: annealed and tempered variational inference. "
    f"Version {__version__}.",
}


# ------------------------------------------------------------------------------ tables


@checked
def write_table(frame: Any, path: str | os.PathLike) -> None:
    """Write a table to a .csv file, or to a .tex file for the LaTeX package booktabs.

    Parameters
    ----------
    frame : pandas.DataFrame
        A table, such as the `table` of a :class:`TopicSummary` or the result of its methods
        `by_group` and `over_time`.  The index is also written, unless it has no name and contains
        only row numbers.
    path : path
        The file, whose name ends in ``.csv`` or ``.tex``.  A .csv file contains all digits.  A .tex
        file contains a ``tabular`` environment, without a ``table`` environment around it.  Numbers
        have two decimals, or three decimals in a column of numbers between -1 and 1.

    Raises
    ------
    ValueError
        If `frame` is not a DataFrame, or if the name of the file has another ending.
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
        name = os.fsdecode(path)
    except TypeError:
        raise BadParameter("path", "a str or a path", path) from None
    if Path(name).suffix not in (".csv", ".tex"):
        raise BadParameter("path", "a file that ends in .csv or .tex", name)
    levels = ["" if level is None else level for level in frame.index.names]
    if any(levels) or not isinstance(frame.index, pandas.RangeIndex):
        frame = frame.reset_index(names=levels, allow_duplicates=True)
    csv = Path(name).suffix == ".csv"
    text = frame.to_csv(index=False, lineterminator="\n") if csv else _latex(frame)
    with replacing(Path(os.path.realpath(name))) as partial:
        partial.write_text(text, encoding="utf-8", newline="")


def _latex(frame: Any) -> str:
    """Make a tabular, in which numbers are aligned on the right and texts on the left."""
    columns, cells = [], []
    for place in range(frame.shape[1]):
        column = frame.iloc[:, place]
        numeric = column.dtype.kind in "iufb"
        known = column.dropna()
        small = numeric and np.abs(known.to_numpy(np.float64)).max(initial=0) < 1
        values = column.astype(object).where(column.notna(), None)
        cells.append([_cell(value, 3 if small else 2) for value in values])
        long = not numeric and max(map(len, cells[-1]), default=0) > _LONG
        columns.append("r" if numeric else _WIDE if long else "l")
    head = " & ".join(_escaped(name) for name in frame.columns)
    rows = [" & ".join(row) + r" \\" for row in zip(*cells, strict=True)]
    lines = [rf"\begin{{tabular}}{{{''.join(columns)}}}", r"\toprule", head + r" \\", r"\midrule"]
    return "\n".join([*lines, *rows, r"\bottomrule", r"\end{tabular}", ""])


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
    return f"${text.replace(',', '{,}')}$" if float(value) < 0 else text


def _escaped(value: Any) -> str:
    """Escape the special characters of LaTeX in a text."""
    text = " ".join(str(value).split())
    return re.sub(r"[&%$#_{}\\~^<>|]", lambda found: _SPECIAL[found[0]], text)


# ----------------------------------------------------------------------- the paragraph


def methods(summary: Described) -> str:
    """Write a paragraph on how the topics were found; see `TopicSummary.methods`."""
    facts = summary.facts
    K, V = summary.topics.shape
    is_lda = "priors" in facts
    name = "latent Dirichlet allocation (Blei et al. 2003)" if is_lda else facts["kind"]
    said = [f"The model is {name} with {K} topics over {V:,} words."]
    said += _vocabulary(facts) + _fitted(facts) if is_lda else []
    n_words, known = float(summary.lengths.sum()), int((summary.lengths > 0).sum())
    said.append(
        f"The topics are described on {len(summary.lengths):,} documents. Of these, {known:,} "
        f"contain words of the vocabulary, with {n_words:,.0f} words in total and "
        f"{n_words / known:.1f} words per document."
    )
    said += _measured(summary)
    said.append(
        f"All numbers were computed with annealvi {__version__}. The checksum of the topics is "
        f"{summary.checksum}."
    )
    text = " ".join(said)
    cited = [reference for name, reference in _REFERENCES.items() if name in text]
    return "\n".join([text, "", *cited, ""])


def _vocabulary(facts: dict[str, Any]) -> list[str]:
    said = []
    if (vocabulary := facts["vocabulary"]) is not None:
        limits, n = vocabulary.limits, vocabulary.n_dropped
        what = {
            "min_df": "in fewer than {:,} documents",
            "max_df": "in more than {:,} documents",
            "max_features": "rarer than the {:,} most frequent",
        }
        left_out = [
            f"{n[limit]:,} {text.format(limits.get(limit, 0))}"
            for limit, text in what.items()
            if n.get(limit)
        ]
        if left_out:
            said.append(f"These words were excluded: {_joined(left_out)}.")
        if n.get("stop_words"):
            said.append(f"{n['stop_words']:,} stop words were excluded.")
        said.append(f"The vocabulary was learned from {vocabulary.n_documents:,} documents.")
    if facts["choice"] is not None:
        ks, by = ", ".join(map(str, facts["choice"].ks)), facts["choice"].criterion
        of = "coherence and diversity" if by == "quality" else "held-out likelihood"
        said.append(f"The number of topics was chosen from {ks} by {of}.")
    if facts["seeded"]:
        said.append(f"Seed words were used for the topics {_joined(facts['seeded'])}.")
    return said


def _fitted(facts: dict[str, Any]) -> list[str]:
    """Describe the priors and, if the topics are those of a single fit, how it was made."""
    said = []
    settings = facts.get("settings", {})
    of = ("the topics of a document", "the words of a topic")
    for whose, prior, name in zip(of, facts["priors"], ("doc_topic", "topic_word"), strict=True):
        values = np.asarray(prior, dtype=float)
        same = np.all(values == values.flat[0])
        low, high = values.min(), values.max()
        size = f"is {low:.3g}" if same else f"is {low:.3g} to {high:.3g}"
        learned = isinstance(settings.get(f"{name}_prior"), str)
        how = ", learned from the data (Minka 2000)" if learned else ""
        said.append(f"The Dirichlet prior of {whose} {size}{how}.")
    if not settings:
        said.append("The topics do not come from a single fit. Describe here how they were made.")
        return said
    online = settings["learning_method"] == "online"
    method = "stochastic variational inference (Hoffman et al. 2013)" if online else ""
    said.append(f"The fit was made by {method or 'variational inference'}{_temperature(facts)}.")
    if online:
        said.append(f"Each step used {int(settings['batch_size']):,} documents.")
    n = int(settings["n_init"])
    if n > 1 and settings["merged"]:
        said.append(f"The topics of {n} runs were merged into one fit.")
    elif n > 1:
        said.append(f"The best of {n} runs was kept.")
    seed = facts["seed"]
    number = isinstance(seed, int | np.integer)
    said.append(f"The random seed was {seed}." if number else "No random seed was set.")
    return said


def _temperature(facts: dict[str, Any]) -> str:
    path, given = facts["path"], facts["settings"]["temperature"]
    kind = given if isinstance(given, str) else type(given).__name__
    first, last = float(path.max()), float(path[-1])
    if kind.lower() in ("variational", "localvariational", "local"):
        return " with a temperature learned from the data (Mandt et al. 2016)"
    if first == last:
        return "" if last == 1 else f" at the temperature {last:.3g} (Mandt et al. 2016)"
    if kind not in ("Annealed", "annealed"):
        return f" with temperatures between {first:.3g} and {path.min():.3g} ({kind})"
    source = "Abrol" if getattr(given, "form", "") == "posterior" else "Mandt"
    year = {"Abrol": 2014, "Mandt": 2016}[source]
    return f", annealed from the temperature {first:.3g} to {last:.3g} ({source} et al. {year})"


def _measured(summary: Described) -> list[str]:
    said, quality = [], summary.quality
    if np.isfinite(quality["coherence"]):
        said.append(
            f"The mean coherence of topics in these documents is {quality['coherence']:.2f} (NPMI "
            "of the ten most probable words, Lau et al. 2014)."
        )
    if "held_out_log_likelihood" in quality:
        said.append(
            "Held-out documents have a log-likelihood of "
            f"{quality['held_out_log_likelihood']:.3f} nats per word, measured by document "
            "completion."
        )
    if "stability" in quality:
        cosine = quality["stability"]
        said.append(f"The mean cosine between matched topics of two fits is {cosine:.2f}.")
    if summary.support is not None:
        n, K = int((summary.support >= 0.5).sum()), len(summary.support)
        said.append(f"At least half of the runs found {n} of the {K} topics.")
    if summary.refits is not None:
        n, K = summary.refits.similarity.shape
        said.append(
            f"The model was fitted {n} more times, with other random seeds and to documents drawn "
            f"with replacement. At least half of these fits found "
            f"{int((summary.refits.support >= 0.5).sum())} of the {K} topics again (topics were "
            "matched one to one, with a cosine of at least 0.7). Standard errors include the "
            "variation of estimates between the fits."
        )
    return said


def _joined(parts: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))
