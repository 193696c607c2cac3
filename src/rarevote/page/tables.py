"""The tables of the page: lists that a person sorts and filters, as data for its script, and small ones.

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

from rarevote.crowd.words import NO_ANSWER, count, counted, percent, quoted
from rarevote.decide.rules import ABSTAINED
from rarevote.diagnose.agreement import COEFFICIENTS
from rarevote.diagnose.diagnosis import Diagnosis
from rarevote.diagnose.piles import Pile
from rarevote.diagnose.workers import PROFILE_WORDS, Profile, profile_meanings
from rarevote.page.sentences import in_words, leading_trade_off

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
    """The items to look at first."""
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
        n_true = dict(zip(check.classes, check.n_true.tolist(), strict=True))
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
        told = (in_words(figure) for figure in (one.recall, one.precision, found.majority_recall[curve.class_code]))
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
    classes, total = found.classes, found.n_items
    if len(classes.names) > MAX_ROWS:
        return None
    votes = max(int(classes.n_votes.sum()), 1)
    header = ["class", "this result", "majority vote", "expected", "share of votes"]
    counts: dict[Any, int] = {}
    if found.truth is not None:
        header.append("truth")
        counts = dict(zip(found.truth.classes, found.truth.n_true.tolist(), strict=True))
    rows = []
    for k in np.argsort(classes.n_votes, kind="stable").tolist():
        expected = found.expected.get(k)
        row = [str(classes.names[k]), percent(classes.n_labelled[k] / total), percent(classes.n_majority[k] / total)]
        row += [in_words(expected.prevalence) if expected else _UNKNOWN, percent(classes.n_votes[k] / votes)]
        if found.truth is not None:
            row.append(percent(counts[classes.names[k]] / found.truth.n_checked))
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
    across = [*names, NO_ANSWER] if any(b == ABSTAINED for _, b, _ in cells) else names
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


_MAX_CLASSES = 12
_MAX_PAIRS = 8


def agreement_values(found: Diagnosis) -> dict[str, Any]:
    """What the template of the section asks for."""
    return {
        "agreement": agreement_table(found),
        "by_class": class_table(found),
        "alike": found.alike.sentences(),
        "pairs": alike_table(found),
    }


def number(value: float) -> str:
    """A coefficient between -1 and 1."""
    return f"{value:.2f}" if np.isfinite(value) else "unknown"


def interval(ends: tuple[float, float]) -> str:
    """Both ends, or nothing where they are not known."""
    return f"{ends[0]:.2f} to {ends[1]:.2f}" if np.isfinite(ends).all() else ""


def agreement_table(found: Diagnosis) -> SmallTable:
    """The coefficients of the whole crowd."""
    agreement = found.agreement
    rows = [
        [words, number(getattr(agreement, name)), interval(agreement.intervals[name])]
        for name, words in COEFFICIENTS.items()
    ]
    return SmallTable(f"Agreement on {count(agreement.n_tasks)} items", ["coefficient", "value", "95% interval"], rows)


def class_table(found: Diagnosis) -> SmallTable:
    """Agreement class by class, the rare one first, then those with the most votes."""
    table = found.agreement.per_class
    order = sorted(range(len(found.classes.names)), key=lambda k: (k != found.rare, -table["votes"][k]))
    rows = [
        [str(found.classes.names[k]), percent(table["raw"][k]), number(table["alpha"][k]),
         interval((table["alpha_low"][k], table["alpha_high"][k]))]
        for k in order[:_MAX_CLASSES]
    ]  # fmt: skip
    header = ["class", "where one votes so, others do", "alpha against the rest", "95% interval"]
    return SmallTable("Agreement by class", header, rows)


def alike_table(found: Diagnosis) -> SmallTable | None:
    """The pairs whose errors correlate most."""
    closest = found.alike.closest(_MAX_PAIRS)
    if not closest:
        return None
    rows = [[f"{a} and {b}", number(correlation), count(common)] for a, b, correlation, common in closest]
    return SmallTable("Who errs alike: the closest pairs", ["annotators", "correlation of errors", "items"], rows)
