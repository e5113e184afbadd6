"""Which topics are merged, against the definition of the loss."""

import itertools

import numpy as np
import pytest

from annealvi.models.lda.merging import groups_of


def information(counts):
    """The mutual information of topics and words, times the number of words."""
    total, expected = counts.sum(), np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    some = counts > 0
    return np.sum(counts[some] * np.log(counts[some] / expected[some])) if total else 0.0


def merged_one_by_one(counts, n):
    """All pairs are tried; the merge that keeps the most information is made."""
    groups = [[k] for k in range(len(counts))]

    def after(groups):
        return information(np.array([counts[group].sum(axis=0) for group in groups]))

    while len(groups) > n:
        trials = [
            [g for g in groups if g not in (a, b)] + [sorted(a + b)]
            for a, b in itertools.combinations(groups, 2)
        ]
        groups = max(trials, key=after)
    return sorted(groups)


def topics(n_topics, seed=0):
    rng = np.random.RandomState(seed)
    return rng.dirichlet(np.full(40, 0.05), n_topics) * rng.uniform(50, 500, n_topics)[:, None]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n", [1, 3, 7, 9])
def test_the_least_information_is_lost(n, seed):
    counts = topics(9, seed)
    assert groups_of(counts, n) == merged_one_by_one(counts, n)


@pytest.mark.parametrize("n_neighbours", [None, 1, 4])
def test_topics_that_are_there_twice_are_merged(n_neighbours):
    counts = topics(50)
    both = np.vstack([counts, 2 * counts[::-1]])
    assert groups_of(both, 50, n_neighbours) == [[k, 99 - k] for k in range(50)]


@pytest.mark.parametrize("n_neighbours", [None, 2, 4])
def test_topics_without_words_are_merged_first(n_neighbours):
    counts = np.vstack([topics(20), np.zeros((20, 40))])
    groups = groups_of(counts, 20, n_neighbours)
    assert sum(counts[group].sum() > 0 for group in groups) >= 19
    assert sum(len(group) > 1 and counts[group].sum(axis=1).all() for group in groups) == 0


@pytest.mark.parametrize("n", [1, 2, 30])
def test_topics_without_words_and_without_neighbours_are_merged_too(n):
    counts = np.zeros((60, 80))
    counts[np.arange(40), np.arange(40)] = 10.0  # no word is in two topics, and 20 have none
    groups = groups_of(counts, n, 2)
    assert len(groups) == n
    assert sorted(itertools.chain(*groups)) == list(range(60))
