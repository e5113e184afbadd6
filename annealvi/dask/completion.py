"""Document completion of a corpus that is in parts on Dask workers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix
from sklearn.utils import check_random_state

from annealvi.checks import checked
from annealvi.dask.sources import as_engine, sources_of
from annealvi.metrics import held_out
from annealvi.models.lda.collapsed import Method
from annealvi.scale.corpus import Partitions, gather
from annealvi.scale.engines import Handle


@checked
def document_completion(
    model: Any,
    X: Any,
    *,
    client: Any = None,
    observed: float = 0.5,
    random_state: Any = 0,
    temperature: float | str | None = None,
    method: Method | None = None,
    doc_topic_prior: ArrayLike | None = None,
) -> float:
    """Compute :func:`annealvi.metrics.document_completion` on Dask workers, for each part of X.

    The observed words are drawn separately in each part of X, with a seed from `random_state`.

    Parameters
    ----------
    model : fitted topic model
        A model of this module, or one that :func:`annealvi.metrics.document_completion` accepts.
    X : dask array, or list of Delayed objects, futures or paths
        Held-out documents.
    client : distributed.Client, engine of annealvi.scale.engines or None, default=None
        The client whose workers are used.  None means the current client.
    observed : float, default=0.5
    random_state : int, RandomState instance or None, default=0
    temperature : float or "learned", default=None
    method : {"variational", "cvb0"}, default=None
    doc_topic_prior : float or array-like of shape (n_components,), default=None
        The same parameters as in :func:`annealvi.metrics.document_completion`.

    Returns
    -------
    float
        The log-likelihood per word of all parts together, in nats; higher is better.

    Raises
    ------
    ValueError
        If no document has two or more words, or if a parameter is not allowed.
    """
    local_model = model.to_local() if hasattr(model, "to_local") else model
    options = dict(temperature=temperature, method=method, doc_topic_prior=doc_topic_prior)
    engine = as_engine(client)
    partitions = Partitions(engine, sources_of(X))
    n_parts = len(partitions.handles)
    seeds = check_random_state(random_state).randint(np.iinfo(np.int32).max, size=n_parts)

    def submit() -> list[Handle]:
        """Start a task for each part of X; called again if workers have died."""
        shared = engine.put(local_model)  # to the workers
        return [
            engine.submit(_completion, shared, handle, observed, int(seed), options, slot=slot)
            for handle, seed, slot in zip(partitions.handles, seeds, partitions.slots, strict=True)
        ]

    total, n_words = np.sum(gather(engine, submit), axis=0)
    return held_out.mean_per_word(total, n_words)


def _completion(
    model: Any, X: csr_matrix, observed: float, seed: int, options: dict[str, Any]
) -> tuple[float, float]:
    """Return the log-likelihood of the hidden words of a part, and the number of these words."""
    # with the same seed as below, so that the same words are hidden
    _, hidden = held_out.split_tokens(X, observed=observed, random_state=seed)
    n_words = float(hidden.sum())
    if not n_words:
        return 0.0, 0.0
    mean_per_word = held_out.document_completion(
        model, X, observed=observed, random_state=seed, **options
    )
    return float(mean_per_word) * n_words, n_words
