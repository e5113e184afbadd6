"""Several starts: the best kept, in turn or side by side, and whose checkpoint it is."""

import threading

import numpy as np
import pytest
from numpy.random import RandomState
from scipy import sparse

from annealvi import Annealed, TemperedFMM, TemperedLDA
from annealvi.files import read, write
from annealvi.inference.runs import Fingerprint, Runs, begin_generator, described
from annealvi.matrices import digest
from tests.asserts import refused
from tests.marks import cases


class Fit:
    """A fit that ends as it is told to."""

    def __init__(self, number, goodness, *, n_steps=3, stopped=False, error=None, own=False):
        self.number, self.n_steps, self.stopped = number, n_steps, stopped
        self.score, self.goodness = goodness, goodness
        self.error, self.in_callback, self._own = error, False, own

    def run(self):
        if self.error is not None:
            self.in_callback = self._own
            raise self.error


def starts():
    return Runs(Fingerprint(TemperedFMM(), np.zeros((2, 2))), 0)


def fit(fits, n_workers=1):
    """What the fits leave: the number of the best, and the scores or the error."""
    several = starts()
    try:
        (best,) = several.run(lambda number: fits[number], len(fits), n_workers=n_workers)
    except BaseException as error:
        return several.best and several.best.number, type(error)
    assert best is several.best
    return best.number, several.scores


BOTH = pytest.mark.parametrize("n_workers", [1, 2])


@BOTH
@cases(
    "scores, best",
    ([1.0, 3.0, 2.0], 1),
    ([2.0, 2.0, 2.0], 0),
    ([np.nan, -5.0, np.nan], 1),
    ([np.nan, np.nan], 0),
)
def test_the_best_is_kept(scores, best, n_workers):
    """Of equal ones the first; what is no number is the worst."""
    found = fit([Fit(number, score) for number, score in enumerate(scores)], n_workers)
    assert found[0] == best
    np.testing.assert_array_equal(found[1], scores)


@pytest.mark.parametrize("stops", [False, True])
def test_what_follows_is_made_of_the_runs_that_have_ended(stops):
    fits, last, told = [Fit(0, 1.0), Fit(1, 2.0, stopped=stops)], Fit(2, 0.0), []

    def follow(runs):
        told.append([*runs])
        return last

    several = starts()
    assert several.run(fits.__getitem__, 3 if stops else 2, merge_fits=follow) == [last]
    assert told == [fits] and several.best is last


@pytest.mark.parametrize(("own", "left"), [(True, 1), (False, None)])
def test_an_error_in_what_follows(own, left):
    fits, several = [Fit(0, 1.0)], starts()
    last = Fit(1, 0.0, error=ValueError("wrong"), own=own)
    refused("wrong", several.run, fits.__getitem__, 1, merge_fits=lambda runs: last)
    assert (several.best and several.best.number) == left


def test_a_callback_may_end_all_starts():
    assert fit([Fit(0, 1.0), Fit(1, 0.0, stopped=True), Fit(2, 9.0)]) == (0, [1.0, 0.0])


def test_starts_begin_one_after_the_other():
    """So that they may draw from the same random numbers."""
    log = []

    def begin(number):
        log.append(("begins", number))
        one = Fit(number, 0.0)
        one.run = lambda: log.append(("runs", number))
        return one

    starts().run(begin, 2, show=lambda one: log.append(("is shown", one.number)))
    words = ("begins", "is shown", "runs")
    assert log == [(word, number) for number in range(2) for word in words]


@cases("error, own", (KeyboardInterrupt(), False), (RuntimeError("mine"), True))
def test_an_interrupt_or_the_users_error_leaves_the_best_so_far(error, own):
    unfinished = {"error": error, "own": own}
    assert fit([Fit(0, 1.0), Fit(1, -np.inf, **unfinished)]) == (0, type(error))
    # one that is not finished may be known to be better, as that of a mixture
    assert fit([Fit(0, 1.0), Fit(1, 5.0, **unfinished)]) == (1, type(error))
    assert fit([Fit(0, -np.inf, **unfinished)]) == (0, type(error))
    assert fit([Fit(0, -np.inf, n_steps=0, **unfinished)]) == (None, type(error))


