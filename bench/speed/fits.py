"""Small fits of every kind, which same_bits.py compares bit for bit.

Each is a function without arguments that returns the attributes of a fit and the results of its
methods.  Together they take ten seconds.  They use only public names, so that they work with other
commits.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

import annealvi
from annealvi import (
    Annealed,
    LocalVariational,
    TemperedFMM,
    TemperedGaussianMixture,
    TemperedLDA,
    Variational,
)
from annealvi.datasets import load_arxiv_abstracts, make_shape_mixture
from annealvi.metrics import (
    document_completion,
    topic_coherence,
    topic_diversity,
    topic_stability,
)
from bench.parameters import estimate

#: Whether a fit can have another dtype than X, which is not possible with older commits.
HAS_DTYPE = "dtype" in TemperedLDA().get_params()

LDA_ATTRIBUTES = (
    "components_ exp_dirichlet_component_ doc_topic_prior_ topic_word_prior_ temperature_ "
    "temperature_path_ temperature_posterior_ temperature_posterior_path_ document_temperatures_ "
    "history_ bound_ validation_score_ init_scores_ n_iter_ n_batch_iter_"
)
MIXTURE_ATTRIBUTES = (
    "components_ component_covariance_ noise_variance_ prior_probability_ weights_ means_ "
    "precisions_ covariances_ weight_concentration_ degrees_of_freedom_ lower_bound_ converged_ "
    "n_iter_ temperature_ temperature_path_ temperature_posterior_ temperature_posterior_path_ "
    "history_"
)
ONLINE: dict[str, Any] = {"learning_method": "online", "batch_size": 64, "max_iter": 3}
BATCH: dict[str, Any] = {"learning_method": "batch", "max_iter": 6}


def portable_fits() -> dict[str, Callable[[], Any]]:
    """The fits whose results are identical on every machine."""
    return lda_fits() | mixture_fits() | proximity_fits()


def corpus(n_samples: int = 300, n_features: int = 400) -> sparse.csr_matrix:
    """The most frequent words of the first bundled abstracts."""
    X = load_arxiv_abstracts().data[:n_samples]
    frequent = np.argsort(-np.asarray(X.sum(axis=0)).ravel(), kind="stable")[:n_features]
    return sparse.csr_matrix(X[:, np.sort(frequent)]).astype(np.float64)


def found(estimator: Any, attributes: str) -> dict[str, Any]:
    """The attributes that a fitted estimator has, of those named in a string."""
    return {n: getattr(estimator, n) for n in attributes.split() if hasattr(estimator, n)}


# ----------------------------------------------------------------------- TemperedLDA


class Stop(Exception):  # noqa: N818
    """Interrupts a fit from its callback."""


def answers_of_lda(lda: Any, X: Any) -> dict[str, Any]:
    """The attributes of a fitted TemperedLDA, and the results of its methods."""
    answers = found(lda, LDA_ATTRIBUTES) | {
        "transform": lda.transform(X[:60]),
        "gamma": lda.transform(X[:60], normalize=False),
        "hot": lda.transform(X[:60], temperature=2.0),
        "score": lda.score(X[:60]),
        "perplexity": lda.perplexity(X[:60]),
        "document_temperatures": lda.document_temperatures(X[:60]),
        "top_words": lda.top_words(5),
    }
    if hasattr(lda, "temperature_posterior_") or hasattr(lda, "document_temperatures_"):
        answers["learned"] = lda.transform(X[:60], temperature="learned")
    return answers


def interrupted_after(steps: int, lda: Any, learn: Callable[[Any], Any], X: Any) -> None:
    """Let an estimator learn from X, and stop it after some steps."""

    def callback(estimator: Any, monitor: Any) -> None:
        nonlocal steps
        steps -= 1
        if steps == 0:
            raise Stop

    lda.set_params(callback=callback)
    try:
        learn(X)
    except Stop:
        lda.set_params(callback=None)


def make_lda(X: Any, n_topics: int = 7, **parameters: Any) -> TemperedLDA:
    """Make an estimator that computes in the dtype of X by default."""
    if HAS_DTYPE:
        parameters = {"dtype": X.dtype.name} | parameters
    return TemperedLDA(n_topics, random_state=3, **parameters)


def fit_lda(X: Any, n_topics: int = 7, **parameters: Any) -> Any:
    return answers_of_lda(make_lda(X, n_topics, **parameters).fit(X), X)


def stream_lda(X: Any, interrupted: bool = False, **parameters: Any) -> Any:
    """A stream in portions of 100; if `interrupted`, the second one is stopped and repeated."""
    lda = make_lda(X, batch_size=50, **({"total_samples": X.shape[0]} | parameters))
    for start in range(0, X.shape[0], 100):
        if interrupted and start == 100:
            interrupted_after(1, lda, lda.partial_fit, X[start : start + 100])
        lda.partial_fit(X[start : start + 100])
    return answers_of_lda(lda, X)


def interrupted_lda(X: Any) -> Any:
    """A fit that is interrupted and then continued as a stream."""
    lda = make_lda(X, **ONLINE)
    interrupted_after(7, lda, lda.fit, X)
    before = lda.transform(X[:50])
    lda.partial_fit(X[:100])
    return before, answers_of_lda(lda, X)


def measured_lda(X: Any) -> Any:
    """The measurements from which the number of topics is chosen."""
    lda = make_lda(X, **ONLINE).fit(X)
    topics = lda.components_
    others = make_lda(X, 5, **ONLINE).fit(X).components_
    return [
        *(topic_coherence(topics, X, measure=measure) for measure in ("npmi", "umass")),
        topic_diversity(topics),
        topic_stability(topics, others),
        document_completion(lda, X, random_state=0),
    ]


def edited_lda(X: Any) -> Any:
    """A fit whose topics and priors are changed between steps."""
    lda = make_lda(X, **ONLINE).fit(X)
    lda.components_ = np.array(lda.components_) + 0.5
    lda.doc_topic_prior_ = 0.2
    lda.topic_word_prior_ = np.linspace(0.1, 0.3, X.shape[1])
    lda.partial_fit(X[:100])
    components = lda.components_.copy()
    components[0] *= 2.0
    lda.components_ = components
    return answers_of_lda(lda, X)


def called_back_lda(X: Any) -> Any:
    """The values that a callback reads during a fit."""
    seen = []

    def callback(estimator: Any, monitor: Any) -> None:
        monitor.record(mean=estimator.transform(X[:5]).max())
        seen.append(estimator.components_.sum())

    lda = make_lda(X, n_init=2, callback=callback, **ONLINE).fit(X)
    return seen, answers_of_lda(lda, X)


def lda_fits() -> dict[str, Callable[[], Any]]:
    """Fits with several starts, threads, modes, streams, temperatures, dtypes and priors."""
    X = corpus()
    single = X.astype(np.float32)
    # fit(X, n_jobs=2) does not fit: it returns the function that does
    fit = partial(partial, fit_lda)
    stream = partial(partial, stream_lda)
    vt = {"temperature": "variational"}
    lvt = {"temperature": "local"}
    posterior = {"temperature": Annealed(2.0, 0.5, form="posterior")}
    learn = {"doc_topic_prior": "learn", "topic_word_prior": "learn"}
    validated = {"validation_fraction": 0.1, "n_init": 2}
    fits = {
        "default": fit(X),
        "default, 2 threads": fit(X, n_jobs=2),
        "default, float32": fit(single),
        "default, dense": fit(X.toarray()),
        "default, 3 starts": fit(X, n_init=3),
        "default, 3 starts, 2 threads": fit(X, n_init=3, n_jobs=2),
        "default, float32, 3 starts, 2 threads": fit(single, n_init=3, n_jobs=2),
        "default, 2 starts, callback": partial(called_back_lda, X),
        "default, 2 threads, 90 topics": fit(X, 90, n_jobs=2),
        "scikit-learn's": fit(X, preset="sklearn"),
        "scikit-learn's, online": fit(X, preset="sklearn", **ONLINE),
        "scikit-learn's, float32": fit(single, preset="sklearn"),
        "batch": fit(X, evaluate_every=1, **BATCH),
        "batch, variational": fit(X, evaluate_every=1, **estimate("variational"), **BATCH),
        "online, T=2, documents": fit(X, temperature=2.0, init="documents", **ONLINE),
        "online, posterior form": fit(X, evaluate_every=1, **posterior, **ONLINE),
        "batch, posterior form": fit(X, **posterior, **BATCH),
        "online, VT": fit(X, evaluate_every=1, **vt, **ONLINE),
        "online, VT, 2 threads": fit(X, n_jobs=2, **vt, **ONLINE),
        "batch, VT": fit(X, evaluate_every=1, **vt, **BATCH),
        "batch, VT as printed": fit(X, temperature=Variational.as_printed(), **BATCH),
        "online, VT, prior": fit(X, temperature=Variational(partition="prior"), **ONLINE),
        "online, VT, 3 starts": fit(X, n_init=3, **vt, **ONLINE),
        "online, LVT": fit(X, evaluate_every=1, **lvt, **ONLINE),
        "online, LVT, 2 threads": fit(X, n_jobs=2, **lvt, **ONLINE),
        "online, LVT, float32": fit(single, **lvt, **ONLINE),
        "batch, LVT": fit(X, **lvt, **BATCH),
        "batch, LVT, undamped": fit(
            X, temperature=LocalVariational(undamped=True, normaliser="corpus"), **BATCH
        ),
        "learned priors": fit(X, max_iter=4, **learn),
        "learned priors, variational": fit(X, **estimate("variational"), **learn),
        "learned priors, batch": fit(X, **learn, **BATCH),
        "asymmetric priors": fit(
            X,
            doc_topic_prior=np.linspace(0.1, 0.4, 7),
            topic_word_prior=np.linspace(0.1, 0.2, X.shape[1]),
        ),
        "validation": fit(X, **validated),
        "validation, 2 threads": fit(X, n_jobs=2, **validated),
        "validation, counts that are not whole": fit(
            sparse.csr_matrix(X.multiply(0.5)), **validated
        ),
        "stream": stream(X),
        "stream, 2 threads": stream(X, n_jobs=2),
        "stream, float32": stream(single),
        "stream, annealed": stream(X, temperature=Annealed("auto", passes=0.5)),
        "stream, VT": stream(X, **vt),
        "stream, LVT": stream(X, **lvt),
        "stream, interrupted": stream(X, interrupted=True),
        "stream, VT, interrupted": stream(X, interrupted=True, **vt),
        "stream, learned priors": stream(X, temperature=1.0, **learn),
        "fit, interrupted and resumed": partial(interrupted_lda, X),
        "edited": partial(edited_lda, X),
        "metrics": partial(measured_lda, X),
    }
    if HAS_DTYPE:
        names = (
            "default",
            "default, 2 threads",
            "validation",
            "online, VT",
            "online, LVT",
            "stream",
        )
        fits |= {f"{name}, dtype left open": partial(fits[name], dtype="auto") for name in names}
    return {f"LDA: {name}": run for name, run in fits.items()}


# -------------------------------------------------------------------------- mixtures


def fit_fmm(X: Any, noise_variance: Any = 0.1, **parameters: Any) -> Any:
    fmm = TemperedFMM(
        5, max_iter=25, random_state=1, noise_variance=noise_variance, **parameters
    ).fit(X)
    observed = np.arange(X.shape[1]) % 2 == 0
    return found(fmm, MIXTURE_ATTRIBUTES) | {
        "transform": fmm.transform(X),
        "score_samples": fmm.score_samples(X),
        "predictive": fmm.predictive_score(X[:20], observed, n_draws=5, per_sample=True),
        "sample": fmm.sample(4),
    }


def interrupted_fmm(X: Any) -> Any:
    def callback(estimator: Any, monitor: Any) -> None:
        if monitor.step == 4:
            raise StopIteration

    fmm = TemperedFMM(5, noise_variance=0.1, random_state=1, n_init=3, callback=callback)
    return found(fmm.fit(X), MIXTURE_ATTRIBUTES)


def fit_gmm(X: Any, **parameters: Any) -> Any:
    gmm = TemperedGaussianMixture(3, max_iter=25, random_state=1, **parameters).fit(X)
    return found(gmm, MIXTURE_ATTRIBUTES) | {
        "predict_proba": gmm.predict_proba(X),
        "score_samples": gmm.score_samples(X),
        "sample": gmm.sample(4),
    }


def fit_mmm(X: Any, **parameters: Any) -> Any:
    mmm = annealvi.TemperedMultinomialMixture(3, random_state=1, **parameters).fit(X)
    return found(mmm, f"{MIXTURE_ATTRIBUTES} {LDA_ATTRIBUTES}") | {
        "predict_proba": mmm.predict_proba(X),
        "score_samples": mmm.score_samples(X),
    }


def mixture_fits() -> dict[str, Callable[[], Any]]:
    """Fits of factorial, Gaussian and multinomial mixtures."""
    shapes = make_shape_mixture(150, random_state=0).data
    rng = np.random.RandomState(0)
    points = np.concatenate([rng.randn(60, 3) - 2, rng.randn(80, 3) + 2])
    fmm = partial(partial, fit_fmm, shapes)
    gmm = partial(partial, fit_gmm, points)
    fits: dict[str, Callable[[], Any]] = {}
    if hasattr(annealvi, "TemperedMultinomialMixture"):
        mmm = partial(partial, fit_mmm, corpus(150, 200))
        fits |= {"MMM: default": mmm(), "MMM: VT": mmm(temperature="variational", init="kmeans++")}
    return fits | {
        "FMM: default": fmm(),
        "FMM: 2 threads": fmm(n_jobs=2),
        "FMM: 3 starts": fmm(n_init=3),
        "FMM: 3 starts, 2 threads": fmm(n_init=3, n_jobs=2),
        "FMM: T=1, 3 starts": fmm(n_init=3, temperature=1),
        "FMM: T=1, 3 starts, 2 threads": fmm(n_init=3, temperature=1, n_jobs=2),
        "FMM: float32": partial(fit_fmm, shapes.astype(np.float32)),
        "FMM: VT": fmm(temperature="variational"),
        "FMM: proximity": fmm(temperature="proximity", n_init=2),
        "FMM: learned noise and probability": fmm(
            noise_variance="learn", prior_probability="learn"
        ),
        "FMM: k-means++, diagonal": fmm(init="kmeans++", covariance="diag"),
        "FMM: ended by a callback": partial(interrupted_fmm, shapes),
        "GMM: default": gmm(),
        "GMM: 3 starts": gmm(n_init=3),
        "GMM: T=1, 3 starts": gmm(n_init=3, temperature=1, init_params="random"),
        "GMM: spherical": gmm(covariance_type="spherical"),
        "GMM: VT": gmm(temperature="variational", covariances=1.0, n_init=2),
    }


# ----------------------------------------------------------- proximity, log C(T), deep


def ascend() -> Any:
    """Make gradient steps with a proximity penalty."""
    from annealvi.proximity import BernoulliFactorModel, ProximityAscent

    rng = np.random.RandomState(0)
    X = rng.standard_normal((30, 1)) + 5.0
    model = BernoulliFactorModel(X)
    starts = rng.standard_normal((4, 2, 1))
    result = ProximityAscent(n_steps=200).ascend(model, starts)
    return {"means": result.means, "elbo": result.elbo}


def estimate_partition(method: str) -> Any:
    """Estimate log C(T) of a small LDA."""
    from annealvi.models.lda_prior import LDAPrior
    from annealvi.partition import log_partition

    prior = LDAPrior(3, 20, [8, 12], doc_topic_prior=0.3, topic_word_prior=0.2)
    grid = np.array([1.0, 2.0, 4.0, 8.0])  # whose inverses have no rounding errors
    if "temperatures" not in inspect.signature(log_partition).parameters:
        grid = 1 / grid  # an older commit takes inverse temperatures
    result = log_partition(prior, grid, method, n_samples=10, n_theta=10, random_state=0, n_jobs=2)
    return {"values": result.values, "error": result.standard_error}


def proximity_fits() -> dict[str, Callable[[], Any]]:
    """Fits by gradients with a proximity penalty, and estimates of log C(T)."""
    fits: dict[str, Callable[[], Any]] = {"proximity: ascent": ascend}
    methods = ("monte-carlo", "jensen", "map")
    return fits | {f"log C(T): {name}": partial(estimate_partition, name) for name in methods}


def fit_deep(make: Callable[[], Any], X: Any, *answers: str) -> Any:
    data = [] if X is None else [X]
    estimator = make().fit(*data)
    weights = [p.detach().numpy() for p in estimator.network_.parameters()]
    said = {name: getattr(estimator, name)(*data) for name in answers}
    return weights, estimator.history_, estimator.temperature_path_, said


def deep_fits() -> dict[str, Callable[[], Any]]:
    """Fits of the estimators of annealvi.deep, or none if PyTorch is not installed."""
    try:
        import torch
    except ImportError:
        return {}
    from annealvi.deep import (
        HierarchicalPosterior,
        PoissonDEF,
        SigmoidBeliefNetwork,
        VariationalAutoencoder,
    )
    from annealvi.deep.energies import ENERGIES

    torch.set_num_threads(1)
    rng = np.random.RandomState(0)
    binary = (rng.random_sample((64, 12)) < 0.4).astype(np.float32)
    small: dict[str, Any] = {"random_state": 0, "max_iter": 30}
    posterior = partial(HierarchicalPosterior, ENERGIES["d"], dim=2, **small)
    autoencoder = partial(VariationalAutoencoder, temperature="annealed", **small)
    network = partial(SigmoidBeliefNetwork, proximity="entropy", **small)
    poisson = partial(PoissonDEF, 4, **small)
    return {
        "deep: posterior": partial(fit_deep, posterior, None, "score"),
        "deep: autoencoder": partial(fit_deep, autoencoder, binary, "transform"),
        "deep: belief network": partial(fit_deep, network, binary, "score"),
        "deep: Poisson": partial(fit_deep, poisson, corpus(64, 40), "transform"),
    }
