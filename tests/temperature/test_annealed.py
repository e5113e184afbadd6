"""Fixed and annealed temperatures: the schedules, their plans, their errors."""

import math
import re
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose

from annealvi import Annealed, Fixed
from annealvi.temperature import Temperature, as_temperature
from tests.marks import cases

FORMULAS = {
    "linear": lambda T0, t, L: T0 + (1 - T0) * t / L,
    "exponential": lambda T0, t, L: T0 ** (1 - t / L),
    "relax": lambda T0, t, L: T0 ** math.exp(-4 * t / L),
}


@pytest.mark.parametrize("shape", FORMULAS)
@cases("length, L", (None, 34), (1 / 3, 34), (0.5, 50), (1.0, 99), (0.001, 1))
def test_schedules(shape, length, L):
    schedule = Annealed(start=3.9, length=length, shape=shape).plan(100, 10)
    path = [1 / schedule.inverse(t) for t in range(100)]
    assert_allclose(path[:L], [FORMULAS[shape](3.9, t, L) for t in range(L)], rtol=1e-14)
    assert path[L:] == [1.0] * (100 - L) and path[0] == pytest.approx(3.9)
    assert [schedule.settled(t) for t in (L - 1, L)] == [False, True]


@cases(
    "options, plan, expected",
    *((dict(length=0.07), (100, 1), 7), (dict(length=0.07), (300, 1), 21)),  # not rounded up twice
    *((dict(passes=2), (100, 10), 20), (dict(passes=2.55), (100, 10), 26)),
    (dict(passes=10), (100, 10), 99),  # at least the last step runs at T = 1
    (dict(passes=1, start=Fraction(7, 2)), (100, 10), 10),
    (dict(length=np.float16(0.5)), (10**6, 10), 500_000),  # which holds no number above 65,504
    (dict(passes=np.float16(2)), (10**6, 10**5), 200_000),
    (dict(passes=1e305), (None, 1e6), 2**53),
)
def test_how_many_steps_are_annealed(options, plan, expected):
    assert Annealed(**options).plan(*plan).n_annealing_steps_ == expected


@pytest.mark.parametrize("n_steps", [0, 1])
def test_a_fit_of_one_step_is_not_annealed(n_steps):
    assert Annealed(length=1.0).plan(n_steps, 1).inverse(0) == 1.0


def test_a_stream_is_annealed_only_by_passes():
    assert Annealed().plan(None, 10).inverse(0) == 1.0
    assert Annealed(length=0.5).plan(None, 10).inverse(0) == 1.0
    schedule = Annealed(passes=3).plan(None, 10)
    assert schedule.inverse(29) < 1 == schedule.inverse(30)


@cases(
    "temperature, message",
    (Annealed(length=0.5, passes=1), "'passes' .* None with length=0.5. Got 1"),
    (Annealed(passes=11), "'passes' .* at most the 10 passes of the fit. Got 11"),
    (Annealed("auto"), "'start' .* must be a number for this model. Got 'auto'"),
    (Annealed(10**400), r"'start' .* \[1.0, inf\)"),
)
def test_clear_errors(temperature, message):
    with pytest.raises(ValueError, match="parameter of Annealed must be") as error:
        temperature.plan(100, 10)
    assert re.search(message, str(error.value))


def test_the_base_class_leaves_the_temperature_open():
    with pytest.raises(NotImplementedError):
        Temperature().inverse(0)


def test_what_a_parameter_stands_for():
    assert as_temperature(2).get_params() == Fixed(2.0).get_params()
    assert as_temperature(np.float32(1)).value == 1
    assert as_temperature("annealed").get_params() == Annealed().get_params()
    mine = Annealed(start=7)
    assert as_temperature(mine) is mine


@cases("value", 0.99, 0, -1, math.nan, math.inf, "hot", "fixed", None, [1], 1j, True, Annealed)
def test_not_a_temperature(value):
    with pytest.raises(ValueError, match=r"The 'temperature' parameter must be") as e:
        as_temperature(value)
    assert "[1.0, inf)" in str(e.value) and "'annealed'" in str(e.value)
    assert repr(value) in str(e.value)
