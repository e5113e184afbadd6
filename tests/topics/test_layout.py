"""Distances of topics, their hierarchy and their places."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import pdist, squareform

from annealvi.topics import summary as layout


@pytest.fixture
def topics():
    return np.random.default_rng(1).dirichlet(np.full(40, 0.1), 12)


def test_distances_are_hellingers(topics):
    distances = layout.hellinger(topics)
    expected = squareform(pdist(np.sqrt(topics))) / np.sqrt(2)
    assert_allclose(distances, expected, atol=1e-12)
    assert_array_equal(distances, distances.T)
    assert_array_equal(layout.hellinger(np.eye(2)), [[0, 1], [1, 0]])


def test_the_hierarchy_joins_the_closest_first(topics):
    topics[7] = 0.9 * topics[2] + 0.1 * topics[7]
    found = layout.similarity(topics)
    assert found.linkage.shape == (11, 4)
    assert sorted(found.linkage[0, :2]) == [2, 7]
    assert found.closest(1) == [(2, 7)]
    pairs = found.closest(1000)
    assert len(pairs) == 66
    assert np.all(np.diff([found.distances[pair] for pair in pairs]) >= 0)


@pytest.mark.parametrize("n", [1, 2])
def test_few_topics(topics, n):
    found = layout.similarity(topics[:n])
    assert found.linkage.shape == (n - 1, 4) and len(found.closest()) == n - 1
    places = layout.places(found.distances)
    assert_allclose(squareform(pdist(places)) if n > 1 else places[0, 0], found.distances[:n, :n])


def test_places_keep_distances_that_a_plane_has():
    points = np.random.default_rng(2).normal(size=(15, 2))
    distances = squareform(pdist(points))
    assert_allclose(squareform(pdist(layout.places(distances))), distances, atol=1e-3)


def test_places_are_the_same_each_time_and_centred(topics):
    distances = layout.hellinger(topics)
    np.random.seed(3)
    places = layout.places(distances)
    assert_array_equal(places, layout.places(distances))
    assert_allclose(places.mean(axis=0), 0, atol=1e-12)


def test_places_of_topics_that_are_all_the_same():
    assert_array_equal(layout.places(layout.hellinger(np.full((4, 4), 0.25))), np.zeros((4, 2)))
