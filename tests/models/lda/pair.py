"""An LDA together with an engine, which tests call as one model."""

from dataclasses import dataclass, replace

import numpy as np

from annealvi.model import UNTEMPERED
from annealvi.models.lda import model
from annealvi.models.lda.cpu import CPUEngine
from annealvi.models.lda.engine import EStep, sparsity
from annealvi.models.lda.shards import engine_of


@dataclass(frozen=True)
class LocalOptions(model.LocalOptions):
    """The options of a test: documents may go on from their gamma, and keep all topics."""

    warm: bool = False
    prune: bool = True


class Engine(CPUEngine):
    """Documents that are `warm` start at the gamma of the step before."""

    def start(self, lda, rows, rng):
        return lda.gamma[rows] if lda.options.warm else super().start(lda, rows, rng)

    def fit_block(self, lda, step, *args, **options):
        if not lda.options.prune:
            step = replace(step, least_share=0.0)
        super().fit_block(lda, step, *args, **options)


class LDA(model.LDA):
    """Data and the engine that changes them."""

    def __init__(self, *shape, options=None, n_threads=1, **given):
        super().__init__(*shape, options=LocalOptions() if options is None else options, **given)
        self.gamma = None
        self.engine = Engine(n_threads)

    def use(self, device):
        self.engine = engine_of(device, self.engine.n_threads, self.n_topics, self.dtype)

    def start_documents(self, n_samples):
        """Let all documents start at 1, and go on from where they are in later steps."""
        self.gamma = np.ones((n_samples, self.n_topics), self.dtype)

    def set_priors(self, alpha, eta):
        self.alpha = alpha
        self.set_eta(eta)

    def local_step(self, batch, tempering, moments=False):
        return self.engine.e_step(self, batch, tempering, moments)

    def global_step(self, statistics, rho, scale, tempering):
        before = self.effective_alpha(tempering)
        self.engine.m_step(self, statistics, rho, scale, tempering)
        self.engine.pull(self)
        if self.gamma is not None:  # the counts gamma - alpha do not change with alpha
            self.gamma += self.effective_alpha(tempering) - before

    def infer(self, X, tempering=UNTEMPERED):
        return self.engine.infer(self, X, tempering)

    def bounds(self, X, gamma, tempering=UNTEMPERED):
        """Each document's part of the annealed ELBO."""
        return self.engine.bound(self, X, gamma, tempering)

    def energies(self, X, gamma, tempering=UNTEMPERED):
        return self.engine.energies(self, X, gamma, tempering)

    def elbo(self, X, gamma=None, tempering=UNTEMPERED):
        """The objective F(b), of documents and topics."""
        if gamma is None:
            documents = self.engine.document_bound(self, X, tempering, tempering)
        else:
            documents = self.bounds(X, gamma, tempering).sum()
        return documents + self.bound(tempering.of_priors)

    def fit(self, X, gamma, tempering, *, kappa=0.0, **outputs):
        """Fit gamma of documents in place, and write the outputs."""
        step = EStep.of(self, tempering, X.shape[0])
        self.engine.fit(self, replace(step, sparsity=kappa), X, gamma, **outputs)

    def kappa(self, tempering):
        return sparsity(self, tempering)


def of(estimator):
    """The LDA that an estimator has fitted, with an engine."""
    paired = object.__new__(LDA)
    vars(paired).update(vars(estimator._state.model))
    paired.gamma, paired.engine = None, CPUEngine()
    return paired
