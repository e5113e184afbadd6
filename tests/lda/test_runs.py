"""Several starts, of which the best is kept, and checkpoints, to the same bits."""

import pickle
import signal
import threading
import time
from contextlib import nullcontext

import numpy as np
import pytest
from numpy.random import RandomState
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import annealvi
from annealvi import Annealed, Fixed, TemperedLDA
from annealvi.callbacks import Checkpoint
from annealvi.files import read, write
from annealvi.inference import runs
from annealvi.models.lda import CPUEngine
from tests.asserts import refused
from tests.callbacks import stop_at
from tests.files.mutations import outcomes
from tests.lda.resumed import KINDS, Snapshots, bits, corpus, make, quietly
from tests.marks import cases, quick_values, slow_values


@pytest.fixture
def X(counts):
    return counts


LEARNED = {kind for kind in KINDS if kind.startswith(("variational", "local", "over the"))}
#: Topics of unlike priors are not merged.
UNLIKE = {"doc_topic_prior": [0.1, 0.1, 0.1, 0.11]}


def several(**parameters):
    """An estimator that keeps the best of its starts; merged ones: test_merged_runs.py."""
    settings = {"n_components": 4, "max_iter": 4, "random_state": 0}
    return TemperedLDA(**settings | UNLIKE | parameters)


@pytest.mark.thinned
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_init", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_bit_identical_for_any_n_jobs(kind, n_init, dtype):
    """From run to run, for dense and sparse counts, and in what goes on from there."""
    X, found = corpus(dtype), []
    for n_jobs, counts in ((1, X), (1, X.toarray()), (3, X), (-1, X)):
        lda = make(kind, n_init=n_init, dtype=dtype, n_jobs=n_jobs)
        topics = quietly(lda.fit_transform, counts)
        assert topics.dtype == dtype and lda.n_jobs == n_jobs
        found.append([topics.tobytes(), bits(lda, X), bits(quietly(lda.partial_fit, X), X)])
    assert all(one == found[0] for one in found)


@pytest.mark.thinned
@pytest.mark.parametrize("error", [StopIteration, KeyboardInterrupt, ZeroDivisionError])
@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_that_is_stopped_can_be_used(kind, error):
    """As it is at that step, and it goes on from there, in a copy too."""
    X = corpus()
    lda = make(kind, callback=stop_at(3, error))
    with nullcontext() if error is StopIteration else pytest.raises(error):
        quietly(lda.fit, X)
    assert lda.temperature_path_.shape == (3,) and lda.n_batch_iter_ == 4
    assert_array_equal(lda.doc_topic_prior_, lda._state.model.alpha)
    for T in (1, "learned") if kind in LEARNED else (1,):
        assert_allclose(lda.transform(X, temperature=T).sum(axis=1), 1)
        assert np.isfinite(lda.score(X, temperature=T))
    copy = pickle.loads(pickle.dumps(lda.set_params(callback=None)))
    assert bits(copy, X) == bits(lda, X)
    assert bits(copy.partial_fit(X), X) == bits(lda.partial_fit(X), X)
    assert lda.temperature_path_[-1] <= lda.temperature_path_[2]


def test_one_start_is_the_first_of_several(X):
    """And further starts do not change those before them."""
    scores = several(n_init=5).fit(X).init_scores_
    assert len(set(scores)) == 5
    for n_init in (1, 2, 4):
        lda = several(n_init=n_init).fit(X)
        assert_array_equal(lda.init_scores_, scores[:n_init])
        assert lda.bound_ in scores[:n_init]
        assert lda.bound_ == pytest.approx(lda.perplexity(X), rel=1e-12)
    lda = several(n_init=4, validation_fraction=0.3, max_iter=None).fit(X)
    assert lda.validation_score_ == lda.init_scores_.max()
    assert several().fit(X).bound_ == scores[0]
    different = several(n_init=5, random_state=1).fit(X).init_scores_
    assert not set(different) & set(scores)


def test_the_start_of_the_highest_elbo_is_kept(X):
    """With the preset of scikit-learn, whose perplexity includes the topics, that of the lowest."""
    lda = several(n_init=5, preset="sklearn").fit(X)
    assert lda.bound_ == lda.init_scores_.min() < lda.init_scores_.max()


