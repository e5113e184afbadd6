"""What the parameters of TemperedLDA stand for where they are left open."""

from __future__ import annotations

from numbers import Real
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from annealvi.models._lda_blocks import LocalOptions, TopicEstimate
from annealvi.temperature import Annealed, Fixed

Preset = Literal["annealvi", "sklearn"]


class Settings(NamedTuple):
    """Parameters of TemperedLDA of the same names, none of them open."""

    doc_topic_prior: ArrayLike
    topic_word_prior: ArrayLike
    learning_method: str
    max_iter: int
    batch_size: int
    max_doc_update_iter: int
    mean_change_tol: float
    token_change_tol: float | None
    temperature: Any
    init: Any
    document_init: str
    topic_estimate: TopicEstimate

    def local_options(self) -> LocalOptions:
        start: Any = self.document_init
        return LocalOptions(
            self.max_doc_update_iter, self.mean_change_tol, start, self.token_change_tol
        )


def scikit_learn(n_topics: int, n_samples: int) -> Settings:
    """The defaults of scikit-learn's LatentDirichletAllocation."""
    return Settings(
        doc_topic_prior=1.0 / n_topics,
        topic_word_prior=1.0 / n_topics,
        learning_method="batch",
        max_iter=10,
        batch_size=128,
        max_doc_update_iter=100,
        mean_change_tol=1e-3,
        token_change_tol=None,
        temperature=Fixed(1.0),
        init="random",
        document_init="random",
        topic_estimate="variational",
    )


def recommended(n_topics: int, n_samples: int) -> Settings:
    """What does well on every corpus tried; docs/defaults.md has the evidence."""
    size = batch_size(n_samples)
    return Settings(
        doc_topic_prior=prior(n_topics),
        topic_word_prior=prior(n_topics),
        learning_method="online" if size < n_samples else "batch",
        max_iter=passes(n_samples),
        batch_size=size,
        max_doc_update_iter=50,
        mean_change_tol=1e-3,
        token_change_tol=0.01,
        temperature=Annealed(length=1.0),
        init="kmeans++",
        document_init="constant",
        topic_estimate="map",
    )


PRESETS = {"annealvi": recommended, "sklearn": scikit_learn}


def prior(n_topics: int) -> float:
    """1/K up to ten topics, 0.1 up to thirty, 3/K beyond."""
    return min(max(0.1, 1.0 / n_topics), 3.0 / n_topics)


def batch_size(n_samples: int) -> int:
    """2.5 sqrt(D), between 100 and 500: small corpora need steps, large ones steady ones."""
    return int(np.clip(round(2.5 * np.sqrt(n_samples)), 100, 500))


def passes(n_samples: int) -> int:
    """400 / sqrt(D), between 2 and 40."""
    return int(np.clip(round(400 / np.sqrt(max(n_samples, 1))), 2, 40))


def settle(parameters: dict[str, Any], n_samples: int) -> Settings:
    """Parameters of TemperedLDA with values for what was left open.

    Parameters
    ----------
    parameters : dict
        Of the estimator.
    n_samples : int
        Documents of the whole corpus.
    """
    preset = PRESETS[parameters["preset"]](parameters["n_components"], n_samples)
    given = {
        name: parameters[name] for name in Settings._fields if not _is_open(parameters[name])
    }
    settings = preset._replace(**given)
    if parameters["preset"] == "annealvi" and "learning_method" not in given:
        method = "online" if settings.batch_size < n_samples else "batch"
        settings = settings._replace(learning_method=method)
    if "mean_change_tol" in given and "token_change_tol" not in given:
        settings = settings._replace(token_change_tol=None)
    if "document_init" not in given and not _is_plain(settings):
        settings = settings._replace(document_init="constant")
    return settings


def _is_plain(settings: Settings) -> bool:
    """Whether it is scikit-learn's fit, whose numbers are wanted then."""
    temperature = settings.temperature
    if isinstance(temperature, Fixed):
        temperature = temperature.value
    return (
        settings.topic_estimate == "variational"
        and isinstance(settings.init, str)
        and settings.init == "random"
        and isinstance(temperature, Real)
        and temperature == 1
    )


def _is_open(value: Any) -> bool:
    return value is None or (isinstance(value, str) and value == "auto")
