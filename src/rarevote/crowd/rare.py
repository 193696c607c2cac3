"""The rare class: the one class that everything after the fit is about.

It is the class that a person names, else the one with the fewest votes. Fewest votes, not fewest labels or expected
items: that is the same for every method, every decision and every verb on the same data, and it is known before
anything is fitted. A class without votes is never chosen unless it is named.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.names import find_name, some_names
from rarevote.errors import ParameterError

# Below this part of an equal share a class is called rare.
_RARE = 0.8


@dataclass(frozen=True)
class RareClass:
    """The class that matters.

    Attributes:
        codes: numbers of its classes: one, or the grades of a tail.
        name: what it is called.
        named: whether a person named it.
        is_rare: whether it is clearly below an equal share of the votes.
    """

    codes: tuple[int, ...]
    name: Any
    named: bool = False
    is_rare: bool = False

    @property
    def code(self) -> int:
        """Number of the class; of a tail, of its first grade."""
        return self.codes[0]

    @classmethod
    def of(cls, classes: NDArray[Any], class_votes: NDArray[np.int64], wanted: Any = None) -> RareClass:
        """The class that ``wanted`` names, or the one with the fewest votes.

        Args:
            classes: names of the classes, (K).
            class_votes: votes for each, (K).
            wanted: name of the class, as it is or as text (on a command line every class is text); None for the class
                with the fewest votes among those that have any, the first in sorted order on a tie.

        Raises:
            ParameterError: no class has that name.

        Example:
            >>> RareClass.of(np.array(["defect", "sound"]), np.array([3, 9]))
            RareClass(codes=(0,), name='defect', named=False, is_rare=True)
        """
        if wanted is None:
            code = int(np.where(class_votes > 0, class_votes, np.iinfo(np.int64).max).argmin())
        else:
            found = find_name(wanted, classes)
            if found is None:
                known = some_names(classes.tolist())
                raise ParameterError(f"rare: {str(wanted)!r} is not a class; the classes are {known}")
            code = found
        voted = int((class_votes > 0).sum())
        is_rare = bool(voted > 1 and class_votes[code] < _RARE / voted * class_votes.sum())
        return cls((code,), classes.tolist()[code], wanted is not None, is_rare)
