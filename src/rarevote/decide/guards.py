"""Guards: when a crowd cannot answer, and when a method's answer should not be trusted.

They need only sums over the votes (:class:`VoteSurvey`), so they work the same wherever the votes are stored.
"""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.names import some_names
from rarevote.crowd.numerics import FloatArray, IntArray, added, picked, row_parts
from rarevote.crowd.rare import RareClass
from rarevote.crowd.words import counted, part_of, percent
from rarevote.decide.rules import ItemBatch
from rarevote.errors import how

# If this share of the tasks has a single annotator each, the votes cannot show who is right.
_ALMOST_ALL = 0.95
# From this share of items with a single vote, a note says so.
_MANY_SINGLE = 0.5
# Labels without a vote on their task: from this share of the tasks, the method explains the votes away.
_MANY_UNVOTED = 0.01
_MIN_UNVOTED = 3
# Fewer labels than this need no note. None of the 35 real crowds agrees less than this on its rare class;
# simulated ones with a share of 0.5% do, and at most 2% of their labels are right (benchmarks/deciding.py).
_MIN_LABELLED = 10
_LITTLE_AGREEMENT = 0.05
# If the share of a class is this much smaller than that of its votes, almost all of these are treated as errors.
_EXPLAINED_AWAY, _MIN_EXPLAINED = 0.35, 10  # with fewer votes for a class, any vote can be an accident
# How far the shares of the labels can be from those of the votes (half the sum of the differences).
_FAR = 0.2
_SILENCES = (
    "unsure", "not sure", "unclear", "undecided", "uncertain", "skip", "skipped", "n/a", "na", "idk", "don't know",
    "dont know", "do not know", "can't tell", "cant tell", "cannot tell", "can't say", "cannot say", "no answer",
    "not applicable", "unknown", "?",
)  # fmt: skip


class VoteSurvey(NamedTuple):
    """Sums over items that the guards need; sums of two parts of a crowd add up, entry by entry.

    Attributes:
        n_voted: number of items with votes.
        n_several: number of items on which at least two annotators voted.
        n_single: number of items with a single vote.
        own_labels: number of items to which the method itself gives each class, (K).
        n_own_unvoted: number of own labels without a vote on their item.
        pairs: if the rare class has ``v_i`` of the ``n_i`` votes on item i, the sums of ``v_i (v_i - 1)``,
            ``v_i (n_i - 1)`` and ``v_i``, (3).
    """

    n_voted: int
    n_several: int
    n_single: int
    own_labels: IntArray
    n_own_unvoted: int
    pairs: FloatArray

    @classmethod
    def of(
        cls,
        part: ItemBatch,
        task_ptr: NDArray[np.int64],
        worker: NDArray[Any],
        rare: RareClass,
        permitted: NDArray[np.bool_] | None = None,
    ) -> VoteSurvey:
        """The sums over some items.

        Args:
            part: the items; those with votes come first.
            task_ptr: where the votes of each item with votes begin, (n + 1).
            worker: who cast them.
            rare: the class that matters.
            permitted: which labels the votes on an item permit, (n, K); by default, classes with a vote.
        """
        n = len(task_ptr) - 1
        voted = part.votes > 0 if permitted is None else permitted
        several = n_tasks_of_several(task_ptr, worker)

        def some(rows: slice) -> VoteSurvey:
            items = part.rows(slice(rows.start, min(rows.stop, n)))
            known = items.gold >= 0
            own = np.where(known, items.gold, items.own)
            mine, all_votes = rare.mass(items.votes), np.diff(task_ptr[rows.start : rows.stop + 1]).astype(np.float64)
            return cls(
                len(own),
                several if rows.start == 0 else 0,
                int((all_votes == 1).sum()),
                np.bincount(own[own >= 0], minlength=items.votes.shape[1]),
                int((~picked(voted[rows][: len(own)], own) & ~known & items.bound).sum()),
                np.array([(mine * (mine - 1.0)).sum(), (mine * (all_votes - 1.0)).sum(), mine.sum()]),
            )

        return reduce(added, map(some, row_parts(n)))

    def plus(self, other: VoteSurvey) -> VoteSurvey:
        """The sums over the items of both."""
        return added(self, other)


