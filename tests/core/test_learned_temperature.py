"""Temperatures learned from batches, on stubs of models: averages, log C, rules, errors."""

import math
import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.special import softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from annealvi import LocalVariational, TemperedFMM, TemperedGaussianMixture, Variational
from annealvi.inference import Monitor, optimise
from annealvi.model import UNTEMPERED, LocallyNormalised, LocalStep, Tempering
from annealvi.partition import LogPartition
from annealvi.temperature import as_temperature
from annealvi.temperature.local import DocumentRule

GRID = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
B = 1 / GRID


class WordStep(LocalStep):
    unit = "word"


class Words:
    """A model whose batches bring log C, as documents do."""

    known = {"n_words": 1000.0, "n_features": 7}  # noqa: RUF012

    def __init__(self):
        self.asked = None

    def normalise_at(self, inverse):
        self.asked = inverse

    def log_mean_unit(self, inverse):
        return -1.5 * np.log(inverse)

    def hyperparameters(self):
        return self.known


class Gauss:
    """A model that knows its normaliser."""

    n_samples = 30

    def log_partition(self, inverse):
        return -15.0 * np.log(inverse)


def show(planned, energy, log_c=None, n_units=100.0, scale=1.0):
    log_c = None if log_c is None else np.asarray(log_c, dtype=float)
    planned.observe(WordStep(None, energy, log_partition=log_c, n_units=n_units), scale)


def vt(**settings):
    defaults = dict(t_max=16.0, grid=5, damping=1.0, monotone=False)
    return Variational(**(defaults | settings))


def posterior(energy, log_c):
    return softmax(B * energy - log_c)


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


@pytest.mark.parametrize(
    ("n_steps", "steps_per_pass", "S"),
    [(2, 1, 2), (10, 1, 10), (400, 7, 400), (None, 25.0, 25), (None, 24.3, 25), (None, 0.01, 1)],
)
def test_default_damping(n_steps, steps_per_pass, S):
    """log T relaxes by exp(-12) over the planned steps, or over a pass of a stream."""
    temperature = vt(damping=None, start=16.0, final_fraction=0)
    # where log C is exact it is slow whatever S is
    for model, left in ((Words(), math.exp(-12 / S)), (Gauss(), 0.97)):
        planned = temperature.plan(n_steps, steps_per_pass, model=model)
        log_c = -15 * np.log(B)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            show(planned, -1.0, log_c if isinstance(model, Words) else None)
        wanted = posterior(-1.0, log_c) @ B
        found = math.log(planned.inverse(1) / wanted) / math.log(1 / 16 / wanted)
        assert found == pytest.approx(left, rel=1e-9)
    level = LocalVariational(final_fraction=0).plan(n_steps, steps_per_pass, model=Words())
    show(level, -1.0, np.zeros(100))
    assert level.inverse(1) == pytest.approx(3.9 ** -math.exp(-12 / S), rel=1e-12)


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


# ------------------------------------------------------------------ log C


def made_for(**hyperparameters):
    return LogPartition(B, 40 * np.log(GRID), made_for=hyperparameters)


