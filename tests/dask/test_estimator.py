"""TemperedLDA on workers: the bits of the local fit, its attributes, and what it refuses."""

from pathlib import Path

import dask
import numpy as np
import pytest
from dask import array as da
from dask import delayed
from numpy.testing import assert_allclose, assert_array_equal, assert_equal
from scipy import sparse
from sklearn.base import clone

import annealvi
from annealvi import LocalVariational, Variational, corpus, metrics
from annealvi.dask import TemperedLDA, document_completion, document_order
from annealvi.dask.estimator import sizes
from annealvi.dask.sources import are_partitions, as_engine, is_array, sources_of
from annealvi.datasets import load_arxiv_abstracts
from annealvi.scale.engines import DaskEngine, SerialEngine
from tests.asserts import refusals, refused
from tests.callbacks import stop_at
from tests.lda.resumed import ATTRIBUTES, LEARN
from tests.marks import cases, quick_values

LENGTHS = (210, 140, 260, 90)
SIZES = dict(shard_size=25, batch_size=100)
POSTERIOR = annealvi.Annealed(2, form="posterior")
FITS = {
    "annealed": dict(max_iter=3),
    "fixed, float64": dict(max_iter=2, temperature=2.0, dtype="float64"),
    "mean field, posterior form": dict(max_iter=3, estimate="variational", temperature=POSTERIOR),
    "learned temperature and priors": dict(max_iter=3, temperature="variational", **LEARN),
    "learned over the prior": dict(max_iter=2, temperature=Variational(partition="prior")),
    "a temperature for each document": dict(max_iter=2, temperature=LocalVariational()),
    "batch": dict(max_iter=2, learning_method="batch"),
    "evaluated": dict(max_iter=4, evaluate_every=1),
    "evaluated, mean field": dict(max_iter=3, evaluate_every=2),
    "evaluated while it learns": dict(max_iter=3, evaluate_every=1, temperature="variational"),
    "evaluated to convergence": dict(max_iter=9, evaluate_every=1, perp_tol=1e6, temperature=1),
    "finish": dict(max_iter=1, n_init=1, n_components=2),
    "scikit-learn's": dict(max_iter=2, preset="sklearn"),
    "random documents, several starts": dict(max_iter=1, init="documents", n_init=2),
    "the best of several starts": dict(max_iter=1, n_init=2, preset="sklearn"),
    "default": {},
}


QUICK = ("default", "evaluated", "learned temperature and priors", "batch")
QUICK += ("a temperature for each document", "the best of several starts")


@pytest.fixture(scope="module")
def X():
    return load_arxiv_abstracts().data[: sum(LENGTHS)].astype(np.float32)


@pytest.fixture(scope="module")
def ordered(X):
    return X[document_order(LENGTHS, **SIZES)]


@pytest.fixture(scope="module")
def parts(X):
    ends = np.concatenate([[0], np.cumsum(LENGTHS)])
    return [X[ends[i] : ends[i + 1]] for i in range(len(LENGTHS))]


@pytest.fixture(scope="module")
def paths(parts, tmp_path_factory):
    folder = tmp_path_factory.mktemp("parts")
    for i, part in enumerate(parts):
        corpus.write_corpus(folder / str(i), [part])
    return [str(folder / str(i)) for i in range(len(parts))]


def found(lda):
    values = {name: getattr(lda, name, None) for name in ATTRIBUTES}
    values["history_"] = lda.history_ | {"seconds": None}
    return values | {"dtype": lda.components_.dtype}


def check_equal(lda, local):
    """All that a fit has found is the same, to the last bit."""
    assert_equal(found(lda), found(local))


@pytest.mark.parametrize("name", quick_values(FITS, *QUICK))
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_bits_of_the_local_fit(ordered, paths, name):
    settings = FITS[name] | SIZES | dict(n_components=4, random_state=0)
    local = TemperedLDA(**settings).fit(ordered)
    lda = TemperedLDA(**settings, client=SerialEngine()).fit(paths)
    check_equal(lda, local)


