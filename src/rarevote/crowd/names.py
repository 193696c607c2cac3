"""Names of tasks, workers and classes: missing ones, their order, and how names that users type are looked up.

A command line and a CSV file have only text; Parquet, JSON and frames have numbers and booleans. A name typed
by a user (a class, an answer that is not a vote, a task, a worker, a gold label) is looked up only here.

Names can stay on disk: the ids of tens of millions of tasks are not kept in memory while a method runs. Stored names
replace an array of names; they are sorted and distinct, with none missing. Loading all of them as an array takes
memory; single names can be read separately.
"""

from __future__ import annotations

import re
import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.errors import InputError, shown

_PLAIN_NUMBER = re.compile(r"[-+]?\d{1,15}(\.\d{1,15})?", re.ASCII)


class StoredNames(ABC):
    """Distinct text names in sorted order, stored outside memory."""

    dtype = np.dtype(object)
    ndim = 1

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def take(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """The names with these numbers."""

    @abstractmethod
    def find(self, values: Sequence[Any]) -> NDArray[np.int64]:
        """The number of each value; -1 if it is not a name."""

    @abstractmethod
    def restricted(self, used: NDArray[np.bool_]) -> StoredNames:
        """Keep only the names that are used, renumbered."""

    @abstractmethod
    def load(self) -> NDArray[Any]:
        """All names, as an array of text."""

    @property
    def size(self) -> int:
        """Number of names."""
        return len(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("names on disk cannot be an array without being copied")
        return self.load() if dtype is None else self.load().astype(dtype)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, (int, np.integer)):
            if not -len(self) <= index < len(self):
                raise IndexError(f"no name number {index} among {len(self):,}")
            return self.take(np.array([index % len(self)], dtype=np.int64))[0]
        return self.take(np.arange(len(self))[index])

    def tolist(self) -> list[Any]:
        """All names, as a list."""
        return list(self.load())

    def __iter__(self) -> Iterator[Any]:
        return iter(self.load())


def positions_of(names: NDArray[Any] | StoredNames, values: Sequence[Any]) -> NDArray[np.int64]:
    """The position of each value among the names; -1 if it is not one of them."""
    if isinstance(names, StoredNames):
        return names.find(values)
    listed = names.tolist()
    # Only with booleans, equal values are not always the same name.
    key = name_key if bool in {*map(type, listed), *map(type, values)} else _as_it_is
    position = {key(name): number for number, name in enumerate(listed)}
    return np.fromiter((position.get(key(value), -1) for value in values), dtype=np.int64, count=len(values))


def numbered(names: Iterable[Any]) -> dict[Any, int]:
    """The number of each name, in the order given."""
    return {name: number for number, name in enumerate(names)}


def name_key(name: Any) -> Any:
    """A key that is equal for equal names: True == 1 in Python, but they are not the same name."""
    return isinstance(name, bool), name


def _as_it_is(name: Any) -> Any:
    return name


_SHOWN = 12  # how many names a message lists
_TRUTH_VALUES = ("true", "false")


def is_missing(value: object) -> bool:
    """Whether a single id or label is missing: None, NaN, NaT, NA, empty or blank text."""
    if value is None:
        return True
    if isinstance(value, str):
        return not value.strip()
    if type(value).__name__ in {"NAType", "NaTType"}:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        return False


def _is_integer_text(value: object) -> bool:
    # Python refuses to parse thousands of digits, and a label with that many is not meant as a number.
    if not isinstance(value, str) or len(value) > sys.int_info.str_digits_check_threshold:
        return False
    return value.isascii() and value.removeprefix("-").isdigit()


def sort_names(values: Iterable[Any]) -> list[Any]:
    """Sort ids by value if they are comparable, else by the name of their type and then by value."""
    names = list(values)
    try:
        return sorted(names)
    except TypeError:
        pass
    of_kind: dict[str, list[Any]] = {}
    for name in names:
        of_kind.setdefault(type(name).__name__, []).append(name)
    return [name for kind in sorted(of_kind) for name in _sorted_alike(of_kind[kind])]


def _sorted_alike(names: list[Any]) -> list[Any]:
    """Sort values of one type, by their text if they are not comparable, such as times with and without a zone."""
    try:
        return sorted(names)
    except TypeError:
        return sorted(names, key=repr)


def sort_labels(values: Iterable[Any]) -> list[Any]:
    """Sort labels as :func:`sort_names` does, but sort text by value if all labels are integers.

    >>> sort_labels(["10", "9", "-1"])
    ['-1', '9', '10']
    >>> sort_labels([2, "a", 1])
    [1, 2, 'a']
    """
    names = list(values)
    if names and all(_is_integer_text(name) for name in names):
        return sorted(names, key=lambda name: (int(name), name))
    return sort_names(names)


def as_name_array(values: Sequence[Any] | NDArray[Any]) -> NDArray[Any]:
    """A one-dimensional array of names: integers and floats as such, anything else as Python objects."""
    if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "iubfM":
        return values
    kinds = set(map(type, values.tolist() if isinstance(values, np.ndarray) else values))
    if kinds == {bool} or kinds == {float}:
        return np.array(values)
    if kinds == {int}:
        try:
            return np.array(values, dtype=np.int64)
        except OverflowError:
            pass
    return object_array(values)


def object_array(values: Sequence[Any] | NDArray[Any]) -> NDArray[Any]:
    """A one-dimensional array of any Python objects."""
    names = np.empty(len(values), dtype=object)
    names[:] = values
    return names


# --------------------------------------------------------------------------------------------------------------------
# names that users type


def spelling(name: Any) -> str:
    """A name as a person would type it.

    >>> [spelling(name) for name in ("a", 7, 7.0, 0.5, True, np.int64(3))]
    ['a', '7', '7', '0.5', 'true', '3']
    """
    if isinstance(name, np.generic):
        name = name.item()
    if isinstance(name, bool):
        return "true" if name else "false"
    return str(int(name)) if isinstance(name, float) and name.is_integer() else str(name)


def in_kind(given: Iterable[Any], known: NDArray[Any] | StoredNames) -> list[Any]:
    """Each value as it is named in the data: the known name that is equal or has the same spelling.

    An unknown name is converted to the common type of all known names if possible, else returned unchanged.

    >>> in_kind(["1", "2", "x"], np.array([1, 5]))
    [1, 2, 'x']
    >>> in_kind([7, True], np.array(["7", "true"], dtype=object))
    ['7', 'true']
    """
    values = [value.item() if isinstance(value, np.generic) else value for value in given]
    if isinstance(known, StoredNames):  # they are all text
        return [value if isinstance(value, str) else spelling(value) for value in values]
    if not values or not len(known):
        return values
    names = known.tolist()
    kinds = set(map(type, names))
    kind = kinds.pop() if len(kinds) == 1 else None
    if kind is int and set(map(type, values)) == {int}:
        return values
    own = {name_key(name) for name in names}
    spelled: dict[str, Any] = {}
    for name in names:
        text = spelling(name)
        spelled.setdefault(text, name)
        if text.casefold() in _TRUTH_VALUES:
            spelled.setdefault(text.casefold(), name)
    return [value if _is_among(value, own) else _spelled_alike(value, spelled, kind) for value in values]


def _is_among(value: Any, own: set[Any]) -> bool:
    try:
        return name_key(value) in own
    except TypeError:  # not hashable, so not a name
        return False


def _spelled_alike(value: Any, spelled: dict[str, Any], kind: type | None) -> Any:
    text = spelling(value)
    for candidate in (text, str(value)):
        if candidate in spelled:
            return spelled[candidate]
    if text.casefold() in _TRUTH_VALUES:
        return spelled.get(text.casefold(), _read_as(kind, value, text))
    return _read_as(kind, value, text)


def _read_as(kind: type | None, value: Any, text: str) -> Any:
    if kind is str:
        return value if isinstance(value, str) else text
    if kind is bool and text.casefold() in _TRUTH_VALUES:
        return text.casefold() == "true"
    try:
        # "007" and "1_0" are names of their own, as they are where the known names are text.
        if kind is int and isinstance(value, (str, float)):
            return int(text) if str(int(text)) == text else value
        if kind is float and isinstance(value, (str, int)) and not isinstance(value, bool):
            return float(text) if "_" not in text else value
    except ValueError:
        pass
    return value


def values_by_name(pairs: Iterable[tuple[Any, Any]], what: str) -> dict[Any, Any]:
    """Values by names from :func:`in_kind`, which can make one name of two: 7 and "7".

    Raises:
        InputError: a name has two different values.
    """
    found: dict[Any, Any] = {}
    for name, value in pairs:
        if name_key(found.setdefault(name, value)) != name_key(value):
            raise InputError(
                f"{what} {shown(name)} has two values, {shown(found[name])} and {shown(value)} (a number and the same "
                "number as text are one name): keep the right one"
            )
    return found


def find_name(given: Any, known: NDArray[Any]) -> int | None:
    """The number of the matching known name, or None if there is none.

    >>> find_name("2", np.array([1, 2])), find_name("x", np.array([1, 2]))
    (1, None)
    """
    (name,) = in_kind([given], known)
    return next((number for number, own in enumerate(known.tolist()) if name_key(own) == name_key(name)), None)


def unmatched(given: Sequence[Any], known: NDArray[Any]) -> list[Any]:
    """The given names that are not among the known ones."""
    own = {name_key(name) for name in known.tolist()}
    return [value for value, name in zip(given, in_kind(given, known), strict=True) if not _is_among(name, own)]


def plain_name(name: Any) -> Any:
    """A name as a plain Python value, for records that people print and platforms import."""
    return name.item() if isinstance(name, np.generic) else name


def some_names(names: Iterable[Any]) -> str:
    """The first names, separated by commas, for messages."""
    texts = list(map(str, names))
    return ", ".join(texts[:_SHOWN]) + (", ..." if len(texts) > _SHOWN else "")


def look_alikes(names: NDArray[Any]) -> list[str]:
    """What several of these sorted names are written as, such as 1 for 1 and "1".

    >>> look_alikes(np.array([1, 2, "1", "a"], dtype=object))
    ['1']
    """
    # Text among other types makes the order one of types, so that the ends have different types.
    if names.dtype != object or len(names) < 2 or type(names[0]) is type(names[-1]):
        return []
    return [text for text, count in Counter(map(spelling, names.tolist())).items() if count > 1]


def spellings_of_one(names: Iterable[Any]) -> list[list[str]]:
    """Texts that differ only in case, in blanks or in the writing of a number, and so may mean the same.

    >>> spellings_of_one(["No", "no", "yes", "1", "1.0", 1])
    [['No', 'no'], ['1', '1.0']]
    """
    groups: dict[object, list[str]] = {}
    for name in names:
        if isinstance(name, str):
            plain = " ".join(name.casefold().split())
            groups.setdefault(float(plain) if _PLAIN_NUMBER.fullmatch(plain) else plain, []).append(name)
    return [group for group in groups.values() if len(group) > 1]


def pair_name(item: Any, choice: str) -> str:
    """The task name of an item and a choice, for answers with several choices.

    >>> pair_name(7, "rust")
    '7:rust'
    """
    return f"{spelling(item)}:{choice}"