@pytest.mark.parametrize(
    "partition",
    [40 * np.log(GRID), list(40 * np.log(GRID)), made_for(), made_for(n_words=1000, n_topics=5)],
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
    assert planned.tempered_energy(-30.0) == pytest.approx(
        planned.posterior_ @ (-30 * B - 40 * np.log(GRID) - np.log(5 * planned.posterior_))
    )
    assert getattr(made, "asked", None) is None


def test_log_c_over_the_prior_is_of_so_many_words():
    planned = vt(partition="prior").plan(10, model=(model := Words()))
    assert model.asked is None
    show(planned, -40.0, n_units=20.0, scale=3.0)
    assert_allclose(planned.posterior_, posterior(-120.0, -60 * 1.5 * np.log(B)), rtol=1e-12)


def test_log_c_at_the_current_q_is_asked_for_on_the_grid():
    vt(partition="posterior").plan(10, model=(model := Words()))
    assert_allclose(model.asked, B, rtol=1e-14)
    LocalVariational(grid=4).plan(10, model=(model := Words()))
    assert_array_equal(model.asked, [0.25, 0.5, 0.75, 1])


@pytest.mark.parametrize("partition", ["posterior", "prior"])
def test_one_exact_form_serves_both_names(partition):
    planned = vt(partition=partition).plan(10, model=Gauss())
    show(planned, -40.0)
    assert_allclose(planned.posterior_, posterior(-40.0, -15 * np.log(B)), rtol=1e-12)


@pytest.mark.parametrize(
    ("partition", "message"),
    [
        (
            made_for(n_words=999),
            "other hyperparameters than those of Variational: 'n_words' is 999",
        ),
        (made_for(n_features=8), "'n_features' is 8, expected 7"),
        (LogPartition(1 / GRID[:4], np.zeros(4)), "another grid .* has 4 points, expected 5"),
        (
            LogPartition(np.linspace(1, 0.1, 5), np.zeros(5)),
            r"another grid than that of Variational.*\[1\] is 0.775, expected 0.5",
        ),
        (LogPartition(B, np.full(5, math.nan)), "'values' .* finite"),
        (LogPartition(B, np.zeros(4)), "'values'"),
        (np.zeros(4), r"'partition' .* shape \(5,\), log C at each .* Got shape \(4,\)"),
        (np.zeros((5, 1)), r"'partition' .* Got shape \(5, 1\) and dtype float64"),
        (["a"] * 5, r"'partition' .* Got shape \(5,\) and dtype <U1"),
        ([0.0, 1, 2, 3, math.nan], "'partition' .* must be finite. Got nan"),
        ([0.0, 1, 2, 3, -math.inf], "'partition' .* must be finite. Got -inf"),
        ([[0.0], [1, 2]], "'partition' parameter of Variational"),
        ("both", "'partition' parameter of Variational must be .*Got 'both'"),
        (None, "'partition' parameter of Variational must be .*Got None"),
        (1.0, "'partition' parameter of Variational must be .*Got 1.0"),
    ],
)
def test_a_wrong_log_c(partition, message):
    with pytest.raises(ValueError, match=message):
        vt(partition=partition).plan(10, model=Words())


def test_another_model_is_checked_as_the_first_was():
    planned = vt(partition=made_for(n_words=1000)).plan(10, model=Words())
    other = Words()
    other.known = {"n_words": 500.0}
    with pytest.raises(ValueError, match="'n_words' is 1000, expected 500"):
        planned.attach(other)
    planned = vt().plan(10, model=Words())
    show(planned, -30.0, 20 * np.log(GRID))
    before = planned.inverse(1)
    planned.attach(other)
    assert_allclose(other.asked, B, rtol=1e-14)
    assert planned.inverse(1) == before  # what was learned stays


# ------------------------------------------------------------------ grids


@pytest.mark.parametrize(
    "grid", [[1, 2, 4, 8, 16], (1.0, 1.5, 3.0), np.array([1, 1.0001]), np.arange(1, 200)]
)
def test_grids_of_ones_own(grid):
    temperature = Variational(t_max=1.7, grid=grid)  # t_max is not used
    planned = temperature.plan(10, model=Words())
    assert_array_equal(planned.temperatures_, np.asarray(grid, dtype=float))
    assert planned.temperatures_.dtype == np.float64
    assert planned.inverse(0) == pytest.approx(1 / np.mean(grid))
    assert planned.posterior_.shape == (len(grid),)


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ([1.1, 2], "must start at 1, increase and be finite. Got .*1.1"),
        ([0.5, 1, 2], "must start at 1"),
        ([1, 2, 2], "increase and be finite"),
        ([1, 3, 2], "increase and be finite"),
        ([1, 2, math.inf], "increase and be finite"),
        ([1, math.nan, 2], "increase and be finite"),
        ([1], "at least 2 temperatures"),
        ([], "at least 2 temperatures"),
        ([[1, 2], [3, 4]], "at least 2 temperatures"),
        ([[1], [2, 3]], "'grid' parameter of Variational"),
        (["cold", "hot"], "at least 2 temperatures"),
        ("fine", "'grid' parameter of Variational must be .*Got 'fine'"),
        (None, "'grid' parameter of Variational must be .*Got None"),
        (0, "'grid' .* Got 0"),
    ],
)
def test_wrong_grids(grid, message):
    with pytest.raises(ValueError, match=message) as error:
        Variational(grid=grid).plan(10, model=Words())
    assert "'grid'" in str(error.value)


def test_what_goes_with_a_grid_of_ones_own():
    with pytest.raises(ValueError, match=r"'start' .* start=5.0 and t_max=4.0"):
        Variational(grid=[1, 2, 4], start=5.0).check()
    with pytest.raises(ValueError, match=r"'prior' .* shape \(3,\)"):
        Variational(grid=[1, 2, 4], prior=[1, 1]).check()
    Variational(grid=[1, 2, 4], start=4.0, prior=[1, 2, 1]).check()


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


# ------------------------------------------------------------------ parameters


