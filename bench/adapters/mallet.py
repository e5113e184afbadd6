"""The sparse Gibbs sampler of MALLET's Python package, with learned priors and 5 samples."""

from __future__ import annotations

from itertools import pairwise
from string import ascii_lowercase

import numpy as np
import pyrmallet

from bench.adapters import Fit


def _word(number):
    """Make a word of letters for each number, because MALLET's reader drops digits."""
    letters = ""
    while number >= 0:
        letters = ascii_lowercase[number % 26] + letters
        number = number // 26 - 1
    return f"qqq{letters}"


def start(problem, X, *, seed=0, sweeps=1000):
    """A fit with the defaults of MALLET's README; the time to read the texts is included."""
    words = np.array([_word(number) for number in range(X.shape[1])])
    column = {word: number for number, word in enumerate(words)}
    texts = [
        " ".join(np.repeat(words[X.indices[a:b]], X.data[a:b].astype(int)))
        for a, b in pairwise(X.indptr)
    ]
    model = pyrmallet.LatentDirichletAllocation(
        problem.n_topics, max_iter=sweeps, random_state=seed
    )

    def topics():
        beta = np.zeros((problem.n_topics, X.shape[1]))
        beta[:, [column[str(word)] for word in model.feature_names_in_]] = model.components_
        return beta

    return Fit(lambda: model.fit(texts), topics, sweeps)
