"""A fit that was stopped goes on to the same bits, and refuses what it did not begin with."""

import numpy as np
import pytest
from numpy.random import RandomState
from numpy.testing import assert_array_equal
from scipy import sparse

import annealvi
from annealvi import Annealed, Fixed, TemperedLDA, Variational
from annealvi.checkpoint import Checkpoint
from annealvi.files import read, write
from annealvi.inference import starts
from tests.files.mutations import mutated_tree, outcome
from tests.lda.resumed import KINDS, Counter, Snapshots, bits, corpus, make, quietly

#: Kinds that are tried in float32 in every run of the tests, not only in `make test-all`.
ALSO_SINGLE = {"batch", "local", "learned priors"}
CASES = [
    *(pytest.param(kind, np.float64, id=kind) for kind in KINDS),
    *(
        pytest.param(
            *(kind, np.float32),
            id=f"{kind}, float32",
            marks=() if kind in ALSO_SINGLE else pytest.mark.slow,
        )
        for kind in KINDS
    ),
]


@pytest.mark.parametrize(("kind", "dtype"), CASES)
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
        counter = Counter()
        lda = make(kind, dtype=dtype, callback=counter, n_jobs=2)
        assert bits(quietly(lda.fit, X, resume=path), X) == whole
        made = snapshots.n_steps if path == last else number * snapshots.every
        assert counter.n_steps == snapshots.n_steps - made


def test_a_fit_that_stops_after_each_step(tmp_path):
    """And is resumed each time, in another estimator, from a file that is written again."""
    X, path, counter = corpus(), tmp_path / "a", Counter()
    whole = bits(make(callback=counter).fit(X), X)

    for number in range(counter.n_steps):
        lda = make(callback=[stop_at(number + 2, KeyboardInterrupt), Checkpoint(path, seconds=0)])
        try:
            lda.fit(X, resume=path if number else None)
        except KeyboardInterrupt:
            assert lda.n_batch_iter_ == number + 3
    assert bits(lda, X) == whole


def stop_at(step, error):
    def callback(estimator, monitor):
        if monitor.step == step:
            raise error

    return callback


@pytest.mark.parametrize("seed", [None, RandomState(3)])
def test_the_generator_of_the_beginning(seed, tmp_path):
    """A seed of None and a RandomState go on as they began, wherever they are now."""
    X, paths = corpus(), [tmp_path / "a", tmp_path / "b"]
    watched = make("starts", random_state=seed)
    watched.callback = [Checkpoint(paths[0], seconds=0), stop_at(12, KeyboardInterrupt)]
    with pytest.raises(KeyboardInterrupt):
        watched.fit(X)
    ends = []
    for path in paths:
        if seed is not None:
            seed.randint(5, size=7)
        other = make("starts", random_state=seed, callback=Checkpoint(path, seconds=0))
        ends.append(bits(other.fit(X, resume=paths[0]), X))
        if seed is not None:
            ends.append(seed.get_state()[2])
    assert ends[: len(ends) // 2] == ends[len(ends) // 2 :]


def test_a_global_generator_stays_as_it_is(tmp_path):
    X = corpus()
    snapshots = Snapshots(tmp_path, every=9)
    make(random_state=None, callback=snapshots).fit(X)
    np.random.seed(5)
    expected = RandomState(5).randint(1000)
    make(random_state=None).fit(X, resume=snapshots.paths[0])
    assert np.random.randint(1000) == expected


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
    callback = [stop_at(7, StopIteration), Checkpoint(path, seconds=1e6)]
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


# ------------------------------------------------------------------------- refusals


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """A checkpoint in the middle of a fit with two starts."""
    snapshots = Snapshots(tmp_path_factory.mktemp("checkpoint"), every=30)
    quietly(make("all of it", callback=snapshots).fit, corpus())
    return snapshots.paths[0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_components": 5}, "another 'n_components': it has 4, this TemperedLDA has 5"),
        ({"max_iter": 8}, "another 'max_iter': it has 4, this TemperedLDA has 8"),
        ({"random_state": 1}, "another 'random_state'"),
        ({"random_state": RandomState(0)}, "another 'random_state'"),
        ({"temperature": Fixed(2)}, "another 'temperature': it has 'local', .* Fixed"),
        ({"doc_topic_prior": np.ones(4)}, "another 'doc_topic_prior': it has 'learn'"),
        ({"n_init": 3}, "another 'n_init'"),
        ({"dtype": "float64"}, "another 'dtype': it has 'auto', this TemperedLDA has 'float64'"),
        ({"validation_fraction": None}, "another 'validation_fraction': it has 0.2"),
    ],
)
def test_other_parameters_are_refused(checkpoint, changes, message):
    lda = make("all of it").set_params(**changes)
    before = dict(vars(lda))
    with pytest.raises(ValueError, match=message):
        lda.fit(corpus(), resume=checkpoint)
    assert vars(lda) == before


def test_parameters_that_make_no_difference(checkpoint):
    lda = make("all of it", n_jobs=2, verbose=0, callback=Counter())
    quietly(lda.fit, corpus(), resume=checkpoint)


def test_another_corpus_is_refused(checkpoint):
    X, lda = corpus(), make("all of it")
    for other, message in (
        (X[:79], r"its shape was \(80, 60\), that of X is \(79, 60\)"),
        (X[::-1], "the numbers in X differ, or their order"),
    ):
        with pytest.raises(ValueError, match=message):
            lda.fit(other, resume=checkpoint)


