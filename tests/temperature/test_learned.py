"""What both learned temperatures share: damping, copies, plans, errors."""

import math
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from annealvi import Annealed, Fixed, LocalVariational, Proximity, Variational
from annealvi.model import UNTEMPERED, LocalStep, Tempering
from annealvi.temperature import as_temperature
from tests.lda.resumed import quietly
from tests.marks import cases
from tests.temperature.stubs import B, Gauss, Words, made_for, posterior, show, vt


@cases(
    "n_steps, steps_per_pass, S",
    (2, 1, 2),
    (10, 1, 10),
    (400, 7, 400),
    (None, 25.0, 25),
    (None, 24.3, 25),
    (None, 0.01, 1),
)
def test_default_damping(n_steps, steps_per_pass, S):
    """log T relaxes by exp(-12) over the planned steps, or over a pass of a stream."""
    temperature = vt(damping=None, start=16.0, final_fraction=0)
    # where log C is exact it is slow whatever S is
    for model, left in ((Words(), math.exp(-12 / S)), (Gauss(), 0.97)):
        planned = temperature.plan(n_steps, steps_per_pass, model=model)
        log_c = -15 * np.log(B)
        quietly(show, planned, -1.0, log_c if isinstance(model, Words) else None)
        wanted = posterior(-1.0, log_c) @ B
        found = math.log(planned.inverse(1) / wanted) / math.log(1 / 16 / wanted)
        assert found == pytest.approx(left, rel=1e-9)
    level = LocalVariational(final_fraction=0).plan(n_steps, steps_per_pass, model=Words())
    show(level, -1.0, np.zeros(100))
    assert level.inverse(1) == pytest.approx(3.9 ** -math.exp(-12 / S), rel=1e-12)


def test_log_c_at_the_current_q_is_asked_for_on_the_grid():
    vt(partition="posterior").plan(10, model=(model := Words()))
    assert_allclose(model.asked, B, rtol=1e-14)
    LocalVariational(grid=4).plan(10, model=(model := Words()))
    assert_array_equal(model.asked, [0.25, 0.5, 0.75, 1])


SAME = [
    Annealed(start=2, shape="linear", form="posterior"),
    Fixed(2, form="posterior"),
    Proximity("kl", magnitude=5, decay=0.9),
    Variational(t_max=4, grid=np.array([1.0, 2.0, 3.0]), prior=np.array([1.0, 2.0, 3.0])),
    Variational(grid=[1, 2], partition=np.array([0.0, 3.0]), damping=0.5, energy_average=1),
    Variational(grid=5, t_max=16, partition=made_for(n_words=5)),
    Variational.as_printed(),
    LocalVariational(grid=3, prior=np.array([1.0, 2.0, 3.0]), undamped=True),
    LocalVariational(continuous=True, prior=[2, 1], normaliser="corpus", rounds=6),
]


@pytest.mark.parametrize("temperature", SAME, ids=range(len(SAME)))
def test_copies(temperature):
    for copy in (clone(temperature), pickle.loads(pickle.dumps(temperature))):
        assert copy is not temperature and type(copy) is type(temperature)
        assert copy == temperature
        assert hash(copy) == hash(temperature)
        assert repr(copy).split("LogPartition")[0] == repr(temperature).split("LogPartition")[0]
        assert set(copy.get_params()) == set(temperature.get_params())
    name, value = list(temperature.get_params().items())[-1]
    assert clone(temperature).set_params(**{name: 0.125 if value != 0.125 else 0.25}) != temperature
    assert temperature not in [other for other in SAME if other is not temperature]


def test_compare():
    array = np.array([1.0, 2.0])
    assert Variational(grid=2, prior=array) == Variational(grid=2, prior=[1, 2])
    assert Variational(grid=2, prior=array) != Variational(grid=2, prior=array + 1)
    assert Variational(grid=2, prior=array) != Variational(grid=2)
    assert Variational() != "variational"


@pytest.mark.parametrize("temperature", SAME[3:5] + SAME[6:])
def test_a_plan_changes_nothing(temperature):
    before = pickle.dumps(temperature)
    planned = temperature.plan(10, model=Words())
    size = temperature.grid if isinstance(temperature.grid, int) else len(temperature.grid)
    show(planned, -100.0, np.zeros(size), scale=2.0)
    planned.tempering(1)
    assert pickle.dumps(temperature) == before
    again = pickle.loads(pickle.dumps(planned))  # partial_fit goes on from a pickle
    for one in (planned, again):
        show(one, -90.0, np.ones(size), scale=2.0)
    assert again.inverse(2) == planned.inverse(2)


#: What a parameter's own constraint says is tested in tests/project/test_bad_parameters.py.
WRONG_FOR_BOTH = [
    *({"prior": np.ones(5)}, {"prior": [1, 0], "grid": 2}, {"prior": [1, math.nan], "grid": 2}),
    *({"prior": ["a", "b"], "grid": 2}, {"prior": [[1], [2, 3]], "grid": 2}),
]
WRONG = [
    *(Variational(start=11.0), Variational(prior=np.ones((100, 1)))),
    *(LocalVariational(grid=[1, 2]), LocalVariational(continuous=True, prior=np.ones(100))),
    LocalVariational(continuous=True, prior=[1, -1]),
    *(make(**wrong) for make in (Variational, LocalVariational) for wrong in WRONG_FOR_BOTH),
]


@pytest.mark.parametrize("temperature", WRONG, ids=map(repr, WRONG))
def test_clear_errors(temperature):
    name = type(temperature).__name__
    with pytest.raises(
        ValueError, match=rf"The '(\w+)' parameter of {name} must be .* Got"
    ) as error:
        temperature.plan(100, model=Words())
    assert f"{str(error.value).split(chr(39))[1]}=" in repr(temperature)
    with pytest.raises(ValueError):
        as_temperature(temperature)


def test_schedules_have_learned_nothing():
    for value in (1, 2.5, "annealed"):
        assert as_temperature(value).plan(10).learned() is None
    planned = vt().plan(10, model=Gauss())
    assert planned.learned() == UNTEMPERED
    planned.observe(LocalStep(None, -40.0), 1.0)
    assert planned.learned() == Tempering(planned.inverse(1)) != UNTEMPERED
