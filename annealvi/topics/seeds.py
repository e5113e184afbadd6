"""Seed words, by which the user describes topics that the model should find.

Seed words have a larger prior in their topic, which is initialised from texts that contain them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.utils import check_random_state

from annealvi.checks import as_array
from annealvi.exceptions import BadParameter, warn_user
from annealvi.lda import TemperedLDA
from annealvi.lda.settings import is_open
from annealvi.matrices import summed
from annealvi.metrics.held_out import usual_prior
from annealvi.models.lda.starts import SEED_DOCUMENTS, SEED_WEIGHT, topics_of_spread_documents
from annealvi.topics.vectorizer import columns_of, is_list
from annealvi.topics.words import check_labels

#: The addition to the prior of a seed word in its topic, for each occurrence in the corpus.
SEED_PRIOR = 0.5
ALLOWED = "a dict of names to lists of words, such as {'space': ['nasa', 'orbit']}, or None"


def check_seeds(seed_words: Any, n_topics: int | None, vectorizer: Any) -> dict[str, list[str]]:
    """Check seed words, and preprocess them as the vectorizer does, for example to lower case.

    `n_topics` is None if the number of topics is not known yet.
    """
    if seed_words is None:
        return {}
    if not isinstance(seed_words, Mapping):
        raise BadParameter("seed_words", ALLOWED, seed_words)
    if n_topics is not None and len(seed_words) > n_topics:
        raise BadParameter(
            "seed_words", (f"a dict of at most n_topics={n_topics} topics"), len(seed_words)
        )
    # a vectorizer of the user may lack this method; str leaves a word unchanged
    has_preprocessor = hasattr(vectorizer, "build_preprocessor")
    preprocess = vectorizer.build_preprocessor() if has_preprocessor else str
    checked = {}
    for name, words_of_topic in seed_words.items():
        words = list(words_of_topic) if is_list(words_of_topic) else []
        if not words or not all(isinstance(word, str) for word in [name, *words]):
            raise BadParameter("seed_words", ALLOWED, {name: words_of_topic})
        checked[name] = [preprocess(word) for word in words]
    check_labels({name: name for name in checked}, "seed_words")  # names are labels
    return checked


def plant_seeds(
    lda: TemperedLDA,
    seed_words: Mapping[str, list[str]],
    words: NDArray,
    X: csr_matrix,
    n_each: float = 1.0,
) -> None:
    """Set the prior and the initial topics of a TemperedLDA for seed words.

    `X` contains counts of the `words`; `n_each` is how many documents each of its rows stands for.
    The initial topics are not set if the user has set `init`, or asks for several runs (`n_init`).
    """
    columns = columns_of(words)
    K = lda.n_components
    prior = lda.topic_word_prior
    if prior is None:  # the default of the fit
        prior = 1.0 / K if lda.preset == "sklearn" else usual_prior(K)
    lda.set_params(topic_word_prior=seeded_prior(seed_words, columns, X, prior, K, n_each))
    is_single_run = is_open(lda.n_init) or lda.n_init == 1  # several runs must start differently
    if is_single_run and isinstance(lda.init, str) and lda.init == "auto":
        lda.set_params(init=seeded_start(seed_words, columns, X, K, lda.random_state))


def seeded_prior(
    seed_words: Mapping[str, list[str]],
    columns: Mapping[str, int],
    X: csr_matrix,
    prior: Any,
    n_topics: int,
    n_each: float = 1.0,
) -> NDArray:
    """Compute the prior of words in topics, where topic k has the k-th list of seed words.

    The prior of a seed word in its topic is increased by half the number of its occurrences in the
    corpus.  docs/record/seeds.md compares a half with other fractions.
    """
    shape = n_topics, X.shape[1]
    base = as_array(prior)
    if base.dtype.kind not in "fiu" or base.shape not in ((), shape[1:], shape):
        raise BadParameter(
            "lda__topic_word_prior",
            f"with 'seed_words' None, a float or an array of shape {shape[1:]} or {shape}",
            prior,
        )
    seeded = np.array(np.broadcast_to(base, shape), dtype=float)
    counts = summed(X, axis=0).astype(float)
    missing: list[str] = []
    for topic, (name, words) in enumerate(seed_words.items()):
        known = {columns[word] for word in words if word in columns}
        # words that occur; other words would not be affected
        seed_columns = sorted(column for column in known if counts[column])
        if not seed_columns:
            raise BadParameter(
                "seed_words",
                "a dict with at least one word of the corpus for each topic",
                {name: words},
            )
        missing += [word for word in words if word not in columns]
        seeded[topic, seed_columns] += SEED_PRIOR * n_each * counts[seed_columns]
    if missing:
        warn_user(
            f"{len(missing)} seed words are not in the vocabulary and have no effect: "
            f"{missing[:10]}."
        )
    return seeded


def seeded_start(
    seed_words: Mapping[str, list[str]],
    columns: Mapping[str, int],
    X: csr_matrix,
    n_topics: int,
    random_state: Any,
) -> NDArray:
    """Compute the initial topics of a fit, each from the word counts of a few documents.

    For a topic with seed words, the documents are short and contain as many of its seed words as
    possible.  For a topic without seed words, the documents are chosen as in a fit without seed
    words; see :func:`annealvi.models.lda.starts.topics_of_spread_documents`.
    """
    # float32, which represents these small counts, so that `init` has no influence on `dtype`
    start = np.ones((n_topics, X.shape[1]), np.float32)
    X = csr_matrix(X, dtype=np.float64)
    # writes the topics without seed words, which come last, into this slice
    topics_of_spread_documents(X, check_random_state(random_state), start[len(seed_words) :])
    # documents with the most seed words come first, and among these the shortest documents
    lengths = summed(X, axis=1)
    for topic, words in enumerate(seed_words.values()):
        seed_columns = sorted({columns[word] for word in words if word in columns})
        # the number of different seed words in each document
        n_seed_words = X[:, seed_columns].getnnz(axis=1)
        rows = np.lexsort((lengths, -n_seed_words))[:SEED_DOCUMENTS]  # the last key comes first
        rows = rows[n_seed_words[rows] > 0]
        start[topic] += SEED_WEIGHT * summed(X[rows], axis=0)
    return start
