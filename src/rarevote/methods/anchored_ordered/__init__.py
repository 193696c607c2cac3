"""Anchored Ordered: ordered grades; each annotator's lean and nearness around anchors that are counted once."""

from rarevote.methods.anchored_ordered.estimator import AnchoredOrdered

__all__ = ["AnchoredOrdered"]
