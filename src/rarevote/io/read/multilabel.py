"""Tables of answers with several choices: their columns, in files and in memory.

There are three forms. *Cells*: a row is an answer, its label a list (``a|b``, ``["a", "b"]``); without any lists, rows
of one annotator on one item are the choices of one answer. *Columns*: a row is an answer, and a column for each choice
says whether it was ticked. *Rows*: a row says whether one choice, named in a column, was ticked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rarevote.crowd.annotations import Encoded
from rarevote.errors import ColumnsError, InputError, how, shown
from rarevote.io.read.cells import is_ticked
from rarevote.io.read.columns import ALIASES, find_columns, match_columns, plain_name
from rarevote.io.read.encode import Choice
from rarevote.io.read.options import ReadOptions
from rarevote.io.read.problems import Place, Problems, problems_of_cells, problems_of_ticks

Form = Literal["cells", "columns", "rows"]
_CHOICE = ("choice", "option")  # columns that name the choice, if another contains the answer
_MIN_CHOICES = 2


@dataclass(frozen=True)
class TickTable:
    """The columns of a table with several choices in an answer.

    Attributes:
        form: "cells", "columns" or "rows".
        roles: the column of each role.
        answers: the columns of the choices, or those of the annotators of a wide table.
    """

    form: Form
    roles: Mapping[str, str]
    answers: Sequence[str] = ()

    @property
    def choice(self) -> Choice:
        """The columns to read from a file."""
        return Choice(self.roles, self.answers, "choice" if self.form == "columns" else "worker", as_text=True)

    def problems(
        self,
        encoded: Encoded,
        options: ReadOptions,
        *,
        gold: Mapping[Any, str] | None = None,
        unvoted: Sequence[Any] = (),
        place: Place | None = None,
    ) -> Problems:
        """The yes/no problems of the rows that were read."""
        if self.form == "cells":
            return problems_of_cells(encoded, options, gold=gold, unvoted=unvoted, place=place)
        return problems_of_ticks(encoded, options, gold=gold, place=place, every=self.form == "columns")


def find_form(
    found: Sequence[str],
    options: ReadOptions,
    *,
    columns: Mapping[str, str] | None,
    where: str,
    taken: Iterable[str] = (),
    values: Callable[[], Mapping[str, Iterable[object]]],
) -> TickTable:
    """Detect the form of a table and the roles of its columns.

    Args:
        found: the columns.
        options: how to read.
        columns: the columns that the user named, by role.
        where: the name of the table in messages.
        taken: columns with another use.
        values: returns the distinct values of each column that has few.

    Raises:
        ColumnsError: a role has no column.
    """
    chosen = dict(columns or {})
    others = [name for name in found if name not in {*chosen.values(), *taken}]
    ids = {role: ALIASES[role] for role in ("task", "worker")}
    wide = f". One column per annotator? {how('wide=True', '--wide')}"
    if options.choice_columns:
        roles = find_columns(_without(found, taken), _only(chosen, ids), aliases=ids, where=where)
        return TickTable(
            "columns", roles, match_columns(options.choice_columns, _without(found, roles.values()), where)
        )
    named = chosen.get("choice") or next((name for name in others if plain_name(name) in _CHOICE), None)
    labels = [name for name in others if name != named and plain_name(name) in ALIASES["label"]]
    if named is not None and ("choice" in chosen or "label" in chosen or labels):
        aliases = {**ALIASES, "choice": _CHOICE}
        given = {**chosen, "choice": named}
        if {"task", "item"} <= set(others):
            given["task"] = "item"  # output of convert: its task is the item with the choice
        return TickTable("rows", find_columns(_without(found, taken), given, aliases=aliases, where=where))
    if "label" in chosen or labels or named is not None:
        return TickTable("cells", find_columns(_without(found, taken), chosen, where=where, otherwise=wide))
    few = values()
    ticks = [
        name
        for name in others
        if few.get(name) and all(is_ticked(value) is not None for value in few[name]) and not _is_id(name)
    ]
    if len(ticks) < _MIN_CHOICES:
        cells = how('columns={"label": ...}', "--columns label=...")
        ticked = how("choice_columns=[...]", "--choice-column NAME")
        raise ColumnsError(
            f"{where}: cannot find the choices. Name the column of lists ({cells}), or one 0/1 column per choice "
            f"({ticked}); the columns are {', '.join(map(shown, found[:20]))}{wide}"
        )
    return TickTable(
        "columns", find_columns(_without(found, [*taken, *ticks]), chosen, aliases=ids, where=where), ticks
    )


def _without(found: Iterable[str], taken: Iterable[str]) -> list[str]:
    gone = set(taken)
    return [name for name in found if name not in gone]


def _only(chosen: Mapping[str, str], roles: Iterable[str]) -> dict[str, str]:
    return {role: chosen[role] for role in roles if role in chosen}


def _is_id(name: str) -> bool:
    return any(plain_name(name) in ALIASES[role] for role in ("task", "worker"))


# --------------------------------------------------------------------------------------------------------------------
# in memory


_FEW_VALUES = 20


def problems_in_memory(columns: Mapping[str, list[Any]], options: ReadOptions) -> Problems:
    """The yes/no problems of columns that are lists of Python values.

    Raises:
        InputError: they are not answers with several choices; the message says what to do.
    """
    from rarevote.crowd.encoding import encode_column

    if options.wide:
        raise InputError("several choices in the cells of a wide table: give a file, or rows of task, worker and label")
    texts = {name: [_as_text(value) for value in column] for name, column in columns.items()}

    def values() -> dict[str, set[str]]:
        found = {name: {value for value in column if value is not None} for name, column in texts.items()}
        return {name: few for name, few in found.items() if len(few) <= _FEW_VALUES}

    table = find_form(list(columns), options, columns=options.columns, where="the data", values=values)
    encoded: Encoded
    given = {role: texts[name] if role == "label" else columns[name] for role, name in table.roles.items()}
    encoded = {role: encode_column(column, f"the column {shown(table.roles[role])}") for role, column in given.items()}
    if table.form == "columns":
        n = len(table.answers)
        ticks = [texts[name][row] for row in range(len(given["task"])) for name in table.answers]
        encoded = {role: (np.repeat(codes, n), names) for role, (codes, names) in encoded.items()}
        encoded["choice"] = encode_column(list(table.answers) * len(given["task"]))
        encoded["label"] = encode_column(ticks)
    return table.problems(encoded, options)


def _as_text(value: Any) -> Any:
    """A cell as text, lists as JSON; None if it is missing."""
    from rarevote.crowd.names import is_missing, spelling

    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple, set, frozenset)):
        return json.dumps([None if is_missing(item) else spelling(item) for item in value], ensure_ascii=False)
    return None if is_missing(value) else spelling(value)
