r"""The temperature above which all topics of LDA are the same.

Let every topic be the corpus's own distribution of words and every document use all topics
alike, gamma = alpha + b N / K.  A small change delta_kv of log beta_kv, summing to 0 over k,
makes E log theta_dk change by

.. math::
   \delta\theta_{dk} = \frac{a}{1 - a} \sum_v \frac{n_{dv}}{N_d} \delta_{kv}, \qquad
   a = \frac{b^2 N}{K} \psi'\Big(\alpha + \frac{b N}{K}\Big),

where documents settle (a < 1), and the next topics change by

.. math::
   \delta'_{kv} = b \Big(\delta_{kv} + \sum_d \frac{n_{dv}}{n_v} \delta\theta_{dk}\Big).

Along the singular vectors of n_dv / sqrt(N_d n_v), those of correspondence analysis, a change
grows where b (1 + a sigma^2 / (1 - a)) > 1.  The largest b of which no change grows is one over
the critical temperature.  In the posterior form alpha is b alpha + 1 - b.  (The first
singular value is 1, its vector changes all words alike.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import bisect
from scipy.special import polygamma
from sklearn.utils.extmath import randomized_svd

from annealvi.model import Form

#: Documents that are looked at; the least documents and words that say anything; and the least
#: documents of a stream that stand for it.
MOST, LEAST, LEAST_DOCUMENTS = 4000, 4, 100
#: Not the second singular value: a few documents in words of their own are enough for one.
RANK = 2
#: Temperatures are looked for below this.
HOTTEST = 100.0


def critical_temperature(X: Any, n_topics: int, alpha: float, form: Form = "likelihood") -> float:
    """The temperature at which topics of these documents part, at least 1.

    Parameters
    ----------
    X : csr_matrix of shape (n_samples, n_features)
        Word counts.
    n_topics : int
    alpha : float
        Prior of a document's topics, the mean over topics.
    form : {"likelihood", "posterior"}

    Returns
    -------
    float
        To two decimals, so that roundings of linear algebra do not matter.
    """
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

    if growth(1.0 / HOTTEST) >= 1:
        return HOTTEST
    # growth is at least b, so that topics part at T = 1 in the end
    inverse = bisect(lambda b: min(growth(b), 2.0) - 1.0, 1.0 / HOTTEST, 1.0, xtol=1e-4)
    return round(1.0 / float(inverse), 2)
