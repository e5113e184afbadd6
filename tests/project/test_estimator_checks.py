"""scikit-learn's estimator checks: of two defaults in `make test`, of every face in test-all."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from annealvi import TemperedFMM, TemperedGaussianMixture, TemperedLDA, TemperedMultinomialMixture
from annealvi.temperature import Annealed, Fixed, LocalVariational, Variational

DEFAULTS = [TemperedLDA(), TemperedMultinomialMixture()]
TOPIC_MODELS = [
    TemperedLDA(learning_method="online", batch_size=3, max_iter=4),
    TemperedLDA(doc_topic_prior="learn", topic_word_prior="learn"),
    TemperedLDA(n_components=50, init="kmeans++"),  # more topics than documents
    TemperedLDA(init="documents", n_components=1, evaluate_every=2, perp_tol=1e6),
    TemperedLDA(init="random", estimate="map"),
    TemperedLDA(init="kmeans++", estimate="variational"),
    TemperedLDA(n_init=2, validation_fraction=0.2),
    TemperedLDA(batch_size=5),
    TemperedLDA(preset="sklearn"),
    TemperedLDA(preset="sklearn", estimate="map", init="kmeans++"),
    TemperedLDA(preset="sklearn", temperature="local", learning_method="online"),
]
# every kind of temperature, both forms, topics a point and a distribution
TOPIC_MODELS += [
    TemperedLDA(estimate=estimate, temperature=temperature, learning_method=method)
    for estimate, method, temperature in [
        ("map", "batch", Fixed(2.0, form="posterior")),
        ("variational", "online", Annealed(form="posterior")),
        ("map", "batch", "variational"),
        ("map", "online", Variational(partition="prior", damping=1)),
        ("map", "online", "local"),
        ("variational", "batch", LocalVariational(continuous=True, normaliser="corpus")),
    ]
]
MIXTURES = [
    TemperedFMM(),
    TemperedGaussianMixture(),
    TemperedFMM(2, init="data", covariance="full", noise_variance=0.5, temperature="variational"),
    TemperedFMM(2, init="kmeans++", prior_probability="learn", temperature=1),
    TemperedFMM(2, temperature="proximity"),
    TemperedGaussianMixture(2, covariance_type="spherical", init_params="k-means++", temperature=1),
    TemperedGaussianMixture(2, covariances=1.0, temperature="variational"),
    TemperedMultinomialMixture(init="kmeans++", temperature="variational", max_iter=5),
]
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def known(estimator):
    """Checks that cannot be passed: who takes sparse X gives two or four probabilities there."""
    names = ("check_estimator_sparse_matrix", "check_estimator_sparse_array")
    mixture = isinstance(estimator, TemperedMultinomialMixture)
    reason = "predict_proba has a column for each of K classes"
    return dict.fromkeys(names, reason) if mixture else {}


@parametrize_with_checks(DEFAULTS, expected_failed_checks=known)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([*TOPIC_MODELS, *MIXTURES], expected_failed_checks=known)
def test_scikit_learn_checks_of_other_faces(estimator, check):
    check(estimator)
