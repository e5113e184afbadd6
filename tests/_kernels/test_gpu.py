"""The kernels for a GPU against the package's, emulated on the processor.

    python -m bench.gpu.check

Both make 20 iterations of each document from the same topics.  A row for each case has the largest
difference of a share, of the statistics (relative, in L1), and of the normaliser and the energy of
a document (relative).  The exit status is 1 if one is above 1e-5.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from scipy import sparse

from annealvi.models.lda.model import LDA
from annealvi.models.lda.topics import log_of
from annealvi.models.lda.workspace import Call, Local, LocalOptions
from bench import parser
from bench.gpu import cupy_stand_in, kernels
from bench.markdown import table

#: Differences from K topics, all words of documents in float32 at T = 1.
CASES: list[dict[str, Any]] = [
    {"K": 3},
    {"K": 20},
    {"K": 33, "long": (1, 150)},
    {"K": 100, "D": 20, "long": (1,)},
    {"K": 256, "D": 10},
    {"K": 500, "D": 10},
    {"K": 20, "b": 0.5},
    {"K": 20, "b": 0.3, "estimate": "variational"},
    {"K": 20, "estimate": "variational"},
    {"K": 20, "sparsity": 0.5, "omega": 1.5},
    {"K": 20, "exact": True, "estimate": "variational"},
]
ITERATIONS = 20


def documents(n: int, n_features: int, long: tuple[int, ...]) -> sparse.csr_matrix:
    """Random documents, one of which is empty, and some of given numbers of words."""
    rng = np.random.RandomState(0)
    X = sparse.random(n, n_features, 0.15, "csr", np.float32, rng).toarray()
    X = np.ceil(4 * X)
    X[0] = 0
    for length in long:
        row = np.zeros(n_features)
        row[rng.permutation(n_features)[:length]] = 1 + rng.randint(3, size=length)
        X = np.vstack([X, row])
    return sparse.csr_matrix(X.astype(np.float32))


def differences(
    K: int,
    D: int = 60,
    V: int = 200,
    b: float = 1.0,
    estimate: Any = "map",
    exact: bool = False,
    sparsity: float = 0.0,
    omega: float = 1.0,
    long: tuple[int, ...] = (),
) -> list[float]:
    """The differences of one case."""
    X = documents(D, V, long)
    n = X.shape[0]
    options = LocalOptions(
        max_iter=ITERATIONS, tolerance=0.0, prune=False, start="random" if exact else "constant"
    )
    model = LDA(K, V, alpha=0.1, eta=0.05, dtype=np.float32, options=options)
    model.topics.estimate = estimate
    model.initialize(np.random.RandomState(1), X)
    lam = model.topics.lam.copy()
    weights, work, statistics = model.buffers.ready(*model.topics.shape, 1)
    call = Call(X, weights, work, b, model.documents.alpha, exact, sparsity, (omega, 1.0))
    gamma = model.documents.start(slice(0, n), model.rng).copy()
    begin, inverse = gamma.copy(), np.full(n, b, np.float32)
    normalizer, energy, word_energy = np.zeros(n), np.zeros(n), np.zeros(V)
    local = Local(statistics, normalizer, energy, word_energy, False)
    model.documents.fit_block(call, slice(0, n), gamma, inverse, local)
    expected = statistics.dense(K)

    device = kernels.Device(cupy=cupy_stand_in)
    array = device.cupy.asarray
    block = device.block(X, 0, n)
    log_sums = log_of(estimate)(model.topics.sums).astype(np.float32)
    mean = 2 if np.ptp(log_sums) > 30 else 1
    kind = mean if estimate == "map" else 0
    of_topics = device.refresh_weights(array(lam), array(log_sums), kind, b, not exact, True)
    found, ratio = array(begin), array(np.empty(X.nnz, np.float32))
    t = array(np.empty((n, kernels.padded(K)), np.float32))
    own_normalizer, own_energy = array(np.empty(n)), array(np.empty(n))
    eps = np.finfo(np.float32).eps if exact else 0.0
    device.fit_documents(
        block,
        *of_topics,
        array(inverse),
        array(model.documents.alpha.astype(np.float32)),
        (eps, sparsity, omega, 0.0, True, ITERATIONS),
        *(found, t, ratio, own_normalizer, own_energy, False),
    )
    sums = array(np.zeros_like(lam))
    own_words = array(np.empty(V))
    device.accumulate_statistics(
        block, ratio, t, array(inverse), b, of_topics, not exact, sums, own_words, K, False
    )
    shares, own_shares = (g / g.sum(axis=1, keepdims=True) for g in (gamma, found))
    return [
        np.abs(shares - own_shares).max(),
        np.abs(expected - sums[:, :K]).sum() / expected.sum(),
        (np.abs(own_normalizer - normalizer) / (1 + np.abs(normalizer))).max(),
        (np.abs(own_energy - energy) / (1 + np.abs(energy))).max(),
    ]


def main() -> int:
    parser(__doc__).parse_args()
    rows, worst = [], 0.0
    for case in CASES:
        found = differences(**case)
        worst = max(worst, *found)
        rows.append([" ".join(f"{k}={v}" for k, v in case.items()), *(f"{x:.1e}" for x in found)])
    print(table(["case", "shares", "statistics", "normaliser", "energy"], rows))
    return int(worst > 1e-5)


if __name__ == "__main__":
    sys.exit(main())
