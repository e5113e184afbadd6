"""scikit-learn as the oracle: the same numbers at T = 1, and its own test suite."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.datasets import make_multilabel_classification
from sklearn.decomposition import LatentDirichletAllocation

from annealvi import TemperedLDA
from tests.marks import cases

pytestmark = pytest.mark.oracle


def synthetic():
    X, _ = make_multilabel_classification(n_samples=80, n_features=120, length=80, random_state=0)
    return sparse.csr_matrix(X.astype(float))


@pytest.mark.parametrize("method", ["batch", "online"])
@cases(
    ("name", "container"),
    ("synthetic", sparse.csr_matrix),
    pytest.param("synthetic", np.asarray, marks=pytest.mark.slow),
    pytest.param("arxiv", sparse.csr_matrix, marks=pytest.mark.slow),
    pytest.param("bbc_news", sparse.csr_matrix, marks=pytest.mark.slow),
    pytest.param("bbc_news", np.asarray, marks=pytest.mark.slow),
)
def test_same_topics_after_each_iteration(name, method, container, corpus):
    if name == "synthetic":
        X = synthetic()
    elif name == "arxiv":
        from annealvi.datasets import load_arxiv_abstracts

        X = load_arxiv_abstracts().data[:80]
    else:
        X = corpus(name)[:80]
    X = container(X.toarray() if container is np.asarray else X)
    for n_iter in range(1, 6):
        settings = dict(n_components=8, learning_method=method, batch_size=32, max_iter=n_iter)
        settings |= dict(mean_change_tol=0, random_state=7)
        theirs = LatentDirichletAllocation(**settings).fit(X)
        ours = TemperedLDA(**settings, preset="sklearn").fit(X)
        difference = np.abs(ours.components_ - theirs.components_).sum()
        assert difference / np.abs(theirs.components_).sum() < 1e-7
    assert_allclose(ours.exp_dirichlet_component_, theirs.exp_dirichlet_component_, rtol=1e-4)
    assert_allclose(ours.transform(X), theirs.transform(X), atol=1e-5)
    assert ours.score(X) == pytest.approx(theirs.score(X), rel=1e-7)
    assert ours.bound_ == pytest.approx(theirs.bound_, rel=1e-7)
    assert (ours.n_iter_, ours.n_batch_iter_) == (theirs.n_iter_, theirs.n_batch_iter_)


def test_same_topics_after_partial_fits():
    X = synthetic()
    settings = dict(n_components=5, total_samples=80, batch_size=25, random_state=0)
    theirs, ours = LatentDirichletAllocation(**settings), TemperedLDA(**settings, preset="sklearn")
    for _ in range(3):
        theirs.partial_fit(X)
        ours.partial_fit(X)
        difference = np.abs(ours.components_ - theirs.components_).sum()
        assert difference / np.abs(theirs.components_).sum() < 1e-6
        assert ours.n_batch_iter_ == theirs.n_batch_iter_
    for part in (False, True):
        assert ours.perplexity(X, part) == pytest.approx(theirs.perplexity(X, part), rel=1e-6)
    assert not hasattr(ours, "bound_")


@pytest.mark.slow
def test_same_stopping(capsys):
    X = synthetic()
    settings = dict(
        n_components=3, max_iter=60, evaluate_every=2, perp_tol=0.05, verbose=1, random_state=0
    )
    theirs = LatentDirichletAllocation(**settings).fit(X)
    their_lines = capsys.readouterr().out
    ours = TemperedLDA(**settings, preset="sklearn").fit(X)
    our_lines = capsys.readouterr().out
    assert ours.n_iter_ == theirs.n_iter_ < 59

    def numbers(text):
        return [[float(x) for x in re.findall(r"[\d.]+\d", line)] for line in text.splitlines()]

    for our_line, their_line in zip(numbers(our_lines), numbers(their_lines), strict=True):
        assert our_line == pytest.approx(their_line, abs=2e-4)
    assert re.sub(r"[\d.]+", "#", our_lines) == re.sub(r"[\d.]+", "#", their_lines)


#: Parameters whose defaults are scikit-learn's; the others are open, settled by the fit.
SAME = {"n_components", "total_samples", "evaluate_every", "perp_tol", "n_jobs"}
SAME |= {"verbose", "random_state"}


def test_every_parameter_and_its_default():
    theirs = LatentDirichletAllocation().get_params()
    ours = TemperedLDA().get_params()
    assert theirs.keys() <= ours.keys()
    for name in SAME:
        assert ours[name] == theirs[name]
    own = {"temperature", "estimate", "init", "n_init"}
    for name in (theirs.keys() - SAME) | own:
        assert ours[name] in (None, "auto", theirs.get(name))
    assert ours["preset"] == "annealvi"


@pytest.mark.slow
def test_the_preset_is_its_defaults():
    """Whatever is left open; the priors' None means 1/K in both."""
    X = synthetic()
    for settings in ({}, dict(n_components=3), dict(learning_method="online", n_components=20)):
        theirs = LatentDirichletAllocation(**settings, random_state=3).fit(X)
        ours = TemperedLDA(**settings, random_state=3, preset="sklearn").fit(X)
        assert_allclose(ours.components_, theirs.components_, rtol=1e-3)
        assert ours.bound_ == pytest.approx(theirs.bound_, rel=1e-6)
        assert (ours.n_iter_, ours.n_batch_iter_) == (theirs.n_iter_, theirs.n_batch_iter_)
        assert ours.doc_topic_prior_ == theirs.doc_topic_prior_
        assert ours.topic_word_prior_ == theirs.topic_word_prior_


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["sklearn", "annealvi"])
def test_its_own_tests_pass(preset, tmp_path):
    """sklearn/decomposition/tests/test_online_lda.py with the class replaced, none skipped."""
    environment = os.environ | {"SKLEARN_RUN_FLOAT32_TESTS": "1", "ANNEALVI_TEST_PRESET": preset}
    environment["PYTHONPATH"] = str(Path(__file__).parent)
    # a configuration of its own, or ours would turn its warnings into errors
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-q", "-c", str(tmp_path / "pytest.ini")]
    command += ["-p", "swap_scikit_learn", "-p", "no:cacheprovider"]
    command += ["--pyargs", "sklearn.decomposition.tests.test_online_lda"]
    done = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    summary = done.stdout.strip().splitlines()[-1]
    assert int(re.search(r"(\d+) passed", summary)[1]) >= 57
    assert "skipped" not in summary
    assert "failed" not in summary
