"""Fits of each kind, to be stopped and resumed, or saved and loaded."""

import warnings

import numpy as np

from annealvi import Annealed, LocalVariational, TemperedLDA, Variational
from annealvi.datasets import make_topic_corpus
from bench.speed.same_bits import digest

LEARN = {"doc_topic_prior": "learn", "topic_word_prior": "learn"}
#: Parameters by name.  Together they use everything that a checkpoint holds.
KINDS = {
    "default": {},
    "batch": {"learning_method": "batch"},
    "variational": {"temperature": "variational"},
    "over the prior": {"temperature": Variational(partition="prior"), "doc_topic_prior": "learn"},
    "local": {"temperature": "local"},
    "local, corpus": {"temperature": LocalVariational(normaliser="corpus"), "n_init": 2},
    "local, batch": {"temperature": "local", "learning_method": "batch"},
    "posterior form": {"temperature": Annealed(2.0, form="posterior"), "learning_offset": 30.0},
    "scikit-learn": {"preset": "sklearn", "learning_method": "online"},
    "mean field": {"preset": "sklearn", "learning_method": "batch", "temperature": "annealed"},
    "starts": {"n_init": 3, "preset": "sklearn", "learning_method": "online"},
    "merged": {"n_init": 3, "max_iter": 2},
    "merged, batch": {"n_init": 2, "learning_method": "batch", "validation_fraction": 0.2},
    "learned priors": LEARN | {"temperature": "annealed"},
    "learned priors, batch": LEARN | {"learning_method": "batch", "estimate": "variational"},
    "validation": {"validation_fraction": 0.2, "n_init": 2, "temperature": "annealed"},
    "evaluated": {"learning_method": "batch", "evaluate_every": 1, "temperature": "variational"},
    "finish": {"n_init": 1, "batch_size": 30, "evaluate_every": 1},
    "stops early": {"validation_fraction": 0.2, "temperature": 1, "max_iter": 30},
    "converges": {"evaluate_every": 2, "temperature": 1, "max_iter": 30, "perp_tol": 0.5},
    "priors by word": {
        "topic_word_prior": np.linspace(0.1, 0.3, 60),
        "doc_topic_prior": [0.1, 0.2, 0.3, 0.4],
        "init": "random",
    },
    "all of it": {
        "temperature": "local",
        "validation_fraction": 0.2,
        "doc_topic_prior": "learn",
        "n_init": 2,
        "evaluate_every": 1,
    },
}
ATTRIBUTES = (
    *("components_", "bound_", "validation_score_", "init_scores_", "topic_support_"),
    *("n_iter_", "n_batch_iter_"),
    *("doc_topic_prior_", "topic_word_prior_", "temperature_path_", "history_"),
    *("temperature_posterior_", "temperature_posterior_path_", "document_temperatures_"),
)


def corpus(dtype=np.float64):
    return make_topic_corpus(80, 60, 4, document_length=40, random_state=0).data.astype(dtype)


def make(kind="default", **parameters):
    settings = {"n_components": 4, "random_state": 0, "batch_size": 16, "max_iter": 4, "n_init": 1}
    return TemperedLDA(**settings | {"total_samples": 200} | KINDS[kind] | parameters)


def quietly(method, *args, **options):
    """Call a method of an estimator without its warnings, such as that of a short fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return method(*args, **options)


def bits(lda, X):
    """SHA-256 of what a fit has found and of what it answers."""
    found = {name: getattr(lda, name) for name in ATTRIBUTES if hasattr(lda, name)}
    found["transform"], found["score"] = lda.transform(X[:20]), lda.score(X[:20])
    found["perplexity"], found["settings"] = lda.perplexity(X[:20]), repr(lda.settings_)
    found["document temperatures"] = lda.document_temperatures(X[:20])
    generator = lda.random_state_.get_state(legacy=False)
    found["generator"] = [generator["state"]["key"], generator["state"]["pos"]]
    return digest(found)


class Snapshots:
    """A callback that keeps a checkpoint after some of the steps."""

    def __init__(self, folder, every=1):
        self.folder, self.every, self.n_steps = folder, every, 0
        self.paths = []

    def __call__(self, estimator, monitor):
        self.n_steps += 1
        if self.n_steps % self.every == 0:
            self.paths.append(self.folder / f"{self.n_steps}.safetensors")
            estimator.save_state(self.paths[-1])
