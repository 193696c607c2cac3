"""The small tables of the page, made from records before any markup."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rarevote.crowd.words import NO_ANSWER, count, counted, percent, quoted
from rarevote.meaning.decide import ABSTAINED
from rarevote.meaning.diagnose import Diagnosis
from rarevote.meaning.words import PROFILE_WORDS, profile_meanings
from rarevote.page.sentences import leading_trade_off

_MAX_ROWS = 12
_MAX_MOVES = 8
# Up to this many classes a confusion matrix fits a page.
_MAX_MATRIX = 10
_SHADES = 6


@dataclass(frozen=True)
class SmallTable:
    """A small table; the first column is words, the others numbers."""

    caption: str
    header: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class Shaded:
    """A cell of the confusion matrix with its shade, 0 (none) to 5, and whether it is right."""

    text: str
    shade: int
    right: bool


@dataclass(frozen=True)
class Matrix:
    """A confusion matrix: rows are true classes, columns labels; names are those of the columns.

    The rows have the same names in the same order, but for a last column of items without an answer.
    """

    names: list[str]
    rows: list[list[Shaded]]


def moves_table(found: Diagnosis) -> SmallTable | None:
    """From which class to which items were moved."""
    moved = found.overruled
    if not moved.items.size:
        return None
    names = found.classes.names
    rows = [
        [f"{names[a]} → {names[b]}", count(number), count(expected)]
        for a, b, number, expected in zip(
            moved.majority[:_MAX_MOVES], moved.label[:_MAX_MOVES], moved.count, moved.expected, strict=False
        )
    ]
    left = int(moved.count[_MAX_MOVES:].sum())
    if left:
        rows.append(["all other moves", count(left), count(moved.expected[_MAX_MOVES:].sum())])
    return SmallTable("Majority vote → this result", ["move", "items", "expected right"], rows)


def profile_table(found: Diagnosis) -> SmallTable:
    """How many annotators recognise what."""
    n_workers = len(found.workers.names)
    meaning = profile_meanings(found.classes.names[found.rare], found.classes.names[found.common])
    rows = [
        [f"{words}: {meaning[profile]}", count(people), percent(people / n_workers)]
        for profile, words in PROFILE_WORDS.items()
        for people in [found.workers.count(profile)]
    ]
    return SmallTable("What annotators recognise more often than not", ["profile", "people", "share"], rows)


def trade_off_table(found: Diagnosis) -> SmallTable:
    """Recall and precision of every class: expected, and as it turned out where answers are known."""
    header = ["class", "labelled", "recall", "precision", "majority vote"]
    rows = []
    for curves, words in ((found.trade_offs, "expected"), (found.true_trade_offs, "truth")):
        for curve in curves:
            chosen, majority = curve.chosen, curve.majority
            rows.append(
                [
                    f"{found.classes.names[curve.class_code]} ({words})",
                    count(chosen.n_flagged),
                    percent(chosen.recall),
                    percent(chosen.precision),
                    f"{percent(majority.recall)}, {percent(majority.precision)}",
                ]
            )
    return SmallTable("Recall and precision", header, rows)


def steps_table(found: Diagnosis, recalls: Sequence[float] = (0.5, 0.8, 0.9, 0.95, 0.99)) -> SmallTable | None:
    """How many items would have to be labelled rare for a wanted recall."""
    curve = leading_trade_off(found)
    if not np.isfinite(curve.recall).all():
        return None
    rows = []
    for wanted in recalls:
        reached = np.flatnonzero(curve.recall >= wanted - 1e-9)
        if reached.size:
            first = int(reached[0])
            flagged = int(curve.n_flagged[first])
            rows.append([percent(wanted), count(flagged), percent(curve.precision[first])])
    rare = quoted(found.classes.names[found.rare])
    how = "by the truth" if curve.from_truth else "expected"
    return SmallTable(f"To find this share of {rare} ({how})", ["recall", "items to label", "precision"], rows)


def proportion_table(found: Diagnosis) -> SmallTable:
    """Shares of the classes by every account of them."""
    classes, total = found.classes, len(found.items.label)
    votes = max(int(classes.n_votes.sum()), 1)
    header = ["class", "this result", "majority vote", "expected", "share of votes"]
    counts: dict[Any, int] = {}
    if found.truth is not None:
        header.append("truth")
        numbers = np.bincount(found.truth.truth, minlength=len(found.truth.classes))
        counts = {name: int(number) for name, number in zip(found.truth.classes, numbers, strict=True)}
    order = [int(k) for k in np.argsort(classes.n_expected, kind="stable")]
    rows = []
    for k in order[:_MAX_ROWS]:
        shares = [classes.n_labelled[k] / total, classes.n_majority[k] / total, classes.n_expected[k] / total]
        row = [str(classes.names[k]), *(percent(share) for share in shares), percent(classes.n_votes[k] / votes)]
        if found.truth is not None:
            row.append(percent(counts[classes.names[k]] / len(found.truth.items)))
        rows.append(row)
    more = f"; the {_MAX_ROWS} rarest of {len(order):,} classes" if len(order) > _MAX_ROWS else ""
    return SmallTable(f"Share of each class{more}", header, rows)


def score_table(found: Diagnosis) -> SmallTable | None:
    """The usual figures of result and majority vote against the truth."""
    if found.truth is None:
        return None
    ours, theirs = found.truth.scores, found.truth.majority_scores
    rows = [
        [f"recall of {ours.minority_class} (rarest true class)", ours.minority_recall, theirs.minority_recall],
        ["balanced accuracy", ours.balanced_accuracy, theirs.balanced_accuracy],
        ["macro-F1", ours.macro_f1, theirs.macro_f1],
        ["accuracy", ours.accuracy, theirs.accuracy],
    ]
    words = [[str(name), f"{one:.3f}", f"{two:.3f}"] for name, one, two in rows]
    return SmallTable(
        f"Against {counted(ours.n_items, 'true label')}", ["figure", "this result", "majority vote"], words
    )


def confusion(found: Diagnosis) -> Matrix | SmallTable | None:
    """Labels against the truth: a matrix, or the commonest mistakes where that would be too large."""
    if found.truth is None:
        return None
    names, cells = [str(name) for name in found.truth.classes], found.truth.confusion()
    # Last, where an index of -1 finds it.
    across = [*names, NO_ANSWER] if (found.truth.label == ABSTAINED).any() else names
    if len(names) > _MAX_MATRIX:
        wrong = [(names[a], across[b], number) for a, b, number in cells if a != b][:_MAX_ROWS]
        rows = [[f"{a}, labelled {b}", count(number)] for a, b, number in wrong]
        return SmallTable("The commonest mistakes", ["mistake", "items"], rows)
    table = np.zeros((len(names), len(across)), dtype=np.int64)
    for a, b, number in cells:
        table[a, b] = number
    share = table / np.maximum(table.sum(axis=1, keepdims=True), 1)
    shades = np.where(table > 0, 1 + np.minimum((share * (_SHADES - 1)).astype(int), _SHADES - 2), 0)
    cell = [
        [Shaded(f"{table[a, b]:,}", int(shades[a, b]), a == b) for b in range(len(across))] for a in range(len(names))
    ]
    return Matrix(across, cell)
