"""crowd-kit's metric of workers."""

from rarevote.meaning.crowdkit_metrics import accuracy_on_aggregates

__all__ = ["accuracy_on_aggregates"]
