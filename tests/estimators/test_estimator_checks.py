"""scikit-learn's estimator checks for every face."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from annealvi import (
    Annealed,
    LocalVariational,
    TemperedFMM,
    TemperedGaussianMixture,
    TemperedLDA,
    Variational,
)


@parametrize_with_checks(
    [
        TemperedLDA(),
        TemperedLDA(temperature=1),
        TemperedLDA(learning_method="online", temperature=Annealed(form="posterior")),
        TemperedLDA(init="documents", n_components=1, evaluate_every=2, perp_tol=1e6),
        TemperedLDA(doc_topic_prior="learn", topic_word_prior="learn"),
        TemperedLDA(n_init=2, validation_fraction=0.2),
        TemperedLDA(temperature="variational"),
        TemperedLDA(temperature="local", learning_method="online"),
        TemperedLDA(
            temperature=Variational(partition="prior", damping=1), learning_method="online"
        ),
        TemperedLDA(temperature=LocalVariational(continuous=True, normaliser="corpus")),
        TemperedFMM(),
        TemperedFMM(
            2,
            init="data",
            covariance="full",
            noise_variance=0.5,
            prior_probability="learn",
            temperature="variational",
        ),
        TemperedFMM(2, init="kmeans++", temperature=1),
        TemperedGaussianMixture(),
        TemperedGaussianMixture(
            2, covariance_type="spherical", init_params="k-means++", temperature=1
        ),
        TemperedGaussianMixture(2, covariances=1.0, temperature="variational"),
    ]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)
