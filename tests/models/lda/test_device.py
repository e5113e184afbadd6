"""The steps of the model on an emulated GPU, against those on the processor."""

import copy
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from annealvi.model import UNTEMPERED, Batch, Tempering
from tests.marks import slow_values
from tests.models.lda.pair import LDA, LocalOptions

V, ITERATIONS = 200, 20
MANY = dict(K=20, n=60)


def documents(n, n_features=V, lengths=()):
    """Random documents, of which the first is empty, and some of given numbers of words."""
    rng = np.random.RandomState(0)
    X = np.ceil(4 * sparse.random(n, n_features, 0.15, "csr", np.float32, rng).toarray())
    X[0] = 0
    for length in lengths:
        row = np.zeros(n_features)
        row[rng.permutation(n_features)[:length]] = 1 + rng.randint(3, size=length)
        X = np.vstack([X, row])
    return sparse.csr_matrix(X.astype(np.float32))


def on_both(X, K, estimate="map", eta=0.05, **options):
    """The same model on the processor and on the GPU."""
    usual = dict(max_iter=ITERATIONS, tolerance=0.0)
    options, models = LocalOptions(**usual | options), []
    for device in ("cpu", "cuda"):
        given = dict(alpha=0.1, eta=eta, dtype=np.float32, estimate=estimate)
        models.append(LDA(K, X.shape[1], **given, options=options))
        models[-1].initialize(np.random.RandomState(1), X)
        models[-1].use(device)
    return models


def shares(model, X, tempering=UNTEMPERED):
    gamma = model.infer(X, tempering).astype(np.float64)
    return gamma / gamma.sum(axis=1, keepdims=True)


def assert_same_step(models, X, tempering=UNTEMPERED, rho=0.7, moments=False):
    """Shares and a step at the same topics, and the topics and bounds that follow."""
    rows, lam, bounds, energies = slice(0, X.shape[0]), [], [], []
    models[1].assign(models[0].components)
    assert np.abs(shares(models[0], X, tempering) - shares(models[1], X, tempering)).max() <= 1e-5
    for model in models:
        found = model.local_step(Batch(X, rows), tempering, moments)
        model.global_step(found.statistics, rho, 1.5, tempering)
        energies.append(found.energy if moments else 0.0)
        lam.append(model.components)
        bounds.append(model.bounds(X, model.infer(X, tempering), tempering))
        assert_allclose(model.sums, lam[-1].sum(axis=1, dtype=np.float64), rtol=1e-6)
    assert np.abs(lam[0] - lam[1]).sum() <= 1e-5 * lam[0].sum()
    assert_allclose(energies[0], energies[1], rtol=1e-5, atol=1e-5)
    assert_allclose(bounds[0], bounds[1], rtol=1e-5, atol=1e-5)


SIZES = [(5, 30, (1,)), *slow_values((3, 40, (1, 150)), (20, 40, ()), (33, 30, (1, 150)))]
SIZES += slow_values((100, 10, (1,)), (256, 8, ()), (500, 6, ()))


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_topics_of_every_size_take_the_same_steps(gpu, size):
    K, n, lengths = size
    X = documents(n, lengths=lengths)
    assert_same_step(on_both(X, K), X)


@pytest.mark.slow
@pytest.mark.parametrize("K", [3, 33, 500])
def test_a_document_of_three_thousand_words_beside_one_of_one(gpu, K):
    X = documents(3, 3500, lengths=(3000, 1))
    assert_same_step(on_both(X, K), X)


EACH = np.linspace(0.2, 1.0, MANY["n"])


@pytest.mark.slow
@pytest.mark.parametrize("moments", [False, True], ids=["", "energies"])
@pytest.mark.parametrize(
    "tempering", [Tempering(0.5), Tempering(0.3), Tempering(0.6, "posterior"), Tempering(EACH)]
)
@pytest.mark.parametrize("estimate", ["map", "variational"])
def test_temperatures(gpu, estimate, tempering, moments):
    X = documents(MANY["n"])
    models = on_both(X, MANY["K"], estimate)
    assert_same_step(models, X, tempering, rho=0.3, moments=moments)


OPTIONS = [
    dict(sparse=True, over_relaxed=True),
    dict(exact=True),
    dict(exact=True, estimate="variational"),
    dict(eta=np.linspace(0.01, 0.2, V)),
    dict(eta=np.linspace(0.01, 0.2, 20 * V).reshape(20, V)),
]


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: " ".join(options))
def test_options(gpu, options):
    X = documents(MANY["n"])
    models = on_both(X, MANY["K"], **options)
    for rho in (0.5, 1.0, 1.9):  # the last goes beyond the optimum
        assert_same_step(models, X, rho=rho)


