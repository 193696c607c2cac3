"""Prodigy: its JSON lines, and labels back as lines that ``prodigy db-in`` takes."""

from rarevote.io.platforms.prodigy.reader import read, recognises

__all__ = ["read", "recognises"]