@pytest.mark.parametrize("generator", ["RandomState", "global", "PCG64"])
def test_a_generator_is_advanced_as_by_one_start(X, generator):
    def rng():
        if generator == "global":
            np.random.seed(3)
            return None
        other = np.random.MT19937(np.random.SeedSequence(3))
        return np.random.RandomState(3 if generator == "RandomState" else other)

    def rest(rng):
        return np.random.random_sample() if rng is None else rng.random_sample()

    drawn, ldas = [], []
    for n_init, n_jobs in ((1, 1), (3, 1), (3, 2)):
        one = rng()
        ldas.append(several(n_init=n_init, n_jobs=n_jobs, random_state=one).fit(X))
        drawn.append(rest(one))
    assert len(set(drawn)) == 1
    assert bits(ldas[1], X) == bits(ldas[2], X)


def test_a_callback_is_handed_each_start_in_turn(X):
    seen, ids = [], set()

    def callback(estimator, monitor):
        ids.add((id(estimator), threading.get_ident()))
        seen.append((monitor.step, estimator.n_batch_iter_, estimator.components_.sum()))
        assert estimator.transform(X[:2]).shape == (2, 4)
        monitor.record(mark=7)

    settings = dict(learning_method="batch", n_init=3)
    lda = several(callback=callback, n_jobs=2, **settings)
    assert lda.fit(X).history_["mark"].tolist() == [7] * 4
    assert ids == {(id(lda), threading.get_ident())}
    assert [step for step, *_ in seen] == [1, 2, 3, 4] * 3
    assert [after for _, after, _ in seen] == [2, 3, 4, 5] * 3
    plain = several(**settings).fit(X)
    assert_array_equal(lda.components_, plain.components_)
    assert lda.bound_ == plain.bound_


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="signals go to processes here")
@pytest.mark.parametrize("before", [False, True])
def test_an_interrupt_ends_starts_side_by_side(X, before, monkeypatch, request):
    """None goes on in a thread of its own, and the estimator has the best that ended."""
    begun, signals = [], []
    e_step = CPUEngine.e_step
    finished = several(learning_method="batch", n_init=2).fit(X) if before else None

    def step(self, *args, **kwargs):
        if self not in begun:
            begun.append(self)
        if len(begun) == (3 if before else 2) and not signals:
            signals.append(signal.SIGINT)
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        return e_step(self, *args, **kwargs)

    monkeypatch.setattr(CPUEngine, "e_step", step)
    # a process that was started in the background ignores interrupts
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, handler))
    others = threading.active_count()
    # passes enough that starts are under way for long
    lda = several(learning_method="batch", n_init=8, n_jobs=2, max_iter=4 if before else 10**4)
    with pytest.raises(KeyboardInterrupt):
        lda.fit(X)
    steps = lda._state.monitor.step
    deadline = time.monotonic() + 20
    while threading.active_count() > others and time.monotonic() < deadline:
        time.sleep(0.01)  # threads have no work any more, but may be on their way out
    assert threading.active_count() == others
    monkeypatch.undo()
    assert lda.components_.shape == (4, 41) and lda._state.monitor.step == steps
    assert len(begun) < 8
    if before:
        assert lda.perplexity(X) <= max(finished.init_scores_) * (1 + 1e-12)
    lda.partial_fit(X).transform(X)


def test_one_warning_for_the_start_that_was_kept(X):
    settings = dict(n_init=3, temperature=1, evaluate_every=1, perp_tol=1e-9)
    for n_jobs in (1, 2):
        for method in ("fit", "fit_transform"):
            with pytest.warns(ConvergenceWarning, match="had not converged") as caught:
                getattr(several(n_jobs=n_jobs, **settings), method)(X)
            assert len(caught) == 1 and caught[0].filename == __file__


def test_starts_are_ignored_in_a_stream(X):
    many = several(n_init=3, n_jobs=2, validation_fraction=0.2)
    one = several()
    for _ in range(2):
        assert_array_equal(many.partial_fit(X).components_, one.partial_fit(X).components_)
    assert not hasattr(many, "validation_score_")


@pytest.mark.parametrize("dtype", [np.float64, *slow_values(np.float32)])
@pytest.mark.parametrize("kind", quick_values(KINDS, "default", "merged", "local", "validation"))
def test_a_resumed_fit_ends_at_the_same_bits(kind, dtype, tmp_path):
    """From every seventh step, at the end of a pass or within one, and from the end of the fit."""
    X = corpus(dtype)
    whole = bits(quietly(make(kind, dtype=dtype).fit, X), X)
    snapshots = Snapshots(tmp_path, every=1 if "batch" in str(KINDS[kind]) else 7)
    last = tmp_path / "last"
    watched = make(kind, dtype=dtype, callback=[Checkpoint(last, seconds=1e6), snapshots])
    assert bits(quietly(watched.fit, X), X) == whole
    assert len(snapshots.paths) >= 2
    for number, path in enumerate([*snapshots.paths, last], start=1):
        steps = []
        lda = make(kind, dtype=dtype, callback=lambda *of: steps.append(of), n_jobs=2)  # noqa: B023
        assert bits(quietly(lda.fit, X, resume=path), X) == whole
        made = snapshots.n_steps if path == last else number * snapshots.every
        assert len(steps) == snapshots.n_steps - made


