"""CrowdFM: a pretrained graph network."""

from rarevote.methods.crowdfm.estimator import CrowdFM

__all__ = ["CrowdFM"]