def n_tasks_of_several(task_ptr: NDArray[np.int64], worker: NDArray[Any]) -> int:
    """Number of tasks on which at least two workers voted; every task has a vote."""
    if len(task_ptr) < 2:
        return 0
    lowest = np.minimum.reduceat(worker, task_ptr[:-1])
    return int((lowest != np.maximum.reduceat(worker, task_ptr[:-1])).sum())


class CrowdSize(NamedTuple):
    """Names and sizes of a crowd for the messages of the guards.

    Attributes:
        workers: names of the workers.
        classes: names of the classes.
        class_votes: votes for each class, (K).
        method: name of the method that is judged.
        default_method: name of the method to compare it with.
    """

    workers: NDArray[Any]
    classes: NDArray[Any]
    class_votes: IntArray
    method: str
    default_method: str

    @property
    def n_votes(self) -> int:
        """All votes."""
        return int(self.class_votes.sum())


def why_no_answer(workers: NDArray[Any], n_several: int, n_voted: int) -> str | None:
    """Why no method can learn from these votes who is right, as text; None if one can."""
    if not n_voted:
        return None
    if len(workers) == 1:
        return f"all votes are by one annotator ({workers.tolist()[0]})"
    if not n_several:
        return "no two annotators voted on the same item"
    if n_several <= (1.0 - _ALMOST_ALL) * n_voted:
        return f"only {part_of(n_several, n_voted, 'item', 'has', 'have')} votes of more than one annotator"
    return None


def no_answer_note(reason: str) -> str:
    """A note on what is done if no method can learn who is right."""
    return (
        f"{reason}, so no method can learn who is right: the labels are the votes themselves. Votes of a second "
        "annotator on the same items, or gold, would help"
    )


def features_answer_note(reason: str) -> str:
    """A note for votes that do not show who is right while features are used."""
    return (
        f"{reason}, so the votes do not show who is right: the labels rest on the features as well. Votes of a second "
        "annotator on the same items would help"
    )


def single_vote_note(n_single: int, n_voted: int) -> str | None:
    """A note if most items have a single vote, else None.

    >>> single_vote_note(60, 100)
    '60 of 100 items have a single vote, which is the label: a second vote there would help most'
    >>> single_vote_note(40, 100) is None
    True
    """
    if not n_voted or n_single < _MANY_SINGLE * n_voted:
        return None
    return (
        f"{part_of(n_single, n_voted, 'item', 'has', 'have')} a single vote, which is the label: a second vote there "
        "would help most"
    )


def doubts(survey: VoteSurvey, crowd: CrowdSize) -> list[str]:
    """Reasons to doubt a method's own labels, as sentences; usually none."""
    said = []
    n_tasks, n_classes = survey.n_voted, len(crowd.classes)
    votes_per_task = crowd.n_votes / max(n_tasks, 1)
    default = how(f"method={crowd.default_method!r}", f"--method {crowd.default_method}")
    instead = "" if crowd.method == crowd.default_method else f" Compare with the default ({default})."
    if survey.n_own_unvoted >= max(_MIN_UNVOTED, _MANY_UNVOTED * n_tasks):
        said.append(
            f"{crowd.method} would give {survey.n_own_unvoted:,} of {n_tasks:,} items a label without a vote on the "
            f"item: with {votes_per_task:.1f} votes per item over {n_classes} classes it explains disagreement away "
            f"instead of weighing it.{instead}"
        )
    elif crowd.method == "cc-rasch" and n_classes >= 5 and votes_per_task < 3:
        said.append(
            f"{votes_per_task:.1f} votes per task over {n_classes} classes is very sparse: item difficulty can "
            f"absorb all disagreement.{instead}"
        )
    labels = survey.own_labels / max(n_tasks, 1)
    votes = crowd.class_votes / max(crowd.n_votes, 1)
    if 0.5 * np.abs(labels - votes).sum() > _FAR:
        k = int((labels - votes).argmax())
        said.append(
            f"{crowd.method} gives {percent(labels[k])} of the items to {crowd.classes[k]}, which has "
            f"{percent(votes[k])} of the votes: so far apart, one of the two is wrong.{instead}"
        )
    return said


