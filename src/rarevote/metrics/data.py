"""crowd-kit's metrics of votes."""

from rarevote.meaning.crowdkit_metrics import alpha_krippendorff, consistency, uncertainty

__all__ = ["alpha_krippendorff", "consistency", "uncertainty"]
