"""The variational temperature over a fit in batches: averages, damping, the plan, the warning."""

import math
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from annealvi import Variational
from annealvi.inference import Monitor, optimise
from annealvi.model import LocallyNormalised, LocalStep
from tests.temperature.stubs import GRID, B, Gauss, Words, posterior, show, vt

# ------------------------------------------------------------------ what is averaged


def test_the_stubs_are_what_they_stand_for():
    assert isinstance(Words(), LocallyNormalised)
    assert not isinstance(Gauss(), LocallyNormalised)


@pytest.mark.parametrize("weight", [0.1, 0.3, 1.0])
def test_minibatches_are_averaged(weight):
    rng = np.random.RandomState(0)
    planned = vt(energy_average=weight).plan(50, model=Words())
    energies, log_cs = -rng.rand(8) - 3, rng.rand(8, 1) * np.log(GRID)
    energy, log_c = 20 * energies[0], 20 * log_cs[0]
    for step in range(8):
        if step:
            energy = (1 - weight) * energy + weight * 20 * energies[step]
            log_c = (1 - weight) * log_c + weight * 20 * log_cs[step]
        show(planned, energies[step], log_cs[step], scale=20.0)
        assert_allclose(planned.posterior_, posterior(energy, log_c), rtol=1e-10)
        assert planned.inverse(step + 1) == pytest.approx(planned.posterior_ @ B, rel=1e-14)


def test_batches_of_other_sizes_are_scaled_before_they_are_averaged():
    one, other = (vt().plan(50, model=Words()) for _ in range(2))
    for energy in (-30.0, -40.0, -35.0):
        show(one, energy, 12 * np.log(GRID), n_units=10, scale=3.0)
        show(other, 2 * energy, 24 * np.log(GRID), n_units=20, scale=1.5)
    assert_allclose(one.posterior_, other.posterior_, rtol=1e-12)


def test_steps_that_see_all_data_are_not_averaged():
    planned = vt(energy_average=0.1).plan(50, model=Words())
    for energy, scale in [(-90.0, 1.0), (-30.0, 1), (-55.0, 1.0)]:
        log_c = -energy / 3 * np.log(GRID)
        show(planned, energy, log_c, scale=scale)
        assert_allclose(planned.posterior_, posterior(energy, log_c), rtol=1e-12)


def test_a_normaliser_at_the_current_q_need_not_be_one_at_T_1():
    one, other = (vt().plan(50, model=Words()) for _ in range(2))
    show(one, -30.0, 25 * np.log(GRID))
    show(other, -30.0, 25 * np.log(GRID) - 77.0)
    assert_allclose(one.posterior_, other.posterior_, rtol=1e-12)
    assert one.tempered_energy(-30.0) == pytest.approx(other.tempered_energy(-30.0), rel=1e-12)


def test_billions_of_words():
    planned = vt().plan(10, model=Words())
    show(planned, -7e9, 1e9 * 6.9 * np.log(GRID) / np.log(16), n_units=1e9, scale=1.0)
    assert_array_equal(np.sort(planned.posterior_), [0, 0, 0, 0, 1])
    assert np.isfinite(planned.tempered_energy(-7e9))


# ------------------------------------------------------------------ damping and the plan


def test_T_may_only_fall():
    planned = vt(monotone=True, start=16.0).plan(50, model=Gauss())
    free = vt(start=16.0).plan(50, model=Gauss())
    path, unbound = [], []
    for energy in (-60.0, -16.0, -80.0, -1e4, -5.0, -40.0):
        show(planned, energy)
        show(free, energy)
        path.append(planned.inverse(1))
        unbound.append(free.inverse(1))
    assert_allclose(path, np.maximum.accumulate(unbound), rtol=1e-14)
    assert len(set(path)) == 3


class Following:
    """Energies and log C of a model that comes to explain its data."""

    def __init__(self, known):
        self.known = known
        self.step = 0

    def local_step(self, batch, tempering, moments=False):
        self.step += 1
        n = len(batch.data[batch.rows])
        energy = -n * (2 + 4 * math.exp(-self.step / 8))
        log_c = None if self.known else n * 2.5 * (1 - self.inverses)
        return LocalStep(None, energy, log_partition=log_c, n_units=float(n))

    def global_step(self, statistics, rho, scale, tempering):
        pass

    def normalise_at(self, inverse):
        self.inverses = inverse

    def log_mean_unit(self, inverse):
        return 2.5 * (1 - inverse)

    hyperparameters = dict


