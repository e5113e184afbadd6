"""The progress bar of a fit."""

import io
import pickle
import time

import numpy as np
import pytest

from annealvi import TemperedFMM, TemperedGaussianMixture, TemperedLDA
from annealvi.callbacks import ProgressBar
from annealvi.progress import Progress
from tests.callbacks import stop_at

RNG = np.random.RandomState(0)
COUNTS = RNG.poisson(1.0, (60, 12))
POINTS = RNG.standard_normal((40, 3))


def shown(make, X, **parameters):
    """A fit with a bar, and what the bar showed at last."""
    file = io.StringIO()
    fitted = make(3, random_state=0, callback=ProgressBar(file=file), **parameters).fit(X)
    return fitted, file.getvalue().splitlines()[-1].strip()


def test_it_counts_the_steps_of_all_starts_and_shows_the_bound():
    options = {"max_iter": 4, "batch_size": 20, "n_init": 2, "temperature": 2}
    lda, line = shown(TemperedLDA, COUNTS, **options)
    assert line.startswith("TemperedLDA: 100%") and "| 24/24 [" in line
    last = TemperedLDA(3, random_state=0, **options).fit(COUNTS)
    assert np.array_equal(lda.components_, last.components_)
    assert "run 2 of 2, T " in line
    second = lda.init_scores_[1]  # all documents are few
    assert f"perplexity {second:.6g}]" in line


@pytest.mark.parametrize("parameters", [{"preset": "sklearn"}, {"temperature": "local"}])
def test_a_bar_that_computes_bounds_draws_nothing(monkeypatch, parameters):
    monkeypatch.setattr("annealvi.callbacks.PAUSE", 0.0)
    monkeypatch.setattr("annealvi.callbacks.SHARE", 1e9)  # a bound after each step
    parameters = parameters | {"max_iter": 3, "batch_size": 20, "learning_method": "online"}
    lda, _ = shown(TemperedLDA, COUNTS, **parameters)
    plain = TemperedLDA(3, random_state=0, **parameters).fit(COUNTS)
    assert np.array_equal(lda.components_, plain.components_)


@pytest.mark.parametrize("make", [TemperedGaussianMixture, TemperedFMM])
def test_mixtures_show_their_elbo(make):
    mixture, line = shown(make, POINTS, max_iter=7, temperature=1.0, tol=0)
    assert "| 7/7 [" in line and f"T 1, ELBO per sample {mixture.lower_bound_:.6g}]" in line


def test_a_fit_that_ends_early_leaves_its_bar_where_it_was():
    file = io.StringIO()
    callback = [ProgressBar("mine", file=file), stop_at(3)]
    TemperedLDA(3, max_iter=9, n_init=1, callback=callback).fit(COUNTS)
    assert "mine:  22%" in file.getvalue() and "2/9" in file.getvalue()


def test_a_bar_can_be_used_again_and_copied_but_not_twice_at_once():
    file = io.StringIO()
    bar = ProgressBar(file=file)
    for _ in range(2):
        TemperedLDA(2, max_iter=1, callback=bar).fit(COUNTS)
    assert file.getvalue().count("100%") >= 2
    with bar.during_fit(None), pytest.raises(ValueError, match="already used by another fit"):
        TemperedLDA(2, max_iter=1, callback=bar).fit(COUNTS)
    assert repr(pickle.loads(pickle.dumps(ProgressBar("mine")))) == "ProgressBar(desc='mine')"


def test_nothing_is_shown_in_a_stream():
    file = io.StringIO()
    lda = TemperedLDA(2, callback=ProgressBar(file=file)).partial_fit(COUNTS)
    assert lda.n_batch_iter_ == 2 and file.getvalue() == ""


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_line_shows_how_far_something_is(monkeypatch):
    monkeypatch.setattr("annealvi.progress.PAUSE", 0.01)
    terminal, log = Terminal(), io.StringIO()
    for file in (terminal, log):
        with Progress("refits", 4, file=file, delay=0.01) as progress:
            time.sleep(0.1)
            progress.n_done += 1
            time.sleep(0.1)
    assert "\rrefits:   0%|          | 0/4 [00:00]" in terminal.getvalue()
    assert "refits:  25%|##5       | 1/4 [00:00<00:00]\n" in terminal.getvalue()
    assert "\r" not in log.getvalue() and log.getvalue().count("\n") == 2


def test_what_is_quick_or_hidden_is_not_shown():
    file = io.StringIO()
    with Progress("counting", file=file):
        pass
    with Progress("counting", file=file, delay=0.01, shown=False):
        time.sleep(0.05)
    assert file.getvalue() == ""


def test_the_time_left_is_that_of_the_same_pace():
    log = io.StringIO()
    with Progress("refits", 10, file=log, delay=0.0) as progress:
        progress._bar.start_t -= 40.5
        progress.n_done = 4
        progress._draw()
        progress.n_before = 2  # done by an earlier fit
        progress._draw()
    first, second, _ = log.getvalue().splitlines()
    assert first.startswith("refits:  40%|####      | 4/10 [00:40<01:0")
    assert "4/10 [00:40<02:0" in second


def test_batch_passes_count_as_whole_passes():
    steps = []

    class Bar(ProgressBar):
        def begin(self, estimator, run):
            super().begin(estimator, run)
            steps.append((run.n_before, run.n_steps, run.n_all))

    file = io.StringIO()
    lda = TemperedLDA(3, random_state=0, callback=Bar(file=file), batch_size=20, n_init=2)
    lda.fit(COUNTS)
    n_runs = 3 * lda.settings_["max_iter"]
    assert [before for before, _, _ in steps] == [0, n_runs, 2 * n_runs]
    *_, (before, n_steps, n_all) = steps
    assert n_all > before + n_steps  # batch passes are one step each, but take as long as a pass
    assert len({n for _, _, n in steps}) == 1
