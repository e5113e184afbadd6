"""The variational temperature on a stub of a model: q(y), damping, the plan, errors."""

import math
import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from annealvi import Variational
from annealvi.inference import Monitor, optimise
from annealvi.model import LocalStep, Tempering
from annealvi.partition import LogPartition


class Stub:
    """log C(b) of 30 data of Gaussian noise, and energies told in advance."""

    def __init__(self, energies=()):
        self.energies = iter(energies)
        self.temperings = []
        self.asked = []

    def log_partition(self, inverse):
        return -15.0 * np.log(inverse)

    def local_step(self, batch, tempering, moments=False):
        self.temperings.append(tempering)
        self.asked.append(moments)
        return LocalStep(None, energy=next(self.energies) if moments else None)

    def global_step(self, statistics, rho, scale, tempering):
        pass


def scores(energy, temperatures, prior=None):
    """log pi + b L - log C of Stub, one temperature after another."""
    prior = np.ones(len(temperatures)) if prior is None else np.asarray(prior)
    return np.array(
        [
            math.log(p / prior.sum()) + energy / T - 15.0 * math.log(T)
            for T, p in zip(temperatures, prior, strict=True)
        ]
    )


def show(planned, energy, scale=1.0):
    planned.observe(LocalStep(None, energy=energy), scale)


# -------------------------------------------------------------------- q(y) and b


@pytest.mark.parametrize("prior", [None, [3, 1, 4, 1, 5], np.geomspace(1.0, 1e-9, 5)])
@pytest.mark.parametrize("energy", [-1.0, -40.0, -1e4])
def test_posterior_of_the_temperature(energy, prior):
    temperature = Variational(t_max=16.0, grid=5, prior=prior, damping=1.0, monotone=False)
    planned = temperature.plan(10, model=Stub())
    temperatures = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    show(planned, energy)
    r = softmax(scores(energy, temperatures, prior))
    assert_allclose(planned.posterior_, r, rtol=1e-12, atol=1e-300)
    assert planned.inverse(1) == pytest.approx(np.sum(r / temperatures), rel=1e-12)
    assert planned.tempering(1) == Tempering(planned.inverse(1), "likelihood")


def test_the_worse_the_fit_the_hotter():
    planned = Variational(damping=1.0, monotone=False).plan(10, model=Stub())
    hot = []
    for energy in (-1.0, -30.0, -60.0, -1e4):
        show(planned, energy)
        hot.append(1 / planned.inverse(1))
    assert hot == sorted(hot)
    assert hot[0] < 1.1
    assert hot[-1] == pytest.approx(10.0)


@pytest.mark.parametrize("damping", [0.03, 0.4])
def test_damping_interpolates_log_b(damping):
    planned = Variational(damping=damping, start=5.0, monotone=False).plan(100, model=Stub())
    temperatures, b = np.geomspace(1.0, 10.0, 100), 0.2
    for step, energy in enumerate([-30.0, -16.0, -100.0, -1.0]):
        assert planned.inverse(step) == pytest.approx(b, rel=1e-12)
        show(planned, energy)
        wanted = np.sum(softmax(scores(energy, temperatures)) / temperatures)
        b = math.exp((1 - damping) * math.log(b) + damping * math.log(wanted))
    assert planned.inverse(4) == pytest.approx(b, rel=1e-12)


@pytest.mark.parametrize(
    ("settings", "T"),
    [
        ({"start": 3.0}, 3.0),
        ({"start": 1}, 1.0),
        ({"start": 4.0}, 4.0),
        ({}, 3 / (1 + 1 / 2 + 1 / 4)),
        ({"prior": [6, 1, 1]}, 8 / (6 + 1 / 2 + 1 / 4)),
    ],
)
def test_the_first_step(settings, T):
    planned = Variational(t_max=4.0, grid=3, **settings).plan(10, model=Stub())
    assert planned.inverse(0) == pytest.approx(1 / T, rel=1e-14)
    prior = np.array(settings.get("prior", [1, 1, 1]))
    assert_allclose(planned.posterior_, prior / prior.sum(), rtol=1e-14)


@pytest.mark.parametrize(("t_max", "grid"), [(10.0, 100), (1.5, 2), (1e6, 7), (100, 10)])
def test_grid(t_max, grid):
    grid_ = Variational(t_max=t_max, grid=grid).plan(10, model=Stub()).temperatures_
    assert grid_.shape == (grid,)
    assert (grid_[0], grid_[-1]) == (1.0, t_max)
    assert_allclose(grid_[1:] / grid_[:-1], t_max ** (1 / (grid - 1)), rtol=1e-12)


@pytest.mark.parametrize("energy", [-10.0, np.array([-1.0, -4.0, -5.0])])
def test_scale_multiplies_energies(energy):
    one, other = (Variational(damping=1.0).plan(10, model=Stub()) for _ in range(2))
    show(one, energy, scale=3.5)
    show(other, -35.0)
    assert_allclose(one.posterior_, other.posterior_, rtol=1e-12)
    show(other, -10.0)
    assert not np.allclose(one.posterior_, other.posterior_, rtol=0.1)