SAME = [
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
        assert copy is not temperature
        assert type(copy) is type(temperature)
        assert copy == temperature
        assert hash(copy) == hash(temperature)
        assert repr(copy).split("LogPartition")[0] == repr(temperature).split("LogPartition")[0]
        assert set(copy.get_params()) == set(temperature.get_params())
    copy = clone(temperature).set_params(final_fraction=0.125)
    assert copy != temperature
    assert temperature not in [other for other in SAME if other is not temperature]


def test_repr_shows_what_was_set():
    assert repr(LocalVariational()) == "LocalVariational()"
    assert repr(Variational(partition="prior", grid=[1, 2])) == (
        "Variational(grid=[1, 2], partition='prior')"
    )
    assert repr(LocalVariational(rounds=1, start=2)) == "LocalVariational(rounds=1, start=2)"


def test_only_grids_go_by_position():
    assert Variational(4.0, 3) == Variational(t_max=4.0, grid=3)
    assert LocalVariational(3) == LocalVariational(grid=3)
    with pytest.raises(TypeError, match="positional"):
        Variational(4.0, 3, None)
    with pytest.raises(TypeError, match="positional"):
        LocalVariational(3, None)


@pytest.mark.parametrize("temperature", SAME[:2] + SAME[3:])
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


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"energy_average": 0}, ["'energy_average'", "(0.0, 1.0]", "Got 0"]),
        ({"energy_average": 1.1}, ["'energy_average'", "(0.0, 1.0]", "Got 1.1"]),
        ({"energy_average": math.nan}, ["'energy_average'", "Got nan"]),
        ({"damping": 0.0}, ["'damping'", "(0.0, 1.0]", "Got 0.0"]),
        ({"damping": -0.1}, ["'damping'", "(0.0, 1.0]", "Got -0.1"]),
        ({"damping": 2}, ["'damping'", "(0.0, 1.0]", "Got 2"]),
        ({"damping": "12/S"}, ["'damping'", "Got '12/S'"]),
        ({"start": 0.99}, ["'start'", "[1.0, inf)", "Got 0.99"]),
        ({"start": math.nan}, ["'start'", "Got nan"]),
        ({"start": math.inf}, ["'start'", "inf"]),
        ({"final_fraction": 1.0}, ["'final_fraction'", "[0.0, 1.0)", "Got 1.0"]),
        ({"final_fraction": -1}, ["'final_fraction'", "[0.0, 1.0)", "Got -1"]),
        ({"grid": 1}, ["'grid'", "[2, inf)", "Got 1"]),
        ({"grid": 10.5}, ["'grid'", "int", "Got 10.5"]),
        ({"prior": np.ones(5)}, ["'prior'", "shape (100,)", "Got shape (5,)"]),
        ({"prior": [1, 0], "grid": 2}, ["'prior'", "positive and finite", "Got 0"]),
        ({"prior": [1, math.nan], "grid": 2}, ["'prior'", "positive and finite", "Got nan"]),
        ({"prior": 2.0}, ["'prior'", "array-like", "Got 2.0"]),
        ({"prior": [[1], [2, 3]], "grid": 2}, ["'prior'"]),
    ],
)
@pytest.mark.parametrize("make", [Variational, LocalVariational])
def test_clear_errors_of_both(make, settings, words):
    with pytest.raises(ValueError) as e:
        make(**settings).plan(100, model=Words())
    for word in [make.__name__, *words]:
        assert word in str(e.value)


@pytest.mark.parametrize(
    ("temperature", "words"),
    [
        (Variational(t_max=1.0), ["'t_max'", "Variational", "(1.0, inf)", "Got 1.0"]),
        (Variational(monotone="yes"), ["'monotone'", "Variational", "bool", "Got 'yes'"]),
        (Variational(monotone=2), ["'monotone'", "Got 2"]),
        (LocalVariational(grid=[1, 2]), ["'grid'", "[2, inf)", "Got [1, 2]"]),
        (LocalVariational(start=None), ["'start'", "[1.0, inf)", "Got None"]),
        (LocalVariational(continuous="beta"), ["'continuous'", "bool", "Got 'beta'"]),
        (LocalVariational(undamped="yes"), ["'undamped'", "bool", "Got 'yes'"]),
        (LocalVariational(rounds=0), ["'rounds'", "[1, inf)", "Got 0"]),
        (LocalVariational(rounds=1.5), ["'rounds'", "int", "Got 1.5"]),
        (LocalVariational(normaliser="word"), ["'normaliser'", "document", "corpus", "'word'"]),
        (LocalVariational(normaliser=None), ["'normaliser'", "Got None"]),
        (
            LocalVariational(continuous=True, prior=np.ones(100)),
            ["'prior'", "shape (2,)", "Got shape (100,)"],
        ),
        (LocalVariational(continuous=True, prior=[1, -1]), ["'prior'", "positive", "Got -1"]),
    ],
)
def test_clear_errors(temperature, words):
    with pytest.raises(ValueError) as e:
        temperature.plan(100, model=Words())
    for word in words:
        assert word in str(e.value)
    with pytest.raises(ValueError):
        as_temperature(temperature, "TemperedLDA")


