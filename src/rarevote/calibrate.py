"""Deprecated: :attr:`rarevote.Fitted.probabilities` are calibrated."""

from rarevote.deprecated import CalibratedPosterior, calibrated

__all__ = ["CalibratedPosterior", "calibrated"]
