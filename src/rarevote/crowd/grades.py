"""The order of grades: classes on a scale, from lowest to highest, and classes outside it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.encoding import as_list
from rarevote.crowd.names import as_name_array, in_kind, is_missing, name_key, plain_name, some_names, spelling
from rarevote.crowd.numerics import FloatArray
from rarevote.errors import ParameterError, how, shown

#: with fewer grades there is no order to learn from; with more, they are numbers
MIN_GRADES, MAX_GRADES = 3, 20

# The number of bins in the command that a message proposes.
_N_BINS = 10
_RANGE = re.compile(r"\s*(-?\d{1,9})\s*\.\.\s*(-?\d{1,9})\s*")


@dataclass(frozen=True)
class Grades:
    """Classes in order.

    Attributes:
        names: the grades from lowest to highest.
    """

    names: tuple[Any, ...]

    @classmethod
    def of(cls, given: Any) -> Grades:
        """The order that a user gives: names, or text such as ``low,medium,high`` or ``1..5``.

        Raises:
            ParameterError: fewer than three grades, more than twenty, or one that is named twice.

        Example:
            >>> Grades.of("1..4").names
            ('1', '2', '3', '4')
        """
        names = _listed(given)
        option = how("ordered", "--ordered")
        if len(names) < MIN_GRADES:
            raise ParameterError(
                f"{option} needs at least {MIN_GRADES} grades, the lowest first, got {some_names(names) or 'none'}: "
                "two classes have no order to learn from, leave it out"
            )
        if len(names) > MAX_GRADES:
            raise ParameterError(_too_many(len(names), names))
        for name in names:
            if is_missing(name) or not isinstance(name, Hashable):
                raise ParameterError(f"{option} holds {shown(name)}, which is not the name of a class")
        keys = list(map(spelling, names))
        if twice := [name for name, key in zip(names, keys, strict=True) if keys.count(key) > 1]:
            raise ParameterError(f"{option} names {twice[0]!r} twice")
        return cls(tuple(names))

    @property
    def text(self) -> str:
        """The grades in the format of ``--ordered``."""
        return ",".join(map(spelling, self.names))

    def positions(self, classes: NDArray[Any]) -> FloatArray:
        """Position of every class on the scale: 0 for the lowest grade, NaN for a class outside, (K).

        >>> Grades(("low", "mid", "high")).positions(np.array(["high", "low", "skip"], dtype=object)).tolist()
        [2.0, 0.0, nan]
        """
        place = {name_key(name): float(rank) for rank, name in enumerate(self.named_as(classes).tolist())}
        found = [place.get(name_key(name), np.nan) for name in classes.tolist()]
        return np.array(found, dtype=np.float64)

    def named_as(self, classes: NDArray[Any]) -> NDArray[Any]:
        """The grades with the names of the classes, from lowest to highest."""
        return as_name_array(in_kind(self.names, classes))

    def codes(self, classes: NDArray[Any]) -> list[int]:
        """Numbers of the classes that are grades, from lowest to highest."""
        positions = self.positions(classes)
        inside = np.flatnonzero(np.isfinite(positions))
        return [int(k) for k in inside[np.argsort(positions[inside])]]

    def values(self, classes: NDArray[Any]) -> FloatArray:
        """The value of each class in a mean: its number if grades are numbers, else its position; NaN outside, (K)."""
        positions = self.positions(classes)
        try:
            numbers = np.array([float(name) for name in self.names])
        except (TypeError, ValueError):
            return positions
        inside = np.isfinite(positions)
        positions[inside] = numbers[positions[inside].astype(np.int64)]
        return positions

    def means(self, p: FloatArray, classes: NDArray[Any]) -> FloatArray:
        """Mean grade of each item from its probabilities inside the scale; NaN if there is none, (n)."""
        values = self.values(classes)
        inside = np.flatnonzero(np.isfinite(values))
        total = p[:, inside].sum(axis=1)
        weighted = (p[:, inside] * values[inside]).sum(axis=1)
        return np.asarray(np.where(total > 0, weighted / np.where(total > 0, total, 1.0), np.nan))

    def met(self, classes: NDArray[Any]) -> list[Any]:
        """The classes that are grades, from lowest to highest."""
        names = classes.tolist()
        return [names[k] for k in self.codes(classes)]

    def doubt(self, classes: NDArray[Any]) -> str | None:
        """A warning about misspelled names: a grade without votes, and a class with votes that is not a grade.

        Args:
            classes: classes that have votes or gold.

        Raises:
            ParameterError: none of them is a grade.
        """
        met = {name_key(name) for name in self.met(classes)}
        outside = [name for name in classes.tolist() if name_key(name) not in met]
        if not met:
            raise ParameterError(
                f"none of the grades {some_names(self.names)} has votes; the classes are {some_names(outside)}"
            )
        lacking = [spelling(name) for name in in_kind(self.names, classes) if name_key(name) not in met]
        if not lacking or not outside:
            return None
        texts = [spelling(name) for name in outside]
        for name in lacking:
            if near := difflib.get_close_matches(name, texts, n=1, cutoff=0.6):
                return f"the grade {name} has no votes, and {near[0]} is outside the scale: did you mean {near[0]}?"
        return (
            f"{_listing(lacking, 'the grade', 'the grades')} no votes, and {some_names(outside)} "
            f"{'is' if len(outside) == 1 else 'are'} outside the scale: check the names in the order"
        )


def _listing(names: Sequence[Any], one: str, several: str) -> str:
    return f"{one if len(names) == 1 else several} {some_names(names)} {'has' if len(names) == 1 else 'have'}"


def _listed(given: Any) -> list[Any]:
    if isinstance(given, str):
        if found := _RANGE.fullmatch(given):
            first, last = int(found[1]), int(found[2])
            step = 1 if last >= first else -1
            if abs(last - first) >= MAX_GRADES:
                raise ParameterError(_too_many(abs(last - first) + 1, [first, last]))
            return [str(number) for number in range(first, last + step, step)]
        return [name.strip() for name in given.split(",") if name.strip()]
    if not isinstance(given, Iterable) or isinstance(given, (set, frozenset, bytes)):
        raise ParameterError(f"ordered must be a list of classes, the lowest first, got {given!r}")
    return list(given) if isinstance(given, Mapping) else [plain_name(name) for name in as_list(given, "ordered")]


def _too_many(count: int, names: Sequence[Any]) -> str:
    """The message that refuses too many grades, with a command that bins them."""
    try:
        numbers = [float(name) for name in (names[0], names[-1])]
    except (TypeError, ValueError):
        numbers = [0.0]
    refused = f"{count:,} grades are too many (at most {MAX_GRADES})"
    if max(numbers) == min(numbers):
        return f"{refused}: merge some of them"
    return f"{refused}: round or bin them, {binning(min(numbers), max(numbers))}"


def binning(low: float, high: float) -> str:
    """A sentence on how to turn numbers between these into ten grades, with a command."""
    width = (high - low) / _N_BINS
    last = _N_BINS - 1
    command = (
        f"awk -F, -v OFS=, 'NR>1{{b=int(($3-({low:g}))/{width:g}); $3=b>{last}?{last}:b}}1' labels.csv > binned.csv "
        f"&& rarevote aggregate binned.csv --ordered 0..{last} --out result.csv"
    )
    return how(
        f"such as pandas.cut(labels, {_N_BINS}, labels=False) with ordered='0..{last}'",
        f"as this does where the label is the third column: {command}",
    )


def order_wanted() -> str:
    """A sentence that says what to give if the order is missing."""
    return how("ordered=[...], the lowest class first", "--ordered low,medium,high")
