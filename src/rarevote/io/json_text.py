"""JSON from outside as values: whatever is wrong with it is one kind of error."""

from __future__ import annotations

import json
from typing import Any

from rarevote.errors import InputError


def parse_json(text: str | bytes) -> Any:
    """The value that a text says.

    Raises:
        ValueError: it is no JSON, nested deeper than Python can follow, or holds a number of thousands of digits.

    Example:
        >>> parse_json('{"label": "defect"}')
        {'label': 'defect'}
        >>> parse_json("[" * 100_000)
        Traceback (most recent call last):
        ValueError: nested too deep
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deep") from None


def parse_cell(text: str | None, where: str) -> Any:
    """The value of a cell of a table of JSON; None where there is none.

    Raises:
        InputError: it cannot be read.
    """
    try:
        return None if text is None else parse_json(text)
    except ValueError as error:
        raise InputError(f"{where}: a value cannot be read ({error}): {text[:40] if text else ''}…") from None
