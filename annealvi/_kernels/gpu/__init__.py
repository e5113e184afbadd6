"""The kernels of LDA on a GPU, CUDA sources that CuPy compiles for each number of topics.

GPU kernels have the same names as those of ``lda.pyx`` and ``lda_topics.pyx``, and use float32.
The sources describe the arguments.  Every sum has a fixed order, so two fits on the same device are
identical, bit for bit.  The arrays of the CSR matrices, and the array with the sum of each topic's
lambda, are NumPy arrays.  All other arrays are CuPy arrays.
"""

from __future__ import annotations

import re
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
        """Read the properties of a GPU, by its number; `cupy` is the module of CuPy."""
        self.cupy = cupy
        self.number = number
        properties = cupy.cuda.runtime.getDeviceProperties(number)
        self.name = properties["name"].decode()
        # bytes of shared memory for a block of threads, and for all blocks of a multiprocessor
        self.shared = int(properties["sharedMemPerBlockOptin"])
        self.of_processor = int(properties["sharedMemPerMultiprocessor"])
        self.out_of_memory = cupy.cuda.memory.OutOfMemoryError
        self.compiled = cache(self._compiled)  # each file is compiled once for each K and `mixed`

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
        cp = self.cupy
        n_samples = stop - start
        ends = X.indptr[start : stop + 1]
        entries = slice(int(ends[0]), int(ends[-1]))
        lengths = np.diff(ends)
        by_length = np.argsort(-lengths, kind="stable")  # longest first
        # the number of documents in a launch
        size = -(-n_samples // min(LAUNCHES, max(1, n_samples // LAUNCH)))
        # the documents of each launch, and the length of the longest, which comes first
        launches = [
            (begin, min(begin + size, n_samples), int(lengths[by_length[begin]]))
            for begin in range(0, n_samples, size)
        ]
        order = cp.asarray(np.asarray(by_length, np.int32))
        indptr = cp.asarray(np.asarray(ends - ends[0], np.int32))
        indices = cp.asarray(np.asarray(X.indices[entries], np.int32))
        documents = indptr, indices, cp.asarray(X.data[entries]), cp.asarray(tokens)
        if not by_word:
            return Block(launches, order, documents)
        # sorted by word and then by entry: the word is the upper half of a key
        keys = indices.astype(np.int64) << 32
        keys += cp.arange(len(indices), dtype=np.int64)
        keys.sort()
        # where the entries of each word begin
        begins = cp.searchsorted(keys, cp.arange(X.shape[1] + 1, dtype=np.int64) << 32)
        position = (keys & 0xFFFFFFFF).astype(np.int32)  # the lower half, the index of the entry
        # the document that contains each entry
        document = (cp.searchsorted(indptr, position, side="right") - 1).astype(np.int32)
        # the begin and the word of each chunk, and the first chunk of each word
        first, word, chunks = (cp.asarray(a.astype(np.int32)) for a in _chunks(begins.get()))
        return Block(launches, order, documents, (first, word, document, position), chunks)

    def fit_documents(
        self,
        *,
        block: Block,
        weights: tuple[Any, Any, Any],
        b: Any,
        alpha: Any,
        e_step: Any,
        mixed: bool,
        gamma: Any,
        t: Any = None,
        ratio: Any,
        log_normalizer: Any = None,
        energy: Any = None,
    ) -> None:
        """Do the local step of each document of a block.

        The outputs are gamma (initial values on entry), ratio and, if they are not None, t,
        log_normalizer and energy.  If `mixed`, documents have their own inverse temperatures b.
        """
        K = gamma.shape[1]
        K_pad = weights[0].shape[1]
        group, warps, resident = shape_of(K_pad)
        kernel = self.compiled("lda_document", K, mixed).get_function("fit_documents")
        row = 4 * K_pad  # the bytes of a row of float32
        # shared memory of a document: sums of the threads' groups and of the warps
        fixed = row * (1 + 32 * warps // group) + 16 * warps
        # so that `resident` blocks fit, each of which CUDA gives another 1024 bytes
        shared = min(self.shared, self.of_processor // resident - 1024)
        if fixed > shared:  # then fewer blocks fit
            shared = self.shared
        kernel.max_dynamic_shared_size_bytes = shared
        indptr, indices, data, tokens = block.documents
        values, log_scale, logs = weights
        for start, stop, longest in block.launches:
            # how many words of a document have their weights in shared memory
            capacity = min(longest, (shared - fixed) // row)
            arguments = {
                "order": block.order[start:stop],
                "indptr": indptr,
                "indices": indices,
                "data": data,
                "tokens": tokens,
                "weights": values,
                "log_scale": log_scale,
                "logs": logs,
                "b_of": b,
                "alpha": alpha,
                "eps": e_step.eps,
                "sparsity": e_step.sparsity,
                "relaxation": e_step.relaxation,
                "tolerance": e_step.tolerance,
                "by_topic": e_step.by_topic,
                "max_iter": e_step.max_iter,
                "room": capacity,
                "finish": t is not None or log_normalizer is not None or energy is not None,
                "gamma": gamma,
                "t_out": t,
                "ratio": ratio,
                "log_normalizer": log_normalizer,
                "energy": energy,
            }
            kernel(
                (stop - start,),  # blocks, one for each document
                (32 * warps,),  # threads of a block
                arranged("lda_document", "fit_documents", arguments),
                shared_mem=fixed + capacity * row,
            )

    def refresh_weights(
        self, *, lam: Any, log_sums: Any, mean: int, b: float, normalise: bool, want_logs: bool
    ) -> tuple[Any, Any, Any]:
        """Compute the weights of all words, their scales and, if wanted, their logarithms.

        `mean` is 1 or 2 for log E beta, and 0 for E log beta; see lda_topics.cu.
        """
        n_words, K_pad = lam.shape
        values = self.cupy.empty_like(lam)
        log_scale = self.cupy.empty(n_words, np.float32)
        logs = self.cupy.empty_like(lam) if want_logs else None
        self._launch(
            "refresh_weights",
            K=len(log_sums),
            grid=(n_words,),
            shared=4 * (K_pad + THREADS // 32),
            arguments={
                "lam": lam,
                "log_sums": log_sums,
                "mean": mean,
                "b": b,
                "normalise": normalise,
                "weights": values,
                "log_scale": log_scale,
                "logs": logs,
            },
        )
        return values, log_scale, logs

    def accumulate_statistics(
        self,
        *,
        block: Block,
        weights: tuple[Any, Any, Any],
        b: Any,
        b0: float,
        K: int,
        t: Any,
        ratio: Any,
        statistics: Any,
        word_energy: Any,
        exact: bool,
        mixed: bool,
    ) -> None:
        """Add the statistics of a block to `statistics`, and the energies of words if not None.

        The sums of chunks of each word's entries are computed first, and then added.
        """
        values, log_scale, logs = weights
        first, word, document, position = block.entries
        n_chunks = len(word)
        width = t.shape[1]
        partial = self.cupy.empty((n_chunks, width), np.float64)
        if n_chunks:
            self._launch(
                "accumulate_statistics",
                K=K,
                mixed=mixed,
                grid=(n_chunks, -(-width // THREADS)),
                arguments={
                    "first": first,
                    "word": word,
                    "document": document,
                    "position": position,
                    "ratio": ratio,
                    "t": t,
                    "b": b,
                    "logs": logs,
                    # the least exponent b * log, so that weights do not underflow
                    "clamp": -60.0 if exact else -40.0,
                    "partial": partial,
                },
            )
        self._launch(
            "collect_statistics",
            K=K,
            mixed=mixed,
            grid=(len(statistics),),
            shared=8 * (THREADS // 32),
            arguments={
                "chunks": block.chunks,
                "partial": partial,
                "weights": values,
                "log_scale": log_scale,
                "b0": b0,
                "statistics": statistics,
                "word_energy": word_energy,
            },
        )

    def step_topics(
        self,
        *,
        lam: Any,
        K: int,
        eta: Any,
        statistics: Any,
        factor: float,
        amount: float,
        floor: float,
    ) -> NDArray[np.float64]:
        """Update lambda in place, and return its sums over words.

        The new lambda is eta + factor * (lambda - eta) + amount * statistics, at least `floor`.
        """
        n_words = len(lam)
        n_blocks = -(-n_words // WORDS)
        grid = -(-K // THREADS)
        partial = self.cupy.empty((n_blocks, K), np.float64)
        sums = self.cupy.empty(K, np.float64)
        rows, columns = eta.shape  # a stride is 0 if all words or topics have the same prior
        self._launch(
            "step_topics",
            K=K,
            grid=(n_blocks, grid),
            arguments={
                "n_words": n_words,
                "lam": lam,
                "eta": eta,
                # the strides of eta
                "of_words": columns if rows > 1 else 0,
                "of_topics": int(columns > 1),
                "statistics": statistics,
                "factor": factor,
                "amount": amount,
                "floor": floor,
                "partial": partial,
            },
        )
        self._launch(
            "add_blocks",
            K=K,
            grid=(grid,),
            arguments={"n_blocks": n_blocks, "partial": partial, "sums": sums},
        )
        return sums.get()

    def _launch(
        self,
        name: str,
        *,
        K: int,
        grid: tuple[int, ...],
        arguments: dict[str, Any],
        mixed: bool = False,
        shared: int = 0,
    ) -> None:
        """Launch a kernel of lda_topics.cu, with `shared` bytes of shared memory for a block."""
        kernel = self.compiled("lda_topics", K, mixed).get_function(name)
        kernel(grid, (THREADS,), arranged("lda_topics", name, arguments), shared_mem=shared)

    def _compiled(self, name: str, K: int, mixed: bool) -> Any:
        """Compile a file of kernels for K topics."""
        return self.cupy.RawModule(code=source(name), options=options(K, mixed))


def shape_of(K_pad: int) -> tuple[int, int, int]:
    """Return the numbers of threads per word, warps per document and blocks per multiprocessor.

    Of the numbers that we tried on an H200, these were the fastest.
    """
    group = next(size for size in (4, 8, 16, 32) if size == 32 or K_pad <= 16 * size)
    return group, 4, 5 if K_pad <= 128 else 4 if K_pad <= 512 else 2


def options(K: int, mixed: bool) -> tuple[str, ...]:
    """The options of the compiler for a number of topics; rows are padded as on the host."""
    K_pad = -(-K // 16) * 16  # 16 numbers of float32 fill a cache line
    names = "K", "K_PAD", "GROUP", "WARPS", "RESIDENT", "MIXED"
    numbers = zip(names, (K, K_pad, *shape_of(K_pad), int(mixed)), strict=True)
    return ("--std=c++17", *(f"-D{name}={number}" for name, number in numbers))


@cache
def source(name: str) -> str:
    """The source of a file of kernels, together with the file that it includes."""
    folder = Path(__file__).parent
    return "".join((folder / file).read_text() for file in ("special.cuh", f"{name}.cu"))


def _chunks(begins: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """The begins of chunks and the end, the words of chunks, and the first chunk of each word.

    `begins` contains where the entries of each word begin, and the end of the last word's entries.
    """
    n_chunks = -(-np.diff(begins) // CHUNK)
    chunks = np.concatenate([[0], np.cumsum(n_chunks)])
    word = np.repeat(np.arange(len(n_chunks), dtype=np.int64), n_chunks)
    # the begin of the word, plus the number of the chunk within the word times its size
    first = begins[word] + CHUNK * (np.arange(len(word), dtype=np.int64) - chunks[word])
    return np.append(first, begins[-1]), word, chunks


@cache
def parameters_of(name: str, kernel: str) -> list[str]:
    """The names of a kernel's parameters, in their order in its source."""
    text = re.sub(r"/\*.*?\*/", "", source(name), flags=re.S)  # without comments
    parameters = re.search(rf"__global__[^{{]*?\b{kernel}\(([^)]*)\)", text)
    assert parameters is not None
    return re.findall(r"(\w+)\s*(?:,|$)", parameters[1])


def arranged(name: str, kernel: str, arguments: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments of a kernel, by name, in the form that CUDA takes."""
    return tuple(_argument(arguments[parameter]) for parameter in parameters_of(name, kernel))


def _argument(value: Any) -> Any:
    """Convert an argument for CUDA: to an array, a null pointer, or a number of 32 bits."""
    if isinstance(value, float):
        return np.float32(value)
    if value is None:
        return np.intp(0)
    return np.int32(value) if isinstance(value, int) else value
