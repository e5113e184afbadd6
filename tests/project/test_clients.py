"""TemperedLDA in the place of scikit-learn's class in software that others wrote."""

import pickle

import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import normalize

from annealvi import TemperedFMM, TemperedGaussianMixture, TemperedLDA
from annealvi.datasets import make_topic_corpus
from tests.asserts import refused

X = make_topic_corpus(60, 40, 3, document_length=30, random_state=0).data
CLASS = "annealvi.lda.estimator.TemperedLDA"


def pickled(estimator):
    return pickle.loads(pickle.dumps(estimator))


@pytest.fixture(scope="module")
def lda():
    return TemperedLDA(3, random_state=0).fit(X)


def test_skops_needs_to_trust_the_class_alone(lda):
    skops = pytest.importorskip("skops.io")
    written = skops.dumps(lda)
    assert skops.get_untrusted_types(data=written) == [CLASS]
    read = skops.loads(written, trusted=[CLASS])
    assert_array_equal(read.transform(X), lda.transform(X))
    assert_array_equal(read.partial_fit(X).components_, pickled(lda).partial_fit(X).components_)


def test_mlflow_with_its_default_format(lda, tmp_path):
    mlflow = pytest.importorskip("mlflow.sklearn")
    mlflow.save_model(lda, tmp_path / "model", skops_trusted_types=[CLASS])
    assert_array_equal(mlflow.load_model(tmp_path / "model").transform(X), lda.transform(X))


def test_dask_ml_fits_the_blocks(lda):
    wrappers = pytest.importorskip("dask_ml.wrappers")
    found = wrappers.Incremental(TemperedLDA(3, total_samples=60, random_state=0)).fit(X.toarray())
    expected = TemperedLDA(3, total_samples=60, random_state=0).partial_fit(X)
    assert_array_equal(found.estimator_.components_, expected.components_)
    assert_array_equal(found.transform(X.toarray()), expected.transform(X))


def test_textacy_wants_scikit_learns_class(lda):
    models = pytest.importorskip("textacy.tm")
    with pytest.raises(ValueError, match="model"):  # it asks for scikit-learn's classes by name
        models.TopicModel(lda)


def test_imbalanced_learn_has_it_in_a_pipeline():
    pipeline = pytest.importorskip("imblearn.pipeline")
    sampling = pytest.importorskip("imblearn.over_sampling")
    y = np.repeat([0, 1], [45, 15])
    steps = sampling.RandomOverSampler(random_state=0), TemperedLDA(3, random_state=0)
    assert pipeline.make_pipeline(*steps, LogisticRegression()).fit(X, y).score(X, y) > 0.3


def test_pyldavis_draws_it():
    module = pytest.importorskip("pyLDAvis.lda_model")
    vectorizer = CountVectorizer()
    counts = vectorizer.fit_transform(["stars and moons", "bread and butter tea"] * 20)
    lda = TemperedLDA(3, random_state=0).fit(counts)
    assert len(module.prepare(lda, counts, vectorizer, mds="mmds").topic_coordinates) == 3


@pytest.mark.parametrize("make", [TemperedLDA, TemperedFMM, TemperedGaussianMixture])
def test_equal_fits_have_equal_hashes(make):
    one, two = (make(2, random_state=0).fit(X.toarray()) for _ in range(2))
    other = make(2, random_state=1).fit(X.toarray())
    assert joblib.hash(one) == joblib.hash(two) != joblib.hash(other)
    assert np.isnan(pickled(one).history_["seconds"]).all()  # times are no part of it


def test_the_bound_at_given_shares():
    theirs = LatentDirichletAllocation(3, max_iter=4, random_state=0).fit(X)
    ours = TemperedLDA(3, max_iter=4, preset="sklearn", random_state=0).fit(X)
    gamma = theirs._unnormalized_transform(X)
    for sub_sampling in (False, True):
        expected = theirs._approx_bound(X, gamma, sub_sampling)
        assert_allclose(ours._approx_bound(X, gamma, sub_sampling), expected, rtol=1e-6)


@pytest.mark.parametrize("name", ["_em_step", "_e_step", "_init_latent_vars"])
def test_a_subclass_with_steps_of_scikit_learns_is_refused(name):
    message = rf"Sub defines methods \['{name}'\], which scikit-learn's LDA calls"
    refused(message, type, "Sub", (TemperedLDA,), {name: lambda self: None}, error=TypeError)


def test_topics_are_reordered_by_one_assignment(lda):
    model, order = pickled(lda), [2, 0, 1]
    expected = lda.exp_dirichlet_component_[order]
    model.components_ = lda.components_[order]
    assert_allclose(model.exp_dirichlet_component_, expected, rtol=1e-6)
    assert model.exp_dirichlet_component_ is model.exp_dirichlet_component_  # computed once
    with pytest.raises(ValueError, match="Assign only 'components_'"):
        model.exp_dirichlet_component_ = model.exp_dirichlet_component_[order]


def test_components_are_never_changed_in_place(lda):
    before = lda.components_.copy()
    assert_allclose(normalize(lda.components_, "l1", copy=False).sum(axis=1), 1)
    assert_array_equal(lda.components_, before)


def test_a_default_fit_in_a_pipeline_warns_of_nothing(recwarn):
    make_pipeline(TemperedLDA(3, random_state=0), LogisticRegression()).fit(X, np.arange(60) % 2)
    assert not recwarn.list
