"""TemperedLDA, on scikit-learn's trajectory or on its own."""

from problems import BATCH_SIZE

from annealvi import TemperedLDA


def start(problem, X, *, n_threads=1, same_trajectory=True):
    """Online passes of `partial_fit`, from a model that has seen one minibatch."""
    lda = TemperedLDA(
        problem.n_topics,
        total_samples=X.shape[0],
        batch_size=BATCH_SIZE,
        random_state=0,
        n_jobs=n_threads,
        temperature=1,
        document_init="random" if same_trajectory else "constant",
    )
    lda.partial_fit(X[:BATCH_SIZE])
    return lambda: lda.partial_fit(X)
