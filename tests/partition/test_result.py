"""Grids of temperatures, and results: stored, loaded, checked against a model."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from annealvi.models.fmm import FMM
from annealvi.models.lda_prior import LDAPrior
from annealvi.partition import LogPartition, OutOfReach, even_grid, exponential_grid, log_partition
from annealvi.partition.result import check_log_c_at_1
from tests.asserts import refusals, refused
from tests.marks import cases
from tests.partition.mixtures import T, known_mixture


def test_grids():
    assert_allclose(exponential_grid(8, 4), [1, 2, 4, 8])
    assert_allclose(even_grid(4, 4), [1, 4 / 3, 2, 4])
    for grid in (exponential_grid, even_grid):
        for t_max, size in itertools.product((1.0001, 3, 1e6), (2, 100)):
            temperatures = grid(t_max, size)
            assert temperatures[0] == 1
            assert_allclose(temperatures[-1], t_max)
            assert len(temperatures) == size and np.all(np.diff(temperatures) > 0)
        with pytest.raises(ValueError, match=r"'size' parameter of .* range \[2, 1000000\]. Got 1"):
            grid(10, 10**30)


@cases(
    "temperatures, message",
    ([1.1, 2], "an array whose first number is 1. Got 1.1"),
    ([1.0, 2, 2], r"strictly increasing. Got \[2.0, 2.0\]"),
    ([1.0, 2, 1.5], r"strictly increasing. Got \[2.0, 1.5\]"),
    ([1.0, 0.5, 0.25], r"strictly increasing. Got \[1.0, 0.5\]"),
    ([1.0], r"at least 2 numbers. Got shape \(1,\)"),
    ([], r"at least 2 numbers. Got shape \(0,\)"),
    (1.0, r"at least 2 numbers. Got shape \(\)"),
    (np.ones((2, 2)), r"one-dimensional.*Got shape \(2, 2\)"),
    ([1.0, "half"], "numbers. Got .* dtype <U"),
    ([[1.0], [1.0, 2.0]], "numbers. Got .* dtype object"),
    ([1.0, 0.5, 0.0], "positive and finite. Got 0.0"),
    ([1.0, -0.5], "positive and finite. Got -0.5"),
    ([1.0, np.nan], "positive and finite. Got nan"),
    ([np.inf, 1.0], "positive and finite. Got inf"),
)
def test_bad_temperatures(temperatures, message):
    match = "'temperatures' parameter of log_partition .*" + message
    refused(match, log_partition, known_mixture(), temperatures)


def result(**changes):
    given = dict(
        values=np.array([0.0, 1.0, 2.5]),
        method="monte-carlo",
        standard_error=np.array([0.0, 0.1, 0.2]),
        bounds=np.zeros((2, 3)),
        made_for={"n": 7, "alpha": 0.1, "eta": np.array([0.1, 0.2]), "form": "explicit", "w": None},
    )
    return LogPartition(np.array([1.0, 2.0, 4.0]), **(given | changes))


def test_a_result_outlives_its_session(tmp_path):
    for name in ("log_c.npz", "without_a_suffix"):
        result().save(tmp_path / name)
        back = LogPartition.load(tmp_path / name)
        for field in ("temperatures", "values", "standard_error", "bounds"):
            assert_array_equal(getattr(back, field), getattr(result(), field))
        assert back.effective_sample_size is None and back.method == "monte-carlo"
        assert set(back.made_for) == {"n", "alpha", "eta", "form"}
        assert type(back.made_for["n"]) is int and back.made_for["form"] == "explicit"
        back.check(back.temperatures, result().made_for)


def test_a_file_of_something_else(tmp_path):
    np.savez(tmp_path / "other.npz", a=1)
    with pytest.raises(ValueError, match=r"any LogPartition: it contains the arrays \['a'\]"):
        LogPartition.load(tmp_path / "other.npz")
    np.savez(tmp_path / "objects.npz", values=np.array([{}]), temperatures=1)
    refused("allow_pickle", LogPartition.load, tmp_path / "objects.npz")
    exact = dict(temperatures=[1.0, 0.5], values=[0.0, 1.0])
    np.savez(tmp_path / "named.npz", **exact, made_for=1)
    np.save(tmp_path / "array.npy", np.ones(3))
    (tmp_path / "text.npz").write_text("log C")
    (tmp_path / "empty.npz").write_bytes(b"")
    (tmp_path / "cut.npz").write_bytes((tmp_path / "named.npz").read_bytes()[:50])
    for name in ("named.npz", "array.npy", "text.npz", "empty.npz", "cut.npz"):
        refused(f"{name}' does not contain any LogPartition: ", LogPartition.load, tmp_path / name)
    with pytest.raises(FileNotFoundError):
        LogPartition.load(tmp_path / "none.npz")
    with pytest.raises(ValueError, match=r"'made_for\.model' of dtype object"):
        result(made_for={"model": object()}).save(tmp_path / "log_c.npz")


def test_check_lets_pass_what_agrees():
    given = result()
    given.check()
    same = {"n": 7.0, "alpha": np.full(4, 0.1), "eta": [0.1, 0.2], "w": 3, "other": 1, "form": None}
    given.check([1, 2, 4 + 1e-15], same)
    LogPartition([1.0, 2.0], [0.0, 1.0]).check([1, 2], same)


test_check_refuses = refusals(
    lambda changes, grid, hyperparameters: result(**changes).check(grid, hyperparameters),
    ({}, [1, 2], {}, "grid from that of the fit.*has 3 points, expected 2"),
    ({}, [1, 2, 5], {}, r"grid from that of the fit.*\[2\] is 4.0, expected 5"),
    ({}, [1, np.nan, 4], {}, r"grid from that of the fit.*\[1\] is 2.0, expected nan"),
    ({}, None, {"n": 8}, "hyperparameters. 'n' is 7, expected 8"),
    ({}, None, {"alpha": 0.2}, "'alpha' is 0.1, expected 0.2"),
    ({}, None, {"eta": np.ones(3)}, r"'eta' is an array of shape \(2,\), expected an array"),
    ({}, None, {"eta": 0.1}, r"'eta' is an array of shape \(2,\), expected 0.1"),
    ({}, None, {"form": "collapsed"}, "'form' is 'explicit', expected 'collapsed'"),
    ({"values": np.zeros(2)}, None, {}, r"'values'.*shape \(3,\). Got shape \(2,\)"),
    ({"values": np.array([0, np.nan, 1])}, None, {}, "'values'.*finite. Got nan"),
    ({"values": ["a", "b", "c"]}, None, {}, "'values'.*dtype <U1"),
)


#: Other hyperparameters than those of the prior below.
OF_PRIOR = dict(n_documents=3, n_words=7, n_components=3, n_features=4, doc_topic_prior=0.6)
OF_PRIOR |= dict(topic_word_prior=1.0, form="collapsed")


def test_results_of_models_remember_what_they_were_made_for():
    eta = [[0.5, 3.0, 1.0], [1.2, 0.3, 0.8]]
    prior = LDAPrior(2, 3, [3, 3], doc_topic_prior=0.5, topic_word_prior=eta)
    for model, name, other in [
        (known_mixture(), "weights", np.array([0.5, 0.5])),
        (known_mixture(known_weights=None), "alpha", np.array([1.0, 2.0])),
        (FMM(2, 3, n_samples=5), "prior_probability", 0.3),
        (FMM(2, 3, n_samples=5), "n_samples", 6),
        *((prior, *other) for other in OF_PRIOR.items()),
    ]:
        made = log_partition(model, T)
        made.check(T, model.hyperparameters())
        refused(f"'{name}' is", made.check, T, {name: other})


def test_known_and_learned_weights_do_not_pass_for_one_another(tmp_path):
    known, learned = known_mixture(), known_mixture(known_weights=None)
    for one, other in [(known, learned), (learned, known)]:
        log_partition(one, T).save(tmp_path / "log_c.npz")
        made = LogPartition.load(tmp_path / "log_c.npz")
        made.check(T, one.hyperparameters())
        refused(r"'weights' is .*expected", made.check, T, other.hyperparameters())


@pytest.mark.slow
def test_a_damaged_file(tmp_path):
    path = tmp_path / "log_c.npz"
    result().save(path)
    whole = path.read_bytes()
    for place in range(0, len(whole), 11):
        flipped = bytearray(whole)
        flipped[place] ^= 255
        for content in (bytes(flipped), whole[:place]):
            path.write_bytes(content)
            try:
                LogPartition.load(path)
            except ValueError as error:
                assert "does not contain any LogPartition" in str(error)


@pytest.mark.parametrize(("at_1", "n_data"), [(1e-3, 10), (-2e-8, 10), (np.nan, 10), (3e-8, 2000)])
def test_an_exact_log_c_that_has_lost_its_digits_is_refused(at_1, n_data):
    """log C(1) = 0 is known: another value there tells of rounding, which grows with the data."""
    inverse = np.array([1.0, 0.5])
    check_log_c_at_1(np.array([5e-9, 3.0]), inverse, n_data)
    check_log_c_at_1(np.array([3e-8, 3.0]), inverse, 10_000)
    check_log_c_at_1(np.array([at_1, 3.0]), np.array([0.9, 0.5]), n_data)
    with pytest.raises(
        OutOfReach,
        match=r"inaccurate here because of rounding errors: at T=1 it gives .* instead of 0",
    ):
        check_log_c_at_1(np.array([at_1, 3.0]), inverse, n_data)
