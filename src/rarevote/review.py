"""Deprecated: use :meth:`rarevote.Result.review`."""

from rarevote.deprecated import ReviewPlan, plan_review

__all__ = ["ReviewPlan", "plan_review"]
