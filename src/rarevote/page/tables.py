"""The tables of the page: lists to sort and filter, as data for its script, and small tables.

A list has columns and rows; a cell is text, a number, the number of a class, or a small array, depending on the
``kind`` of the column. The script only handles the kinds, not annotators or items.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntFlag
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.names import as_name_array, numbered
from rarevote.crowd.words import NO_ANSWER, count, counted, percent, quoted
from rarevote.decide.rules import ABSTAINED
from rarevote.diagnose.agreement import COEFFICIENTS
from rarevote.diagnose.diagnosis import Diagnosis
from rarevote.diagnose.ordered_agreement import ORDERED_COEFFICIENTS
from rarevote.diagnose.piles import Pile
from rarevote.diagnose.truth import TruthCheck
from rarevote.diagnose.workers import PROFILE_WORDS, Profile, chance_words, lean_words, profile_meanings
from rarevote.page.sentences import TargetStep, in_words, leading_trade_off

#: columns to show, each with one value per item in the order of the crowd
Shown = Mapping[str, Sequence[Any] | NDArray[Any]]

MAX_ITEMS = 5_000
MAX_WORKERS = 5_000
# Enough of a text to recognise an item; a page with long texts would not load.
_MAX_TEXT = 400
_MAX_VOTED_CLASSES = 4
_UNSURE_BELOW = 0.8
# This many classes have a column in the list of annotators if all classes are treated alike.
_MAX_RECOGNISED = 3


class Flag(IntFlag):
    """The flags for the filters above a list."""

    OVERRULED = 1
    SPLIT = 2
    UNSURE = 4
    WRONG = 8
    KNOWN = 16
    FLAGGED = 32
    LOOK = 64
    NOT_FLAGGED = 128


_PILE_FLAGS = {Pile.FLAGGED: Flag.FLAGGED, Pile.LOOK: Flag.LOOK, Pile.NOT_FLAGGED: Flag.NOT_FLAGGED}


@dataclass(frozen=True)
class ListTable:
    """A list for the script.

    Attributes:
        name: name of its element.
        columns: title, kind and explanation of each.
        rows: cells in the order of the columns, then the flags of the row.
        choices: filters: text and the flags that a row must have.
        groups: column whose distinct values are filters, or None.
        n_all: number of rows without the limit.
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


class _Columns:
    """Builds the columns of a list for the rows ``chosen``."""

    def __init__(self, chosen: NDArray[np.int64]) -> None:
        self.chosen = chosen
        self.heads: list[dict[str, str]] = []
        self.cells: list[list[Any]] = []

    def add(self, title: str, kind: str, help_text: str, cells: list[Any]) -> None:
        self.heads.append({"title": title, "kind": kind, "help": help_text})
        self.cells.append(cells)

    def text(self, title: str, help_text: str, values: Sequence[Any] | NDArray[Any]) -> None:
        self.add(title, "text", help_text, [_text(values[row]) for row in self.chosen])

    def numbers(self, title: str, kind: str, help_text: str, values: NDArray[Any], digits: int = 4) -> None:
        self.add(title, kind, help_text, values[self.chosen].round(digits).tolist())

    def listed(
        self, name: str, choices: list[tuple[str, int]], groups: int | None, n_all: int, flags: NDArray[Any]
    ) -> ListTable:
        rows = [list(row) for row in zip(*self.cells, flags[self.chosen].tolist(), strict=True)]
        return ListTable(name, self.heads, rows, choices, groups, n_all)


