"""Comparison of components with the true ones, if these are known."""

from __future__ import annotations

from numbers import Real

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.preprocessing import normalize
from sklearn.utils._param_validation import validate_params

from annealvi.checks import Interval
from annealvi.matrices import check_matrix


@validate_params(
    {
        "components": "no_validation",  # by check_matrix
        "truth": "no_validation",
        "threshold": [Interval(Real, -1, 1, closed="both")],
    },
    prefer_skip_nested_validation=True,
)
def component_recovery(
    components: ArrayLike, truth: ArrayLike, *, threshold: float = 0.95
) -> tuple[int, NDArray[np.float64]]:
    """Count the true components that were found; they are matched one to one by cosine.

    Parameters
    ----------
    components : array-like of shape (n_components, n_features)
        The components of a fit.
    truth : array-like of shape (n_true, n_features)
        The true components.
    threshold : float, default=0.95
        A true component counts as found if its cosine with its match is larger than this.

    Returns
    -------
    n_found : int
        Number of true components that were found.
    cosines : ndarray of shape (n_true,)
        Cosine of each true component with its match; 0 if it has none.
    """
    found, true = (
        check_matrix(array, dtype=np.float64, accept_sparse=False, name=name)
        for array, name in ((components, "components"), (truth, "truth"))
    )
    if found.shape[1] != true.shape[1]:
        raise ValueError(
            "'components' and 'truth' must have the same number of features. "
            f"Got {found.shape[1]} and {true.shape[1]}."
        )
    cosine = normalize(true) @ normalize(found).T
    rows, columns = linear_sum_assignment(-cosine)
    cosines = np.zeros(len(true))
    cosines[rows] = cosine[rows, columns]
    return int(np.sum(cosines > threshold)), cosines
