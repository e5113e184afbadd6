"""LDA on a GPU: the counterparts there of what ``workspace.py`` and ``topics.py`` have.

:class:`DeviceWork` stands in the place of ``Workspace``, :class:`DeviceStatistics` of
``Statistics``, :class:`DeviceWeights` of ``TopicWeights``, :class:`DeviceBlocks` of
``WordIndices``.  :class:`DeviceTopics` has lambda, which steps move there; the host fetches it when
it is looked at.  All else, the starting points, the merging of runs, log C(T), learned priors and
the divergences of bounds, is computed on the processor.
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
from annealvi.threads import writing

#: Logarithms of the sums of topics may differ by so much in float32, see lda_topics.pyx.
WIDE = 30
#: Bytes of gamma in a block of documents, unless memory is short.
BLOCK_BYTES = 1 << 28


def device_of(name: Any) -> gpu.Device | None:
    """The GPU that a parameter names, if there is one; None for the processor."""
    found = re.fullmatch(r"cpu|cuda(?::(\d{1,4}))?", name) if isinstance(name, str) else None
    if found is None:
        raise BadParameter("device", "'cpu', 'cuda' or 'cuda:<index>'", name)
    if name == "cpu":
        return None
    cupy, index = import_optional("cupy", f"device={name!r}"), int(found[1] or 0)
    try:
        there, reason = cupy.cuda.runtime.getDeviceCount(), ""
    except cupy.cuda.runtime.CUDARuntimeError as error:
        there, reason = 0, f"CUDA says: {error}."
    if index >= there:
        allowed = f"'cpu'{f' or an index below {there}' * bool(there)}"
        raise BadParameter("device", f"{allowed}, as CuPy sees {there} CUDA devices", name, reason)
    return _opened(index)


@cache
def _opened(index: int) -> gpu.Device:
    return gpu.Device(import_optional("cupy", "a GPU"), index)


def too_large(device: gpu.Device, what: str) -> MemoryError:
    """The error of what a device has no memory for."""
    with device.used():
        free, total = (n / 2**30 for n in device.free())
    return MemoryError(
        f"{what} need more memory than {device.name} has: {free:.1f} of {total:.1f} GiB are free. "
        "Use fewer topics or words, or device='cpu'."
    )


@contextmanager
def used(device: gpu.Device) -> Iterator[None]:
    """Return the context of calls to a device for what all topics need, one thread at a time."""
    with writing(device), device.used():
        try:
            yield
        except device.out_of_memory as error:
            raise too_large(device, "The topics") from error


class DeviceTopics:
    """lambda on a device."""

    def __init__(self, device: gpu.Device) -> None:
        self.device, self.block_bytes = device, BLOCK_BYTES
        self.version = -1  # of the topics
        self._prior: tuple[Any, float] = None, 1.0

    def match(self, topics: Any) -> Any:
        """Bring lambda up to date, and return it."""
        if self.version != topics.version:
            with used(self.device):
                self.lam = self.device.cupy.asarray(topics.lam)
            self.version = topics.version
        return self.lam

    def step(
        self, topics: Any, statistics: Any, factor: float, amount: float, floor: float, b: float
    ) -> NDArray[np.float64]:
        """lambda <- max(b eta + factor (lambda - b eta) + amount statistics, floor); its sums."""
        eta, kept = topics.eta, self._prior
        with used(self.device):
            if kept[0] is not eta or kept[1] != b:
                rows = eta.reshape(-1, 1) if eta.ndim < 2 else eta.T
                self._eta = self.device.cupy.asarray(np.array(b * rows, np.float32, order="C"))
                self._prior = eta, b
            given = self._eta, statistics.values, factor, amount, floor
            return self.device.step_topics(self.lam, topics.n_topics, *given)

    def fetch(self, out: NDArray) -> None:
        """Copy lambda to the host."""
        with used(self.device):
            self.lam.get(out=out)


class DeviceWeights:
    """The weights of all words, see :class:`annealvi.models.lda.topics.TopicWeights`."""

    def __init__(self) -> None:
        self._key: Any = None
        self._version = -1

    def outdate(self) -> None:
        """Forget them, because lambda has changed."""
        self._key = None

    def match(self, version: int) -> None:
        """Outdate them unless they were computed from this version of the topics."""
        if version != self._version:
            self._version = version
            self.outdate()

    def refresh(self, topics: Any, b: float, exact: bool, want_logs: bool) -> tuple[Any, Any, Any]:
        """The weights, their scale and perhaps logarithms, brought up to date."""
        if self._key != (b, exact, want_logs):
            lam, device, map_ = topics.on_device.match(topics), topics.on_device.device, False
            log_sums = special.digamma(topics.sums)
            if topics.estimate == "map":
                log_sums, map_ = special.log(topics.sums), True
            kind = 1 + (not exact and np.ptp(log_sums) > WIDE) if map_ else 0
            log_sums = device.cupy.asarray(log_sums.astype(np.float32))
            self._arrays = device.refresh_weights(lam, log_sums, kind, b, not exact, want_logs)
            self._key = b, exact, want_logs
        return self._arrays


class DeviceStatistics:
    """The statistics of all words, see :class:`annealvi.models.lda.topics.Statistics`."""

    nbytes = 0  # of the host

    def __init__(self, device: gpu.Device, n_features: int, width: int) -> None:
        self._device, self._shape = device, (n_features, width)
        self.values: Any = None  # none yet

    def clear(self) -> None:
        """Forget all words."""
        if self.values is not None:
            self.values.fill(0)

    def words(self) -> NDArray[np.int64]:
        """All words: those that were not seen have statistics of 0."""
        return np.arange(self._shape[0])

    def rows(self, words: NDArray[np.int64], n_topics: int) -> NDArray:
        """A copy of the rows of some words, on the host."""
        with used(self._device):
            return self.values[self._device.cupy.asarray(words), :n_topics].get()

    def reserve(self) -> Any:
        """The rows, for which there is room from now on."""
        if self.values is None:
            self.values = self._device.cupy.zeros(self._shape, np.float32)
        return self.values


class DeviceBlocks:
    """Documents on a device; those of `repeated` passes stay there, unless memory is short."""

    def __init__(self, device: gpu.Device, by_word: bool) -> None:
        self.device, self.by_word = device, by_word
        self.repeated = self.full = False
        self.forget()

    def forget(self) -> None:
        """Forget the blocks that were kept."""
        self._corpus: Any = None
        self._kept: dict[tuple[int, int], gpu.Block] = {}

    def of_block(self, X: Any, rows: slice) -> gpu.Block:
        """A block of documents, copied unless it is kept."""
        key = rows.start, rows.stop
        if self._corpus is None or self._corpus() is not X:
            self.forget()
            self._corpus = weakref.ref(X)
        block = self._kept.get(key)
        if block is None:
            block = self.device.block(X, *key, self.by_word)
            if self.repeated and not self.full:
                self._kept[key] = block
        return block


class DeviceWork:
    """The local step on a device, see :class:`annealvi.models.lda.workspace.Workspace`."""

    def __init__(self, device: gpu.Device, n_threads: int, by_word: bool = False) -> None:
        self.device, self.n_threads = device, n_threads  # threads of what is done on the host
        self.indices = DeviceBlocks(device, by_word)

    def fit_block(
        self, topics: Any, call: Any, rows: slice, gamma: Any, b: NDArray, rule: Any, wanted: Any
    ) -> None:
        """Fit a block of documents; one that there is no memory for is halved.

        Without gamma documents begin at ones, and nobody asks where they end.
        """
        device, blocks, n = self.device, self.indices, len(b)
        with used(device):
            if wanted.statistics is not None:
                wanted.statistics.reserve()
            mixed = bool(np.any(b != call.b0))
            want_logs = mixed or wanted.energy is not None
            weights = call.weights.refresh(topics, call.b0, call.exact, want_logs)
        try:
            with writing(device), device.used():
                return self._fit_block(topics, call, rows, gamma, b, rule, wanted, weights, mixed)
        except device.out_of_memory as error:
            if blocks.full and n == 1:
                raise too_large(device, "The topics and one document") from error
        # arrays of the attempt are gone only now, with the traceback of the error
        halves, there = [slice(0, n // 2), slice(n // 2, n)], topics.on_device
        if not blocks.full:  # try without the blocks of before
            halves, blocks.full = [slice(0, n)], True
            blocks.forget()
        elif there.block_bytes == BLOCK_BYTES:
            warn_user(
                f"The memory of {device.name} is short, for {n} documents at a time: blocks are "
                "halved. Fits with more memory may differ from this one in their last digits.",
                RuntimeWarning,
            )
        if len(halves) == 2:
            there.block_bytes = 4 * topics.width * (n // 2)
        with device.used():
            device.free()
        for some in halves:
            own = slice(rows.start + some.start, rows.start + some.stop)
            parts = {name: getattr(wanted, name) for name in ("log_normalizer", "energy")}
            parts = {name: None if part is None else part[some] for name, part in parts.items()}
            of_gamma, part = None if gamma is None else gamma[some], wanted._replace(**parts)
            self.fit_block(topics, call, own, of_gamma, b[some], rule, part)

    def _fit_block(
        self,
        topics: Any,
        call: Any,
        rows: slice,
        gamma: Any,
        b: NDArray,
        rule: Any,
        wanted: Any,
        weights: tuple[Any, Any, Any],
        mixed: bool,
    ) -> None:
        cp, K, n, t = self.device.cupy, topics.n_topics, len(b), None
        block = self.indices.of_block(call.X, rows)
        found = cp.ones((n, K), np.float32) if gamma is None else cp.asarray(gamma)
        inverse, alpha = cp.asarray(b), cp.asarray(call.alpha.astype(np.float32))
        ratio = cp.empty(len(block.indices), np.float32)
        outputs = [
            (part, None if part is None else cp.empty(len(part), np.float64))
            for part in (wanted.log_normalizer, wanted.energy, wanted.word_energy)
        ]
        (_, log_normalizer), (_, energy), (_, word_energy) = outputs
        if wanted.statistics is not None:
            t = cp.empty((n, topics.width), np.float32)
        options = rule.eps, rule.sparsity, rule.relaxation, rule.tolerance, rule.by_topic
        self.device.fit_documents(
            *(block, *weights, inverse, alpha, (*options, rule.max_iter)),
            *(found, t, ratio, log_normalizer, energy, mixed),
        )
        if wanted.statistics is not None:
            self.device.accumulate_statistics(
                *(block, ratio, t, inverse, call.b0, weights, not call.exact),
                *(wanted.statistics.values, word_energy, K, mixed),
            )
        if gamma is not None:
            outputs.append((gamma, found))
        for host, there in outputs:
            if host is not None:
                host[:] = there.get()
