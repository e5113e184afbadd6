"""SigmoidBeliefNetwork: what it finds, how it goes on, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.utils.estimator_checks import parametrize_with_checks

from annealvi import Annealed
from annealvi.deep import ProximityPenalty, SigmoidBeliefNetwork
from annealvi.exceptions import DivergenceError
from tests.deep.fits import assert_refuses, order_matters, stop_at, undocumented

BLOCKS = np.kron(np.eye(4), np.ones(4))  # four causes of four pixels each


def planted(n_samples, seed):
    rng = np.random.RandomState(seed)
    z = rng.random_sample((n_samples, 4)) < 0.4
    return (rng.random_sample((n_samples, 16)) < 0.05 + 0.9 * (z @ BLOCKS)).astype(np.float32), z


def truth(X):
    """log p of the planted network: its blocks are independent."""
    on = X.reshape(-1, 4, 4).sum(axis=2)
    log_on = np.log(0.4) + on * np.log(0.95) + (4 - on) * np.log(0.05)
    log_off = np.log(0.6) + on * np.log(0.05) + (4 - on) * np.log(0.95)
    return np.logaddexp(log_on, log_off).sum(axis=1)


def tiny(hidden=(4,), **options):
    options = dict(max_iter=30, learning_rate=0.01, random_state=0) | options
    return SigmoidBeliefNetwork(hidden, **options)


def same_weights(one, other):
    ours, theirs = one.network_.state_dict(), other.network_.state_dict()
    return all(
        torch.equal(value, theirs[name]) for name, value in ours.items() if "extra" not in name
    )


def test_planted_causes_are_found():
    X, _ = planted(2000, 0)
    sbn = tiny((4,), learning_rate=0.02, max_iter=1500).fit(X)
    new, causes = planted(500, 1)
    assert sbn.score_samples(new).mean() > truth(new).mean() - 0.15
    found = np.abs(np.corrcoef(sbn.transform(new).T, causes.T)[:4, 4:])
    assert np.all(found.max(axis=0) > 0.9) and len(set(found.argmax(axis=0))) == 4
    assert sbn.score(new) < sbn.score_samples(new).mean() < truth(new).mean() + 0.15
    drawn, bits = sbn.sample(2000)
    assert drawn.shape == (2000, 16) and bits.shape == (2000, 4)
    np.testing.assert_allclose(drawn.mean(axis=0), X.mean(axis=0), atol=0.06)


def test_the_same_seed_gives_the_same_fit():
    X, _ = planted(101, 0)
    for options in ({}, {"proximity": "kl", "temperature": "annealed"}):
        one, two, other = (tiny((4, 3), **options, random_state=s).fit(X) for s in (0, 0, 1))
        assert same_weights(one, two) and not same_weights(one, other)
        assert one.score(X) == two.score(X)
        np.testing.assert_array_equal(one.score_samples(X), two.score_samples(X))


def test_sparse_is_dense():
    X, _ = planted(60, 0)
    dense = tiny(proximity="entropy").fit(X)
    for data in (sparse.csr_matrix(X), sparse.csr_array(X.astype(np.int64)), X.astype(bool)):
        other = tiny(proximity="entropy").fit(data)
        assert same_weights(dense, other)
        np.testing.assert_array_equal(dense.transform(X), other.transform(data))
        np.testing.assert_array_equal(dense.score_samples(X), other.score_samples(data))


@pytest.mark.parametrize(
    "options",
    [
        {"proximity": ProximityPenalty("mean_variance", magnitude=10.0), "temperature": "annealed"},
        {"hidden": (4, 3), "proximity": "entropy"},
    ],
)
def test_a_fit_that_is_resumed_is_the_same(options, tmp_path):
    X, _ = planted(101, 0)
    path = tmp_path / "state.pt"

    whole = tiny(**options).fit(X)
    part = tiny(**options, callback=stop_at(12, path)).fit(X)
    assert part.n_iter_ == 12 and not same_weights(part, whole)
    resumed = tiny(**options).fit(X, resume=path)
    assert same_weights(resumed, whole) and resumed.n_iter_ == 30
    np.testing.assert_array_equal(resumed.history_["elbo"], whole.history_["elbo"])
    np.testing.assert_array_equal(resumed.temperature_path_, whole.temperature_path_)
    with pytest.raises(ValueError, match=r"another architecture: it has hidden=.* has hidden=\[5"):
        tiny((5,), **{k: v for k, v in options.items() if k != "hidden"}).fit(X, resume=path)
    with pytest.raises(ValueError, match=r"has proximity='orthogonal'"):
        tiny(**(options | {"proximity": "orthogonal"})).fit(X, resume=path)


def test_no_magnitude_is_no_penalty():
    X, _ = planted(60, 0)
    plain = tiny().fit(X)
    free = tiny(proximity=ProximityPenalty("entropy", magnitude=0.0)).fit(X)
    held = tiny(proximity=ProximityPenalty("entropy", magnitude=100.0)).fit(X)
    np.testing.assert_array_equal(free.components_, plain.components_)
    assert not np.array_equal(held.components_, plain.components_)


def test_penalties_hold_q_where_it_was():
    """A heavy penalty keeps the mean entropy of each unit near the average of its past."""
    X, _ = planted(500, 0)

    def entropy(sbn):
        q = torch.distributions.Bernoulli(probs=torch.tensor(sbn.transform(X)))
        return float(q.entropy().mean())

    options = dict(max_iter=200, learning_rate=0.02)
    start = entropy(tiny(max_iter=1, learning_rate=1e-9).fit(X))
    heavy = ProximityPenalty("entropy", magnitude=1e4, gamma=1.0)
    moved = abs(entropy(tiny(**options).fit(X)) - start)
    held = abs(entropy(tiny(proximity=heavy, **options).fit(X)) - start)
    assert moved > 0.1 and held < 0.25 * moved


def test_annealing_is_the_papers():
    X, _ = planted(60, 0)
    annealed = Annealed(50.0, length=np.log(50) / -np.log(1e-3), shape="exponential")
    path = tiny(temperature=annealed).fit(X).temperature_path_
    assert path[0] == pytest.approx(50) and path[-1] == 1 and np.all(np.diff(path) <= 0)
    expected = np.maximum(1, 50 * 1e-3 ** (np.arange(30) / 30))
    np.testing.assert_allclose(path, expected, rtol=0.06)  # whole steps


def test_the_bad_start_of_the_paper():
    X, _ = planted(60, 0)
    sbn = tiny(initial_weight=-10.0, initial_prior=0.001, max_iter=1, learning_rate=1e-9).fit(X)
    np.testing.assert_allclose(sbn.components_, -10, atol=1e-6)
    assert sbn.network_.prior.detach().sigmoid().numpy() == pytest.approx(0.001, rel=1e-3)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.full((4, 3), 0.5), r"needs binary data: X must hold 0 and 1 only. Got 0.5"),
        (np.full((4, 3), -1), r"0 and 1 only. Got -1.0"),
        (sparse.csr_matrix(np.full((4, 3), 2)), r"0 and 1 only. Got 2.0"),
        (
            sparse.csr_matrix((np.ones(2), ([0, 0], [1, 1])), shape=(2, 3)) * 1.0,
            r"0 and 1 only. Got 2.0",
        ),
        (np.array([[0.0, np.nan]]), "NaN"),
        (np.zeros((0, 3)), "0 sample"),
    ],
)
def test_bad_data(X, message):
    with pytest.raises(ValueError, match=message):
        tiny().fit(X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden": ()}, r"'hidden' parameter .* sequence of ints .* Got \(\)"),
        ({"hidden": (3, 0)}, r"'hidden' parameter .* Got \(3, 0\)"),
        ({"hidden": (2.5,)}, r"'hidden' parameter .* Got \(2.5,\)"),
        ({"proximity": ProximityPenalty(gamma=0.0)}, r"'gamma' parameter .* \(0.0, 1.0\]"),
        ({"temperature": "variational"}, r"'temperature' parameter .* Got 'variational'"),
        ({"device": "cuda:99"}, r"'device' parameter .* PyTorch sees .* Got 'cuda:99'"),
    ],
)
def test_bad_parameters_leave_the_estimator_as_it_was(options, message):
    X, _ = planted(30, 0)
    sbn = tiny(max_iter=2).fit(X)
    assert_refuses(sbn, options, X, message, lambda sbn: sbn.transform(X))


@pytest.mark.parametrize("method", ["score", "score_samples"])
def test_bad_numbers_of_draws(method):
    X, _ = planted(30, 0)
    sbn = tiny(max_iter=2).fit(X)
    with pytest.raises(
        ValueError, match=r"'n_draws' parameter .*must be an int in the range \[1, inf\)"
    ):
        getattr(sbn, method)(X, n_draws=0)
    with pytest.raises(ValueError, match=r"'n_samples' parameter .*must be an int"):
        sbn.sample(0)


def test_a_fit_that_diverges_keeps_what_was_finite():
    X, _ = planted(60, 0)
    sbn = tiny(learning_rate=1e38)
    with pytest.raises(DivergenceError, match=r"diverged at step \d+ of 30: the loss is"):
        sbn.fit(X)
    assert np.all(np.isfinite(sbn.components_)) and sbn.n_iter_ >= 1
    assert np.all(np.isfinite(sbn.transform(X)))


def test_names():
    import pandas as pd

    X, _ = planted(40, 0)
    frame = pd.DataFrame(X, columns=[f"pixel {i}" for i in range(16)])
    sbn = tiny(max_iter=2).fit(frame)
    assert list(sbn.feature_names_in_) == list(frame.columns)
    assert list(sbn.get_feature_names_out()) == [f"sigmoidbeliefnetwork{i}" for i in range(4)]
    with pytest.raises(ValueError, match="feature names"):
        sbn.transform(frame.rename(columns={"pixel 0": "other"}))


def test_every_fitted_attribute_is_documented():
    X, _ = planted(40, 0)
    sbn = tiny(max_iter=2).fit(X)
    assert undocumented(sbn) <= {"feature_names_in_"}


class Thresholded(SigmoidBeliefNetwork):
    """Takes the data of scikit-learn's checks, which are not binary."""

    def __init__(self, hidden=(3,), *, max_iter=3, random_state=0):
        super().__init__(hidden, max_iter=max_iter, random_state=random_state)

    def _check_bits(self, X):
        return (X > 0.5).astype(X.dtype)


@parametrize_with_checks(
    [Thresholded()],
    expected_failed_checks=order_matters(
        "the draws of a datum depend on how many there are before it"
    ),
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_cuda_agrees_with_cpu(cuda):
    X, _ = planted(200, 0)
    options = dict(max_iter=100, proximity="entropy", learning_rate=1e-3)
    cpu, gpu = tiny(**options).fit(X), tiny(**options, device="cuda").fit(X)
    np.testing.assert_allclose(gpu.components_, cpu.components_, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(gpu.history_["elbo"], cpu.history_["elbo"], rtol=1e-4)
