"""Which items to look at; see :mod:`rarevote.meaning.review`."""

from rarevote.meaning.review import ReviewPlan, plan_review

__all__ = ["ReviewPlan", "plan_review"]
