"""crowd-kit's filter of workers."""

from rarevote.compat.crowdkit import entropy_threshold

__all__ = ["entropy_threshold"]
