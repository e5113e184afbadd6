"""What CONTRIBUTING says of the house, as far as the source can tell."""

import pytest

from bench import CHECKOUT
from bench.structure import circles, imports, modules, private_uses, upward_imports

GRAPH = imports(CHECKOUT)


def test_nothing_imports_upwards():
    assert not upward_imports(GRAPH)


def test_no_circle_of_imports_not_for_types_either():
    assert not circles(GRAPH)


def test_nothing_uses_the_private_attributes_of_another_object():
    assert not [use for use in private_uses(CHECKOUT) if ": torch." not in use]


@pytest.mark.parametrize("name", [m for m in sorted(modules(CHECKOUT)) if "_kernels" in m])
def test_kernels_know_nothing_of_the_house(name):
    assert all(target.startswith("annealvi._kernels") for target in GRAPH[name])
