"""The variational temperature on stubs of models: q(y), damping, the plan, log C(T), errors."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning

from annealvi import Variational
from annealvi.inference import Monitor, optimise
from annealvi.model import LocalStep, Tempering
from annealvi.partition import LogPartition
from tests.asserts import refusals, refused
from tests.lda.resumed import quietly
from tests.marks import cases
from tests.temperature.stubs import GRID, B, Gauss, Words, made_for, posterior, show, vt


class Stub(Gauss):
    """Steps with energies told in advance."""

    def __init__(self, energies):
        self.energies = iter(energies)
        self.temperings = []
        self.asked = []

    def local_step(self, batch, tempering, moments=False):
        self.temperings.append(tempering)
        self.asked.append(moments)
        return LocalStep(None, energy=next(self.energies) if moments else None)

    def global_step(self, statistics, rho, scale, tempering):
        pass


def scores(energy, temperatures, prior=None):
    """log pi + b L - log C of Gauss, one temperature after another."""
    prior = np.ones(len(temperatures)) if prior is None else np.asarray(prior)
    both = zip(temperatures, prior / prior.sum(), strict=True)
    return np.array([math.log(p) + energy / T - 15.0 * math.log(T) for T, p in both])


@pytest.mark.parametrize("prior", [None, [3, 1, 4, 1, 5], np.geomspace(1.0, 1e-9, 5)])
@pytest.mark.parametrize("energy", [-1.0, -40.0, -1e4])
def test_posterior_of_the_temperature(energy, prior):
    temperature = Variational(t_max=16.0, grid=5, prior=prior, damping=1.0, monotone=False)
    planned = temperature.plan(10, model=Gauss())
    temperatures = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    show(planned, energy)
    r = softmax(scores(energy, temperatures, prior))
    assert_allclose(planned.posterior_, r, rtol=1e-12, atol=1e-300)
    assert planned.inverse(1) == pytest.approx(np.sum(r / temperatures), rel=1e-12)
    assert planned.tempering(1) == Tempering(planned.inverse(1), "likelihood")


@pytest.mark.parametrize("damping", [0.03, 0.4])
def test_damping_interpolates_log_b(damping):
    planned = Variational(damping=damping, start=5.0, monotone=False).plan(100, model=Gauss())
    temperatures, b = np.geomspace(1.0, 10.0, 100), 0.2
    for step, energy in enumerate([-30.0, -16.0, -100.0, -1.0]):
        assert planned.inverse(step) == pytest.approx(b, rel=1e-12)
        show(planned, energy)
        wanted = np.sum(softmax(scores(energy, temperatures)) / temperatures)
        b = math.exp((1 - damping) * math.log(b) + damping * math.log(wanted))
    assert planned.inverse(4) == pytest.approx(b, rel=1e-12)


@cases(
    "settings, T",
    ({"start": 3.0}, 3.0),
    ({"start": 1}, 1.0),
    ({"start": 4.0}, 4.0),
    ({}, 3 / (1 + 1 / 2 + 1 / 4)),
    ({"prior": [6, 1, 1]}, 8 / (6 + 1 / 2 + 1 / 4)),
)
def test_the_first_step(settings, T):
    planned = Variational(t_max=4.0, grid=3, **settings).plan(10, model=Gauss())
    assert planned.inverse(0) == pytest.approx(1 / T, rel=1e-14)
    prior = np.array(settings.get("prior", [1, 1, 1]))
    assert_allclose(planned.posterior_, prior / prior.sum(), rtol=1e-14)


@pytest.mark.parametrize("prior", [None, [1, 2, 3, 4]])
def test_tempered_energy(prior):
    planned = Variational(t_max=8.0, grid=4, prior=prior).plan(10, model=Gauss())
    show(planned, -33.0)
    r, temperatures = planned.posterior_, np.array([1.0, 2.0, 4.0, 8.0])
    pi = np.full(4, 0.25) if prior is None else np.array(prior) / 10
    for energy in (-33.0, -20.0):  # the model's energy may have moved since
        expected = sum(
            r[m] * (energy / T - 15.0 * math.log(T) - math.log(r[m] / pi[m]))
            for m, T in enumerate(temperatures)
        )
        assert planned.tempered_energy(energy) == pytest.approx(expected, rel=1e-12)
        # q maximises it
        best = planned.tempered_energy(-33.0)
    for m in range(4):
        planned.posterior_ = 0.9 * r + 0.1 * np.eye(4)[m]
        assert planned.tempered_energy(-33.0) < best


@cases("final_fraction, n_learning", (0.25, 15), (0.0, 20), (0.01, 19), (0.99, 0), (0.3, 14))
def test_the_last_part_runs_at_one(final_fraction, n_learning):
    energies = np.linspace(-60.0, -30.0, 20)
    model, monitor = Stub(energies), Monitor()
    options = dict(damping=0.5, start=10.0, monotone=False)
    temperature = Variational(final_fraction=final_fraction, **options)
    planned = temperature.plan(20, model=model)
    # with these energies it does not cool
    quietly(optimise, model, range(30), planned, monitor, n_samples=30, n_passes=20)
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
    planned = temperature.plan(None, 7, model=Gauss())
    assert not planned.settled(10**9)
    for step in range(50):
        show(planned, -1e4 if step > 10 else -10.0)
    assert planned.inverse(50) == pytest.approx(0.1)


def test_as_printed():
    temperature = Variational.as_printed()
    undamped = dict(damping=1.0, monotone=False, energy_average=1.0, final_fraction=0.0)
    start = temperature.start
    assert temperature == Variational(10.0, 100, partition="prior", start=start, **undamped)
    planned = temperature.plan(50, model=Gauss())
    log_c = LogPartition(np.geomspace(1, 10, 100), np.zeros(100), "monte-carlo")
    assert Variational.as_printed(log_c).partition is log_c
    # the first step is at the mean of b under a uniform q(y)
    assert planned.inverse(0) == pytest.approx(np.mean(np.geomspace(1, 0.1, 100)), rel=1e-12)
    assert not planned.settled(49)


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


def test_nothing_is_learned_once_T_is_1():
    planned = vt().plan(4, model=Gauss())
    for energy in (-16.0, -15.0, -14.0):
        show(planned, energy)
    before = planned.posterior_.copy(), planned.learned(), len(planned.path())
    show(planned, -1e5)
    assert_array_equal(planned.posterior_, before[0])
    assert (planned.learned(), len(planned.path())) == before[1:]
    assert planned.path().shape == (3, 5) and planned.path().dtype == np.float32
    assert_allclose(planned.path()[-1], planned.posterior_, rtol=1e-6)
    assert vt().plan(4, model=Gauss()).path().shape == (0, 5)


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


def numbers(message):
    """The energy and the threshold, minus the log-likelihoods in the warning."""
    energy = -float(message.split("log-likelihood is ")[1].split(" nats")[0])
    return energy, -float(message.split("log-likelihood is at least ")[1].split(". ")[0])


@pytest.mark.parametrize("settings", [{}, {"partition": "prior"}, {"grid": [1, 1.3, 2, 7]}])
@pytest.mark.parametrize("scale", [1.0, 5.0])
def test_the_warning_names_both_numbers(settings, scale):
    temperature = vt(**settings, final_fraction=0.5)
    planned = temperature.plan(2, model=Words())
    log_c = 100 * 3.0 * np.log(planned.temperatures_) ** 1.1
    with pytest.warns(ConvergenceWarning, match="did not cool to 1. At T") as record:
        show(planned, -700.0, log_c, n_units=100.0, scale=scale)
    message = str(record[0].message)
    energy, threshold = numbers(message)
    assert energy == 7.0
    assert " nats per word" in message
    assert f"partition={settings.get('partition', 'posterior')!r}" in message
    assert (
        f"At T = {1 / planned.inverse(1):.3g} the expected" not in message
    )  # that is T = 1 by now
    assert f"At T = {1 / planned.learned().inverse:.3g} the expected" in message
    # T = 1 is preferred below the threshold, and not above it
    for factor, cold in ((0.999, True), (1.001, False)):
        planned = temperature.plan(2, model=Words())
        quietly(show, planned, -1e4 * factor * threshold, 100 * log_c, n_units=1e4)
        assert (np.argmax(planned.posterior_) == 0) == cold


def test_the_warning_where_log_c_is_given_or_exact():
    planned = vt(partition=20 * np.log(GRID), final_fraction=0.5).plan(2, model=Gauss())
    with pytest.warns(
        ConvergenceWarning, match="likelihood is -2 nats per word.*given 'partition'"
    ):
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
    refused("log-likelihood of Words .* must be finite", show, planned, energy, np.zeros(5))


@cases(
    "partition",
    40 * np.log(GRID),
    list(40 * np.log(GRID)),
    made_for(),
    made_for(n_words=1000, n_topics=5),
    ids=["array", "list", "LogPartition", "made for it"],
)
@pytest.mark.parametrize("model", [Words, Gauss, object])
def test_log_c_worked_out_before(model, partition):
    planned = vt(partition=partition).plan(10, model=(made := model()))
    for energy in (-30.0, -80.0):
        # not of the batch, so it is not scaled with it
        show(planned, energy / 4, 99 * np.ones(5), scale=4.0)
    average = 0.9 * -30 + 0.1 * -80
    assert_allclose(planned.posterior_, posterior(average, 40 * np.log(GRID)), rtol=1e-12)
    terms = -30 * B - 40 * np.log(GRID) - np.log(5 * planned.posterior_)
    assert planned.tempered_energy(-30.0) == pytest.approx(planned.posterior_ @ terms)
    assert getattr(made, "asked", None) is None


def test_log_c_over_the_prior_is_of_so_many_words():
    planned = vt(partition="prior").plan(10, model=(model := Words()))
    assert model.asked is None
    show(planned, -40.0, n_units=20.0, scale=3.0)
    assert_allclose(planned.posterior_, posterior(-120.0, -60 * 1.5 * np.log(B)), rtol=1e-12)


test_a_wrong_log_c = refusals(
    lambda partition: vt(partition=partition).plan(10, model=Words()),
    (made_for(n_words=999), "different hyperparameters. 'n_words' is 999"),
    (made_for(n_features=8), "'n_features' is 8, expected 7"),
    (LogPartition(GRID[:4], np.zeros(4)), "a different grid .* has 4 points, expected 5"),
    (LogPartition(np.linspace(1, 10, 5), np.zeros(5)), r"grid .*\[1\] is 3.25, expected 2.0"),
    (LogPartition(GRID, np.full(5, math.nan)), "'values' .* finite"),
    (LogPartition(GRID, np.zeros(4)), "'values'"),
    (np.zeros(4), r"'partition' .* shape \(5,\). Got shape \(4,\)"),
    (["a"] * 5, r"'partition' .* Got shape \(5,\) and dtype <U1"),
    ([0.0, 1, 2, 3, -math.inf], "'partition' .* must be finite. Got -inf"),
    ([[0.0], [1, 2]], "'partition' parameter of Variational"),
)


def test_another_model_is_checked_as_the_first_was():
    planned = vt(partition=made_for(n_words=1000)).plan(10, model=Words())
    other = Words()
    other.known = {"n_words": 500.0}
    refused("'n_words' is 1000, expected 500", planned.attach, other)
    planned = vt().plan(10, model=Words())
    show(planned, -30.0, 20 * np.log(GRID))
    before = planned.inverse(1)
    planned.attach(other)
    assert_allclose(other.asked, B, rtol=1e-14)
    assert planned.inverse(1) == before  # what was learned stays


@pytest.mark.parametrize("model", [None, object(), LocalStep(None)])
def test_a_model_must_know_its_normaliser(model):
    refused(r"needs a model with a 'log_partition' method", Variational().plan, 10, model=model)


class Shapeless(Gauss):
    def log_partition(self, inverse):
        return self.value


@cases("value", 0.0, np.zeros(3), np.zeros((4, 1)), [0, 1, 2, math.nan], [math.inf] * 4)
def test_a_wrong_normaliser(value):
    model = Shapeless()
    model.value = value
    planned = Variational(grid=4).plan(10, model=model)
    message = r"'log_partition' of Shapeless must return one finite number for each of 4 inverse"
    refused(message, show, planned, -1.0)
    refused(message, planned.tempered_energy, -1.0)


def test_the_normaliser_is_asked_anew():
    model = Shapeless()
    model.value = np.zeros(2)
    planned = Variational(t_max=2.0, grid=2, damping=1.0).plan(10, model=model)
    show(planned, 0.0)
    assert_allclose(planned.posterior_, [0.5, 0.5])
    model.value = np.log([1.0, 3.0])
    show(planned, 0.0)
    assert_allclose(planned.posterior_, [0.75, 0.25])


@cases("grid", [1, 2, 4, 8, 16], (1.0, 1.5, 3.0), np.array([1, 1.0001]), np.arange(1, 200))
def test_grids_of_ones_own(grid):
    temperature = Variational(t_max=1.7, grid=grid)  # t_max is not used
    planned = temperature.plan(10, model=Words())
    assert_array_equal(planned.temperatures_, np.asarray(grid, dtype=float))
    assert planned.temperatures_.dtype == np.float64
    assert planned.inverse(0) == pytest.approx(1 / np.mean(grid))
    assert planned.posterior_.shape == (len(grid),)


@cases(
    "grid",
    *([1.1, 2], [0.5, 1, 2], [1, 2, 2], [1, 3, 2], [1, 2, math.inf], [1, math.nan, 2], [1], []),
    *([[1, 2], [3, 4]], [[1], [2, 3]], ["cold", "hot"], "fine", None, 0, 10**30),
)
def test_wrong_grids(grid):
    with pytest.raises(ValueError, match=r"The 'grid' parameter of Variational must be .* Got "):
        Variational(grid=grid).plan(10, model=Words())


def test_what_goes_with_a_grid_of_ones_own():
    refused(r"'start' .* at most t_max=4.0. Got 5.0", Variational(grid=[1, 2, 4], start=5.0).check)
    refused(r"'prior' .* shape \(3,\)", Variational(grid=[1, 2, 4], prior=[1, 1]).check)
    Variational(grid=[1, 2, 4], start=4.0, prior=[1, 2, 1]).check()
