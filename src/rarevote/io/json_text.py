"""Parsing of JSON from outside: all faults raise the same type of error."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

from rarevote.errors import InputError, shown

_HALF = re.compile(r"\\u[dD][89a-fA-F]")


def parse_json(text: str | bytes, *, unique_keys: bool = False) -> Any:
    """The value of a JSON text.

    Args:
        unique_keys: refuse an object with a duplicate key: readers differ in which value they use.

    Raises:
        ValueError: it is not JSON, nested too deep for Python, or contains a number of thousands of digits.

    Example:
        >>> parse_json('{"label": "defect"}')
        {'label': 'defect'}
        >>> parse_json("[" * 100_000)
        Traceback (most recent call last):
        ValueError: nested too deep
        >>> parse_json("9" * 5000)
        Traceback (most recent call last):
        ValueError: a number of more than 4300 digits
    """
    try:
        if isinstance(text, bytes):  # Python's own decoder would accept unpaired surrogates
            text = text.decode(json.detect_encoding(text))
        value = json.loads(text, object_pairs_hook=_unique if unique_keys else None)
        return whole_letters(value) if may_have_halves(text) else value
    except RecursionError:
        raise ValueError("nested too deep") from None
    except ValueError as error:
        raise (ValueError(too_many_digits()) if speaks_of_digits(error) else error) from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {shown(twice)} occurs twice in one object")
    return found


def speaks_of_digits(error: ValueError) -> bool:
    """Whether the message is Python's refusal of a number with too many digits."""
    return "integer string conversion" in str(error)


def too_many_digits() -> str:
    """The message for a number with too many digits."""
    return f"a number of more than {sys.get_int_max_str_digits()} digits"


def may_have_halves(text: str, begin: int = 0, end: int = sys.maxsize) -> bool:
    """Whether the text may contain an escape for an unpaired surrogate.

    >>> may_have_halves('"cut \\\\ud83d"'), may_have_halves('"\\\\u00fc"')
    (True, False)
    """
    return _HALF.search(text, begin, end) is not None


def whole_letters(value: Any) -> Any:
    """The value with � for every unpaired surrogate, which cannot be written to a file.

    >>> whole_letters({"text": ["cut \\ud83d", "whole"]})
    {'text': ['cut �', 'whole']}
    """
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [whole_letters(entry) for entry in value]
    if isinstance(value, dict):
        return {whole_letters(key): whole_letters(entry) for key, entry in value.items()}
    return value


def parse_cell(text: str | None, where: str) -> Any:
    """The value of a JSON cell in a table; None if it is empty.

    Raises:
        InputError: it cannot be read.
    """
    try:
        return None if text is None else parse_json(text)
    except ValueError as error:
        raise InputError(f"{where}: a value cannot be read ({error}): {text[:40] if text else ''}…") from None
