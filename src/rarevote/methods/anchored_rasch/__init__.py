"""Anchored Rasch: abilities per class around anchors that are counted once, and probabilities that mean something."""

from rarevote.methods.anchored_rasch.estimator import AnchoredRasch

__all__ = ["AnchoredRasch"]
