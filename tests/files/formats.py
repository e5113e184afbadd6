"""A small file of each kind of estimator, in the format of today; old ones stay and are read.

    python -m tests.files.formats

writes the files that are missing to tests/data/files/format-<FORMAT>/, and never overwrites one.
Beside each file its data and its answers are kept, for tests/test_storage.py.
"""

import sys
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import annealvi
from annealvi import TemperedFMM, TemperedGaussianMixture, TemperedLDA, TemperedMultinomialMixture
from annealvi.files.container import FORMAT
from annealvi.temperature import Proximity
from annealvi.topics import TopicModel, TopicVectorizer
from tests.topics.corpus import make_texts

FOLDER = Path(__file__).resolve().parents[1] / "data" / "files"
TEXTS = np.array(make_texts(24, n_words=6))


def counts():
    return np.random.RandomState(0).poisson(0.6, (20, 30)).astype(float)


def points():
    rng = np.random.RandomState(0)
    return np.repeat([[0.0, 0.0], [4.0, 1.0], [1.0, 5.0]], 10, axis=0) + rng.normal(size=(30, 2))


def lda(**parameters):
    settings = {"n_components": 3, "max_iter": 4, "batch_size": 6, "random_state": 0}
    return TemperedLDA(**settings | {"total_samples": 60} | parameters).fit(counts())


def stream():
    """Between two portions, when the steps of some words are pending."""
    lda = TemperedLDA(3, batch_size=2, total_samples=60, random_state=0)
    return lda.partial_fit(counts()[:4]).partial_fit(counts()[4:6])


def single():
    learned = {"doc_topic_prior": "learn", "topic_word_prior": "learn"}
    settings = {"max_iter": 20, "random_state": np.random.RandomState(5)}
    return TemperedLDA(3, **learned, **settings).fit(counts().astype(np.float32))


def fmm(**parameters):
    return TemperedFMM(2, max_iter=20, tol=0, random_state=0, **parameters).fit(points())


def gmm(**parameters):
    settings = {"max_iter": 20, "tol": 0, "random_state": 0}
    return TemperedGaussianMixture(3, **settings | parameters).fit(points())


def topics(**parameters):
    lda = TemperedLDA(max_iter=4, total_samples=60)
    return TopicModel(3, lda=lda, random_state=0, **parameters).fit(TEXTS)


#: Functions that fit the estimator of each file.
WEIGHTS = [0.3, 0.3, 0.4]
SEEDED = dict(seed_words={"sea": ["Ship", "sail"]}, stop_words=["the"])
SEEDED["vectorizer"] = TopicVectorizer(ngram_range=(1, 2), min_df=1, max_features=30)
ESTIMATORS = {
    "lda": lda,
    "lda-variational": lambda: lda(temperature="variational"),
    "lda-local": lambda: lda(temperature="local", doc_topic_prior=[0.1, 0.2, 0.3]),
    "lda-sklearn": lambda: lda(preset="sklearn", learning_method="online"),
    "lda-validation": lambda: lda(validation_fraction=0.3, n_init=2),
    "lda-float32": single,
    "lda-stream": stream,
    "fmm": fmm,
    "fmm-proximity": lambda: fmm(temperature=Proximity("kl", magnitude=9.0), covariance="full"),
    "gmm": gmm,
    "gmm-variational": lambda: gmm(temperature="variational", weights=WEIGHTS, covariances=1.0),
    "mmm": lambda: TemperedMultinomialMixture(3, tol=0, random_state=0).fit(counts()),
    "topics": topics,
    "topics-classes": topics,
    "topics-seeds": lambda: topics(**SEEDED),
}


def log_density(w):
    """Of a standard normal, for a file that has no function."""
    return -(w**2).sum(dim=-1) / 2


def deep_estimators():
    """The same of estimators on PyTorch."""
    from annealvi.deep import (
        HierarchicalPosterior,
        PoissonDEF,
        SigmoidBeliefNetwork,
        VariationalAutoencoder,
    )

    few = {"max_iter": 3, "batch_size": 5, "random_state": 0}
    X = (counts() > 0).astype(np.float32)
    return {
        "deep-sbn": lambda: SigmoidBeliefNetwork((4, 3), **few).fit(X),
        "deep-poisson": lambda: PoissonDEF(3, **few).fit(counts().astype(np.float32)),
        "deep-vae": lambda: VariationalAutoencoder(3, hidden=(8,), **few).fit(X),
        "deep-posterior": lambda: HierarchicalPosterior(log_density, 2, 2, hidden=4, **few).fit(),
    }


def given(name):
    """Parameters that the file does not have."""
    return {"log_density": log_density} if name == "deep-posterior" else {}


def data(name):
    if name.startswith("topics"):
        return TEXTS
    if name.startswith(("fmm", "gmm", "deep-posterior")):
        return points()
    if name in ("deep-sbn", "deep-vae"):
        return (counts() > 0).astype(np.float32)
    return counts().astype(np.float32 if name.startswith(("deep", "lda-float32")) else float)


def answers(estimator, X):
    """What an estimator says of data; a stream goes on with them at the end."""
    found = {"score": estimator.score(X)}
    for method in ("transform", "predict_proba", "score_samples", "document_temperatures"):
        if hasattr(estimator, method):
            found[method] = getattr(estimator, method)(X)
    if hasattr(estimator, "mixture_"):
        found["predict"] = estimator.predict(X)
    if hasattr(estimator, "partial_fit"):
        estimator.partial_fit(X)
        found["then_components"] = estimator.components_.copy()
        found["then_score"] = estimator.score(X)
    return found


def main():
    folder = FOLDER / f"format-{FORMAT}"
    folder.mkdir(parents=True, exist_ok=True)
    for name, fit in (ESTIMATORS | (deep_estimators() if find_spec("torch") else {})).items():
        path = folder / f"{name}.safetensors"
        if path.exists():
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of fits that are short
            annealvi.save(fit(), path)
            X, loaded = data(name), annealvi.load(path, **given(name))
            np.savez(path.with_suffix(".npz"), X=X, **answers(loaded, X))
        print(f"written: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