@pytest.fixture(scope="module")
def local(ordered):
    return TemperedLDA(4, max_iter=3, random_state=0, **SIZES).fit(ordered)


def settings(client, **more):
    return TemperedLDA(4, max_iter=3, random_state=0, **SIZES, client=client, **more)


@pytest.mark.slow
def test_worker_processes(workers, ordered, parts, paths, local):
    check_equal(settings(workers).fit(paths), local)
    blocks = [delayed(part) for part in parts]
    check_equal(settings(workers).fit(blocks), local)
    check_equal(settings(workers).fit(workers.compute(blocks)), local)
    arrays = [da.from_delayed(b, p.shape, p.dtype) for b, p in zip(blocks, parts, strict=True)]
    check_equal(settings(workers).fit(da.concatenate(arrays)), local)
    check_equal(settings(workers, n_jobs=2).fit(paths), local)


def test_what_is_asked_of_documents_on_workers(workers, X, parts, paths, local):
    lda = settings(workers).fit(paths)
    assert_allclose(lda.score(paths), local.score(X), rtol=1e-12)
    assert_allclose(lda.perplexity(paths), local.perplexity(X), rtol=1e-12)
    assert_allclose(lda.perplexity(paths, True), local.perplexity(X, True), rtol=1e-12)
    assert lda.score(X) == lda.to_local().score(X)
    assert lda.perplexity(X) == lda.to_local().perplexity(X)
    expected = local.transform(X)
    assert_array_equal(lda.transform(X), expected)
    found = np.vstack(dask.compute(*lda.transform(paths, temperature=1.5), scheduler="synchronous"))
    assert_array_equal(found, local.transform(X, temperature=1.5))
    blocks = [da.from_delayed(delayed(part), part.shape, part.dtype) for part in parts]
    array = lda.transform(da.concatenate(blocks))
    assert array.shape == (X.shape[0], 4) and array.dtype == np.float32
    assert_array_equal(array.compute(scheduler="synchronous"), expected)
    for one in (lda.predict(X), lda.predict(da.concatenate(blocks)), lda.predict(paths)):
        (parts_of_one,) = dask.compute(one, scheduler="synchronous")
        assert_array_equal(np.hstack(parts_of_one), local.predict(X))
    both = settings(workers).fit_transform(da.concatenate(blocks))
    assert_array_equal(both.compute(scheduler="synchronous"), expected)
    with pytest.raises(ValueError, match=r"X has 3 features, but TemperedLDA is expecting"):
        lda.score([delayed(sparse.csr_matrix(np.ones((2, 3))))])


def test_to_local(paths, X, local, tmp_path):
    lda = settings(SerialEngine()).fit(paths)
    found = lda.to_local()
    assert type(found) is annealvi.TemperedLDA
    check_equal(found, local)
    assert found.get_params().keys() == annealvi.TemperedLDA().get_params().keys()
    found_before = found.transform(X)
    assert_array_equal(found_before, local.transform(X))
    found.partial_fit(X[:50])  # goes on, and leaves the other as it is
    check_equal(lda, local)
    annealvi.save(lda.to_local(), tmp_path / "topics.safetensors")
    assert_array_equal(annealvi.load(tmp_path / "topics.safetensors").transform(X), found_before)
    with pytest.raises(TypeError, match=r"Save the estimator that its method to_local\(\)"):
        annealvi.save(lda, tmp_path / "other.safetensors")


def test_parameters(workers):
    lda = TemperedLDA(7, client=workers)
    more = {"client", "checkpoint", "shard_size"}
    assert lda.get_params().keys() == annealvi.TemperedLDA().get_params().keys() | more
    defaults = annealvi.TemperedLDA().get_params()
    assert {name: TemperedLDA().get_params()[name] for name in defaults} == defaults
    engine = SerialEngine()
    assert clone(TemperedLDA(3, checkpoint="x", max_iter=2)).get_params()["checkpoint"] == "x"
    assert TemperedLDA(3, client=engine).client is engine


