"""Scores of held-out documents do not depend on how many are scored."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import GridSearchCV

from annealvi import TemperedLDA
from annealvi.metrics import document_completion


def planted(n_documents, n_topics, n_words=120, length=60, seed=0):
    rng = np.random.RandomState(seed)
    beta = np.full((n_topics, n_words), 0.002)
    for k, own in enumerate(np.array_split(np.arange(n_words), n_topics)):
        beta[k, own] += 1
    beta /= beta.sum(axis=1, keepdims=True)
    shares = rng.dirichlet(np.full(n_topics, 0.1), n_documents) @ beta
    return sparse.csr_matrix([rng.multinomial(length, p) for p in shares])


X = planted(120, 5)


@pytest.mark.parametrize("options", [{}, {"temperature": "local"}, {"estimate": "variational"}])
def test_figures_of_parts_and_copies(options):
    lda = TemperedLDA(5, max_iter=3, random_state=0, **options).fit(X)
    one, twice = X[:8], sparse.vstack([X[:8], X[:8]])
    assert lda.perplexity(twice) == pytest.approx(lda.perplexity(one), rel=1e-6)
    assert lda.score(twice) == pytest.approx(2 * lda.score(one), rel=1e-6)
    assert lda.score(one) == pytest.approx(sum(lda.score(row) for row in one), rel=1e-6)
    assert lda.perplexity(one) == pytest.approx(lda.perplexity(X), rel=0.2)
    lda.set_params(total_samples=1e4)
    assert lda.perplexity(one, sub_sampling=True) == pytest.approx(lda.perplexity(one))


def test_scikit_learns_numbers_keep_the_topics():
    lda = TemperedLDA(5, max_iter=3, preset="sklearn", random_state=0).fit(X)
    assert lda.perplexity(X) == pytest.approx(lda.bound_, rel=1e-9)
    assert lda.perplexity(X[:8]) > 1.2 * lda.perplexity(X)
    bound = lda._approx_bound(X, lda.transform(X, normalize=False), False)
    assert lda.score(X) == pytest.approx(bound)


@pytest.mark.parametrize("cv", [2, 20])
def test_a_grid_search_chooses_what_predicts(cv):
    K = [2, 5]
    search = GridSearchCV(TemperedLDA(max_iter=3, random_state=0), {"n_components": K}, cv=cv)
    chosen = search.fit(X).best_params_["n_components"]
    test = planted(200, 5, seed=1)
    score = {k: document_completion(TemperedLDA(k, random_state=0).fit(X), test) for k in K}
    assert max(score.values()) - score[chosen] < 0.05
