"""A fitted Gaussian mixture in a file, with the settings that its constructor takes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from annealvi.files import Node
from annealvi.models.gmm.model import GMM

TINY = float(np.finfo(np.float64).tiny)


def model_tree(model: GMM) -> dict[str, Any]:
    """A model as a tree, from which :func:`restored_model` can make it without data."""
    settings = {
        "alpha": model.alpha,
        "mean_prior": model.mean_prior,
        "kappa": model.kappa,
        "nu": model.nu,
        "beta": model.beta,
        "weights": model.known_weights,
        "covariances": model.known_covariances,
        "covariance_type": model.covariance_type,
        "n_samples": model.n_samples,
    }
    return {"settings": settings, "learned": model.state_dict()}


def restored_model(node: Node) -> GMM:
    """The model of a file."""
    settings, learned = node.node("settings"), node.node("learned")
    shift = learned.node("posterior").array("shift", (None, None), np.float64)
    if not shift.size:
        raise learned.error("posterior", "of arrays that are not empty", shift)
    K, D = shift.shape

    def array(name: str, *shape: int, positive: bool = True) -> NDArray[np.float64]:
        return np.array(settings.array(name, shape, np.float64, positive=positive))

    model = GMM(
        *(K, D),
        alpha=array("alpha", K),
        mean_prior=array("mean_prior", D, positive=False),
        kappa=settings.number("kappa", TINY),
        nu=settings.number("nu", TINY),
        beta=array("beta", D),
        weights=None if settings.is_none("weights") else array("weights", K),
        covariances=None if settings.is_none("covariances") else array("covariances", K, D),
        covariance_type=settings.string(  # type: ignore[arg-type]
            "covariance_type", ["diag", "spherical"]
        ),
        n_samples=settings.integer("n_samples", 1),
    )
    model.load_state_dict(learned)
    with np.errstate(all="ignore"):
        used = model.means, model.log_joint(model.means), model.weights, 1 / model.precisions
    if not all(np.all(np.isfinite(part)) for part in used):
        raise learned.error("posterior", "of parameters that densities can be computed from", shift)
    return model
