"""What the library leaves alone: its input, the network, programs, and pickles."""

import ast
import subprocess
import sys
import textwrap
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import annealvi
from annealvi import (
    TemperedFMM,
    TemperedGaussianMixture,
    TemperedLDA,
    TemperedMultinomialMixture,
)
from annealvi.metrics import document_completion, split_tokens, topic_coherence
from annealvi.proximity import Adam, Bernoulli, BernoulliFactorModel, inverse_huber
from annealvi.schedules import Exponential
from annealvi.topics import describe

PACKAGE = Path(annealvi.__file__).parent


def awkward_counts(dtype):
    """Counts as CSR with zeros that are stored, words out of order and words that come twice."""
    X = sparse.random(40, 30, 0.3, "csr", random_state=0)
    X.data = np.ceil(4 * X.data)
    X.data[::7] = 0
    X.indices[X.indptr[3] : X.indptr[4]] = X.indices[X.indptr[3] : X.indptr[4]][::-1].copy()
    X.indices[X.indptr[5]] = X.indices[X.indptr[5] + 1]
    return sparse.csr_matrix((X.data.astype(dtype), X.indices, X.indptr), X.shape)


@contextmanager
def unchanged(X):
    """X is read-only here, so that a write is an error, and is the same at the end."""
    arrays = [X.data, X.indices, X.indptr] if sparse.issparse(X) else [X]
    for array in arrays:
        array.setflags(write=False)
    copies = [array.copy() for array in arrays]
    yield
    for array, copy in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(array, copy)


@pytest.mark.thinned
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csr_array, sparse.csr_matrix.toarray])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_counts_are_never_changed(form, dtype):
    X = form(awkward_counts(dtype))
    with unchanged(X):
        lda = TemperedLDA(3, max_iter=2, random_state=0, validation_fraction=0.2).fit(X)
        lda.partial_fit(X).transform(X)
        lda.score(X), lda.perplexity(X)
        document_completion(lda, X)
        topic_coherence(lda, X, n_words=3)
        split_tokens(X, random_state=0)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_data_are_never_changed(dtype, order):
    X = np.random.default_rng(0).normal(0, 5, (40, 4)).astype(dtype, order=order)
    with unchanged(X):
        for mixture in (TemperedFMM(2, max_iter=3), TemperedGaussianMixture(2, max_iter=3)):
            mixture.fit(X)
            for method in ("transform", "predict", "predict_proba", "score", "score_samples"):
                getattr(mixture, method, lambda X: None)(X)


@pytest.mark.slow
def test_nothing_touches_the_network_or_starts_programs_or_reads_pickles():
    """Python announces all of these to an audit hook.  The hook is set before the import."""
    code = """
    import os, sys
    import numpy, sklearn.decomposition, sklearn.mixture, threadpoolctl, joblib

    seen = []
    def watch(event, arguments):
        if event.startswith(("socket.", "subprocess.", "os.system", "os.exec",
                             "os.posix_spawn", "pickle.", "urllib.")):
            seen.append((event, str(arguments)[:200]))
    joblib.cpu_count()  # may ask a program for the number of processors, once
    sys.addaudithook(watch)

    import annealvi
    from annealvi.datasets import load_arxiv_abstracts
    from annealvi.metrics import document_completion

    X = load_arxiv_abstracts().data[:100]
    lda = annealvi.TemperedLDA(3, max_iter=2, random_state=0, n_jobs=2).fit(X)
    lda.transform(X), document_completion(lda, X)
    assert not seen, seen
    """
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def modules_and_switches(path):
    """Modules that a file imports, and keyword arguments that are True."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield (node.module or "").partition(".")[0]
        elif isinstance(node, ast.keyword) and getattr(node.value, "value", None) is True:
            yield f"{node.arg}=True"


#: What `annealvi open` needs: a server and the browser, and a process of its own for the fit.
OF_THE_PAGE = {
    "app/server.py": {"uvicorn", "webbrowser"},
    "app/study.py": {"subprocess"},
}


def test_no_file_imports_what_could_run_code_or_reach_the_network():
    unwanted = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "subprocess", "socket", "ssl"}
    unwanted |= {"urllib", "http", "ftplib", "requests", "ctypes", "allow_pickle=True"}
    unwanted |= {"uvicorn", "webbrowser", "httpx"}
    files = {path: set(modules_and_switches(path)) for path in PACKAGE.rglob("*.py")}
    found = {
        path.relative_to(PACKAGE).as_posix(): names & unwanted for path, names in files.items()
    }
    assert {path: names for path, names in found.items() if names} == OF_THE_PAGE


TINY_COUNTS = np.random.default_rng(0).poisson(0.4, (60, 30))
TINY_POINTS = np.random.default_rng(0).normal(size=(60, 3)) * 1e-30
RAISING = {
    "topics": lambda: TemperedLDA(3, random_state=0).fit(TINY_COUNTS).transform(TINY_COUNTS),
    "learned temperature": lambda: TemperedLDA(3, temperature="variational", random_state=0).fit(
        TINY_COUNTS
    ),
    "scikit-learn's": lambda: TemperedLDA(3, preset="sklearn", random_state=0).fit(TINY_COUNTS),
    "describe": lambda: (
        describe(TemperedLDA(3, random_state=0).fit(TINY_COUNTS), TINY_COUNTS).trust
    ),
    "multinomial mixture": lambda: (
        TemperedMultinomialMixture(3, random_state=0).fit(TINY_COUNTS).predict_proba(TINY_COUNTS)
    ),
    "Gaussian mixture": lambda: (
        TemperedGaussianMixture(2, random_state=0).fit(TINY_POINTS).predict_proba(TINY_POINTS)
    ),
    "long double": lambda: TemperedFMM(2, max_iter=2, random_state=0).fit(
        np.ones((5, 4), dtype=np.longdouble) / 3
    ),
    "attribute": lambda: (
        TemperedLDA(2, topic_word_prior=1e-283, max_iter=2, random_state=0)
        .fit(np.random.RandomState(0).poisson(1, (8, 20)).astype(np.float32))
        .exp_dirichlet_component_
    ),
    "distance": lambda: inverse_huber([1e-200, 3.0]),
    "step": lambda: Adam(0.1)(np.array([1e-200, 1.0])),
    "ELBO of factors": lambda: BernoulliFactorModel([[1e-200]]).elbo(
        Bernoulli(np.full((1, 1, 1), 800.0)), np.full((1, 1, 1), 1e-200)
    ),
    "best components": lambda: BernoulliFactorModel([[1e-200]]).best_means(
        Bernoulli(np.full((1, 1, 1), -400.0))
    ),
    "schedule": lambda: Exponential(1e30, np.float32(0.5))(0.5),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", RAISING)
def test_numpy_that_raises_stops_nothing(name):
    with np.errstate(all="raise"):
        RAISING[name]()
