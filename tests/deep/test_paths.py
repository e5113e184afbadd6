"""What posteriors of both kinds of transitions have in common."""

import pytest
import torch

from annealvi.deep.flows import FlowPosterior
from annealvi.deep.hvi import Chain
from tests.deep.chains import DoubleNoise

KINDS = pytest.mark.parametrize("kind", [Chain, FlowPosterior])


@KINDS
def test_a_single_run_is_one_of_many(kind):
    torch.manual_seed(0)
    many = kind(2, 3, n_runs=4, hidden=8).double()
    one = many.single(2)
    assert one.n_runs == 1
    assert many.n_runs == 4
    epsilon = many.draw_noise(5, DoubleNoise(0))
    torch.testing.assert_close(many(epsilon).z[:, 2:3], one(epsilon[:, 2:3]).z)
    with torch.no_grad():
        for parameter in one.parameters():
            parameter.zero_()
    assert all(parameter.any() for parameter in many.parameters())  # a copy


@KINDS
@pytest.mark.parametrize("n_transitions", [0, 3])
def test_layers_are_those_of_a_path(kind, n_transitions):
    torch.manual_seed(0)
    some = kind(2, n_transitions, n_runs=2, hidden=8).double()
    layers = some.layers(7, DoubleNoise(0))
    path = some(some.draw_noise(7, DoubleNoise(0)))
    assert layers.shape == (n_transitions + 1, 2, 7, 2)
    torch.testing.assert_close(layers, path.z)
    expected = path.log_base + path.log_forward.sum(0) - path.log_reverse.sum(0)
    torch.testing.assert_close(some.log_weight(path), expected)
