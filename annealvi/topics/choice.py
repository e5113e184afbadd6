"""Choice of the number of topics: fits with several numbers, measures, and a recommendation."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_non_negative

from annealvi._kernels import special
from annealvi._optional import import_optional
from annealvi.callbacks import Checkpoint
from annealvi.checks import COUNT, Interval, validated
from annealvi.exceptions import BadParameter
from annealvi.files.schema import Array, Integer, Schema, Text
from annealvi.lda import TemperedLDA
from annealvi.lda.settings import resolve, words_per_entry
from annealvi.matrices import check_csr, check_integers, summed
from annealvi.metrics.held_out import document_completion, split_tokens
from annealvi.metrics.topics import topic_coherence, topic_diversity, topic_stability
from annealvi.progress import Progress
from annealvi.topics.source import lda_in, takes_texts
from annealvi.topics.trust import match
from annealvi.topics.vectorizer import (
    TopicVectorizer,
    are_texts,
    check_texts,
    copied,
    count_words,
    different_ints,
    warn_of_empty,
    with_stop_words,
)

Measures = Mapping[str, NDArray]
#: The measures with a value for each run.  Stability has a value for each pair of runs.
MEASURES = ("held_out_log_likelihood", "gain", "coherence", "diversity", "quality")
STABILITY = "stability"
#: The measures on which a recommendation can be based.
CRITERIA = ("quality", "held_out_log_likelihood")


@dataclass(frozen=True, eq=False)
class Choice:
    """The result of :func:`choose_n_topics`: measures of fits, and a recommended number of topics.

    Attributes
    ----------
    n_topics : ndarray of shape (n_numbers,)
        The numbers of topics that were compared, in increasing order.
    measures : dict of str to ndarray of shape (n_numbers, n_runs)
        Each array has a row for each number of topics and a column for each run.  Higher is better.

        - ``held_out_log_likelihood``: log-likelihood per word of documents that were not used in
          the fit, by :func:`annealvi.metrics.document_completion`, in nats.
        - ``gain``: held-out log-likelihood minus that of a prediction by word frequencies alone.
        - ``coherence``: mean NPMI of the ten most probable words of the topics.
        - ``diversity``: share of distinct words in the topics' lists of ten most probable words.
        - ``quality``: coherence times diversity, or coherence alone if it is negative.
        - ``stability``: :func:`annealvi.metrics.topic_stability`, with columns for pairs of runs.
    criterion : {"quality", "held_out_log_likelihood"}
        The measure on which the recommendation is based.
    recommended : int
        The recommended number of topics, one of `n_topics`.
    rule : str
        An explanation of the recommendation, with other numbers of topics that are about as good,
        and the advice to compare more numbers if the smallest or largest of
        `n_topics` is recommended.
    n_documents : int
        Number of documents that were used for the measures, at most `max_documents`.
    topics : ndarray of shape (n_runs, recommended, V), float32, or None
        The topics that the runs found with the recommended number of topics.  The attribute
        `topics` is None if the Choice is the `choice_` of a TopicModel.
    """

    n_topics: NDArray[np.int64]
    measures: Measures
    criterion: str
    recommended: int
    rule: str
    n_documents: int
    topics: NDArray[np.float32] | None = None

    @property
    def table(self) -> Any:
        """The measures as a pandas DataFrame.

        Each row is a number of topics.  The columns are, for each measure, the mean and standard
        deviation over runs (``coherence``, ``coherence_sd``, ...), and the bool ``recommended``.
        """
        pandas = import_optional("pandas", "Choice.table")
        columns: dict[str, Any] = {}
        for name, values in self.measures.items():
            columns[name] = values.mean(axis=1)
            columns[f"{name}_sd"] = spread_of(values)
        columns["recommended"] = self.n_topics == self.recommended
        return pandas.DataFrame(columns, index=pandas.Index(self.n_topics, name="n_topics"))

    def plot(self, axes: Any = None) -> Any:
        """Draw each measure against the number of topics, by :func:`annealvi.plot.plot_choice`.

        A line connects the means, bars show standard deviations over runs, and a dashed line
        marks the recommended number.  This method requires matplotlib.

        Parameters
        ----------
        axes : array of matplotlib Axes, optional
            At least five Axes.  By default five Axes are made side by side in a new figure.

        Returns
        -------
        ndarray of matplotlib Axes
            The Axes that were passed, or the five new Axes.
        """
        from annealvi.plot import plot_choice

        return plot_choice(self, axes=axes)

    def _repr_html_(self) -> str:
        from annealvi.plot.notebook import choice_html

        return choice_html(self)

    def __repr__(self) -> str:
        numbers = self.n_topics.tolist()
        return f"Choice(recommended={self.recommended}, n_topics={numbers}): {self.rule}"


#: A Choice in a file.  With a single run, stability is NaN.
CHOICE = Schema(
    Choice,
    n_topics=Array((None,), np.int64),
    measures=Schema(**{name: Array((None, None), finite=False) for name in (*MEASURES, STABILITY)}),
    criterion=Text(*CRITERIA),
    recommended=Integer(1),
    rule=Text(),
    n_documents=Integer(2),
)


def spread_of(values: NDArray) -> NDArray:
    """Return standard deviations over runs, or NaN if there is a single run."""
    if values.shape[1] < 2:
        return np.full(len(values), np.nan)
    return values.std(axis=1, ddof=1)


#: Share of the documents that are held out in each run.
HELD_OUT = 0.1
#: Maximum number of documents that are held out.
MOST_HELD_OUT = 1000
#: With ``n_topics="auto"``: numbers of topics, minimum documents per topic, and number of runs.
AUTO = (2, 5, 10, 20, 50, 100, 200)
DOCUMENTS_EACH = 20
AUTO_RUNS = 2
#: MB of a process without its corpus and topics.
PROCESS = 200
#: The number of top words for which coherence and diversity are computed.
N_WORDS = 10
#: A number of topics is recommended for prediction if it has this share of the largest gain.
ENOUGH = 0.95
#: A number added to the count of each word in the prediction without topics.
SMOOTHING = 0.1


@validated(
    n_runs=COUNT,
    criterion=[StrOptions(set(CRITERIA))],
    max_documents=[None, Interval(Integral, 2, None, closed="left")],
    random_state=["random_state"],
    n_jobs=[None, Integral],
    checkpoints=[None, str, PathLike],
    verbose=["verbose"],
)
def choose_n_topics(
    documents: Any,
    n_topics: Iterable[int] = (10, 20, 50, 100, 200),
    *,
    n_runs: int = 3,
    criterion: str = "quality",
    max_documents: int | None = 5000,
    model: Any = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    checkpoints: str | PathLike | None = None,
    verbose: int = 0,
) -> Choice:
    """Compare fits with several numbers of topics, and recommend one of these numbers.

    The comparison is repeated in several runs with different random seeds.  Each run holds out a
    tenth of the documents, and fits a model with each number of topics to the other documents.

    Parameters
    ----------
    documents : {array-like, sparse matrix} of shape (D, V), or iterable of str
        Word counts, which must be integers, or texts, whose words are counted as in a TopicModel.
    n_topics : sequence of int, default=(10, 20, 50, 100, 200)
        The numbers of topics to compare.
    n_runs : int, default=3
        Number of runs.  If two numbers of topics differ in a measure by less than its standard
        deviation over runs, the difference is uncertain.  The measure ``stability`` compares the
        topics of two runs, so it requires at least two.
    criterion : {"quality", "held_out_log_likelihood"}, default="quality"
        The measure on which the recommendation is based.

        - ``"quality"`` is for topics that people read.  The recommended number of topics has the
          highest quality, which is coherence times diversity.  Coherence is high if the ten most
          probable words of each topic occur in the same documents.  Diversity is the share of
          distinct words in these lists of ten words.  With too few topics a topic mixes several
          themes and is less coherent; with too many, topics repeat each other.  If the highest
          quality exceeds 0 by no more than its standard deviation, the texts show no clear topics,
          and the smallest number is recommended.
        - ``"held_out_log_likelihood"`` is for predicting words, or for topic proportions that are
          features of another model.  The gain is this log-likelihood minus that of a prediction by
          word frequencies alone.  The smallest number of topics with at least 95% of the largest
          gain is recommended.  On large corpora it is often the largest number in `n_topics`.
    max_documents : int, default=5000
        If there are more documents, this number of documents is drawn at random.  None means all.
    model : TemperedLDA or TopicModel, default=None
        A model whose parameters are used in all fits, except the number of topics, `random_state`,
        callbacks and `seed_words`.  Each fit uses one thread unless you set `n_jobs` of the
        TemperedLDA.  With a TopicModel, `documents` must be texts.
    random_state : int, RandomState instance or None, default=None
        Random seed of the sample, of the held-out documents and of the fits.
    n_jobs : int, default=None
        Number of processes, each of which makes one fit at a time.  The result is the same for any
        number.  None means 1, or the setting of a :obj:`joblib.parallel_config` context, such as
        ``backend="dask"``.  -1 means all processors.
    checkpoints : path, default=None
        A folder for a checkpoint of each fit.  If a call is interrupted, repeat it with the same
        documents, parameters and `random_state` to continue: finished fits are not repeated.
    verbose : int, default=0
        If not 0, write the memory of a fit to standard error, and then how many topics of all fits
        are done, and the time so far.

    Returns
    -------
    Choice
        The attributes are ``recommended``, ``rule``, ``table`` and ``measures``; the method
        ``plot`` draws the measures.

    Raises
    ------
    ValueError
        If `documents` has too few documents with words, or counts that are not integers, or if
        `n_topics` is empty, repeats a number or contains a number that exceeds the number of words.
    TypeError
        If `n_topics` is not a sequence of integers, or texts are not str.

    See Also
    --------
    annealvi.topics.reduce_topics : Reduces the number of topics without a new fit.

    Examples
    --------
    >>> from annealvi.datasets import make_topic_corpus
    >>> from annealvi.topics import choose_n_topics
    >>> X = make_topic_corpus(400, 200, 5, random_state=0).data
    >>> choose_n_topics(X, [2, 5, 10], n_runs=2, random_state=0).recommended
    5
    """
    X, template = _counted(documents, model)  # counts, and the LDA with the parameters of fits
    check_non_negative(X, "choose_n_topics")
    check_integers(X, "documents", "texts, or integer counts")
    sizes = sorted(
        different_ints(
            n_topics, "n_topics", "at most the number of words of the documents", 1, X.shape[1]
        )
    )
    if not sizes:
        raise BadParameter("n_topics", "a list of one or more ints", n_topics)
    rng = check_random_state(random_state)
    X = X[summed(X, axis=1) > 0]  # documents with words
    if max_documents is not None and X.shape[0] > max_documents:
        X = X[np.sort(rng.choice(X.shape[0], max_documents, replace=False))]
    if min(X.shape) < 2:
        raise BadParameter(
            "documents",
            "a corpus with at least two words and two nonempty documents",
            f"{X.shape[1]} words and {X.shape[0]} documents that contain words",
        )
    n_runs = int(n_runs)
    n_documents = X.shape[0]
    n_held_out = min(-(-n_documents // round(1 / HELD_OUT)), MOST_HELD_OUT)  # rounded up
    progress = Progress(
        f"comparing {len(sizes)} numbers of topics",
        n_runs * sum(sizes),
        shown=bool(verbose),
        timed=False,  # the time of a fit is not proportional to its number of topics
    )
    if verbose:
        print(
            f"{len(sizes) * n_runs} fits of {n_documents - n_held_out:,} documents take "
            f"{memory_of(template, X, sizes):,.0f} MB of memory for each simultaneous fit.",
            file=sys.stderr,
        )
    if checkpoints is not None:
        Path(checkpoints).mkdir(parents=True, exist_ok=True)

    def tasks() -> Iterator[Any]:
        """Yield the fits of all runs, each with the training and the held-out documents."""
        for run in range(n_runs):
            order = rng.permutation(n_documents)
            seed = int(rng.randint(2**31 - 1))
            train = X[np.sort(order[n_held_out:])]
            test = X[np.sort(order[:n_held_out])]
            without_topics = _without_topics(train, test, seed)
            for k in sizes:
                fit = unwatched(template, n_components=k, random_state=seed)
                # None without a folder
                path = checkpoints and Path(checkpoints) / f"{k}_topics_run_{run}.safetensors"
                yield delayed(_fitted)(fit, train, test, seed, without_topics, path)

    measures = {name: np.empty((len(sizes), n_runs)) for name in MEASURES}
    topics: list[list[NDArray]] = [[] for _ in sizes]
    # results come in the order of the tasks: all sizes of a run, then those of the next run
    run_tasks = Parallel(n_jobs, return_as="generator" if verbose else "list")
    with progress:
        for number, (measured, components) in enumerate(run_tasks(tasks())):
            run, row = divmod(number, len(sizes))
            for name, value in measured.items():
                measures[name][row, run] = value
            topics[row].append(components)
            progress.n_done += sizes[row]
    # of each pair of runs; NaN if there is a single run
    measures[STABILITY] = np.array(
        [[topic_stability(*pair) for pair in combinations(runs, 2)] or [np.nan] for runs in topics]
    )
    numbers = np.array(sizes)
    row, rule = RULES[criterion](numbers, measures)
    return Choice(
        n_topics=numbers,
        measures=measures,
        criterion=criterion,
        recommended=sizes[row],
        rule=rule,
        n_documents=n_documents,
        topics=np.array(topics[row], dtype=np.float32),
    )


def memory_of(lda: TemperedLDA, X: csr_matrix, sizes: list[int]) -> float:
    """Estimate the MB of memory that a fit with the largest number of topics needs.

    The parameters of `lda` are used in all fits, and `sizes` are the numbers of topics.
    """
    bytes_of_topics = 0.0
    for k in sizes:
        parameters = lda.get_params() | {"n_components": k}
        plan = resolve(parameters, round((1 - HELD_OUT) * X.shape[0]), words_per_entry(X, k))
        n_copies = 4 + 2 * plan.n_init * plan.merged  # runs that are merged are stored
        bytes_of_topics = max(bytes_of_topics, 4.0 * k * X.shape[1] * n_copies)
    # a stored number of X takes 8 bytes, and its column 4
    return (12 * X.nnz * (1 - HELD_OUT) + bytes_of_topics) / 1e6 + PROCESS


def _fitted(
    fit: TemperedLDA,
    train: csr_matrix,
    test: csr_matrix,
    seed: int,
    without_topics: float,
    path: Path | None,
) -> tuple[dict[str, float], NDArray]:
    """Fit a model, or resume it from a checkpoint; return its measures and topics.

    `without_topics` is the held-out log-likelihood of a prediction by word frequencies.
    Checkpoints are written to `path`, if it is not None.
    """
    if path is None:
        fit.fit(train)
    else:
        fit.set_params(callback=Checkpoint(path))
        fit.fit(train, resume=path if path.exists() else None)
    n_words = min(N_WORDS, train.shape[1])
    topics = fit.components_
    coherence = topic_coherence(topics, train, n_words=n_words).mean()
    diversity = topic_diversity(topics, n_words=n_words)
    held_out = float(document_completion(fit, test, random_state=seed))
    measures = {
        "held_out_log_likelihood": held_out,
        "gain": held_out - without_topics,
        "coherence": coherence,
        "diversity": diversity,
        # coherence alone if it is negative, so that low diversity does not raise it
        "quality": min(coherence, coherence * diversity),
    }
    return measures, np.array(topics)


def choose_for(X: csr_matrix, lda: TemperedLDA, least: int = 1, *, verbose: bool = False) -> Choice:
    """Choose a number of at least `least` topics with few fits, for ``TopicModel("auto")``."""
    # enough documents for each topic, and no more topics than words
    maximum = min(max(X.shape[0] / DOCUMENTS_EACH, AUTO[0]), X.shape[1])
    sizes = [k for k in AUTO if least <= k <= maximum]
    if not sizes:
        sizes = [least]
    return choose_n_topics(
        X,
        sizes,
        n_runs=AUTO_RUNS,
        model=lda,
        random_state=lda.random_state,
        verbose=verbose,
    )


def unwatched(lda: TemperedLDA, **parameters: Any) -> TemperedLDA:
    """Return a clone with other parameters and without the user's callbacks."""
    fit = clone(lda).set_params(callback=None, **parameters)
    if hasattr(fit, "set_callbacks"):  # scikit-learn's, since its version 1.9
        fit.set_callbacks()  # none; `clone` has copied them
    return fit


