"""The loop of deep fits: it repeats, resumes exactly, and keeps what is finite."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import nn

from annealvi.checks import checked, unchanged_on_error
from annealvi.deep.estimator import DeepEstimator, Widths
from annealvi.deep.penalties import ProximityPenalty
from annealvi.deep.training import Noise, Outcome, SparseRows, Trainer, as_rows
from annealvi.exceptions import DivergenceError
from tests.asserts import refused
from tests.callbacks import stop_at
from tests.deep.fits import weights


@dataclass(eq=False, repr=False)
class Sum(DeepEstimator):
    """Learns to add five noisy numbers."""

    ARCHITECTURE: ClassVar = {"hidden": Widths()}
    hidden: tuple = (3,)
    learning_rate: float = 0.01
    batch_size: int = 32
    max_iter: int = 60
    random_state: int = 0

    def _network(self, architecture, X=None):
        return nn.Sequential(nn.Linear(5, self.hidden[0]), nn.Linear(self.hidden[0], 1))

    def objective(self, network, X, noise):
        def outcome(rows, step):
            x = X[rows]
            error = network(x + 0.1 * noise.normal(*x.shape)) - x.sum(dim=1, keepdim=True)
            loss = error.square().mean()
            return Outcome(loss, -loss)

        return outcome

    @checked
    def fit(self, X, y=None, *, resume=None, penalty=None):
        with unchanged_on_error(self) as keep:
            return self._fit(X, self.objective, keep, resume, penalty=penalty)


@pytest.fixture
def X():
    return np.random.RandomState(0).randn(101, 5).astype(np.float32)


def same_weights(one, other):
    return torch.equal(weights(one), weights(other))


def test_it_learns_and_repeats_and_leaves_the_global_generator_alone(X):
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    one, two, other = Sum().fit(X), Sum().fit(X), Sum(random_state=1).fit(X)
    assert torch.equal(torch.rand(3), expected)
    assert one.history_["elbo"][-5:].mean() > one.history_["elbo"][:5].mean() + 0.5
    assert same_weights(one, two) and not same_weights(one, other)
    assert one.n_iter_ == len(one.history_["elbo"]) == 60
    assert one.history_["pass"][-1] == pytest.approx(60 * 32 / 101)


def test_a_resumed_fit_is_the_fit_that_never_stopped(X, tmp_path):
    path = tmp_path / "state.pt"
    whole = Sum().fit(X)
    begun = Sum(callback=stop_at(23, path=path)).fit(X)
    resumed = Sum(random_state=5).fit(X, resume=path)
    assert begun.n_iter_ == 23 and not same_weights(begun, whole)
    assert same_weights(resumed, whole)
    np.testing.assert_array_equal(resumed.history_["elbo"], whole.history_["elbo"])
    assert Sum(max_iter=80).fit(X, resume=path).n_iter_ == 80


def test_a_fit_that_is_stopped_shows_its_last_steps(X, tmp_path):
    path = tmp_path / "state.pt"
    whole = Sum(max_iter=3000).fit(X).history_  # a record each third step
    begun = Sum(max_iter=3000, callback=stop_at(2)).fit(X)
    assert begun.history_["step"].tolist() == [2] and np.isfinite(begun.history_["elbo"][0])
    begun.save_state(path)
    resumed = Sum(max_iter=3000).fit(X, resume=path).history_
    np.testing.assert_array_equal(resumed["elbo"], whole["elbo"])


def test_a_resumed_fit_takes_the_new_learning_rate(X, tmp_path):
    """As the error of a fit that diverged says to."""
    path = tmp_path / "state.pt"
    begun = Sum(max_iter=20).fit(X)
    begun.save_state(path)
    slow = Sum(max_iter=30, learning_rate=1e-12).fit(X, resume=path)
    torch.testing.assert_close(weights(begun), weights(slow), rtol=0, atol=1e-10)


def test_what_is_no_state_is_refused(X, tmp_path):
    path = tmp_path / "state.pt"
    path.write_text("not a state")
    refused("is not an annealvi file, or it is damaged", Sum().fit, X, resume=path)
    torch.save({"weights": 1}, path)
    refused("is not an annealvi file, or it is damaged", Sum().fit, X, resume=path)
    with pytest.raises(FileNotFoundError):
        Sum().fit(X, resume=tmp_path / "missing.pt")


def test_a_diverging_fit_keeps_a_finite_average(X, tmp_path):
    """What a penalty remembers is a part of the state too."""

    class Penalised(Sum):
        def objective(self, network, X, noise):
            def outcome(rows, step):
                value = torch.cat([network[i].weight.flatten() for i in range(2)])
                if step == self.bad:
                    value = value * torch.nan
                loss = (network[1](network[0](X[rows])) - X[rows].sum(dim=1)[:, None]).square()
                return Outcome(loss.mean() + self.penalty(value, step, 0.0), -loss.mean())

            return outcome

        def fit(self, X, resume=None):
            self.penalty = ProximityPenalty(magnitude=1.0).plan(60)
            return super().fit(X, resume=resume, penalty=self.penalty)

    model = Penalised()
    model.bad = 7
    refused("at step 8 of 60", model.fit, X, error=DivergenceError)
    memory = model._trainer.penalty.memory
    assert bool(torch.isfinite(memory.sum).all())
    assert memory.weight == pytest.approx((1 - 0.9999**7) / (1 - 0.9999))
    model.save_state(tmp_path / "state.pt")
    model.bad = None
    assert model.fit(X, resume=tmp_path / "state.pt").n_iter_ == 60


def test_an_error_before_the_first_step_leaves_the_estimator_as_it_was(X):
    model = Sum()
    with pytest.raises(DivergenceError, match=r"at step 1 of 60: the loss is nan.* values in X\.$"):
        model.fit(np.full_like(X, np.nan))
    assert not hasattr(model, "network_")
    model.fit(X)
    network = model.network_
    with pytest.raises(DivergenceError):
        model.fit(np.full_like(X, np.nan))
    assert model.network_ is network


def test_an_interrupted_fit_is_kept(X):
    model = Sum(callback=stop_at(11, KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    assert model.n_iter_ == 11


def test_every_row_is_taken_once_a_pass():
    options = dict(n_rows=10, batch_size=5)
    module = nn.Linear(1, 1)
    training = Trainer(module, torch.optim.SGD(module.parameters()), Noise(0), **options)
    passes = [torch.cat([training._next_rows() for _ in range(2)]) for _ in range(3)]
    assert all(sorted(rows.tolist()) == list(range(10)) for rows in passes)
    assert not torch.equal(passes[0], passes[1])


@pytest.fixture
def counts():
    X = np.random.RandomState(0).poisson(0.4, (9, 7)).astype(np.float32)
    X[4] = 0
    return X


def test_batches_are_rows(counts):
    rows = torch.tensor([8, 4, 0, 3])
    dense = as_rows(counts, torch.device("cpu"))
    for data in (dense, SparseRows(sparse.csr_matrix(counts), "cpu")):
        assert len(data) == 9
        np.testing.assert_array_equal(data[rows], counts[rows])


def test_padding_adds_nothing(counts):
    columns, values = SparseRows(sparse.csr_matrix(counts), "cpu").padded(torch.tensor([4, 1]))
    assert columns.shape == values.shape == (2, np.count_nonzero(counts[1]))
    assert not values[0].any() and not columns[0].any()
    np.testing.assert_array_equal(values[1], counts[1][counts[1] > 0])
    np.testing.assert_array_equal(columns[1], np.flatnonzero(counts[1]))


def test_nothing_at_all():
    empty = SparseRows(sparse.csr_matrix((3, 5)), "cpu")
    assert torch.equal(empty[torch.tensor([0, 2])], torch.zeros(2, 5))
    assert not empty.padded(torch.tensor([1]))[1].any()


def test_noise():
    noise = Noise(0)
    drawn = noise.bernoulli(torch.tensor([[0.0, 0.3, 1.0]]).expand(20_000, 3))
    assert set(drawn.unique().tolist()) == {0.0, 1.0}
    np.testing.assert_allclose(drawn.mean(dim=0), [0, 0.3, 1], atol=0.015)
    np.testing.assert_allclose(noise.poisson(4 * torch.ones(20_000)).mean(), 4, atol=0.06)
    assert abs(float(noise.normal(20_000).std()) - 1) < 0.02
    assert torch.equal(pickle.loads(pickle.dumps(noise)).uniform(4), noise.uniform(4))
