r"""The mixture of multinomials for counts of words, in which each document has one cluster.

.. math::
   z_d \sim \mathrm{Cat}(w), \quad x_d \sim \mathrm{Mult}(\beta_{z_d})

(Nigam et al. 2000; Yin and Wang 2014).  q(z_d) is Cat(phi_d).  w and beta maximise the posterior
under Dirichlet priors, which add `a` to the number of documents of each component and eta to each
count of a word.  The statistics are N_k = sum_d phi_dk and S_kv = sum_d phi_dk x_dv.  The updates
at inverse temperature b are as follows.  With ``form="posterior"`` b also multiplies a and eta:

.. math::
   \phi_{dk} &\propto \exp b \{ \log w_k + \sum_v x_{dv} \log \beta_{kv} \} \\
   w_k &\propto a + b N_k, \quad \beta_{kv} \propto \eta + b S_{kv}

Variational Bayes would use expected logarithms instead of the logarithms of w and beta.  Under
variational Bayes, each word of a document that is missing from its component lowers the objective
by about 1/eta nats.  Components that start from a few documents would then hardly change
(docs/record/classes.md).

**Merged runs.**  A single fit soon ends at a poor optimum.  By default several short fits are made
first, and the components of these fits are merged until K are left, as
:mod:`annealvi.models.lda.merging` merges topics.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.utils import gen_batches

from annealvi._kernels import mmm as kernels
from annealvi._kernels import special
from annealvi._kernels.layout import separate_rows
from annealvi.checks import TINY
from annealvi.files.schema import Array, Number, Schema, damaged
from annealvi.matrices import summed
from annealvi.model import UNTEMPERED, Batch, Tempering
from annealvi.models.lda.merging import LEAST_COUNT, LEAST_SHARE, NEIGHBOURS, groups_of
from annealvi.models.lda.starts import topics_of_spread_documents
from annealvi.models.mixture import SIZES, D, K, Mixture, MixtureStep

#: Number of documents whose phi are in memory, and in the cache, at the same time.
BLOCK = 4096
#: If training data have more entries than this, their transposes are not kept between iterations.
KEPT = 1 << 24


class ComponentCounts(NamedTuple):
    """The statistics: expected counts of documents and of words in each component."""

    #: The counts N_k of documents.
    documents: NDArray[np.float64]
    #: The counts S_kv of words, of shape (V, K).
    words: NDArray[np.float64]

    def __rmul__(self, factor: float) -> ComponentCounts:  # type: ignore[override]
        """Multiply all counts by a factor."""
        return ComponentCounts(factor * self.documents, factor * self.words)


@dataclass(eq=False)
class MMM(Mixture):
    """The updates of q(z), w and beta, as a :class:`annealvi.model.Model`."""

    STATE = Schema(
        **SIZES,
        weight_prior=Number(TINY),
        word_prior=Number(TINY),
        alpha=Array((K,), positive=True),
        lam=Array((D, K), positive=True),
        documents=Array((K,)),
        entropy=Number(),
    )

    perturbs = False  # components start far apart, and do not become equal at usual T
    n_components: int
    n_features: int
    _: KW_ONLY
    weight_prior: float = 1.0
    word_prior: float = 0.1
    n_threads: int = 1
    n_samples: int = 0
    entropy: float = field(default=np.nan, init=False)
    #: The counts N_k of the last step.
    documents: Any = field(default=None, init=False)
    #: During a fit: transposed parts of the training data, by their first document; an array for
    #: phi of one part; and the lengths of documents, with how often each occurs.
    by_word: Any = field(default=None, init=False)
    scratch: Any = field(default=None, init=False)
    lengths: Any = field(default=None, init=False)

    def start(self, X: csr_matrix, *, words: NDArray, documents: NDArray | None = None) -> None:
        """Begin training on X; `words` (K, V) and `documents` (K,) are initial counts.

        The method may be called again with the same X.
        """
        if self.by_word is None:  # at the first call; the next runs use the same arrays
            self.n_samples = X.shape[0]
            self.by_word = {}
            self.scratch = np.empty((min(BLOCK, self.n_samples), self.n_components))
            self.lengths = np.unique(summed(X, axis=1), return_counts=True)
        if documents is None:
            documents = np.full(self.n_components, self.n_samples / self.n_components)
        self.assign(self.weight_prior + documents, self.word_prior + words.T)

    def _transposed(self, X: csr_matrix, rows: slice) -> csr_matrix:
        """The transpose of some documents of X, which is kept for the next steps if X is small."""
        transposed = self.by_word.get(rows.start)
        if transposed is None:
            transposed = X[rows].T.tocsr()
            if X.nnz <= KEPT:
                self.by_word[rows.start] = transposed
        return transposed

    def release_buffers(self) -> None:
        """Release the arrays that only training needs."""
        self.by_word = None
        self.scratch = None
        self.lengths = None
        self.last = None

    def assign(self, alpha: NDArray, lam: NDArray, sums: NDArray | None = None) -> None:
        """Set w and beta, in proportion to `alpha` of shape (K,) and `lam` of shape (V, K).

        `sums` are the sums of lambda over all words, if `lam` does not contain all words.
        """
        self.alpha = alpha
        self.lam = np.ascontiguousarray(lam)
        self.log_weights = special.log(alpha / alpha.sum())
        sums = self.lam.sum(axis=0) if sums is None else sums
        self.log_words = special.log(self.lam / sums)

    def _restore(self, fields: dict[str, Any], place: str) -> None:
        """Set the fields of a file as attributes, and compute log w and log beta from them."""
        vars(self).update(fields)
        with np.errstate(all="ignore"):
            self.assign(self.alpha, self.lam)
        if not (np.isfinite(self.log_weights).all() and np.isfinite(self.log_words).all()):
            raise damaged(f"{place}.lam", "an array of numbers whose sums are finite", self.lam)

    # ------------------------------------------------------------- Algorithm 1

    def local_step(self, batch: Batch, tempering: Tempering, moments: bool = False) -> MixtureStep:
        """Compute the responsibilities of all training data, and from them the statistics.

        `moments` is ignored.
        """
        b = float(tempering.inverse)
        counts = ComponentCounts(np.zeros_like(self.alpha), np.zeros_like(self.lam))
        entropies_of_blocks = []
        for rows in gen_batches(self.n_samples, BLOCK):
            transposed = self._transposed(batch.data, rows)
            phi = self.log_joint(batch.data, rows, self.scratch[: transposed.shape[1]])
            energy, log_sum = self.normalise(phi, b)  # log p(x, k) becomes phi, in place
            # counts.words += transposed @ phi
            kernels.add_product(
                data=transposed.data,
                indices=transposed.indices,
                indptr=transposed.indptr,
                rows=phi,
                n_threads=self.n_threads,
                out=counts.words,
            )
            counts.documents[:] += phi.sum(axis=0)
            entropies_of_blocks.append(log_sum - b * energy)
        self.last = counts
        self.documents = counts.documents
        entropies = np.concatenate(entropies_of_blocks)
        self.entropy = float(entropies.sum())
        return MixtureStep(self, statistics=counts if b == 1 else b * counts, entropy=entropies)

    def global_step(
        self, statistics: ComponentCounts, rho: float, scale: float, tempering: Tempering
    ) -> None:
        """Move w and beta to their optimum; `rho` and `scale` are 1 if a step uses all data."""
        b = tempering.of_priors  # 1 unless T also tempers the priors; statistics contain b
        alpha = b * self.weight_prior + scale * statistics.documents
        lam = b * self.word_prior + scale * statistics.words
        if rho != 1:
            alpha = (1 - rho) * self.alpha + rho * alpha
            lam = (1 - rho) * self.lam + rho * lam
        self.assign(alpha, lam)

    # -------------------------------------------------------------- objectives

    def energy(self) -> float:
        """The energy L of the counts of the last local step, at the current w and beta."""
        log_weights_of_documents = np.sum(self.last.documents * self.log_weights)
        return float(log_weights_of_documents + np.sum(self.last.words * self.log_words))

    def log_base_measure(self) -> float:
        """The logarithm of the base measure, which is 1 for sequences of words."""
        return 0.0

    def global_bound(self, tempering: Tempering = UNTEMPERED) -> float:
        """log p(w) + log p(beta), without the normalising constants of the priors."""
        log_prior = (
            self.weight_prior * self.log_weights.sum() + self.word_prior * self.log_words.sum()
        )
        return float(tempering.of_priors * log_prior)

    def log_partition(self, inverse: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute log C(T) at the present w and beta, a sum over all sequences of words."""
        lengths, length_counts = self.lengths
        log_partitions = []
        for b in inverse:
            log_sums = special.log(special.exp(b * self.log_words).sum(axis=0))
            log_c_of_length = special.log_sum_exp(
                b * self.log_weights + np.outer(lengths, log_sums), axis=1
            )
            log_partitions.append(np.sum(length_counts * log_c_of_length))
        return np.array(log_partitions)

    # ---------------------------------------------------------------- new data

    def log_joint(
        self, X: csr_matrix, rows: slice = slice(None), out: NDArray | None = None
    ) -> NDArray[np.float64]:
        """Compute log w_k + sum_v x_dv log beta_kv for some rows d, of shape (n, K)."""
        start, stop, _ = rows.indices(X.shape[0])
        out = np.empty((stop - start, self.n_components)) if out is None else out
        out[:] = self.log_weights
        # out += X[rows] @ log_words
        kernels.add_product(
            data=X.data,
            indices=X.indices,
            indptr=X.indptr[start : stop + 1],
            rows=self.log_words,
            n_threads=self.n_threads,
            out=out,
        )
        return out

    def normalise(self, joint: NDArray[np.float64], b: float) -> tuple[NDArray, NDArray]:
        """Compute phi from log p(x_d, k) in place; return the energies and the log sums."""
        energy, log_sum = np.empty((2, len(joint)))
        scratch = separate_rows(self.n_threads, self.n_components)
        # the kernel changes `joint`, and writes `energy` and `log_sum`
        kernels.normalise(b, self.n_threads, scratch, joint, energy, log_sum)
        return energy, log_sum

    def predict(self, X: csr_matrix) -> NDArray[np.int64]:
        """Find the most probable component of each document, one part after another."""
        parts = gen_batches(X.shape[0], BLOCK)
        return np.concatenate([self.log_joint(X, rows).argmax(axis=1) for rows in parts])


