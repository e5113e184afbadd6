"""Parameters are checked once as long as they stay the same."""

import numpy as np
import pytest
from sklearn.utils._param_validation import validate_parameter_constraints

from annealvi import Annealed, TemperedLDA
from annealvi.lda.settings import CONSTRAINTS, check_parameters, resolve, stream_settings


def check(given):
    CHECKED.append(given)
    validate_parameter_constraints(CONSTRAINTS, given, "TemperedLDA")


CHECKED = []


def values(**options):
    return vars(TemperedLDA(4, **options))


def test_settings_of_plain_parameters_are_made_once():
    first = stream_settings(values(batch_size=77), 1000)
    assert stream_settings(values(batch_size=77), 1000) is first
    assert first == resolve(values(batch_size=77), 1000)
    for other in (
        stream_settings(values(batch_size=78), 1000),
        stream_settings(values(batch_size=77), 10**6),
        stream_settings(values(batch_size=77, preset="sklearn"), 1000),
    ):
        assert other != first


@pytest.mark.parametrize("name", ["doc_topic_prior", "temperature"])
def test_settings_of_objects_that_may_change_are_made_again(name):
    given = {"doc_topic_prior": np.ones(4), "temperature": Annealed()}[name]
    first = stream_settings(values(**{name: given}), 1000)
    assert stream_settings(values(**{name: given}), 1000) is not first
    assert getattr(first, name) is given


@pytest.mark.parametrize(("good", "bad"), [(1, True), (2, 2.0), (1, np.bool_(True)), (3, "3")])
def test_equal_values_of_another_type_are_checked_for_themselves(good, bad):
    check_parameters(check, values(patience=good))
    expected = pytest.raises(ValueError, match="patience")
    if isinstance(bad, bool):  # an int for scikit-learn, too
        check_parameters(check, values(patience=bad))
    else:
        with expected:
            check_parameters(check, values(patience=bad))


def test_what_is_the_same_is_checked_once():
    given = values(batch_size=41)
    check_parameters(check, given)
    CHECKED.clear()
    check_parameters(check, given)
    assert CHECKED == []
    check_parameters(check, given | {"doc_topic_prior": np.ones(4)})
    assert [list(some) for some in CHECKED] == [
        [name for name in given if name != "doc_topic_prior"],
        ["doc_topic_prior"],
    ]


def test_a_bad_value_is_refused_every_time():
    for _ in range(2):
        with pytest.raises(ValueError, match="'batch_size' parameter of TemperedLDA"):
            check_parameters(check, values(batch_size=-1))


def test_a_list_that_changes_in_place():
    callbacks = [print]
    given = values(callback=callbacks, random_state=np.random.RandomState(0))
    check_parameters(check, given)
    given["callback"] = {}
    with pytest.raises(ValueError, match="callback"):
        check_parameters(check, given)


def test_a_subclass_has_constraints_of_its_own():
    class Small(TemperedLDA):
        _parameter_constraints = TemperedLDA._parameter_constraints | {"n_components": [str]}

    X = np.ones((3, 5))
    TemperedLDA(2).partial_fit(X).partial_fit(X)
    with pytest.raises(ValueError, match="parameter of Small"):
        Small(2).partial_fit(X)