@pytest.mark.parametrize("partition", ["posterior", "prior"])
@pytest.mark.parametrize("batch_size", [None, 8])
def test_a_whole_fit_cools_and_ends_at_T_1(partition, batch_size):
    model, monitor = Following(partition == "prior"), Monitor()
    n_steps = 60 if batch_size is None else 180
    n_passes = 60 if batch_size is None else 36
    planned = Variational(partition=partition).plan(n_steps, model=model)
    optimise(
        model,
        np.zeros(40),
        planned,
        monitor,
        n_samples=40,
        n_passes=n_passes,
        batch_size=batch_size,
    )
    path = np.array(monitor.temperature_path)
    assert path[0] == pytest.approx(np.mean(np.geomspace(1, 10, 100)))
    assert np.all(np.diff(path) <= 0)
    last = int(0.75 * n_steps)
    assert np.all(path[last:] == 1) and 1 < path[last - 1] < 1.1
    assert planned.path().shape == (last, 100)
    assert planned.path().dtype == np.float32
    assert_allclose(planned.path()[-1], planned.posterior_, rtol=1e-6)
    assert planned.learned().inverse == pytest.approx(1 / path[last - 1], rel=0.02)
    assert planned.learned().rule is None


def test_nothing_is_learned_once_T_is_1():
    planned = vt().plan(4, model=Gauss())
    for energy in (-16.0, -15.0, -14.0):
        show(planned, energy)
    before = planned.posterior_.copy(), planned.learned(), len(planned.path())
    show(planned, -1e5)
    assert_array_equal(planned.posterior_, before[0])
    assert (planned.learned(), len(planned.path())) == before[1:]
    assert planned.path().shape == (3, 5)
    assert vt().plan(4, model=Gauss()).path().shape == (0, 5)


# ------------------------------------------------------------------ the warning


def numbers(message):
    """The energy and the threshold that the warning names."""
    energy = float(message.split("the energy is ")[1].split(" nats")[0])
    return energy, float(message.split("preferred up to ")[1].split(" with")[0])


@pytest.mark.parametrize("settings", [{}, {"partition": "prior"}, {"grid": [1, 1.3, 2, 7]}])
@pytest.mark.parametrize("scale", [1.0, 5.0])
def test_the_warning_names_both_numbers(settings, scale):
    temperature = vt(**settings, final_fraction=0.5)
    planned = temperature.plan(2, model=Words())
    grid = planned.temperatures_
    log_c = 100 * 3.0 * np.log(grid) ** 1.1
    with pytest.warns(ConvergenceWarning, match="did not cool to 1: at T") as record:
        show(planned, -700.0, log_c, n_units=100.0, scale=scale)
    message = str(record[0].message)
    energy, threshold = numbers(message)
    assert energy == 7.0
    assert " nats a word" in message
    assert f"partition={settings.get('partition', 'posterior')!r}" in message
    assert f"T = {1 / planned.inverse(1):.3g} the energy" not in message  # that is T = 1 by now
    assert f"at T = {1 / planned.learned().inverse:.3g} the energy" in message
    # T = 1 is preferred below the threshold, and not above it
    for factor, cold in ((0.999, True), (1.001, False)):
        planned = temperature.plan(2, model=Words())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            show(planned, -1e4 * factor * threshold, 100 * log_c, n_units=1e4)
        assert (np.argmax(planned.posterior_) == 0) == cold


def test_the_warning_where_log_c_is_given_or_exact():
    planned = vt(partition=20 * np.log(GRID), final_fraction=0.5).plan(2, model=Gauss())
    with pytest.warns(ConvergenceWarning, match=r"energy is 2 nats a word.*log C.T. as given"):
        show(planned, -40.0, n_units=20)
    # exact: T tells how much more noise there is than was assumed, which is no failure
    planned = vt(final_fraction=0.5).plan(2, model=Gauss())
    planned.observe(LocalStep(None, np.full(30, -4.0)), 1.0)
    assert planned.inverse(0) < 0.5


def test_no_warning_where_it_cools_or_may_still_cool():
    planned = vt().plan(4, model=Words())  # warnings are errors here
    show(planned, -700.0, 300 * np.log(GRID))
    show(planned, -700.0, 300 * np.log(GRID))
    show(planned, -100.0, 300 * np.log(GRID))  # the last step that learns
    show(planned, -700.0, 300 * np.log(GRID))
    slow = vt(damping=1e-6, start=8.0).plan(4, model=Words())
    for _ in range(3):  # q(y) is at T = 1; that damping keeps T up is what was asked for
        show(slow, -100.0, 300 * np.log(GRID))


def test_a_stream_is_warned_of_after_a_pass():
    planned = vt().plan(None, 3.0, model=Words())
    for _ in range(2):
        show(planned, -700.0, 300 * np.log(GRID), scale=30.0)
    with pytest.warns(ConvergenceWarning, match="did not cool"):
        show(planned, -700.0, 300 * np.log(GRID), scale=30.0)
    for _ in range(10):  # once
        show(planned, -700.0, 300 * np.log(GRID), scale=30.0)


@pytest.mark.parametrize("energy", [None, math.nan, -math.inf])
def test_energies_must_be_finite(energy):
    planned = vt().plan(10, model=Words())
    with pytest.raises(ValueError, match="needs finite energies of Words"):
        show(planned, energy, np.zeros(5))
