"""Forms of a word, which are counted apart and shown as one word."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from annealvi import TopicModel
from annealvi.topics import describe
from annealvi.topics.forms import stem
from tests.topics.models import COMPONENTS, COUNTS, WORDS, Given


@pytest.mark.parametrize(
    "forms",
    [
        "printer printers printing printed print",
        "galaxy galaxies",
        "cluster clusters clustering clustered",
        "process processes processing processed",
        "embed embedding embeddings",
        "phase phases",
        "study studies studied",
        "gas gases",
        "planning plan plans",
    ],
)
def test_forms_have_one_stem(forms):
    assert len({stem(word) for word in forms.split()}) == 1


@pytest.mark.parametrize(
    "words",
    ["universe university", "policy police", "party part", "news new", "wälder wald", "star start"],
)
def test_other_words_have_other_stems(words):
    assert len({stem(word) for word in words.split()}) == len(words.split())


def test_forms_are_shown_as_one_word_with_their_probabilities_added():
    summary = describe(Given(), COUNTS, WORDS)
    assert summary.words(0, 2, relevance=1) == ["orbit", "the"]
    p = COMPONENTS[0] / COMPONENTS[0].sum()
    weights = summary.weights(0, 2, relevance=1)
    assert_allclose(weights.probability, [p[1] + p[2], p[6]])
    assert_allclose(summary.folded(0)[[1, 2]], [p[1] + p[2], 0])
    both = summary.word_shares[1] + summary.word_shares[2]
    assert_allclose(weights.lift[0], (p[1] + p[2]) / both)
    assert "orbits" not in summary.table["words"][0] and "orbits" not in summary.labels[0]
    assert_allclose(summary.word_table.to_numpy()[1:3, 0], p[1:3])  # counted apart


def test_words_are_counted_as_they_are_written():
    model = TopicModel(1, random_state=0).fit(["printer printers printing"] * 4)
    assert model.feature_names_.tolist() == ["printer", "printers", "printing"]
    assert len(model.top_words()[0]) == 3
    assert len(model.describe(["printer printers"] * 2).words(0)) == 1
    assert np.allclose(model.describe(["printer"] * 2).folded(0).sum(), 1)
