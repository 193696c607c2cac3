"""The rare class: the class that matters in all steps after the fit.

It is the class that the user names, else the one with the fewest votes. Fewest votes, not fewest labels or expected
items: this is the same for every method, decision and command on the same data, and it is known before
anything is fitted. A class without votes is never chosen unless it is named.

For grades, it is the end of the scale with fewer votes, or a *tail* that the user names: ``>=severe``, ``<=2``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.grades import Grades, order_wanted
from rarevote.crowd.names import as_name_array, find_name, some_names, spelling
from rarevote.crowd.numerics import IntArray
from rarevote.errors import ParameterError

# A class below this fraction of an equal share is called rare.
_RARE = 0.8


@dataclass(frozen=True)
class RareClass:
    """The class that matters.

    Attributes:
        codes: numbers of its classes: one, or the grades of a tail from the end of the scale inwards.
        name: its name.
        named: whether the user named it.
        is_rare: whether it is clearly below an equal share of the votes.
        is_tail: whether it is a tail of the scale.
    """

    codes: tuple[int, ...]
    name: Any
    named: bool = False
    is_rare: bool = False
    is_tail: bool = False

    @property
    def code(self) -> int:
        """Number of the class; for a tail, of the grade at the end of the scale."""
        return self.codes[0]

    def mass(self, values: NDArray[Any]) -> NDArray[Any]:
        """Sum over its classes of a value per class (votes, probabilities), (n, K) to (n)."""
        return np.asarray(values[..., list(self.codes)].sum(axis=-1))

    def holds(self, codes: IntArray) -> NDArray[np.bool_]:
        """Whether each of these class numbers belongs to it."""
        return np.isin(codes, self.codes)

    @classmethod
    def of(
        cls,
        classes: NDArray[Any],
        class_votes: NDArray[np.int64],
        wanted: Any = None,
        grades: Grades | None = None,
        *,
        what: str = "rare",
    ) -> RareClass:
        """The class that ``wanted`` names, or the one with the fewest votes.

        Args:
            classes: names of the classes, (K).
            class_votes: votes for each, (K).
            wanted: name of the class, as in the data or as text (on a command line every class is text); for grades
                also a tail such as ``">=4"``. None for the class with the fewest votes among those that have any, the
                first in sorted order on a tie; for grades, the end of the scale with fewer votes, the top on a tie.
            grades: the order of the classes, if there is one.
            what: the name of the argument, for an error.

        Raises:
            ParameterError: no class has this name, or a tail contains all grades or none.

        Example:
            >>> RareClass.of(np.array(["defect", "sound"]), np.array([3, 9]))
            RareClass(codes=(0,), name='defect', named=False, is_rare=True, is_tail=False)
            >>> RareClass.of(np.array([1, 2, 3, 4]), np.array([9, 9, 5, 2]), ">=3", Grades.of("1..4")).codes
            (3, 2)
        """
        if wanted is None:
            return cls._by_votes(classes, class_votes, grades)
        code = find_name(wanted, classes)
        if code is not None:
            return cls._one(classes, class_votes, code, named=True)
        if (tail := parse_tail(wanted)) is not None:
            return cls._of_tail(classes, class_votes, *tail, grades)
        known = some_names(classes.tolist())
        raise ParameterError(f"{what}: {str(wanted)!r} is not a class; the classes are {known}")

    @classmethod
    def _one(cls, classes: NDArray[Any], class_votes: NDArray[np.int64], code: int, *, named: bool) -> RareClass:
        voted = int((class_votes > 0).sum())
        is_rare = bool(voted > 1 and class_votes[code] < _RARE / voted * class_votes.sum())
        return cls((code,), classes.tolist()[code], named, is_rare)

    @classmethod
    def _by_votes(cls, classes: NDArray[Any], class_votes: NDArray[np.int64], grades: Grades | None) -> RareClass:
        scale = [] if grades is None else [k for k in grades.codes(classes) if class_votes[k] > 0]
        if scale:
            code = min(scale[-1], scale[0], key=lambda k: int(class_votes[k]))
        else:
            code = int(np.where(class_votes > 0, class_votes, np.iinfo(np.int64).max).argmin())
        return cls._one(classes, class_votes, code, named=False)

    @classmethod
    def _of_tail(
        cls, classes: NDArray[Any], class_votes: NDArray[np.int64], side: str, grade: str, grades: Grades | None
    ) -> RareClass:
        name = f"{side}{grade}"
        if grades is None:
            raise ParameterError(f"{name!r} is about grades and needs their order: give {order_wanted()}")
        place = find_name(grade, grades.named_as(classes))
        if place is None:
            raise ParameterError(f"{name!r}: {grade!r} is not a grade; the grades are {some_names(grades.names)}")
        positions = grades.positions(classes)
        inside = positions >= place if side == ">=" else positions <= place
        scale = [k for k in grades.codes(classes) if class_votes[k] > 0]
        n_inside = sum(bool(inside[k]) for k in scale)
        if n_inside in (0, len(scale)):
            which = "all" if n_inside else "none"
            met = some_names(classes[scale].tolist())
            raise ParameterError(f"{name!r} holds {which} of the grades that have votes ({met}): choose another grade")
        codes = [k for k in grades.codes(classes) if inside[k]]
        is_rare = bool(class_votes[codes].sum() < _RARE / 2 * class_votes.sum())
        ends = tuple(reversed(codes)) if side == ">=" else tuple(codes)
        return cls(ends, f"{side}{spelling(grades.names[place])}", True, is_rare, is_tail=True)


def split_question(text: str, classes: NDArray[Any], grades: Grades | None = None) -> tuple[str, str | None]:
    """A class or a tail, and its value: the text after the last ``=``.

    Text that is a class, or ``>=`` or ``<=`` and a class, has no value.

    >>> names = np.array(["a", "a=0.5"])
    >>> split_question("a=0.9", names), split_question("a=0.5", names), split_question(">=a=0.9", names)
    (('a', '0.9'), ('a=0.5', None), ('>=a', '0.9'))
    """
    tail, known = parse_tail(text), classes if grades is None else as_name_array([*classes.tolist(), *grades.names])
    name, sign, asked = text.rpartition("=")
    if find_name(text, classes) is not None or (tail is not None and find_name(tail[1], known) is not None):
        return text, None
    return (name.strip(), asked.strip()) if sign and name.strip() else (text, None)


def parse_tail(text: Any) -> tuple[str, str] | None:
    """Side and grade of a tail; None if the text is not a tail.

    >>> parse_tail(">= severe"), parse_tail("severe")
    (('>=', 'severe'), None)
    """
    if not isinstance(text, str) or text.strip()[:2] not in (">=", "<="):
        return None
    side, grade = text.strip()[:2], text.strip()[2:].strip()
    return (side, grade) if grade else None
