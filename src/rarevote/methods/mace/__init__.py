"""MACE: separates competent annotators from spammers."""

from rarevote.methods.mace.estimator import MACE

__all__ = ["MACE"]
