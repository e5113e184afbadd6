"""Proximity penalties on a model of your own
==========================================

Fits Bayesian logistic regression with proximity penalties, one of which is on the predictions.

Prints the ELBO that each method reached and the number of steps.  Draws the ELBO along the fits.

::

    python examples/proximity_logistic_regression.py [--seeds 1] [--iterations 1000] [--full]
        [--gamma 1e-10] [--memory 0.999] [--average parameters] [--output FILE.png]

A footnote of Altosaar, Ranganath, Blei (2018), *Proximity Variational Inference*, mentions Bayesian
logistic regression, and the code of the paper contains the model.  The model has weights w ~ N(0,
s0^2) for the features and the intercept, y ~ Bernoulli(sigmoid(x w)), and a Gaussian q(w) with a
mean and a standard deviation for each weight.  The data are scikit-learn's standardised breast
cancer data, of which a third is held out.  The ELBO can be computed by quadrature, because x w is
Gaussian under q.  Adam maximises it.

The methods are plain variational inference (VI), deterministic annealing, and proximity inference
(PVI) with four statistics: the entropy of q, its KL divergence from the prior, its mean and
variance, or the predictions for the training data.  The predictions are an example of your own
statistic: a function f(q, prior), whose gradient PyTorch computes.  The last method also has its
own distance, sqrt(1 + u^2) - 1.

The good start is the prior.  In the bad start, the means of q are drawn from N(0, 5^2), and its
standard deviations are only 0.01.

Options
-------
--gamma
    The magnitude k falls from k0 = abs(ELBO) at the start to gamma times k0.
--average
    What is averaged: ``parameters``, as in the paper, or ``statistic``, as in its authors' code.
--memory
    beta_2 of Adam, which averages squared gradients over about 1 / (1 - memory) steps.  With a long
    memory, steps stay small long after a large penalty has ended.
--full
    3,000 iterations and 5 seeds.  A seed draws the held-out data and the bad start.

The ELBO is concave in the means and standard deviations of q.  So there is one optimum, and every
method reaches it after enough steps.  Only the paths differ.  The table contains the final ELBO,
the steps until the ELBO is within one nat of the best final ELBO, and the log-likelihood of
held-out data under the mean of q's predictions.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from _deep import parse, parser, with_average
from _shared import at_least_one, markdown, mean_and_sd, save
from matplotlib import pyplot
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import Tensor
from torch.distributions import Distribution, Normal, kl_divergence
from torch.nn.functional import logsigmoid

from annealvi.deep import ProximityPenalty

PRIOR_SCALE = 1.0
RATE = 0.05
BAD_SCALE = 5.0
BAD_SIGMA = 0.01
STARTS = ("good", "bad")
NODES, WEIGHTS = map(torch.tensor, np.polynomial.hermite_e.hermegauss(32))
WEIGHTS = WEIGHTS / WEIGHTS.sum()


class Data:
    """Features with a column of ones, and classes, of training and of held-out data."""

    def __init__(self, seed: int) -> None:
        bunch = load_breast_cancer()
        train, test, y_train, y_test = train_test_split(
            bunch.data, bunch.target, test_size=1 / 3, random_state=seed
        )
        scaler = StandardScaler().fit(train)
        self.x = torch.tensor(np.c_[scaler.transform(train), np.ones(len(train))])
        self.x_test = torch.tensor(np.c_[scaler.transform(test), np.ones(len(test))])
        self.y = torch.tensor(2.0 * y_train - 1.0)
        self.y_test = torch.tensor(2.0 * y_test - 1.0)


def logits(q: Distribution, x: Tensor) -> Tensor:
    """x w at the nodes of the quadrature, of shape (n, nodes)."""
    return (x @ q.mean)[:, None] + (x.square() @ q.variance).sqrt()[:, None] * NODES


def log_likelihood(q: Distribution, x: Tensor, y: Tensor) -> Tensor:
    """E_q[log p(y | x, w)] of each datum."""
    return logsigmoid(y[:, None] * logits(q, x)) @ WEIGHTS


def held_out(q: Distribution, data: Data) -> float:
    """Mean log of the predictive probability of held-out data."""
    probability = (data.y_test[:, None] * logits(q, data.x_test)).sigmoid() @ WEIGHTS
    return float(probability.log().mean())


def smooth(u: Tensor) -> Tensor:
    """Nearly u^2 / 2 close to 0, and |u| far from it."""
    return (1 + u.square()).sqrt() - 1


def methods(data: Data, gamma: float, average: str) -> dict[str, ProximityPenalty | None]:
    """The penalty of each method; annealing and VI have none."""

    def predictions(q: Distribution, prior: Distribution) -> Tensor:
        return (data.x @ q.mean).sigmoid()

    statistics: dict[str, Any] = {
        "PVI, entropy": "entropy",
        "PVI, KL": "kl",
        "PVI, mean and variance": "mean_variance",
        "PVI, predictions": predictions,
    }
    options: dict[str, Any] = dict(gamma=gamma, average=average)
    penalties: dict[str, ProximityPenalty | None] = {"VI": None, "annealing": None}
    for name, statistic in statistics.items():
        penalties[name] = ProximityPenalty(statistic, **options)
    smooth_penalty = ProximityPenalty(predictions, distance=smooth, **options)
    return penalties | {"PVI, predictions, smooth": smooth_penalty}


def begin(start: str, n_weights: int, seed: int) -> tuple[Tensor, Tensor]:
    """Means and logarithms of standard deviations of q at the start."""
    if start == "good":
        return torch.zeros(n_weights).double(), torch.full((n_weights,), PRIOR_SCALE).double().log()
    drawn = BAD_SCALE * np.random.RandomState(seed).standard_normal(n_weights)
    return torch.tensor(drawn), torch.full((n_weights,), math.log(BAD_SIGMA)).double()


def fit(
    data: Data,
    name: str,
    penalty: ProximityPenalty | None,
    start: str,
    seed: int,
    options: argparse.Namespace,
) -> tuple[list[float], float]:
    """Return the ELBO of each step, and the log-likelihood of held-out data at the end."""
    mean, log_sigma = begin(start, data.x.shape[1], seed)
    mean.requires_grad_()
    log_sigma.requires_grad_()
    prior = Normal(torch.zeros_like(mean).detach(), PRIOR_SCALE)
    optimiser = torch.optim.Adam([mean, log_sigma], lr=RATE, betas=(0.9, options.memory))
    n_steps = options.iterations
    running = None if penalty is None else penalty.plan(n_steps)
    path: list[float] = []
    for step in range(n_steps):
        q = Normal(mean, log_sigma.exp())
        elbo = log_likelihood(q, data.x, data.y).sum() - kl_divergence(q, prior).sum()
        path.append(float(elbo.detach()))
        loss = -elbo
        if running is not None:
            past = None  # the penalty keeps the average of the statistic itself
            if options.average == "parameters":
                average, spread = running.update_average(torch.cat([mean, log_sigma])).chunk(2)
                with torch.no_grad():
                    past = running.statistic([(Normal(average, spread.exp()), prior)])
            loss = loss + running(running.statistic([(q, prior)]), step, elbo.detach(), past)
        elif name == "annealing":
            t = max(1.0, abs(path[0]) * options.gamma ** (step / n_steps))
            loss = loss - (t - 1.0) * q.entropy().sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    with torch.no_grad():
        return path, held_out(Normal(mean, log_sigma.exp()), data)


def table(
    results: dict[tuple[str, str], list[tuple[list[float], float]]], names: Sequence[str]
) -> str:
    """What the methods reached from each start."""
    head = ["method"]
    for start in STARTS:
        head += [f"{start} start: ELBO", "steps", "held-out log-likelihood"]
    seeds = range(len(results[names[0], STARTS[0]]))
    best = [max(runs[seed][0][-1] for runs in results.values()) for seed in seeds]
    rows = []
    for name in names:
        cells = []
        for start in STARTS:
            runs = results[name, start]
            arrived = [steps_to(path, top - 1.0) for (path, _), top in zip(runs, best, strict=True)]
            cells.append(mean_and_sd([path[-1] for path, _ in runs], 2))
            cells.append("never" if None in arrived else mean_and_sd(arrived, 0))
            cells.append(mean_and_sd([after for _, after in runs], 4))
        rows.append([name, *cells])
    return markdown(head, rows)


def steps_to(path: list[float], value: float) -> int | None:
    """The step from which on the path is above a value; None if there is none."""
    below = np.flatnonzero(np.array(path) < value)
    last = int(below[-1]) + 1 if len(below) else 0
    return last if last < len(path) else None


def draw(
    results: dict[tuple[str, str], list[tuple[list[float], float]]], names: Sequence[str]
) -> Any:
    """The ELBO along the first seed's fits, one panel a start."""
    figure, axes = pyplot.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    best = max(runs[0][0][-1] for runs in results.values())
    for ax, start in zip(axes, STARTS, strict=True):
        for name in names:
            path = results[name, start][0][0]
            ax.plot(1.0 + best - np.minimum(path, best), label=name, lw=1.5)
        ax.set(xlabel="iteration", yscale="log", title=f"{start} start")
    axes[0].set_ylabel("1 + nats below the best ELBO")
    axes[1].legend(fontsize=8)
    return figure


def main(argv: Sequence[str] | None = None) -> None:
    description = (__doc__ or "").partition("\n")[0]
    options = parser(description, 1000, "proximity_logistic_regression.png")
    options.add_argument("--gamma", type=float, default=1e-10, help="how far k falls")
    with_average(options)
    options.add_argument("--memory", type=float, default=0.999, help="beta_2 of Adam")
    options.add_argument("--full", action="store_true", help="3,000 iterations and 5 seeds")
    arguments = parse(options, argv, iterations=3000, seeds=5)
    at_least_one(options, arguments, ("seeds", "iterations"))
    results: dict[tuple[str, str], list[tuple[list[float], float]]] = {}
    names: list[str] = []
    for seed in range(arguments.seeds):
        data = Data(seed)
        penalties = methods(data, arguments.gamma, arguments.average)
        names = list(penalties)
        for start in STARTS:
            for name, penalty in penalties.items():
                result = fit(data, name, penalty, start, seed, arguments)
                results.setdefault((name, start), []).append(result)
    print(table(results, names))
    save(draw(results, names), arguments.output, dpi=110)


if __name__ == "__main__":
    main()
