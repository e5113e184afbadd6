"""The variational temperature with a given log C(T), and with grids of the user's own."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from annealvi import Variational
from annealvi.partition import LogPartition
from tests.temperature.stubs import GRID, B, Gauss, Words, made_for, posterior, show, vt

# ------------------------------------------------------------------ log C


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
