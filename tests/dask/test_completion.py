"""Document completion over parts."""

import numpy as np
import pytest
from dask import delayed
from scipy import sparse

import annealvi
from annealvi import metrics
from annealvi.dask import document_completion
from annealvi.datasets import load_arxiv_abstracts
from annealvi.scale.engines import SerialEngine


@pytest.fixture(scope="module")
def X():
    return load_arxiv_abstracts().data[:300]


@pytest.fixture(scope="module")
def lda(X):
    return annealvi.TemperedLDA(4, max_iter=2, random_state=0).fit(X)


@pytest.mark.slow
def test_parts_add_up(workers, X, lda):
    cuts = [X[:100], X[100:130], X[130:]]
    found = document_completion(lda, [delayed(part) for part in cuts], client=workers)
    seeds = np.random.RandomState(0).randint(2**31 - 1, size=3)
    total = n_words = 0.0
    for part, seed in zip(cuts, seeds, strict=True):
        n = metrics.split_tokens(part, random_state=seed)[1].sum()
        total += n * metrics.document_completion(lda, part, random_state=seed)
        n_words += n
    assert found == pytest.approx(total / n_words, rel=1e-12)
    assert abs(found - metrics.document_completion(lda, X)) < 0.05  # another split
    parts, options = [delayed(part) for part in cuts], dict(method="cvb0", random_state=1)
    collapsed = document_completion(lda, parts, client=workers, **options)
    assert collapsed != found


def test_documents_without_a_word_to_hide(lda, X, tmp_path):
    annealvi.corpus.write(tmp_path / "part", [sparse.csr_matrix(np.eye(1, X.shape[1]))])
    with pytest.raises(ValueError, match="X must contain documents of at least two words"):
        document_completion(lda, [tmp_path / "part"], client=SerialEngine())
