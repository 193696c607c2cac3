"""Frames and arrays: altered columns as pandas, polars, pyarrow, NumPy or lists, with a plain reading beside them."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import rarevote
from proofs.fuzz.oracles import ROLES, Votes, check_votes
from rarevote.errors import InputError

Columns = dict[str, list[Any]]


def _masked(columns: Columns) -> Any:
    return tuple(np.ma.array(values, mask=[value is None for value in values]) for values in columns.values())


def _dictionary(columns: Columns) -> Any:
    """Arrow columns whose dictionaries hold every value twice, in no order, as ``utf8_lower`` may leave them."""
    import pyarrow as pa

    def encoded(values: list[Any]) -> Any:
        known = pa.array(list(dict.fromkeys(value for value in values if value is not None)))
        twice = pa.concat_arrays([known, known[::-1]])
        place = {value: number for number, value in enumerate(known.to_pylist())}
        codes = [
            None if value is None else place[value] if number % 2 else 2 * len(place) - 1 - place[value]
            for number, value in enumerate(values)
        ]
        return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), twice)

    return pa.table({name: encoded(values) for name, values in columns.items()})


def _chunked(columns: Columns) -> Any:
    import pyarrow as pa

    whole = pa.table(columns)
    return pa.concat_tables([whole.slice(0, 7), whole.slice(7, 0), whole.slice(7)])


def _pandas(change: Callable[[Any], Any] = lambda frame: frame) -> Callable[[Columns], Any]:
    def made(columns: Columns) -> Any:
        import pandas

        return change(pandas.DataFrame(columns))

    return made


def _polars(change: Callable[[Any], Any] = lambda frame: frame) -> Callable[[Columns], Any]:
    def made(columns: Columns) -> Any:
        import polars

        return change(polars.DataFrame(columns))

    return made


def _arrow(change: Callable[[Any], Any] = lambda table: table) -> Callable[[Columns], Any]:
    def made(columns: Columns) -> Any:
        import pyarrow as pa

        return change(pa.table(columns))

    return made


def _view_types(table: Any) -> Any:
    import pyarrow as pa

    text = getattr(pa, "string_view", pa.large_string)()  # pyarrow 15 has no views
    kinds = {pa.string(): text, pa.int64(): pa.uint64()}
    return table.cast(pa.schema([(field.name, kinds.get(field.type, field.type)) for field in table.schema]))


def _categorical(frame: Any) -> Any:
    import polars

    return frame.with_columns(polars.col(polars.String).cast(polars.Categorical))


#: Ways to hand in columns.
KINDS: dict[str, Callable[[Columns], Any]] = {
    "lists": lambda columns: tuple(columns.values()),
    "objects": lambda columns: tuple(np.array(values, dtype=object) for values in columns.values()),
    "arrays": lambda columns: tuple(np.array(values) for values in columns.values()),
    "masked": _masked,
    "pandas": _pandas(),
    "pandas objects": _pandas(lambda frame: frame.astype(object)),
    "pandas categories": _pandas(lambda frame: frame.astype("category")),
    "pandas nullable": _pandas(lambda frame: frame.convert_dtypes()),
    "pandas Arrow": _pandas(lambda frame: frame.convert_dtypes(dtype_backend="pyarrow")),
    "polars": _polars(),
    "polars categories": _polars(_categorical),
    "Arrow": _arrow(),
    "Arrow repeated dictionary": _dictionary,
    "Arrow chunks": _chunked,
    "Arrow views": _arrow(_view_types),
}


def enter(path: Path) -> None:
    """Read the columns of a JSON file as one kind of frame, and compare the votes with the columns.

    Raises:
        InputError: no frame can be made of them, or our own refusal.
        WrongAnswerError: the votes are not those of the columns.
    """
    content = path.read_bytes()
    try:
        columns = json.loads(content)
        kind = list(KINDS)[zlib.crc32(content) % len(KINDS)]
        frame = KINDS[kind](columns)
    except Exception as error:  # the library's word on what is no frame
        raise InputError(f"no frame: {type(error).__name__}") from None
    if isinstance(frame, tuple) and len(frame) == len(ROLES):  # arrays without names: their order says what they are
        columns = dict(zip(ROLES, columns.values(), strict=True))
    check_votes(rarevote.read(frame).annotations, expected_votes(columns), kind)


def expected_votes(columns: Any) -> Votes | None:
    """What the columns say where that is beyond doubt: texts or whole numbers, one type a column, nothing missing."""
    if not isinstance(columns, dict) or set(columns) != set(ROLES):
        return None
    for values in columns.values():
        kinds = {type(value) for value in values} if isinstance(values, list) else set()
        if kinds not in ({str}, {int}) or any(isinstance(value, str) and not value.strip() for value in values):
            return None
        if any(isinstance(value, int) and abs(value) >= 1 << 63 for value in values):
            return None
    if len({len(values) for values in columns.values()}) != 1:
        return None
    return Counter(zip(*(map(str, columns[role]) for role in ROLES), strict=True))
