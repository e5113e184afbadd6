"""Topic proportions of documents from topics alone, the same for every library."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from annealvi.checks import check_prior
from annealvi.models.lda import LDA, LocalOptions
from annealvi.models.lda.collapsed import MOST_SWEEPS, TOLERANCE, Method, infer_collapsed


def usual_prior(n_topics: int) -> float:
    """The `doc_topic_prior` that :class:`annealvi.TemperedLDA` has if it is left open."""
    return min(max(0.1, 1.0 / n_topics), 3.0 / n_topics)


def proportions(
    components: NDArray,
    X: sparse.csr_matrix,
    method: Method,
    doc_topic_prior: ArrayLike | None,
    owner: str,
) -> NDArray[np.float64]:
    """Infer E[theta] of documents at given topics, at T = 1 and in double precision."""
    if components.ndim != 2 or components.dtype.kind not in "fiu":
        raise ValueError(
            "The 'components_' of the estimator must be numbers of shape (n_components, "
            f"n_features). Got shape {components.shape} and dtype {components.dtype}."
        )
    n_topics, n_features = components.shape
    if n_features != X.shape[1] or components.size == 0:
        raise ValueError(
            f"The 'components_' of the estimator must have one column for each of {X.shape[1]} "
            f"features, and a row. Got shape {components.shape}."
        )
    dtype = np.dtype(np.float64)
    alpha = check_prior(
        doc_topic_prior,
        "doc_topic_prior",
        ((n_topics,),),
        dtype,
        default=usual_prior(n_topics),
        summed=True,
    )
    beta = np.array(components, dtype=dtype)
    if not beta.min() >= 0:
        raise ValueError(
            f"The 'components_' of the estimator must be non-negative. Got {beta[~(beta >= 0)][0]}."
        )
    sums = beta.sum(axis=1, keepdims=True)
    if not np.all((sums > 0) & np.isfinite(sums)):
        raise ValueError(
            "The rows of 'components_' must have positive and finite sums, because they are "
            f"normalised to probabilities. Got a sum of {sums[~((sums > 0) & (sums < np.inf))][0]}."
        )
    beta /= sums
    np.maximum(beta, np.finfo(dtype).tiny, out=beta)  # the model has logarithms of them
    options = LocalOptions(MOST_SWEEPS, token_tolerance=TOLERANCE)
    model = LDA(n_topics, n_features, alpha=alpha, eta=1.0, options=options, topic_estimate="map")
    model.topics.assign(beta)
    documents, words = model.documents, X.astype(dtype)
    gamma = infer_collapsed(documents, words) if method == "cvb0" else documents.infer(words)
    theta: NDArray[np.float64] = gamma / gamma.sum(axis=1, keepdims=True)
    return theta


def check_names(estimator: Any, X: Any) -> None:
    """Raise ValueError if a DataFrame has other columns than the one that was fitted."""
    fitted, given = getattr(estimator, "feature_names_in_", None), getattr(X, "columns", None)
    if fitted is not None and given is not None and list(fitted) != list(given):
        raise ValueError(
            "The feature names should match those that were passed during fit. Got "
            f"{list(given)[:5]} where the fit had {list(fitted)[:5]}."
        )