@BOTH
def test_other_errors_leave_nothing(n_workers):
    fits = [Fit(0, 1.0), Fit(1, 2.0, error=ValueError("wrong"))]
    assert fit(fits, n_workers) == (None, ValueError)


@BOTH
def test_an_exit_leaves_the_best_so_far(n_workers):
    fits = [Fit(number, 1.0, error=SystemExit(1)) for number in range(2)]
    assert fit(fits, n_workers) == (0, SystemExit)


def test_an_error_side_by_side_halts_the_others():
    began, several, begun = threading.Event(), starts(), []
    fits = [Fit(0, 1.0), Fit(1, 1.0)]

    def wait():
        began.set()
        assert several.halt.wait(20)
        threading.Event().wait(0.1)  # in which the other thread comes to the third start

    def fail():
        assert began.wait(20)
        raise ValueError("wrong")

    fits[0].run, fits[1].run = wait, fail
    begin = lambda number: begun.append(number) or fits[number]  # noqa: E731
    refused("wrong", several.run, begin, 3, n_workers=2)
    assert sorted(begun) == [0, 1]


def test_an_interrupt_side_by_side_keeps_what_had_ended():
    """The main thread is interrupted while it waits for the second start."""
    ended, several = threading.Event(), starts()
    fits = [Fit(0, 1.0), Fit(1, -np.inf)]

    def interrupt():
        assert ended.wait(20)
        raise KeyboardInterrupt

    # ends after run has returned; the second start needs longer than that
    fits[0].run, fits[1].run = lambda: threading.Timer(0.2, ended.set).start(), interrupt
    with pytest.raises(KeyboardInterrupt):
        several.run(fits.__getitem__, 2, n_workers=2)
    assert several.best is fits[0]


X = sparse.csr_matrix(np.arange(12.0).reshape(3, 4))


def test_digests_of_data():
    wide = X.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    assert digest(wide) == digest(X)
    assert digest(np.asfortranarray(X.toarray())) == digest(X.toarray())
    others = [X[::-1], X.astype(np.float32), 2 * X, X[:2], X.toarray(), X.toarray().astype("f4")]
    assert len({digest(other) for other in [X, *others]}) == 7


@cases(
    "one, other, expected",
    (1, 1.0, True),
    (1, True, False),
    (np.nan, np.nan, True),
    (None, 0, False),
    (["a", [2]], ["a", [2]], True),
    ([1, 2], [1], False),
    ({"a": 1}, {"b": 1}, False),
    (np.full(2, np.nan), np.full(2, np.nan), True),
    (np.ones(2), np.ones(2, np.float32), False),
    (np.ones(2), [1.0, 1.0], False),
)
def test_equal_parameters_have_the_same_text(one, other, expected):
    assert (described(one) == described(other)) is expected


def test_a_fingerprint_is_of_the_parameters_at_the_beginning(tmp_path):
    lda = TemperedLDA(3, temperature=Annealed(2.0), random_state=RandomState(0))
    fingerprint = Fingerprint(lda, X)
    lda.set_params(n_components=5, n_jobs=2, random_state=RandomState(1))
    write(tmp_path / "a", "checkpoint", fingerprint.tree)
    node = read(tmp_path / "a", "checkpoint")["tree"]
    fingerprint.check(node, "a")
    with pytest.raises(
        ValueError, match=r"resume='a' is a .* another value of 'n_components'.* it is 3"
    ):
        Fingerprint(lda, X).check(node, "a")
    lda.set_params(n_components=3, temperature=Annealed(2.5))
    refused(r"Annealed\(.*start=2\), .*start=2\.5\)", Fingerprint(lda, X).check, node, "a")
    for damage in ({"parameters": {}}, {"parameters": 3}, {"X": 3}, {"shape": None}):
        with pytest.raises(ValueError, match=r"'a' is a checkpoint|is damaged"):
            fingerprint.check(fingerprint.tree | damage, "a")


def test_the_generator_of_a_fit(tmp_path):
    saved = RandomState(3)
    expected = RandomState(3).randint(1000, size=3).tolist()
    given = RandomState(9)
    assert begin_generator(given, saved) is given
    for generator in (given, begin_generator(None, saved), begin_generator(3, None)):
        assert generator.randint(1000, size=3).tolist() == expected
    assert begin_generator(None, None) is np.random.mtrand._rand
