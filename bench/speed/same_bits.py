"""Fits of every kind, to the last bit: one commit against another, or against a file.

    python -m bench.speed.same_bits BASE HEAD       build both commits and compare them
    python -m bench.speed.same_bits --write FILE    write the digests of the package imported
    python -m bench.speed.same_bits --against FILE  compare the package imported with them

A digest is the SHA-256 of what a fit has found (topics, components, temperatures, history) and
of what it answers (transform, score).  Digests hold for one machine and one set of libraries:
NumPy and the kernels choose their instructions by processor.  The exit status is 1 where a
digest differs.  Fits of annealvi.deep are left out where PyTorch is not installed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

#: Nor do the seconds of a history repeat.
NOT_REPEATED = {"seconds"}


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Arrays, numbers and strings of a nested value, each with the way to it."""
    if isinstance(value, dict):
        for key in value:
            if key not in NOT_REPEATED:
                yield from leaves(value[key], f"{name}.{key}")
    elif isinstance(value, (list, tuple)):
        for number, part in enumerate(value):
            yield from leaves(part, f"{name}.{number}")
    else:
        yield name, value


def digest(value: Any) -> str:
    """SHA-256 of all numbers in a nested value, their dtypes and shapes."""
    total = hashlib.sha256()
    for name, leaf in leaves(value):
        total.update(name.encode())
        if isinstance(leaf, (np.ndarray, np.generic, float, int)):
            array = np.ascontiguousarray(leaf)
            total.update(f"{array.dtype}{array.shape}".encode())
            total.update(array.tobytes())
        else:
            total.update(repr(leaf).encode())
    return total.hexdigest()


# ------------------------------------------------------------------------ the fits


def corpus(n_samples: int = 300, n_features: int = 400) -> sparse.csr_matrix:
    """The most frequent words of the first bundled abstracts."""
    from annealvi.datasets import load_arxiv_abstracts

    X = load_arxiv_abstracts().data[:n_samples]
    frequent = np.argsort(-np.asarray(X.sum(axis=0)).ravel(), kind="stable")[:n_features]
    return sparse.csr_matrix(X[:, np.sort(frequent)]).astype(np.float64)


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


def found(estimator: Any, attributes: str) -> dict[str, Any]:
    """What a fitted estimator has of some attributes, given in one string."""
    return {n: getattr(estimator, n) for n in attributes.split() if hasattr(estimator, n)}


def answers_of_lda(lda: Any, X: Any) -> dict[str, Any]:
    """All that a fitted TemperedLDA has found and answers."""
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


class Stop(Exception):  # noqa: N818
    """Ends a stream or a fit in a callback."""


