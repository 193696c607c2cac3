"""CC-Rasch: ability and difficulty per class."""

from rarevote.methods.cc_rasch.estimator import CCRasch

__all__ = ["CCRasch"]