@pytest.mark.slow
@pytest.mark.parametrize("seed", [None, RandomState(3)])
def test_the_generator_of_the_beginning(seed, tmp_path):
    """A seed of None and a RandomState go on as they began, wherever they are now."""
    X, paths = corpus(), [tmp_path / "a", tmp_path / "b"]
    watched = make("starts", random_state=seed)
    watched.callback = [Checkpoint(paths[0], seconds=0), stop_at(12, KeyboardInterrupt)]
    with pytest.raises(KeyboardInterrupt):
        watched.fit(X)
    ends, of_numpy = [], np.random.get_state()[1].tobytes()
    for path in paths:
        if seed is not None:
            seed.randint(5, size=7)
        other = make("starts", random_state=seed, callback=Checkpoint(path, seconds=0))
        ends.append(bits(other.fit(X, resume=paths[0]), X))
        if seed is not None:
            ends.append(seed.get_state()[2])
    assert ends[: len(ends) // 2] == ends[len(ends) // 2 :]
    assert np.random.get_state()[1].tobytes() == of_numpy


@pytest.mark.slow
def test_priors_and_topics_that_a_callback_assigns(tmp_path):
    """What was assigned before a checkpoint at the same step is in it."""
    X = corpus()

    def assign(estimator, monitor):
        monitor.record(mine=monitor.step**2)
        if monitor.step == 6:
            estimator.doc_topic_prior_ = 0.4
            estimator.components_ = estimator.components_ * 3.0

    for kind in ("default", "learned priors"):
        whole = bits(make(kind, callback=assign).fit(X), X)
        snapshots = Snapshots(tmp_path)
        make(kind, callback=[assign, snapshots]).fit(X)
        for path in snapshots.paths[4:8]:
            assert bits(make(kind, callback=assign).fit(X, resume=path), X) == whole


def test_a_callback_that_ends_the_fit(tmp_path):
    X = corpus()
    path = tmp_path / "a"
    callback = [stop_at(7), Checkpoint(path, seconds=1e6)]
    whole = make("starts", callback=callback).fit(X)
    assert len(whole.init_scores_) == 1
    resumed = make("starts").fit(X, resume=path)
    assert bits(resumed, X) == bits(whole, X)


def test_a_fit_that_had_ended_warns_again(tmp_path):
    X = corpus()
    lda = make("validation", n_init=1, max_iter=2, callback=Checkpoint(tmp_path / "a"))
    with pytest.warns(UserWarning, match="still improving") as first:
        lda.fit(X)
    with pytest.warns(UserWarning, match="still improving") as again:
        lda.fit(X, resume=tmp_path / "a")
    assert [str(w.message) for w in first] == [str(w.message) for w in again]
    assert again[0].filename == __file__


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """A checkpoint in the middle of a fit with two starts."""
    snapshots = Snapshots(tmp_path_factory.mktemp("checkpoint"), every=30)
    quietly(make("all of it", callback=snapshots).fit, corpus())
    return snapshots.paths[0]


@cases(
    ("changes", "message"),
    (
        {"n_components": 5},
        "another value of 'n_components': .* it is 4, but in this TemperedLDA it is 5",
    ),
    ({"max_iter": 8}, "another value of 'max_iter': .* it is 4, but in this TemperedLDA it is 8"),
    ({"random_state": 1}, "another value of 'random_state'"),
    ({"random_state": RandomState(0)}, "another value of 'random_state'"),
    ({"temperature": Fixed(2)}, "another value of 'temperature': .* it is 'local', .* Fixed"),
    ({"doc_topic_prior": np.ones(4)}, "another value of 'doc_topic_prior': .* it is 'learn'"),
    ({"n_init": 3}, "another value of 'n_init'"),
    ({"dtype": "float64"}, "another value of 'dtype': .* it is 'auto', but .* it is 'float64'"),
    ({"validation_fraction": None}, "another value of 'validation_fraction': .* it is 0.2"),
)
def test_other_parameters_are_refused(checkpoint, changes, message):
    lda = make("all of it").set_params(**changes)
    before = dict(vars(lda))
    refused(message, lda.fit, corpus(), resume=checkpoint)
    assert vars(lda) == before


def test_parameters_that_make_no_difference(checkpoint):
    lda = make("all of it", n_jobs=2, verbose=0, callback=lambda estimator, monitor: None)
    quietly(lda.fit, corpus(), resume=checkpoint)


def test_another_corpus_is_refused(checkpoint):
    X, lda = corpus(), make("all of it")
    for other, message in (
        (X[:79], r"its shape was \(80, 60\), but X has shape \(79, 60\)"),
        (X[::-1], "the numbers in X or their order differ"),
    ):
        refused(message, lda.fit, other, resume=checkpoint)


def test_the_same_corpus_in_another_form(checkpoint):
    X, wide = corpus(), corpus()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    fits = [
        quietly(make("all of it").fit, some, resume=checkpoint)
        for some in (X, X.toarray(), wide, sparse.csc_matrix(X), X.astype(int))
    ]
    single = fits.pop(4)  # which shows its topics in float32
    assert_array_equal(single.components_, fits[0].components_)
    assert len({bits(lda, X) for lda in fits}) == 1
    single = quietly(make("all of it").fit, X.astype(np.float32), resume=checkpoint)
    assert single.components_.dtype == np.float32
    assert_array_equal(single.components_, fits[0].components_)


def test_other_files_are_refused(checkpoint, tmp_path):
    lda, X = make("all of it"), corpus()
    with pytest.raises(FileNotFoundError):
        lda.fit(X, resume=tmp_path / "none")
    tree = read(checkpoint, "checkpoint")["tree"]
    write(tmp_path / "a", "estimator", tree)
    with pytest.raises(ValueError, match=r"must be a file of kind 'checkpoint'\. Got kind 'est"):
        lda.fit(X, resume=tmp_path / "a")
    tree["fit"]["estimator"] = "TemperedFMM"
    write(tmp_path / "a", "checkpoint", tree)
    refused(
        r"a checkpoint of TemperedLDA\. Got a checkpoint of TemperedFMM",
        lda.fit,
        X,
        resume=tmp_path / "a",
    )
    assert not hasattr(lda, "components_")


def test_another_version_warns(checkpoint, monkeypatch):
    monkeypatch.setattr("annealvi.versions.__version__", "99.0")
    with pytest.warns(
        UserWarning, match=r"was written by annealvi 0.* is now read by annealvi 99.0"
    ):
        quiet = make("all of it", evaluate_every=-1)
        refused("another value of 'evaluate_every'", quiet.fit, corpus(), resume=checkpoint)


class OwnTemperature(Annealed):
    pass


def test_what_cannot_be_written(tmp_path):
    X, path = corpus(), tmp_path / "a"
    lda = make(temperature=OwnTemperature(2.0), callback=Checkpoint(path, seconds=0))
    refused("'temperature' parameter cannot be written", lda.fit, X, error=TypeError)
    assert not path.exists()
    generator = RandomState(np.random.PCG64(0))
    make(random_state=generator).fit(X)  # without a checkpoint it may be any
    with pytest.raises(TypeError, match="bit generator PCG64 cannot be written"):
        make(random_state=generator, callback=Checkpoint(path, seconds=0)).fit(X)


def test_save_state_is_for_a_fit_under_way(tmp_path):
    lda, path = make(), tmp_path / "a"
    for act in (lambda: None, lambda: lda.fit(corpus()), lambda: lda.partial_fit(corpus())):
        act()
        refused(r"is running\. .* use annealvi\.save", lda.save_state, path)
    stream = make(callback=Checkpoint(path, seconds=0))
    refused(r"works only in `fit`.*annealvi\.save", stream.partial_fit, corpus())
    assert not path.exists()


@pytest.mark.slow
@cases(
    "kind, n, number",
    *(("all of it", 40, 1), ("variational", 40, 1), ("merged", 60, 1), ("merged", 60, -1)),
)
def test_forged_checkpoints(kind, n, number, tmp_path, monkeypatch):
    """An error, or a fit that is sound."""
    X, snapshots = corpus(), Snapshots(tmp_path, every=7)
    quietly(make(kind, callback=snapshots).fit, X)
    tree = read(snapshots.paths[number], "checkpoint")["tree"]

    def resumed(tree):
        content = {"version": annealvi.__version__, "tree": tree}
        monkeypatch.setattr(runs, "read", lambda *names: content)
        return make(kind).fit(X, resume="forged")

    def use(lda):
        return [lda.components_, lda.transform(X[:5]), lda.score(X[:5])]

    assert outcomes(tree, n, resumed, use)["refused"] > n / 3
