"""The LdaModel of gensim."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from gensim.models import LdaModel

from bench.adapters import Fit


def start(problem, X, *, seed=0, passes=1, prepared=True, alpha=None, eta=None):
    """Calls of `update` with `passes` passes each; `alpha` and `eta` replace those of `problem`."""
    # Each call counts its documents as new documents, so that the corpus seems larger.  Several
    # passes must therefore be made in one call.
    documents = [
        list(zip(X.indices[a:b].tolist(), X.data[a:b].tolist(), strict=True))
        for a, b in pairwise(X.indptr)
    ]
    model = LdaModel(
        id2word={word: str(word) for word in range(X.shape[1])},
        num_topics=problem.n_topics,
        alpha=problem.doc_topic_prior if alpha is None else alpha,
        eta=problem.topic_word_prior if eta is None else eta,
        chunksize=problem.batch_size,
        passes=passes,
        update_every=1,
        decay=0.7,
        offset=10,
        iterations=100,
        gamma_threshold=1e-3,
        eval_every=None,
        random_state=seed,
        dtype=np.float32,
    )
    if prepared:
        model.update(documents[: problem.batch_size], passes=1)
    return Fit(lambda: model.update(documents), model.get_topics, passes)
