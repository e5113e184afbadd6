"""Parameters and planned temperatures in files: what goes in comes out, and nothing else does."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from annealvi import Annealed, Fixed, LocalVariational, Proximity, Variational
from annealvi.files import read, write
from annealvi.files.parameters import parameter_of, parameter_tree
from annealvi.model import LocalStep
from annealvi.partition import LogPartition
from annealvi.temperature import Temperature
from annealvi.temperature.base import restored_temperature, temperature_tree
from bench.speed.same_bits import digest
from tests.asserts import refused
from tests.marks import cases
from tests.temperature.stubs import GRID, Gauss, Words, made_for, show, vt
from tests.temperature.test_proximity import Factors

LOG_C = 40 * np.log(GRID)


def through_a_file(tree, path):
    write(path, "test", {"content": tree})
    return read(path, "test")["tree"]["content"]


@cases(
    "value",
    *(None, True, 3, 0.5, "auto", (1, "a"), [0.5, [1, 2]], np.arange(3.0), np.array([True])),
    *(Fixed(2.0, form="posterior"), Annealed("auto", passes=2.5, shape="linear")),
    *({"a": ["b", 1], "": []}, {}, np.int64, np.float32),
    *(Proximity("kl", gamma=0.1), LocalVariational(50, prior=np.ones(50), rounds=3)),
    *(vt(grid=GRID.tolist()), vt(partition=made_for(n_words=3, name="a", rows=np.eye(2)))),
    vt(partition=LogPartition(GRID, LOG_C, bounds=np.ones((2, 5)), method="mc")),
)
def test_a_parameter_comes_back(value, tmp_path):
    found = parameter_of(through_a_file(parameter_tree(value, "p"), tmp_path / "a"), "content")
    assert type(found) is type(value)
    if isinstance(value, np.ndarray):
        assert_array_equal(found, value, strict=True)
        found[0] = 0  # not a view of the file
    else:
        assert found == value


def test_numbers_become_those_of_python():
    given = [np.float32(0.5), np.int64(3), Fraction(1, 4), range(3)]
    assert repr(parameter_tree(given, "p")) == repr([0.5, 3, 0.25, [0, 1, 2]])


def test_a_generator_goes_on(tmp_path):
    rng = np.random.RandomState(3)
    rng.randn(3)
    tree = through_a_file(parameter_tree(rng, "random_state"), tmp_path / "a")
    assert_array_equal(parameter_of(tree, "content").randn(5), rng.randn(5))


class Own(Temperature):
    def inverse(self, step):
        return 1.0

    def settled(self, step):
        return True


class Sub(Fixed):
    pass


@cases(
    "value",
    *(Own(), Sub(), print, {1: "a"}, {"a": print}, str, 1j, object(), np.array(["a"])),
    np.float16([1]),
    *([1, print], vt(prior=np.array([None]))),
)
def test_what_a_file_cannot_hold(value):
    with pytest.raises(TypeError, match=r"'p.*' parameter cannot be written to a file"):
        parameter_tree(value, "p")


def test_a_temperature_of_the_users_own_cannot_be_written():
    with pytest.raises(
        TypeError, match=r"A Own cannot be written to a file or read from one\. Only"
    ):
        temperature_tree(Own().plan(10))
    refused("A Own cannot be", Own().load_state_dict, {}, error=TypeError)


@cases(
    "tree",
    *({"type": "os.system"}, {"type": 3}, {}, {"type": "Fixed"}, {"type": "LogPartition"}),
    {"type": "Fixed", "parameters": {"value": 2.0, "other": 1}},
    {"type": "Fixed", "parameters": {"value": {"type": "Own"}}},
    {"type": "LogPartition", "parameters": {"values": [1.0]}, "made_for": {}},
    {"type": "RandomState", "state": {"key": np.zeros(3, np.uint32)}},
    *({"type": "tuple", "items": 3}, [1, {"type": "list"}]),
)
def test_forged_parameters(tree):
    refused("file is damaged: 'content", parameter_of, tree, "content")


def words(planned, step, model):
    show(planned, -150.0 + 9 * step, LOG_C + step, n_units=100 - step, scale=2.0)


def gauss(planned, step, model):
    show(planned, -150.0 + 9 * step)


def factors(planned, step, model):
    model.nu = np.random.RandomState(step).rand(3, 4)
    planned.observe(LocalStep(None), 1.0)


CASES = {
    "fixed": (Fixed(2.0), Gauss, gauss),
    "annealed": (Annealed(4.0), Gauss, gauss),
    "annealed in one step": (Annealed(4.0, length=1e-9), Gauss, gauss),
    "learned at q": (vt(damping=0.3), Words, words),
    "learned over the prior": (vt(damping=None, partition="prior"), Words, words),
    "learned with a partition": (vt(partition=made_for(), prior=GRID), Words, words),
    "learned with an array": (vt(partition=LOG_C), Words, words),
    "learned, exact": (vt(damping=None, monotone=True), Gauss, gauss),
    "local": (LocalVariational(5), Words, words),
    "local, corpus": (LocalVariational(5, normaliser="corpus", undamped=True), Words, words),
    "local, continuous": (LocalVariational(5, continuous=True, prior=[2, 1]), Words, words),
    "proximity": (Proximity(), Factors, factors),
    "proximity, averaged": (Proximity("kl", decay=0.9, magnitude=3.0), Factors, factors),
    "proximity, plain mean": (Proximity(decay=1.0, shape="linear"), Factors, factors),
}
STEPS = 12


def seen(planned, step):
    """All that an optimiser and an estimator ask a temperature for."""
    parts = [planned.settled(step), planned.observes, planned.inverse(step)]
    for given in (planned.tempering(step), planned.learned()):
        rule = None if given is None or given.rule is None else vars(given.rule)
        parts += [rule, None if given is None else given._replace(rule=None)]
    if isinstance(planned, Variational) and planned.path().size:
        parts += [planned.posterior_, planned.path(), planned.tempered_energy(-33.0)]
    return digest(parts)


def follow(planned, model, advance, first, last):
    made = []
    for step in range(first, last):
        made.append(seen(planned, step))
        advance(planned, step, model)
    return made


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The learned temperature did not cool")
@pytest.mark.parametrize("n_steps", [STEPS, None])
@pytest.mark.parametrize("name", CASES)
def test_a_planned_temperature_goes_on(name, n_steps, tmp_path):
    """It is restored on a new plan, as in a fit that goes on, or from its file alone."""
    temperature, make, advance = CASES[name]
    n_steps = n_steps or (STEPS if name.startswith("proximity") else None)
    model = make()
    planned = temperature.plan(n_steps, 4, model=model)
    whole = follow(planned, model, advance, 0, STEPS)
    for stop in (0, 1, 5, STEPS - 1):
        model = make()
        planned = temperature.plan(n_steps, 4, model=model)
        follow(planned, model, advance, 0, stop)
        tree = through_a_file(temperature_tree(planned), tmp_path / f"{stop}")
        alone = restored_temperature(tree, model=model)
        assert alone == temperature
        again = temperature.plan(n_steps, 4, model=model)
        again.load_state_dict(tree["state"])
        for found in (alone, again):
            assert follow(found, model, advance, stop, STEPS) == whole[stop:]


def forged(tree, **changes):
    return tree | {"state": tree["state"] | changes}


@pytest.mark.filterwarnings("ignore:The learned temperature did not cool")
@cases(
    "name, changes",
    ("annealed", dict(n_annealing_steps_=-1)),
    ("annealed", dict(start_=0.5)),
    ("annealed", dict(start_=None)),
    ("learned at q", dict(posterior_=np.ones(4))),
    ("learned at q", dict(posterior_=np.full(5, np.nan))),
    ("learned at q", dict(_path=np.ones((2, 4), np.float32))),
    ("learned at q", dict(_b=0.0)),
    ("learned at q", dict(_b=2.0)),
    ("learned at q", dict(_totals=np.zeros(0))),
    ("learned at q", dict(_totals=np.ones(2))),
    ("learned at q", dict(_damping=2.0)),
    ("local, corpus", dict(_totals=np.ones(5))),
    ("local, corpus", dict(_level=0.0)),
    ("local", dict(_log_prior=np.ones(6))),
    ("proximity", dict(_average=dict(value=np.ones((3, 5)), left=0.5, seen=1))),
    ("proximity", dict(_average=dict(value=-np.ones((3, 4)), left=0.5, seen=1))),
    ("proximity", dict(magnitude_=np.inf)),
)
def test_forged_states(name, changes):
    temperature, make, advance = CASES[name]
    model = make()
    planned = temperature.plan(STEPS, 4, model=model)
    follow(planned, model, advance, 0, 5)
    tree = temperature_tree(planned)
    restored_temperature(tree, model=model)
    with pytest.raises(ValueError, match=r"file is damaged: 'temperature\.state"):
        restored_temperature(forged(tree, **changes), model=model)


@pytest.mark.parametrize("name", ["learned at q", "local"])
def test_a_forged_grid_takes_no_memory_and_a_number_is_no_temperature(name):
    temperature, make, _ = CASES[name]
    tree = temperature_tree(temperature.plan(STEPS, 4, model=make()))
    tree["temperature"]["parameters"]["grid"] = 10**6
    message = r"file is damaged: 'here\.state\.(posterior_|_log_prior)"
    refused(message, restored_temperature, tree, "here", model=make())
    tree["temperature"]["parameters"]["grid"] = 2**60
    refused("'grid' parameter of .* must be", restored_temperature, tree, "here", model=make())
    message = r"damaged: 'here.temperature' must be a temperature. Got 2.0"
    refused(message, restored_temperature, tree | {"temperature": 2.0}, "here", model=make())
