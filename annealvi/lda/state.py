"""The state of a fit of TemperedLDA: what it has learned, and methods that apply it to documents.

The estimator has the parameters, and its state has the model, the temperature, the history and the
current priors.  A state has no reference to the estimator, and consists of arrays, numbers, strings
and objects made of these.  So a state can be copied, written to a file or sent to another process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.utils import check_random_state, gen_batches

from annealvi._kernels import special
from annealvi._kernels.layout import padded_rows
from annealvi.checks import as_array, as_float, check_priors, check_topics, unchanged_on_error
from annealvi.exceptions import BadParameter, warn_user
from annealvi.files.parameters import Parameter
from annealvi.files.schema import (
    Array,
    Field,
    Flag,
    Integer,
    Number,
    Optional,
    Schema,
    Text,
    Tree,
    damaged,
)
from annealvi.inference import Monitor
from annealvi.lda.settings import Settings
from annealvi.matrices import check_csr, summed
from annealvi.model import UNTEMPERED, Tempering
from annealvi.models.lda import LDA
from annealvi.models.lda.cpu import exp_e_log
from annealvi.models.lda.engine import Engine
from annealvi.models.lda.model import read_only
from annealvi.models.lda.starts import CorpusOfFit
from annealvi.temperature import Fixed, Temperature
from annealvi.temperature.base import restored_temperature, temperature_tree
from annealvi.temperature.local import SCORE_GRID

#: The number of documents over which the log partition function per word is averaged.
CORPUS_SAMPLE = 512
#: The number of documents that `document_temperatures` scores at a time.
SCORE_BLOCK = 4096


def counts_of(
    n_samples: int, n_features: int, data: NDArray, indices: NDArray, indptr: NDArray
) -> csr_matrix:
    """Make a CSR matrix of counts from the arrays of a file."""
    # set as attributes, because the constructor would convert and check them in its own way
    X = csr_matrix((n_samples, n_features), dtype=data.dtype)
    vars(X).update(data=data, indices=indices, indptr=indptr)
    X = check_csr(X, dtype=data.dtype, name="results.sample of the file")
    if np.any(X.data < 0):
        raise damaged("results.sample.data", "counts", X.data)
    return X


COUNTS = Schema(
    counts_of,
    n_samples=Integer(0, CORPUS_SAMPLE),
    n_features=Integer("n_features", "n_features"),
    data=Array((None,), "dtype"),
    indices=Field(),
    indptr=Field(),
)
#: Results that `fit` computes at its end, or None.  `partial_fit` removes them.
RESULTS = Schema(
    bound=Optional(Number(finite=False)),
    validation_score=Optional(Number(finite=False)),
    init_scores=Optional(Array((None,), finite=False)),
    support=Optional(Array(("n_topics",))),
    document_temperatures=Optional(Array((None,), finite=False)),
    #: Some training documents, over which log C per word is averaged; None after topics change.
    sample=Optional(COUNTS),
)
STATE = Schema(
    shown=Text("float32", "float64"),
    planned_for=Parameter(),
    settings=Optional(Parameter()),
    n_passes=Integer(),
    results=RESULTS,
    reassigned=Flag(),
)
PARTS = Schema(model=Tree(), temperature=Tree(), monitor=Tree())


def no_results() -> dict[str, Any]:
    """Return None for each result of `fit`."""
    return dict.fromkeys(RESULTS.fields)


@dataclass
class LDAState:
    """The state of a fit of TemperedLDA, at any step: data, which engines read and change."""

    model: LDA
    #: The dtype in which the user gets topics.
    shown: np.dtype
    #: The planned temperature, with its learned values.
    temperature: Temperature = field(default_factory=Fixed)
    #: A copy of the user's temperature from before it was planned, or None.
    planned_for: Temperature | None = None
    monitor: Monitor = field(default_factory=Monitor)
    #: The parameters of the fit, with values for None and "auto".
    settings: dict[str, Any] | None = None
    #: Number of passes of `fit`, without the last pass if it met the stopping test.
    n_passes: int = 0
    results: dict[str, Any] = field(default_factory=no_results)
    #: Whether priors were assigned that the temperature has not been updated for.
    reassigned: bool = False
    #: The settings of the last call of `partial_fit`.
    streamed_with: Settings | None = None
    #: The process in which steps are being made.
    process: int | None = None

    def __copy__(self) -> Self:
        """Return a copy that can be fitted further without changing this state."""
        # the temperature has a reference to the model, which deepcopy replaces by the copy
        model = deepcopy(self.model)
        return replace(
            self,
            model=model,
            temperature=deepcopy(self.temperature, {id(self.model): model}),
            monitor=self.monitor.copy(),
            results=self.results.copy(),
            streamed_with=None,
            process=None,
        )

    # ------------------------------------------------------------------ beginning

    @classmethod
    def begin(
        cls,
        shape: tuple[int, int],
        dtype: np.dtype,
        settings: Settings,
        rng: RandomState | None,
        result_dtype: np.dtype,
        X: csr_matrix | None = None,
    ) -> Self:
        """Return a state before its first step, with initial topics for X.

        `shape` is (n_topics, n_features), and `result_dtype` that of topics for the user.
        """
        n_topics, n_features = shape
        init = settings.init
        alpha, eta = check_priors(settings.doc_topic_prior, settings.topic_word_prior, shape, dtype)
        model = LDA(
            n_topics,
            n_features,
            alpha=read_only(alpha),
            eta=read_only(eta),
            dtype=dtype,
            estimate=settings.estimate,
        )
        model.rng = rng
        if X is None or not isinstance(init, str):  # `init` is an array of topics
            model.assign(check_topics(init, "init", shape, dtype))
        elif init == "documents" and X.shape[0] < n_topics:
            raise ValueError(
                f"n_components={n_topics} must be at most n_samples={X.shape[0]} with "
                "init='documents'."
            )
        else:
            assert rng is not None
            model.initialize(rng, X, init)
        state = cls(model, result_dtype)
        if X is not None:
            state.settings = settings.parameters() | {"dtype": dtype.name}
        state.resume(settings)
        return state

    def moved_to(self, components: NDArray, settings: Settings) -> Self:
        """Return the same fit with other topics, in a new model; the old model is not changed."""
        before = self.model
        start = settings._replace(init=components)
        fresh = self.begin(components.shape, before.dtype, start, before.rng, self.shown)
        if fresh.model.n_topics == before.n_topics:  # otherwise arrays of priors do not fit
            fresh.set_priors(before.alpha, before.eta)
        results = self.results | {"sample": None, "support": None}
        state = replace(self, model=fresh.model, results=results)
        state.temperature.attach(state.model)
        state.resume(settings)
        return state

    def resume(self, settings: Settings) -> None:
        """Use these settings from the next step on."""
        model = self.model
        model.options = settings.local_options()
        model.learned = settings.learned
        if model.estimate != settings.estimate:
            model.estimate = settings.estimate
            model.replaced()  # forgets values that depend on the estimate
        self.attach_again()

    def planned(
        self,
        temperature: Temperature,
        n_steps: int | None,
        steps_per_pass: float,
        corpus: CorpusOfFit,
    ) -> Temperature:
        """Return a temperature that is planned for a fit to the documents of a corpus."""
        model = self.model
        model.n_documents = corpus.n_documents
        model.n_words = corpus.n_words
        model.corpus = corpus
        try:
            return temperature.plan(n_steps, steps_per_pass, model=model)
        finally:
            model.corpus = None  # frees the documents

    @contextmanager
    def training(self, engine: Engine) -> Iterator[None]:
        """Return a context manager for training; on exit it completes lambda and the history."""
        before = self.process
        self.process = os.getpid()
        try:
            yield
        finally:
            self.process = before
            engine.pull(self.model)  # lambda, if only a GPU has the last steps
            self.model.changed()  # drops arrays of the earlier topics
            if self.monitor.temperature_path:
                self.monitor.record()

    # ------------------------------------------------------------ topics and priors

    @property
    def under_way(self) -> bool:
        """Whether steps are being made in this process."""
        return self.process == os.getpid()

    def components(self) -> NDArray:
        """Return lambda, of shape (K, V), read-only, and as a copy while a fit is under way."""

        def topics_of_user() -> NDArray:
            """Return lambda in the dtype for the user, if its numbers are in the dtype's range."""
            array = self.model.components
            dtype = self.shown if _holds(self.shown, array) else array.dtype
            if dtype == array.dtype and not self.under_way:
                return array.view()
            # aligned and padded like lambda
            return padded_rows(array.T, dtype)[:, : self.model.n_topics].T

        return self._once("components", topics_of_user)

    def exp_e_log_topics(self) -> NDArray:
        """Return exp E[log beta], of shape (K, V), read-only."""
        return self._once("exp_e_log", lambda: exp_e_log(self.model).astype(self.shown, copy=False))

    def _once(self, name: str, compute: Callable[[], NDArray]) -> NDArray:
        """Return the result of `compute`, read-only and cached until the topics change."""
        derived = self.model.derived  # replaced when the topics change
        if name not in derived:
            array = compute()
            array.flags.writeable = False
            derived[name] = array
        return derived[name]

    def assign(self, components: NDArray) -> None:
        """Assign topics while a fit is under way."""
        self.model.assign(components)
        # results that belong to the topics of before
        self.results |= {"sample": None, "support": None}

    def add_words(self, n: int) -> None:
        """Add words without counts to the topics, between two calls of `partial_fit`."""
        with unchanged_on_error(self.model):  # a log C(T) of the user may be for fewer words
            self.model.add_words(n)
            self.temperature.attach(self.model)
        self.results = no_results()

    def set_priors(self, doc_topic_prior: Any, topic_word_prior: Any) -> None:
        """Check other priors, and use them from the next step on."""
        model = self.model
        shape = model.n_topics, model.n_features
        alpha, eta = check_priors(doc_topic_prior, topic_word_prior, shape, model.dtype, suffix="_")
        # if they are equal, log C(T) is still correct
        same = np.array_equal(model.alpha, alpha) and np.array_equal(model.eta, eta)
        model.alpha = read_only(alpha)
        model.set_eta(read_only(eta))
        self.reassigned |= not same

    def set_generator(self, rng: Any) -> None:
        """Set the random number generator from a generator, a seed or None."""
        self.model.rng = check_random_state(rng)

    def set_next_step(self, number: Any) -> None:
        """Set the number of the next step, on which the step size depends."""
        if not isinstance(number, Integral) or not 1 <= int(number) <= 2**53:
            raise BadParameter("n_batch_iter_", f"an int in the range [1, {2**53}]", number)
        self.monitor.step = int(number) - 1

    def check_exp_e_log(self, value: Any) -> None:
        """Check a value that code for scikit-learn's LDA assigns to exp_dirichlet_component_."""
        derived = self.exp_e_log_topics()
        value = as_array(value)
        fits = value.dtype.kind in "fiu" and value.shape == derived.shape
        if not fits or not np.allclose(value, derived, rtol=1e-3, atol=1e-6):
            raise BadParameter(
                "exp_dirichlet_component_",
                "exp(E[log beta]), computed from 'components_'",
                value,
                "Assign only 'components_'.",
            )

    def attach_again(self) -> None:
        """Update the temperature after priors were assigned, because log C(T) depends on them."""
        if self.reassigned:
            self.temperature.attach(self.model)
            self.reassigned = False

    # ------------------------------------------------------------------- questions

    def tempering(self, temperature: Any) -> Tempering:
        """Return the tempering for the `temperature` parameter of `transform` or `score`."""
        if isinstance(temperature, str) and temperature == "learned":
            learned = self.temperature.learned()
            if learned is None:
                raise ValueError(
                    "temperature='learned' requires a fit with temperature='variational' or "
                    f"'local'. Got a fit with temperature={self.planned_for!r}."
                )
            return learned
        number = isinstance(temperature, Real) and not isinstance(temperature, bool)
        if number and 1 <= as_float(temperature) < np.inf:
            return Tempering(1.0 / float(temperature))
        raise BadParameter(
            "temperature", "a float in the range [1.0, inf) or 'learned'", temperature
        )

    def elbo(
        self,
        engine: Engine,
        X: Any,
        tempering: Tempering = UNTEMPERED,
        *,
        gamma: NDArray | None = None,
        out: NDArray | None = None,
        population: float | None = None,
        topics: bool = True,
    ) -> float:
        """Return the ELBO at T = 1, in nats, of documents and (if `topics` is true) of the topics.

        If `population` is set, the ELBO of X is scaled to a corpus of that number of documents.
        If `gamma` is None, it is inferred at the T of `tempering` and written to `out`.
        """
        if gamma is None:
            elbo = engine.document_bound(self.model, X, tempering, gamma=out)
        else:
            elbo = float(np.sum(engine.bound(self.model, X, gamma)))
        if population is not None:
            elbo *= population / X.shape[0]
        return elbo + self.model.bound() if topics else elbo

    def perplexity(self, engine: Engine, X: Any, **options: Any) -> float:
        """Return exp(-ELBO per word) at T = 1; the options are those of :meth:`elbo`."""
        return perplexity_of(self.elbo(engine, X, **options), X, options.get("population"))

    def document_temperatures(
        self, engine: Engine, X: Any, gamma: NDArray | None = None
    ) -> NDArray[np.float64]:
        """See :meth:`annealvi.TemperedLDA.document_temperatures`."""
        model = self.model
        sample = self.results["sample"]
        if sample is None:
            sample = some_documents(X)
        gamma_of_sample = engine.infer(model, sample)
        log_c = engine.posterior_log_partition(model, SCORE_GRID, sample, gamma_of_sample)
        # 1 if the sample contains no words
        log_c_of_word = log_c / (sample.sum(dtype=float) or 1.0)
        temperatures = np.empty(X.shape[0])
        for rows in gen_batches(X.shape[0], SCORE_BLOCK):
            documents = X[rows]
            fitted = engine.infer(model, documents) if gamma is None else gamma[rows]
            energy = engine.energies(model, documents, fitted)
            n_words = summed(documents, axis=1, dtype=np.float64)
            scores = energy[:, None] * SCORE_GRID - n_words[:, None] * log_c_of_word
            # not a matrix product: its rounding errors depend on the number of documents
            mean = np.sum(special.softmax(scores) * SCORE_GRID, axis=1)
            temperatures[rows] = np.where(n_words > 0, 1.0 / mean, np.nan)
        return temperatures

    # ----------------------------------------------------------------------- files

    def state_dict(self) -> dict[str, Any]:
        """Return everything that the next step depends on as a tree; see :mod:`annealvi.files`."""
        results = self.results.copy()
        sample = results["sample"]
        if sample is not None:  # its arrays are attributes, its shape is added
            n_samples, n_features = sample.shape
            results["sample"] = vars(sample) | {"n_samples": n_samples, "n_features": n_features}
        return {
            "model": self.model.state_dict(),
            "temperature": temperature_tree(self.temperature),
            "monitor": self.monitor.state_dict(),
        } | STATE.dump(vars(self) | {"results": results})

    @classmethod
    def of(cls, tree: Mapping[str, Any], path: str = "") -> Self:
        """Make a state from a tree, which stands at `path` in a file."""
        trees = PARTS.load(tree, path)
        place = f"{path}." if path else ""
        model = LDA.of(trees["model"], f"{place}model")
        values = STATE.load(
            tree,
            path,
            n_topics=model.n_topics,
            n_features=model.n_features,
            dtype=model.dtype,
        )
        values["shown"] = np.dtype(values["shown"])
        state = cls(model, **values)
        if state.planned_for is not None and not hasattr(state.planned_for, "plan"):
            raise damaged(f"{place}planned_for", "a temperature or None", state.planned_for)
        state.temperature = restored_temperature(
            trees["temperature"], f"{place}temperature", model=model
        )
        model.load_partition(trees["model"], f"{place}model")  # only now, with the temperature
        state.monitor.load_state_dict(trees["monitor"], f"{place}monitor")
        return state


