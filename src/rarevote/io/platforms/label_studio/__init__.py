"""Label Studio: its JSON export, its short exports, its controls, and labels back to it."""

from rarevote.io.platforms.label_studio.reader import read, recognises

__all__ = ["read", "recognises"]
