"""scikit-learn's LatentDirichletAllocation."""

from problems import BATCH_SIZE
from sklearn.decomposition import LatentDirichletAllocation


def start(problem, X, *, n_threads=1):
    """Online passes of `partial_fit`, from a model that has seen one minibatch."""
    lda = LatentDirichletAllocation(
        problem.n_topics,
        total_samples=X.shape[0],
        batch_size=BATCH_SIZE,
        random_state=0,
        n_jobs=n_threads,
    )
    lda.partial_fit(X[:BATCH_SIZE])
    return lambda: lda.partial_fit(X)
