"""The dask engine: the same methods for data too large for one machine."""

from rarevote.cluster.fit import Dask, DaskResult

__all__ = ["Dask", "DaskResult"]
