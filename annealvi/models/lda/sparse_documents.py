r"""The local step of documents of few topics, and the objective that it ascends.

Near T = 1 the mean field spreads a document over too many topics.  The ``"sparse"`` estimate puts

.. math::
   f(\gamma) = \psi(\gamma) - \kappa / \gamma

in the place of psi(gamma) in the local step:

.. math::
   \phi_{vk} \propto \exp b (f(\gamma_k) + \log \beta_{kv}), \quad
   \gamma_k = \alpha_k + b \sum_v n_v \phi_{vk}

With kappa = 1/2, exp f(gamma) is gamma - 1 + O(1/gamma), the mode of Dir(gamma) for large gamma,
and it stays positive for small gamma, where that mode does not exist.

**What it ascends.**  Put gamma = alpha + b n with n_k = sum_v n_v phi_vk.  The mean field's bound
of a document is then a function of phi alone.  f is the derivative of
h(gamma) = log Gamma(gamma) - kappa log gamma, and the fixed points above are those of

.. math::
   J(\phi) = \sum_{vk} n_v \phi_{vk} (b \log \beta_{kv} - \log \phi_{vk})
       + \sum_k [h(\gamma_k) - h(\alpha_k)] + \mathrm{const},

the bound less kappa sum_k log(gamma_k / alpha_k).  With kappa = 1/2 a topic that a document uses
costs half the logarithm of its words there, plus half that of 1 / alpha.  A parameter costs half a
logarithm under BIC and minimum description length too (Figueiredo and Jain 2002 use that cost to
remove components of a mixture).
h is convex, because h'' = psi'(gamma) + kappa / gamma^2 > 0.  So J is at least

.. math::
   Q(\phi; \gamma) = \sum_{vk} n_v \phi_{vk} (b \log \beta_{kv} - \log \phi_{vk})
       + \sum_k [h(\gamma_k) - h(\alpha_k) + f(\gamma_k) (\alpha_k + b n_k - \gamma_k)],

with equality at gamma = alpha + b n.  An iteration maximises Q over phi at the present gamma.
Therefore no iteration lowers J, and no full step of the topics lowers sum_d J_d plus the topics'
part of the objective, at fixed T and kappa.  :func:`objective` is that sum with the largest Q of
each document.  At kappa = 0 it is F(b) of :mod:`annealvi.models.lda.model`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from annealvi.model import Tempering
from annealvi.models.dirichlet import negative_kl
from annealvi.models.lda.documents import Documents


def objective(
    documents: Documents, X: Any, gamma: NDArray | None, tempering: Tempering
) -> NDArray[np.float64]:
    """Each document's part of the objective of training, the largest Q at a gamma."""
    shape, dtype = (X.shape[0], documents.topics.n_topics), documents.topics.dtype
    sparsity, alpha = documents.options.sparsity(tempering), documents.effective_alpha(tempering)
    bound = np.zeros(X.shape[0])
    if gamma is None:
        gamma = np.ones(shape, dtype)
        documents.fit(X, gamma, tempering, None, exact=False, sparsity=sparsity)
    gamma = np.array(gamma, dtype=dtype, order="C")
    documents.fit(
        X, gamma, tempering, None, exact=False, max_iter=0, bound=bound, sparsity=sparsity
    )
    bound += negative_kl(alpha, gamma, documents.topics.n_threads)
    if sparsity > 0:
        gamma = gamma.astype(np.float64)
        bound += sparsity * np.sum((gamma - alpha) / gamma - np.log(gamma / alpha), axis=1)
    return bound
