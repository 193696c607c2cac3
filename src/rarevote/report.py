"""Deprecated: use :meth:`rarevote.Result.report`."""

from rarevote.deprecated import Report, write_report

__all__ = ["Report", "write_report"]
