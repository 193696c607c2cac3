"""MACE: separates annotators who know from those who guess."""

from rarevote.methods.mace.estimator import MACE

__all__ = ["MACE"]
