"""A fitted factorial mixture in a file, with the settings that its constructor takes."""

from __future__ import annotations

from typing import Any

import numpy as np

from annealvi.files import Node
from annealvi.models.fmm.model import FMM


def model_tree(model: FMM) -> dict[str, Any]:
    """A model as a tree, from which :func:`restored_model` can make it without data."""
    settings = {
        "component_variance": model.component_variance,
        "covariance": model.covariance,
        "learn_probability": model.learn_probability,
        "learn_noise": model.learn_noise,
        "dtype": model.dtype.name,
        "n_samples": model.n_samples,
    }
    return {"settings": settings, "learned": model.state_dict()}


def restored_model(node: Node) -> FMM:
    """The model of a file, as it was after :meth:`FMM.release_buffers`."""
    settings, learned = node.node("settings"), node.node("learned")
    dtype = settings.string("dtype", ["float32", "float64"])
    means = learned.array("means", (None, None), np.float64)
    if not means.size:
        raise learned.error("means", "an array that is not empty", means)
    K, D = means.shape
    learned.array("covariance", (K, K), np.float64)  # before a model of that size is made
    model = FMM(
        *(K, D),
        component_variance=settings.number("component_variance", float(np.finfo(dtype).tiny)),
        covariance=settings.string("covariance", ["diag", "full"]),  # type: ignore[arg-type]
        learn_probability=settings.boolean("learn_probability"),
        learn_noise=settings.boolean("learn_noise"),
        dtype=dtype,
        n_samples=settings.integer("n_samples", 1),
    )
    model.load_state_dict(learned)
    return model
