"""The lists that a person sorts and filters in the page, as data for its script.

A list is its columns and its rows; a cell is text, a number, the number of a class, or a small array, as the ``kind``
of the column says. The script knows the kinds and nothing about annotators or items.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntFlag
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.words import NO_ANSWER, percent
from rarevote.meaning.decide import ABSTAINED
from rarevote.meaning.diagnose import Diagnosis, Profile
from rarevote.meaning.piles import Pile
from rarevote.meaning.workers import PROFILE_WORDS

#: columns that say what an item shows, each with one value per item in the order of the crowd
Shown = Mapping[str, Sequence[Any] | NDArray[Any]]

MAX_ITEMS = 5_000
MAX_WORKERS = 5_000
# Enough of a text to recognise an item by; a page of novels would load no more.
_MAX_TEXT = 400
_MAX_VOTED_CLASSES = 4
_UNSURE_BELOW = 0.8


class Flag(IntFlag):
    """What the choices above a list ask for."""

    OVERRULED = 1
    SPLIT = 2
    UNSURE = 4
    WRONG = 8
    KNOWN = 16
    SURELY = 32
    LOOK = 64
    SURELY_NOT = 128


_PILE_FLAGS = {Pile.SURELY: Flag.SURELY, Pile.LOOK: Flag.LOOK, Pile.SURELY_NOT: Flag.SURELY_NOT}


@dataclass(frozen=True)
class ListTable:
    """A list for the script.

    Attributes:
        name: of the element it goes into.
        columns: title, kind and explanation of each.
        rows: cells in the order of the columns, then the flags of the row.
        choices: what can be asked for: words and the flags that a row must have.
        groups: column whose distinct values can be asked for, or None.
        n_all: how many rows there would be without a limit.
    """

    name: str
    columns: list[dict[str, str]]
    rows: list[list[Any]]
    choices: list[tuple[str, int]]
    groups: int | None
    n_all: int

    def as_json(self) -> dict[str, Any]:
        """What the script reads."""
        return {"columns": self.columns, "rows": self.rows, "choices": self.choices, "groups": self.groups}


def item_list(found: Diagnosis, shown: Shown, limit: int = MAX_ITEMS) -> ListTable:
    """The items to look at first.

    Args:
        found: the records.
        shown: columns that say what an item shows, each with one value per item in the order of the crowd.
        limit: the most items to list.
    """
    items, rare = found.items, str(found.classes.names[found.rare])
    chosen = items.most_telling(limit)
    columns = [_column("Item", "text", "its id")]
    cells: list[list[Any]] = [[_text(items.names[i]) for i in chosen]]

    def add(column: dict[str, str], values: list[Any]) -> None:
        columns.append(column)
        cells.append(values)

    for title, values in shown.items():
        add(_column(title, "text", "carried along from your file"), [_text(values[i]) for i in chosen])
    add(
        _column("Label", "class", "what was decided"),
        [k if k != ABSTAINED else NO_ANSWER for k in items.label[chosen].tolist()],
    )
    if len(found.classes.names) > 2:
        add(_column("P(label)", "share", "probability that the label is right"), _rounded(items.confidence[chosen]))
    probability = items.probabilities[chosen, found.rare]
    add(_column(f"P({rare})", "share", f"probability that the item is {rare}"), _rounded(probability))
    add(_column("Majority", "class", "what a majority vote says"), items.majority[chosen].tolist())
    add(_column("Votes", "votes", "how the votes fell"), [_votes(items.votes[i]) for i in chosen])
    add(_column("Dispute", "share", "0% unanimous, 100% evenly split"), _rounded(items.disputed[chosen]))
    if items.typical_accuracy is not None:
        help_text = "chance that an average annotator gets this item right, if its label is right"
        add(_column("Ease", "share", help_text), _rounded(items.typical_accuracy[chosen]))
    flags = _flags(found)
    if found.truth is not None:
        names = {name: code for code, name in enumerate(found.classes.names.tolist())}
        # A true class that nobody voted for has no number among the classes: its name is shown as it is.
        answers = [found.truth.classes[code] for code in found.truth.truth.tolist()]
        known = dict(zip(found.truth.items.tolist(), answers, strict=True))
        told = [names.get(known[i], _text(known[i])) if i in known else None for i in chosen.tolist()]
        add(_column("Truth", "class", "the true label"), told)
    choices = [("All items", 0), ("Majority vote overruled", Flag.OVERRULED), ("Votes split", Flag.SPLIT)]
    choices.append((f"Label less than {percent(_UNSURE_BELOW)} sure", Flag.UNSURE))
    if found.truth is not None:
        choices.append(("Label wrong", Flag.WRONG))
    if items.is_known.any():
        choices.append(("Gold, given to the fit", Flag.KNOWN))
    if found.leading is not None:
        choices += [(f"Pile: surely {rare}", Flag.SURELY), ("Pile: look at these", Flag.LOOK)]
        choices.append((f"Pile: surely not {rare}", Flag.SURELY_NOT))
    rows = [[*row, int(flags[i])] for *row, i in zip(*cells, chosen.tolist(), strict=True)]
    label_column = 1 + len(shown)
    return ListTable("items", columns, rows, [(w, int(f)) for w, f in choices], label_column, len(items.label))


def worker_list(found: Diagnosis, limit: int = MAX_WORKERS) -> ListTable:
    """The annotators, the busiest first."""
    workers, names = found.workers, found.classes.names
    chosen = np.argsort(-workers.n_votes, kind="stable")[:limit]
    columns = [_column("Annotator", "text", "as named in your file"), _column("Votes", "count", "answers given")]
    cells: list[list[Any]] = [[_text(workers.names[r]) for r in chosen], workers.n_votes[chosen].tolist()]
    if workers.n_abstentions.any():
        columns.append(_column("Abstained", "count", "answers that were no votes"))
        cells.append(workers.n_abstentions[chosen].tolist())
    for k in dict.fromkeys((found.common, found.rare)):
        columns.append(_column(f"Recognises {names[k]}", "interval", "share of the class, with its 95% interval"))
        triple = np.column_stack([workers.accuracy[chosen, k], workers.low[chosen, k], workers.high[chosen, k]])
        cells.append(triple.round(3).tolist())
    columns.append(_column("Agrees", "share", "share of the votes that equal the item's label"))
    cells.append(_rounded(workers.agreement[chosen]))
    columns.append(_column("Profile", "text", "what is recognised more often than not"))
    cells.append([PROFILE_WORDS[Profile(int(workers.profile[r]))] for r in chosen])
    rows = [[*row, 0] for row in zip(*cells, strict=True)]
    return ListTable("workers", columns, rows, [("All annotators", 0)], len(columns) - 1, len(workers.names))


def class_list(found: Diagnosis) -> ListTable:
    """All classes, the rarest first: votes, labels, and how they did where there is truth."""
    classes, items = found.classes, found.items
    order = np.argsort(classes.n_votes, kind="stable")
    size = len(classes.names)
    moved = items.overruled
    into, away = (np.bincount(codes[moved], minlength=size) for codes in (items.label, items.majority))
    counts = {
        "Votes": (classes.n_votes, "votes for the class"),
        "Labelled": (classes.n_labelled, "items that got the class"),
        "Majority": (classes.n_majority, "items that a majority vote gives it"),
        "Moved here": (into, "items that got the class against the majority of their votes"),
        "Moved away": (away, "items that a majority vote gives the class, and that got another"),
    }
    columns = [_column("Class", "text", "as named in your file")]
    columns += [_column(title, "count", help_text) for title, (_, help_text) in counts.items()]
    cells: list[list[Any]] = [[_text(classes.names[k]) for k in order]]
    cells += [column[order].tolist() for column, _ in counts.values()]
    if found.truth is not None:
        check, names = found.truth, classes.names[order].tolist()
        n_true = dict(zip(check.classes, np.bincount(check.truth, minlength=len(check.classes)).tolist(), strict=True))
        columns.append(_column("Truth", "count", "items that have the class, by the truth"))
        cells.append([n_true[name] for name in names])
        for title, shares in (("Recall", check.scores.recall), ("Precision", check.scores.precision)):
            columns.append(_column(title, "share", f"{title.lower()} of the class, by the truth"))
            cells.append([round(shares[name], 4) if name in shares else None for name in names])
    rows = [[*row, 0] for row in zip(*cells, strict=True)]
    return ListTable("per-class", columns, rows, [("All classes", 0)], None, size)


def _flags(found: Diagnosis) -> NDArray[np.int64]:
    items = found.items
    flags = items.overruled * int(Flag.OVERRULED) + (items.disputed > 0) * int(Flag.SPLIT)
    flags = flags + (items.confidence < _UNSURE_BELOW) * int(Flag.UNSURE) + items.is_known * int(Flag.KNOWN)
    if found.truth is not None:
        wrong = found.truth.items[found.truth.truth != found.truth.label]
        flags[wrong] += int(Flag.WRONG)
    for pile, flag in _PILE_FLAGS.items():
        flags = flags + (found.piles.pile == pile) * int(flag)
    return np.asarray(flags)


def _column(title: str, kind: str, help_text: str) -> dict[str, str]:
    return {"title": title, "kind": kind, "help": help_text}


def _rounded(values: NDArray[np.float64]) -> list[float]:
    rounded: list[float] = values.round(4).tolist()
    return rounded


def _text(value: Any) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…"


def _votes(votes: NDArray[np.int64]) -> list[list[int]]:
    """Pairs (class, votes), most votes first; a long tail is one pair with the class -1."""
    order = [int(k) for k in np.argsort(-votes, kind="stable") if votes[k]]
    pairs = [[k, int(votes[k])] for k in order[:_MAX_VOTED_CLASSES]]
    rest = sum(int(votes[k]) for k in order[_MAX_VOTED_CLASSES:])
    return [*pairs, [-1, rest]] if rest else pairs
