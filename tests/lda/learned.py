"""Estimators whose temperature is learned, and what their fits say."""

from annealvi import LocalVariational, TemperedLDA, Variational

LEARNED = {
    "variational": "variational",
    "local": "local",
    "over the prior": Variational(partition="prior", grid=[1, 1.2, 2, 4, 9]),
    "continuous": LocalVariational(continuous=True, prior=[2, 1], rounds=3),
    "corpus": LocalVariational(normaliser="corpus", grid=20),
    "undamped": LocalVariational(undamped=True),
}


def mean_field(**kwargs):
    settings = dict(n_components=4, random_state=0, batch_size=16, max_iter=12)
    settings |= dict(preset="sklearn", temperature="annealed")
    return TemperedLDA(**(settings | kwargs))


def point(**kwargs):
    return mean_field(estimate="map", **kwargs)


def everything(lda, X):
    """What a fit has to say, to compare bit for bit."""
    found = [lda.components_.copy(), lda.temperature_path_, lda.transform(X), lda.score(X)]
    found.append(lda.transform(X, temperature="learned"))
    found.append(lda.document_temperatures(X))
    for name in ("temperature_posterior_path_", "document_temperatures_", "bound_"):
        if hasattr(lda, name):
            found.append(getattr(lda, name))
    return found


STREAM = dict(total_samples=160, batch_size=16)
