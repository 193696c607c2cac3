"""The examples at the foot of a help page."""

from __future__ import annotations


def examples(*commands: str, after: str = "") -> str:
    """Commands below each other under the word "Examples", and a sentence ``after`` them."""
    return "\n\n".join(["Examples:", *commands, *([after] if after else [])])