@pytest.mark.parametrize("prior", [None, [1, 2, 3, 4]])
def test_tempered_energy(prior):
    planned = Variational(t_max=8.0, grid=4, prior=prior).plan(10, model=Stub())
    show(planned, -33.0)
    r, temperatures = planned.posterior_, np.array([1.0, 2.0, 4.0, 8.0])
    pi = np.full(4, 0.25) if prior is None else np.array(prior) / 10
    for energy in (-33.0, -20.0):  # the model's energy may have moved since
        expected = sum(
            r[m] * (energy / T - 15.0 * math.log(T) - math.log(r[m] / pi[m]))
            for m, T in enumerate(temperatures)
        )
        assert planned.tempered_energy(energy) == pytest.approx(expected, rel=1e-12)


def test_q_maximises_the_tempered_energy():
    planned = Variational(t_max=8.0, grid=4).plan(10, model=Stub())
    show(planned, -33.0)
    best, q = planned.tempered_energy(-33.0), planned.posterior_
    for m in range(4):
        planned.posterior_ = 0.9 * q + 0.1 * np.eye(4)[m]
        assert planned.tempered_energy(-33.0) < best


# -------------------------------------------------------------------- the plan


@pytest.mark.parametrize(
    ("final_fraction", "n_learning"), [(0.25, 15), (0.0, 20), (0.01, 19), (0.99, 0), (0.3, 14)]
)
def test_the_last_part_runs_at_one(final_fraction, n_learning):
    energies = np.linspace(-60.0, -30.0, 20)
    model, monitor = Stub(energies), Monitor()
    temperature = Variational(
        damping=0.5, start=10.0, monotone=False, final_fraction=final_fraction
    )
    planned = temperature.plan(20, model=model)
    with warnings.catch_warnings():  # with these energies it does not cool
        warnings.simplefilter("ignore", ConvergenceWarning)
        optimise(model, range(30), planned, monitor, n_samples=30, n_passes=20)
    path = np.array(monitor.temperature_path)
    assert np.all(path[:n_learning] > 1.01)
    assert_array_equal(path[n_learning:], 1.0)
    assert [planned.settled(t) for t in range(20)] == [t >= n_learning for t in range(20)]
    assert [1 / t.inverse for t in model.temperings] == pytest.approx(path)
    assert model.asked == [t < n_learning for t in range(20)]  # for energies, as long as it learns
    if n_learning:  # q(y) is that of when learning ended
        last = scores(energies[n_learning - 1], planned.temperatures_)
        assert_allclose(planned.posterior_, softmax(last), rtol=1e-10)
    else:
        assert_allclose(planned.posterior_, 0.01, rtol=1e-12)


def test_a_stream_never_settles():
    temperature = Variational(damping=1.0, monotone=False, final_fraction=0.9)
    planned = temperature.plan(None, 7, model=Stub())
    assert not planned.settled(10**9)
    for step in range(50):
        show(planned, -1e4 if step > 10 else -10.0)
    assert planned.inverse(50) == pytest.approx(0.1)


def test_as_printed():
    temperature = Variational.as_printed()
    assert temperature == Variational(
        t_max=10.0,
        grid=100,
        partition="prior",
        damping=1.0,
        start=temperature.start,
        monotone=False,
        energy_average=1.0,
        final_fraction=0.0,
    )
    planned = temperature.plan(50, model=Stub())
    log_c = LogPartition(1 / np.geomspace(1, 10, 100), np.zeros(100), "monte-carlo")
    assert Variational.as_printed(log_c).partition is log_c
    # the first step is at the mean of b under a uniform q(y)
    assert planned.inverse(0) == pytest.approx(np.mean(np.geomspace(1, 0.1, 100)), rel=1e-12)
    assert not planned.settled(49)


@pytest.mark.parametrize("prior", [None, [1.0, 2.0, 3.0], np.array([1.0, 2.0, 3.0])])
def test_a_plan_does_not_change_the_object(prior):
    temperature = Variational(t_max=4.0, grid=3, prior=prior, monotone=False)
    before = repr(temperature), dict(vars(temperature)), pickle.dumps(temperature)
    first = temperature.plan(10, model=Stub())
    show(first, -1e4)
    assert (repr(temperature), dict(vars(temperature))) == before[:2]
    assert pickle.dumps(temperature) == before[2]
    second = temperature.plan(10, model=Stub())  # nor does one fit reach into the next
    assert second.inverse(0) != pytest.approx(first.inverse(1), rel=0.001)
    assert first == temperature


# -------------------------------------------------------------------- parameters


def test_are_parameters_in_the_sense_of_scikit_learn():
    temperature = Variational(t_max=4, grid=3, prior=np.array([1.0, 2.0, 3.0]), start=2)
    copy = clone(temperature)
    assert copy == temperature
    assert copy is not temperature
    assert hash(copy) == hash(temperature)
    assert set(copy.get_params()) == {
        "t_max",
        "grid",
        "prior",
        "partition",
        "damping",
        "start",
        "monotone",
        "energy_average",
        "final_fraction",
    }
    assert_array_equal(copy.get_params()["prior"], [1, 2, 3])
    assert repr(temperature) == "Variational(grid=3, prior=array([1., 2., 3.]), start=2, t_max=4)"
    assert repr(Variational()) == "Variational()"
    assert pickle.loads(pickle.dumps(temperature)) == temperature
    assert copy.set_params(prior=None, damping=0.5).damping == 0.5
    assert copy.prior is None
    assert copy != temperature
    assert_array_equal(temperature.prior, [1.0, 2.0, 3.0])


