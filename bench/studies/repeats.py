"""Does a fit repeat, and is it the same for two threads?  annealvi and the libraries installed.

    python -m bench.studies.repeats

Fits 5 topics to 600 of the bundled abstracts, always from seed 0: twice on one thread, and twice on
two.  Prints whether the topics have the same bits.  BERTopic gets vectors made from the words (no
language model is needed), and its clusters are compared; it has no parameter for threads.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from annealvi import TemperedLDA
from annealvi.corpus import to_gensim
from annealvi.datasets import load_arxiv_abstracts
from bench import parser
from bench.markdown import table

K, N_DOCUMENTS = 5, 600
abstracts = load_arxiv_abstracts(texts=True)
X = abstracts.data[:N_DOCUMENTS]


def ours(n_threads: int) -> NDArray:
    return TemperedLDA(K, n_jobs=n_threads, random_state=0).fit(X).components_


def scikit_learn(n_threads: int) -> NDArray:
    from sklearn.decomposition import LatentDirichletAllocation

    lda = LatentDirichletAllocation(K, max_iter=3, n_jobs=n_threads, random_state=0)
    return lda.fit(X).components_


def gensim(n_threads: int) -> NDArray:
    from gensim.models import LdaMulticore

    corpus, dictionary = to_gensim(X, abstracts.feature_names)
    options = {"num_topics": K, "chunksize": 100, "random_state": 0}
    return LdaMulticore(corpus, id2word=dictionary, workers=n_threads, **options).get_topics()


def tomotopy(n_threads: int) -> NDArray:
    import tomotopy

    lda = tomotopy.LDAModel(k=K, seed=0)
    for row in X:
        words = np.repeat(abstracts.feature_names[row.indices], row.data.astype(int))
        lda.add_doc(words.tolist())
    lda.train(50, workers=n_threads)
    return np.array([lda.get_topic_word_dist(topic) for topic in range(K)])


def bertopic(n_threads: int) -> NDArray:
    from bertopic import BERTopic
    from sklearn.decomposition import TruncatedSVD

    vectors = TruncatedSVD(20, random_state=0).fit_transform(X)
    return np.array(BERTopic().fit(abstracts.texts[:N_DOCUMENTS], embeddings=vectors).topics_)


LIBRARIES: dict[str, Callable[[int], NDArray]] = {
    "annealvi": ours,
    "scikit-learn": scikit_learn,
    "gensim, LdaMulticore": gensim,
    "tomotopy": tomotopy,
    "BERTopic": bertopic,
}


def row(name: str, fit: Callable[[int], NDArray]) -> list[str]:
    """Whether the fits agree, or why there are none."""
    try:
        fits = [fit(n_threads) for n_threads in ((1, 1) if fit is bertopic else (1, 1, 2, 2))]
    except ImportError as error:
        return [name, str(error), "", ""]
    same = ["yes" if np.array_equal(a, b) else "no" for a, b in pairwise(fits)]
    return [name, *same, *["–"] * (3 - len(same))]


def main() -> int:
    parser(__doc__).parse_args()
    header = ["", "twice on one thread", "one thread and two", "twice on two threads"]
    print(table(header, [row(name, fit) for name, fit in LIBRARIES.items()]))
    return 0


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # those of the other libraries
    sys.exit(main())
