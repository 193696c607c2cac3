"""The scores of a decision: its labels compared with the truth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.names import name_key, positions_of
from rarevote.crowd.rare import RareClass
from rarevote.errors import InputError
from rarevote.scoring.metrics import score

_NO_ANSWER: Any = object()  # used instead of a class of any type


def scores_of(
    tasks: Any,
    codes: NDArray[np.int64],
    classes: NDArray[Any],
    known: Mapping[Any, Any],
    rare: RareClass,
    flagged: NDArray[np.bool_],
) -> dict[str, Any]:
    """Compare labels with the truth, the rare class first; an item without an answer is a miss of its class.

    Args:
        tasks: names of the items, (n).
        codes: class number of each, -1 for no answer, (n).
        classes: names of the classes, (K).
        known: the truth by task.
        rare: the class that matters.
        flagged: items of this class, by the decision, (n).

    Raises:
        InputError: the truth names none of the tasks.
    """
    place = positions_of(tasks, list(known))
    if not (place >= 0).any():
        raise InputError("the truth names none of the tasks: check ids")
    true = [label for label, number in zip(known.values(), place.tolist(), strict=True) if number >= 0]
    names = [*classes.tolist(), _NO_ANSWER]  # last, so that index -1 picks it
    answers = [names[code] for code in codes[place[place >= 0]].tolist()]
    found = score(true, answers, unanswered=_NO_ANSWER)
    figures = found.figures(str(rare.name))
    if rare.is_tail:
        of_tail = set(map(name_key, classes[list(rare.codes)].tolist()))
        is_true = np.array([name_key(name) in of_tail for name in true])
        flags = flagged[place[place >= 0]]
        hits = float((is_true & flags).sum())
        figures["rare_recall"] = hits / is_true.sum() if is_true.any() else None
        figures["rare_precision"] = hits / flags.sum() if flags.any() else None
    return {
        **figures,
        "minority_class": found.minority_class,
        "minority_recall": found.minority_recall,
        "n_unanswered": answers.count(_NO_ANSWER),
        "truth_without_labels": len(known) - len(true),
    }
