"""All of dask: the same methods where one machine is too small."""

from rarevote.cluster.fit import Dask, DaskResult

__all__ = ["Dask", "DaskResult"]
