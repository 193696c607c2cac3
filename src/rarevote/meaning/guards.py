"""Where a crowd cannot answer, and where a method's answer should not be believed: said before anybody acts on it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.names import some_names
from rarevote.crowd.numerics import is_rare, picked
from rarevote.crowd.words import percent
from rarevote.errors import how
from rarevote.meaning.decide import Basis, Rule
from rarevote.meaning.expect import RecallTarget
from rarevote.methods.registry import DEFAULT_METHOD

# With so many of the tasks in the hands of one person each, nothing tells who is right.
_ALMOST_ALL = 0.95
# Labels that nobody voted for on the task: from this share of the tasks on, the method explains the votes away.
_MANY_UNVOTED = 0.01
_MIN_UNVOTED = 3
# Fewer labels than this speak for themselves. None of the 35 real crowds agrees less than this on its rare class;
# simulated ones of 0.5% do, and 2% of their labels or fewer are right (benchmarks/deciding.py).
_MIN_LABELLED = 10
_LITTLE_AGREEMENT = 0.05
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


class Guarded(NamedTuple):
    """A choice within what the crowd can answer.

    Attributes:
        codes: class number of each task, -1 for no answer, (n).
        words: how it was decided.
        target: what came of a recall target.
        n_guarded: tasks whose label would have been one that nobody voted for there.
        warnings: what to know before acting on it.
        cannot_answer: whether the labels are only the votes.
    """

    codes: NDArray[np.int64]
    words: str
    target: RecallTarget | None
    n_guarded: int
    warnings: tuple[str, ...]
    cannot_answer: bool


def guarded_choice(
    crowd: Annotations,
    rule: Rule,
    basis: Basis,
    known: NDArray[np.int64],
    *,
    method: str,
    rare: int | None = None,
    allow_unvoted: bool = False,
) -> Guarded:
    """Decide by a rule, but never on what the crowd did not say.

    A label is one that somebody voted for on the task, unless it is known or ``allow_unvoted``. Where the crowd cannot
    tell who is right, the votes themselves are the labels.

    Args:
        basis: what the rule decides on, with the votes per task and class.
        known: known class of each task or -1, (n).
        allow_unvoted: let a label be one that nobody voted for on the task.
    """
    votes = basis.votes
    assert votes is not None
    warnings: list[str] = []
    target, n_guarded = None, 0
    reason = why_no_answer(crowd)
    is_known = known >= 0
    if reason is not None:
        codes, words = votes.argmax(axis=1), "the votes themselves"
        warnings.append(
            f"{reason}, so no method can learn who is right: the labels are the votes themselves. Votes of a second "
            "annotator on the same items, or gold, would help"
        )
    else:
        (codes, target), words = rule.choose(basis), rule.words
        voted_for = votes > 0
        unvoted = (codes >= 0) & ~picked(voted_for, codes) & ~is_known
        if target is not None and target.promised and unvoted.any():
            warnings.append(
                f"nobody voted {target.name} on {int(unvoted.sum()):,} of the items flagged for its recall: the "
                "promise needs them"
            )
        elif not allow_unvoted and unvoted.any():
            n_guarded = int(unvoted.sum())
            had_target = target is not None
            voted, target = rule.choose(replace(basis, only_voted=True))
            # What comes of a recall target depends on all tasks that may be flagged.
            where = slice(None) if had_target else unvoted
            codes[where] = voted[where]
            del voted  # a number for every task
        own = np.where(is_known, known, basis.own) if is_known.any() else basis.own
        n_unvoted = int((~picked(voted_for, own) & ~is_known).sum())
        warnings += doubts(crowd, own, n_unvoted, method=method)
        if rare is not None and is_rare(crowd, rare):
            note = disagreement_note(votes, rare, int(((codes == rare) & ~is_known).sum()), crowd.classes[rare])
            warnings += [] if note is None else [note]
    if (note := silence_note(crowd.classes)) is not None:
        warnings.append(note)
    codes = (np.where(is_known, known, codes) if is_known.any() else codes).astype(np.int64, copy=False)
    return Guarded(codes, words, target, n_guarded, tuple(warnings), reason is not None)


def doubts(crowd: Annotations, own: NDArray[np.int64], n_unvoted: int, *, method: str) -> list[str]:
    """What speaks against a method's own labels, in sentences; nothing for most.

    Args:
        own: the method's labels before any guard, (n).
        n_unvoted: how many of them nobody voted for on their task.
    """
    said = []
    votes_per_task = crowd.n_annotations / max(crowd.n_tasks, 1)
    default = how(f"method={DEFAULT_METHOD!r}", f"--method {DEFAULT_METHOD}")
    instead = "" if method == DEFAULT_METHOD else f" Compare with the default ({default})."
    if n_unvoted >= max(_MIN_UNVOTED, _MANY_UNVOTED * crowd.n_tasks):
        said.append(
            f"{method} would give {n_unvoted:,} of {crowd.n_tasks:,} items a label that nobody voted for there: with "
            f"{votes_per_task:.1f} votes per item over {crowd.n_classes} classes it explains "
            f"disagreement away instead of weighing it.{instead}"
        )
    elif method == "cc-rasch" and crowd.n_classes >= 5 and votes_per_task < 3:
        said.append(
            f"{votes_per_task:.1f} votes per task over {crowd.n_classes} classes is very sparse: item difficulty can "
            f"absorb all disagreement.{instead}"
        )
    labels = np.bincount(own[own >= 0], minlength=crowd.n_classes) / max(crowd.n_tasks, 1)
    votes = crowd.class_votes / max(crowd.n_annotations, 1)
    if 0.5 * np.abs(labels - votes).sum() > _FAR:
        k = int((labels - votes).argmax())
        said.append(
            f"{method} gives {percent(labels[k])} of the items to {crowd.classes[k]}, which has {percent(votes[k])} of "
            f"the votes: so far apart, one of the two is wrong.{instead}"
        )
    return said


def disagreement_note(votes: NDArray[np.float64], rare: int, n_labelled: int, name: Any) -> str | None:
    """What to know where annotators hardly agree on which items are of the rare class, in words.

    Let ``v_i`` of the ``n_i`` votes on item i be for the class, ``p`` its share of all votes. Where one votes for it,
    of the others on the item a share ``q = sum v_i (v_i - 1) / sum v_i (n_i - 1)`` does so too. The agreement beyond
    chance is ``(q - p) / (1 - p)``, Fleiss' kappa of one category. A class that is rarer than people's mistakes has
    next to none: its votes are mostly mistakes, and so are the labels, whatever the method.

    Args:
        votes: votes per item and class, (n, K).
        n_labelled: how many items got its label.

    >>> votes = np.array([[3.0, 1.0]] * 40)
    >>> print(disagreement_note(votes, 1, 40, "defect")[:97])
    annotators hardly agree on which items are defect: where one votes defect, 0% of the others do so
    >>> disagreement_note(np.array([[0.0, 4.0], [4.0, 0.0]] * 20), 1, 20, "defect") is None
    True
    """
    mine = votes[:, rare]
    pairs = float(sum(mine @ votes[:, k] for k in range(votes.shape[1])) - mine.sum())  # whole numbers: exact
    if n_labelled < _MIN_LABELLED or not pairs:
        return None
    share = float(mine.sum() / votes.sum())
    joined = float(mine @ mine - mine.sum()) / pairs
    if joined - share >= _LITTLE_AGREEMENT * (1.0 - share):
        return None
    return (
        f"annotators hardly agree on which items are {name}: where one votes {name}, {percent(joined)} of the others "
        f"do so too, and {percent(share)} do anywhere. Most of the {n_labelled:,} items labelled {name} are probably "
        "not: look at them before acting on them, the most probable first"
    )


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
    options = how(f"abstain={found[:3]}", " ".join(f'--abstain "{name}"' for name in found[:3]))
    return f"{some_names(found)} looks like no vote, but counts as a class: {options} leaves it out"
