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


MODELS = [
    PoissonDEF(2, n_local_steps=2),
    SigmoidBeliefNetwork((2,)),
    VariationalAutoencoder(2, hidden=(4,)),
    HierarchicalPosterior(ENERGIES["d"], 2),
]


@pytest.mark.parametrize("model", MODELS)
def test_attributes_before_a_fit(model):
    for name in ("history_", "n_iter_", "network_", "made_up_"):
        assert not hasattr(model, name)
        with pytest.raises(AttributeError, match=f"is not fitted yet: it has no '{name}'"):
            getattr(model, name)
    with pytest.raises(AttributeError, match="has no attribute 'made_up'"):
        _ = model.made_up


@pytest.mark.parametrize("model", MODELS)
def test_what_single_precision_cannot_hold(model):
    X = np.eye(4)
    with pytest.raises(ValueError, match=r"'learning_rate' .* \(0.0, 1e\+38\]"):
        clone(model).set_params(learning_rate=1e300).fit(X)
    with pytest.raises(ValueError, match="'device' parameter"):
        clone(model).set_params(device=2**70).fit(X)
    with pytest.raises(MemoryError):
        clone(model).set_params(max_iter=1, random_state=0).fit(X).sample(2**62)


def test_counts_that_single_precision_cannot_hold():
    model = PoissonDEF(2, n_local_steps=2, max_iter=1, random_state=0).fit(np.eye(4))
    for method in ("transform", "score", "fit"):
        with pytest.raises(ValueError, match=r"counts in X must sum to at most 1e\+15 .* 4e\+200"):
            getattr(model, method)(1e200 * np.eye(4))
    with pytest.raises(ValueError, match=r"'prior_rate' .* \(0.0, 1e\+38\]"):
        model.set_params(prior_rate=1e300).fit(np.eye(4))
