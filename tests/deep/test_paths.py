"""What posteriors of both kinds of transitions have in common."""

from functools import partial

import numpy as np
import pytest
import torch

from annealvi.deep.energies import ENERGIES
from annealvi.deep.flows import FlowPosterior
from annealvi.deep.hvi import Chain
from annealvi.deep.objectives import avo_terms
from tests.deep.chains import DoubleNoise

POSTERIORS = {
    "chain": partial(Chain, hidden=8),
    "amortised": partial(Chain, hidden=8, context=3),
    "flow": partial(FlowPosterior, hidden=8, n_sigmoids=4, weight_scale=10.0),
}
KINDS = pytest.mark.parametrize("kind", POSTERIORS)
PARTS = ("z", "log_base", "log_forward", "log_reverse")


def posterior(kind, n_transitions=3, n_runs=2, seed=0):
    """One of a kind, and a context for five draws."""
    torch.manual_seed(seed)
    context = torch.randn(5, 3).double() if kind == "amortised" else None
    return POSTERIORS[kind](2, n_transitions, n_runs=n_runs).double(), context


@KINDS
def test_a_single_run_is_one_of_many(kind):
    many, context = posterior(kind, n_runs=4)
    one = many.single(2)
    assert one.n_runs == 1 and many.n_runs == 4
    epsilon = many.draw_noise(5, DoubleNoise(0))
    beside = many(epsilon, context=context).z[:, 2:3]
    torch.testing.assert_close(beside, one(epsilon[:, 2:3], context=context).z)
    with torch.no_grad():
        for parameter in one.parameters():
            parameter.zero_()
    assert all(parameter.any() for parameter in many.parameters() if parameter.dim() == 4)  # a copy


@KINDS
def test_runs_are_independent(kind):
    """A run on its own gives the same as beside others, whatever these are."""
    many, context = posterior(kind, n_runs=3)
    alone, _ = posterior(kind, n_runs=1, seed=5)
    state = many.state_dict()
    alone.load_state_dict({k: v[:, 1:2] if v.dim() == 4 else v[1:2] for k, v in state.items()})
    with torch.no_grad():
        for parameter in many.forwards.parameters():
            parameter[:, 2] = torch.nan
    epsilon = many.draw_noise(5, DoubleNoise(0))
    for detach in (False, True):
        beside = many(epsilon, context=context, detach=detach)
        one = alone(epsilon[:, 1:2], context=context, detach=detach)
        torch.testing.assert_close(beside.z[:, 1:2], one.z)
        for name in PARTS[1:]:
            torch.testing.assert_close(getattr(beside, name)[..., 1:2, :], getattr(one, name))


@KINDS
@pytest.mark.parametrize("n_transitions", [0, 3])
def test_layers_are_those_of_a_path(kind, n_transitions):
    some, context = posterior(kind, n_transitions)
    layers = some.layers(5, DoubleNoise(0), context=context)
    path = some(some.draw_noise(5, DoubleNoise(0)), context=context)
    assert layers.shape == (n_transitions + 1, 2, 5, 2)
    torch.testing.assert_close(layers, path.z)
    expected = path.log_base + path.log_forward.sum(0) - path.log_reverse.sum(0)
    torch.testing.assert_close(some.log_weight(path), expected)


@KINDS
def test_detaching_changes_gradients_not_values(kind):
    some, context = posterior(kind)
    epsilon = some.draw_noise(5, DoubleNoise(1))
    through, detached = (some(epsilon, context=context, detach=part) for part in (False, True))
    for name in PARTS:
        torch.testing.assert_close(getattr(through, name), getattr(detached, name))
    bias = some.forwards.out_bias
    gradient = torch.autograd.grad(detached.z[-1].sum(), bias)[0]
    assert gradient[-1].abs().max() > 0 and gradient[:-1].abs().max() == 0
    assert torch.autograd.grad(through.z[-1].sum(), bias)[0][0].abs().max() > 0


@KINDS
def test_no_transition_is_moved_by_the_objective_of_another(kind):
    some, context = posterior(kind)
    path = some(some.draw_noise(5, DoubleNoise(0)), context=context, detach=True)
    terms = avo_terms(path, ENERGIES["d"], beta=0.7)
    assert terms.shape == (3, 2, 5)
    parameters = list(some.forwards.parameters())
    if kind != "flow":
        parameters += some.reverses.parameters()
    for t in range(3):
        for gradient in torch.autograd.grad(terms[t].sum(), parameters, retain_graph=True):
            sizes = np.array([float(part.abs().max()) for part in gradient])
            assert sizes[t] > 0 and not np.delete(sizes, t).any()