def _holds(dtype: np.dtype, array: NDArray) -> bool:
    """Whether a dtype can represent the largest and the smallest number of an array."""
    limits = np.finfo(dtype)
    positive = np.float64(array.min()) >= np.float64(limits.tiny)
    return bool(positive and np.float64(array.max()) <= np.float64(limits.max))


def some_documents(X: Any) -> csr_matrix:
    """Return at most CORPUS_SAMPLE documents at equal distances."""
    return X[:: -(-X.shape[0] // CORPUS_SAMPLE)]  # the step is rounded up


def perplexity_of(elbo: float, X: Any, population: float | None = None) -> float:
    """Return exp(-ELBO per word) for the ELBO, in nats, of documents X.

    `population` is the number of documents of the larger corpus to which the ELBO was scaled.
    The perplexity of documents without words is 1.
    """
    n_words = X.sum(dtype=float)
    if n_words == 0:
        return 1.0
    if population is not None:
        n_words *= population / X.shape[0]
    perplexity = float(special.exp(-elbo / n_words))
    if perplexity == np.inf:
        warn_user(
            "The perplexity of X, exp(-ELBO per word), exceeds the largest float, and is returned "
            f"as infinity. The ELBO is {elbo:.4g} nats for {n_words:.4g} words.",
            RuntimeWarning,
        )
    return perplexity
