"""Shares of topics in groups of documents and in periods of time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def grouped(
    shares: NDArray[np.float64],
    lengths: NDArray[np.float64],
    codes: NDArray[np.intp],
    n_groups: int,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Average shares of topics over groups of documents, in which each token counts once.

    Parameters
    ----------
    shares : ndarray of shape (D, K)
    lengths : ndarray of shape (D,)
        Tokens of documents.
    codes : ndarray of shape (D,)
        The group of each document; -1 for none.
    n_groups : int

    Returns
    -------
    means : ndarray of shape (n_groups, K)
        NaN for groups without tokens.
    n_documents : ndarray of shape (n_groups,)
        Numbers of documents that have tokens.
    """
    used = (codes >= 0) & (lengths > 0)
    codes, weights = codes[used], lengths[used]
    totals = np.zeros((n_groups, shares.shape[1]))
    np.add.at(totals, codes, shares[used] * weights[:, np.newaxis])
    sums = np.bincount(codes, weights=weights, minlength=n_groups)
    with np.errstate(invalid="ignore"):
        means = totals / sums[:, np.newaxis]
    return means, np.bincount(codes, minlength=n_groups)


def certainty_of(shares: NDArray[np.float64], lengths: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""Compute the share that each topic has, on average, where its tokens are.

    .. math::
        \sum_d n_d \theta_{dk}^2 \Big/ \sum_d n_d \theta_{dk}

    It is 1 if documents that have the topic have no other one.

    Parameters
    ----------
    shares : ndarray of shape (D, K)
    lengths : ndarray of shape (D,)

    Returns
    -------
    ndarray of shape (K,)
        0 for topics that no document has.
    """
    tokens = lengths @ shares
    squares = np.einsum("d,dk,dk->k", lengths, shares, shares)
    return np.divide(squares, tokens, out=np.zeros_like(tokens), where=tokens > 0)


def frame(means: NDArray, n_documents: NDArray, index: Any, labels: list[str], pandas: Any) -> Any:
    """A DataFrame of the results of :func:`grouped`.

    Parameters
    ----------
    means, n_documents : ndarray
    index : pandas.Index
    labels : list of str
    pandas : module
    """
    result = pandas.DataFrame(means, index=index, columns=labels)
    result.insert(0, "n_documents", n_documents, allow_duplicates=True)
    return result