def matched(choice: Choice, topics: NDArray) -> dict[str, Any]:
    """Return the attributes of a fitted model that depend on its choice of `n_topics`.

    The `topics` of the model are compared with those of the runs of the choice.
    """
    # a new choice has the topics of its runs
    similarity = np.array([match(topics, run) for run in choice.topics])  # type: ignore[union-attr]
    return {"choice_": replace(choice, topics=None), "topic_similarity_": similarity}


def _counted(documents: Any, model: Any) -> tuple[csr_matrix, TemperedLDA]:
    """Return word counts, and the TemperedLDA whose parameters are used."""
    lda = model
    vectorizer = None
    stop_words = "english"  # the default of a TopicModel
    of_texts = takes_texts(model)
    if of_texts:
        lda = model.lda
        vectorizer = model.vectorizer
        stop_words = model.stop_words
    if lda is None:
        lda = TemperedLDA()
    if lda_in(lda) is not lda:
        raise BadParameter("model", "a TemperedLDA, a TopicModel or None", model)
    if not of_texts and not are_texts(documents, "documents"):
        return check_csr(documents, name="documents"), lda
    vectorizer = TopicVectorizer() if vectorizer is None else copied(vectorizer)
    texts = check_texts(documents, "documents", min_documents=2)
    _, counts, _ = count_words(with_stop_words(vectorizer, stop_words), texts)
    warn_of_empty(counts, "These texts are not used.")
    return counts, lda


