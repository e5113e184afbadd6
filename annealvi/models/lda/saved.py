"""LDA as a tree for a file, and back: everything that its next step depends on."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, get_args

import numpy as np

from annealvi.checks import check_priors
from annealvi.files import Node, generator_state, restore_generator
from annealvi.models.lda.model import LDA
from annealvi.models.lda.topics import TopicEstimate
from annealvi.models.lda.workspace import DocumentEstimate, LocalOptions, Start

#: The kernels count iterations in 32 bits.
MOST_ITERATIONS = 2**31 - 1
DTYPES = ("float32", "float64")


def model_tree(model: LDA) -> dict[str, Any]:
    """Return a model as a tree, see :mod:`annealvi.files`.

    Buffers are not in it, nor the documents: gamma of warm starts belongs to a run.
    """
    topics, partition = model.topics, model.partition
    return {
        "n_topics": model.n_topics,
        "dtype": str(model.dtype),
        "estimate": topics.estimate,
        "options": asdict(model.documents.options),
        "alpha": np.array(model.alpha),
        "eta": model.eta,
        "topics": topics.state_dict(),
        "generator": generator_state(model.rng),
        "n_documents": _number(model.n_documents),
        "n_words": _number(model.n_words),
        "partition": None if partition is None else partition.state_dict(topics),
    }


def model_of(node: Node) -> LDA:
    """Return the model of a tree, without log C(T), which :func:`load_partition` takes over."""
    dtype = node.string("dtype", DTYPES)
    n_features, width = node.node("topics").array("rows", (None, None), dtype, finite=False).shape
    if not n_features or not width:
        raise node.error("topics.rows", "an array with elements", node.node("topics").plain("rows"))
    n_topics = node.integer("n_topics", 1, width)
    model = LDA(n_topics, n_features, alpha=1.0, eta=1.0, dtype=dtype)
    if model.topics.width != width:
        raise node.error("n_topics", f"a number of topics in rows of {width}", n_topics)
    load_model(model, node)
    return model


def load_model(model: LDA, node: Node) -> None:
    """Take over a tree of a model with the same K and V."""
    node.integer("n_topics", model.n_topics, model.n_topics)
    node.string("dtype", (str(model.dtype),))
    shape = model.n_topics, model.n_features
    check_priors(node.plain("alpha"), node.plain("eta"), shape, model.dtype)
    alpha = node.array("alpha", (model.n_topics,), np.float64)
    model.set_priors(alpha, node.plain("eta"))
    model.topics.estimate = node.string("estimate", get_args(TopicEstimate))  # type: ignore[assignment]
    model.topics.load_state_dict(node.node("topics"))
    model.documents.options = _options(node.node("options"))
    model.n_documents, model.n_words = (
        None if node.is_none(name) else node.number(name, 0.0)
        for name in ("n_documents", "n_words")
    )
    saved = None if node.is_none("generator") else restore_generator(node.node("generator"))
    if saved is None or model.rng is None:
        model.rng = saved
    else:
        model.rng.set_state(saved.get_state(legacy=False))


def load_partition(model: LDA, node: Node) -> None:
    """Take over the sums of log C(T), once the temperature is attached to the model."""
    if (model.partition is None) != node.is_none("partition"):
        raise node.error("partition", "there if and only if T needs it", node.plain("partition"))
    if model.partition is not None:
        model.partition.load_state_dict(node.node("partition"), model.topics)


def _options(node: Node) -> LocalOptions:
    open_iter, open_test = node.is_none("inference_iter"), node.is_none("token_tolerance")
    start: Any = node.string("start", get_args(Start))
    estimate: Any = "variational"  # of files before there was another
    if "document_estimate" in node:
        estimate = node.string("document_estimate", get_args(DocumentEstimate))
    sharded = "shard_size" in node and not node.is_none("shard_size")
    return LocalOptions(
        max_iter=node.integer("max_iter", 0, MOST_ITERATIONS),
        tolerance=node.number("tolerance", 0.0),
        start=start,
        token_tolerance=None if open_test else node.number("token_tolerance", 0.0),
        inference_iter=None if open_iter else node.integer("inference_iter", 0, MOST_ITERATIONS),
        prune=node.boolean("prune"),
        document_estimate=estimate,
        over_relaxed="over_relaxed" in node and node.boolean("over_relaxed"),
        shard_size=node.integer("shard_size", 1) if sharded else None,
    )


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
