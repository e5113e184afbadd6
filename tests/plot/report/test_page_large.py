"""The report of many topics and documents is a file that can be sent and opened."""

import numpy as np
import pytest
from scipy import sparse

from annealvi.plot.report import write_report
from annealvi.topics import describe

pytest.importorskip("plotly", reason="needs plotly, the extra 'report'")

N_DOCUMENTS, N_TOPICS, N_WORDS, LENGTH = 100_000, 100, 5000, 10


class Model:
    """A topic model whose topics are drawn at random."""

    def __init__(self):
        rng = np.random.RandomState(0)
        self.components_ = rng.gamma(0.05, size=(N_TOPICS, N_WORDS)) + 1e-9
        self._shares = rng.dirichlet(np.full(N_TOPICS, 0.05), N_DOCUMENTS)

    def transform(self, X):
        return self._shares[: X.shape[0]]


@pytest.mark.slow
def test_a_hundred_topics_of_a_hundred_thousand_long_documents(tmp_path):
    words = np.random.RandomState(1).randint(N_WORDS, size=N_DOCUMENTS * LENGTH)
    ends = np.arange(N_DOCUMENTS + 1) * LENGTH
    X = sparse.csr_matrix((np.ones(len(words)), words, ends), shape=(N_DOCUMENTS, N_WORDS))
    X.sum_duplicates()
    texts = ["A long text. " * 300] * N_DOCUMENTS
    titles = [f"The title of document {number}" for number in range(N_DOCUMENTS)]
    summary = describe(Model(), X, texts=texts, titles=titles)
    path = tmp_path / "topics.html"
    times = [1990 + number % 30 for number in range(N_DOCUMENTS)]
    groups = [number % 100 for number in range(N_DOCUMENTS)]
    write_report(summary, path, times=times, groups=groups, other=summary)
    assert path.stat().st_size < 15e6
