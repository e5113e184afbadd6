"""Deep models, which need PyTorch; ``pip install torch`` installs it.

No other part of annealvi imports PyTorch.  If PyTorch is missing, importing this package raises an
error that explains how to install it.
"""

from annealvi._optional import import_optional

import_optional("torch", "annealvi.deep")

from annealvi.deep.penalties import ProximityPenalty, WeightStatistic  # noqa: E402
from annealvi.deep.poisson import PoissonDEF  # noqa: E402
from annealvi.deep.posterior import HierarchicalPosterior  # noqa: E402
from annealvi.deep.sbn import SigmoidBeliefNetwork  # noqa: E402
from annealvi.deep.vae import VariationalAutoencoder  # noqa: E402

__all__ = [
    "HierarchicalPosterior",
    "PoissonDEF",
    "ProximityPenalty",
    "SigmoidBeliefNetwork",
    "VariationalAutoencoder",
    "WeightStatistic",
]