def item_list(found: Diagnosis, shown: Shown, limit: int = MAX_ITEMS) -> ListTable:
    """The items with votes, those most worth a review first."""
    items, head = found.items, found.head
    rare = head.rare_name
    by_worth = found.piles.by_worth
    chosen = by_worth[by_worth < len(items.label)][:limit]
    columns = _Columns(chosen)
    columns.text("Item", "its id", items.names)
    for title, values in shown.items():
        columns.text(title, "from your file", values)
    labels = [k if k != ABSTAINED else NO_ANSWER for k in items.label[chosen].tolist()]
    columns.add("Label", "class", "the decided class", labels)
    if len(found.classes.names) > 2 or head.leading is None:
        columns.numbers("P(label)", "share", "probability that the label is right", items.confidence)
    if head.leading is not None:
        of_rare = head.items.probabilities[:, head.rare]
        columns.numbers(f"P({rare})", "share", f"probability that the item is {rare}", of_rare)
    columns.numbers("Majority", "class", "the label by majority vote", items.majority)
    columns.add("Votes", "votes", "how many voted for each class", [_votes(items.votes[i]) for i in chosen])
    columns.numbers("Split", "share", "0%: unanimous, 100%: evenly divided", items.disputed)
    if items.typical_accuracy is not None:
        help_text = "chance that an average annotator gets this item right, if its label is right"
        columns.numbers("Ease", "share", help_text, items.typical_accuracy)
    choices = [("All items", 0), ("Worth a look", Flag.LOOK)]
    if head.leading is not None:
        choices += [(f"Take as {rare}", Flag.FLAGGED), (f"Take as not {rare}", Flag.NOT_FLAGGED)]
    choices += [("Label differs from majority vote", Flag.OVERRULED), ("Annotators disagree", Flag.SPLIT)]
    choices.append((f"Probability of the label below {percent(_UNSURE_BELOW)}", Flag.UNSURE))
    if found.truth is not None:
        names = numbered(found.classes.names.tolist())
        # A true class without votes has no class number: its name is shown.
        answers = [found.truth.classes[code] for code in found.truth.truth.tolist()]
        known = dict(zip(found.truth.items.tolist(), answers, strict=True))
        true = [names.get(known[i], _text(known[i])) if i in known else None for i in chosen.tolist()]
        columns.add("Truth", "class", "the true label", true)
        choices.append(("Label wrong", Flag.WRONG))
    if items.is_known.any():
        choices.append(("Gold, given to the fit", Flag.KNOWN))
    return columns.listed("items", choices, 1 + len(shown), len(items.label), _flags(found))


def worker_list(found: Diagnosis, limit: int = MAX_WORKERS) -> ListTable:
    """The annotators, those with the most votes first."""
    found = found.head
    workers, n_workers = found.workers, len(found.workers.names)
    columns = _Columns(np.argsort(-workers.n_votes, kind="stable")[:limit])
    columns.text("Annotator", "as named in your file", workers.names)
    columns.numbers("Votes", "count", "answers given", workers.n_votes)
    if workers.n_abstentions.any():
        columns.numbers("Abstained", "count", "answers that are not votes", workers.n_abstentions)
    for k in _classes_of_annotators(found):
        title, help_text = f"Recognises {found.classes.names[k]}", "share of the class, with its 95% interval"
        triple = np.column_stack([workers.accuracy[:, k], workers.low[:, k], workers.high[:, k]])
        columns.numbers(title, "interval", help_text, triple, digits=3)
    columns.numbers("Agrees", "share", "share of the votes that equal the item's label", workers.agreement)
    if found.leans is not None:
        rates = [lean_words(lean) for lean in found.leans.tolist()]
        columns.text("Rates", "how far above or below the crowd's median, in grades", rates)
    groups = None
    if is_about_two(found):
        profiles = [PROFILE_WORDS[Profile(code)] for code in workers.profile.tolist()]
        columns.text("Profile", "what the whole interval is above chance for", profiles)
        groups = len(columns.heads) - 1
    no_flags = np.zeros(n_workers, dtype=np.int64)
    return columns.listed("workers", [("All annotators", 0)], groups, n_workers, no_flags)


def is_about_two(found: Diagnosis) -> bool:
    """Whether annotators are described by two classes: the main class and the commonest, or the only two."""
    return found.leading is not None or len(found.classes.names) == 2


def _classes_of_annotators(found: Diagnosis) -> list[int]:
    """The classes that annotators are described by: two, or the largest if all are treated alike."""
    if is_about_two(found):
        return list(dict.fromkeys((found.common, found.rare)))
    return found.classes_by_weight[:_MAX_RECOGNISED]


