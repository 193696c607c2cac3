"""Argilla: its records in every form, and labels back to it as suggestions."""

from rarevote.io.platforms.argilla.reader import read, recognises

__all__ = ["read", "recognises"]
