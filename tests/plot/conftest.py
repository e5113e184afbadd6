"""A small corpus of three planted topics, with names that are there to be misunderstood."""

import warnings

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot
from sklearn.exceptions import ConvergenceWarning

from annealvi import TemperedLDA
from annealvi.topics import describe

matplotlib.use("Agg")

SUBJECTS = (
    ["space", "orbit", "rocket", "moon", "nasa", "planet"],
    ["goal", "team", "league", "player", "match", "coach"],
    ["bread", "flour", "oven", "yeast", "dough", "<b>crust</b>"],
)
N = 60


@pytest.fixture(scope="session")
def documents():
    """Texts, counts, words, years and groups of the corpus."""
    rng = np.random.RandomState(0)
    words = sorted({word for subject in SUBJECTS for word in subject} | {"$x_$", "and"})
    drawn = [[*rng.choice(SUBJECTS[number % 3], 20), "and", "and", "$x_$"] for number in range(N)]
    X = np.array([[text.count(word) for word in words] for text in drawn])
    texts = [" ".join(text) for text in drawn]
    texts[0] += " <script>document.title = 'hacked'</script></script><!--"
    return texts, X, words, [2000 + number % 5 for number in range(N)], ["a", "b"] * (N // 2)


@pytest.fixture(scope="session")
def fit(documents):
    """A function that fits the corpus and describes the fit."""
    texts, X, words, _, _ = documents

    def of_seed(seed):
        lda = TemperedLDA(3, max_iter=6, evaluate_every=1, random_state=seed)
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            lda.fit(X)  # six passes are enough for pictures
        titles = [f"Document {number} & <i>more</i>" for number in range(N)]
        return describe(lda, X, words, texts=texts, titles=titles)

    return of_seed


@pytest.fixture(scope="session")
def session_summary(fit):
    return fit(0)


@pytest.fixture
def summary(session_summary):
    """The summary, with a label that looks like HTML and like mathematics."""
    before = list(session_summary.labels)
    session_summary.labels[0] = "<b>$\\frac{1}{2$ & more"
    yield session_summary
    session_summary.labels = before


@pytest.fixture(autouse=True)
def close_figures():
    yield
    pyplot.close("all")
