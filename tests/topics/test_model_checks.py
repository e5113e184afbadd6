"""scikit-learn's estimator checks: those that need no data, and others written again for texts."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.utils import estimator_checks

from annealvi import TemperedLDA, TopicModel
from annealvi.topics import TopicVectorizer
from tests.topics.corpus import make_texts

TEXTS = make_texts(40)
NAMES = ["estimator_cloneable", "estimator_repr", "estimators_unfitted", "get_params_invariance"]
NAMES += ["mixin_order", "no_attributes_set_in_init", "parameters_default_constructible"]
NAMES += ["set_params", "valid_tag_types"]


# like CountVectorizer, a TopicVectorizer with a vocabulary counts without a fit
PAIRS = [(kind, name) for kind in (TopicModel, TopicVectorizer) for name in NAMES]
PAIRS.remove((TopicVectorizer, "estimators_unfitted"))


@pytest.mark.parametrize(("kind", "name"), PAIRS)
def test_checks_without_data(kind, name):
    if not hasattr(estimator_checks, f"check_{name}"):
        pytest.skip("not in this version of scikit-learn")
    getattr(estimator_checks, f"check_{name}")(kind.__name__, kind())


def make():
    return TopicModel(3, lda=TemperedLDA(max_iter=2), seed_words={"sea": ["ship"]}, random_state=0)


def test_the_only_check_of_the_generator():
    with pytest.warns(match="Can't test estimator TopicModel which requires input"):
        assert not [*estimator_checks.estimator_checks_generator(TopicModel(), legacy=False)][1:]


def test_rows_depend_on_their_own_text_only():
    model = make().fit(TEXTS)
    whole = model.transform(TEXTS)
    assert_array_equal(np.vstack([model.transform([text]) for text in TEXTS]), whole)
    order = np.random.RandomState(0).permutation(len(TEXTS))
    assert_array_equal(model.transform([TEXTS[i] for i in order]), whole[order])


def test_fits_repeat_and_change_nothing_else():
    model, texts = make(), list(TEXTS)
    before = copy.deepcopy(model.get_params())
    first = model.fit_transform(texts)
    assert_array_equal(model.fit(texts).transform(texts), first)
    assert texts == TEXTS and repr(model.get_params()) == repr(before)
    fitted = {name for name in vars(model) if name not in before}
    names = {"vectorizer_", "lda_", "mixture_", "seed_topics_", "topic_labels_", "_vocabulary"}
    assert fitted == names
    state = pickle.dumps(model)
    model.transform(texts), model.score(texts), model.top_words(), model.counts(texts)
    assert pickle.dumps(model) == state