def lda_fits() -> dict[str, Callable[[], Any]]:
    """TemperedLDA: starts, threads, batch, online and streams, temperatures, dtypes, priors."""
    from annealvi import Annealed, LocalVariational, TemperedLDA, Variational

    X = corpus()
    online: dict[str, Any] = {"learning_method": "online", "batch_size": 64, "max_iter": 3}
    batch: dict[str, Any] = {"learning_method": "batch", "max_iter": 6}

    def fit(data: Any = X, K: int = 7, **parameters: Any) -> Callable[[], Any]:
        def run() -> Any:
            lda = TemperedLDA(K, random_state=3, **parameters).fit(data)
            return answers_of_lda(lda, data)

        return run

    def stream(data: Any = X, interrupted: bool = False, **parameters: Any) -> Callable[[], Any]:
        def run() -> Any:
            parameters.setdefault("total_samples", data.shape[0])
            lda = TemperedLDA(7, random_state=3, batch_size=50, **parameters)
            for start in range(0, data.shape[0], 100):
                if interrupted and start == 100:
                    stop_after(lda, 1)
                    try:
                        lda.partial_fit(data[start : start + 100])
                    except Stop:
                        lda.set_params(callback=None)
                lda.partial_fit(data[start : start + 100])
            return answers_of_lda(lda, data)

        return run

    def stop_after(lda: Any, steps: int) -> None:
        left = [steps]

        def callback(estimator: Any, monitor: Any) -> None:
            left[0] -= 1
            if left[0] == 0:
                raise Stop

        lda.set_params(callback=callback)

    def interrupted_fit() -> Any:
        lda = TemperedLDA(7, random_state=3, **online)
        stop_after(lda, 7)
        try:
            lda.fit(X)
        except Stop:
            lda.set_params(callback=None)
        before = lda.transform(X[:50])
        lda.partial_fit(X[:100])
        return before, answers_of_lda(lda, X)

    def edited() -> Any:
        lda = TemperedLDA(7, random_state=3, **online).fit(X)
        lda.components_ = np.array(lda.components_) + 0.5
        lda.doc_topic_prior_ = 0.2
        lda.topic_word_prior_ = np.linspace(0.1, 0.3, X.shape[1])
        lda.partial_fit(X[:100])
        lda.components_[0] *= 2.0
        return answers_of_lda(lda, X)

    def called_back() -> Any:
        seen = []

        def callback(estimator: Any, monitor: Any) -> None:
            monitor.record(mean=estimator.transform(X[:5]).max())
            seen.append(estimator.components_.sum())

        lda = TemperedLDA(7, random_state=3, n_init=2, callback=callback, **online).fit(X)
        return seen, answers_of_lda(lda, X)

    single = X.astype(np.float32)
    vt = {"temperature": "variational"}
    lvt = {"temperature": "local"}
    posterior = {"temperature": Annealed(2.0, 0.5, form="posterior")}
    learn = {"doc_topic_prior": "learn", "topic_word_prior": "learn"}
    validated = {"validation_fraction": 0.1, "n_init": 2}
    fractions = sparse.csr_matrix(X.multiply(0.5))
    fits = {
        "default": fit(),
        "default, 2 threads": fit(n_jobs=2),
        "default, float32": fit(single),
        "default, dense": fit(X.toarray()),
        "default, 3 starts": fit(n_init=3),
        "default, 3 starts, 2 threads": fit(n_init=3, n_jobs=2),
        "default, float32, 3 starts, 2 threads": fit(single, n_init=3, n_jobs=2),
        "default, 2 starts, callback": called_back,
        "default, 2 threads, 90 topics": fit(K=90, n_jobs=2),
        "scikit-learn's": fit(preset="sklearn"),
        "scikit-learn's, online": fit(preset="sklearn", **online),
        "scikit-learn's, float32": fit(single, preset="sklearn"),
        "batch, warm": fit(document_init="warm", evaluate_every=1, **batch),
        "batch, warm, variational": fit(
            document_init="warm", topic_estimate="variational", evaluate_every=1, **batch
        ),
        "online, T=2, documents": fit(temperature=2.0, init="documents", **online),
        "online, posterior form": fit(evaluate_every=1, **posterior, **online),
        "batch, posterior form": fit(**posterior, **batch),
        "online, VT": fit(evaluate_every=1, **vt, **online),
        "online, VT, 2 threads": fit(n_jobs=2, **vt, **online),
        "batch, VT": fit(evaluate_every=1, **vt, **batch),
        "batch, VT as printed": fit(temperature=Variational.as_printed(), **batch),
        "online, VT, prior": fit(temperature=Variational(partition="prior"), **online),
        "online, VT, 3 starts": fit(n_init=3, **vt, **online),
        "online, LVT": fit(evaluate_every=1, **lvt, **online),
        "online, LVT, 2 threads": fit(n_jobs=2, **lvt, **online),
        "online, LVT, float32": fit(single, **lvt, **online),
        "batch, LVT": fit(**lvt, **batch),
        "batch, LVT, undamped": fit(
            temperature=LocalVariational(undamped=True, normaliser="corpus"), **batch
        ),
        "learned priors": fit(max_iter=4, **learn),
        "learned priors, variational": fit(topic_estimate="variational", **learn),
        "learned priors, warm": fit(document_init="warm", **learn, **batch),
        "asymmetric priors": fit(
            doc_topic_prior=np.linspace(0.1, 0.4, 7),
            topic_word_prior=np.linspace(0.1, 0.2, X.shape[1]),
        ),
        "validation": fit(**validated),
        "validation, 2 threads": fit(n_jobs=2, **validated),
        "validation, counts that are not whole": fit(fractions, **validated),
        "stream": stream(),
        "stream, 2 threads": stream(n_jobs=2),
        "stream, float32": stream(single),
        "stream, annealed": stream(temperature=Annealed("auto", passes=0.5)),
        "stream, VT": stream(**vt),
        "stream, LVT": stream(**lvt),
        "stream, interrupted": stream(interrupted=True),
        "stream, VT, interrupted": stream(interrupted=True, **vt),
        "stream, learned priors": stream(temperature=1.0, **learn),
        "fit, interrupted and resumed": interrupted_fit,
        "edited": edited,
    }
    return {f"LDA: {name}": fit for name, fit in fits.items()}


