"""Classes that set the temperature T of each step of a fit, by a plan or from the data."""

from annealvi.temperature.annealed import KINDS, Annealed, Fixed, as_temperature
from annealvi.temperature.base import Temperature
from annealvi.temperature.local import LocalVariational
from annealvi.temperature.proximity import Proximity
from annealvi.temperature.variational import Variational

__all__ = [
    "KINDS",
    "Annealed",
    "Fixed",
    "LocalVariational",
    "Proximity",
    "Temperature",
    "Variational",
    "as_temperature",
]
