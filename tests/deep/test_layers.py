"""Stacks of layers: what their units are, how they start, which are dead."""

from __future__ import annotations

import torch

from annealvi.deep.vae import GatedStack, ReLUStack, never_positive, start_orthogonal


def test_a_gated_unit_is_a_linear_one_times_a_sigmoid():
    torch.manual_seed(0)
    stack, x = GatedStack(4, (3, 2)), torch.randn(6, 4)
    first, second = stack.activations(x)
    linear, gate = (x @ stack.layers[0].weight.T + stack.layers[0].bias).chunk(2, dim=-1)
    torch.testing.assert_close(first, linear * torch.sigmoid(gate))
    assert (first < 0).any() and second.shape == (6, 2)
    torch.testing.assert_close(stack(x), second)


def test_both_halves_of_a_gated_layer_start_orthogonal():
    stack = GatedStack(5, (3,))
    weight = stack.layers[0].weight
    start_orthogonal(weight, stack.maps)
    for half in weight.chunk(2):
        torch.testing.assert_close(half @ half.T, torch.eye(3))


def test_dead_units_of_a_network_made_by_hand():
    stack = ReLUStack(2, (3, 2))
    with torch.no_grad():
        stack.layers[0].weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]))
        stack.layers[0].bias.copy_(torch.tensor([0.0, -0.5, 0.0]))
        stack.layers[1].weight.copy_(torch.tensor([[1.0, 1.0, 0.0], [-1.0, 0.0, 5.0]]))
        stack.layers[1].bias.zero_()
    x = torch.tensor([[0.0, 0.4], [1.0, 0.0], [0.2, 0.5]])
    first, second = stack.activations(x)
    expected = torch.tensor([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.2, 0.0, 0.0]])
    torch.testing.assert_close(first, expected)
    torch.testing.assert_close(stack(x), second)
    # x_1 is positive somewhere; x_2 never above .5; -x_1 - x_2 never above 0
    dead = never_positive([first, second])
    assert [layer.tolist() for layer in dead] == [[False, True, True], [False, True]]
    alive = never_positive([torch.tensor([[[0.0, 1.0]], [[2.0, 0.0]]])])
    assert alive[0].tolist() == [False, False]
