"""The engine on a GPU: it pushes lambda to the device, updates it there, and pulls it back.

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
from annealvi._kernels.layout import aligned_empty
from annealvi._optional import import_optional
from annealvi.exceptions import BadParameter, warn_user
from annealvi.matrices import lengths
from annealvi.models.lda.cpu import StepSums
from annealvi.models.lda.engine import Engine, EStep
from annealvi.models.lda.model import LDA
from annealvi.threads import shallow, writing

#: Logarithms of the sums of topics may differ by at most this in float32; see lda_topics.pyx.
WIDE = 30
#: Bytes of gamma in a block of documents, if there is enough memory.
BLOCK_BYTES = 1 << 28


def device_of(name: Any) -> gpu.Device | None:
    """The GPU that a parameter names, or None for the processor; raise if it does not exist."""
    match = re.fullmatch(r"cpu|cuda(?::(\d{1,4}))?", name) if isinstance(name, str) else None
    if match is None:
        raise BadParameter("device", "'cpu', 'cuda' or 'cuda:<index>'", name)
    if name == "cpu":
        return None
    cupy = import_optional("cupy", f"device={name!r}")
    index = int(match[1] or 0)
    reason = ""
    try:
        n_devices = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        n_devices = 0
        reason = f"CUDA reports: {error}."
    if index >= n_devices:
        raise BadParameter(
            "device",
            f"'cpu'{f' or an index below {n_devices}' if n_devices else ''}, because CuPy finds "
            f"{n_devices} CUDA devices",
            name,
            reason,
        )
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
            free, total = (n_bytes / 2**30 for n_bytes in device.free())
            raise MemoryError(
                f"{what} need more memory than {device.name} has. {free:.1f} of its {total:.1f} "
                "GiB are free. Use fewer topics or words, or device='cpu'."
            ) from error


class GPUStatistics(StepSums):
    """Statistics of all words on a device; see :class:`annealvi.models.lda.cpu.Statistics`."""

    def __init__(self, device: gpu.Device, shape: tuple[int, int]) -> None:
        """Make statistics of 0, of shape (V, K padded), on a device."""
        super().__init__()
        self.device = device
        with used(device):
            self.values = device.cupy.zeros(shape, np.float32)

    def words(self) -> NDArray[np.int64]:
        """All words.  Words that do not occur have statistics of 0."""
        return np.arange(len(self.values), dtype=np.int64)

    def rows(self, words: NDArray[np.int64], n_topics: int) -> NDArray:
        """Copy the rows of some words to the host."""
        with used(self.device):
            return self.values[self.device.cupy.asarray(words), :n_topics].get()  # to the host


class GPUEngine(Engine):
    """Computes on a GPU, which keeps lambda, the weights of words, and perhaps the documents.

    Documents are kept if they will be used in several passes and if memory suffices.
    """

    may_discard_gamma = True

    def __init__(self, device: gpu.Device, n_threads: int = 1, *, repeated: bool = False) -> None:
        """Make an engine without arrays; `repeated` is true if a fit makes several passes."""
        self.device = device
        self.n_threads = n_threads  # threads for work on the host
        self.repeated = repeated
        self.block_bytes = BLOCK_BYTES
        self.by_word = True  # whether documents are also sorted by word, for statistics
        self._prior: tuple[Any, float] = None, 1.0  # what eta on the device was computed from
        self.release()

    def release(self) -> None:
        """Release all arrays on the device; the next step makes new ones."""
        self.full = False  # whether there was too little memory to keep documents
        self._ahead = False  # whether only the device has the last steps
        self.forget_documents()

    def forget_documents(self) -> None:
        """Release the documents, the topics and the weights on the device."""
        self._version: object = None  # of the lambda on the device
        self._lam: Any = None
        self._sums: Any = None
        self._weights_key: Any = None
        self._weights: Any = None
        self._forget_blocks()

    def _forget_blocks(self) -> None:
        """Release the documents on the device."""
        self._corpus: Any = None  # a weak reference to the matrix of the blocks
        # by the first and last row
        self._kept: dict[tuple[int, int], gpu.Block] = {}

    def block_size(self, model: LDA) -> int:
        """The number of documents in a block, whose gamma takes at most `block_bytes`."""
        return max(1, self.block_bytes // (model.width * model.dtype.itemsize))

    def begin(self, model: LDA) -> GPUStatistics:
        """Begin a training step; return the statistics, which are 0."""
        return GPUStatistics(self.device, model.shape[:2])

    def for_inference(self, model: LDA, step: EStep, want_logs: bool) -> GPUEngine:
        """Return an engine for inference, which shares the topics but keeps no documents."""
        self._push(model)
        engine = shallow(self)
        engine.by_word = False
        engine.repeated = False
        engine.full = False
        engine._forget_blocks()
        return engine

    # ------------------------------------------------------------------ lambda

    def _push(self, model: LDA) -> None:
        """Copy lambda to the device if it has changed."""
        if self._version is not model.version:
            with used(self.device):
                self._lam = self.device.cupy.asarray(model.up_to_date_lambda())
            self._sums = model.sums
            self._version = model.version
            self._weights_key = None

    def pull(self, model: LDA) -> None:
        """Copy lambda to the host if only the device has the last steps."""
        if not self._ahead:
            return
        lam = aligned_empty(model.lam.shape, model.dtype)
        with used(self.device):
            self._lam.get(out=lam)
        self._ahead = False
        model.lam = lam
        # no steps are pending, because the device updates all rows
        model.decay = np.ones(model.n_features)
        model.now = 1.0
        model.sums = self._sums
        model.changed()
        self._version = model.version

    def _refresh_weights(self, model: LDA, step: EStep, want_logs: bool) -> tuple[Any, Any, Any]:
        """The weights of all words, their scales, and (if `want_logs`) their logarithms."""
        self._push(model)
        key = step.b0, step.exact, want_logs
        if self._weights_key != key:
            mean = model.estimate == "map"
            log_sums = (special.log if mean else special.digamma)(self._sums)
            # 0 for E log beta, 1 for log E beta, 2 for log E beta of topics of very different sizes
            kind = int(mean)
            if mean and not step.exact and np.ptp(log_sums) > WIDE:
                kind = 2
            self._weights = self.device.refresh_weights(
                lam=self._lam,
                log_sums=self.device.cupy.asarray(log_sums.astype(np.float32)),
                mean=kind,
                b=step.b0,
                normalise=not step.exact,
                want_logs=want_logs,
            )
            self._weights_key = key
        return self._weights

    def step_topics(
        self, model: LDA, statistics: Any, rho: float, scale: float, floor: float, b: float
    ) -> None:
        """Make the step of all rows of lambda on the device; see :meth:`Engine.step_topics`."""
        model.catch_up(self.n_threads)
        self._push(model)
        model.changed()
        self._version = model.version  # so that `_push` does not overwrite the new lambda
        self._weights_key = None
        # if the fit is interrupted from here on, lambda is the one on the device
        self._ahead = True
        eta = model.eta
        with used(self.device):
            if self._prior[0] is not eta or self._prior[1] != b:
                rows = np.asarray(eta, dtype=float)
                # of shape (1, 1), (V, 1) or (V, K)
                rows = rows.reshape(-1, 1) if rows.ndim < 2 else rows.T
                self._eta = self.device.cupy.asarray(np.array(b * rows, np.float32, order="C"))
                self._prior = eta, b
            self._sums = self.device.step_topics(
                lam=self._lam,
                K=model.n_topics,
                eta=self._eta,
                statistics=statistics.values,
                factor=1.0 - rho,
                amount=rho * scale,
                floor=floor,
            )

    # --------------------------------------------------------------- documents

    def _block(self, X: Any, rows: slice) -> gpu.Block:
        """A block of documents, which is copied to the device if it was not kept there."""
        key = rows.start, rows.stop
        if self._corpus is None or self._corpus() is not X:
            self._forget_blocks()
            self._corpus = weakref.ref(X)
        block = self._kept.get(key)
        if block is None:
            block = self.device.block(X, *key, lengths(X, rows), self.by_word)
        if self.repeated and not self.full:
            self._kept[key] = block
        return block

    def fit_block(
        self,
        model: LDA,
        step: EStep,
        X: Any,
        rows: slice,
        gamma: Any,
        b: NDArray,
        *,
        log_normalizer: NDArray | None = None,
        energy: NDArray | None = None,
        statistics: Any = None,
        word_energy: NDArray | None = None,
        deferred: bool = False,
    ) -> None:
        """Infer gamma of a block of documents; halve the block if the device has too little memory.

        If gamma is None, the inference starts from gamma = 1, and the inferred gamma is discarded.
        """
        n_samples = len(b)
        want_logs = bool(np.any(b != step.b0)) or energy is not None
        with used(self.device):
            weights = self._refresh_weights(model, step, want_logs)
        try:
            with writing(self.device), self.device.used():
                return self._fit_whole_block(
                    model,
                    step,
                    weights,
                    self._block(X, rows),
                    gamma,
                    b,
                    log_normalizer=log_normalizer,
                    energy=energy,
                    statistics=statistics,
                    word_energy=word_energy,
                )
        except self.device.out_of_memory:
            if self.full and n_samples == 1:  # a block cannot be smaller
                # `used` converts the error to a MemoryError with a message
                with used(self.device, "The topics and documents"):
                    raise
        # the arrays of the failed attempt are freed only here, with the traceback of the error
        # first the same block again, after the kept blocks have been released
        halves = [slice(0, n_samples)]
        if self.full:  # none is kept any more, so the block itself is too large
            if self.block_bytes == BLOCK_BYTES:
                warn_user(
                    f"{self.device.name} has too little memory for {n_samples} documents at a "
                    "time, so half as many are fitted together. The last digits of results may "
                    "differ from those on a GPU with more memory.",
                    RuntimeWarning,
                )
            halves = [slice(0, n_samples // 2), slice(n_samples // 2, n_samples)]
            # 4 bytes for each number of float32
            self.block_bytes = 4 * model.width * (n_samples // 2)
        self.full = True  # no more blocks are kept
        self._forget_blocks()
        self.device.free()
        for half in halves:
            self.fit_block(
                model,
                step,
                X,
                slice(rows.start + half.start, rows.start + half.stop),
                None if gamma is None else gamma[half],
                b[half],
                log_normalizer=None if log_normalizer is None else log_normalizer[half],
                energy=None if energy is None else energy[half],
                statistics=statistics,
                word_energy=word_energy,
            )

    def _fit_whole_block(
        self,
        model: LDA,
        step: EStep,
        weights: Any,
        block: gpu.Block,
        gamma: Any,
        b: NDArray,
        *,
        log_normalizer: Any,
        energy: Any,
        statistics: Any,
        word_energy: Any,
    ) -> None:
        """Infer gamma of a block of documents on the device, and copy the results to the host."""
        cupy = self.device.cupy
        n_samples = len(b)
        mixed = bool(np.any(b != step.b0))
        shape = n_samples, model.n_topics
        fitted = cupy.ones(shape, np.float32) if gamma is None else cupy.asarray(gamma)
        inverse = cupy.asarray(b)
        alpha = cupy.asarray(step.alpha.astype(np.float32))
        ratio = cupy.empty(len(block.documents[1]), np.float32)
        outputs = log_normalizer, energy, word_energy
        # an array on the device for each output that is wanted
        sums = [None if host is None else cupy.empty(len(host), np.float64) for host in outputs]
        # exp(E log theta) of each document, from which statistics are computed
        t = None if statistics is None else cupy.empty((n_samples, model.width), np.float32)
        self.device.fit_documents(
            block=block,
            weights=weights,
            b=inverse,
            alpha=alpha,
            e_step=step,
            mixed=mixed,
            gamma=fitted,
            t=t,
            ratio=ratio,
            log_normalizer=sums[0],
            energy=sums[1],
        )
        if statistics is not None:
            self.device.accumulate_statistics(
                block=block,
                weights=weights,
                b=inverse,
                b0=step.b0,
                K=model.n_topics,
                t=t,
                ratio=ratio,
                statistics=statistics.values,
                word_energy=sums[2],
                exact=step.exact,
                mixed=mixed,
            )
        for host, array in zip((gamma, *outputs), (fitted, *sums), strict=True):
            if host is not None:
                host[:] = array.get()