def _without_topics(train: csr_matrix, test: csr_matrix, seed: int) -> float:
    """Return the held-out log-likelihood per word if words are predicted by their frequencies."""
    counts = summed(train, axis=0, dtype=np.float64) + SMOOTHING
    # the same words as `document_completion` hides with this seed
    _, hidden = split_tokens(test, random_state=seed)
    if not hidden.nnz:  # half of the words of a document are predicted from the other half
        raise BadParameter(
            "documents",
            "documents of at least two words, because some documents are held out",
            "held-out documents of at most one word",
        )
    return (hidden @ special.log(counts / counts.sum())).sum() / hidden.sum(dtype=float)


# ---------------------------------------------------------------- recommendations


def _by_quality(n_topics: NDArray[np.int64], measures: Measures) -> tuple[int, str]:
    """Return the row of the number of topics with the highest quality, and an explanation."""
    values = measures["quality"]  # of each run
    quality = values.mean(axis=1)
    row = int(np.argmax(quality))
    spread = np.nan_to_num(spread_of(values)[row])  # 0 if there is a single run
    if quality[row] <= spread:
        return 0, (
            "The texts show no clear topics: the highest quality (coherence of top words times "
            f"diversity), with {n_topics[row]} topics, is hardly above 0, "
            f"{_mean_and_spread(values[row])}. {n_topics[0]} is the smallest of the "
            "compared numbers."
        )
    others = [str(k) for k in n_topics[quality >= quality[row] - spread] if k != n_topics[row]]
    rule = (
        f"{n_topics[row]} topics have the highest quality (coherence of their top words times "
        f"diversity): {_mean_and_spread(values[row])}."
    )
    if others:
        rule += f" The quality of {', '.join(others)} topics is within one standard deviation."
    return row, rule + _at_end(n_topics, row)


