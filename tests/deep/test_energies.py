"""The densities in the plane: their normalisers, gradients and modes."""

import math

import numpy as np
import pytest
import torch

from annealvi.deep.energies import ENERGIES, modes_found


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


@pytest.mark.parametrize("energy", ENERGIES.values(), ids=ENERGIES)
def test_float32_far_away_and_at_the_origin(energy):
    z = torch.tensor([[0.0, 0.0], [40.0, -30.0], [0.3, -2.0]], requires_grad=True)
    log_f = energy(z)
    log_f.sum().backward()
    assert torch.isfinite(log_f).all()
    assert torch.isfinite(z.grad).all()
    np.testing.assert_allclose(log_f.detach(), energy(z.detach().double()), rtol=1e-5)


def test_formulas_by_hand():
    z = torch.tensor([1.0, 2.0], dtype=torch.double)
    r = math.sqrt(5)
    expected = {
        "a": -0.5 * ((r - 2) / 0.4) ** 2
        + math.log(math.exp(-0.5 * (1 / 0.6) ** 2) + math.exp(-0.5 * (3 / 0.6) ** 2)),
        "b": -0.5 * ((math.sqrt(0.5 * 5) - 2) / 0.5) ** 2
        + math.log(
            math.exp(-0.5 * (1 / 0.6) ** 2)
            + math.exp(-0.5 * (2 * math.sin(1)) ** 2)
            + math.exp(-0.5 * (5.5 / 0.6) ** 2)
        ),
        "c": -((2 - math.sqrt(1 + 0.5 * 4)) ** 2),
        "d": math.log(
            sum(
                w * math.exp(-0.5 * ((1 - x) ** 2 + (2 - y) ** 2) / 0.2) / (2 * math.pi * 0.2)
                for w, x, y in ((0.1, -2, 0), (0.3, 2, 0), (0.4, 0, 2), (0.2, 0, -2))
            )
        ),
        "e": -0.5 * ((2 - math.sin(math.pi / 2)) / 0.4) ** 2 - 0.1,
        "f": math.log(
            math.exp(-0.5 * (1 / 0.35) ** 2)
            + math.exp(-0.5 * ((1 + 3 * math.exp(-0.5)) / 0.35) ** 2)
        )
        - 0.05,
    }
    assert {name: float(energy(z)) for name, energy in ENERGIES.items()} == pytest.approx(expected)


def test_modes_are_counted_where_draws_are():
    energy = ENERGIES["d"]
    rng = np.random.RandomState(0)
    means = np.array(energy.modes)[rng.choice(4, 4000, p=energy.weights)]
    exact = torch.from_numpy(means + math.sqrt(0.2) * rng.standard_normal(means.shape))
    three = exact[torch.from_numpy(means[:, 0] != -2)]
    between = torch.zeros_like(exact)
    assert modes_found(torch.stack([exact, between]), energy).tolist() == [4, 0]
    assert modes_found(three, energy) == 3
    with pytest.raises(ValueError, match=r"Energy \(c\) has no separate modes"):
        modes_found(exact, ENERGIES["c"])
