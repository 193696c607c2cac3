"""Honest probabilities; see :mod:`rarevote.meaning.calibrate`."""

from rarevote.meaning.calibrate import CalibratedPosterior, calibrated

__all__ = ["CalibratedPosterior", "calibrated"]
