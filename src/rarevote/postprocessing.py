"""crowd-kit's filter of workers."""

from rarevote.meaning.crowdkit_metrics import entropy_threshold

__all__ = ["entropy_threshold"]
