"""Algorithm 1, its step sizes, and the progress of a fit, which comes back from a file."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from annealvi import Annealed, Fixed
from annealvi.files import read, write
from annealvi.inference import Monitor, OverRelaxed, RobbinsMonro, full_step, optimise
from annealvi.model import LocalStep
from annealvi.temperature import Temperature
from tests.asserts import refused
from tests.marks import cases


class Mean:
    """q(mu) of data x_i ~ N(mu, 1), mu ~ N(0, 1), in natural parameters."""

    def __init__(self):
        self.natural = np.array([0.0, -0.5])
        self.seen = []

    def local_step(self, batch, tempering, moments=False):
        x = batch.data[batch.rows]
        self.seen.append((batch.rows, tempering, moments))
        statistics = tempering.inverse * np.array([x.sum(), -0.5 * len(x)])
        return LocalStep(statistics, energy=-0.5 * x**2 if moments else None)

    def global_step(self, statistics, rho, scale, tempering):
        self.natural = (1 - rho) * self.natural + rho * (np.array([0.0, -0.5]) + scale * statistics)


def run(model, data, temperature=None, monitor=None, **kwargs):
    n = len(data)
    settings = dict(n_samples=n, batch_size=n, n_passes=1, population=n, step_size=full_step)
    settings |= kwargs
    steps = settings["n_passes"] * -(-n // settings["batch_size"])
    planned = (temperature or Fixed()).plan(steps, n / settings["batch_size"])
    monitor = monitor or Monitor()
    optimise(model, data, planned, monitor, **settings)
    return monitor


def test_batch_inference_finds_the_posterior():
    x = np.array([1.0, 2.0, 6.0])
    model = Mean()
    run(model, x)
    assert_allclose(model.natural, [9.0, -2.0])


def test_minibatches_and_step_sizes():
    x, model = np.arange(10.0), Mean()
    steps = RobbinsMonro(decay=0.7, offset=10.0)
    monitor = run(model, x, batch_size=4, n_passes=2, step_size=steps)
    rows = [slice(0, 4), slice(4, 8), slice(8, 10)] * 2
    assert [seen[0] for seen in model.seen] == rows
    natural, prior = np.array([0.0, -0.5]), np.array([0.0, -0.5])
    for t, row in enumerate(rows, start=1):
        rho = (10 + t) ** -0.7
        batch = x[row]
        target = prior + 10 / len(batch) * np.array([batch.sum(), -0.5 * len(batch)])
        natural = (1 - rho) * natural + rho * target
    assert_allclose(model.natural, natural)
    assert monitor.step == 6 and monitor.passes == pytest.approx(2)


def test_every_step_has_its_temperature():
    model = Mean()
    schedule = Annealed(start=4, length=0.5, shape="exponential", form="posterior")
    monitor = run(model, np.arange(8.0), schedule, batch_size=2, n_passes=2)
    expected = [4 ** (1 - t / 4) for t in range(4)] + [1.0] * 4
    assert_allclose(monitor.temperature_path, expected)
    assert_allclose([1 / seen[1].inverse for seen in model.seen], expected)
    assert {seen[1].form for seen in model.seen} == {"posterior"}
    assert monitor.temperature == 1.0


def test_a_temperature_that_observes_is_shown_the_energies():
    class Curious(Temperature):
        observes = True

        def inverse(self, step):
            return 1.0

        def settled(self, step):
            return True

        def observe(self, local, scale):
            energies.append(scale * local.energy)

    energies = []
    run(Mean(), np.array([1.0, 3.0]), Curious(), batch_size=1)
    assert_allclose(np.concatenate(energies), [-1.0, -9.0])  # each stands for two
    run(model := Mean(), np.array([1.0]))
    assert model.seen[0][2] is False


def test_callbacks_stop_the_fit():
    def stop():
        if monitor.step == 3:
            raise StopIteration

    monitor, passes = Monitor(), []
    run(Mean(), np.arange(10.0), monitor=monitor, batch_size=2, n_passes=5, on_step=stop)
    assert monitor.step == 3
    second = lambda index: passes.append(index) or index == 1  # noqa: E731
    monitor = run(Mean(), np.arange(4.0), n_passes=5, after_pass=second)
    assert passes == [0, 1] and monitor.step == 2


def test_monitor_merges_records_of_a_step():
    monitor = Monitor()
    monitor.record(elbo=-3.0)
    monitor.advance(0.5, 2.0)
    monitor.record()
    monitor.record(heldout=-1.0)
    monitor.advance(0.5, 1.0)
    monitor.record(elbo=-2.0)
    history = monitor.history
    assert_array_equal(history["step"], [0, 1, 2])
    assert_array_equal(history["pass"], [0, 0.5, 1])
    assert_array_equal(history["temperature"], [1, 2, 1])
    assert_array_equal(history["elbo"], [-3, np.nan, -2])
    assert_array_equal(history["heldout"], [np.nan, -1, np.nan])


def test_seconds_leave_callbacks_out(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("annealvi.inference.algorithm.time.perf_counter", lambda: now[0])

    class Slow(Mean):
        def local_step(self, *args):
            now[0] += 1
            return super().local_step(*args)

    def callback():
        now[0] += 100

    assert run(Slow(), np.arange(6.0), batch_size=2, on_step=callback).seconds == 3


def test_step_sizes_of_whole_numbers():
    assert RobbinsMonro(decay=np.int64(1), offset=np.int64(10))(10) == pytest.approx(1 / 20)


def test_steps_beyond_the_optimum():
    steps = OverRelaxed(RobbinsMonro(0.7, 10.0), n_before=3, n_passes=4)
    assert [steps(t) for t in (1, 3)] == [RobbinsMonro(0.7, 10.0)(t) for t in (1, 3)]
    assert [steps(t) for t in range(4, 8)] == [1.9, 1.9, 1.9, 1.0]


def monitor_with_records():
    monitor = Monitor()
    for step in range(5):
        monitor.advance(0.3, 1 + 1 / (1 + step))
        if step != 2:
            monitor.record(elbo=-3.0 / (1 + step))
        if step > 2:
            monitor.record(mine=np.float32(step), none=None, elbo=np.nan)
    return monitor


def go_on(monitor):
    monitor.record(late=1)  # at a step that has a record
    monitor.advance(0.1, 1.0)
    monitor.record(elbo=1.0)


@pytest.mark.parametrize("make", [Monitor, monitor_with_records])
def test_a_monitor_comes_back(make, tmp_path):
    monitor, again = make(), Monitor()
    write(tmp_path / "a", "test", {"monitor": monitor.state_dict()})
    again.load_state_dict(read(tmp_path / "a", "test")["tree"]["monitor"])
    for _ in range(2):
        assert list(again.history) == list(monitor.history)
        for name, values in monitor.history.items():
            assert_array_equal(again.history[name], values, strict=True)
        for name in ("step", "passes", "last_advance", "temperature", "temperature_path"):
            assert getattr(again, name) == getattr(monitor, name)
        assert again.seconds == monitor.seconds
        go_on(monitor)
        go_on(again)


@pytest.mark.parametrize("value", ["high", [1.0, 2.0], np.ones(2)])
def test_records_that_are_no_numbers(value):
    monitor = Monitor()
    monitor.record(mine=value)
    refused("records of a fit cannot be written to a file: ", monitor.state_dict, error=TypeError)


FEW = monitor_with_records().state_dict()["history"]


@cases(
    "changes",
    *(dict(step=-1), dict(passes=np.inf), dict(seconds="1"), dict(history=3)),
    dict(temperature_path=np.array([1.0, 1.0, 1.0, 1.0, np.nan])),
    *(dict(history={}), dict(history={name: FEW[name] for name in FEW if name != "pass"})),
    *(dict(history=FEW | {"elbo": wrong}) for wrong in (np.ones(3), np.ones((4, 1)), 1.0)),
    *(dict(history=FEW | {"step": np.full(4, wrong)}) for wrong in (np.inf, np.nan)),
)
def test_forged_monitors(changes):
    tree = monitor_with_records().state_dict()
    Monitor().load_state_dict(tree)
    refused("file is damaged: '", Monitor().load_state_dict, tree | changes)
