"""Tables of cases, and how tests say what `make test` leaves to `make test-all`."""

import pytest


def cases(names, *rows, **options):
    """A test of each row: the values of the parameters with these names."""
    return pytest.mark.parametrize(names, rows, **options)


def slow_values(*values):
    """Values of a parameter that `make test` leaves out."""
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]


def quick_values(values, *chosen):
    """Values of a parameter, of which `make test` takes the chosen ones only."""
    return [*chosen, *slow_values(*(value for value in values if value not in chosen))]


FEW = {0, 5, 9, 13, 16}
#: The seeds of twenty random problems: five of them in `make test`.
twenty_problems = pytest.mark.parametrize(
    "seeds",
    [sorted(FEW), *slow_values(sorted(set(range(20)) - FEW))],
    ids=["5 problems", "15 problems"],
)
