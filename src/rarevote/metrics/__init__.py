"""crowd-kit's metrics, where crowd-kit has them."""

from rarevote.metrics import data, workers

__all__ = ["data", "workers"]
