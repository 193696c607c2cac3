"""crowd-kit's metrics of votes."""

from rarevote.compat.crowdkit import alpha_krippendorff, consistency, uncertainty

__all__ = ["alpha_krippendorff", "consistency", "uncertainty"]
