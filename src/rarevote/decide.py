"""From probabilities to decisions; see :mod:`rarevote.meaning.decide`."""

from rarevote.meaning.decide import Decision, decide

__all__ = ["Decision", "decide"]
