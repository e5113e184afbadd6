r"""The mixture of multinomials for counts of words, in which a document has one class, tempered.

.. math::
   z_d \sim \mathrm{Cat}(w), \quad x_d \sim \mathrm{Mult}(\beta_{z_d})

(Nigam, McCallum, Thrun, Mitchell 2000; Yin and Wang 2014).  q(z) is free, and w and beta are at
the maximum of the posterior under Dirichlet priors of a and eta counts beside each weight and
word.  The statistics are N_k = sum_d phi_dk and S_kv = sum_d phi_dk x_dv.  At inverse temperature
b, which in the posterior form multiplies a and eta too:

.. math::
   \phi_{dk} &\propto \exp b \{ \log w_k + \sum_v x_{dv} \log \beta_{kv} \} \\
   w_k &\propto a + b N_k, \quad \beta_{kv} \propto \eta + b S_{kv}

With expected logarithms in place of the logarithms of these means (variational Bayes) a word that
a component has never had would cost 1/eta nats.  Fits from a few documents for each component
then stay where they began (docs/record/classes.md has the measurement).

**Merged runs.**  The fit is short, and its optima are poor.  So by default it begins from several
short fits, whose components are put together and merged to K, as :mod:`annealvi.models.lda.merging`
merges topics.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy import sparse

from annealvi._kernels import mmm as kernels
from annealvi._kernels import special
from annealvi._kernels.layout import separate_rows
from annealvi.files.schema import Array, Number, Schema
from annealvi.model import UNTEMPERED, Batch, Tempering
from annealvi.models.lda.merging import NEIGHBOURS, groups_of
from annealvi.models.lda.starts import topics_of_spread_documents
from annealvi.models.lda.topics import LEAST_COUNT, LEAST_SHARE
from annealvi.models.mixture import SIZES, D, K, Mixture, MixtureStep

TINY = float(np.finfo(np.float64).tiny)
#: Documents whose phi is in memory at a time, and in the cache.
BLOCK = 4096
#: Of training data with more entries, transposed parts are made anew in each iteration.
KEPT = 1 << 24


class Counts(NamedTuple):
    """Documents and words of the components, to which their estimates are linear."""

    #: N_k.
    documents: NDArray[np.float64]
    #: S_kv as (V, K).
    words: NDArray[np.float64]

    def __rmul__(self, factor: float) -> Counts:  # type: ignore[override]
        return Counts(factor * self.documents, factor * self.words)


@dataclass(eq=False)
class MMM(Mixture):
    """q(z), w and beta, and the steps that update them; see :class:`annealvi.model.Model`."""

    STATE = Schema(
        **SIZES,
        weight_prior=Number(TINY),
        word_prior=Number(TINY),
        alpha=Array((K,), positive=True),
        lam=Array((D, K), positive=True),
        documents=Array((K,)),
        entropy=Number(),
    )

    perturbs = False  # its runs begin far apart, and stay so at any T that helps
    n_components: int
    n_features: int
    _: KW_ONLY
    weight_prior: float = 1.0
    word_prior: float = 0.1
    n_threads: int = 1
    n_samples: int = 0
    entropy: float = field(default=np.nan, init=False)
    #: N_k of the last step.
    documents: Any = field(default=None, init=False)
    #: Parts of the training data transposed, by their first document, room for phi of one, and the
    #: lengths of documents and how often each occurs, while there is a fit.
    by_word: Any = field(default=None, init=False)
    room: Any = field(default=None, init=False)
    lengths: Any = field(default=None, init=False)

    def start(
        self, X: sparse.csr_matrix, *, words: NDArray, documents: NDArray | None = None
    ) -> None:
        """Begin training on X from the words of each component, (K, V), and perhaps documents.

        It may be called again with the same X.
        """
        if self.by_word is None:
            self.n_samples = X.shape[0]
            self.by_word = {}
            self.room = np.empty((min(BLOCK, self.n_samples), self.n_components))
            self.lengths = np.unique(np.asarray(X.sum(axis=1)).ravel(), return_counts=True)
        if documents is None:
            documents = np.full(self.n_components, self.n_samples / self.n_components)
        self.assign(self.weight_prior + documents, self.word_prior + words.T)

    def _transposed(self, X: sparse.csr_matrix, start: int) -> sparse.csr_matrix:
        """A part of the training data transposed, which is kept unless there are too many."""
        part = self.by_word.get(start)
        if part is None:
            part = X[start : start + BLOCK].T.tocsr()
            if X.nnz <= KEPT:
                self.by_word[start] = part
        return part

    def release_buffers(self) -> None:
        self.by_word = self.room = self.lengths = self.last = None

    def assign(self, alpha: NDArray, lam: NDArray, sums: NDArray | None = None) -> None:
        """Take over w and beta, which are proportional to (K,) and (V, K) numbers.

        `sums` are those of lambda over all words, if `lam` has not all.
        """
        self.alpha, self.lam = alpha, np.ascontiguousarray(lam)
        self.log_weights = special.log(alpha / alpha.sum())
        sums = self.lam.sum(axis=0) if sums is None else sums
        self.log_words = special.log(self.lam / sums)

    def _restore(self, found: dict[str, Any], way: str) -> None:
        vars(self).update(found)
        self.assign(self.alpha, self.lam)

    # ------------------------------------------------------------- Algorithm 1

    def local_step(self, batch: Batch, tempering: Tempering, moments: bool = False) -> MixtureStep:
        """Compute the responsibilities of all training data and the statistics that follow."""
        b, K = float(tempering.inverse), self.n_components
        counts, entropy = Counts(np.zeros(K), np.zeros((self.n_features, K))), []
        for start in range(0, self.n_samples, BLOCK):
            part = self._transposed(batch.data, start)
            n = part.shape[1]
            phi = self.log_joint(batch.data, slice(start, start + n), self.room[:n])
            energy, log_sum = self.normalise(phi, b)
            given = part.data, part.indices, part.indptr
            kernels.add_product(*given, phi, self.n_threads, counts.words)
            counts.documents[:] += phi.sum(axis=0)
            entropy.append(log_sum - b * energy)
        self.last, self.documents = counts, counts.documents
        entropies = np.concatenate(entropy)
        self.entropy = float(entropies.sum())
        return MixtureStep(self, counts if b == 1 else b * counts, counts, entropies)

    def global_step(
        self, statistics: Counts, rho: float, scale: float, tempering: Tempering
    ) -> None:
        """Move w and beta to their optimum; `rho` and `scale` are 1, as in batch mode."""
        b = tempering.of_priors
        alpha = b * self.weight_prior + scale * statistics.documents
        lam = b * self.word_prior + scale * statistics.words
        if rho != 1:
            alpha, lam = (1 - rho) * self.alpha + rho * alpha, (1 - rho) * self.lam + rho * lam
        self.assign(alpha, lam)

    # -------------------------------------------------------------- objectives

    def expected_energy(self, statistics: Counts) -> float:
        energy = np.sum(statistics.documents * self.log_weights)
        return float(energy + np.sum(statistics.words * self.log_words))

    def log_base_measure(self) -> float:
        return 0.0

    def global_bound(self, tempering: Tempering = UNTEMPERED) -> float:
        """log p(w) + log p(beta), without the constants of the priors."""
        prior = self.weight_prior * self.log_weights.sum() + self.word_prior * self.log_words.sum()
        return float(tempering.of_priors * prior)

    def log_partition(self, inverse: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute log C(T) at the present w and beta: all sequences of words, of each length."""
        lengths, repeats = self.lengths
        total = []
        for b in np.asarray(inverse, dtype=np.float64):
            log_sums = special.log(special.exp(b * self.log_words).sum(axis=0))
            each = special.log_sum_exp(b * self.log_weights + np.outer(lengths, log_sums), axis=1)
            total.append(np.sum(repeats * each))
        return np.array(total)

    # ---------------------------------------------------------------- new data

    def log_joint(
        self, X: sparse.csr_matrix, rows: slice = slice(None), out: NDArray | None = None
    ) -> NDArray[np.float64]:
        """log w_k + sum_v x_dv log beta_kv of some rows, of shape (n, K)."""
        start, stop, _ = rows.indices(X.shape[0])
        out = np.empty((stop - start, self.n_components)) if out is None else out
        out[:] = self.log_weights
        ends = X.indptr[start : stop + 1]
        kernels.add_product(X.data, X.indices, ends, self.log_words, self.n_threads, out)
        return out

    def normalise(self, joint: NDArray[np.float64], b: float) -> tuple[NDArray, NDArray]:
        """Make phi of log p(x_d, k) in place; return its energies and sums, see the kernel."""
        energy, log_sum = np.empty((2, len(joint)))
        scratch = separate_rows(self.n_threads, self.n_components)
        kernels.normalise(b, self.n_threads, scratch, joint, energy, log_sum)
        return energy, log_sum

    def predict(self, X: sparse.csr_matrix) -> NDArray[np.int64]:
        """The most probable component of each document; some documents at a time."""
        parts = range(0, X.shape[0], BLOCK)
        found = [self.log_joint(X, slice(i, i + BLOCK)).argmax(axis=1) for i in parts]
        return np.concatenate(found)


def words_of_documents(X: Any, n_components: int, rng: RandomState) -> NDArray[np.float64]:
    """Words of components from a few similar documents each, far from those of the others."""
    words = np.empty((n_components, X.shape[1]))
    topics_of_spread_documents(X, rng, words)
    return np.maximum(words - 1.0, 0.0)


def merged(several: list[Counts], n_components: int) -> dict[str, NDArray[np.float64]]:
    """The means over fits of their components, merged; as keyword arguments of `start`."""
    rows = [row for counts in several for row in counts.words.T]
    sizes = np.concatenate([counts.documents for counts in several])
    least = min(LEAST_COUNT, LEAST_SHARE * float(np.mean([row.sum() for row in rows])))
    # components without words would be compared with all others
    used = [k for k, row in enumerate(rows) if row.max() > least]
    groups = groups_of([rows[k] for k in used], n_components, NEIGHBOURS, least) if used else []
    words, documents = np.zeros((n_components, len(rows[0]))), np.zeros(n_components)
    for n, group in enumerate(groups):
        for k in group:
            words[n] += rows[used[k]] / len(several)
            documents[n] += sizes[used[k]] / len(several)
    return {"words": words, "documents": documents}
