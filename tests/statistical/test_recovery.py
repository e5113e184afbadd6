"""Planted topics are found, and annealing finds better optima than it starts without."""

import numpy as np
import pytest
from annealvi import Annealed, TemperedLDA
from annealvi.datasets import load_arxiv_abstracts, make_topic_corpus
from annealvi.metrics import document_completion
from scipy.optimize import linear_sum_assignment


def matched_cosine(found, planted):
    """Cosine of each planted topic with the topic matched to it."""
    found = found / np.linalg.norm(found, axis=1, keepdims=True)
    planted = planted / np.linalg.norm(planted, axis=1, keepdims=True)
    similarity = planted @ found.T
    return similarity[linear_sum_assignment(-similarity)]


@pytest.fixture(scope="module")
def planted():
    return make_topic_corpus(
        600, 300, 10, document_length=60, doc_topic_prior=0.2, random_state=3
    )


def fit(X, seed, temperature, method="batch"):
    return TemperedLDA(
        10,
        doc_topic_prior=0.2,
        topic_word_prior=0.05,
        learning_method=method,
        learning_offset=20,
        batch_size=60,
        max_iter=40 if method == "batch" else 10,
        temperature=temperature,
        random_state=seed,
        document_init="warm" if method == "batch" else "constant",
    ).fit(X)


@pytest.mark.parametrize("method", ["batch", "online"])
@pytest.mark.parametrize("form", ["likelihood", "posterior"])
def test_annealing_recovers_planted_topics(planted, method, form):
    found = []
    for seed in range(5):
        # eta/T is what the posterior form makes of the prior: it starts less hot
        start = 3.9 if form == "likelihood" else 2.0
        lda = fit(planted.data, seed, Annealed(start=start, form=form), method)
        found.append(np.sum(matched_cosine(lda.components_, planted.topics) > 0.95))
    assert np.mean(found) >= 8


@pytest.mark.parametrize("method", ["batch", "online"])
def test_annealing_finds_better_optima_than_plain_inference(planted, method):
    """The same starts, the same passes: a higher ELBO and more of the planted topics."""
    gains, found = [], {1: [], "annealed": []}
    for seed in range(6):
        bound = {}
        for temperature in (1, "annealed"):
            lda = fit(planted.data, seed, temperature, method)
            bound[temperature] = -np.log(lda.bound_)
            cosine = matched_cosine(lda.components_, planted.topics)
            found[temperature].append(np.sum(cosine > 0.95))
        gains.append(bound["annealed"] - bound[1])
    assert np.mean(gains) > 0
    assert np.mean(found["annealed"]) > np.mean(found[1])


def test_abstracts_are_predicted_better_after_annealing():
    X = load_arxiv_abstracts().data
    scores = {
        temperature: np.mean(
            [
                document_completion(
                    TemperedLDA(
                        30,
                        doc_topic_prior=0.1,
                        topic_word_prior=0.01,
                        learning_method="online",
                        max_iter=4,
                        temperature=temperature,
                        document_init="constant",
                        random_state=seed,
                        n_jobs=2,
                    ).fit(X[:2700]),
                    X[2700:],
                )
                for seed in range(3)
            ]
        )
        for temperature in (1, "annealed")
    }
    assert scores["annealed"] > scores[1] + 0.02
