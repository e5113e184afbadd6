"""The densities in the plane: their normalisers, gradients and modes."""

import math

import numpy as np
import pytest
import torch

from annealvi.deep.energies import ENERGIES, modes_found
from tests.asserts import refused


@pytest.mark.parametrize("energy", ENERGIES.values(), ids=ENERGIES)
def test_the_log_partition_against_a_grid(energy):
    step = 0.05
    axis = torch.arange(-20.0, 20.0 + step / 2, step, dtype=torch.double)
    z = torch.stack(torch.meshgrid(axis, axis, indexing="ij"), dim=-1)
    log_f = energy(z)
    assert log_f.shape == z.shape[:-1]
    total = torch.logsumexp(log_f.flatten(), dim=0) + 2 * math.log(step)
    assert abs(float(total) - energy.log_partition) < 1e-5
    # nearly all of it lies where figures look
    inside = (z.abs() <= energy.extent).all(dim=-1)
    assert torch.logsumexp(log_f[inside], dim=0) + 2 * math.log(step) > total + math.log(0.97)


def test_the_formula_of_three_arcs():
    """As Table 2 of Huang et al. (2018) prints (b)."""
    z = np.random.RandomState(0).normal(0, 2, (50, 2))
    x, y = z.T
    ring = -0.5 * ((np.linalg.norm(0.5 * z, axis=1) ** 2 - 2) / 0.5) ** 2
    parts = [((x - 2) / 0.6) ** 2, (2 * np.sin(x)) ** 2, ((x + y + 2.5) / 0.6) ** 2]
    expected = ring + np.log(sum(np.exp(-0.5 * part) for part in parts))
    np.testing.assert_allclose(ENERGIES["b"](torch.from_numpy(z)), expected)


@pytest.mark.parametrize("energy", ENERGIES.values(), ids=ENERGIES)
def test_float32_far_away_and_at_the_origin(energy):
    z = torch.tensor([[0.0, 0.0], [40.0, -30.0], [0.3, -2.0]], requires_grad=True)
    log_f = energy(z)
    log_f.sum().backward()
    assert torch.isfinite(log_f).all()
    assert torch.isfinite(z.grad).all()
    np.testing.assert_allclose(log_f.detach(), energy(z.detach().double()), rtol=1e-5)


def test_modes_are_counted_where_draws_are():
    energy = ENERGIES["d"]
    rng = np.random.RandomState(0)
    means = np.array(energy.modes)[rng.choice(4, 4000, p=energy.weights)]
    exact = torch.from_numpy(means + math.sqrt(0.2) * rng.standard_normal(means.shape))
    three = exact[torch.from_numpy(means[:, 0] != -2)]
    assert modes_found(torch.stack([exact, torch.zeros_like(exact)]), energy).tolist() == [4, 0]
    assert modes_found(three, energy) == 3
    refused(r"Energy \(c\) has no separate modes", modes_found, exact, ENERGIES["c"])
