"""The labels of a multi-label crowd: for each label, a crowd of items with the votes yes and no.

If an answer can contain several choices (check boxes), every pair of an item and a choice is a task, called
``<item>:<choice>``, and the columns ``item`` and ``choice`` keep its parts. The share of a choice, who recognises
it and how it is decided differ between choices, so nothing is fitted to all pairs together: each choice is its
own crowd, whose tasks are the items.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.encoding import used_names
from rarevote.crowd.names import as_name_array, find_name, is_missing, pair_name, some_names
from rarevote.crowd.population import population, unvoted_note, with_items
from rarevote.crowd.words import counted
from rarevote.errors import ColumnsError, InputError, ParameterError, how, shown
from rarevote.io.platforms.base import NO, YES
from rarevote.io.read.cells import is_ticked
from rarevote.io.read.columns import ALIASES, find_columns, preferred
from rarevote.io.read.sources import open_sources
from rarevote.io.read.table import read_table

if TYPE_CHECKING:
    from rarevote.io.read.crowd import Crowd

#: the columns with the item and the choice of a task
ITEM, CHOICE = "item", "choice"


def by_label(crowd: Crowd) -> dict[str, Crowd]:
    """One crowd for each label, whose tasks are the items for which the label was asked.

    Args:
        crowd: a crowd with several labels (``crowd.choices``).
    """
    votes = crowd.annotations
    items, label = _column(crowd, ITEM), _column(crowd, CHOICE)
    code = {name: number for number, name in enumerate(crowd.choices)}
    of_task = np.array([code[name] for name in label.tolist()], dtype=np.int64)
    tasks = np.argsort(of_task, kind="stable")
    ends = np.searchsorted(of_task[tasks], np.arange(len(code) + 1))
    parts = {}
    for number, name in enumerate(crowd.choices):
        own = tasks[ends[number] : ends[number + 1]]
        voted, unvoted = own[own < votes.n_tasks], own[own >= votes.n_tasks]
        parts[name] = _part(
            crowd, name, items, with_items(_votes_on(votes, voted, items), items[unvoted].tolist()), own
        )
    return parts


def _arguments(crowd: Crowd, label: str) -> str:
    """The command-line arguments for the votes of one label."""
    several = "" if "--multilabel" in crowd.arguments.split() else " --multilabel"
    return f"{crowd.arguments}{several} --choice {shlex.quote(label)}"


def one_label(crowd: Crowd, wanted: Any) -> Crowd:
    """The crowd of one label.

    Raises:
        ParameterError: the crowd has a single label, or no label has this name.
    """
    option = how("choice", "--choice")
    if not crowd.choices:
        several = how("multilabel=True", "--multilabel")
        raise ParameterError(f"{option} needs answers with several choices, which {several} reads")
    found = find_name(wanted, as_name_array(crowd.choices))
    if found is None:
        raise ParameterError(f"{option} {wanted}: no such choice; the choices are {some_names(crowd.choices)}")
    return crowd.by_label[crowd.choices[found]]


def one_problem(crowd: Crowd) -> Crowd:
    """The crowd; refuses a crowd with several labels, which need separate decisions.

    Raises:
        ParameterError: it has several labels.
    """
    if not crowd.choices:
        return crowd
    one = crowd.choices[0]
    todo = how(f"rarevote.fit_each(crowd) fits them all, fit(crowd.by_label[{one!r}]) one", f"name one: --choice {one}")
    raise ParameterError(
        f"{crowd.title} has {counted(len(crowd.choices), 'label')} ({some_names(crowd.choices)}), each a "
        f"separate problem: {todo}"
    )


def known_by_label(crowd: Crowd, labels: Any) -> dict[str, dict[Any, Any]]:
    """Gold or truth of a crowd of several labels: yes or no by item, for each label.

    Args:
        crowd: a crowd with several labels.
        labels: by task ``<item>:<label>``, as for ``Crowd.known``; a file with a row for each item and a column
            for each label, where an empty cell is unknown; or by item for each label.
    """
    parts = crowd.by_label
    if isinstance(labels, Mapping) and labels and all(name in parts for name in labels):
        return {name: part.known(labels[name]) if name in labels else {} for name, part in parts.items()}
    try:
        known = crowd.truth(labels)
    except ColumnsError as error:
        if not isinstance(labels, (str, Path)):
            raise
        sheet = _read_sheet(labels, crowd, error)
        return {name: part.known(sheet[name]) if sheet.get(name) else {} for name, part in parts.items()}
    return {
        name: {item: known[pair] for item in part.population.tolist() if (pair := pair_name(item, name)) in known}
        for name, part in parts.items()
    }


def _read_sheet(path: str | Path, crowd: Crowd, error: ColumnsError) -> dict[str, dict[Any, str]]:
    """Yes or no by item, for each label that has a column."""
    with open_sources(path, wanted=None) as sources:
        first = sources[0]
        named = [name for name in crowd.choices if name in first.columns]
        if not named:
            raise error
        task = {role: name for role, name in preferred(crowd.columns, first.columns).items() if role == "task"}
        roles = find_columns(first.columns, task, aliases={"task": ALIASES["task"]}, where=first.title)
        roles |= {f"choice_{number}": name for number, name in enumerate(named)}
        table = read_table(sources, [roles] * len(sources))
        table.refuse_missing("task", "task")
        table.refuse_repeated("; a row has all labels of an item")
        sheet: dict[str, dict[Any, str]] = {}
        for name, cells in zip(named, table.cells.values(), strict=True):
            said = {item: cell for item, cell in zip(table.tasks, cells, strict=True) if not is_missing(cell)}
            strange = [cell for cell in said.values() if is_ticked(cell) is None]
            if strange:
                raise InputError(
                    f"{table.title}: the column {shown(name)} has {some_names(map(repr, dict.fromkeys(strange)))}: "
                    "values must be yes or no, 1 or 0, true or false, or empty where unknown"
                )
            sheet[name] = {item: YES if is_ticked(cell) else NO for item, cell in said.items()}
    return sheet


def with_listed_items(crowd: Crowd, items: Any, *, task_column: str | None) -> Crowd:
    """The same votes in the population of all listed items, each with every label; see ``Crowd.with_items``."""
    pairs = {
        pair_name(item, name): (item, name)
        for name, part in crowd.by_label.items()
        for item in part.with_items(items, task_column=task_column).population.tolist()
    }
    votes = with_items(crowd.annotations, pairs)
    again = crowd.with_population(votes)
    for place, column in enumerate((ITEM, CHOICE)):
        known = zip(population(votes).tolist(), again.shown[column].tolist(), strict=True)
        again.shown[column] = as_name_array([text or pairs[task][place] for task, text in known])
    return again


def _column(crowd: Crowd, name: str) -> NDArray[Any]:
    return as_name_array(crowd.shown[name])


def _votes_on(votes: Annotations, tasks: NDArray[np.int64], items: NDArray[Any]) -> Annotations:
    """The votes on some tasks, each named by its item, in their order."""
    begin, n_votes = votes.task_ptr[tasks], np.diff(votes.task_ptr)[tasks]
    rows = np.repeat(begin - (np.cumsum(n_votes) - n_votes), n_votes) + np.arange(n_votes.sum())
    encoded = {
        "task": (np.repeat(np.arange(len(tasks)), n_votes), items[tasks]),
        "worker": used_names(votes.worker[rows], votes.workers),
        "label": (votes.label[rows], votes.classes),
    }
    return Annotations.from_encoded(encoded, classes=[NO, YES])


def _part(crowd: Crowd, label: str, items: NDArray[Any], votes: Annotations, tasks: Iterable[int]) -> Crowd:
    """The parts of a crowd that belong to one label: columns to show, and gold."""
    row = dict(zip(items[np.asarray(tasks)].tolist(), np.asarray(tasks).tolist(), strict=True))
    names = population(votes).tolist()
    rows = [row[name] for name in names]
    carried = {name: texts[rows] for name, texts in crowd.shown.items() if name not in (ITEM, CHOICE)}
    gold = {name: crowd.gold[pair] for name in names if (pair := pair_name(name, label)) in crowd.gold}
    return replace(
        crowd,
        annotations=votes,
        title=f"{crowd.title}, {label}",
        shown=carried,
        gold=gold,
        notes=unvoted_note(votes.n_tasks, len(votes.unanswered)),
        choices=(),
        choice=label,
        arguments=_arguments(crowd, label),
    )