def _by_likelihood(n_topics: NDArray[np.int64], measures: Measures) -> tuple[int, str]:
    """Return the row of the smallest number of topics with nearly the largest gain, and why."""
    gain = measures["gain"].mean(axis=1)
    best = np.argmax(gain)
    # the first, and so the smallest number; abs, because the largest gain may be negative
    row = int(np.argmax(gain >= gain[best] - (1 - ENOUGH) * abs(gain[best])))
    return row, (
        f"{n_topics[row]} is the smallest number of topics with at least {ENOUGH:.0%} of the "
        f"largest gain in held-out log-likelihood per word over prediction without topics: "
        f"{gain[best]:.3f} nats with {n_topics[best]} topics. Its gain is "
        f"{_mean_and_spread(measures['gain'][row])} nats." + _at_end(n_topics, row)
    )


def _at_end(n_topics: NDArray[np.int64], row: int) -> str:
    """Say that numbers beyond the compared ones may be better; an empty str within them."""
    if len(n_topics) < 2 or row not in (0, len(n_topics) - 1):
        return ""
    end, beyond = ("largest", "larger") if row else ("smallest", "smaller")
    return f" {n_topics[row]} is the {end} of the compared numbers: compare {beyond} numbers too."


RULES = {"quality": _by_quality, "held_out_log_likelihood": _by_likelihood}


def _mean_and_spread(values: NDArray) -> str:
    """Write the mean of a measure over runs, with the standard deviation if there are several."""
    mean = f"{values.mean():.3f}"
    if len(values) < 2:
        return mean
    return f"{mean} ± {values.std(ddof=1):.3f} (mean and standard deviation of {len(values)} runs)"
