"""Reading of results from files: the label of each task, and the probability of every class if there is one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.encoding import decode_column
from rarevote.crowd.names import object_array, pair_name
from rarevote.errors import InputError, shown
from rarevote.io.read.columns import TRUTH_ALIASES, find_columns
from rarevote.io.read.labels import CHOICE, ITEM
from rarevote.io.read.sources import FileTable, asking, open_sources
from rarevote.io.read.table import TableRows, as_number, read_table

#: prefixes of columns of probabilities; version 0.2 also wrote the second
PROBABILITIES = ("p:", "calibrated:")
_ROUNDING = 0.001  # how far sums of probabilities can be from one: text formats keep six digits of each
_SAMPLED_ROWS = 1000


@dataclass(frozen=True, eq=False)
class ResultFile:
    """A result; ids, labels and classes as text, so that 7 and "7" are the same whatever the format.

    Attributes:
        tasks: their names, (n_tasks).
        codes: the number of the label of every task in ``names``, -1 if there is no answer, (n_tasks).
        names: the labels that occur.
        classes: classes of each kind of probabilities, by the prefix of their columns.
        probabilities: probabilities of each kind, (n_tasks, n_classes).
        choices: for a result with several labels, the label of each task; else empty.
    """

    tasks: list[str]
    codes: NDArray[Any]
    names: list[str]
    classes: dict[str, list[str]]
    probabilities: dict[str, NDArray[np.float64]]
    choices: list[str] = field(default_factory=list)

    @cached_property
    def labels(self) -> dict[str, str]:
        """The label by task; empty text if there is no answer."""
        return dict(zip(self.tasks, decode_column(self.codes, object_array([*self.names, ""])), strict=True))

    @property
    def by_label(self) -> dict[str, ResultFile]:
        """The result of each label; for a single label, the result itself under the name ""."""
        if not self.choices:
            return {"": self}
        parts = {}
        for name in dict.fromkeys(self.choices):
            rows = [row for row, choice in enumerate(self.choices) if choice == name]
            probabilities = {begin: table[rows] for begin, table in self.probabilities.items()}
            tasks = [self.tasks[row] for row in rows]
            parts[name] = ResultFile(tasks, self.codes[rows], self.names, self.classes, probabilities)
        return parts


def read_result(path: str | Path, *, columns: Mapping[str, str] | None = None) -> ResultFile:
    """Read a result: columns task and label, and, if present, ``p:<class>`` and ``calibrated:<class>``.

    Args:
        path: a file in any format for votes.
        columns: which column is which, if the columns have other names.

    Raises:
        InputError: a task is missing or occurs twice, or a probability is not one.
        ColumnsError: there is no column of tasks or of labels.
    """
    with open_sources(path, wanted=None) as sources:
        first = sources[0]
        roles = find_columns(first.columns, columns, aliases=TRUTH_ALIASES, where=first.title)
        named = {begin: [name for name in first.columns if name.startswith(begin)] for begin in PROBABILITIES}
        kept = {begin: names for begin, names in named.items() if names}
        # A class can have any name; a role is a plain word.
        numbers = {f"probability_{number}": name for number, name in enumerate(chain(*kept.values()))}
        several = [name for name in (ITEM, CHOICE) if name in first.columns and name not in roles.values()]
        parts = {f"part_{name}": name for name in several} if len(several) == 2 else {}
        table = read_table(sources, [roles | numbers | parts] * len(sources), numbers=list(numbers))
        table.refuse_missing("task", "task")
        if not table.names["task"].codes.size:
            raise InputError(f"{table.title}: no rows")
        table = table.spelled(str)
        table.refuse_repeated("; a result has one row per task")
        columns_of = iter(table.numbers)
        probabilities = {}
        for begin, names in kept.items():
            own = list(islice(columns_of, len(names)))
            probabilities[begin] = _probabilities(table, names, own)
    labels = table.names["label"]
    return ResultFile(
        table.tasks,
        labels.codes,
        labels.names.tolist(),
        {begin: [name.removeprefix(begin) for name in names] for begin, names in kept.items()},
        probabilities,
        _choices(table.tasks, *table.cells.values()) if parts else [],
    )


def _choices(tasks: Sequence[str], items: Sequence[Any], choices: Sequence[Any]) -> list[str]:
    """The label of each task, if all task names consist of item and label; else none."""
    pairs = zip(items, choices, strict=True)
    return list(map(str, choices)) if list(tasks) == [pair_name(item, choice) for item, choice in pairs] else []


def refuse_result(source: FileTable) -> None:
    """Refuse a result given as votes: its probabilities would be read as the votes of an annotator.

    It is recognised by what :class:`rarevote.Result` writes: ``task``, ``label`` (soft labels have none) and
    ``p:<class>`` for every class, which sum to one; labels are classes. An annotator can have any name, even ``p:ann``.

    Raises:
        InputError: it is a result.
    """
    own = [name for name in source.columns if name.startswith("p:")]
    kept = [name for name in ("label", *own) if name in source.columns]
    if "task" not in source.columns or len(kept) < 2:
        return
    selected = ", ".join(map(source.text, kept))
    with asking(source) as ask:
        rows = ask(f"SELECT {selected} FROM {source.reader} LIMIT {_SAMPLED_ROWS}").fetchall()
    classes = {name.removeprefix("p:").casefold() for name in own}
    # An apostrophe before a formula is for spreadsheets.
    labels = {str(row[0] or "").casefold().removeprefix("'") for row in rows} if kept[0] == "label" else set()
    if rows and labels <= {"", *classes} and all(_sums_to_one(row[-len(own) :]) for row in rows):
        raise InputError(
            f"{source.title}: a result of rarevote, not votes (columns {', '.join(['task', *kept][:4])} ...): use "
            "the votes that it was made from; rarevote score compares a result with the truth"
        )


def _sums_to_one(texts: Sequence[str | None]) -> bool:
    numbers = [as_number(text) for text in texts]
    return all(0.0 <= number <= 1.0 for number in numbers) and abs(sum(numbers) - 1.0) <= _ROUNDING


def _probabilities(table: TableRows, names: Sequence[str], roles: Sequence[str]) -> NDArray[np.float64]:
    """Probabilities, rows summing to one: a text format keeps six digits of each."""
    p = np.column_stack([table.numbers[role].values for role in roles])
    # Written so that NaN, for which every comparison is false, also fails.
    outside = np.argwhere(~((p >= 0.0) & (p <= 1.0)).T)
    if outside.size:
        k, row = outside[0].tolist()
        raise InputError(
            f"{table.title}: {shown(table.numbers[roles[k]].written(row))} in column {shown(names[k])} is not a "
            f"probability ({table.place(row)})"
        )
    sums = p.sum(axis=1, keepdims=True)
    wrong = np.flatnonzero(np.abs(sums[:, 0] - 1.0) > _ROUNDING)
    if wrong.size:
        raise InputError(
            f"{table.title}: the probabilities {', '.join(names[:3])} ... sum to {sums[wrong[0], 0]:.4g}, "
            f"not to 1 ({table.place(int(wrong[0]))})"
        )
    return np.asarray(p / sums)
