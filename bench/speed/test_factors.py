"""Speed of the factorial mixture: an update of nu, and a whole iteration for images.

    make bench

The update of nu (a sweep) for small data (N = 10,000, D = 16, K = 8) is compared with two NumPy
programs that are vectorised over data.  One is a transcription of the update.  The other is the
fastest in NumPy, with the inputs and the memory layout of the kernel.  Two threads are compared
with one.  An iteration for data like the Yale faces (N = 2,000, D = 8,064, K = 40, float32) is
compared with NumPy's time for its two products with X.
"""

from __future__ import annotations

import time

import numpy as np
import pytest
from scipy.special import expit

from annealvi._kernels import fmm as kernels
from annealvi._kernels.layout import aligned_empty
from annealvi.model import UNTEMPERED, Batch
from annealvi.models.fmm import FMM
from bench.speed.pairs import run

SWEEPS = 50
PI = 0.3
NOISE = 0.1


class Toy:
    """The arguments of a sweep in both layouts: rows of data, and rows of components."""

    def __init__(self, dtype, n_samples=10_000, n_features=16, n_components=8):
        rng = np.random.RandomState(0)
        means = rng.standard_normal((n_components, n_features)) / 2
        X = (rng.random_sample((n_samples, n_components)) < PI) @ means
        X += np.sqrt(NOISE) * rng.standard_normal(X.shape)
        self.dtype = np.dtype(dtype)
        self.n_samples = n_samples
        self.gram = (means @ means.T).astype(dtype)
        self.projection = (X @ means.T).astype(dtype)
        width = -(-n_samples // kernels.BLOCK) * kernels.BLOCK
        self.rows = aligned_empty((n_components, width), dtype)
        self.rows[:, :n_samples] = self.projection.T
        self.rows[:, n_samples:] = 0
        diagonal = np.diag(self.gram)
        self.coupling = (self.gram - np.diag(diagonal)) / self.dtype.type(NOISE)
        logit = np.log(PI / (1 - PI))
        self.offset = (logit - diagonal / (2 * NOISE)).astype(dtype)

    def numpy_sweeps(self):
        """Set logit nu_nk to logit pi + [P_nk - sum_{j != k} nu_nj G_kj - G_kk/2] / sigma_n."""
        nu = np.full(self.projection.shape, PI, dtype=self.dtype)
        P = self.projection
        G = self.gram
        logit = self.dtype.type(np.log(PI / (1 - PI)))
        noise = self.dtype.type(NOISE)

        def sweeps():
            for _ in range(SWEEPS):
                for k in range(len(G)):
                    others = nu @ G[k] - nu[:, k] * G[k, k]
                    nu[:, k] = expit(logit + (P[:, k] - others - G[k, k] / 2) / noise)
            return nu

        return sweeps

    def fast_numpy_sweeps(self):
        """Make the same update from coupling and offset, with a contiguous row per component."""
        projection = self.rows[:, : self.n_samples]
        nu = np.full(projection.shape, PI, dtype=self.dtype)
        scale = self.dtype.type(1 / NOISE)

        def sweeps():
            for _ in range(SWEEPS):
                for k in range(len(nu)):
                    field = scale * projection[k]
                    field -= self.coupling[k] @ nu
                    field += self.offset[k]
                    expit(field, out=nu[k])
            return nu.T

        return sweeps

    def kernel_sweeps(self, n_threads=1):
        nu = np.empty_like(self.rows)
        nu[:] = PI
        b = np.ones((1, 1), dtype=self.dtype)

        def sweeps():
            for _ in range(SWEEPS):
                kernels.sweep(self.rows, self.coupling, self.offset, 1 / NOISE, b, n_threads, nu)
            return nu[:, : self.n_samples].T

        return sweeps


DTYPES = pytest.mark.parametrize("dtype", ["float64", "float32"])


@DTYPES
@pytest.mark.parametrize("n_samples", [10_000, 100_000])
@pytest.mark.benchmark(timer=time.perf_counter, group="FMM, two threads")
def test_two_threads(benchmark, dtype, n_samples):
    """Compare the sweep on two threads with one thread."""
    toy = Toy(dtype, n_samples)
    run(
        benchmark,
        f"FMM sweep, N={n_samples:,}, {dtype}: two threads over one",
        time.perf_counter,
        toy.kernel_sweeps,
        lambda: toy.kernel_sweeps(2),
    )


@DTYPES
@pytest.mark.parametrize("baseline", ["transcription", "fastest"])
@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.benchmark(timer=time.perf_counter, group="FMM")
def test_sweep(benchmark, dtype, n_threads, baseline):
    """Compare the sweep with the NumPy programs, which compute the same numbers."""
    toy = Toy(dtype)
    tolerance = 1e-12 if dtype == "float64" else 1e-4
    fast = toy.fast_numpy_sweeps()()
    np.testing.assert_allclose(toy.kernel_sweeps()(), fast, atol=tolerance)
    np.testing.assert_allclose(toy.numpy_sweeps()(), fast, atol=100 * tolerance)
    run(
        benchmark,
        f"FMM sweep, {dtype}, {n_threads} thread(s): NumPy, {baseline}",
        time.perf_counter,
        toy.numpy_sweeps if baseline == "transcription" else toy.fast_numpy_sweeps,
        lambda: toy.kernel_sweeps(n_threads),
    )


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.benchmark(timer=time.perf_counter, group="FMM")
def test_iteration_at_the_size_of_images(benchmark, n_threads):
    """Compare a whole iteration with its two products; the ratio is products to iteration."""
    N = 2_000
    D = 8_064
    K = 40
    rng = np.random.RandomState(0)
    X = rng.standard_normal((N, D)).astype(np.float32)
    model = FMM(K, D, prior_probability=PI, dtype=np.float32, n_threads=n_threads)
    model.start(X, rng.standard_normal((K, D)))
    batch = Batch(X, slice(0, N))
    nu = rng.random_sample((N, K)).astype(np.float32)
    means = model.means.astype(np.float32)

    def products():
        return X @ means.T, nu.T @ X

    def iteration():
        local = model.local_step(batch, UNTEMPERED)
        model.global_step(local.statistics, 1, 1, UNTEMPERED)

    run(
        benchmark,
        f"FMM iteration, {n_threads} thread(s): its products, one thread",
        time.perf_counter,
        lambda: products,
        lambda: iteration,
    )