@pytest.mark.slow
def test_a_checkpoint_is_resumed(paths, local, tmp_path):
    path = tmp_path / "fit.safetensors"
    with pytest.raises(ZeroDivisionError):
        settings(SerialEngine(), callback=stop_at(9, ZeroDivisionError, path)).fit(paths)
    check_equal(settings(SerialEngine(), checkpoint=path).fit(paths), local)
    steps = []
    count = lambda estimator, monitor: steps.append(1)  # noqa: E731
    again = settings(SerialEngine(), checkpoint=path, callback=count)
    check_equal(again.fit(paths), local)  # it had ended
    assert not steps
    with pytest.raises(ValueError, match="another X: the numbers in X or their order differ"):
        settings(SerialEngine(), checkpoint=path).fit(paths[:2] + paths[:1:-1])


def test_an_interrupt_leaves_a_fitted_estimator(paths, X):
    class Interrupted(SerialEngine):
        left = 15

        def gather(self, handles):
            self.left -= 1
            if not self.left:
                raise KeyboardInterrupt
            return super().gather(handles)

    lda = settings(Interrupted())
    with pytest.raises(KeyboardInterrupt):
        lda.fit(paths)
    assert lda.transform(X[:3]).shape == (3, 4) and 0 < lda.n_batch_iter_ < 22


@cases(
    "options, message",
    (dict(validation_fraction=0.2), "'validation_fraction' .* must be None. Got 0.2"),
    (dict(shard_size=2.5), "'shard_size' parameter of TemperedLDA must be None or an int"),
    (dict(batch_size=101), "'batch_size' .* of TemperedLDA .* of shard_size=25. Got 101"),
    (dict(checkpoint=3), r"'checkpoint' parameter of TemperedLDA must be"),
)
def test_what_is_refused(paths, options, message):
    lda = settings(SerialEngine()).set_params(**options)
    refused(message, lda.fit, paths)
    assert not hasattr(lda, "components_")


def test_portions_are_fitted_in_this_process(paths, parts):
    lda = settings(SerialEngine())
    with pytest.raises(TypeError, match=r"'X' .*\.partial_fit must be a matrix in memory"):
        lda.partial_fit(paths)
    assert not hasattr(lda, "components_")
    local = TemperedLDA(4, random_state=0, **SIZES)
    for path, part in zip(paths, parts, strict=True):
        lda.partial_fit(corpus.open_corpus(path))
        local.partial_fit(part)
    assert_array_equal(lda.components_, local.components_)


def test_counts_that_a_dtype_does_not_hold(tmp_path):
    """They are refused in the local estimator's words, for a fit and after one."""
    tiny = sparse.csr_matrix(np.array([[1e-60, 2.0], [3.0, 4.0]]))
    for name, X in (("tiny", tiny), ("large", 1e38 * tiny), ("usual", tiny.ceil())):
        corpus.write_corpus(tmp_path / name, [X], dtype="float64")
    lda = TemperedLDA(1, client=SerialEngine(), dtype="float32", max_iter=1, random_state=0)
    refused(r"float32 counts in X must be 0 or at least 1\.4e-45", lda.fit, [tmp_path / "tiny"])
    refused(
        r"counts in X must sum to at most 3\.4e\+30, or float32 overflows",
        lda.fit,
        [tmp_path / "large"],
    )
    lda.fit([tmp_path / "usual"])
    with pytest.raises(ValueError, match=r"float32 counts in X must be 0 or at least 1\.4e-45"):
        lda.score([tmp_path / "tiny"])


def test_sizes_left_open():
    def of(n_samples, shard=None, batch=None, max_iter=None):
        given = {"shard_size": shard, "batch_size": batch, "max_iter": max_iter}
        return tuple(sizes(given, n_samples).values())

    assert of(10**9) == (4096, 65_536) and of(541_000) == (4096, 65_536)
    assert of(541_000, max_iter=1) == (4096, 16_384) and of(541_000, max_iter=2) == (4096, 32_768)
    assert of(541_000, max_iter=0) == (4096, 16_384) and of(100_000) == (4096, 12_288)
    assert of(3000) == (375, 375) and of(10) == (1, 1)
    assert of(10**9, shard=1000) == (1000, 65_000) and of(3000, shard=1000) == (1000, 1000)
    assert of(3000, batch=6000) == (3000, 6000) and of(3000, batch=7) == (7, 7)


