"""Document completion against a loop over tokens."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.decomposition import LatentDirichletAllocation

from annealvi import TemperedLDA
from annealvi.datasets import make_topic_corpus
from annealvi.metrics import HeldOut, document_completion, split_tokens


@pytest.fixture(scope="module")
def X():
    X = make_topic_corpus(90, 40, 3, document_length=25, random_state=0).data.tolil()
    X[5] = 0
    X[6] = 0
    X[6, 3] = 1  # nothing to hide
    return sparse.csr_matrix(X)


def test_tokens_are_split(X):
    for observed in (0.5, 0.2):
        seen, hidden = split_tokens(X, observed=observed, random_state=0)
        assert_array_equal((seen + hidden).toarray(), X.toarray())
        assert seen.data.min() > 0
        assert hidden.data.min() > 0
        lengths = np.asarray(X.sum(axis=1)).ravel()
        assert_array_equal(np.asarray(seen.sum(axis=1)).ravel(), np.ceil(observed * lengths))
    again, _ = split_tokens(X.toarray().astype(int), observed=0.2, random_state=0)
    assert_array_equal(again.toarray(), seen.toarray())
    other, _ = split_tokens(X, observed=0.2, random_state=1)
    assert not np.array_equal(other.toarray(), seen.toarray())


def test_every_token_is_as_likely_to_be_seen():
    X = sparse.csr_matrix(np.array([[6.0, 3, 1]]))
    seen = np.mean([split_tokens(X, random_state=s)[0].toarray()[0] for s in range(1500)], axis=0)
    assert_allclose(seen, [3, 1.5, 0.5], atol=0.06)


@pytest.mark.parametrize("library", [TemperedLDA, LatentDirichletAllocation])
def test_document_completion(X, library, monkeypatch):
    lda = library(3, random_state=0).fit(X)
    seen, hidden = split_tokens(X, random_state=4)
    theta = lda.transform(seen)
    beta = lda.components_ / lda.components_.sum(axis=1, keepdims=True)
    total, per_document = 0.0, []
    for share, words in zip(theta, hidden.toarray(), strict=True):
        log_likelihood = sum(n * np.log(share @ beta[:, v]) for v, n in enumerate(words) if n)
        total += log_likelihood
        per_document.append(log_likelihood / words.sum() if words.sum() else np.nan)
    expected = total / hidden.sum()
    assert document_completion(lda, X, random_state=4) == pytest.approx(expected, rel=1e-12)
    assert_allclose(document_completion(lda, X, random_state=4, per_document=True), per_document)
    monkeypatch.setattr("annealvi.metrics.held_out._BLOCK_BYTES", 1000)
    assert document_completion(lda, X, random_state=4) == pytest.approx(expected, rel=1e-12)


def test_clear_errors(X):
    lda = TemperedLDA(3).fit(X)
    with pytest.raises(ValueError, match=r"integer counts. Got \d+.5"):
        document_completion(lda, X * 0.5)
    with pytest.raises(ValueError, match="Negative values"):
        document_completion(lda, -X)
    with pytest.raises(ValueError, match=r"'observed' .* \(0.0, 1.0\). Got 1.0"):
        document_completion(lda, X, observed=1.0)
    with pytest.raises(ValueError, match=r"at most 1e\+09 of them. Got 1e\+12"):
        document_completion(lda, np.full((1, 40), 2.5e10))
    with pytest.raises(ValueError, match="at least two words"):
        document_completion(lda, X[5:7])
    with pytest.raises(ValueError, match=r"'every' .* \(0, inf\). Got 0"):
        HeldOut(X, every=0)


@pytest.mark.parametrize(("every", "steps"), [(1, [3, 6]), (1 / 3, [1, 2, 3, 4, 5, 6]), (2, [6])])
def test_learning_curve(X, every, steps):
    lda = TemperedLDA(
        3,
        learning_method="online",
        batch_size=30,
        max_iter=2,
        random_state=0,
        callback=HeldOut(X[:20], every=every),
    ).fit(X)
    taken = np.isfinite(lda.history_["heldout"])
    assert_array_equal(lda.history_["step"][taken], steps)
    assert lda.history_["heldout"][taken][-1] == document_completion(lda, X[:20])


def test_data_frames_keep_their_names(X):
    frame = pd.DataFrame(X.toarray(), columns=[f"w{i}" for i in range(40)])
    lda = TemperedLDA(3, max_iter=2, random_state=0, callback=HeldOut(frame)).fit(frame)
    assert document_completion(lda, frame) == document_completion(
        TemperedLDA(3, max_iter=2, random_state=0).fit(X), X
    )
    with pytest.raises(ValueError, match="feature names should match"):
        document_completion(lda, frame[frame.columns[::-1]])
