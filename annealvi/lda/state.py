"""The state of a fit of TemperedLDA: what it has learned, and methods that apply it to documents.

The estimator has the parameters, and its state has the model, the temperature, the history and the
current priors.  A state has no reference to the estimator, and consists of arrays, numbers, strings
and objects made of these.  So a state can be copied, written to a file or sent to another process.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_random_state, gen_batches

from annealvi._kernels import special
from annealvi._kernels.layout import padded_rows
from annealvi.checks import (
    as_array,
    as_float,
    check_prior,
    check_priors,
    check_topics,
    unchanged_on_error,
)
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
from annealvi.matrices import check_csr
from annealvi.metrics.held_out import usual_prior
from annealvi.model import UNTEMPERED, Tempering
from annealvi.models.lda import LDA
from annealvi.models.lda.priors import LearnedPriors
from annealvi.temperature import Fixed, Temperature
from annealvi.temperature.base import restored_temperature, temperature_tree
from annealvi.temperature.local import SCORE_GRID

Prior = float | NDArray[np.float64]
#: The number of documents over which the log partition function per word is averaged.
CORPUS_SAMPLE = 512
#: The number of documents that `document_temperatures` scores at a time.
SCORE_BLOCK = 4096


class PriorField(Field):
    """A prior in the form that the user sees: a number, or an array of one of the `shapes`."""

    def __init__(self, *shapes: str) -> None:
        self.shapes = shapes

    def load(self, value: Any, way: str, sizes: Mapping[str, Any]) -> Prior:
        shapes = tuple(tuple(sizes[side] for side in shape) for shape in self.shapes)
        try:
            return _read_only(check_prior(value, way, shapes, sizes["dtype"], summed=True))
        except BadParameter as error:
            raise damaged(way, error.must_be, value) from error


class _Counts(Field):
    """Some documents, as a CSR matrix."""

    PARTS = Schema(
        n_samples=Integer(0, CORPUS_SAMPLE),
        data=Array((None,), "dtype"),
        indices=Field(),
        indptr=Field(),
    )

    def dump(self, value: sparse.csr_matrix) -> dict[str, Any]:
        arrays = {name: getattr(value, name) for name in ("data", "indices", "indptr")}
        return {"n_samples": value.shape[0]} | arrays

    def load(self, value: Any, way: str, sizes: Mapping[str, Any]) -> sparse.csr_matrix:
        parts = self.PARTS.load(value, way, sizes)
        X = sparse.csr_matrix((parts.pop("n_samples"), sizes["V"]), dtype=sizes["dtype"])
        vars(X).update(parts)
        X = check_csr(X, dtype=sizes["dtype"], name=f"{way} of the file")
        if np.any(X.data < 0):
            raise damaged(f"{way}.data", "counts", X.data)
        return X


#: Results that `fit` computes at its end, or None.  `partial_fit` removes them.
RESULTS = Schema(
    bound=Optional(Number(finite=False)),
    validation_score=Optional(Number(finite=False)),
    init_scores=Optional(Array((None,), finite=False)),
    support=Optional(Array(("K",))),
    document_temperatures=Optional(Array((None,), finite=False)),
    #: Some training documents, over which log C per word is averaged; None after topics change.
    sample=Optional(_Counts()),
)
ALPHA, ETA = PriorField("K"), PriorField("V", "KV")
STATE = Schema(
    alpha=ALPHA,
    eta=ETA,
    shown=Text("float32", "float64"),
    planned_for=Parameter(),
    settings=Optional(Parameter()),
    n_passes=Integer(),
    results=RESULTS,
    reassigned=Flag(),
)
PARTS = Schema(model=Tree(), temperature=Tree(), monitor=Tree())


def no_results() -> dict[str, Any]:
    return dict.fromkeys(RESULTS.fields)


@dataclass
class LDAState:
    """The state of a fit of TemperedLDA, at any step."""

    model: LDA
    #: The priors in the form in which they were passed, a number or an array.
    alpha: Prior
    eta: Prior
    #: The dtype in which topics are shown to the user.
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
    #: Arrays that the user has read, by name, with the topics and the topics' version at that time.
    kept: dict[str, tuple[Any, int, NDArray]] = field(default_factory=dict, repr=False)

    def __copy__(self) -> Self:
        """Return a copy that can be fitted further without changing this state."""
        model = self.model.copy()
        model.rng = copy.deepcopy(model.rng)
        return replace(
            self,
            model=model,
            # the temperature has a reference to the model
            temperature=copy.deepcopy(self.temperature, {id(self.model): model}),
            monitor=self.monitor.copy(),
            results=self.results.copy(),
            streamed_with=None,
            kept={},
        )

    # ------------------------------------------------------------------ beginning

    @classmethod
    def begin(
        cls,
        shape: tuple[int, int],
        dtype: np.dtype,
        settings: Settings,
        rng: RandomState | None,
        n_threads: int,
        shown: np.dtype,
        X: sparse.csr_matrix | None = None,
    ) -> Self:
        """Return a state before its first step, with initial topics for X."""
        (K, V), init = shape, settings.init
        given = settings.doc_topic_prior, settings.topic_word_prior
        alpha, eta = check_priors(*given, shape, dtype)
        model = LDA(K, V, alpha=alpha, eta=eta, dtype=dtype, topic_estimate=settings.estimate)
        model.rng = rng
        if X is None or not isinstance(init, str):
            model.topics.assign(check_topics(init, "init", shape, dtype))
        elif init == "documents" and X.shape[0] < K:
            raise ValueError(
                f"n_components={K} must be at most n_samples={X.shape[0]} with init='documents'."
            )
        else:
            assert rng is not None
            model.initialize(rng, X, init)
        state = cls(model, _read_only(alpha), _read_only(eta), shown)
        if X is not None:
            state.settings = settings.parameters() | {"dtype": dtype.name}
        state.resume(settings, n_threads)
        return state

    def moved_to(self, components: NDArray, settings: Settings, n_threads: int) -> Self:
        """Return the same fit with other topics, in a new model; the old model is not changed."""
        start, dtype = settings._replace(init=components), self.model.dtype
        fresh = self.begin(components.shape, dtype, start, self.model.rng, n_threads, self.shown)
        if fresh.model.n_topics == self.model.n_topics:
            fresh.set_priors(self.doc_topic_prior, self.topic_word_prior)
        results = self.results | {"sample": None, "support": None}
        state = replace(self, model=fresh.model, alpha=fresh.alpha, eta=fresh.eta, results=results)
        state.temperature.attach(state.model)
        state.resume(settings, n_threads)
        return state

    def resume(self, settings: Settings, n_threads: int) -> None:
        model = self.model
        model.documents.options = settings.local_options()
        model.topics.estimate = settings.estimate
        model.topics.n_threads = n_threads
        model.topics.use(settings.device)
        if not settings.learned:
            model.learned_priors = None
        else:
            if model.learned_priors is None:
                model.learned_priors = LearnedPriors(usual_prior(model.n_topics))
            model.learned_priors.alpha = "doc_topic_prior" in settings.learned
            model.learned_priors.eta = "topic_word_prior" in settings.learned
        self.attach_again()

    def use(self, device: str) -> None:
        """Select the processor or a GPU for later computations, unless a fit is under way."""
        topics = self.model.topics
        if (device != "cpu" or topics.on_device is not None) and not self.under_way:
            topics.use(device)

    @contextmanager
    def training(self, *, keep: bool, repeated: bool) -> Iterator[None]:
        """Return a context manager for training; on exit it extends the history and frees buffers.

        If `keep` is true, the buffers are kept for further steps unless there is an error.
        """
        try:
            with self.model.buffers.used(keep=keep, repeated=repeated):
                yield
        finally:
            self.kept.clear()  # these are arrays of the earlier topics
            self.model.forget_documents()
            if self.monitor.temperature_path:
                self.monitor.record()

    # ------------------------------------------------------------ topics and priors

    @property
    def under_way(self) -> bool:
        return self.model.buffers.in_use

    def components(self) -> NDArray:
        """Return lambda, of shape (K, V), read-only, and as a copy while a fit is under way."""

        def shown() -> NDArray:
            array = self.model.topics.components
            dtype = self.shown if _holds(self.shown, array) else array.dtype
            if dtype == array.dtype and not self.under_way:
                return array.view()
            return padded_rows(array.T, dtype)[:, : self.model.n_topics].T

        return self._once("components", shown)

    def exp_e_log_topics(self) -> NDArray:
        return self._once(
            "exp_e_log", lambda: self.model.topics.exp_e_log().astype(self.shown, copy=False)
        )

    def _once(self, name: str, compute: Callable[[], NDArray]) -> NDArray:
        """Return the result of `compute`, read-only and cached until the topics change."""
        topics = self.model.topics
        if self.kept.get(name, ())[:2] != (topics, topics.version):
            array = compute()
            array.flags.writeable = False
            self.kept[name] = topics, topics.version, array
        return self.kept[name][2]

    def assign(self, components: NDArray) -> None:
        """Assign topics while a fit is under way."""
        self.model.topics.assign(components)
        self.results |= {"sample": None, "support": None}

    def add_words(self, n: int) -> None:
        """Add words without counts to the topics, between two calls of `partial_fit`."""
        with unchanged_on_error(self.model.topics):  # a log C(T) of the user may be for fewer words
            self.model.topics.add_words(n)
            self.temperature.attach(self.model)
        if self.model.eta.ndim:
            self.eta = _read_only(self.model.eta.copy())
        self.results = no_results()
        self.kept.clear()

    @property
    def doc_topic_prior(self) -> Prior:
        """alpha in the form that the user sees; a learned alpha is an array."""
        if np.any(self.model.alpha != self.alpha):
            self.alpha = _read_only(np.array(self.model.alpha))
        return self.alpha

    @property
    def topic_word_prior(self) -> Prior:
        if np.any(self.model.eta != self.eta):
            self.eta = float(self.model.eta)  # a learned eta is a number
        return self.eta

    def set_priors(self, doc_topic_prior: Any, topic_word_prior: Any) -> None:
        """Check other priors, and use them from the next step on."""
        model = self.model
        shape = model.n_topics, model.n_features
        before = self.doc_topic_prior, self.topic_word_prior
        priors = check_priors(doc_topic_prior, topic_word_prior, shape, model.dtype, suffix="_")
        model.set_priors(*priors)
        self.alpha, self.eta = map(_read_only, priors)
        self.reassigned |= not all(map(np.array_equal, before, priors))

    def set_generator(self, rng: Any) -> None:
        self.model.rng = check_random_state(rng)

    def set_next_step(self, number: Any) -> None:
        """Set the number of the next step, on which the step size depends."""
        if not isinstance(number, Integral) or not 1 <= int(number) <= 2**53:
            raise BadParameter("n_batch_iter_", f"an int in the range [1, {2**53}]", number)
        self.monitor.step = int(number) - 1

    def check_exp_e_log(self, value: Any) -> None:
        """Check a value that code for scikit-learn's LDA assigns to exp_dirichlet_component_."""
        derived, value = self.exp_e_log_topics(), as_array(value)
        wrong = value.dtype.kind not in "fiu" or value.shape != derived.shape
        if wrong or not np.allclose(value, derived, rtol=1e-3, atol=1e-6):
            wanted = "exp(E[log beta]), computed from 'components_'"
            hint = "Assign only 'components_'."
            raise BadParameter("exp_dirichlet_component_", wanted, value, hint)

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
        wanted = "a float in the range [1.0, inf) or 'learned'"
        raise BadParameter("temperature", wanted, temperature)

    def elbo(
        self,
        X: Any,
        tempering: Tempering = UNTEMPERED,
        *,
        given: NDArray | None = None,
        out: NDArray | None = None,
        population: float | None = None,
        topics: bool = True,
        n_threads: int | None = None,
    ) -> float:
        """Return the ELBO at T = 1, in nats, of documents and (if `topics` is true) of the topics.

        If `population` is set, the ELBO of X is scaled to a corpus of that number of documents.
        `given` is gamma; if None, gamma is inferred at the T of `tempering` and written to `out`.
        """
        if given is None:
            elbo = self.model.document_bound(X, tempering, n_threads=n_threads, gamma=out)
        else:
            elbo = float(np.sum(self.model.documents.bound(X, given, n_threads=n_threads)))
        if population is not None:
            elbo *= population / X.shape[0]
        return elbo + self.model.topics.bound() if topics else elbo

    def perplexity(self, X: Any, **options: Any) -> float:
        """Return exp(-ELBO per word) at T = 1; the options are those of :meth:`elbo`."""
        return perplexity_of(self.elbo(X, **options), X, options.get("population"))

    def document_temperatures(
        self, X: Any, gamma: NDArray | None = None, *, n_threads: int | None = None
    ) -> NDArray[np.float64]:
        """See :meth:`annealvi.TemperedLDA.document_temperatures`."""
        sample, documents = self.results["sample"], self.model.documents
        if sample is None:
            sample = some_documents(X)
        seen = documents.infer(sample, n_threads=n_threads)
        log_c = documents.posterior_log_partition(SCORE_GRID, sample, seen, n_threads=n_threads)
        corpus = log_c / (sample.sum(dtype=np.float64) or 1.0)  # log C per word
        temperatures = np.empty(X.shape[0])
        for rows in gen_batches(X.shape[0], SCORE_BLOCK):
            some = X[rows]
            own = documents.infer(some, n_threads=n_threads) if gamma is None else gamma[rows]
            energy = documents.energies(some, own, n_threads=n_threads)
            n_words = np.asarray(some.sum(axis=1, dtype=np.float64)).ravel()
            scores = energy[:, None] * SCORE_GRID - n_words[:, None] * corpus
            # not a matrix product: its rounding errors depend on the number of documents
            mean = np.sum(special.softmax(scores) * SCORE_GRID, axis=1)
            temperatures[rows] = np.where(n_words > 0, 1.0 / mean, np.nan)
        return temperatures

    # ----------------------------------------------------------------------- files

    def state_dict(self) -> dict[str, Any]:
        """Return everything that the next step depends on as a tree; see :mod:`annealvi.files`."""
        _ = self.doc_topic_prior, self.topic_word_prior  # this updates learned priors
        return {
            "model": self.model.state_dict(),
            "temperature": temperature_tree(self.temperature),
            "monitor": self.monitor.state_dict(),
        } | STATE.dump(self)

    @classmethod
    def of(cls, tree: Mapping[str, Any], way: str = "") -> Self:
        parts = PARTS.load(tree, way)
        place = f"{way}." if way else ""
        model = LDA.of(parts["model"], f"{place}model")
        sizes: dict[str, Any] = {"K": model.n_topics, "V": model.n_features, "dtype": model.dtype}
        values = STATE.load(tree, way, **sizes)
        values["shown"] = np.dtype(values["shown"])
        state = cls(model, **values)
        if state.planned_for is not None and not hasattr(state.planned_for, "plan"):
            raise damaged(f"{place}planned_for", "a temperature or None", state.planned_for)
        state.temperature = restored_temperature(
            parts["temperature"], f"{place}temperature", model=model
        )
        model.load_partition(parts["model"], f"{place}model")  # only now, with the temperature
        state.monitor.load_state_dict(parts["monitor"], f"{place}monitor")
        return state


def _read_only(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    return value


def _holds(dtype: np.dtype, array: NDArray) -> bool:
    """Whether a dtype can represent the largest and the smallest number of an array."""
    limits = np.finfo(dtype)
    least, most = np.float64(array.min()), np.float64(array.max())
    return bool(least >= np.float64(limits.tiny) and most <= np.float64(limits.max))


def some_documents(X: Any) -> sparse.csr_matrix:
    """Return at most CORPUS_SAMPLE documents at equal distances."""
    return X[:: -(-X.shape[0] // CORPUS_SAMPLE)]


def perplexity_of(elbo: float, X: Any, population: float | None = None) -> float:
    """Return exp(-ELBO per word) for the ELBO, in nats, of documents X.

    `population` is the number of documents of the larger corpus to which the ELBO was scaled.
    The perplexity of documents without words is 1.
    """
    n_words = X.sum(dtype=np.float64)
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
