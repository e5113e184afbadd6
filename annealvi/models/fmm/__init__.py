"""The factorial mixture model, tempered: the mathematics under TemperedFMM."""

from annealvi.models.fmm.model import FMM

__all__ = ["FMM"]