def class_list(found: Diagnosis) -> ListTable:
    """All classes, the rarest first: votes, labels, and scores if there is truth."""
    classes, items, size = found.classes, found.items, len(found.classes.names)
    columns = _Columns(np.argsort(classes.n_votes, kind="stable"))
    moved = items.overruled
    into, away = (np.bincount(codes[moved], minlength=size) for codes in (items.label, items.majority))
    columns.text("Class", "as named in your file", classes.names)
    for title, values, help_text in (
        ("Votes", classes.n_votes, "votes for the class"),
        ("Labelled", classes.n_labelled, "items with this label"),
        ("Majority", classes.n_majority, "items with this label by majority vote"),
        ("Gained", into, "items with this label against the majority of their votes"),
        ("Lost", away, "items with this label by majority vote that have another one here"),
    ):
        columns.numbers(title, "count", help_text, values)
    if found.truth is not None:
        check, names = found.truth, classes.names[columns.chosen].tolist()
        n_true = check.n_true_by_name
        columns.add("Truth", "count", "items that have the class, by the truth", [n_true[name] for name in names])
        for title, shares in (("Recall", check.scores.recall), ("Precision", check.scores.precision)):
            rounded = [round(shares[name], 4) if name in shares else None for name in names]
            columns.add(title, "share", f"{title.lower()} of the class, by the truth", rounded)
    no_flags = np.zeros(size, dtype=np.int64)
    return columns.listed("per-class", [("All classes", 0)], None, size, no_flags)


def _flags(found: Diagnosis) -> NDArray[np.int64]:
    items = found.items
    flagged: dict[Flag, NDArray[Any]] = {
        Flag.OVERRULED: items.overruled,
        Flag.SPLIT: items.disputed > 0,
        Flag.UNSURE: items.confidence < _UNSURE_BELOW,
        Flag.KNOWN: items.is_known,
    }
    pile = found.piles.pile[: len(items.label)]
    flagged |= {flag: pile == one for one, flag in _PILE_FLAGS.items()}
    if found.truth is not None:
        flagged[Flag.WRONG] = found.truth.items[found.truth.truth != found.truth.label]
    flags = np.zeros(len(items.label), dtype=np.int64)
    for flag, rows in flagged.items():
        flags[rows] |= flag
    return flags


def _text(value: Any) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…"


def _votes(votes: NDArray[np.int64]) -> list[list[int]]:
    """Pairs (class, votes), most votes first; a long tail is one pair with the class -1."""
    order = [int(k) for k in np.argsort(-votes, kind="stable") if votes[k]]
    pairs = [[k, int(votes[k])] for k in order[:_MAX_VOTED_CLASSES]]
    rest = sum(int(votes[k]) for k in order[_MAX_VOTED_CLASSES:])
    return [*pairs, [-1, rest]] if rest else pairs


#: up to this many classes, a table names them all; more are in a sortable list
MAX_ROWS = 12
_MAX_MOVES = 8
# Up to this many classes a confusion matrix fits a page.
_MAX_MATRIX = 10
_SHADES = 6
_RECALLS = (0.5, 0.8, 0.9, 0.95, 0.99)
# Shown if there is no figure.
_UNKNOWN = "–"


