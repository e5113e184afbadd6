"""Stubs of models, and the energies and log C(T) that they report to a learned temperature."""

import numpy as np
from scipy.special import softmax

from annealvi import Variational
from annealvi.model import LocalStep
from annealvi.partition import LogPartition

GRID = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
B = 1 / GRID


class Words:
    """A model whose batches bring log C, as documents do."""

    known = {"n_words": 1000.0, "n_features": 7}  # noqa: RUF012

    def __init__(self):
        self.asked = None

    def normalise_at(self, inverse):
        self.asked = inverse

    def log_mean_unit(self, inverse):
        return -1.5 * np.log(inverse)

    def hyperparameters(self):
        return self.known


class Gauss:
    """A model that knows its normaliser."""

    n_samples = 30

    def log_partition(self, inverse):
        return -15.0 * np.log(inverse)


def show(planned, energy, log_c=None, n_units=100.0, scale=1.0):
    log_c = None if log_c is None else np.asarray(log_c, dtype=float)
    step = LocalStep(None, energy, log_partition=log_c, n_units=n_units, unit="word")
    planned.observe(step, scale)


def vt(**settings):
    return Variational(**(dict(t_max=16.0, grid=5, damping=1.0, monotone=False) | settings))


def posterior(energy, log_c):
    return softmax(B * energy - log_c)


def made_for(**hyperparameters):
    return LogPartition(GRID, 40 * np.log(GRID), made_for=hyperparameters)
