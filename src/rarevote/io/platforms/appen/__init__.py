"""Appen (CrowdFlower, Figure Eight): its full report as a table or as JSON."""

from rarevote.io.platforms.appen.reader import read, recognises

__all__ = ["read", "recognises"]