def mixture_fits() -> dict[str, Callable[[], Any]]:
    """TemperedFMM and TemperedGaussianMixture."""
    from annealvi import TemperedFMM, TemperedGaussianMixture
    from annealvi.datasets import make_shape_mixture

    shapes = make_shape_mixture(150, random_state=0).data
    rng = np.random.RandomState(0)
    points = np.concatenate([rng.randn(60, 3) - 2, rng.randn(80, 3) + 2])

    def fmm(X: Any = shapes, **parameters: Any) -> Callable[[], Any]:
        def run() -> Any:
            parameters.setdefault("noise_variance", 0.1)
            fitted = TemperedFMM(5, max_iter=25, random_state=1, **parameters).fit(X)
            seen = np.arange(X.shape[1]) % 2 == 0
            return found(fitted, MIXTURE_ATTRIBUTES) | {
                "transform": fitted.transform(X),
                "score_samples": fitted.score_samples(X),
                "predictive": fitted.predictive_score(X[:20], seen, n_draws=5, per_sample=True),
                "sample": fitted.sample(4),
            }

        return run

    def gmm(**parameters: Any) -> Callable[[], Any]:
        def run() -> Any:
            fitted = TemperedGaussianMixture(3, max_iter=25, random_state=1, **parameters)
            fitted.fit(points)
            return found(fitted, MIXTURE_ATTRIBUTES) | {
                "predict_proba": fitted.predict_proba(points),
                "score_samples": fitted.score_samples(points),
                "sample": fitted.sample(4),
            }

        return run

    def interrupted() -> Any:
        def callback(estimator: Any, monitor: Any) -> None:
            if monitor.step == 4:
                raise StopIteration

        fitted = TemperedFMM(5, noise_variance=0.1, random_state=1, n_init=3, callback=callback)
        return found(fitted.fit(shapes), MIXTURE_ATTRIBUTES)

    single = shapes.astype(np.float32)
    return {
        "FMM: default": fmm(),
        "FMM: 2 threads": fmm(n_jobs=2),
        "FMM: 3 starts": fmm(n_init=3),
        "FMM: 3 starts, 2 threads": fmm(n_init=3, n_jobs=2),
        "FMM: T=1, 3 starts": fmm(n_init=3, temperature=1),
        "FMM: T=1, 3 starts, 2 threads": fmm(n_init=3, temperature=1, n_jobs=2),
        "FMM: float32": fmm(single),
        "FMM: VT": fmm(temperature="variational"),
        "FMM: proximity": fmm(temperature="proximity", n_init=2),
        "FMM: learned noise and probability": fmm(
            noise_variance="learn", prior_probability="learn"
        ),
        "FMM: k-means++, diagonal": fmm(init="kmeans++", covariance="diag"),
        "FMM: ended by a callback": interrupted,
        "GMM: default": gmm(),
        "GMM: 3 starts": gmm(n_init=3),
        "GMM: T=1, 3 starts": gmm(n_init=3, temperature=1, init_params="random"),
        "GMM: spherical": gmm(covariance_type="spherical"),
        "GMM: VT": gmm(temperature="variational", covariances=1.0, n_init=2),
    }


def proximity_fits() -> dict[str, Callable[[], Any]]:
    """Gradients with a proximity penalty, and log C(T)."""
    from annealvi.models.lda_prior import LDAPrior
    from annealvi.partition import exponential_grid, log_partition
    from annealvi.proximity import BernoulliFactorModel, ProximityAscent

    def ascent() -> Any:
        rng = np.random.RandomState(0)
        X = rng.standard_normal((30, 1)) + 5.0
        model, starts = BernoulliFactorModel(X), rng.standard_normal((4, 2, 1))
        result = ProximityAscent(n_steps=200).ascend(model, starts)
        return {"means": result.means, "elbo": result.elbo}

    def partition(method: str) -> Callable[[], Any]:
        def run() -> Any:
            prior = LDAPrior(3, 20, [8, 12], doc_topic_prior=0.3, topic_word_prior=0.2)
            inverse = exponential_grid(5, 6)
            result = log_partition(
                prior, inverse, method, n_samples=10, n_theta=10, random_state=0, n_jobs=2
            )
            return {"values": result.values, "error": result.standard_error}

        return run

    fits = {"proximity: ascent": ascent}
    return fits | {f"log C(T): {m}": partition(m) for m in ("monte-carlo", "jensen", "map")}