@pytest.mark.parametrize("model", [None, object(), Gauss()])
def test_a_model_without_local_temperatures(model):
    message = "needs a model whose data have temperatures of their own, .* use 'annealed' or"
    with pytest.raises(ValueError, match=message):
        LocalVariational().plan(10, model=model)


@pytest.mark.parametrize("make", [TemperedFMM, TemperedGaussianMixture])
def test_the_mixtures_have_no_local_temperatures(make):
    X = np.random.RandomState(0).rand(30, 4)
    with pytest.raises(ValueError, match=r"LocalVariational .* whose data have temperatures"):
        make(2, temperature=LocalVariational()).fit(X)
    with pytest.raises(ValueError, match=r"'temperature' parameter of .* Got 'local'"):
        make(2, temperature="local").fit(X)


# ------------------------------------------------------------------ documents


def problem(seed=0, n=7, size=10):
    rng = np.random.RandomState(seed)
    n_units = rng.randint(0, 60, n).astype(float)
    n_units[0] = 0
    inverses = np.arange(1, size + 1) / size
    slopes = 2 + rng.rand(n)
    log_c = n_units[:, None] * slopes[:, None] * (1 - inverses)
    return -n_units * (2 + rng.rand(n)), n_units, inverses, log_c, np.log(rng.rand(size) + 0.1)


def naive_inverse(energy, inverses, log_c, log_prior):
    weights = [
        math.exp(log_prior[m] + b * energy - log_c[m] - (energy - log_c[-1]))
        for m, b in enumerate(inverses)
    ]
    return sum(w * b for w, b in zip(weights, inverses, strict=True)) / sum(weights)


@pytest.mark.parametrize("seed", range(5))
def test_the_rule_of_documents(seed):
    energy, n_units, inverses, log_c, log_prior = problem(seed)
    rule = DocumentRule(inverses, log_prior, 3)
    assert rule.rounds == 3
    expected = [
        naive_inverse(e, inverses, c, log_prior) for e, c in zip(energy, log_c, strict=True)
    ]
    found = rule(energy.copy(), n_units, log_c.copy())
    assert_allclose(found, expected, rtol=1e-12)
    # a document without words knows nothing but the prior
    assert found[0] == pytest.approx(softmax(log_prior) @ inverses)
    # each document for itself
    few = rule(energy[3:5], n_units[3:5], log_c[3:5])
    assert_allclose(few, found[3:5], rtol=1e-14)


@pytest.mark.parametrize("seed", range(5))
def test_the_rule_of_documents_with_the_corpus(seed):
    energy, n_units, inverses, log_c, log_prior = problem(seed)
    corpus = 2.4 * (1 - inverses) ** 1.1
    rule = DocumentRule(inverses, log_prior, 3, corpus=corpus)
    expected = [
        naive_inverse(e, inverses, n * corpus, log_prior)
        for e, n in zip(energy, n_units, strict=True)
    ]
    assert_allclose(rule(energy, n_units, log_c), expected, rtol=1e-12)


@pytest.mark.parametrize("level", [0.05, 0.3, 0.9])
def test_documents_are_scaled_to_a_level_and_clipped(level):
    energy, n_units, inverses, log_c, log_prior = problem(1, n=40)
    free = DocumentRule(inverses, log_prior, 1)(energy, n_units, log_c)
    scaled = DocumentRule(inverses, log_prior, 1, level=level)(energy, n_units, log_c)
    counted = free[n_units > 0]  # the others have nothing to say
    assert len(counted) < 40
    mean = math.exp(sum(math.log(b) for b in counted) / len(counted))
    assert_allclose(scaled, [min(1, max(0.02, b * level / mean)) for b in free], rtol=1e-12)
    high = DocumentRule(inverses, log_prior, 1, level=level, floor=0.2)(energy, n_units, log_c)
    assert high.min() >= 0.2 and scaled.max() <= 1
    if level == 0.3:
        assert np.exp(np.mean(np.log(scaled[n_units > 0]))) == pytest.approx(level, rel=0.02)


