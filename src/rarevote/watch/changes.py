"""The changes between two rounds: new votes, changed labels, annotators who stand out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.names import as_name_array
from rarevote.crowd.words import counted, percent
from rarevote.diagnose.workers import recognition
from rarevote.watch.state import WatchState, votes_by_task, votes_by_worker

if TYPE_CHECKING:
    from rarevote.result import Result

_MAX_NAMED = 5


@dataclass(frozen=True)
class StandsOut:
    """An annotator who recognises a class significantly less often than by chance.

    Attributes:
        worker: the annotator.
        of_class: the class.
        accuracy: share of the class that they label so.
        low: lower end of its 95% interval.
        high: upper end of the interval.
    """

    worker: str
    of_class: str
    accuracy: float
    low: float
    high: float

    def __str__(self) -> str:
        interval = f"{percent(self.low)} to {percent(self.high)}"
        return f"{self.worker} recognises {percent(self.accuracy)} ({interval}) of {self.of_class}"


@dataclass(frozen=True)
class Changes:
    """The changes since the previous round.

    Attributes:
        number: number of the round.
        n_votes: current number of votes.
        new_votes: number of new votes of each annotator.
        items_voted: number of items whose votes changed.
        labelled: number of items with their first label.
        flipped: items whose label changed: task, before, now.
        stand_out: annotators who stand out.
        newly: annotators who did not stand out before.
        state: the state to save.
    """

    number: int
    n_votes: int
    new_votes: dict[str, int]
    items_voted: int
    labelled: int
    flipped: list[tuple[str, str, str]]
    stand_out: list[StandsOut]
    newly: list[StandsOut]
    state: WatchState

    def sentences(self) -> list[str]:
        """The changes as sentences."""
        busiest = sorted(self.new_votes.items(), key=lambda row: -row[1])
        people = ", ".join(f"{name} {count:,}" for name, count in busiest[:_MAX_NAMED])
        more = f" and {len(busiest) - _MAX_NAMED} more" if len(busiest) > _MAX_NAMED else ""
        by = f" ({people}{more})" if busiest else ""
        said = [
            f"round {self.number}: {counted(sum(self.new_votes.values()), 'new vote')}{by}, "
            f"{counted(self.items_voted, 'item')} with changed votes; {counted(self.n_votes, 'vote')} in all"
        ]
        said.append(f"{counted(self.labelled, 'item')} labelled for the first time; {len(self.flipped):,} flipped")
        said += [
            f"  {task}: {before or 'no label'} -> {now or 'no label'}" for task, before, now in self.flipped[:_SHOWN]
        ]
        if len(self.flipped) > _SHOWN:
            said.append(f"  ... {len(self.flipped) - _SHOWN:,} more in changes.csv")
        said += [f"stands out: {one}" for one in self.newly]
        return said

    def figures(self) -> dict[str, Any]:
        """The changes for JSON."""
        return {
            "round": self.number,
            "votes": self.n_votes,
            "new_votes": self.new_votes,
            "items_voted": self.items_voted,
            "labelled": self.labelled,
            "flipped": [{"task": task, "before": before, "now": now} for task, before, now in self.flipped],
            "stand_out": [vars(one) for one in self.stand_out],
        }

    def columns(self) -> dict[str, NDArray[Any]]:
        """Changed labels, as columns of a table."""
        names = ("task", "before", "now")
        return {name: as_name_array([row[k] for row in self.flipped]) for k, name in enumerate(names)}


_SHOWN = 10


def compare(before: WatchState, result: Result, seen: str) -> Changes:
    """The changes since the last round.

    Args:
        before: the state of that round.
        result: the current labels.
        seen: the fingerprint of their inputs.
    """
    votes = result.fitted.annotations
    labels = {str(task): str(label) for task, label in zip(result.tasks.tolist(), result.labels.tolist(), strict=True)}
    by_task, by_worker = votes_by_task(votes), votes_by_worker(votes)
    further = {name: count - before.workers.get(name, 0) for name, count in by_worker.items()}
    flipped = [
        (task, before.labels[task], label)
        for task, label in labels.items()
        if before.labels.get(task) and before.labels[task] != label
    ]
    odd = stand_out(result)
    state = WatchState(
        source=before.source,
        rounds=before.rounds + 1,
        seen=seen,
        n_votes=votes.n_annotations,
        workers=by_worker,
        labels=labels,
        votes=by_task,
        stand_out=[f"{one.worker}: {one.of_class}" for one in odd],
    )
    return Changes(
        number=state.rounds,
        n_votes=votes.n_annotations,
        new_votes={name: count for name, count in further.items() if count > 0},
        items_voted=sum(before.votes.get(task) != digest for task, digest in by_task.items()),
        labelled=sum(bool(label) and not before.labels.get(task) for task, label in labels.items()),
        flipped=flipped,
        stand_out=odd,
        newly=[one for one, name in zip(odd, state.stand_out, strict=True) if name not in before.stand_out],
        state=state,
    )


def stand_out(result: Result) -> list[StandsOut]:
    """Annotators whose whole 95% interval for the class that matters, or for the largest, lies below chance, 1 / K."""
    fitted = result.fitted
    votes = fitted.annotations
    p = result.probabilities.p[: votes.n_tasks]
    accuracy, low, high = recognition(votes, p)
    others = [int(k) for k in np.argsort(-p.sum(axis=0), kind="stable") if k not in fitted.rare.codes]
    found = []
    for k in [*fitted.rare.codes, *others[:1]]:
        for r in np.flatnonzero(high[:, k] < 1 / votes.n_classes).tolist():
            figures = (float(accuracy[r, k]), float(low[r, k]), float(high[r, k]))
            found.append(StandsOut(str(votes.workers[r]), str(votes.classes[k]), *figures))
    return found
