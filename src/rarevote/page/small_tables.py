"""The small tables of the page, made from records before any markup."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rarevote.crowd.words import NO_ANSWER, count, counted, percent, quoted
from rarevote.meaning.decide import ABSTAINED
from rarevote.meaning.diagnose import Diagnosis
from rarevote.meaning.workers import PROFILE_WORDS, profile_meanings
from rarevote.page.sentences import in_words, leading_trade_off

#: up to so many classes a table names them all; more are a list to be sorted
MAX_ROWS = 12
_MAX_MOVES = 8
# Up to this many classes a confusion matrix fits a page.
_MAX_MATRIX = 10
_SHADES = 6
# Stands where nothing was asked.
_UNKNOWN = "–"


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
        [f"{names[a]} → {names[b]}", count(number), _expected(expected)]
        for a, b, number, expected in zip(
            moved.majority[:_MAX_MOVES], moved.label[:_MAX_MOVES], moved.count, moved.expected, strict=False
        )
    ]
    left = int(moved.count[_MAX_MOVES:].sum())
    if left:
        rows.append(["all other moves", count(left), _expected(moved.expected[_MAX_MOVES:].sum())])
    header = ["move", "items", "expected right"]
    if all(row[2] == _UNKNOWN for row in rows):
        header, rows = header[:2], [row[:2] for row in rows]
    return SmallTable("Majority vote → this result", header, rows)


def _expected(number: float) -> str:
    return count(number) if np.isfinite(number) else _UNKNOWN


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
    """Recall and precision of the classes: expected, and counted on the truth where there is any."""
    header = ["class", "labelled", "recall", "precision", "majority vote's recall"]
    rows = []
    for curve in found.true_trade_offs:
        chosen = curve.chosen
        shares = (chosen.recall, chosen.precision, curve.majority.recall)
        name = found.classes.names[curve.class_code]
        # Truth may cover some of the items only.
        labelled = int(found.classes.n_labelled[curve.class_code])
        some = "" if chosen.n_flagged == labelled else f" of {count(labelled)}"
        rows.append([f"{name} (truth)", f"{count(chosen.n_flagged)}{some}", *(percent(share) for share in shares)])
    for curve in found.trade_offs:
        one = found.expected[curve.class_code]
        told = (in_words(figure) for figure in (one.recall, one.precision, one.majority_recall))
        rows.append([f"{one.name} (expected)", count(curve.chosen.n_flagged), *told])
    return SmallTable("Recall and precision", header, rows)


def steps_table(found: Diagnosis, recalls: Sequence[float] = (0.5, 0.8, 0.9, 0.95, 0.99)) -> SmallTable | None:
    """How many items would have to be labelled rare for a wanted recall."""
    curve = leading_trade_off(found)
    if not np.isfinite(curve.recall).all():
        return None
    if not curve.from_truth and not found.expected[found.rare].recall.is_told:
        return None  # what share of the class any number of items holds is then as little known
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


def proportion_table(found: Diagnosis) -> SmallTable | None:
    """Shares of the classes by every account of them; None where there are so many that they are a list."""
    classes, total = found.classes, len(found.items.label)
    if len(classes.names) > MAX_ROWS:
        return None
    votes = max(int(classes.n_votes.sum()), 1)
    header = ["class", "this result", "majority vote", "expected", "share of votes"]
    counts: dict[Any, int] = {}
    if found.truth is not None:
        header.append("truth")
        numbers = np.bincount(found.truth.truth, minlength=len(found.truth.classes))
        counts = {name: int(number) for name, number in zip(found.truth.classes, numbers, strict=True)}
    rows = []
    for k in np.argsort(classes.n_votes, kind="stable").tolist():
        expected = found.expected.get(k)
        row = [str(classes.names[k]), percent(classes.n_labelled[k] / total), percent(classes.n_majority[k] / total)]
        row += [in_words(expected.prevalence) if expected else _UNKNOWN, percent(classes.n_votes[k] / votes)]
        if found.truth is not None:
            row.append(percent(counts[classes.names[k]] / len(found.truth.items)))
        rows.append(row)
    return SmallTable("Share of each class", header, rows)


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
        wrong = [(names[a], across[b], number) for a, b, number in cells if a != b][:MAX_ROWS]
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
