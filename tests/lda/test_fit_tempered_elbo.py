"""Fits at a learned temperature ascend the tempered ELBO, Eq. 5 of variational tempering."""

import math

import numpy as np
import pytest
from scipy.special import entr

from annealvi import TemperedLDA, Variational
from annealvi.datasets import make_topic_corpus
from annealvi.model import Tempering
from annealvi.partition import LogPartition
from tests.marks import slow_values


def tempered_elbo(model, planned, X, gamma):
    """VT Eq. 5 at a given gamma, with the best phi: log C does not depend on q."""
    r, b = planned.posterior_, 1 / planned.temperatures_
    log_c = planned._current_log_c()
    bound = model.elbo(X, gamma, Tempering(float(r @ b)))
    return bound - r @ (log_c - log_c[0]) + entr(r).sum() - math.log(len(r))


def ascent_problem(seed):
    rng = np.random.RandomState(seed)
    n_topics, V = rng.randint(2, 8), rng.randint(20, 80)
    length = int(rng.choice([3, 15, 60]))
    X = make_topic_corpus(60, V, n_topics, document_length=length, random_state=seed).data
    grid = np.geomspace(1, 10, rng.choice([2, 5, 50, 200]))
    kind = rng.randint(3)
    # log C of something that T comes to rest with inside of the grid
    known = X.sum() * rng.choice([0.7, 1.0, 1.5, 2, 3]) * np.log(grid)
    partition = ["prior", known, LogPartition(1 / grid, known)][kind]
    temperature = Variational(
        grid=grid,
        partition=partition,
        damping=1.0,
        monotone=False,
        start=1 / np.mean(1 / grid),
        final_fraction=0,
    )
    return X, TemperedLDA(
        n_topics,
        doc_topic_prior=rng.choice([0.02, 0.1, 1]),
        topic_word_prior=rng.choice([0.02, 0.1, 1]),
        temperature=temperature,
        document_init="warm",
        mean_change_tol=0,
        max_doc_update_iter=100,
        max_iter=30,
        preset="sklearn",
        random_state=seed,
    )


@pytest.mark.filterwarnings("ignore:The learned temperature did not cool")
@pytest.mark.parametrize("seed", [*range(5), *slow_values(*range(5, 20))])
def test_undamped_steps_ascend_the_tempered_elbo(seed):
    """Where log C does not depend on q, no step lowers Eq. 5, that of q(y) included."""
    X, lda = ascent_problem(seed)
    bounds = []

    def callback(estimator, monitor):
        model = estimator._state.model
        bounds.append(tempered_elbo(model, estimator._state.temperature, X, model.documents.gamma))

    lda.set_params(callback=callback).fit(X)
    assert np.min(np.diff(bounds) / np.abs(bounds[1:])) >= -1e-9
    assert bounds[-1] > bounds[0]
    assert len(np.unique(lda.temperature_path_)) > 1
    assert lda.temperature_posterior_path_.shape == (30, len(lda.temperature_posterior_))


@pytest.mark.filterwarnings("ignore:The learned temperature did not cool")
@pytest.mark.filterwarnings("ignore:The training perplexity had not converged")
@pytest.mark.parametrize("seed", [*range(5), *slow_values(*range(5, 20))])
def test_the_history_of_the_tempered_elbo_never_falls(seed):
    X, lda = ascent_problem(seed)
    lda.set_params(evaluate_every=1, perp_tol=0).fit(X)
    bounds = lda.history_["tempered_elbo"]
    assert np.all(np.isfinite(bounds))
    assert np.min(np.diff(bounds) / np.abs(bounds[1:])) >= -1e-9
