"""Parameters that are left open, what they stand for, and fits under the recommended ones."""

import re

import numpy as np
import pytest
from numpy.testing import assert_array_equal, assert_equal
from sklearn.base import clone
from sklearn.utils._param_validation import validate_parameter_constraints

from annealvi import TemperedLDA
from annealvi.datasets import make_topic_corpus
from annealvi.lda.settings import (
    CONSTRAINTS,
    Settings,
    batch_size,
    passes,
    resolve,
    stream_settings,
    words_per_entry,
)
from annealvi.metrics.held_out import usual_prior
from tests.marks import cases

PRESETS = ("annealvi", "sklearn")
OPEN = [name for name in TemperedLDA().get_params(deep=False) if name in Settings._fields]
SIZES = (1, 2, 5, 50, 99, 100, 101, 500, 3000, 10_000, 50_000, 97_000, 10**6, 10**9)
#: A value for each open parameter that neither preset has.
GIVEN = dict(
    doc_topic_prior=0.31, topic_word_prior=0.17, max_iter=3, batch_size=33, temperature=1.7
)
GIVEN |= dict(max_doc_update_iter=17, mean_change_tol=0.02, init="documents")
CHOICES = dict(learning_method=("batch", "online"), estimate=("map", "variational"))


@pytest.fixture(scope="module")
def stream():
    """More documents than a minibatch has, of few words each."""
    return make_topic_corpus(400, 90, 5, document_length=12, random_state=1).data


def as_parameters(settings):
    """Settings by the names of parameters, without what has none."""
    return {name: settings._asdict()[name] for name in OPEN}


def settled(n_samples=1000, density=None, **parameters):
    return resolve(TemperedLDA(**parameters).get_params(deep=False), n_samples, density)


def everything(lda, X):
    """What a fit has to say, to compare bit for bit."""
    found = [np.array(lda.components_), lda.temperature_path_, lda.transform(X), lda.score(X)]
    return [*found, getattr(lda, "bound_", None), lda.n_iter_, lda.n_batch_iter_]


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("n_samples", SIZES)
@pytest.mark.parametrize("n_components", [1, 2, 10, 30, 31, 1000])
def test_nothing_stays_open(n_components, n_samples, preset):
    settings = settled(n_samples, n_components=n_components, preset=preset)
    for name, value in as_parameters(settings).items():
        assert value is not None, name
        assert not (isinstance(value, str) and value == "auto"), name
    # whatever it stands for could have been given
    TemperedLDA(n_components, **as_parameters(settings))._validate_params()


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("name", [*GIVEN, *CHOICES])
def test_what_is_given_wins(name, preset):
    for value in CHOICES.get(name, [GIVEN.get(name)]):
        settings = settled(preset=preset, **{name: value})
        assert getattr(settings, name) == value
    for topics in (np.ones((10, 3)), np.ones((10, 3)).tolist()):
        assert settled(preset=preset, init=topics).init is topics


def test_documents_start_as_the_preset_says():
    by_hand = dict(temperature=1, init="random", estimate="variational")
    for own in ({}, by_hand, dict(temperature="annealed"), dict(init=np.ones((10, 3)))):
        assert settled(preset="sklearn", **own).exact
        assert not settled(**own).exact


@pytest.mark.parametrize("preset", PRESETS)
def test_limits_that_are_given_are_the_only_ones(preset):
    options = settled(density=3.0, preset=preset, mean_change_tol=0.5).local_options()
    assert options.by_topic and not options.over_relaxed
    options = settled(density=3.0, preset=preset, max_doc_update_iter=7).local_options()
    assert options.inference_iter is None and not options.over_relaxed
    assert settled(density=3.0).over_relaxed and settled().token_change_tol == 0.01


def test_priors():
    for K in range(1, 2000):  # 0.1 between 10 and 30
        assert usual_prior(K) == pytest.approx(np.clip(0.1, 1 / K, 3 / K))
    assert settled(n_components=50).doc_topic_prior == settled(n_components=50).topic_word_prior


def test_minibatches_grow_and_passes_become_fewer():
    sizes, n_passes = [batch_size(D) for D in SIZES], [passes(D) for D in SIZES]
    assert sizes == sorted(sizes) and n_passes == sorted(n_passes, reverse=True)
    for value in sizes + n_passes:
        assert isinstance(value, int) and value >= 1
    assert max(sizes) <= 10_000 and max(n_passes) <= 200
    work = [n * D for n, D in zip(n_passes, SIZES, strict=True)]
    assert work == sorted(work)  # more documents are never less to do


