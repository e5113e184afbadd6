"""Random numbers of deep fits."""

from __future__ import annotations

import pickle

import numpy as np
import torch

from annealvi.deep.noise import Noise


def test_noise():
    noise = Noise(0)
    p = torch.tensor([[0.0, 0.3, 1.0]]).expand(20_000, 3)
    drawn = noise.bernoulli(p)
    assert set(drawn.unique().tolist()) == {0.0, 1.0}
    np.testing.assert_allclose(drawn.mean(dim=0), [0, 0.3, 1], atol=0.015)
    np.testing.assert_allclose(noise.poisson(4 * torch.ones(20_000)).mean(), 4, atol=0.06)
    assert abs(float(noise.normal(20_000).std()) - 1) < 0.02
    assert sorted(noise.permutation(5).tolist()) == [0, 1, 2, 3, 4]
    state = noise.state()
    first = noise.uniform(4)
    noise.restore(state)
    assert torch.equal(noise.uniform(4), first)
    copied = pickle.loads(pickle.dumps(noise))
    assert torch.equal(copied.uniform(4), noise.uniform(4))
