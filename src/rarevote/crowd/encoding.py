"""Encoding of one column: an integer for every row, and the distinct names that the integers represent.

A column is passed to a crowd as codes and names, whatever its source. Only :func:`distinct_names` defines
what a name is:

* None, NaN, NaT, NA, a masked value and empty or blank text are missing: their code is -1;
* equal values are one name: ``0.0`` and ``-0.0`` are ``0.0``, and ``1`` and ``1.0`` are the integer;
* a boolean is not a number: a column with both ``True`` and ``1`` is refused;
* text, numbers, booleans, dates and other hashable values are names; bytes are not;
* dates and times are those of Python: whole microseconds in the years 1 to 9999.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, KeysView, Mapping, Set
from datetime import datetime, timedelta
from itertools import islice
from operator import lt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.names import StoredNames, as_name_array, is_missing, numbered, sort_labels
from rarevote.errors import InputError, shown

Codes = NDArray[Any]
Names = NDArray[Any] | StoredNames

_IS_A_NAME = "an id or a label is a text, a number, a truth value or a date"
_AS_TEXT = "Take one field of it, or turn it into text first"

_FINE = ("ns", "ps", "fs", "as")  # units of NumPy that Python does not have
# The first and the last date and duration: years 1 to 9999, and microseconds in 64 bits, with room for conversions.
_TIMES = {
    "M": np.array(["0001-01-01", "9999-12-31T23:59:59.999999"], dtype="M8[us]"),
    "m": np.array([-(2**62), 2**62], dtype="m8[us]"),
}


def not_names(what: str, holds: str) -> InputError:
    """The error for a column whose values cannot be names."""
    return InputError(f"{what} holds {holds}, and {_IS_A_NAME}. {_AS_TEXT}")


def is_series(data: Any) -> bool:
    """Whether the data are a pandas Series: values with a name each, in its index."""
    # Arrays of pyarrow and lists have a method index.
    return hasattr(getattr(data, "index", None), "equals") and not hasattr(data, "columns")


def check_same_index(columns: Mapping[str, Any]) -> None:
    """Refuse columns whose indexes (of pandas Series) show that their rows are not in the same order.

    Raises:
        InputError: the indexes differ.
    """
    indexes: dict[str, Any] = {name: getattr(column, "index", None) for name, column in columns.items()}
    indexed = {name: index for name, index in indexes.items() if hasattr(index, "equals")}  # lists have a method index
    first = next(iter(indexed.values()), None)
    other = next((name for name, index in indexed.items() if not index.equals(first)), None)
    if other is not None:
        raise InputError(
            f"the index of {other} is not that of {next(iter(indexed))}: rows in another order cannot be paired. "
            "Put the columns into one frame, or give plain arrays"
        )


def check_same_length(sizes: Mapping[str, int]) -> None:
    """Refuse columns of different lengths.

    Args:
        sizes: the number of rows by column.

    Raises:
        InputError: the lengths differ.
    """
    if len(set(sizes.values())) > 1:
        *first, last = sizes
        raise InputError(
            f"{', '.join(first)} and {last} must have the same length, got {dict(sizes)}: "
            "give one value per row in each"
        )


# --------------------------------------------------------------------------------------------------------------------
# columns


def encode_column(values: Any, what: str = "the column") -> tuple[Codes, NDArray[Any]]:
    """Integer codes of a column and the values that they represent, in any order.

    The values are those of the column; :func:`distinct_names` turns them into names.

    Args:
        values: an array, a masked array, a list, or any column that can be converted to a list (slow, but exact).
        what: the name of the column in messages.

    Raises:
        InputError: this is not one column, or contains values that cannot be names.
    """
    if not isinstance(values, np.ndarray):
        return _encode_objects(as_list(values, what), what)
    if values.ndim != 1:
        raise InputError(
            f"{what} must be one-dimensional, got an array of shape {values.shape}: give one array per column"
        )
    if isinstance(values, np.ma.MaskedArray):
        present = ~np.ma.getmaskarray(values)
        return with_gaps(present, *encode_column(values.data[present], what))
    kind = values.dtype.kind
    if kind in "iub":
        return _encode_integers(values)
    if kind in "fMmc":
        present = ~(np.isnat(values) if kind in "Mm" else np.isnan(values))
        distinct, codes = np.unique(values[present], return_inverse=True)
        return with_gaps(present, codes, distinct)
    if kind == "U":
        distinct, codes = np.unique(values, return_inverse=True)
        return codes, as_name_array(distinct.tolist())
    if kind in "SV":
        raise not_names(what, "bytes" if kind == "S" else "records")
    return _encode_objects(values.tolist(), what)


def with_gaps(present: NDArray[np.bool_], codes: Codes, values: NDArray[Any]) -> tuple[Codes, NDArray[Any]]:
    """Codes of all rows from the codes of the rows with a value; the others get the code -1."""
    if present.all():
        return codes, values
    all_codes = np.full(present.size, -1, dtype=np.int64)
    all_codes[present] = codes
    return all_codes, values


def decode_column(codes: Codes, names: NDArray[Any]) -> list[Any]:
    """The names of the rows, None for missing ones."""
    listed = [*names.tolist(), None]  # the code -1 picks the last
    return [listed[code] for code in codes.tolist()]


def as_list(values: Any, what: str) -> list[Any]:
    """The values of a column as plain Python values."""
    unordered = isinstance(values, Set) and not isinstance(values, KeysView)
    is_column = isinstance(values, Iterable) and not hasattr(values, "columns") and not unordered
    if not is_column or isinstance(values, (str, bytes, bytearray, Mapping)):
        raise InputError(
            f"{what} must be a column, got {shown(values)} ({type(values).__name__}): "
            "give a list or an array with one value per row"
        )
    # Columns of pyarrow, polars, pandas and other array-like types, as plain Python values.
    for name in ("to_pylist", "tolist", "to_list"):
        if callable(method := getattr(values, name, None)):
            return list(method())
    return list(values)


def _encode_integers(column: NDArray[Any]) -> tuple[Codes, NDArray[Any]]:
    if column.size == 0:
        return np.zeros(0, dtype=np.int64), column
    if column.dtype.kind == "b":
        present = np.array([not column.all(), bool(column.any())])
        return (column.astype(np.int64) if present.all() else np.zeros(column.size, np.int64)), np.array([False, True])[
            present
        ]
    low, high = int(column.min()), int(column.max())
    # Ids that fill their range are looked up in a table; sparse ones are sorted.
    if high - low < 4 * column.size + 1_000_000 and high < 2**62 and low > -(2**62):
        offset = column.astype(np.int64, copy=False) - low if low else column
        position = np.zeros(high - low + 1, dtype=np.int32 if high - low < 2**31 - 2 else np.int64)
        position[offset] = 1
        distinct = (np.flatnonzero(position) + low).astype(column.dtype)
        if distinct.size == position.size:
            return offset, distinct
        rank = np.cumsum(position, dtype=position.dtype) - 1
        return rank[offset], distinct
    distinct, codes = np.unique(column, return_inverse=True)
    return codes, distinct


def _encode_objects(given: list[Any], what: str) -> tuple[Codes, NDArray[Any]]:
    kinds = set(map(type, given))
    if len(kinds) == 1 and kinds <= {int, float, bool}:
        (kind,) = kinds
        try:
            return encode_column(np.array(given, dtype=np.int64 if kind is int else kind), what)
        except OverflowError:
            pass  # NumPy would convert such integers to floats, and merge different ones
    # Among values of several types, equal ones (1, 1.0, True) stay separate until their names are chosen.
    alike = len(kinds - {str, type(None)}) < 2
    keys: Iterable[Hashable] = given if alike else zip(map(type, given), given, strict=True)
    code_of: dict[Any, int] = {}
    try:
        codes = np.fromiter((code_of.setdefault(key, len(code_of)) for key in keys), dtype=np.int64, count=len(given))
    except TypeError:
        if any(value is np.ma.masked for value in given):
            return _encode_objects([None if value is np.ma.masked else value for value in given], what)
        raise _unhashable(given, what) from None
    return codes, as_name_array(list(code_of) if alike else [value for _, value in code_of])


def _unhashable(given: list[Any], what: str) -> InputError:
    for row, value in enumerate(given):
        try:
            hash(value)
        except TypeError:
            kind = type(value).__name__
            return InputError(
                f"{what}: row {row} holds {shown(value)}, which cannot be an id or a label, because {kind} values are "
                f"not hashable. {_AS_TEXT}"
            )
    raise AssertionError("all values are hashable")


# --------------------------------------------------------------------------------------------------------------------
# names


def distinct_names(codes: Codes, values: Names, what: str) -> tuple[Codes, Any]:
    """Codes and names of a column whose values can repeat or be missing: equal values become one name.

    Args:
        codes: the number of a value for every row; -1 if it is missing.
        values: the values that the codes represent, in any order.
        what: the name of the column in messages.

    Returns:
        Codes, which are -1 for a missing name, and distinct names without missing ones.

    Raises:
        InputError: a value is not a name, or booleans occur among equal numbers.
    """
    if isinstance(values, StoredNames):
        return codes, values
    if values.dtype == object:
        return _distinct_objects(codes, values, what)
    if values.dtype.kind in "Mm":
        values = plain_times(values, what)
    if values.dtype.kind == "f":
        values = np.where(values == 0, np.zeros((), values.dtype), values)
    present = np.equal(values, values)  # NaN and NaT are not
    if present.all() and bool((values[1:] > values[:-1]).all()):
        return codes, values
    place = np.full(values.size + 1, -1, dtype=np.int64)  # the last entry is for the code -1
    names, place[:-1][present] = np.unique(values[present], return_inverse=True)
    return place[codes], names


def joined_names(names: NDArray[Any], more: Iterable[Any], what: str) -> NDArray[Any]:
    """Names of classes and further ones, sorted.

    Raises:
        InputError: a name is a truth value and another an equal number.
    """
    listed = as_name_array([*names.tolist(), *more])
    return as_name_array(sort_labels(distinct_names(np.arange(len(listed)), listed, what)[1].tolist()))


def _distinct_objects(codes: Codes, values: NDArray[Any], what: str) -> tuple[Codes, NDArray[Any]]:
    listed = values.tolist()
    if set(map(type, listed)) <= {str}:
        # Sorted text, the usual case, needs no table of names.
        distinct = all(map(lt, listed, islice(listed, 1, None))) or len(set(listed)) == len(listed)
        if distinct and all(listed) and not any(map(str.isspace, listed)):
            return codes, values
    else:
        listed = [_plain_value(value, what) for value in listed]
    number_of: dict[Any, int] = {}
    names: list[Any] = []
    place = np.full(len(listed) + 1, -1, dtype=np.int64)
    for row, value in enumerate(listed):
        if is_missing(value):
            continue
        number = place[row] = number_of.setdefault(value, len(names))
        if number == len(names):
            names.append(value)
        elif isinstance(value, bool) != isinstance(names[number], bool):
            one, other = (names[number], value) if isinstance(value, bool) else (value, names[number])
            raise InputError(
                f"{what} holds both the number {one!r} and the truth value {other!r}, which are not the same name. "
                "Write them in one way, for example both as text"
            )
        elif isinstance(value, int):
            names[number] = value
    if len(names) == len(listed):
        return codes, as_name_array(names)
    return place[codes], as_name_array(names)


def _plain_value(value: Any, what: str) -> Any:
    if isinstance(value, np.generic) and value.dtype.kind in "biufU":
        value = value.item()
    if isinstance(value, (np.datetime64, np.timedelta64)):
        value = plain_times(np.array([value]), what).tolist()[0]
    if isinstance(value, (datetime, timedelta)) and _nanoseconds(value) > 0:
        raise not_a_time(what, value)
    if isinstance(value, (bytes, bytearray, memoryview, np.void)):
        raise not_names(what, "bytes")
    return 0.0 if isinstance(value, float) and value == 0 else value


def _nanoseconds(value: Any) -> int:
    """Nanoseconds beside the microseconds, which times of pandas have."""
    return getattr(value, "nanosecond", 0) or getattr(value, "nanoseconds", 0)


def plain_times(values: NDArray[Any], what: str) -> NDArray[Any]:
    """Dates and times in a unit in which NumPy returns them as those of Python: days, or microseconds.

    Args:
        values: dates, times or durations of NumPy in any unit.
        what: the name of the column in messages.

    Raises:
        InputError: a value is not a whole number of microseconds, or outside the range of Python.
    """
    kind, (unit, _) = values.dtype.kind, np.datetime_data(values.dtype)
    absent = np.isnat(values)
    if absent.all():
        return values
    if unit in _FINE:
        plain = values.astype(f"{kind}8[us]")
        wrong = plain.astype(values.dtype) != values
    elif kind == "m" and unit in ("generic", "Y", "M"):
        raise InputError(f"{what} holds durations of no fixed length ({values.dtype}). Turn them into text first")
    else:
        # A conversion can overflow, so the range is checked before.
        first, last = _TIMES[kind].astype(values.dtype)
        wrong = (values < first) | (values > last)
        plain = np.clip(values, first, last).astype("M8[D]" if kind == "M" and unit in "YMWD" else f"{kind}8[us]")
    wrong &= ~absent
    if wrong.any():
        raise not_a_time(what, str(values[wrong][0]))
    return plain


def not_a_time(what: str, value: object) -> InputError:
    """The error for a column with a date or a time that Python does not have."""
    return InputError(
        f"{what} holds {shown(value)}: as an id or a label, a date or a time has whole microseconds and a year from 1 "
        "to 9999. Round it, or turn it into text first"
    )


def used_names(codes: Codes, values: Any) -> tuple[Codes, Any]:
    """Remove values that no code uses; -1 is kept."""
    used = np.zeros(len(values) + 1, dtype=bool)
    used[codes] = True
    if used[:-1].all():
        return codes, values
    place = np.cumsum(used, dtype=np.int32 if len(values) < 2**31 else np.int64) - 1
    place[-1] = -1
    left = values.restricted(used[:-1]) if isinstance(values, StoredNames) else values[used[:-1]]
    return place[codes], left


def sort_codes(
    codes: Codes, values: NDArray[Any], sorter: Callable[[Iterable[Any]], list[Any]]
) -> tuple[Codes, NDArray[Any]]:
    """Renumber so that the distinct values are sorted."""
    if values.dtype != object:
        if values.size < 2 or bool((values[1:] > values[:-1]).all()):
            return codes, values
        order = np.argsort(values, kind="stable")
    else:
        given = values.tolist()
        ordered = sorter(given)
        if ordered == given:
            return codes, values
        position = numbered(given)
        order = np.fromiter(map(position.__getitem__, ordered), dtype=np.int64, count=len(ordered))
    # There is one such number per annotation: use the narrowest type.
    rank = np.empty(len(order), dtype=np.int32 if len(order) < 2**31 else np.int64)
    rank[order] = np.arange(len(order))
    return rank[codes], values[order]