test_the_order_of_what_is_no_length = refusals(
    lambda given: document_order(**given),
    (dict(lengths=3.0), r"'lengths' parameter of document_order must be .* Got 3\.0"),
    (dict(lengths=[3, -1]), r"'lengths' parameter of document_order .* Got \[3, -1\]"),
    (dict(lengths=[]), r"'lengths' parameter of document_order"),
    (dict(lengths=[[1, 2], [3]]), r"'lengths' parameter of document_order"),
    (dict(lengths=[3], shard_size=0), r"'shard_size' parameter of document_order must be"),
    (dict(lengths=[3], batch_size=2.5), r"'batch_size' parameter of document_order must be"),
)


@pytest.mark.slow
def test_the_order_of_minibatches_left_open(X, parts, paths):
    order = document_order(LENGTHS, max_iter=2)
    given = {"shard_size": None, "batch_size": None, "max_iter": 2}
    shard, batch = sizes(given, len(order)).values()
    lda = TemperedLDA(4, max_iter=2, random_state=0, client=SerialEngine()).fit(paths)
    sizes_of_fit = {"shard_size": shard, "batch_size": batch}
    check_equal(lda, TemperedLDA(4, max_iter=2, random_state=0, **sizes_of_fit).fit(X[order]))


@pytest.mark.slow
def test_completions_of_parts_add_up(workers, X, parts, local):
    found = document_completion(local, [delayed(part) for part in parts], client=workers)
    seeds = np.random.RandomState(0).randint(2**31 - 1, size=len(parts))
    total = n_words = 0.0
    for part, seed in zip(parts, seeds, strict=True):
        n = metrics.split_tokens(part, random_state=seed)[1].sum()
        total += n * metrics.document_completion(local, part, random_state=seed)
        n_words += n
    assert found == pytest.approx(total / n_words, rel=1e-12)
    assert abs(found - metrics.document_completion(local, X)) < 0.05  # another split
    options = dict(method="cvb0", random_state=1, client=workers)
    assert document_completion(local, [delayed(part) for part in parts], **options) != found


def test_documents_without_a_word_to_hide(local, X, tmp_path):
    corpus.write_corpus(tmp_path / "a", [sparse.csr_matrix(np.eye(1, X.shape[1]))])
    message = "X must contain documents of at least two words"
    refused(message, document_completion, local, [tmp_path / "a"], client=SerialEngine())


def test_sources_and_engines(workers):
    X = da.ones((6, 4), chunks=(2, 4))
    assert is_array(X) and are_partitions(X)
    assert len(sources_of(X)) == 3
    several = [delayed(np.ones)(3), workers.submit(sum, [1, 2]), "path", Path("path")]
    assert are_partitions(several) and sources_of(tuple(several)) == several
    for other in (np.ones((2, 2)), sparse.eye(3), [], [[1, 2]], "path", 3):
        assert not is_array(other) and not are_partitions(other)
    engine = SerialEngine()
    assert as_engine(engine) is engine and isinstance(as_engine(workers), DaskEngine)


test_what_is_no_source = refusals(
    sources_of,
    (da.ones((6, 4), chunks=(2, 2)), r"documents only. .* Use X.rechunk\({1: -1}\)"),
    (da.ones(4), r"Expected 2D array as X, got 1D array"),
    ("path", "a dask array .* or a list of paths, .*Got 'path'"),
    (sparse.eye(3, format="csr"), "a dask array whose blocks are CSR matrices"),
    ([sparse.eye(3, format="csr")], "or a list of paths, delayed blocks or futures"),
)
