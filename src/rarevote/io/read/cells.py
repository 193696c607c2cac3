"""Table cells with several choices: JSON lists, Python lists, or texts with a separator."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from rarevote.crowd.names import spelling
from rarevote.errors import InputError, how, shown
from rarevote.io.platforms.table_records import choices_in_cell, json_in_cell

#: Separators between choices, in the order in which they are tried.
SEPARATORS = ("|", ";", "\n", ",")
NOTHING = "[]"  # the cell of an answer without any choice
_SURE = SEPARATORS[:1]  # a separator that is hardly ever part of a name
_PYTHON_ITEM = r"""(?:'[^'\\]*'|"[^"\\]*")"""
_PYTHON_LIST = re.compile(rf"\[\s*(?:{_PYTHON_ITEM}\s*,\s*)*{_PYTHON_ITEM}\s*,?\s*\]")
_PROSE = 40  # mean length of a piece: longer ones are sentences
_TICKED = frozenset({"1", "1.0", "yes", "true", "y", "t", "x", "on", "checked", "ticked"})
_NOT_TICKED = frozenset({"0", "0.0", "no", "false", "n", "f", "off", "unchecked"})


def is_ticked(value: object) -> bool | None:
    """Whether the cell of a choice means ticked or not ticked; None for neither.

    >>> [is_ticked(value) for value in ("1", "No", True, 0.0, "x", "maybe")]
    [True, False, True, False, True, None]
    """
    text = spelling(value).strip().lower()
    return True if text in _TICKED else False if text in _NOT_TICKED else None


def several_in(texts: Sequence[object]) -> str | None:
    """One of these labels that seems to contain several choices, or None.

    A list does. A text with ``|`` does if another label equals one of its pieces.

    >>> several_in(["a|b", "b"]), several_in(["a|b", "c"]), several_in(['["a", "b"]']), several_in(["a, b", "a"])
    ('a|b', None, '["a", "b"]', None)
    """
    cells = [text.strip() for text in texts if isinstance(text, str)]
    for text in cells:
        if text.startswith("[") and len(_listed(text) or ()) > 1:
            return text
    for mark in _SURE:
        pieces = Counter(piece for text in cells for piece in _pieces(text, mark))
        for text in cells:
            if any(pieces[piece] > 1 for piece in (_pieces(text, mark) if mark in text else ())):
                return text
    return None


def refuse_several(texts: Sequence[object], title: str) -> None:
    """Refuse labels if some contain several choices.

    Raises:
        InputError: some do.
    """
    found = several_in(texts)
    if found is not None:
        several, single = how("multilabel=True", "--multilabel"), how("multilabel=False", "--no-multilabel")
        raise InputError(
            f"{title}: several choices in one answer ({shown(found)}). For one yes/no problem per choice, with an "
            f"empty answer as no to each: {several}. To make every combination a class: {single}"
        )


def split_cells(texts: Sequence[str], separator: str | None = None) -> tuple[list[tuple[str, ...]], str | None]:
    """The choices of each cell, and the separator, if one was found.

    Args:
        texts: the distinct cells of a column.
        separator: the separator between choices; detected by default.

    Raises:
        InputError: a cell contains structured data.

    >>> split_cells(["a|b", "b", '["a"]', "['a', 'c']", "[]"])
    ([('a', 'b'), ('b',), ('a',), ('a', 'c'), ()], '|')
    >>> split_cells(["rust, dents", "dents", "no, really not"], separator="")
    ([('rust, dents',), ('dents',), ('no, really not',)], None)
    """
    mark = _mark_in(texts) if separator is None else separator
    parsed = []
    for text in texts:
        listed = _listed(text.strip())
        names = choices_in_cell(text, f"the answer {shown(text)}", separator=mark or "") if listed is None else listed
        parsed.append(tuple(dict.fromkeys(name.strip() for name in names if name.strip())))
    return parsed, mark or None


def _listed(text: str) -> list[str] | None:
    """The names in a JSON or Python list; None if the text is neither."""
    if not text.startswith("["):
        return None
    if _PYTHON_LIST.fullmatch(text):
        return [piece[1:-1] for piece in re.findall(_PYTHON_ITEM, text)]
    value = json_in_cell(text)
    if not isinstance(value, list) or any(isinstance(item, (list, dict)) for item in value):
        return None
    return [spelling(item) for item in value if item is not None]


def _pieces(text: str, mark: str) -> list[str]:
    return [piece.strip() for piece in text.split(mark) if piece.strip()]


def _mark_in(texts: Sequence[str]) -> str | None:
    """The separator between choices: the first whose pieces also occur in other cells, and are not sentences."""
    plain = [text for text in texts if _listed(text.strip()) is None]
    for mark in SEPARATORS:
        split = [_pieces(text, mark) for text in plain]
        together = [pieces for pieces in split if len(pieces) > 1]
        counts = Counter(piece for pieces in split for piece in set(pieces))
        if not together or sum(map(len, counts)) > _PROSE * len(counts):
            continue
        if mark in _SURE or any(counts[piece] > 1 for pieces in together for piece in pieces):
            return mark
    return None
