"""The kernels of LDA on a GPU, CUDA sources that CuPy compiles for each number of topics.

GPU kernels have the same names as those of ``lda.pyx`` and ``lda_topics.pyx``, and use float32.
The sources describe the arguments.  Every sum has a fixed order, so two fits on the same device are
identical, bit for bit.  The arrays of the CSR matrices, and the array with the sum of each topic's
lambda, are NumPy arrays.  All other arrays are CuPy arrays.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

#: Number of threads in a block, for kernels with one thread per topic or with a shared row.
THREADS = 128
#: Number of words in a block of sums over words, as in lda_topics.cu, and of a word's entries in a
#: chunk.
WORDS, CHUNK = 64, 1024
#: Documents are fitted in launches of at least LAUNCH documents, and in at most LAUNCHES launches.
#: A launch has shared memory for its longest document.
LAUNCH, LAUNCHES = 8192, 8
#: Most topics, because the kernels keep a document's sums in registers.
MOST_TOPICS = 2048


class Block(NamedTuple):
    """Documents on the device and, if statistics are needed, their entries ordered by words."""

    #: The launches, in which the longest documents come first: the first and the last index in
    #: the order of documents, and the length of the longest document.
    launches: list[tuple[int, int, int]]
    order: Any
    #: The arrays indptr, indices, data and tokens.
    documents: tuple[Any, Any, Any, Any]
    #: Arrays with the begin and the word of each chunk, and the document and place of each entry.
    entries: tuple[Any, ...] = ()
    #: The first chunk of each word, and the end of the last word's chunks.
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
        """Return a context for calls to this device."""
        return self.cupy.cuda.Device(self.number)

    def free(self) -> tuple[int, int]:
        """Release memory that CuPy keeps; return the numbers of free bytes and of all bytes."""
        with self.used():
            self.cupy.get_default_memory_pool().free_all_blocks()
            return self.cupy.cuda.runtime.memGetInfo()

    def block(self, X: Any, start: int, stop: int, tokens: NDArray, by_word: bool) -> Block:
        """Copy rows of a CSR matrix to the device; with `by_word`, also sort entries by word.

        `tokens` contains the sum of each row, which must always be added up in the same order.
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
        """Do the local step of each document of a block.

        The outputs are gamma (initial values on entry), t, ratio, log_normalizer and energy.  Only
        gamma and ratio are required.  If `mixed`, documents have their own inverse temperatures b.
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
        """Compute the weights of all words, their scales and, if wanted, their logarithms."""
        V, K_pad = lam.shape
        logs = self.cupy.empty_like(lam) if want_logs else None
        found = self.cupy.empty_like(lam), self.cupy.empty(V, np.float32), logs
        shared, arguments = 4 * (K_pad + THREADS // 32), (lam, log_sums, mean, b, normalise, *found)
        self._launch("refresh_weights", len(log_sums), False, (V,), arguments, shared)
        return found

    def accumulate_statistics(
        self, block: Block, weights: Any, b: Any, b0: float, outputs: Any, exact: bool, mixed: bool
    ) -> None:
        """Add the statistics of a block; `outputs` is K, t, ratio, statistics and word_energy."""
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
        """Update lambda in place, and return its sums over words."""
        (V, _), n_blocks, grid = lam.shape, -(-len(lam) // WORDS), -(-K // THREADS)
        partial, sums = self.cupy.empty((n_blocks, K), np.float64), self.cupy.empty(K, np.float64)
        rows, columns = eta.shape  # a stride is 0 if all words or topics have the same prior
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
    """Return the numbers of threads per word, warps per document and blocks per multiprocessor.

    Of the numbers that we tried on an H200, these were the fastest.
    """
    group = next(size for size in (4, 8, 16, 32) if size == 32 or K_pad <= 16 * size)
    return group, 4, 5 if K_pad <= 128 else 4 if K_pad <= 512 else 2


def options(K: int, mixed: bool) -> tuple[str, ...]:
    """The options of the compiler for a number of topics; rows are padded as on the host."""
    K_pad = -(-K // 16) * 16
    names = "K", "K_PAD", "GROUP", "WARPS", "RESIDENT", "MIXED"
    numbers = zip(names, (K, K_pad, *shape_of(K_pad), int(mixed)), strict=True)
    return ("--std=c++17", *(f"-D{name}={number}" for name, number in numbers))


@cache
def source(name: str) -> str:
    """The source of a file of kernels, together with the file that it includes."""
    folder = Path(__file__).parent
    return "".join((folder / file).read_text() for file in ("special.cuh", f"{name}.cu"))


def _chunks(begins: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """The begins of chunks and the end, the words of chunks, and the first chunk of each word."""
    n_chunks = -(-np.diff(begins) // CHUNK)
    chunks = np.concatenate([[0], np.cumsum(n_chunks)])
    word = np.repeat(np.arange(len(n_chunks)), n_chunks)
    first = begins[word] + CHUNK * (np.arange(len(word)) - chunks[word])
    return np.append(first, begins[-1]), word, chunks


def _argument(value: Any) -> Any:
    """Convert an argument for CUDA: to an array, a null pointer, or a number of 32 bits."""
    if isinstance(value, float):
        return np.float32(value)
    return np.intp(0) if value is None else np.int32(value) if isinstance(value, int) else value