@dataclass(frozen=True)
class SmallTable:
    """A small table; the first column is text, the others numbers."""

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

    The rows have the same names in the same order, except for a last column of items without an answer.
    """

    names: list[str]
    rows: list[list[Shaded]]


def moves_table(found: Diagnosis) -> SmallTable | None:
    """The table of changed labels, by the class before and after."""
    moved = found.overruled
    if not moved.items.size:
        return None
    names = found.classes.names
    moves = zip(moved.majority, moved.label, moved.count, strict=True)
    rows = [[f"{names[a]} → {names[b]}", count(number)] for a, b, number in islice(moves, _MAX_MOVES)]
    left = int(moved.count[_MAX_MOVES:].sum())
    if left:
        rows.append(["all others", count(left)])
    return SmallTable("From majority vote to this result", ["change", "items"], rows)


def profile_table(found: Diagnosis) -> SmallTable | None:
    """How many annotators have each profile; None if there are no two main classes."""
    found = found.head
    if not is_about_two(found):
        return None
    n_workers = len(found.workers.names)
    rows = []
    for profile, meaning in profile_meanings(found.rare_name, found.classes.names[found.common]).items():
        people = found.workers.count(profile)
        rows.append([f"{PROFILE_WORDS[profile]}: {meaning}", count(people), percent(people / n_workers)])
    title = f"Which classes annotators recognise better than chance ({chance_words(len(found.classes.names))})"
    return SmallTable(title, ["profile", "annotators", "share"], rows)


def trade_off_table(found: Diagnosis) -> SmallTable:
    """Recall and precision of the classes: expected, and counted with the truth if there is any."""
    header = ["class", "labelled", "recall", "precision", "majority vote's recall"]
    rows = [] if found.of_tail is None else trade_off_table(found.of_tail).rows
    for curve in found.true_trade_offs:
        chosen = curve.chosen
        shares = (chosen.recall, chosen.precision, curve.majority.recall)
        name = found.classes.names[curve.class_code]
        # Truth can cover only some of the items.
        labelled = int(found.classes.n_labelled[curve.class_code])
        some = "" if chosen.n_flagged == labelled else f" of {count(labelled)}"
        rows.append([f"{name} (truth)", f"{count(chosen.n_flagged)}{some}", *(percent(share) for share in shares)])
    for curve in found.trade_offs:
        one = found.expected[curve.class_code]
        figures = (in_words(figure) for figure in (one.recall, one.precision, found.majority_recall[curve.class_code]))
        rows.append([f"{one.name} (expected)", count(curve.chosen.n_flagged), *figures])
    return SmallTable("Recall and precision", header, rows)


def steps_table(found: Diagnosis, targets: Sequence[TargetStep]) -> SmallTable | None:
    """How many items must be flagged for a target recall: by the truth, or as recall targets expect."""
    found = found.head
    curve = leading_trade_off(found)
    name = quoted(found.rare_name)
    if found.leading is None:
        return None
    if not curve.from_truth:
        rows = [
            [percent(one.wanted), count(one.n_flagged), in_words(one.recall), in_words(one.precision)]
            for one in targets
        ]
        header = ["--min-recall", "items to flag", "expected recall", "expected precision"]
        return SmallTable(f"How many items to flag to find more {name} (expected)", header, rows) if rows else None
    if not np.isfinite(curve.recall).all():
        return None
    rows = []
    for wanted in _RECALLS:
        reached = np.flatnonzero(curve.recall >= wanted - 1e-9)
        if reached.size:
            first = reached[0]
            rows.append([percent(wanted), count(curve.n_flagged[first]), percent(curve.precision[first])])
    caption = f"How many items to flag to find more {name} (by the truth)"
    return SmallTable(caption, ["recall", "items to flag", "precision"], rows)


def proportion_table(found: Diagnosis) -> SmallTable | None:
    """Shares of the classes from all sources; None if there are too many classes for a table."""
    classes, total = found.classes, found.n_items
    if len(classes.names) > MAX_ROWS:
        return None
    votes = max(int(classes.n_votes.sum()), 1)
    header = ["class", "this result", "majority vote", "expected", "share of votes"]
    if found.truth is not None:
        header.append("truth")
    rows = []
    for k in found.in_order or np.argsort(classes.n_votes, kind="stable").tolist():
        expected = found.expected.get(k)
        row = [str(classes.names[k]), percent(classes.n_labelled[k] / total), percent(classes.n_majority[k] / total)]
        row += [in_words(expected.prevalence) if expected else _UNKNOWN, percent(classes.n_votes[k] / votes)]
        if found.truth is not None:
            row.append(percent(found.truth.n_true_by_name[classes.names[k]] / found.truth.n_checked))
        rows.append(row)
    return SmallTable("Share of each class", header, rows)


def score_table(truth: TruthCheck) -> SmallTable:
    """The usual scores of result and majority vote."""
    ours = truth.scores
    figures = {
        "minority_recall": f"recall of {ours.minority_class} (rarest true class)",
        "balanced_accuracy": "balanced accuracy",
        "macro_f1": "macro-F1",
        "accuracy": "accuracy",
    }
    rows = [
        [words, *(f"{getattr(scores, name):.3f}" for scores in (ours, truth.majority_scores))]
        for name, words in figures.items()
    ]
    caption = f"Against {counted(ours.n_items, 'true label')}"
    return SmallTable(caption, ["figure", "this result", "majority vote"], rows)


def confusion(found: Diagnosis) -> Matrix | SmallTable | None:
    """Labels compared with the truth: a matrix, or the commonest mistakes if that would be too large."""
    if found.truth is None:
        return None
    names, cells = [str(name) for name in found.truth.classes], found.truth.confusion()
    # Last, so that index -1 picks it.
    across = [*names, NO_ANSWER] if any(b == ABSTAINED for _, b, _ in cells) else names
    if len(names) > _MAX_MATRIX:
        rows = [[f"{names[a]}, labelled {across[b]}", count(number)] for a, b, number in cells if a != b]
        return SmallTable("Most common mistakes", ["mistake", "items"], rows[:MAX_ROWS])
    table = np.zeros((len(names), len(across)), dtype=np.int64)
    for a, b, number in cells:
        table[a, b] = number
    if found.grades is not None:
        inside = found.grades.codes(as_name_array(found.truth.classes))
        order = [*inside, *(k for k in range(len(names)) if k not in inside)]
        columns = [*order, *range(len(names), len(across))]
        table, across = table[np.ix_(order, columns)], [across[k] for k in columns]
    share = table / np.maximum(table.sum(axis=1, keepdims=True), 1)
    shades = np.where(table > 0, 1 + np.minimum((share * (_SHADES - 1)).astype(int), _SHADES - 2), 0)
    cell = [
        [Shaded(f"{table[a, b]:,}", int(shades[a, b]), a == b) for b in range(len(across))] for a in range(len(names))
    ]
    return Matrix(across, cell)


_MAX_CLASSES = 12
_MAX_PAIRS = 8


def agreement_values(found: Diagnosis) -> dict[str, Any]:
    """The variables of the section's template."""
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
    """Both ends as text, or empty if they are not known."""
    return f"{ends[0]:.2f} to {ends[1]:.2f}" if np.isfinite(ends).all() else ""


