"""The factorial mixture model, tempered: the mathematics under TemperedFMM."""

from annealvi.models.fmm.files import model_tree, restored_model
from annealvi.models.fmm.model import FMM

__all__ = ["FMM", "model_tree", "restored_model"]
