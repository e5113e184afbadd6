"""Methods of a fitted PoissonDEF; poisson_def.py has its parameters and its fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from annealvi.deep.estimators.base import DeepEstimator, numbers, positive
from annealvi.deep.models.poisson import Counts, PoissonNetwork, estimate
from annealvi.deep.noise import Noise, check_room
from annealvi.deep.rows import SparseRows
from annealvi.matrices import check_csr
from annealvi.metrics.held_out import split_tokens
from annealvi.metrics.top_words import top_words
from annealvi.schedules import Linear

#: Number of documents whose local rates are fitted at a time.
BLOCK = 256
#: The first steps on rates of new documents are this many times as large as the last.
FASTER = 10.0

#: Sums of counts above this are not told apart in float32, and their products overflow.
MOST_WORDS = 1e15


class FittedPoissonDEF(ClassNamePrefixFeaturesOutMixin, TransformerMixin, DeepEstimator):
    """The methods of :class:`annealvi.deep.PoissonDEF` that need a fit."""

    n_draws: int
    n_local_steps: int

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return E_q[z] of documents, with their rates fitted while the topics are held fixed.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_components), float32
            :math:`\\lambda` of each document, fitted to this document alone in `n_local_steps`
            steps from :math:`\\lambda_0`.
        """
        noise = self._draws()
        return self._local_rates(self._check_X(X, "transform"), noise)[0]

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean ELBO per document at T = 1, with rates fitted as in `transform`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : Ignored

        Returns
        -------
        float
            In nats.
        """
        return float(np.mean(self.score_samples(X)))

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Return the ELBO of each document at T = 1, with rates fitted as in `transform`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
            In nats.  The likelihood is estimated from `n_draws` draws.
        """
        noise = self._draws()
        return self._local_rates(self._check_X(X, "score_samples"), noise)[1]

    def perplexity(self, X: Any, *, observed: float = 0.1) -> float:
        r"""Return the perplexity of most words of documents, given a few of them.

        The rates of a document are fitted to a random tenth of its words, rounded up, in
        `n_local_steps` steps.  (If a share e of a document was seen, its counts have e times the
        rate, because a thinned Poisson variable is Poisson.)  With
        :math:`r_{dv} = \epsilon_v + \sum_k \lambda_{dk} \mathrm{softplus}(W_{kv})` and the
        other words :math:`y_{dv}` it is

        .. math::
           \exp\Big(-\frac{\sum_{dv} y_{dv} \log (r_{dv} / \sum_u r_{du})}
           {\sum_{dv} y_{dv}}\Big)

        (Altosaar et al. 2018, Eq. 12).  Lower is better.  At worst it is about the number of
        words, where all words are equally probable.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Documents that were not used in `fit`.
        observed : float, default=0.1
            The share of each document's words that its rates are fitted to, in (0, 1).

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If no document has a word that is not observed.
        """
        check_is_fitted(self)
        X = self._check_X(X, "perplexity")
        noise = self._draws()
        split = np.random.RandomState(int(noise.integers(2**31 - 1, 1)))
        seen, hidden = split_tokens(X, observed=observed, random_state=split)
        if not hidden.nnz:
            raise ValueError(
                "Perplexity needs documents with words that are not observed. Got "
                f"{X.shape[0]} documents of at most {int(X.sum(axis=1).max())} words with "
                f"observed={observed!r}."
            )
        length = np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()
        share = np.asarray(seen.sum(axis=1, dtype=np.float64)).ravel() / np.maximum(length, 1)
        rates = self._local_rates(seen, noise, np.where(length > 0, share, 1.0))[0]
        topics = self.components_.astype(np.float64)
        document, word = hidden.nonzero()
        rate = self.background_[word].astype(np.float64)
        for k, topic in enumerate(topics):  # at the words of each document only
            rate += rates[document, k] * topic[word]
        mass = float(self.background_.sum(dtype=np.float64)) + rates @ topics.sum(axis=1)
        log_p = np.log(rate) - np.log(mass[document])
        return float(np.exp(-(hidden.data @ log_p) / hidden.data.sum()))

    def sample(self, n_samples: int = 1) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Draw documents from the fitted model.

        Parameters
        ----------
        n_samples : int, default=1

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Word counts.
        Z : ndarray of shape (n_samples, n_components)
            How much of each topic is in each document.
        """
        noise, n_samples = self._draws(), positive(n_samples, "n_samples")
        network: PoissonNetwork = self.network_
        with torch.no_grad():
            shape = (n_samples, len(self.components_))
            check_room(shape)
            z = noise.poisson(network.background.new_full(shape, network.prior_rate))
            x = noise.poisson(z @ network.topics().T + network.background)
        return numbers(x), numbers(z)

    def top_words(self, n: int = 10, feature_names: ArrayLike | None = None) -> list[list[Any]]:
        """Return the n words to which each topic adds most, the largest first.

        Parameters
        ----------
        n : int, default=10
        feature_names : array-like of shape (n_features,), default=None
            The words; by default the column names seen in `fit`, or else the column numbers.

        Returns
        -------
        list of lists
            One list of words per topic.
        """
        check_is_fitted(self)
        return top_words(self.components_, n, feature_names, self)

    @property
    def components_(self) -> NDArray[np.float32]:
        """The rates of words that each unit of a topic adds."""
        return numbers(self.network_.topics().T)

    @property
    def background_(self) -> NDArray[np.float32]:
        """Rates of words without topics."""
        return numbers(self.network_.background)

    @property
    def document_rates_(self) -> NDArray[np.float32]:
        """E_q[z] of the training documents."""
        return numbers(self.network_.log_rates.exp())

    # ----------------------------------------------------------------- details

    def _local_rates(
        self, X: Any, noise: Noise, exposure: NDArray | None = None
    ) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Return the rates of documents under fixed topics, and their ELBO.

        Parameters
        ----------
        X : CSR matrix of shape (n_samples, n_features)
        noise : Noise
        exposure : ndarray of shape (n_samples,), optional
            The share of each document that X contains; all of it by default.
        """
        data = SparseRows(X, noise.device)
        seen = None if exposure is None else self._tensor(exposure)
        results = []
        for first in range(0, len(data), BLOCK):
            rows = torch.arange(first, min(first + BLOCK, len(data)), device=noise.device)
            share = None if seen is None else seen[rows]
            results.append(self._fit_rates(Counts(*data.padded(rows), share), noise))
        rates, elbo = (np.concatenate(parts) for parts in zip(*results, strict=True))
        return rates, elbo.astype(np.float64)

    def _fit_rates(self, counts: Counts, noise: Noise) -> tuple[NDArray, NDArray]:
        network: PoissonNetwork = self.network_
        n_draws, n_steps = int(self.n_draws), int(self.n_local_steps)
        with torch.no_grad():
            topics = network.topics()
        start = topics.new_full((len(counts.values), topics.shape[1]), network.prior_rate)
        log_rates = start.log().requires_grad_()
        optimiser = torch.optim.RMSprop([log_rates], lr=self.learning_rate)
        falling = Linear(FASTER * self.learning_rate, self.learning_rate)
        for step in range(n_steps):
            optimiser.param_groups[0]["lr"] = falling(step / n_steps)
            found = estimate(network, log_rates, counts, n_draws, noise, topics=topics)
            log_rates.grad = None
            (-found.surrogate.sum()).backward()
            optimiser.step()
        with torch.no_grad():
            elbo = estimate(network, log_rates, counts, n_draws, noise, topics=topics).elbo
        return numbers(log_rates.exp()), numbers(elbo)

    def _check_X(self, X: Any, method: str, reset: bool = False) -> sparse.csr_matrix:
        """Return X as a CSR matrix of counts, float32."""
        X = check_csr(X, estimator=self, reset=reset, dtype=(np.float32, np.float64))
        name, values = type(self).__name__, X.data
        if values.size and values.min() < 0:
            raise ValueError(f"Negative values in data passed to {name}.{method}")
        wrong = values[values != np.floor(values)]
        if wrong.size:
            raise ValueError(
                f"{name} needs counts: X must hold non-negative integers. Got {wrong[0]}."
            )
        total = float(values.sum(dtype=np.float64))
        if not total <= MOST_WORDS:
            raise ValueError(
                f"The counts in X must sum to at most {MOST_WORDS:.0e} in {name}. Got {total:.3g}."
            )
        return sparse.csr_matrix(X, dtype=np.float32)

    @property
    def _n_features_out(self) -> int:
        return self.network_.weights.shape[1]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.input_tags.categorical = True  # integers
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags
