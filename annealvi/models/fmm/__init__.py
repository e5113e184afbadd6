"""The factorial mixture model, tempered: the mathematics under TemperedFMM."""

from annealvi.models.fmm.model import FMM, model_tree, restored_model

__all__ = ["FMM", "model_tree", "restored_model"]
