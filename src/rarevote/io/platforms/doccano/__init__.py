"""doccano: its files, one per annotator, and labels back as lines that it imports."""

from rarevote.io.platforms.doccano.reader import read, recognises

__all__ = ["read", "recognises"]
