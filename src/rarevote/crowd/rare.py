"""The class that matters: the one that is named, else the one with the fewest votes.

Fewest votes, not fewest labels or expected items: this is the same for every method, every decision and every verb on
the same data, and it is known before anything is fitted. A class that nobody voted for is never meant.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.names import find_name, listed
from rarevote.errors import ParameterError

# Below this part of an equal share a class is called rare.
_RARE = 0.8


def rare_class(crowd: Annotations, wanted: Any = None) -> int:
    """Number of the class that matters.

    Args:
        crowd: the votes.
        wanted: name of the class, as it is or as text (on a command line every class is text); None for the class with
            the fewest votes among those that have any, the first in sorted order on a tie.

    Raises:
        ParameterError: no class has that name.

    Example:
        >>> crowd = Annotations.from_arrays([1, 1, 2], ["ann", "bob", "ann"], ["sound", "defect", "sound"])
        >>> rare_class(crowd), rare_class(crowd, "sound")
        (0, 1)
    """
    if wanted is not None:
        number = find_name(wanted, crowd.classes)
        if number is None:
            known = listed(crowd.classes.tolist())
            raise ParameterError(f"rare: no class is called {str(wanted)!r}; the classes are {known}")
        return number
    votes = crowd.class_votes
    return int(np.where(votes > 0, votes, np.iinfo(np.int64).max).argmin())


def is_rare(crowd: Annotations, number: int) -> bool:
    """Whether a class is rare enough to be called so: clearly below an equal share of the votes."""
    votes = crowd.class_votes
    voted = int((votes > 0).sum())
    return bool(voted > 1 and votes[number] < _RARE / voted * crowd.n_annotations)
