"""Chains of transitions in double precision."""

import torch

from annealvi.deep.hvi import Chain
from annealvi.deep.noise import Noise


class DoubleNoise(Noise):
    """In double precision, so that tolerances can be tight."""

    def normal(self, *shape):
        return super().normal(*shape).double()


def chain(seed=0, dim=2, n_transitions=3, **options):
    torch.manual_seed(seed)
    return Chain(dim, n_transitions, **options).double()
