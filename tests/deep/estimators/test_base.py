"""What all deep estimators share."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.base import clone

from annealvi.deep import (
    HierarchicalPosterior,
    PoissonDEF,
    SigmoidBeliefNetwork,
    VariationalAutoencoder,
)
from annealvi.deep.energies import ENERGIES


@pytest.mark.parametrize(
    "model",
    [
        SigmoidBeliefNetwork((4, 3), proximity="kl"),
        PoissonDEF(3, n_local_steps=3, proximity="entropy"),
        VariationalAutoencoder(3, hidden=(8,), proximity="kl"),
        VariationalAutoencoder(3, hidden=(8,), n_transitions=2, calibration=0.5),
        HierarchicalPosterior(ENERGIES["d"], 2),
    ],
)
def test_fits_are_in_single_precision_whatever_the_default_is(model):
    X = np.random.RandomState(0).random_sample((40, 12)) < 0.3
    model.set_params(max_iter=5, random_state=0)
    torch.set_default_dtype(torch.float64)
    try:
        again = clone(model).fit(X)
        assert all(p.dtype == torch.float32 for p in again.network_.parameters())
        assert np.isfinite(again.score(X))
        assert again.sample(2)[0].dtype == np.float32
    finally:
        torch.set_default_dtype(torch.float32)
