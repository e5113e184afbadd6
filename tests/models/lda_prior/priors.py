"""Small priors of LDA whose log C(T) can be enumerated."""

import numpy as np
import pytest

from annealvi.models.lda_prior import LDAPrior

T = np.array([1.0, 1.25, 2.0, 10 / 3, 10.0])
B = 1 / T
#: Symmetric, of each topic and word, below 1 and above.
PRIORS = [
    (1.0, 1.0),
    (0.3, 0.2),
    ([0.7, 1.5], [0.4, 1.0, 2.0]),
    (2.0, [[0.5, 3.0, 1.0], [1.2, 0.3, 0.8]]),
]
priors = pytest.mark.parametrize(("alpha", "eta"), PRIORS)


def arrays(alpha, eta, K=2, V=3):
    return np.broadcast_to(alpha, (K,)).astype(float), np.broadcast_to(eta, (K, V)).astype(float)


def prior_of(alpha, eta, lengths=(3, 3), form="explicit", K=2, V=3):
    return LDAPrior(K, V, lengths, doc_topic_prior=alpha, topic_word_prior=eta, form=form)