def test_the_same_corpus_in_another_form(checkpoint):
    X, wide = corpus(), corpus()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    fits = [
        quietly(make("all of it").fit, some, resume=checkpoint)
        for some in (
            X,
            X.toarray(),
            wide,
            sparse.csc_matrix(X),
            X.astype(int),
        )
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
    with pytest.raises(ValueError, match="is a checkpoint of TemperedFMM, not of TemperedLDA"):
        lda.fit(X, resume=tmp_path / "a")
    assert not hasattr(lda, "components_")


def test_another_version_warns(checkpoint, monkeypatch):
    monkeypatch.setattr(starts, "__version__", "99.0")
    with pytest.warns(UserWarning, match=r"comes from annealvi 0.* is read by annealvi 99.0"):
        quiet = make("all of it", evaluate_every=-1)
        with pytest.raises(ValueError, match="another 'evaluate_every'"):
            quiet.fit(corpus(), resume=checkpoint)


class OwnTemperature(Annealed):
    pass


def test_what_cannot_be_written(tmp_path):
    X, path = corpus(), tmp_path / "a"
    lda = make(temperature=OwnTemperature(2.0), callback=Checkpoint(path, seconds=0))
    with pytest.raises(TypeError, match="'temperature' parameter cannot be written"):
        lda.fit(X)
    assert not path.exists()
    generator = RandomState(np.random.PCG64(0))
    make(random_state=generator).fit(X)  # without a checkpoint it may be any
    with pytest.raises(TypeError, match="RandomState of PCG64 cannot be written"):
        make(random_state=generator, callback=Checkpoint(path, seconds=0)).fit(X)


def test_save_state_is_for_a_fit_under_way(tmp_path):
    lda, path = make(), tmp_path / "a"
    for act in (lambda: None, lambda: lda.fit(corpus()), lambda: lda.partial_fit(corpus())):
        act()
        with pytest.raises(ValueError, match=r"under way: .* written by annealvi\.save"):
            lda.save_state(path)
    stream = make(callback=Checkpoint(path, seconds=0))
    with pytest.raises(ValueError, match=r"works in `fit`.*annealvi\.save"):
        stream.partial_fit(corpus())
    assert not path.exists()


def test_a_log_partition_that_is_given(tmp_path):
    X = corpus()
    temperature = Variational(grid=3, partition=[0.0, -2000.0, -3000.0])
    snapshots = Snapshots(tmp_path, every=5)
    lda = quietly(make(temperature=temperature, callback=snapshots).fit, X)
    for path in snapshots.paths:
        resumed = quietly(make(temperature=temperature).fit, X, resume=path)
        assert_array_equal(resumed.temperature_path_, lda.temperature_path_)


def test_fit_takes_resume_by_name_only():
    with pytest.raises(TypeError, match="positional"):
        TemperedLDA().fit(corpus(), None, "path")


# ------------------------------------------------------------------ forged checkpoints


def outcomes_of_forgeries(kind, n, seed, path, monkeypatch):
    """What became of forged checkpoints that are not good, and how many were refused."""
    X, rng = corpus(), np.random.default_rng(seed)
    snapshots = Snapshots(path, every=7)
    quietly(make(kind, callback=snapshots).fit, X)
    tree = read(snapshots.paths[1], "checkpoint")["tree"]
    bad, n_refused = [], 0
    for _ in range(n):
        forged, ways = mutated_tree(tree, rng, int(rng.choice([1, 1, 1, 2, 5])))
        content = {"version": annealvi.__version__, "tree": forged}
        monkeypatch.setattr(starts, "read", lambda *names: content)  # noqa: B023
        found = outcome(
            lambda: make(kind).fit(X, resume="forged"),
            lambda lda: [lda.components_, lda.transform(X[:5]), lda.score(X[:5])],
        )
        n_refused += found == "refused"
        if found not in ("refused", "sound"):
            bad.append((ways, found))
    return bad, n_refused


@pytest.mark.parametrize(("kind", "n"), [("all of it", 40), ("variational", 40)])
def test_forged_checkpoints(kind, n, tmp_path, monkeypatch):
    """An error, or a fit that is sound."""
    bad, n_refused = outcomes_of_forgeries(kind, n, 0, tmp_path, monkeypatch)
    assert not bad and n_refused > n / 3


def test_an_array_instead_of_the_temperature(tmp_path, monkeypatch):
    X, snapshots = corpus(), Snapshots(tmp_path, every=7)
    quietly(make("variational", callback=snapshots).fit, X)
    content = read(snapshots.paths[1], "checkpoint")
    content["tree"]["under_way"]["state"]["temperature"]["temperature"] = np.arange(3)
    monkeypatch.setattr(starts, "read", lambda *names: content)
    with pytest.raises(ValueError, match=r"temperature' must be a temperature\. Got"):
        make("variational").fit(X, resume="forged")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["all of it", "variational", "warm, online", "stops early"])
def test_more_forged_checkpoints(kind, tmp_path, monkeypatch):
    bad, _ = outcomes_of_forgeries(kind, 600, 1, tmp_path, monkeypatch)
    assert not bad
