"""Deprecated: use :meth:`rarevote.Result.explain`."""

from rarevote.deprecated import Explanation, explain

__all__ = ["Explanation", "explain"]
