"""The parameters of TemperedLDA: their constraints, values for None and "auto", and dtypes.

A parameter that is None or "auto" is called open: its value follows from the preset.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from inspect import isfunction
from numbers import Integral, Real
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.utils._param_validation import Options, RealNotInt, StrOptions

from annealvi.checks import HEADROOM, Interval, as_array, check_counts, check_total, least_positive
from annealvi.inference import LinearDecay, RobbinsMonro, full_step
from annealvi.matrices import csr_of
from annealvi.models.lda.model import LocalOptions
from annealvi.models.lda.priors import usual_prior
from annealvi.scale.elsewhere import Elsewhere
from annealvi.temperature import (
    Annealed,
    Fixed,
    LocalVariational,
    Temperature,
    Variational,
    as_temperature,
)

SINGLE = np.dtype(np.float32)
DOUBLE = np.dtype(np.float64)
#: If a prior is larger, adding a word to it in float32 has an error of over a thousandth of a word.
MOST_PRIOR = 2.0**13
#: Constraints on each parameter, in the form that scikit-learn checks.
POSITIVE = [Interval(Integral, 0, None, closed="neither")]
COUNT = [None, Interval(Integral, 0, None, closed="left")]
TOLERANCE = [None, Interval(Real, 0, None, closed="left")]
PRIOR = [None, Interval(Real, 0, None, closed="neither"), "array-like", StrOptions({"learn"})]
CONSTRAINTS: dict[str, Any] = {
    "n_components": POSITIVE,
    "doc_topic_prior": PRIOR,
    "topic_word_prior": PRIOR,
    "learning_method": [StrOptions({"auto", "batch", "online"})],
    "learning_decay": [None, Interval(Real, 0, 1, closed="both")],
    "learning_offset": [None, Interval(Real, 1.0, None, closed="left")],
    "max_iter": COUNT,
    "batch_size": [None, *POSITIVE],
    "evaluate_every": [Interval(Integral, None, None, closed="neither")],
    "total_samples": [Interval(Real, 1e-100, None, closed="left")],  # so that passes are finite
    "perp_tol": TOLERANCE[1:],
    "mean_change_tol": TOLERANCE,
    "max_doc_update_iter": COUNT,
    "n_jobs": [None, Integral],
    "verbose": ["verbose"],
    "random_state": ["random_state"],
    "temperature": "no_validation",  # as_temperature checks it
    "estimate": [StrOptions({"auto", "map", "variational"})],
    "init": [StrOptions({"auto", "random", "documents", "kmeans++"}), "array-like"],
    "preset": [StrOptions({"annealvi", "sklearn"})],
    "dtype": [
        StrOptions({"auto", "float32", "float64"}),
        Options(type, {np.float32, np.float64}),
        Options(np.dtype, {np.dtype(np.float32), np.dtype(np.float64)}),
    ],
    "n_init": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
    "validation_fraction": [None, Interval(RealNotInt, 0, 1, closed="neither")],
    "callback": [None, callable, list],
    "device": "no_validation",  # device_of checks it
}
#: A temperature that starts near the critical temperature and decreases until the end of the fit.
COOLING = Annealed("auto", length=1.0)
#: The temperatures by the names that the user can pass.
TEMPERATURES: dict[str, Temperature] = {
    "auto": COOLING,
    "annealed": Annealed(),
    "variational": Variational(),
    "local": LocalVariational(),
}
PRIORS = ("doc_topic_prior", "topic_word_prior")
#: A corpus is called plenty if it has at least this number of words for each entry of the topics.
PLENTY = 2.5
#: The number of batch passes at the end of a fit if the corpus is plenty.
FINISH = 12
#: The maximum number of merged runs if the corpus is plenty (True) or not (False).  Each run makes
#: the second number of passes, or more passes if these have fewer steps than the third number.
RUNS = {True: 8, False: 5}
SHORT = 3
LEAST_STEPS = 25
#: All runs together make at most this multiple of the passes of a single run.
MOST_PASSES = 3
#: Types whose values cannot change.  Values of other types, such as arrays and temperatures, may
#: have changed in place since the last call of `partial_fit`, so they are checked again.
PLAIN = (type(None), bool, int, float, str)


class Settings(NamedTuple):
    """The settings of a fit: values of all parameters, and other values that follow from them.

    ``memory_spans`` is an argument of :class:`annealvi.inference.LinearDecay`, or None if the step
    sizes follow `learning_decay` and `learning_offset`.  ``finish_iter`` is the number of batch
    passes at the end of the fit, and ``merged`` is true if the topics of all runs are merged.
    ``learned`` names the priors that are learned, starting from the values here.  The other fields
    that are not parameters are arguments of :class:`annealvi.models.lda.LocalOptions`.
    """

    doc_topic_prior: ArrayLike
    topic_word_prior: ArrayLike
    learning_method: str
    learning_decay: float
    learning_offset: float
    memory_spans: float | None
    max_iter: int
    finish_iter: int
    batch_size: int
    max_doc_update_iter: int
    inference_iter: int | None
    over_relaxed: bool
    mean_change_tol: float
    token_change_tol: float | None
    temperature: Any
    init: Any
    exact: bool
    estimate: Literal["map", "variational"]
    sparse: bool
    n_init: int
    merged: bool
    learned: tuple[str, ...]
    device: str = "cpu"
    shard_size: int | None = None

    def parameters(self) -> dict[str, Any]:
        """Return the parameters with which another estimator repeats the fit, and `merged`."""
        # the fields that are parameters; the others follow from them
        parameters = {name: getattr(self, name) for name in self._fields if name in CONSTRAINTS}
        parameters |= {name: "learn" for name in self.learned}
        # a copy, because the user may change their temperature in place
        parameters["temperature"] = clone(self.temperature, safe=False)
        # these values of the preset cannot be passed as parameters, so None stands for them
        if self.inference_iter is not None:
            parameters["max_doc_update_iter"] = None
        if self.token_change_tol is not None:
            parameters["mean_change_tol"] = None
        if self.memory_spans is not None:  # no values of this pair result in these step sizes
            parameters |= {"learning_decay": None, "learning_offset": None}
        if self.shard_size is not None:
            parameters["shard_size"] = self.shard_size
        return parameters | {"merged": self.merged}

    def wanted_temperature(self) -> Temperature:
        """Return the temperature as an object, if it is a number or a name."""
        return as_temperature(self.temperature, TEMPERATURES)

    def step_size(self, n_steps: int | None) -> Callable[[int], float]:
        """Return rho(t), t = 1, 2, ..., for `n_steps` steps, or for a stream if that is None."""
        if self.learning_method == "batch" and n_steps is not None:
            return full_step
        # in a stream, or if the user has set the decay or the offset
        if n_steps is None or self.memory_spans is None:
            return RobbinsMonro(self.learning_decay, self.learning_offset)
        return LinearDecay(max(1, n_steps), self.memory_spans, largest_step(self.batch_size))

    def local_options(self) -> LocalOptions:
        """Return the settings of the local step of documents."""
        tolerance = self.token_change_tol
        return LocalOptions(
            max_iter=self.max_doc_update_iter,
            tolerance=self.mean_change_tol if tolerance is None else tolerance,
            by_topic=tolerance is None,
            inference_iter=self.inference_iter,
            exact=self.exact,
            sparse=self.sparse,
            over_relaxed=self.over_relaxed,
            shard_size=self.shard_size,
        )


# ------------------------------------------------------------------- the parameters left open


Values = dict[str, Any]
#: Values of open parameters and of other settings for each preset.  A function computes the value
#: from the size of the corpus.
SKLEARN: dict[str, Any] = {
    "doc_topic_prior": lambda corpus: 1.0 / corpus.n_topics,
    "topic_word_prior": lambda corpus: 1.0 / corpus.n_topics,
    "learning_method": "batch",
    "learning_decay": 0.7,
    "learning_offset": 10.0,
    "memory_spans": None,
    "max_iter": 10,
    "finish_iter": 0,
    "batch_size": 128,
    "max_doc_update_iter": 100,
    "inference_iter": None,
    "over_relaxed": False,
    "mean_change_tol": 1e-3,
    "token_change_tol": None,
    "temperature": Fixed(1.0),
    "init": "random",
    "exact": True,
    "estimate": "variational",
    "n_init": 1,
}
#: Values that gave good results on every corpus tested; docs/record/defaults.md lists the results.
RECIPE: dict[str, Any] = SKLEARN | {
    "doc_topic_prior": lambda corpus: usual_prior(corpus.n_topics),
    "topic_word_prior": lambda corpus: usual_prior(corpus.n_topics),
    "learning_method": "auto",  # it depends on the batch size
    "memory_spans": lambda corpus: (100.0 if corpus.plenty else 60.0) * corpus.n_topics**-0.3,
    "max_iter": lambda corpus: passes(corpus.n_samples),
    "finish_iter": lambda corpus: FINISH if corpus.plenty else 0,
    "batch_size": lambda corpus: minibatch(corpus.n_samples),
    "max_doc_update_iter": 30,
    "inference_iter": 100,
    "over_relaxed": True,
    "token_change_tol": 0.01,
    "temperature": COOLING,
    "init": "kmeans++",
    "exact": False,
    "estimate": "map",
    "n_init": lambda corpus: RUNS[corpus.plenty],
}


def resolve(
    parameters: Mapping[str, Any], n_samples: int, density: float | None = None
) -> Settings:
    """Return the parameters of TemperedLDA, with values for open parameters.

    A value that the user has passed takes precedence over the preset.  `_steps`, `_documents` and
    `_budget` add values that follow from both.
    """
    corpus = SimpleNamespace(
        n_topics=int(parameters["n_components"]),
        n_samples=n_samples,
        density=density,  # words for each entry of the topics; None for a stream
        plenty=density is not None and density >= PLENTY,
        validated=parameters["validation_fraction"] is not None,
    )
    table = RECIPE if parameters["preset"] == "annealvi" else SKLEARN
    # functions in the table compute a value from the corpus
    preset = {k: value(corpus) if isfunction(value) else value for k, value in table.items()}
    passed = {
        name: value
        for name, value in parameters.items()
        if name in Settings._fields and not is_open(value) and not is_learned(value)
    }
    learned = tuple(name for name in PRIORS if is_learned(parameters[name]))
    values = preset | passed | {"learned": learned}
    corpus.temperature = as_temperature(values["temperature"], TEMPERATURES)
    # whether T decreases to 1 in the fit; not in a stream, whose length is unknown
    corpus.cools = density is not None and corpus.temperature.cools
    corpus.usual_passes = preset["max_iter"]  # of a single run
    # each rule returns values that replace those of the preset and of the user
    for rule in (_steps, _documents, _budget):
        values |= rule(values, passed, corpus)
    return Settings(**values)


def _steps(values: Values, passed: Values, corpus: SimpleNamespace) -> Values:
    """A single minibatch is a batch; step sizes of the user replace the preset's step sizes."""
    method = values["learning_method"]
    if is_open(method):
        method = "online" if values["batch_size"] < corpus.n_samples else "batch"
    replaced = not passed.keys().isdisjoint(("learning_decay", "learning_offset"))
    return {"learning_method": method, "memory_spans": None if replaced else values["memory_spans"]}