def words_of_documents(X: Any, n_components: int, rng: RandomState) -> NDArray[np.float64]:
    """For each component, the words of a few similar documents, which differ between components."""
    words = np.empty((n_components, X.shape[1]))
    topics_of_spread_documents(X, rng, words)  # writes into `words`
    return np.maximum(words - 1.0, 0.0)  # it adds 1 to each count, as a prior for LDA


def merged(
    counts_of_fits: list[ComponentCounts], n_components: int
) -> dict[str, NDArray[np.float64]]:
    """Merge the components of several fits; return the means as keyword arguments of `start`."""
    components = [
        component
        for counts in counts_of_fits
        for component in zip(counts.documents, counts.words.T, strict=True)
    ]
    mean_sum = np.mean([component_words.sum() for _, component_words in components])
    least_words = min(LEAST_COUNT, LEAST_SHARE * mean_sum)
    # components without words are left out, because they would be compared with all others
    used = [component for component in components if component[1].max() > least_words]
    rows = [component_words for _, component_words in used]
    groups = groups_of(rows, n_components, NEIGHBOURS, least_words) if used else []
    words = np.zeros((n_components, len(counts_of_fits[0].words)))
    documents = np.zeros(n_components)
    for n, group in enumerate(groups):
        for k in group:  # the mean over fits of the components that were merged
            component_documents, component_words = used[k]
            words[n] += component_words / len(counts_of_fits)
            documents[n] += component_documents / len(counts_of_fits)
    return {"words": words, "documents": documents}