def test_a_fit_of_one_minibatch_is_a_batch_fit(X):
    for D in SIZES:
        settings = settled(D)
        assert settings.learning_method == ("online" if settings.batch_size < D else "batch")
        assert settled(D, batch_size=D).learning_method == "batch"
        assert settled(D, batch_size=D + 1).learning_method == "batch"
        assert settled(D, batch_size=1).learning_method == ("online" if D > 1 else "batch")
        assert settled(D, learning_method="online", batch_size=D).learning_method == "online"
        assert settled(D, batch_size=1, preset="sklearn").learning_method == "batch"
    one = {"max_iter": 3, "n_init": 1, "random_state": 0}
    assert TemperedLDA(4, **one).fit(X).n_batch_iter_ == 1 + 3
    lda = TemperedLDA(4, **one, batch_size=20, temperature=1).fit(X)
    assert lda.n_batch_iter_ == 1 + 3 * 4


def test_a_fit_makes_the_passes_and_steps_that_it_says(stream):
    n_samples = stream.shape[0]
    settings = settled(n_samples, words_per_entry(stream, 10))
    lda = TemperedLDA(random_state=0).fit(stream)
    assert settings.finish_iter == 12
    per_pass = -(-n_samples // settings.batch_size) if settings.learning_method == "online" else 1
    n_refining = 1 if per_pass == 1 else -(-10 // per_pass)
    n_online = settings.max_iter + n_refining
    assert lda.n_iter_ == n_online + settings.finish_iter
    assert lda.n_batch_iter_ == 1 + n_online * per_pass + settings.finish_iter
    lda = TemperedLDA(random_state=0, max_iter=2, batch_size=150, preset="sklearn")
    lda.set_params(learning_method="online").fit(stream)
    assert (lda.n_iter_, lda.n_batch_iter_) == (2, 1 + 2 * 3)
    assert TemperedLDA(max_iter=0).fit(stream).n_batch_iter_ == 1


@pytest.mark.slow
def test_open_is_as_if_they_were_given(stream):
    """Fits from settings written out are the fits that leave them open."""
    for preset in PRESETS:
        density = words_per_entry(stream, 5)
        open_ones = settled(stream.shape[0], density, n_components=5, preset=preset)
        settings = as_parameters(open_ones)
        # the first two choose the kind of steps where they are given, the others plain iterations
        for name in ("learning_decay", "learning_offset", "mean_change_tol", "max_doc_update_iter"):
            settings.pop(name, None)
        given = TemperedLDA(5, preset=preset, **settings, random_state=0).fit(stream)
        left = TemperedLDA(5, preset=preset, random_state=0).fit(stream)
        assert_equal(everything(left, stream), everything(given, stream))


def test_parameters_stay_open_after_a_fit(stream):
    lda = TemperedLDA(5, random_state=0)
    before = repr(lda), lda.get_params()
    lda.fit(stream[:50])
    assert (repr(lda), lda.get_params()) == before
    again = clone(lda).fit(stream)
    # a second fit has the size of its own documents
    assert_equal(everything(lda.fit(stream), stream), everything(again, stream))


def test_partial_fit_goes_by_the_documents_of_the_whole(stream):
    for total in (300, 1e4, 1e6, 0.5):
        lda = TemperedLDA(5, total_samples=total, random_state=0).partial_fit(stream)
        size = settled(int(total)).batch_size
        assert lda.n_batch_iter_ == 1 + -(-stream.shape[0] // size)
        assert_array_equal(lda.temperature_path_, 1)  # of unknown length, so not annealed
    lda = TemperedLDA(5, batch_size=100, random_state=0).partial_fit(stream)
    assert lda.n_batch_iter_ == 5


@pytest.mark.parametrize("preset", PRESETS)
def test_topics_of_another_number_have_their_own_open_priors(stream, preset):
    lda = TemperedLDA(5, preset=preset, random_state=0).fit(stream)
    lda.components_ = np.vstack([lda.components_] * 8)
    expected = settled(preset=preset, n_components=40).doc_topic_prior
    assert lda.doc_topic_prior_ == lda.topic_word_prior_ == expected
    new = TemperedLDA(preset=preset)
    new.components_ = np.ones((2, 90))
    assert new.doc_topic_prior_ == 0.5
    assert new.partial_fit(stream).transform(stream).shape == (400, 2)


@cases("parameters", dict(preset="no"), dict(n_components=0), dict(batch_size="many"))
def test_components_assigned_where_parameters_are_wrong(parameters):
    """An error that names the parameter, as `fit` has it."""
    lda = TemperedLDA(**parameters)
    (name,) = parameters
    with pytest.raises(ValueError, match=re.escape(f"'{name}' parameter of TemperedLDA")):
        lda.components_ = np.ones((3, 8))
    assert not hasattr(lda, "components_")


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
