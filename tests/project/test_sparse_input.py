"""No public function reads a sparse matrix before its structure has been checked.

The calls are made in a process of their own, because a function that does read damaged arrays
may end it.  It prints a line before each call and one after it.
"""

from __future__ import annotations

import ast
import copy
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from annealvi import TemperedLDA, TemperedMultinomialMixture
from annealvi.callbacks import HeldOut
from annealvi.corpus import to_gensim
from annealvi.metrics import document_completion, split_tokens, topic_coherence
from annealvi.models.lda_prior import LDAPrior
from annealvi.partition import log_partition
from annealvi.topics import TopicModel, choose_n_topics, describe, reduce_topics, refine_topics
from annealvi.topics.source import Source
from bench import CHECKOUT
from tests import damaged
from tests.damaged import X

#: Parameters that may be sparse, in the words of their documentation.
TAKES_SPARSE = re.compile(r"^\w+ : (\{array-like, sparse matrix\}|array or sparse matrix)", re.M)
OF_LDA = ("partial_fit", "fit_transform", "transform", "score", "perplexity", "predict")
OF_LDA += ("document_temperatures", "_perplexity_precomp_distr")
#: Methods of a variational autoencoder.
OF_VAE = ("transform", "score", "elbo", "score_samples", "dead_units")
Call = Callable[[Any], Any]


def methods(fitted, name, *listed):
    """Calls of the methods of an estimator; `fit` is called on a clone, others on a copy."""
    calls = {f"{name}.fit": lambda Z: clone(fitted).fit(Z)}
    for method in listed:
        calls[f"{name}.{method}"] = lambda Z, m=method: getattr(copy.copy(fitted), m)(Z)
    return calls


def core() -> dict[str, Call]:
    """Every public function and method outside annealvi.deep that takes sparse matrices."""
    lda = TemperedLDA(3, max_iter=1, random_state=0).fit(X)
    mixture = TemperedMultinomialMixture(3, max_iter=2, tol=0, random_state=0).fit(X)
    words = np.arange(X.shape[1])
    return (
        methods(lda, "TemperedLDA", *OF_LDA)
        | methods(mixture, "TemperedMultinomialMixture", "transform", "bic", "predict_proba")
        | {
            "posterior_log_partition": lambda Z: lda.posterior_log_partition([1.0, 2.0], Z),
            "log_partition": lambda Z: log_partition(lda, [1.0, 2.0], "posterior", data=Z),
            "split_tokens": split_tokens,
            "document_completion": lambda Z: document_completion(lda, Z),
            "HeldOut": HeldOut,
            "topic_coherence": lambda Z: topic_coherence(lda, Z, n_words=3),
            "LDAPrior.from_counts": lambda Z: LDAPrior.from_counts(Z, 3),
            "describe": lambda Z: describe(lda, Z),
            "read": lambda Z: Source(lda).read(Z, "documents"),
            "TemperedLDA.fit_predict": lambda Z: clone(lda).fit_predict(Z),
            "reduce_topics": lambda Z: reduce_topics(lda, 2, Z),
            "refine_topics": lambda Z: refine_topics(lda, Z),
            "choose_n_topics": lambda Z: choose_n_topics(Z, [2], n_runs=1),
            "TopicModel.fit_counts": lambda Z: TopicModel(2).fit_counts(Z, map(str, words)),
            "to_gensim": lambda Z: to_gensim(Z, words),
        }
    )


def deep() -> dict[str, Call]:
    from annealvi.deep import PoissonDEF, SigmoidBeliefNetwork, VariationalAutoencoder

    counts, bits = X.toarray(), (X.toarray() > 0).astype(float)
    poisson = PoissonDEF(2, max_iter=1, random_state=0).fit(counts)
    sbn = SigmoidBeliefNetwork((2,), max_iter=1, random_state=0).fit(bits)
    vae = VariationalAutoencoder(2, max_iter=1, random_state=0).fit(bits)
    return (
        methods(poisson, "PoissonDEF", "transform", "score", "score_samples", "perplexity")
        | methods(sbn, "SigmoidBeliefNetwork", "transform", "score", "score_samples")
        | methods(vae, "VariationalAutoencoder", *OF_VAE)
    )


def outcomes(calls):
    """Print what each call answers to each damaged matrix: run in a process of its own."""
    matrices = dict(damaged.unsound())
    for name, call in calls().items():
        for damage, Z in matrices.items():
            print("begun", name, damage, sep="\t", flush=True)
            try:
                call(Z)
            except ValueError as error:
                print("refused" if str(error) else "no message", name, damage, sep="\t")
            except BaseException as error:
                print(f"{type(error).__name__}: {error}", name, damage, sep="\t")
            else:
                print("accepted", name, damage, sep="\t")


@pytest.mark.slow
@pytest.mark.parametrize("calls", [core, pytest.param(deep, marks=pytest.mark.deep)])
def test_damaged_matrices_are_refused(calls):
    script = (
        f"import sys; sys.path[:] = {sys.path!r}\n"
        "from tests.project import test_sparse_input as here\n"
        f"here.outcomes(here.{calls.__name__})"
    )
    command = [sys.executable, "-W", "error", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, (lines[-1:], done.stderr[-2000:])
    found = [line.split("\t") for line in lines if not line.startswith("begun")]
    assert [line for line in found if line[0] != "refused"] == []
    assert set(Counter(line[1] for line in found).values()) == {len(dict(damaged.unsound()))}


def documented():
    """Public functions and methods whose documentation says that they take sparse matrices."""
    for path in (CHECKOUT / "annealvi").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            public = isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name[0] != "_"
            if public and TAKES_SPARSE.search(ast.get_docstring(node) or ""):
                yield path.stem, node.name


@pytest.mark.slow
def test_every_function_that_takes_sparse_matrices_is_called():
    called = {name.split(".")[-1] for name in {**core(), **dict.fromkeys(OF_VAE)}}
    doors = {"matrices", "words"}  # the checks themselves
    missing = {name for path, name in documented() if path not in doors and name not in called}
    assert missing == set()
