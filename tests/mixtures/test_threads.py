"""Several threads at one mixture; docs/look_up/threads.md has the policy."""

import copy
import threading

import numpy as np
import pytest

from tests.mixtures.fits import ATTRIBUTES, X, bits, fmm, gmm
from tests.side_by_side import at_once, beside

NARROW = np.ascontiguousarray(X[:, :7])
READERS = {
    fmm: [lambda one, X: one.transform(X[:20]), lambda one, X: one.score_samples(X[:20])],
    gmm: [lambda one, X: one.predict_proba(X[:20]), lambda one, X: one.sample(4)[0]],
}
both = pytest.mark.parametrize("make", READERS, ids=lambda make: make.__name__)


@both
def test_fits_of_one_estimator_take_turns(make):
    expected = make(max_iter=8).fit(X)
    one = make(max_iter=8)
    at_once(*[lambda: one.fit(X)] * 4)
    assert bits(one) == bits(expected)


@pytest.mark.slow
@both
def test_readers_beside_fits_see_one_fit_or_the_other(make):
    one = make(max_iter=5)
    answers = set()
    for data in (X, NARROW):
        one.fit(data)
        answers |= {np.asarray(read(one, data)).tobytes() for read in READERS[make]}
        answers |= {np.asarray(getattr(one, name)).tobytes() for name in ATTRIBUTES[make]}

    def fits():
        for _ in range(4):
            one.fit(X).fit(NARROW)

    def look(data, read):
        try:
            return np.asarray(read(one, data)).tobytes()
        except ValueError as error:
            assert "features" in str(error)  # scikit-learn's words
            return None

    shown = [lambda one, _, name=name: getattr(one, name) for name in ATTRIBUTES[make]]
    both = [(data, read) for data in (X, NARROW) for read in [*READERS[make], *shown]]
    found = beside(fits, *[lambda each=each: look(*each) for each in both])[1]
    seen = {answer for reader in found for answer in reader} - {None}
    assert seen <= answers and seen


@both
def test_readers_beside_a_fit_with_a_callback_see_whole_steps(make):
    states, go_on = set(), threading.Event()

    def note(one, monitor):
        states.update(read(one, X).tobytes() for read in READERS[make])

    one = make(max_iter=12, callback=note).fit(X)
    assert len(states) > 12
    one.set_params(callback=lambda one, monitor: go_on.set())
    readers = [lambda read=read: read(one, X).tobytes() for read in READERS[make]]
    found = beside(lambda: one.fit(X), *readers)[1]
    assert go_on.is_set()
    assert set(found[0] + found[1]) <= states


@both
def test_a_copy_made_in_a_callback_stays_at_its_step(make):
    kept = []

    def keep(estimator, monitor):
        if monitor.step == 3:
            kept.extend([copy.copy(estimator), copy.deepcopy(estimator)])

    options = dict(temperature="variational", noise_variance=0.1) if make is fmm else {}
    one = make(max_iter=8, tol=0, callback=keep, **options).fit(X)
    shallow, deep = kept
    assert shallow.n_iter_ == len(shallow.history_["elbo"]) == len(shallow.temperature_path_) == 3
    assert shallow.lower_bound_ == deep.lower_bound_ != one.lower_bound_
    if make is fmm:
        assert len(shallow.temperature_posterior_path_) == 3
