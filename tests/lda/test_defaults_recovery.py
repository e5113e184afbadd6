"""The default without any parameters: planted topics are found, held-out words predicted."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from annealvi import Annealed, Fixed, TemperedLDA
from annealvi.datasets import load_arxiv_abstracts, make_topic_corpus
from annealvi.metrics import document_completion

pytestmark = pytest.mark.statistical

PRIORS = dict(doc_topic_prior=0.1, topic_word_prior=0.05)


def matched(found, planted):
    """How many planted topics have a found one at a cosine above .9."""
    found = found / np.linalg.norm(found, axis=1, keepdims=True)
    planted = planted / np.linalg.norm(planted, axis=1, keepdims=True)
    return np.sum((planted @ found.T).max(axis=1) > 0.9)


# Measured over 4 seeds: 9, 17.8 and 28.5 topics, in 16, 10 and 7 passes.
@pytest.mark.parametrize(
    ("shape", "length", "most"),
    [
        ((600, 300, 10), 60, 8),
        pytest.param((1500, 500, 20), 30, 15, marks=pytest.mark.slow),
        pytest.param((3000, 800, 40), 40, 24, marks=pytest.mark.slow),
    ],
)
def test_planted_topics_are_found(shape, length, most):
    """In no more passes than the mean field at T = 1, which finds fewer."""
    planted = make_topic_corpus(*shape, document_length=length, random_state=3, **PRIORS)
    found = {"annealvi": [], "sklearn": []}
    for preset, each in found.items():
        for seed in range(4):
            lda = TemperedLDA(shape[2], preset=preset, random_state=seed, **PRIORS)
            if preset == "sklearn":
                lda.set_params(learning_method="online", max_iter=20)
            each.append(matched(lda.fit(planted.data).components_, planted.topics))
    assert np.mean(found["annealvi"]) >= max(most, np.mean(found["sklearn"]) + shape[2] / 10)


@pytest.mark.slow
def test_abstracts_are_predicted_better_than_by_the_mean_field():
    """By more than seeds differ, and than the mean field gains from annealing."""
    X = load_arxiv_abstracts().data
    train, held_out = X[:2700], X[2700:]
    mean_field = dict(preset="sklearn", learning_method="online", max_iter=10)
    methods = {"default": {}, "T = 1": mean_field}
    methods["annealed"] = mean_field | dict(temperature="annealed")
    scores = {
        name: [
            document_completion(TemperedLDA(30, **options, random_state=seed).fit(train), held_out)
            for seed in range(2)
        ]
        for name, options in methods.items()
    }
    others = scores["T = 1"] + scores["annealed"]
    assert np.min(scores["default"]) > np.max(others) + 0.05


@pytest.mark.parametrize(
    "temperature",
    ["variational", "local", Annealed(form="posterior"), Fixed(1.3, form="posterior")],
    ids=str,
)
@pytest.mark.parametrize("method", ["batch", "online"])
def test_every_kind_of_temperature_finds_planted_topics(method, temperature):
    """They run, cool and repeat where topics are a point."""
    planted = make_topic_corpus(400, 200, 6, document_length=50, random_state=0, **PRIORS)
    lda = TemperedLDA(6, learning_method=method, temperature=temperature, random_state=0)
    again = clone(lda).fit(planted.data)
    lda.fit(planted.data)
    assert_array_equal(lda.components_, again.components_)
    assert_array_equal(lda.temperature_path_, again.temperature_path_)
    path = lda.temperature_path_
    if not isinstance(temperature, Fixed):
        assert path[0] > 1.5 and path[-1] == lda.temperature_ == 1
    assert matched(lda.components_, planted.topics) >= 4