def test_compare():
    array = np.array([1.0, 2.0])
    assert Variational(grid=2, prior=array) == Variational(grid=2, prior=array.copy())
    assert Variational(grid=2, prior=array) == Variational(grid=2, prior=[1, 2])
    assert Variational(grid=2, prior=array) != Variational(grid=2, prior=array + 1)
    assert Variational(grid=2, prior=array) != Variational(grid=2)
    assert Variational() != Variational(start=10.0)
    assert Variational() != "variational"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"t_max": 1}, ["'t_max'", "(1.0, inf)", "Got 1"]),
        ({"t_max": 0.5}, ["'t_max'", "(1.0, inf)", "Got 0.5"]),
        ({"t_max": math.inf}, ["'t_max'", "Got inf"]),
        ({"t_max": math.nan}, ["'t_max'", "Got nan"]),
        ({"t_max": "hot"}, ["'t_max'", "(1.0, inf)", "Got 'hot'"]),
        ({"grid": 1}, ["'grid'", "[2, inf)", "Got 1"]),
        ({"grid": 10.5}, ["'grid'", "int", "Got 10.5"]),
        ({"damping": 0}, ["'damping'", "(0.0, 1.0]", "Got 0"]),
        ({"damping": 1.5}, ["'damping'", "(0.0, 1.0]", "Got 1.5"]),
        ({"damping": math.nan}, ["'damping'", "Got nan"]),
        ({"start": 11.0}, ["'start'", "at most its 't_max'", "start=11.0", "t_max=10.0"]),
        ({"start": 0.9}, ["'start'", "[1.0, inf)", "Got 0.9"]),
        ({"start": math.inf}, ["'start'", "inf"]),
        ({"start": math.nan}, ["'start'", "Got nan"]),
        ({"final_fraction": 1}, ["'final_fraction'", "[0.0, 1.0)", "Got 1"]),
        ({"final_fraction": -0.1}, ["'final_fraction'", "[0.0, 1.0)", "Got -0.1"]),
        ({"prior": np.ones(5)}, ["'prior'", "shape (100,)", "Got shape (5,)"]),
        ({"prior": np.ones((100, 1))}, ["'prior'", "shape (100,)", "Got shape (100, 1)"]),
        ({"prior": ["a", "b"], "grid": 2}, ["'prior'", "array of numbers", "dtype <U1"]),
        ({"prior": [True, True], "grid": 2}, ["'prior'", "array of numbers", "dtype bool"]),
        ({"prior": [1.0, -0.5], "grid": 2}, ["'prior'", "positive and finite", "Got -0.5"]),
        ({"prior": [1, 0], "grid": 2}, ["'prior'", "positive and finite", "Got 0"]),
        ({"prior": [1.0, math.nan], "grid": 2}, ["'prior'", "positive and finite", "Got nan"]),
        ({"prior": [1.0, math.inf], "grid": 2}, ["'prior'", "positive and finite", "Got inf"]),
        ({"prior": 1.0}, ["'prior'", "array-like", "Got 1.0"]),
    ],
)
def test_clear_errors(settings, words):
    with pytest.raises(ValueError) as e:
        Variational(**settings).plan(100, model=Stub())
    for word in ["Variational", *words]:
        assert word in str(e.value)


@pytest.mark.parametrize("model", [None, object(), LocalStep(None)])
def test_a_model_must_know_its_normaliser(model):
    with pytest.raises(ValueError, match=r"needs a model with a 'log_partition' method"):
        Variational().plan(10, model=model)


class Shapeless(Stub):
    def log_partition(self, inverse):
        return self.value


@pytest.mark.parametrize(
    "value", [0.0, np.zeros(3), np.zeros((4, 1)), [0, 1, 2, math.nan], [math.inf] * 4]
)
def test_a_wrong_normaliser(value):
    model = Shapeless()
    model.value = value
    planned = Variational(grid=4).plan(10, model=model)
    message = r"'log_partition' of Shapeless must give one finite number for each of 4 inverse"
    with pytest.raises(ValueError, match=message):
        show(planned, -1.0)
    with pytest.raises(ValueError, match=message):
        planned.tempered_energy(-1.0)


def test_the_normaliser_is_asked_anew():
    model = Shapeless()
    model.value = np.zeros(2)
    planned = Variational(t_max=2.0, grid=2, damping=1.0).plan(10, model=model)
    show(planned, 0.0)
    assert_allclose(planned.posterior_, [0.5, 0.5])
    model.value = np.log([1.0, 3.0])
    show(planned, 0.0)
    assert_allclose(planned.posterior_, [0.75, 0.25])
