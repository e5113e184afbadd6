"""A forked child may fit, whatever the parent did with threads before."""

import os
import subprocess
import sys
import textwrap

import pytest

from annealvi import _kernels

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork"),
    pytest.mark.skipif(not _kernels.openmp_enabled(), reason="built for one thread"),
]

# Enough work that two threads share it.  A child that hangs is ended by its alarm.
PREAMBLE = """
import os, signal, threading
import numpy as np
from annealvi import TemperedFMM, TemperedGaussianMixture, TemperedLDA

rng = np.random.RandomState(0)
X = rng.poisson(0.5, (400, 300)).astype(float)
Y = rng.standard_normal((3000, 20))

def lda():
    return TemperedLDA(40, max_iter=3, n_jobs=2, random_state=0)

def fmm():
    return TemperedFMM(5, max_iter=3, n_jobs=2, random_state=0)

def gmm():
    return TemperedGaussianMixture(5, max_iter=3, random_state=0)

def in_child(work):
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0, "the child failed, or hung and was ended"

def same(a, b):
    np.testing.assert_array_equal(a, b)
"""


def run(script):
    """Run a script in a process of its own: what it has forked before is known."""
    script = PREAMBLE + textwrap.dedent(script)
    command = [sys.executable, "-W", "ignore", "-c", script]
    options = dict(env=os.environ | {"OMP_NUM_THREADS": "2"}, timeout=200, check=False)
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_fit():
    run("""
        fits = [lambda: gmm().fit(Y).means_, lambda: lda().fit(X).components_]
        for fit in [*fits, lambda: fmm().fit(Y).components_]:
            expected = fit()
            in_child(lambda: same(fit(), expected))
            same(fit(), expected)  # and the parent goes on
    """)


@pytest.mark.slow
def test_what_was_fitted_in_the_parent():
    run("""
        model = lda().fit(X)
        theta, score, next_ = model.transform(X), model.score(X), lda().fit(X).partial_fit(X)

        def work():
            same(model.transform(X), theta)
            assert model.score(X) == score
            same(model.partial_fit(X).components_, next_.components_)

        in_child(work)
        codes = fmm().fit(Y)
        nu = codes.transform(Y)
        in_child(lambda: same(codes.transform(Y), nu))
    """)


@pytest.mark.slow
def test_a_child_of_a_child_and_a_fork_beside_threads_that_read_and_write():
    run("""
        estimator, end = lda().partial_fit(X), threading.Event()

        def until_the_end(work):
            while not end.is_set():
                work(X[:50])

        def fit():
            assert np.all(np.isfinite(estimator.fit(X[:40]).transform(X[:5])))
            same(lda().fit(X).components_, expected)

        def fit_and_fork():
            fit()
            in_child(fit)

        expected = lda().fit(X).components_
        works = (estimator.partial_fit, estimator.transform, estimator.transform)
        threads = [threading.Thread(target=until_the_end, args=[work]) for work in works]
        for thread in threads:
            thread.start()
        try:
            for _ in range(8):
                in_child(fit_and_fork)
        finally:
            end.set()
        for thread in threads:
            thread.join()
    """)


@pytest.mark.slow
def test_after_another_user_of_openmp():
    run("""
        import ctypes
        from sklearn.ensemble import HistGradientBoostingClassifier
        from threadpoolctl import threadpool_info

        def others_work():
            HistGradientBoostingClassifier(max_iter=3).fit(X, np.arange(400) % 2)

        others_work()
        paths = [m["filepath"] for m in threadpool_info() if m["user_api"] == "openmp"]
        can_pause = all(hasattr(ctypes.CDLL(path), "omp_pause_resource_all") for path in paths)
        expected, means = lda().fit(X).components_, gmm().fit(Y).means_

        def fits():
            same(lda().fit(X).components_, expected)
            same(gmm().fit(Y).means_, means)
            if can_pause:  # scikit-learn's threads, before a fork; runtimes before GCC 9 cannot
                others_work()

        in_child(fits)
    """)


@pytest.mark.deep
def test_a_fit_of_a_deep_model():
    run("""
        import torch
        from annealvi.deep import VariationalAutoencoder

        assert torch.get_num_threads() > 1  # or nothing is shown here
        faces = rng.uniform(size=(500, 400)) < 0.3

        def vae():
            return VariationalAutoencoder(max_iter=2, batch_size=500, random_state=0).fit(faces)

        expected = vae().history_["elbo"]
        in_child(lambda: same(vae().history_["elbo"], expected))
        in_child(lambda: same(lda().fit(X).components_, lda().fit(X).components_))
        same(vae().history_["elbo"], expected)
    """)
