r"""The critical temperature, above which all topics of LDA are the same.

Let every topic be the corpus's own distribution of words, and let every document use all
topics equally, gamma = alpha + b N / K.  A small change delta_kv of log beta_kv, with sum 0
over k, changes E log theta_dk by

.. math::
   \delta\theta_{dk} = \frac{a}{1 - a} \sum_v \frac{n_{dv}}{N_d} \delta_{kv}, \qquad
   a = \frac{b^2 N}{K} \psi'\Big(\alpha + \frac{b N}{K}\Big),

if documents converge (a < 1).  The next topics then change by

.. math::
   \delta'_{kv} = b \Big(\delta_{kv} + \sum_d \frac{n_{dv}}{n_v} \delta\theta_{dk}\Big).

Take the singular vectors of n_dv / sqrt(N_d n_v), which are those of correspondence analysis.
Along a vector with singular value sigma a change grows if b (1 + a sigma^2 / (1 - a)) > 1.  The
critical temperature is one over the largest b at which no change grows.  In the posterior form
b alpha + 1 - b replaces alpha.  (The first singular value is 1, and its vector changes all
words alike.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import bisect
from scipy.special import polygamma
from sklearn.utils.extmath import randomized_svd

from annealvi.model import Form

#: The largest number of documents used; the least number of documents and of words required;
#: and the least number of documents required of a stream.
MOST, LEAST, LEAST_DOCUMENTS = 4000, 4, 100
#: Used as the critical temperature if too few documents were seen.
DEFAULT_CRITICAL = 3.3
#: Index of the singular value that is used: the third, because a few documents with words of
#: their own can determine the second.
RANK = 2
#: The largest critical temperature that is returned.
MAX_CRITICAL = 100.0


def critical_temperature(X: Any, n_topics: int, alpha: float, form: Form = "likelihood") -> float:
    """Compute the temperature below which topics of these documents differ, at least 1."""
    X = X[:: max(1, -(-X.shape[0] // MOST))]
    lengths = np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()
    X = sparse.csr_matrix(X[lengths > 0], dtype=np.float64)
    lengths = lengths[lengths > 0]
    totals = np.asarray(X.sum(axis=0)).ravel()
    if not np.isfinite(totals.sum()):
        return 1.0
    if n_topics == 1 or len(lengths) < LEAST or np.count_nonzero(totals) < LEAST:
        return 1.0
    scaled = sparse.diags_array(lengths**-0.5) @ X[:, totals > 0]
    scaled = scaled @ sparse.diags_array(totals[totals > 0] ** -0.5)
    sigma = randomized_svd(scaled, RANK + 1, n_iter=4, random_state=0)[1][RANK]
    share = float(lengths.mean()) / n_topics

    def growth(b: float) -> float:
        prior = alpha if form == "likelihood" else b * alpha + 1.0 - b
        a = b * b * share * float(polygamma(1, prior + b * share))
        return np.inf if a >= 1 else b * (1.0 + a / (1.0 - a) * sigma**2)

    if growth(1.0 / MAX_CRITICAL) >= 1:
        return MAX_CRITICAL
    # growth is at least b, so at the latest topics separate at T = 1
    inverse = bisect(lambda b: min(growth(b), 2.0) - 1.0, 1.0 / MAX_CRITICAL, 1.0, xtol=1e-4)
    return round(1.0 / float(inverse), 2)
