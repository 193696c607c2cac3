"""Why an item got its label; see :mod:`rarevote.meaning.explain`."""

from rarevote.meaning.explain import Explanation, explain

__all__ = ["Explanation", "explain"]