def agreement_table(found: Diagnosis) -> SmallTable:
    """The coefficients of the whole crowd."""
    agreement = found.agreement
    rows = [
        [words, number(getattr(agreement, name)), interval(agreement.intervals[name])]
        for name, words in COEFFICIENTS.items()
    ]
    if (on_grades := found.on_grades) is not None:
        rows += [
            [words, number(getattr(on_grades, name)), interval(on_grades.intervals[name])]
            for name, words in ORDERED_COEFFICIENTS.items()
        ]
    return SmallTable(f"Agreement on {count(agreement.n_tasks)} items", ["coefficient", "value", "95% interval"], rows)


def class_table(found: Diagnosis) -> SmallTable:
    """Agreement class by class, the main class first, then those with the most votes."""
    table = found.agreement.per_class
    order = sorted(range(len(found.classes.names)), key=lambda k: (k != found.leading, -table["votes"][k]))
    rows = [
        [str(found.classes.names[k]), percent(table["raw"][k]), number(table["alpha"][k]),
         interval((table["alpha_low"][k], table["alpha_high"][k]))]
        for k in order[:_MAX_CLASSES]
    ]  # fmt: skip
    header = ["class", "chance that a second vote agrees", "alpha against the rest", "95% interval"]
    return SmallTable("Agreement by class", header, rows)


def alike_table(found: Diagnosis) -> SmallTable | None:
    """The pairs of annotators whose errors correlate most."""
    closest = found.alike.closest(_MAX_PAIRS)
    if not closest:
        return None
    rows = [[f"{a} and {b}", number(correlation), count(common)] for a, b, correlation, common in closest]
    return SmallTable(
        "Pairs who make the same mistakes most often", ["annotators", "correlation of errors", "items"], rows
    )
