"""Parameters are checked once as long as they stay the same."""

import numpy as np
import pytest
from sklearn.utils._param_validation import validate_parameter_constraints

from annealvi import Annealed, TemperedLDA
from annealvi.lda.settings import CONSTRAINTS, resolve, stream_settings


def check(given):
    CHECKED.append(given)
    validate_parameter_constraints(CONSTRAINTS, given, "TemperedLDA")


CHECKED = []


def settings(**options):
    return stream_settings(check, vars(TemperedLDA(4, **options)))


def test_plain_parameters_are_checked_and_resolved_once():
    first = settings(batch_size=77, total_samples=1000)
    CHECKED.clear()
    assert settings(batch_size=77, total_samples=1000) is first and CHECKED == []
    assert first == resolve(vars(TemperedLDA(4, batch_size=77)), 1000)
    for other in ({"batch_size": 78}, {"total_samples": 10**6}, {"preset": "sklearn"}):
        assert settings(**{"batch_size": 77, "total_samples": 1000} | other) != first


@pytest.mark.parametrize("name", ["doc_topic_prior", "temperature"])
def test_settings_of_objects_that_may_change_are_made_again(name):
    given = {"doc_topic_prior": np.ones(4), "temperature": Annealed()}[name]
    first = settings(**{name: given})
    assert settings(**{name: given}) is not first
    assert getattr(first, name) is given


@pytest.mark.parametrize(("good", "bad"), [(2, 2.0), (3, "3"), (41, -1)])
def test_equal_values_of_another_type_are_checked_every_time(good, bad):
    settings(patience=good)
    for _ in range(2):
        with pytest.raises(ValueError, match="patience"):
            settings(patience=bad)


def test_a_subclass_has_constraints_of_its_own():
    class Small(TemperedLDA):
        _parameter_constraints = TemperedLDA._parameter_constraints | {"n_components": [str]}

    X = np.ones((3, 5))
    TemperedLDA(2).partial_fit(X).partial_fit(X)
    with pytest.raises(ValueError, match="parameter of Small"):
        Small(2).partial_fit(X)
