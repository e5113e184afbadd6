"""The kernels of LDA on a GPU: CUDA sources that CuPy compiles for a number of topics.

They mirror ``lda.pyx`` and ``lda_topics.pyx`` name by name, in float32.  Every sum is in a fixed
order, so two runs on a device give the same bits.  Arrays are CuPy's, but for those of a CSR matrix
and the sums of topics, which are NumPy's.
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


def padded(n_topics: int) -> int:
    """K padded, as in the rows of the host."""
    return -(-n_topics // 16) * 16


class Block(NamedTuple):
    """Documents on the device and, for statistics, their entries in the order of words."""

    #: Documents in launches: their order, and the number of entries of the longest of each.
    order: Any
    launches: list[tuple[int, int, int]]
    indptr: Any
    indices: Any
    data: Any
    tokens: Any
    #: Chunks of words' entries, and where those of each word begin.
    first: Any = None
    word: Any = None
    chunks: Any = None
    document: Any = None
    position: Any = None


class Device:
    """A GPU, and the kernels that were compiled for it."""

    def __init__(self, cupy: Any, number: int = 0) -> None:
        self.cupy, self.number = cupy, number
        self.out_of_memory = cupy.cuda.memory.OutOfMemoryError
        found = cupy.cuda.runtime.getDeviceProperties(number)
        self.name = found["name"].decode()
        self.shared = int(found["sharedMemPerBlockOptin"])
        self.of_processor = int(found["sharedMemPerMultiprocessor"])
        self.compiled = cache(self._compiled)

    def used(self) -> Any:
        """Return the context of calls to this device."""
        return self.cupy.cuda.Device(self.number)

    def free(self) -> tuple[int, int]:
        """Give back what CuPy keeps of memory; return how many bytes are free, and there are."""
        self.cupy.get_default_memory_pool().free_all_blocks()
        free, total = self.cupy.cuda.runtime.memGetInfo()
        return int(free), int(total)

    # ------------------------------------------------------------------ documents

    def block(self, X: Any, start: int, stop: int, by_word: bool) -> Block:
        """Copy rows of a CSR matrix to the device; sort their entries by word, if it is wanted."""
        cp, n_features = self.cupy, X.shape[1]
        ends = X.indptr[start : stop + 1]
        own, n = slice(int(ends[0]), int(ends[-1])), stop - start
        lengths, ends, tokens = np.diff(ends), ends - ends[0], np.zeros(n)
        some = lengths > 0
        if some.any():  # in an order that does not change, as a sum on the device might
            tokens[some] = np.add.reduceat(X.data[own], ends[:-1][some], dtype=np.float64)
        order = np.argsort(-lengths, kind="stable")
        size = -(-n // min(LAUNCHES, max(1, n // LAUNCH)))
        launches = [(at, min(at + size, n), int(lengths[order[at]])) for at in range(0, n, size)]
        order, indptr, indices = (
            cp.asarray(array.astype(np.int32, copy=False))
            for array in (order, ends, X.indices[own])
        )
        data = cp.asarray(X.data[own])
        documents = order, launches, indptr, indices, data, cp.asarray(tokens)
        if not by_word:
            return Block(*documents)
        keys = indices.astype(np.int64) << 32
        keys += cp.arange(len(indices), dtype=np.int64)
        keys.sort()
        begins = cp.searchsorted(keys, cp.arange(n_features + 1, dtype=np.int64) << 32)
        position = (keys & 0xFFFFFFFF).astype(np.int32)
        document = (cp.searchsorted(indptr, position, side="right") - 1).astype(np.int32)
        chunks = (cp.asarray(part.astype(np.int32)) for part in _chunks(begins.get()))
        return Block(*documents, *chunks, document, position)

    # --------------------------------------------------------------------- kernels

    def fit_documents(
        self,
        block: Block,
        weights: Any,  # IN  (V, K_pad)
        log_scale: Any,  # IN  (V,)
        logs: Any,  # IN  (V, K_pad), or None
        b: Any,  # IN  (n,)
        alpha: Any,  # IN  (K,)
        options: tuple[float, float, float, float, bool, int],
        gamma: Any,  # IN/OUT (n, K)
        t: Any,  # OUT (n, K_pad), or None
        ratio: Any,  # OUT (n_entries,)
        log_normalizer: Any,  # OUT (n,), or None
        energy: Any,  # OUT (n,), or None
        mixed: bool,
    ) -> None:
        """The local step of each document of a block.

        The options are eps, sparsity, relaxation, tolerance, by_topic and max_iter.
        """
        K, K_pad = gamma.shape[1], weights.shape[1]
        group, warps, resident = shape_of(K_pad)
        fit = self.compiled("lda_document", K, mixed).get_function("fit_documents")
        eps, sparsity, relaxation, tolerance, by_topic, max_iter = options
        finish = t is not None or log_normalizer is not None or energy is not None
        row, fixed = 4 * K_pad, 4 * K_pad * (1 + 32 * warps // group) + 16 * warps
        most = min(self.shared, self.of_processor // resident - 1024)
        if fixed > most:
            most = self.shared
        fit.max_dynamic_shared_size_bytes = most
        for start, stop, longest in block.launches:
            room = min(longest, (most - fixed) // row)
            fit(
                (stop - start,),
                (32 * warps,),
                (
                    *(block.order[start:stop], block.indptr, block.indices, block.data),
                    *(block.tokens, weights, log_scale, _pointer(logs), b, alpha),
                    *(np.float32(eps), np.float32(sparsity), np.float32(relaxation)),
                    *(np.float64(tolerance), np.int32(by_topic), np.int32(max_iter)),
                    *(np.int32(room), np.int32(finish), gamma, _pointer(t), ratio),
                    *(_pointer(log_normalizer), _pointer(energy)),
                ),
                shared_mem=fixed + room * row,
            )

    def refresh_weights(
        self, lam: Any, log_sums: Any, mean: int, b: float, normalise: bool, want_logs: bool
    ) -> tuple[Any, Any, Any]:
        """The weights of all words, their scale and, if wanted, logarithms."""
        cp, K = self.cupy, len(log_sums)
        weights, log_scale = cp.empty_like(lam), cp.empty(len(lam), np.float32)
        logs = cp.empty_like(lam) if want_logs else None
        self._topics(K)("refresh_weights")(
            (len(lam),),
            (THREADS,),
            (
                *(lam, log_sums, np.int32(mean), np.float32(b), np.int32(normalise)),
                *(weights, log_scale, _pointer(logs)),
            ),
            shared_mem=4 * (lam.shape[1] + THREADS // 32),
        )
        return weights, log_scale, logs

    def accumulate_statistics(
        self,
        block: Block,
        ratio: Any,
        t: Any,
        b: Any,
        b0: float,
        weights: tuple[Any, Any, Any],  # from refresh_weights
        normalise: bool,
        statistics: Any,  # IN/OUT (V, K_pad)
        word_energy: Any,  # OUT (V,), or None
        K: int,
        mixed: bool,
    ) -> None:
        """Add a block's statistics."""
        cp, width = self.cupy, t.shape[1]
        partial = cp.empty((len(block.word), width), np.float64)
        kernel = self._topics(K, mixed)
        values, log_scale, logs = weights
        clamp = np.float32(-40 if normalise else -60)
        if len(block.word):
            kernel("accumulate_statistics")(
                (len(block.word), -(-width // THREADS)),
                (THREADS,),
                (
                    *(block.first, block.word, block.document, block.position, ratio, t, b),
                    *(_pointer(logs), clamp, partial),
                ),
            )
        kernel("collect_statistics")(
            (len(statistics),),
            (THREADS,),
            (
                *(block.chunks, partial, values, log_scale, np.float32(b0), statistics),
                _pointer(word_energy),
            ),
            shared_mem=8 * (THREADS // 32),
        )

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
        n_blocks, n_parts = -(-len(lam) // WORDS), -(-K // THREADS)
        partial, sums = self.cupy.empty((n_blocks, K), np.float64), self.cupy.empty(K, np.float64)
        rows, columns = eta.shape  # a stride is 0 where all words or topics have the same prior
        strides = np.int32(columns * (rows > 1)), np.int32(columns > 1)
        numbers = (np.float32(number) for number in (factor, amount, floor))
        kernel, n_words = self._topics(K), np.int32(len(lam))
        kernel("step_topics")(
            (n_blocks, n_parts),
            (THREADS,),
            (n_words, lam, eta, *strides, statistics, *numbers, partial),
        )
        kernel("add_blocks")((n_parts,), (THREADS,), (np.int32(n_blocks), partial, sums))
        return sums.get()

    # --------------------------------------------------------------------- details

    def _topics(self, K: int, mixed: bool = False) -> Any:
        return self.compiled("lda_topics", K, mixed).get_function

    def _compiled(self, name: str, K: int, mixed: bool) -> Any:
        return self.cupy.RawModule(code=source(name), options=options(K, mixed))


def shape_of(K_pad: int) -> tuple[int, int, int]:
    """The fastest shape on an H200 of those tried: threads that share a word, warps, and blocks.

    The warps of 32 threads are those of one document, and so many blocks fit into a multiprocessor.
    """
    group = 4
    while group < 32 and K_pad > 16 * group:
        group *= 2
    return group, 4, 5 if K_pad <= 128 else 4 if K_pad <= 512 else 2


def options(K: int, mixed: bool) -> tuple[str, ...]:
    """The compiler's options for a number of topics."""
    K_pad = padded(K)
    group, warps, resident = shape_of(K_pad)
    numbers = {"K": K, "K_PAD": K_pad, "GROUP": group, "WARPS": warps, "RESIDENT": resident}
    numbers["MIXED"] = int(mixed)
    return ("--std=c++17", *(f"-D{name}={number}" for name, number in numbers.items()))


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


def _pointer(array: Any) -> Any:
    """An argument that may be null."""
    return np.intp(0) if array is None else array
