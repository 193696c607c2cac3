"""crowd-kit's metric of workers."""

from rarevote.compat.crowdkit import accuracy_on_aggregates

__all__ = ["accuracy_on_aggregates"]