def explained_away_notes(shares: FloatArray, crowd: CrowdSize) -> list[str]:
    """Notes on classes whose votes the method treats almost all as errors; usually none.

    Args:
        shares: mean probability of every class, (K).
        crowd: the votes for each class; only classes that come from gold have none.

    >>> names = np.array(["ok", "defect"])
    >>> crowd = CrowdSize(np.array(["ann"]), names, np.array([80, 20]), "anchored-rasch", "anchored-rasch")
    >>> print(explained_away_notes(np.array([0.94, 0.06]), crowd)[0][:86])
    almost all votes for defect are explained as errors (20% of the votes, 6% of the items
    >>> explained_away_notes(np.array([0.93, 0.07]), crowd)
    []
    """
    votes = crowd.class_votes / max(crowd.n_votes, 1)
    return [
        f"almost all votes for {crowd.classes[k]} are explained as errors ({percent(votes[k])} of the votes, "
        f"{percent(shares[k])} of the items): look at the votes before using this class"
        for k in np.flatnonzero((shares < _EXPLAINED_AWAY * votes) & (crowd.class_votes >= _MIN_EXPLAINED)).tolist()
    ]


def disagreement_note(pairs: FloatArray, n_votes: int, n_labelled: int, name: Any) -> str | None:
    """A note if annotators hardly agree on which items are of the rare class, else None.

    Let ``v_i`` of the ``n_i`` votes on item i be for the class, ``p`` its share of all votes. If one annotator votes
    for it, a share ``q = sum v_i (v_i - 1) / sum v_i (n_i - 1)`` of the others on the item do so too. The agreement
    beyond chance is ``(q - p) / (1 - p)``, Fleiss' kappa of one category. A class that is rarer than annotators'
    mistakes has almost none: its votes are mostly mistakes, and so are the labels, whatever the method.

    Args:
        pairs: as in :class:`VoteSurvey`.
        n_votes: all votes.
        n_labelled: number of items with its label.

    >>> print(disagreement_note(np.array([0.0, 120.0, 40.0]), 160, 40, "defect")[:97])
    annotators hardly agree on which items are defect: where one votes defect, 0% of the others do so
    >>> disagreement_note(np.array([240.0, 240.0, 80.0]), 160, 20, "defect") is None
    True
    """
    joined_pairs, all_pairs, mine = pairs.tolist()
    if n_labelled < _MIN_LABELLED or not all_pairs:
        return None
    share, joined = mine / n_votes, joined_pairs / all_pairs
    if joined - share >= _LITTLE_AGREEMENT * (1.0 - share):
        return None
    return (
        f"annotators hardly agree on which items are {name}: where one votes {name}, {percent(joined)} of the others "
        f"do so too, against {percent(share)} of all votes. Most of the {n_labelled:,} items labelled {name} are "
        "probably not: look at them before acting on them, the most probable first"
    )


def rare_note(survey: VoteSurvey, crowd: CrowdSize, rare: RareClass, n_labelled: int) -> str | None:
    """A note on the labels of the rare class; ``n_labelled`` items without gold have it."""
    return disagreement_note(survey.pairs, crowd.n_votes, n_labelled, rare.name) if rare.is_rare else None


def tail_notes(tail: RareClass, shares: FloatArray, n_unvoted: int) -> list[str]:
    """Notes on the flags of a tail.

    Args:
        shares: mean probability of every class, (K).
        n_unvoted: number of flagged items without a vote in the tail.
    """
    said, share = [], float(tail.mass(shares))
    if n_unvoted:
        said.append(
            f"{counted(n_unvoted, 'item is', 'items are')} flagged {tail.name} without a vote in that tail: the sum of "
            "the probabilities decides, for example with votes just below it"
        )
    if share > 0.5:
        said.append(f"{tail.name} is common ({percent(share)} of the items): the other side is the rare one")
    return said


def silences(classes: NDArray[Any]) -> list[Any]:
    """Classes whose names look like a missing answer, such as "unsure" or "n/a".

    >>> silences(np.array(["defect", "Not sure", "sound"], dtype=object))
    ['Not sure']
    """
    return [name for name in classes.tolist() if isinstance(name, str) and name.strip().casefold() in _SILENCES]


def silence_note(classes: NDArray[Any]) -> str | None:
    """A note that suggests leaving such answers out."""
    found = silences(classes)
    if not found or len(found) == len(classes):
        return None
    options = how(f"abstain={found[:3]}", " ".join(f'--abstain "{name}"' for name in found[:3]))
    return f"{some_names(found)} looks like a missing answer, but counts as a class: {options} leaves it out"
