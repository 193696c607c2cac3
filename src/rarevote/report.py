"""The page to look at; see :mod:`rarevote.page.report`."""

from rarevote.page.report import Report, write_report

__all__ = ["Report", "write_report"]
