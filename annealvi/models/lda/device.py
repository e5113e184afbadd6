"""LDA on a GPU: classes that replace those of ``workspace.py`` and ``topics.py``.

:class:`DeviceWork` replaces ``Workspace``, :class:`DeviceStatistics` replaces ``Statistics``, and
:class:`DeviceBlocks` replaces ``WordIndices``.  :class:`DeviceTopics` contains lambda and exp(b E
log beta), which are updated on the GPU.  lambda is copied to the host when it is needed there.
Everything else is computed on the processor: the topics at the start, merged topics, log C(T),
learned priors, and the KL divergences in bounds.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annealvi._kernels import gpu, special
from annealvi._optional import import_optional
from annealvi.exceptions import BadParameter, warn_user
from annealvi.matrices import lengths
from annealvi.threads import writing

#: Logarithms of the sums of topics may differ by at most this in float32; see lda_topics.pyx.
WIDE = 30
#: Bytes of gamma in a block of documents, if there is enough memory.
BLOCK_BYTES = 1 << 28


def device_of(name: Any) -> gpu.Device | None:
    """The GPU that a parameter names, or None for the processor; raise if it does not exist."""
    found = re.fullmatch(r"cpu|cuda(?::(\d{1,4}))?", name) if isinstance(name, str) else None
    if found is None:
        raise BadParameter("device", "'cpu', 'cuda' or 'cuda:<index>'", name)
    if name == "cpu":
        return None
    cupy, index, reason = import_optional("cupy", f"device={name!r}"), int(found[1] or 0), ""
    try:
        there = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        there, reason = 0, f"CUDA reports: {error}."
    if index >= there:
        allowed = f"'cpu'{f' or an index below {there}' * bool(there)}"
        wanted = f"{allowed}, because CuPy finds {there} CUDA devices"
        raise BadParameter("device", wanted, name, reason)
    return opened(cupy, index)


#: One object for each device.
opened = cache(gpu.Device)


@contextmanager
def used(device: gpu.Device, what: str = "The topics") -> Iterator[None]:
    """Return a context for calls to a device, in which only one thread can be."""
    with writing(device), device.used():
        try:
            yield
        except device.out_of_memory as error:
            free, total = (n / 2**30 for n in device.free())
            raise MemoryError(
                f"{what} need more memory than {device.name} has. {free:.1f} of its {total:.1f} "
                "GiB are free. Use fewer topics or words, or device='cpu'."
            ) from error


class DeviceTopics:
    """The lambda of topics on a device, and the weights of words that are computed from it."""

    def __init__(self, device: gpu.Device) -> None:
        self.device, self.block_bytes = device, BLOCK_BYTES
        self.version = -1  # the version of the topics that lambda was copied from
        self._key: Any = None  # what the weights were computed for
        self._prior: tuple[Any, float] = None, 1.0

    def match(self, topics: Any) -> None:
        """Copy lambda to the device if the topics have changed."""
        if self.version != topics.version:
            with used(self.device):
                self.lam = self.device.cupy.asarray(topics.lam)
            self.version = topics.version

    def weights(self, topics: Any, b: float, exact: bool, want_logs: bool) -> tuple[Any, Any, Any]:
        """The weights of all words, their scales, and perhaps their logarithms."""
        self.match(topics)
        if self._key != (key := (self.version, b, exact, want_logs)):
            mean = topics.estimate == "map"
            log_sums = (special.log if mean else special.digamma)(topics.sums)
            kind = int(mean) + (mean and not exact and bool(np.ptp(log_sums) > WIDE))
            log_sums = self.device.cupy.asarray(log_sums.astype(np.float32))
            given = self.lam, log_sums, kind, b, not exact, want_logs
            self._weights = self.device.refresh_weights(*given)
            self._key = key
        return self._weights

    def step(
        self, topics: Any, statistics: Any, factor: float, amount: float, floor: float, b: float
    ) -> NDArray[np.float64]:
        """Set lambda to max(b eta + factor (lambda - b eta) + amount statistics, floor)."""
        eta, kept = topics.eta, self._prior
        with used(self.device):
            if kept[0] is not eta or kept[1] != b:
                rows = eta.reshape(-1, 1) if eta.ndim < 2 else eta.T
                self._eta = self.device.cupy.asarray(np.array(b * rows, np.float32, order="C"))
                self._prior = eta, b
            options = self._eta, statistics.values, factor, amount, floor
            return self.device.step_topics(self.lam, topics.n_topics, *options)


class DeviceStatistics:
    """Statistics of all words on a device; see :class:`annealvi.models.lda.topics.Statistics`."""

    nbytes = 0  # memory on the host
    values: Any

    def __init__(self, device: gpu.Device, shape: tuple[int, int]) -> None:
        self.device, self.shape = device, shape

    def clear(self) -> None:
        """Set the statistics of all words to 0."""
        with used(self.device):
            self.values = self.device.cupy.zeros(self.shape, np.float32)

    def words(self) -> NDArray[np.int64]:
        """All words.  Words that do not occur have statistics of 0."""
        return np.arange(self.shape[0])

    def rows(self, words: NDArray[np.int64], n_topics: int) -> NDArray:
        """Copy the rows of some words to the host."""
        with used(self.device):
            return self.values[self.device.cupy.asarray(words), :n_topics].get()


class DeviceBlocks:
    """Documents on a device.  If passes are `repeated` and memory suffices, they are kept there."""

    def __init__(self, device: gpu.Device, by_word: bool) -> None:
        self.device, self.by_word = device, by_word
        self.repeated = self.full = False
        self.forget()

    def forget(self) -> None:
        """Release the blocks that were kept."""
        self._corpus: Any = None
        self._kept: dict[tuple[int, int], gpu.Block] = {}

    def of_block(self, X: Any, rows: slice) -> gpu.Block:
        """A block of documents, which is copied to the device if it was not kept there."""
        key = rows.start, rows.stop
        if self._corpus is None or self._corpus() is not X:
            self.forget()
            self._corpus = weakref.ref(X)
        block = self._kept.get(key) or self.device.block(X, *key, lengths(X, rows), self.by_word)
        if self.repeated and not self.full:
            self._kept[key] = block
        return block


class DeviceWork:
    """The local step on a device; see :class:`annealvi.models.lda.workspace.Workspace`."""

    def __init__(self, device: gpu.Device, n_threads: int, by_word: bool = False) -> None:
        self.device, self.n_threads = device, n_threads  # threads for work on the host
        self.indices = DeviceBlocks(device, by_word)

    def fit_block(
        self, call: Any, rows: slice, gamma: Any, b: NDArray, rule: Any, wanted: Any
    ) -> None:
        """Infer gamma of a block of documents; halve the block if the device has too little memory.

        If gamma is None, the inference starts from gamma = 1, and the inferred gamma is discarded.
        """
        blocks, n, there = self.indices, len(b), call.topics.on_device
        want_logs = bool(np.any(b != call.b0)) or wanted.energy is not None
        with used(self.device):
            weights = there.weights(call.topics, call.b0, call.exact, want_logs)
        try:
            with writing(self.device), self.device.used():
                return self._fit_block(call, weights, rows, gamma, b, rule, wanted)
        except self.device.out_of_memory:
            if blocks.full and n == 1:
                with used(self.device, "The topics and documents"):
                    raise
        # the arrays of the failed attempt are freed only here, with the traceback of the error
        parts = [slice(0, n)]
        if blocks.full:
            if there.block_bytes == BLOCK_BYTES:
                warn_user(
                    f"{self.device.name} has too little memory for {n} documents at a time, so "
                    "half as many are fitted together. The last digits of results may differ from "
                    "those on a GPU with more memory.",
                    RuntimeWarning,
                )
            parts = [slice(0, n // 2), slice(n // 2, n)]
            there.block_bytes = 4 * call.topics.width * (n // 2)
        blocks.full = True  # no more blocks are kept
        blocks.forget()
        self.device.free()
        for part in parts:
            own = slice(rows.start + part.start, rows.start + part.stop)
            some = [None if a is None else a[part] for a in (gamma, wanted[1], wanted[2])]
            outputs = wanted._replace(log_normalizer=some[1], energy=some[2])
            self.fit_block(call, own, some[0], b[part], rule, outputs)

    def _fit_block(
        self, call: Any, weights: Any, rows: slice, gamma: Any, b: Any, rule: Any, out: Any
    ) -> None:
        cp, n, K, mixed = self.device.cupy, len(b), call.topics.n_topics, bool(np.any(b != call.b0))
        block = self.indices.of_block(call.X, rows)
        found = cp.ones((n, K), np.float32) if gamma is None else cp.asarray(gamma)
        b, alpha = cp.asarray(b), cp.asarray(call.alpha.astype(np.float32))
        ratio = cp.empty(len(block.documents[1]), np.float32)
        hosts = out.log_normalizer, out.energy, out.word_energy
        sums = [None if a is None else cp.empty(len(a), np.float64) for a in hosts]
        t = None if out.statistics is None else cp.empty((n, call.topics.width), np.float32)
        outputs = found, t, ratio, *sums[:2]
        self.device.fit_documents(block, weights, b, alpha, rule, outputs, mixed)
        if out.statistics is not None:
            added = (K, t, ratio, out.statistics.values, sums[2]), call.exact, mixed
            self.device.accumulate_statistics(block, weights, b, call.b0, *added)
        for host, there in zip((gamma, *hosts), (found, *sums), strict=True):
            if host is not None:
                host[:] = there.get()
