"""Anchored Rasch: abilities per class around anchors that are counted once, and calibrated probabilities."""

from rarevote.methods.anchored_rasch.estimator import AnchoredRasch

__all__ = ["AnchoredRasch"]