def _documents(values: Values, passed: Values, corpus: SimpleNamespace) -> Values:
    """If T decreases to 1, documents become sparse; limits of the user replace the preset's."""
    # for each limit, the setting of the preset that would take precedence over it
    limits = {"mean_change_tol": "token_change_tol", "max_doc_update_iter": "inference_iter"}
    replaced: Values = {setting: None for name, setting in limits.items() if name in passed}
    return replaced | {
        "sparse": corpus.cools and values["estimate"] == "map",
        "over_relaxed": values["over_relaxed"] and corpus.cools and not replaced,
    }


def _budget(values: Values, passed: Values, corpus: SimpleNamespace) -> Values:
    """Shorten runs that will be merged, and make fewer runs if they would need too many passes.

    A `max_iter` or `n_init` that the user has passed is never reduced.
    """
    usual = corpus.usual_passes
    online = values["learning_method"] == "online"  # set by `_steps`
    per_pass = -(-corpus.n_samples // values["batch_size"]) if online else 1
    # the passes in which the temperature decreases, if the user has set their number
    cooling = int(np.ceil(getattr(corpus.temperature, "passes", None) or 0))
    # the passes of a run that will be merged
    short = passed.get("max_iter", min(usual, max(SHORT, -(-LEAST_STEPS // per_pass), cooling)))
    mergeable = (
        corpus.density is not None and short > 0 and _can_be_merged(values, corpus.temperature)
    )
    n_init = int(values["n_init"])
    if "n_init" not in passed and n_init > 1:
        # so many that all runs together make at most MOST_PASSES times the usual passes
        n_init = max(2, min(n_init, MOST_PASSES * usual // max(1, short))) if mergeable else 1
    merged = mergeable and n_init > 1
    finish = values["finish_iter"]
    if merged and corpus.validated:  # the score ends these passes
        finish = FINISH
    elif corpus.validated or not online or short == 0 or not corpus.cools:
        finish = 0
    max_iter = short if merged else passed.get("max_iter", usual)
    return {"max_iter": max_iter, "n_init": n_init, "merged": merged, "finish_iter": finish}


def _can_be_merged(values: Values, temperature: Temperature) -> bool:
    """Whether runs can be merged: all topics have the same prior, and the fit ends at T = 1."""
    alike = are_alike(values["doc_topic_prior"]) and are_alike(values["topic_word_prior"], ndim=2)
    # whether the fit ends at T = 1, and whether its runs begin at different topics
    ends = temperature.cools or (temperature.constant and temperature.inverse(0) == 1)
    begins = isinstance(values["init"], str) and not values["exact"]
    return alike and not values["learned"] and ends and begins


def batch_size(n_samples: int) -> int:
    """Return 5 sqrt(D), but at least 100 and at most 1000.

    With a small corpus, small minibatches allow many steps per pass.  With a large corpus, large
    minibatches make the steps less noisy.
    """
    return int(np.clip(round(5 * np.sqrt(n_samples)), 100, 1000))


def minibatch(n_samples: int) -> int:
    """Return `batch_size`, or more if the last minibatch would be less than a quarter of that.

    The reason is that a short last minibatch would have the same weight as a full minibatch.
    """
    size = batch_size(n_samples)
    n_batches, rest = divmod(n_samples, size)
    # if the rest is small, it is divided among the other minibatches
    return -(-n_samples // n_batches) if n_batches and 0 < 4 * rest < size else size


def largest_step(size: int) -> float:
    """Return the largest step size of minibatches of `size` documents.

    The step size is 0.2 for up to 4,096 documents.  For larger minibatches it is proportional to
    the square root of `size`, up to 0.8, because then steps are fewer and less noisy.
    """
    return float(np.clip(0.2 * np.sqrt(size / 4096), 0.2, 0.8))


def passes(n_samples: int) -> int:
    """Return 110 / D^(1/4), but at least 2 and at most 40."""
    return int(np.clip(round(110 / max(n_samples, 1) ** 0.25), 2, 40))


def words_per_entry(X: Any, n_topics: int) -> float:
    """Return the number of words of a corpus for each entry of the topics, N / (K V)."""
    if isinstance(X, Elsewhere):
        return X.n_words / (n_topics * max(1, X.n_used))
    used = np.zeros(max(1, X.shape[1]), dtype=bool)
    used[X.indices[: X.indptr[-1]]] = True  # the arrays may be longer than the matrix
    n_used = int(np.count_nonzero(used))
    return float(X.data.sum(dtype=float)) / (n_topics * max(1, n_used))


def are_alike(prior: Any, ndim: int = 1) -> bool:
    """Whether all topics have the same prior; an array of `ndim` dimensions has one for each."""
    values = as_array(prior)
    return values.ndim < ndim or bool(np.all(values == values[:1]))


def is_learned(prior: Any) -> bool:
    """Whether a prior is to be learned, starting at the preset's value."""
    return isinstance(prior, str) and prior == "learn"


def is_open(value: Any) -> bool:
    """Whether a parameter is None or "auto"."""
    return value is None or (isinstance(value, str) and value == "auto")


def check_step(settings: Settings, temperature: Temperature, step: int, rho: float) -> None:
    """Raise an error if rho T >= 1 with ``form="posterior"``, as lambda could become negative.

    Only the first step is checked, because rho and T are largest in it.  At T = 1, rho may be 1.
    """
    b, form = temperature.tempering(step)[:2]
    if form == "posterior" and b < 1 and rho >= b:
        advice = "use more passes, or set learning_offset and learning_decay"
        if settings.memory_spans is None:
            advice = (
                f"use a larger learning_offset than {settings.learning_offset!r} or a larger "
                f"learning_decay than {settings.learning_decay!r}"
            )
        raise ValueError(
            "With form='posterior' the step size times the temperature must be less than 1. "
            f"Got {rho:.4g} * {1 / b:.4g} = {rho / b:.4g} at step {step + 1}. Use a lower "
            f"temperature, or {advice}."
        )


def stream_settings(
    check: Callable[[dict[str, Any]], None], parameters: Mapping[str, Any]
) -> Settings:
    """Check the parameters of `partial_fit`, and return the settings.

    The result is the same object in each call unless a parameter has changed or is mutable.
    """
    # `shard_size` is a parameter only of a subclass
    names = *CONSTRAINTS, *(name for name in ("shard_size",) if name in parameters)
    values = {name: parameters[name] for name in names}
    plain = all(type(value) in PLAIN for value in values.values())
    # `__wrapped__` is the function without its cache
    return (_checked if plain else _checked.__wrapped__)(check, tuple(values), *values.values())


# typed, because 1, 1.0 and True are equal; a call that raises an error is not cached
@lru_cache(maxsize=32, typed=True)
def _checked(
    check: Callable[[dict[str, Any]], None], names: tuple[str, ...], *values: Any
) -> Settings:
    """Check parameters by name and value, and return the settings of `partial_fit`."""
    parameters = dict(zip(names, values, strict=True))
    check(parameters)
    return resolve(parameters, math.ceil(min(float(parameters["total_samples"]), 2**53)))


# ------------------------------------------------------------------- word counts and dtypes


def fit_dtype(
    parameters: Mapping[str, Any], X: csr_matrix | Elsewhere, population: float
) -> np.dtype:
    """Return the dtype of a fit: the `dtype` parameter or, if that is ``"auto"``, float32.

    With ``preset="sklearn"``, or if float32 cannot represent the counts, ``"auto"`` means the dtype
    of X.  If float32 cannot represent the priors or an array `init`, ``"auto"`` means float64.
    """
    chosen = _wanted_dtype(parameters, default=X.dtype)
    if chosen is not None:
        return chosen
    if not _hold_parameters(parameters, X.shape[1]):
        return DOUBLE
    total, smallest = extent(X)
    limits = np.finfo(SINGLE)
    with np.errstate(over="ignore"):  # the population may be infinite
        total = max(total, 1.0) * max(population, 1.0)
    return SINGLE if total <= float(limits.max) / HEADROOM and smallest >= limits.tiny else X.dtype


def _wanted_dtype(parameters: Mapping[str, Any], default: np.dtype) -> np.dtype | None:
    """Return the `dtype` parameter or, if it is ``"auto"``, None.

    With ``preset="sklearn"`` on a CPU, ``"auto"`` means the dtype `default`, as in scikit-learn.
    """
    dtype = parameters["dtype"]
    if not is_open(dtype):
        return np.dtype(dtype)
    alike = parameters["preset"] == "sklearn" and parameters["device"] == "cpu"  # no GPU's float32
    return default if alike else None


def extent(X: csr_matrix | Elsewhere) -> tuple[float, float]:
    """Return the sum of word counts, and the smallest positive count (infinity if none is)."""
    if isinstance(X, Elsewhere):
        return X.n_words, X.least
    with np.errstate(over="ignore"):
        total = float(X.data.sum(dtype=float))
    return total, least_positive(X.data)


def topics_dtype(parameters: Mapping[str, Any], components: NDArray) -> np.dtype:
    """Return the dtype of a model whose topics were assigned, without a fit.

    ``"auto"`` means float32 if float32 can represent the topics exactly.  Thus the topics of a
    float32 fit give the same model after a conversion to float64.  With ``preset="sklearn"``,
    ``"auto"`` means the dtype of the topics.
    """
    # None means that the dtype is chosen here
    dtype = _wanted_dtype(parameters, default=single_or_double(components))
    return dtype or (SINGLE if _are_single(components) else DOUBLE)


def single_or_double(array: NDArray) -> np.dtype:
    """Return float32 if the array is of dtype float32, and otherwise float64."""
    return SINGLE if array.dtype == SINGLE else DOUBLE


def in_dtype(X: csr_matrix, dtype: np.dtype) -> csr_matrix:
    """Check that a dtype can represent word counts, and convert them; the indices are shared."""
    check_counts(X, dtype=dtype)
    if X.dtype == dtype:
        return X
    _check_least(least_positive(X.data), dtype)
    converted = csr_of(X.data.astype(dtype), X.indices, X.indptr, X.shape)
    converted.has_canonical_format = True
    return converted


def check_fits(X: Elsewhere, dtype: np.dtype) -> None:
    """Check that a dtype can represent word counts and their sum; see :func:`in_dtype`."""
    check_total(X.n_words, dtype)
    _check_least(X.least, dtype)


def _check_least(count: float, dtype: np.dtype) -> None:
    """Raise ValueError if the smallest positive count would become 0."""
    smallest = float(np.finfo(dtype).smallest_subnormal)
    if count < smallest:
        raise ValueError(
            f"With dtype {dtype} counts in X must be 0 or at least {smallest:.3g}. Got {count:.3g}."
        )


def _hold_parameters(parameters: Mapping[str, Any], n_features: int) -> bool:
    """Whether float32 can represent all priors and topics that the user has passed."""
    values = [parameters[name] for name in PRIORS]
    priors = [as_array(value) for value in values if value is not None and not is_learned(value)]
    fits = all(_within(prior, MOST_PRIOR) for prior in priors)
    if not fits or isinstance(parameters["init"], str):  # a method, not an array
        return fits
    topics = as_array(parameters["init"])
    largest = float(np.finfo(SINGLE).max)
    # the sums over words must be in the range of float32, too
    return _are_single(topics) and _within(topics, largest / (HEADROOM * n_features))


def _are_single(array: NDArray) -> bool:
    """Whether float32 can represent all numbers of an array exactly."""
    if array.dtype == SINGLE or array.dtype.kind not in "fiu":
        return array.dtype == SINGLE  # a later check rejects arrays that are not numeric
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return all(np.array_equal(row.astype(SINGLE), row) for row in np.atleast_2d(array))


def _within(array: NDArray, largest: float) -> bool:
    """Whether all values are positive, in the range of float32, and at most `largest`."""
    if array.dtype.kind not in "fiu" or not array.size:
        return True  # a later check rejects such arrays
    smallest = np.float64(np.finfo(SINGLE).tiny)
    return bool(array.min() >= smallest and array.max() <= np.float64(largest))
