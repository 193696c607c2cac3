"""The keys of the workbench: one for each class, and those for other actions."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_lowercase, ascii_uppercase

UNSURE_KEY, UNDO_KEY, CLAIMS_KEY, HELP_KEY, ZOOM_KEY = "u", "z", "p", "?", "+"
_RESERVED = {UNSURE_KEY, UNDO_KEY, CLAIMS_KEY}
_KEYS = [key for key in "1234567890" + ascii_lowercase + ascii_uppercase if key.lower() not in _RESERVED]


def class_keys(names: Sequence[str]) -> list[str]:
    """A key for each class: its own name if that is one key, else the next digit, letter or capital; empty if none is
    left.

    >>> class_keys(["defect", "sound"]), class_keys(["0", "1", "other"])
    (['1', '2'], ['0', '1', '2'])
    >>> class_keys([f"class {i}" for i in range(60)])[-5:]
    ['Y', '', '', '', '']
    """
    own = {name for name in names if name in _KEYS}
    rest = iter([key for key in _KEYS if key not in own])
    return [name if name in own else next(rest, "") for name in names]