def test_documents_that_stop_by_themselves(gpu):
    X = documents(60)
    cpu, there = (
        shares(model, X) for model in on_both(X, 5, tolerance=0.01, by_topic=False, max_iter=100)
    )
    assert np.abs(cpu - there).mean() <= 1e-6 and np.abs(cpu - there).max() <= 1e-5


def test_documents_at_the_edge_of_the_stopping_rule_differ_by_one_iteration(gpu):
    """The tolerance is what a document moves by in one iteration: rounding decides if it stops."""
    X, path, n_differ = documents(30), [], 0
    models = on_both(X, 5)
    usual = models[0].options
    for n in range(70):
        models[0].options = replace(usual, max_iter=n)
        path.append(models[0].infer(X).astype(np.float64))
    changes = np.abs(np.diff(path, axis=0)).sum(axis=2)
    falls = np.minimum.accumulate(changes)[:-2] * 0.99 > changes[1:-1]
    falls &= changes[1:-1] * 0.99 > changes[2:]  # below all before, and the next below it
    for d in np.flatnonzero(falls.any(axis=0)):
        least = 1 + int(falls[:, d].argmax())
        edge, far = changes[least, d] / X[d].sum(), []
        for model in models:
            model.options = replace(usual, tolerance=edge, by_topic=False, max_iter=200)
            gamma = model.infer(X[d])
            far.append(np.abs(np.array(path)[:, d] / gamma - 1).max(axis=1))
        assert max(one.min() for one in far) <= 1e-4  # where each stops is on the path
        stops = {int(one.argmin()) for one in far}
        assert stops <= {least + 1, least + 2}
        n_differ += len(stops) == 2
    assert 0 < n_differ < falls.any(axis=0).sum()


def test_few_words_of_a_minibatch_move_all_topics_towards_the_prior(gpu):
    """On the processor the other words wait, on a GPU they do not."""
    X = documents(40)
    models = on_both(X, 5)
    for rows in (slice(0, 3), slice(3, 9), slice(9, 40)):
        for model in models:
            step = model.local_step(Batch(X, rows), UNTEMPERED)
            model.global_step(step.statistics, 0.2, 40 / (rows.stop - rows.start), UNTEMPERED)
    assert_allclose(*(model.components for model in models), rtol=1e-4)


def test_topics_are_where_they_are_looked_for(gpu):
    """Copies, pickles, assignments and another device have the topics of the last step."""
    X = documents(30)
    _, model = on_both(X, 5)
    step = model.local_step(Batch(X, slice(0, 30)), UNTEMPERED)
    model.global_step(step.statistics, 0.5, 1.0, UNTEMPERED)
    copied = copy.deepcopy(model)
    before = model.components.copy()
    model.global_step(step.statistics, 0.5, 1.0, UNTEMPERED)
    assert_array_equal(copied.components, before)
    assert not np.array_equal(model.components, before)
    answers = shares(model, X)
    model.use("cpu")
    assert_allclose(shares(model, X), answers, atol=1e-5)
    model.use("cuda")
    model.assign(before)
    assert_array_equal(shares(model, X), shares(copied, X))


def test_documents_go_to_the_gpu_once(gpu):
    X = documents(50)
    _, model = on_both(X, 5)
    copied = []
    model.engine.repeated = True
    for _ in range(3):
        before = gpu.limits.copied
        step = model.local_step(Batch(X, slice(0, 50)), UNTEMPERED)
        model.global_step(step.statistics, 1.0, 1.0, UNTEMPERED)
        copied.append(gpu.limits.copied - before)
    corpus = X.data.nbytes + 4 * len(X.indices)
    assert copied[0] > corpus > 10 * copied[1] and copied[1] == copied[2]


@pytest.mark.parametrize(
    "tempering", [UNTEMPERED, *slow_values(Tempering(EACH[:30]))], ids=["one", "each"]
)
def test_where_memory_is_short_a_block_is_halved(gpu, tempering):
    X = documents(30)
    models = on_both(X, 5)
    gpu.limits.bytes = 12_900  # of topics 12,800, of entries of all documents more
    with pytest.warns(
        RuntimeWarning, match="emulated has too little memory for 30 documents at a time"
    ):
        assert_same_step(models, X, tempering, rho=0.3, moments=tempering is not UNTEMPERED)
    gpu.limits.bytes = 1000
    models[1].assign(models[0].components)
    with pytest.raises(MemoryError, match="The topics need more memory than emulated has"):
        shares(models[1], X)
