"""Deep sigmoidal flows: their form, their order, their densities and inverses."""

import numpy as np
import pytest
import torch

from annealvi.deep.energies import ENERGIES
from annealvi.deep.flows import FlowPosterior, SigmoidalTransitions, increase
from annealvi.deep.objectives import avo_terms, hvi_elbo, log_evidence_bounds
from tests.deep.chains import DoubleNoise


def transitions(dim=3, n_transitions=2, **options):
    torch.manual_seed(0)
    return SigmoidalTransitions(dim, n_transitions, hidden=8, n_sigmoids=4, **options).double()


def flow(dim=2, n_transitions=3, **options):
    torch.manual_seed(0)
    options = dict(hidden=8, n_sigmoids=4, weight_scale=10.0) | options
    return FlowPosterior(dim, n_transitions, **options).double()


def test_a_coordinate_as_it_is_written():
    torch.manual_seed(0)
    z, w, a, b = torch.randn(5, 2), torch.rand(5, 2, 4) + 0.1, torch.rand(5, 2, 4) + 0.1, None
    w = w / w.sum(dim=-1, keepdim=True)
    b = torch.randn(5, 2, 4)
    z, w, a, b = (part.double() for part in (z, w, a, b))
    found, _ = increase(z, w.log(), a.log(), b)
    torch.testing.assert_close(
        found, torch.logit((w * torch.sigmoid(a * z[..., None] + b)).sum(-1))
    )


def test_far_away_nothing_overflows():
    z = torch.tensor([[-300.0, 300.0]])
    parts = torch.zeros(1, 2, 4)
    found, log_determinant = increase(z, parts - np.log(4), parts, parts)
    torch.testing.assert_close(found, z)
    torch.testing.assert_close(log_determinant, torch.zeros(1), atol=1e-4, rtol=0)


def test_each_coordinate_depends_on_those_before_it():
    """In the second transition on those after it."""
    some = transitions(n_runs=2, weight_scale=10.0)
    z = torch.randn(2, 1, 3).double()
    for t in range(2):
        jacobian = torch.autograd.functional.jacobian(lambda z, t=t: some(z, t)[0], z)
        for run in range(2):
            part = jacobian[run, 0, :, run, 0]
            part = part if t == 0 else part.flip(0, 1)
            assert torch.equal(part, part.tril())
            assert (part.diagonal() > 0).all()
            assert part[1, 0] != 0
            assert part[2, 0] != 0
            assert part[2, 1] != 0
            determinant = some(z, t)[1][run, 0]
            torch.testing.assert_close(part.diagonal().log().sum(), determinant)


def test_all_transitions_at_once_are_each_of_them():
    some = transitions(n_runs=2)
    z = torch.randn(2, 2, 5, 3).double()
    after, log_determinant = some(z)
    for t in range(2):
        one, its = some(z[t], t)
        torch.testing.assert_close(after[t], one)
        torch.testing.assert_close(log_determinant[t], its)


def test_the_start_is_near_the_identity():
    torch.manual_seed(0)
    some = SigmoidalTransitions(2, 5)
    z = torch.randn(1, 1000, 2)
    for t in range(5):
        moved = (some(z, t)[0] - z).detach()
        assert moved.std() < 0.5
        assert moved.std() > 0.01


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_an_inverse_leads_back(dim):
    some = transitions(dim, weight_scale=10.0)
    z = 3 * torch.randn(1, 20, dim).double()
    for t in range(2):
        torch.testing.assert_close(some.inverse(some(z, t)[0], t), z, atol=1e-9, rtol=1e-9)


def test_the_density_is_one_in_all():
    """Over a grid, in each run; and along a path it is that of its end."""
    some = flow(n_runs=2, weight_scale=2.0)
    edge = torch.linspace(-8, 8, 101).double()
    z = torch.stack(torch.meshgrid(edge, edge, indexing="ij"), dim=-1).reshape(1, -1, 2)
    mass = some.log_marginal(z.repeat(2, 1, 1), 1, DoubleNoise(0)).exp().sum(dim=1) * 0.16**2
    torch.testing.assert_close(mass, torch.ones(2).double(), atol=2e-3, rtol=0)
    path = some(some.draw_noise(10, DoubleNoise(0)))
    found = some.log_marginal(path.z[-1].detach(), 1, DoubleNoise(0))
    torch.testing.assert_close(found, some.log_weight(path).detach(), atol=1e-8, rtol=1e-8)


def test_the_bounds_are_equal():
    some, energy = flow(), ENERGIES["d"]
    below, above = log_evidence_bounds(some, energy, DoubleNoise(0), n_draws=50)
    assert torch.equal(below, above)
    path = some(some.draw_noise(50, DoubleNoise(0)))
    torch.testing.assert_close(below, hvi_elbo(some, path, energy).detach())


def test_the_objective_of_a_flow_as_it_is_written():
    """J_t = E[alpha log f(z_t) + beta ((1 - alpha) log N(z_t) + log |det|)]."""
    some, energy, beta = flow(), ENERGIES["a"], 0.3
    path = some(some.draw_noise(6, DoubleNoise(1)), detach=True)
    normal = torch.distributions.Normal(0.0, 1.0)
    for t, term in enumerate(avo_terms(path, energy, beta=beta)):
        a, z = (t + 1) / 3, path.z[t + 1]
        rest = (1 - a) * normal.log_prob(z).sum(-1) + some.forwards(path.z[t], t)[1]
        torch.testing.assert_close(term, a * energy(z) + beta * rest)
