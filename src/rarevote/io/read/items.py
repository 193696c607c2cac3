"""The list of all items to be labelled: one column of ids, from a file or from memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import numpy as np

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.encoding import Names, distinct_names
from rarevote.crowd.names import in_kind, positions_of, spelling
from rarevote.crowd.population import with_items
from rarevote.crowd.words import counted
from rarevote.errors import InputError, ParameterError, how, shown, warn_user
from rarevote.io.read.columns import ALIASES, find_columns, plain_name
from rarevote.io.read.options import ReadOptions
from rarevote.io.read.series import encode_values
from rarevote.io.read.sources import FileTable, open_sources
from rarevote.io.read.table import read_table

_ALIASES = {"task": (*ALIASES["task"], "id", "ids", "tasks", "items")}
_SHOWN = 3  # how many ids a message names
_COMPARED = 1_000  # number of ids with votes to compare a first line with


def join_items(
    annotations: Annotations, items: Any, *, task_column: str | None = None, has_header: bool = True
) -> Annotations:
    """The same votes in the population of a list; ids are matched as for gold, so that "7" is 7.

    Args:
        annotations: the votes.
        items: a file with a column of ids; or ids as a list, an array, a Series or a column of a frame. Duplicate
            ids count once.
        task_column: the name of the task column in the votes.
        has_header: whether the files of the votes have a header line.

    Raises:
        InputError: there are no ids, one is missing, or items that have votes are not in the list.
        ColumnsError: the column of the ids is ambiguous.
    """
    if isinstance(items, (str, Path)):
        title = str(items)
        given = _of_file(items, annotations.tasks, task_column, has_header=has_header)
    else:
        title = how("items", "--items")
        given = _of_memory(items, task_column)
    if not given:
        raise InputError(f"{title}: no items")
    names = list(dict.fromkeys(in_kind(given, annotations.tasks)))
    _check_voted(annotations, names, title)
    return with_items(annotations, names)


def _check_voted(annotations: Annotations, names: Sequence[Any], title: str) -> None:
    """Refuse a list that lacks items with votes: it has other items, or other ids."""
    place = positions_of(annotations.tasks, names)
    absent = np.ones(annotations.n_tasks, dtype=bool)
    absent[place[place >= 0]] = False
    n_absent = int(absent.sum())
    if n_absent:
        first = ", ".join(shown(name) for name in annotations.tasks[np.flatnonzero(absent)[:_SHOWN]].tolist())
        raise InputError(
            f"{title}: {n_absent:,} of {annotations.n_tasks:,} items with votes {'is' if n_absent == 1 else 'are'} not "
            f"in the list ({first}{', ...' if n_absent > _SHOWN else ''}): check the list and the ids"
        )


# --------------------------------------------------------------------------------------------------------------------
# from memory


def _of_memory(items: Any, task_column: str | None) -> list[Any]:
    import narwhals as nw

    what = how("items", "--items")
    frame: Any = nw.from_native(items, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, nw.DataFrame):
        items = frame[_column(frame.columns, task_column, "the frame of items")].to_native()
    elif isinstance(items, np.ndarray):
        items = items.ravel()
    elif isinstance(items, (Mapping, Set)):
        items = list(items)
    elif not isinstance(items, Iterable) and not hasattr(items, "__arrow_c_stream__"):
        raise ParameterError(f"items must be a file or a list of ids, got {items!r}")
    codes, names = distinct_names(*encode_values(items, what), what)
    if n_missing := int((codes < 0).sum()):
        raise InputError(f"{what}: {counted(n_missing, 'id is', 'ids are')} missing")
    return list(names.tolist())


# --------------------------------------------------------------------------------------------------------------------
# from files


def _of_file(path: str | Path, voted: Names, task_column: str | None, *, has_header: bool) -> list[Any]:
    with open_sources(path) as sources:
        if sources[0].form != "csv" or _names_columns(sources[0], voted, task_column, has_header=has_header):
            return _ids(sources, [_column(one.columns, task_column, one.title) for one in sources])
    with open_sources(path, ReadOptions(has_header=False)) as sources:
        return _ids(sources, ["1"] * len(sources))


def _ids(sources: Sequence[FileTable], columns: Sequence[str]) -> list[Any]:
    table = read_table(sources, [{"task": name} for name in columns])
    if sources[0].form == "csv" and len(sources[0].columns) == 1:
        return [name for name in table.tasks if name is not None]  # a blank line is not a row
    table.refuse_missing("id", "task")
    return table.tasks


def _names_columns(source: FileTable, voted: Names, task_column: str | None, *, has_header: bool) -> bool:
    """Whether the first line of a text is a header, or already an id.

    A list of ids in a ``.txt`` file needs no header line, nor does any text if the votes have none.
    """
    if any(name == task_column or plain_name(name) in _ALIASES["task"] for name in source.columns):
        return True
    if len(source.columns) > 1:
        return has_header
    (first,) = source.columns
    is_list = ".txt" in Path(source.files[0].path).suffixes[-2:]
    if not has_header or is_list or _form(first) in {_form(spelling(name)) for name in voted[:_COMPARED].tolist()}:
        return False
    if positions_of(voted, in_kind([first], voted))[0] >= 0:
        return False
    warn_user(
        f"{source.title}: the first line, {shown(first)}, is read as the name of the column. If it is an item, add a "
        "line 'task' before it; if it is a name, rename the column to 'task'"
    )
    return True


def _form(name: str) -> str:
    """A name without its digits: numbered ids have the same form."""
    return re.sub(r"\d+", "0", name)


def _column(columns: Sequence[str], task_column: str | None, where: str) -> str:
    """The column of the ids: named as in the votes, named like tasks, or the only one."""
    if task_column in columns:
        return str(task_column)
    if len(columns) == 1:
        return columns[0]
    return find_columns(columns, aliases=_ALIASES, where=where, choosable=False)["task"]
