"""Where a crowd cannot answer, and where a method's answer should not be believed: said before anybody acts on it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.names import listed
from rarevote.crowd.words import percent

# With so many of the tasks in the hands of one person each, nothing tells who is right.
_ALMOST_ALL = 0.95
# Labels that nobody voted for on the task: from this share of the tasks on, the method explains the votes away.
_MANY_UNVOTED = 0.01
_MIN_UNVOTED = 3
# How far the shares of the labels may be from those of the votes (half the sum of the differences).
_FAR = 0.2
_SILENCES = (
    "unsure", "not sure", "unclear", "undecided", "uncertain", "skip", "skipped", "n/a", "na", "idk", "don't know",
    "dont know", "do not know", "can't tell", "cant tell", "cannot tell", "can't say", "cannot say", "no answer",
    "not applicable", "unknown", "?",
)  # fmt: skip


def why_no_answer(crowd: Annotations) -> str | None:
    """Why no method can learn from these votes who is right, in words; None if one can."""
    if not crowd.n_annotations:
        return None
    if crowd.n_workers == 1:
        return f"all votes are by one annotator ({crowd.workers.tolist()[0]})"
    several = _tasks_of_several(crowd)
    if not several:
        return "no two annotators voted on the same item"
    if several <= (1.0 - _ALMOST_ALL) * crowd.n_tasks:
        return f"only {several:,} of {crowd.n_tasks:,} items have votes of more than one annotator"
    return None


def _tasks_of_several(crowd: Annotations) -> int:
    """Tasks on which at least two workers voted."""
    begin = crowd.task_ptr[:-1]
    lowest = np.minimum.reduceat(crowd.worker, begin)
    return int((lowest != np.maximum.reduceat(crowd.worker, begin)).sum())


def votes_as_labels(votes: NDArray[Any]) -> NDArray[np.int64]:
    """The class with the most votes on each task, ties to the first."""
    return np.asarray(votes.argmax(axis=1))


def doubts(crowd: Annotations, own: NDArray[np.int64], n_unvoted: int, *, method: str, default: str) -> list[str]:
    """What speaks against a method's own labels, in sentences; nothing for most.

    Args:
        crowd: the votes.
        own: the method's labels before any guard, (n).
        n_unvoted: how many of them nobody voted for on their task.
        method: its name.
        default: the method to name instead.
    """
    said = []
    instead = "" if method == default else f" Compare with the default (--method {default})."
    if n_unvoted >= max(_MIN_UNVOTED, _MANY_UNVOTED * crowd.n_tasks):
        said.append(
            f"{method} would give {n_unvoted:,} of {crowd.n_tasks:,} items a label that nobody voted for there: with "
            f"{crowd.n_annotations / crowd.n_tasks:.1f} votes per item over {crowd.n_classes} classes it explains "
            f"disagreement away instead of weighing it.{instead}"
        )
    labels = np.bincount(own[own >= 0], minlength=crowd.n_classes) / max(crowd.n_tasks, 1)
    votes = np.bincount(crowd.label, minlength=crowd.n_classes) / max(crowd.n_annotations, 1)
    if 0.5 * np.abs(labels - votes).sum() > _FAR:
        k = int(np.abs(labels - votes).argmax())
        said.append(
            f"{method} gives {percent(labels[k])} of the items to {crowd.classes[k]}, which has {percent(votes[k])} of "
            f"the votes: so far apart, one of the two is wrong.{instead}"
        )
    return said


def silences(classes: NDArray[Any]) -> list[Any]:
    """Classes whose names look like no vote at all, such as "unsure" or "n/a".

    >>> silences(np.array(["defect", "Not sure", "sound"], dtype=object))
    ['Not sure']
    """
    return [name for name in classes.tolist() if isinstance(name, str) and name.strip().casefold() in _SILENCES]


def silence_note(classes: NDArray[Any]) -> str | None:
    """The proposal to leave such answers out, in words."""
    found = silences(classes)
    if not found or len(found) == len(classes):
        return None
    options = " ".join(f'--abstain "{name}"' for name in found[:3])
    return f"{listed(found)} looks like no vote, but counts as a class: {options} leaves it out"
