"""A file that is a finding, made small: what can be left out without the finding going away is left out."""

from __future__ import annotations

from collections.abc import Callable


def smaller(content: bytes, still: Callable[[bytes], bool], *, most: int = 5_000) -> bytes:
    """The file without every piece, from half of it down to single bytes, that the finding does not need.

    Args:
        content: a finding.
        still: whether a file is one, too.
        most: how often to ask.

    Example:
        >>> smaller(b"task,label\\n1,x\\n2,[[[\\n3,y\\n", lambda text: b"[[" in text)
        b'[['
    """
    size = len(content) // 2
    while size:
        at = 0
        while at < len(content):
            shorter = content[:at] + content[at + size :]
            most -= 1
            if most < 0:
                return content
            if still(shorter):
                content = shorter
            else:
                at += size
        size //= 2
    return content