def test_continuous_temperatures_are_an_integral():
    a, c, energy, slope = 2.5, 1.5, -8.0, 6.0
    temperature = LocalVariational(500, continuous=True, prior=[a, c], undamped=True)
    rule = temperature.plan(10, model=Words()).tempering(0).rule
    log_c = slope * (1 - rule.inverses) ** 2

    def density(b):
        return b ** (a - 1) * (1 - b) ** (c - 1) * math.exp(b * energy - slope * (1 - b) ** 2)

    mean = quad(lambda b: b * density(b), 0, 1)[0] / quad(density, 0, 1)[0]
    found = rule(np.array([energy]), np.ones(1), log_c[None, :])
    assert found[0] == pytest.approx(mean, rel=1e-3)
    # without words it is the prior's mean
    empty = rule(np.zeros(1), np.zeros(1), np.zeros((1, 500)))
    assert empty[0] == pytest.approx(a / (a + c), rel=1e-3)
    even = LocalVariational(500, continuous=True, undamped=True).plan(10, model=Words())
    assert even.tempering(0).rule(np.zeros(1), np.zeros(1), np.zeros((1, 500))) == 0.5


def test_the_prior_of_documents_temperatures():
    prior = [3, 1, 4, 1, 5]
    planned = LocalVariational(5, prior=prior).plan(10, model=Words())
    rule = planned.tempering(0).rule
    assert_allclose(np.exp(rule.log_prior), np.array(prior) / 14)
    assert_allclose(rule.inverses, [0.2, 0.4, 0.6, 0.8, 1])


def test_the_level_relaxes_to_one_and_then_T_is_1():
    planned = LocalVariational(grid=4, start=3.0, damping=0.25, rounds=5).plan(8, model=Words())
    levels = []
    for step in range(6):
        tempering = planned.tempering(step)
        assert tempering.form == "likelihood"
        assert tempering.rule.level == tempering.inverse == planned.inverse(step)
        assert tempering.rule.rounds == 5
        levels.append(tempering.inverse)
        show(planned, None, np.zeros(4))
    assert_allclose(np.log(levels), -np.log(3.0) * 0.75 ** np.arange(6), rtol=1e-12)
    assert planned.settled(6) and not planned.settled(5)
    for step in (6, 7, 100):
        assert planned.tempering(step) == UNTEMPERED
        assert planned.inverse(step) == 1
    assert planned.learned().rule.level is None  # to predict, each document for itself
    fresh = LocalVariational(grid=4).plan(8, model=Words())
    assert fresh.learned() == UNTEMPERED  # which has learned nothing


def test_undamped_documents_are_not_scaled():
    planned = LocalVariational(grid=4, undamped=True).plan(8, model=Words())
    for step in range(4):
        assert planned.tempering(step).rule.level is None
        show(planned, None, np.zeros(4))


def test_the_corpus_is_an_average_of_minibatches():
    planned = LocalVariational(grid=3, normaliser="corpus", energy_average=0.2)
    planned = planned.plan(100, model=Words())
    assert planned.tempering(0).rule.corpus is None  # nothing seen: the document's own
    first, second = np.array([30.0, 10.0, 0.0]), np.array([12.0, 5.0, 0.0])
    show(planned, None, first, n_units=10.0, scale=4.0)
    assert_allclose(planned.tempering(1).rule.corpus, first / 10)
    show(planned, None, second, n_units=5.0, scale=8.0)
    expected = (0.8 * 40 * first / 10 + 0.2 * 40 * second / 5) / 40
    assert_allclose(planned.tempering(2).rule.corpus, expected, rtol=1e-12)
    assert_allclose(planned.learned().rule.corpus, expected, rtol=1e-12)
    show(planned, None, second, n_units=5.0, scale=1.0)  # all data
    assert_allclose(planned.tempering(3).rule.corpus, second / 5, rtol=1e-12)


def test_a_batch_without_words_leaves_the_corpus_alone():
    planned = LocalVariational(grid=3, normaliser="corpus").plan(100, model=Words())
    show(planned, None, np.zeros(3), n_units=0.0, scale=4.0)
    assert planned.tempering(1).rule.corpus is None
    show(planned, None, np.ones(3), n_units=5.0, scale=1.0)
    assert_allclose(planned.tempering(2).rule.corpus, 0.2)
    document = LocalVariational(grid=3).plan(100, model=Words())
    show(document, None, np.ones(3), n_units=5.0, scale=4.0)
    assert document.tempering(1).rule.corpus is None


def test_schedules_have_learned_nothing():
    for value in (1, 2.5, "annealed"):
        assert as_temperature(value, "X").plan(10).learned() is None
    planned = vt().plan(10, model=Gauss())
    assert planned.learned() == UNTEMPERED
    planned.observe(LocalStep(None, -40.0), 1.0)
    assert planned.learned() == Tempering(planned.inverse(1)) != UNTEMPERED
