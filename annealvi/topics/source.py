"""Reads fitted topic models of any kind in one way: topics, and their shares in documents."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted, check_non_negative

from annealvi.checks import as_array, check_counts
from annealvi.matrices import check_csr, check_matrix
from annealvi.topics.texts import are_texts, check_texts

#: Largest distance from 1 of the sum of a document's shares.
_TOLERANCE = 1e-3
#: Number of entries whose likelihood is computed at a time.
_BLOCK = 1 << 16
#: Least probability of a word in a document; a factorisation may give it none.
_LEAST = 1e-12


class Documents(NamedTuple):
    """Documents as a model takes them."""

    #: What the model's methods get: a DataFrame keeps its column names.
    given: Any
    #: The same, checked.
    counts: sparse.csr_matrix
    #: What was counted, if texts were given.
    texts: list[str] | None


class Source:
    """A fitted topic model of any kind; see the `model` of :func:`annealvi.topics.describe`."""

    def __init__(self, model: Any, name: str = "model") -> None:
        self.model, self._count, self._names = _parts_of(model)
        if not hasattr(self.model, "components_") and hasattr(self.model, "fit"):
            check_is_fitted(self.model)
        if not hasattr(self.model, "components_") or not hasattr(self.model, "transform"):
            raise TypeError(
                f"The {name!r} parameter of describe must be a topic model with `components_` and "
                f"`transform`. Got {model!r} instead."
            )
        weights = check_matrix(
            self.model.components_, accept_sparse=False, dtype=np.float64, name="components_"
        )
        check_non_negative(weights, "describe as components_")
        with np.errstate(over="ignore"):
            self._sums = weights.sum(axis=1)
        wrong = np.flatnonzero(~((self._sums > 0) & np.isfinite(self._sums)))
        if len(wrong):
            raise ValueError(
                "The rows of 'components_' must have positive and finite sums, because they are "
                f"normalised to probabilities. Got a sum of {self._sums[wrong[0]]} in topic "
                f"{wrong[0]}."
            )
        self.components_: NDArray[np.float64] = weights / self._sums[:, np.newaxis]
        self.seed_topics: dict[str, int] = dict(getattr(model, "seed_topics_", {}))

    def read(self, documents: Any, name: str) -> Documents:
        """Check documents, and count their words if they are texts."""
        texts = None
        if are_texts(documents, name):
            if self._count is None:
                raise TypeError(
                    f"{type(self.model).__name__} takes word counts and knows no texts. Give "
                    f"counts as {name!r}, and the texts beside them as 'texts', or use a "
                    f"TopicModel. Got a {type(documents).__name__}."
                )
            texts = check_texts(documents, "describe", name=name)
            documents = self._count(texts)
        counts = check_csr(documents, name=name)
        check_non_negative(counts, f"describe as {name}")
        check_counts(counts)
        n_features = self.components_.shape[1]
        if counts.shape[1] != n_features:
            raise ValueError(
                f"{name} has {counts.shape[1]} features, but {type(self.model).__name__} is "
                f"expecting {n_features} features as input."
            )
        if not counts.data.any():
            raise ValueError(
                f"None of the {counts.shape[0]} {name} has a word of the vocabulary of "
                f"{n_features} words that {type(self.model).__name__} was fitted with."
            )
        return Documents(documents, counts, texts)

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Compute p(k | d), from the model's `transform`.

        Its rows sum to 1 for LDA.  A factorisation X = W H (NMF) gives weights W instead: W_dk
        times the sum of row k of H is the number of words that topic k has in document d.
        """
        owner = f"'transform' of {type(self.model).__name__}"
        shares = as_array(self.model.transform(X))
        expected = (X.shape[0] if hasattr(X, "shape") else len(X), len(self._sums))
        if shares.shape != expected or shares.dtype.kind not in "fiu":
            raise ValueError(
                f"The {owner} must give numbers of shape {expected}, one for each document and "
                f"topic. Got shape {shares.shape} and dtype {shares.dtype}."
            )
        shares = shares.astype(np.float64)  # a copy
        if not (np.isfinite(shares).all() and shares.min(initial=0) >= 0):
            raise ValueError(f"The {owner} must give finite numbers that are not negative.")
        if np.abs(shares.sum(axis=1) - 1).max() > _TOLERANCE:
            shares *= self._sums
        shares[shares.sum(axis=1) == 0] = 1.0  # nothing is known of these documents
        shares /= shares.sum(axis=1, keepdims=True)
        return shares

    @property
    def known_names(self) -> Any:
        """The words that the model has seen, or None."""
        return (
            getattr(self.model, "feature_names_in_", None) if self._names is None else self._names
        )

    def names(self, given: Any, documents: Any) -> NDArray:
        """Return the words: those given, else those of the model or the documents, else numbers."""
        n_features = self.components_.shape[1]
        known = (
            given,
            self.known_names,
            getattr(documents, "columns", None),
            range(n_features),
        )
        names = as_array(next(found for found in known if found is not None))
        if names.shape != (n_features,):
            raise ValueError(
                f"'feature_names' must have one name for each of the {n_features} features. "
                f"Got shape {names.shape} instead."
            )
        return names.astype(str)

    def unusual(
        self, documents: Documents, shares: NDArray[np.float64]
    ) -> tuple[str, NDArray[np.float64]]:
        """Compute how badly the topics explain each document."""
        if hasattr(self.model, "document_temperatures"):
            return "temperature", self.model.document_temperatures(documents.given)
        X = documents.counts
        rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        topics = np.ascontiguousarray(self.components_.T)
        log_likelihood = np.empty(X.nnz)
        for block in gen_batches(X.nnz, _BLOCK):
            p = np.einsum("ik,ik->i", topics[X.indices[block]], shares[rows[block]])
            log_likelihood[block] = np.log(np.maximum(p, _LEAST)) * X.data[block]
        totals = np.bincount(rows, weights=log_likelihood, minlength=X.shape[0])
        with np.errstate(invalid="ignore"):
            return "log_likelihood", totals / as_array(X.sum(axis=1, dtype=np.float64)).ravel()


def of_each(values: Any, n: int, name: str, what: str = "document") -> list:
    """Check that there is one value for each of n things, and return them as a list."""
    try:
        items = None if isinstance(values, str | bytes | dict | set) else list(values)
    except TypeError:
        items = None
    if items is None:
        raise TypeError(
            f"{name!r} must be a sequence with one entry for each {what}. Got {values!r} instead."
        )
    if len(items) != n:
        raise ValueError(
            f"{name!r} must have one entry for each of the {n} {what}s. Got {len(items)}."
        )
    return items


def _parts_of(model: Any) -> tuple[Any, Any, Any]:
    """The model of counts; what counts the words of texts, and names of words, or None."""
    if hasattr(model, "lda_") or (hasattr(model, "counts") and hasattr(model, "fit")):
        check_is_fitted(model)
        return model.lda_, model.counts, model.feature_names_
    if hasattr(model, "named_steps"):
        first, last = model[:-1], model[-1]
        if len(first):
            check_is_fitted(first)
            return last, first.transform, first.get_feature_names_out()
        return last, None, None
    return model, None, None
