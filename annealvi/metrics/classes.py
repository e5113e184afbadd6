"""A measure of how well inferred classes agree with known labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics.cluster import contingency_matrix
from sklearn.utils import check_consistent_length

from annealvi.checks import as_array, validated
from annealvi.exceptions import BadParameter


@validated(labels_true=["array-like"], labels_pred=["array-like"])
def purity(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    """Compute the share of documents whose label is the most frequent label of their class.

    The purity increases with the number of classes, up to 1 if each document has its own class.
    Therefore compare only results with the same number of classes, and also compute
    :func:`sklearn.metrics.normalized_mutual_info_score`.

    Parameters
    ----------
    labels_true : array-like of shape (n_samples,)
        The known labels.
    labels_pred : array-like of shape (n_samples,)
        The inferred classes, for example the result of `predict`.

    Returns
    -------
    float
        A number between 0 and 1; higher is better.

    Raises
    ------
    ValueError
        If the arrays have different lengths, are empty, or contain labels that cannot be sorted.

    References
    ----------
    C. D. Manning, P. Raghavan, H. Schuetze, *Introduction to Information Retrieval*, 2008, 16.3.

    Examples
    --------
    >>> from annealvi.metrics import purity
    >>> purity(["a", "a", "b", "b"], [0, 0, 0, 1])
    0.75
    """
    for name, labels in (("labels_true", labels_true), ("labels_pred", labels_pred)):
        array = as_array(labels)
        if array.ndim != 1 or not len(array):
            raise BadParameter(name, "an array of shape (n_samples,)", array)
        try:
            np.unique(array)
        except TypeError:
            raise BadParameter(
                name, "labels of one kind, such as all str or all int", labels
            ) from None
    check_consistent_length(labels_true, labels_pred)
    # a row for each label and a column for each class
    table: Any = contingency_matrix(labels_true, labels_pred, sparse=True)
    return float(table.max(axis=0).sum() / table.sum())
