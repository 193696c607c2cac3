"""GLAD: one ability per annotator, one difficulty per item."""

from rarevote.methods.glad.estimator import GLAD

__all__ = ["GLAD"]