def deep_fits() -> dict[str, Callable[[], Any]]:
    """The estimators of annealvi.deep, where PyTorch is there."""
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

    def fitted(make: Callable[[], Any], X: Any, *answers: str) -> Callable[[], Any]:
        def run() -> Any:
            estimator = make()
            estimator = estimator.fit() if X is None else estimator.fit(X)
            weights = [p.detach().numpy() for p in estimator.network_.parameters()]
            given = [] if X is None else [X]
            said = {name: getattr(estimator, name)(*given) for name in answers}
            return weights, estimator.history_, estimator.temperature_path_, said

        return run

    small: dict[str, Any] = {"random_state": 0, "max_iter": 30}
    return {
        "deep: posterior": fitted(
            lambda: HierarchicalPosterior(ENERGIES["d"], dim=2, **small), None, "score"
        ),
        "deep: autoencoder": fitted(
            lambda: VariationalAutoencoder(temperature="annealed", **small), binary, "transform"
        ),
        "deep: belief network": fitted(
            lambda: SigmoidBeliefNetwork(proximity="entropy", **small), binary, "score"
        ),
        "deep: Poisson": fitted(lambda: PoissonDEF(4, **small), corpus(64, 40), "transform"),
    }


def digests(show: bool = False) -> dict[str, str]:
    """The digest of every fit."""
    table = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for fits in (lda_fits, mixture_fits, proximity_fits, deep_fits):
            for name, fit in fits().items():
                table[name] = digest(fit())
                if show:
                    print(f"{table[name][:16]}  {name}", flush=True)
    return table


# ------------------------------------------------------------------------ comparing


def compare(before: dict[str, str], after: dict[str, str]) -> int:
    """Print which fits differ; the exit status."""
    missing = before.keys() ^ after.keys()
    differing = [name for name in before.keys() & after.keys() if before[name] != after[name]]
    for name in sorted(missing):
        print(f"only on one side: {name}")
    for name in sorted(differing):
        print(f"DIFFERS: {name}")
    same = len(before.keys() & after.keys()) - len(differing)
    print(f"{same} fits are the same to the last bit, {len(differing)} differ")
    return int(bool(differing or not same))


def of_build(site: Path) -> dict[str, str]:
    """The digests of a package that is installed in a folder."""
    code = (
        f"import sys; sys.path[:0] = [{str(site)!r}]\n"
        "sys.meta_path[:] = [f for f in sys.meta_path if 'editable' not in str(f).lower()]\n"
        f"import runpy; sys.argv[1:] = ['--json']\n"
        f"runpy.run_path({str(Path(__file__).resolve())!r}, run_name='__main__')"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=site)
    said = json.loads(done.stdout.splitlines()[-1])
    if not Path(said["package"]).is_relative_to(site):
        raise RuntimeError(f"The build in {site} was to be imported, and {said['package']} was.")
    return said["digests"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("revisions", nargs="*", metavar="BASE HEAD")
    parser.add_argument("--write", metavar="FILE")
    parser.add_argument("--against", metavar="FILE")
    parser.add_argument("--json", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.json:
        import annealvi

        print(json.dumps({"package": annealvi.__file__, "digests": digests()}))
        return 0
    if options.write:
        Path(options.write).write_text(json.dumps(digests(show=True), indent=1) + "\n")
        return 0
    if options.against:
        return compare(json.loads(Path(options.against).read_text()), digests())
    if len(options.revisions) != 2:
        parser.error("give two revisions, --write or --against")
    from bench.speed.compare import install

    with tempfile.TemporaryDirectory() as folder:
        tables = []
        for number, revision in enumerate(options.revisions):
            place = Path(folder, str(number))
            place.mkdir()
            tables.append(of_build(install(revision, place)))
    return compare(*tables)


if __name__ == "__main__":
    sys.exit(main())
