"""The posterior form of annealing (Abrol et al. 2014), as its equations and algorithms print it.

    python -m bench.studies.posterior_form [--seeds 3] [--corpus bbc_news --corpus 20ng_etm]

The paper prints three things that do not agree.  A tempered posterior (Eq. 5) has
lambda = (eta + s + T - 1) / T, for s the sum of the statistics, as it has
gamma = (alpha + n phi + T - 1) / T.  Eqs. 13 and 20 leave T - 1 out of lambda: (eta + s) / T.
Algorithms 1 and 2 divide by T once more, so that they end at (eta + s) / T^2.  The library follows
Eqs. 13 and 20.  The other two are put in their place here, and everything else is the same.

K = 50, the mean field from random topics, T falls linearly over a third of the fit, from 2 and from
3.9.  Online: tau = 64, kappa = .7, minibatches of 32, 10 passes.  Batch: 30 passes.  The priors are
alpha = .1, eta = .01, and those of the paper, alpha = .01, eta = 1.  500 documents drawn at random
are held out, and 4,000 of the others at most are fitted.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from annealvi import Annealed, Fixed, TemperedLDA
from annealvi.datasets import load_corpus
from annealvi.metrics import document_completion
from annealvi.model import UNTEMPERED, Tempering
from annealvi.models.lda.topics import Topics
from annealvi.models.lda.weights import prior_rows
from bench import parser
from bench.markdown import spread, table

HEAD = ["corpus", "alpha, eta", "steps", "T0", "topics"]
HEAD += ["ELBO per word, T = 1", "held out per word"]
FORMS = ("(eta + s) / T, as Eqs. 13, 20", "(eta + s + T - 1) / T", "(eta + s) / T^2, as Algs. 1, 2")


@contextmanager
def topics_of(form: str) -> Iterator[None]:
    """Let the posterior form have other topics: one of FORMS."""
    step = Topics.step

    def eta_rows(self: Topics, dtype: Any, tempering: Tempering = UNTEMPERED) -> NDArray:
        """What lambda is without statistics."""
        b = float(np.mean(tempering.inverse)) if tempering.form == "posterior" else 1.0
        eta = np.asarray(self.eta)
        tempered = b * eta + 1 - b if form == FORMS[1] else b * b * eta
        return prior_rows(tempered, (self.n_features, self.n_topics), 1.0, dtype)

    def smaller_step(
        self: Topics, statistics: Any, rho: float, scale: float, **options: Any
    ) -> None:
        tempering = options["tempering"]
        hot = tempering.form == "posterior"  # the statistics have been divided by T once
        b = float(np.mean(tempering.inverse)) if hot else 1.0
        step(self, statistics, rho, scale * b, **options)

    if form == FORMS[0]:
        yield
    elif form == FORMS[1]:
        with mock.patch.object(Topics, "eta_rows", eta_rows):
            yield
    else:
        with (
            mock.patch.object(Topics, "eta_rows", eta_rows),
            mock.patch.object(Topics, "step", smaller_step),
        ):
            yield


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--corpus", action="append", help="by default bbc_news and 20ng_etm")
    options.add_argument("--topics", type=int, default=50)
    arguments = options.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for corpus in arguments.corpus or ("bbc_news", "20ng_etm"):
        X = load_corpus(corpus).data
        order = np.random.RandomState(0).permutation(X.shape[0])
        held_out, train = X[order[:500]], X[order[500:4500]]
        for alpha, eta in ((0.1, 0.01), (0.01, 1.0)):
            for method in ("online", "batch"):
                settings: dict[str, Any] = dict(
                    n_components=arguments.topics,
                    doc_topic_prior=alpha,
                    topic_word_prior=eta,
                    preset="sklearn",
                    learning_method=method,
                    learning_offset=64,
                    learning_decay=0.7,
                    batch_size=32,
                    max_iter=10 if method == "online" else 30,
                )
                for start in (1.0, 2.0, 3.9):
                    temperature: Any = Annealed(start, shape="linear", form="posterior")
                    for form in FORMS:
                        if start == 1:
                            temperature, form = Fixed(1), "none: T = 1"
                        elbo, score = [], []
                        for seed in range(arguments.seeds):
                            with topics_of(form if start > 1 else FORMS[0]):
                                lda = TemperedLDA(
                                    **settings, temperature=temperature, random_state=seed
                                ).fit(train)
                            elbo.append(-float(np.log(lda.bound_)))
                            score.append(document_completion(lda, held_out))
                        row = [corpus, f"{alpha:g}, {eta:g}", method, f"{start:g}", form]
                        rows.append([*row, spread(elbo), spread(score)])
                        print(rows[-1], flush=True)
                        if start == 1:
                            break
    print(table(HEAD, rows))


if __name__ == "__main__":
    main()
