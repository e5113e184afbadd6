"""The kernels of LDA on a GPU: CUDA sources that CuPy compiles for a number of topics.

They mirror ``lda.pyx`` and ``lda_topics.pyx`` name by name, in float32; the sources describe their
arguments.  Every sum is in a fixed order, so two runs on a device are identical, bit for bit.
Arrays are CuPy's, except those of a CSR matrix and the sums of topics, which are NumPy's.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

#: Threads of a block of the kernels that have one thread for each topic or share a row.
THREADS = 128
#: Words in a block of the sums over words, as in lda_topics.cu, and entries in a chunk of a word's.
WORDS, CHUNK = 64, 1024
#: Documents of one launch at least, and launches at most: each has shared memory for its longest.
LAUNCH, LAUNCHES = 8192, 8
#: The kernels keep a document's sums in registers.
MOST_TOPICS = 2048


class Block(NamedTuple):
    """Documents on the device and, for statistics, their entries in the order of words."""

    #: Launches, the longest documents first: which of the order, and the length of the longest.
    launches: list[tuple[int, int, int]]
    order: Any
    #: indptr, indices, data and tokens.
    documents: tuple[Any, Any, Any, Any]
    #: Where chunks of a word's entries begin and their words; document and place of each entry.
    entries: tuple[Any, ...] = ()
    #: The first chunk of each word, and the end.
    chunks: Any = None


class Device:
    """A GPU, and the kernels that were compiled for it."""

    def __init__(self, cupy: Any, number: int = 0) -> None:
        self.cupy, self.number, found = cupy, number, cupy.cuda.runtime.getDeviceProperties(number)
        self.name = found["name"].decode()
        self.shared = int(found["sharedMemPerBlockOptin"])
        self.of_processor = int(found["sharedMemPerMultiprocessor"])
        self.out_of_memory = cupy.cuda.memory.OutOfMemoryError
        self.compiled = cache(self._compiled)

    def used(self) -> Any:
        """Return the context of calls to this device."""
        return self.cupy.cuda.Device(self.number)

    def free(self) -> tuple[int, int]:
        """Give back memory that CuPy keeps; return how many bytes are free, and there are."""
        with self.used():
            self.cupy.get_default_memory_pool().free_all_blocks()
            return self.cupy.cuda.runtime.memGetInfo()

    def block(self, X: Any, start: int, stop: int, tokens: NDArray, by_word: bool) -> Block:
        """Copy rows of a CSR matrix to the device; sort their entries by word, if it is wanted.

        `tokens` are the sums of the rows, in an order that does not change.
        """
        cp, ends, n = self.cupy, X.indptr[start : stop + 1], stop - start
        own, lengths, ends = slice(int(ends[0]), int(ends[-1])), np.diff(ends), ends - ends[0]
        order = np.argsort(-lengths, kind="stable")
        size = -(-n // min(LAUNCHES, max(1, n // LAUNCH)))
        launches = [(at, min(at + size, n), int(lengths[order[at]])) for at in range(0, n, size)]
        integers = (np.asarray(a, np.int32) for a in (order, ends, X.indices[own]))
        order, indptr, indices = map(cp.asarray, integers)
        documents = indptr, indices, cp.asarray(X.data[own]), cp.asarray(tokens)
        if not by_word:
            return Block(launches, order, documents)
        keys = indices.astype(np.int64) << 32
        keys += cp.arange(len(indices), dtype=np.int64)
        keys.sort()
        begins = cp.searchsorted(keys, cp.arange(X.shape[1] + 1, dtype=np.int64) << 32)
        position = (keys & 0xFFFFFFFF).astype(np.int32)
        document = (cp.searchsorted(indptr, position, side="right") - 1).astype(np.int32)
        first, word, chunks = (cp.asarray(a.astype(np.int32)) for a in _chunks(begins.get()))
        return Block(launches, order, documents, (first, word, document, position), chunks)

    def fit_documents(
        self, block: Block, weights: Any, b: Any, alpha: Any, rule: Any, outputs: Any, mixed: bool
    ) -> None:
        """The local step of each document of a block.

        The outputs are gamma, in which documents begin, t, ratio, log_normalizer and energy; t and
        the last two may be None.  They are `mixed` if b differs from that of the weights.
        """
        gamma, t, *_, log_normalizer, energy = outputs
        K, K_pad = gamma.shape[1], weights[0].shape[1]
        group, warps, resident = shape_of(K_pad)
        fit = self.compiled("lda_document", K, mixed).get_function("fit_documents")
        row, fixed = 4 * K_pad, 4 * K_pad * (1 + 32 * warps // group) + 16 * warps
        most = min(self.shared, self.of_processor // resident - 1024)
        fit.max_dynamic_shared_size_bytes = most = most if fixed <= most else self.shared
        options = rule.eps, rule.sparsity, rule.relaxation, rule.tolerance, rule.by_topic
        finish = t is not None or log_normalizer is not None or energy is not None
        for start, stop, longest in block.launches:
            room = min(longest, (most - fixed) // row)
            given = *block.documents, *weights, b, alpha, *options, rule.max_iter, room, finish
            arguments = map(_argument, (block.order[start:stop], *given, *outputs))
            fit((stop - start,), (32 * warps,), tuple(arguments), shared_mem=fixed + room * row)

    def refresh_weights(
        self, lam: Any, log_sums: Any, mean: int, b: float, normalise: bool, want_logs: bool
    ) -> tuple[Any, Any, Any]:
        """The weights of all words, their scale and, if wanted, logarithms."""
        V, K_pad = lam.shape
        logs = self.cupy.empty_like(lam) if want_logs else None
        found = self.cupy.empty_like(lam), self.cupy.empty(V, np.float32), logs
        shared, arguments = 4 * (K_pad + THREADS // 32), (lam, log_sums, mean, b, normalise, *found)
        self._launch("refresh_weights", len(log_sums), False, (V,), arguments, shared)
        return found

    def accumulate_statistics(
        self, block: Block, weights: Any, b: Any, b0: float, outputs: Any, exact: bool, mixed: bool
    ) -> None:
        """Add a block's statistics; the outputs are K, t, ratio, statistics and word_energy."""
        (values, log_scale, logs), (K, t, ratio, statistics, word_energy) = weights, outputs
        n_chunks, width = len(block.entries[1]), t.shape[1]
        partial, grid = self.cupy.empty((n_chunks, width), np.float64), -(-width // THREADS)
        if n_chunks:
            arguments = *block.entries, ratio, t, b, logs, -60.0 if exact else -40.0, partial
            self._launch("accumulate_statistics", K, mixed, (n_chunks, grid), arguments)
        arguments = block.chunks, partial, values, log_scale, b0, statistics, word_energy
        shared = 8 * (THREADS // 32)
        self._launch("collect_statistics", K, mixed, (len(statistics),), arguments, shared)

    def step_topics(
        self,
        lam: Any,
        K: int,
        eta: Any,
        statistics: Any,
        factor: float,
        amount: float,
        floor: float,
    ) -> NDArray[np.float64]:
        """Step lambda in place, and return its sums over words."""
        (V, _), n_blocks, grid = lam.shape, -(-len(lam) // WORDS), -(-K // THREADS)
        partial, sums = self.cupy.empty((n_blocks, K), np.float64), self.cupy.empty(K, np.float64)
        rows, columns = eta.shape  # a stride is 0 where all words or topics have the same prior
        strides = columns * (rows > 1), int(columns > 1)
        arguments = V, lam, eta, *strides, statistics, factor, amount, floor, partial
        self._launch("step_topics", K, False, (n_blocks, grid), arguments)
        self._launch("add_blocks", K, False, (grid,), (n_blocks, partial, sums))
        return sums.get()

    def _launch(
        self, name: str, K: int, mixed: bool, grid: tuple, arguments: tuple, shared: int = 0
    ) -> None:
        kernel = self.compiled("lda_topics", K, mixed).get_function(name)
        kernel(grid, (THREADS,), tuple(map(_argument, arguments)), shared_mem=shared)

    def _compiled(self, name: str, K: int, mixed: bool) -> Any:
        return self.cupy.RawModule(code=source(name), options=options(K, mixed))


def shape_of(K_pad: int) -> tuple[int, int, int]:
    """The fastest shape on an H200 of those tried: threads that share a word, warps, and blocks.

    The warps of 32 threads are those of one document, and so many blocks fit into a multiprocessor.
    """
    group = next(size for size in (4, 8, 16, 32) if size == 32 or K_pad <= 16 * size)
    return group, 4, 5 if K_pad <= 128 else 4 if K_pad <= 512 else 2


def options(K: int, mixed: bool) -> tuple[str, ...]:
    """The compiler's options for a number of topics, whose rows are padded as on the host."""
    K_pad = -(-K // 16) * 16
    names = "K", "K_PAD", "GROUP", "WARPS", "RESIDENT", "MIXED"
    numbers = zip(names, (K, K_pad, *shape_of(K_pad), int(mixed)), strict=True)
    return ("--std=c++17", *(f"-D{name}={number}" for name, number in numbers))


@cache
def source(name: str) -> str:
    """The source of a file of kernels, with what it builds on."""
    folder = Path(__file__).parent
    return "".join((folder / file).read_text() for file in ("special.cuh", f"{name}.cu"))


def _chunks(begins: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Where chunks begin, and the end; their words; and the first chunk of each word."""
    n_chunks = -(-np.diff(begins) // CHUNK)
    chunks = np.concatenate([[0], np.cumsum(n_chunks)])
    word = np.repeat(np.arange(len(n_chunks)), n_chunks)
    first = begins[word] + CHUNK * (np.arange(len(word)) - chunks[word])
    return np.append(first, begins[-1]), word, chunks


def _argument(value: Any) -> Any:
    """An argument as CUDA takes it: an array, a null, or a number of 32 bits."""
    if isinstance(value, float):
        return np.float32(value)
    return np.intp(0) if value is None else np.int32(value) if isinstance(value, int) else value
