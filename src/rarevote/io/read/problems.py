"""Yes/no problems from answers with several choices: one for every item and choice.

The task of a problem is ``<item>:<choice>``, its classes are ``yes`` and ``no``. Annotators who chose nothing count as
no to every choice, unless :attr:`~rarevote.io.read.options.ReadOptions.nothing_ticked` says that they gave no answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations, Encoded
from rarevote.crowd.encoding import distinct_names, used_names
from rarevote.crowd.names import as_name_array, pair_name, some_names, sort_labels, spelling
from rarevote.crowd.population import population, with_items
from rarevote.crowd.words import counted, listed
from rarevote.errors import InputError, MissingValuesError, shown
from rarevote.io.platforms.base import NO, YES, nothing_ticked_note
from rarevote.io.read.cells import NOTHING, is_ticked, split_cells
from rarevote.io.read.options import ReadOptions

_LABELS = as_name_array([NO, YES])
Place = Callable[[NDArray[np.int64]], str]


@dataclass(frozen=True, eq=False)
class Problems:
    """The yes/no problems of answers with several choices.

    Attributes:
        annotations: the votes on the problems.
        choices: all choices, sorted.
        parts: item and choice of every problem of the population, by its name.
        gold: gold, by problem.
        notes: notes on how the answers were read.
    """

    annotations: Annotations
    choices: tuple[str, ...]
    parts: dict[str, tuple[Any, str]]
    gold: dict[str, str]
    notes: tuple[str, ...]

    def shown(self, columns: Mapping[str, Mapping[Any, str]]) -> dict[str, NDArray[Any]]:
        """Columns to show for every problem: those given by item, then ``item`` and ``choice``.

        Args:
            columns: the text by item, for each column.
        """
        parts = [self.parts[name] for name in population(self.annotations).tolist()]
        carried = {name: [texts.get(item, "") for item, _ in parts] for name, texts in columns.items()}
        carried["item"] = [spelling(item) for item, _ in parts]
        carried["choice"] = [choice for _, choice in parts]
        return {name: as_name_array(texts) for name, texts in carried.items()}


def problems_of_cells(
    encoded: Encoded,
    options: ReadOptions,
    *,
    gold: Mapping[Any, str] | None = None,
    unvoted: Sequence[Any] = (),
    place: Place | None = None,
) -> Problems:
    """The problems of rows whose label is a cell with any number of choices.

    If no cell has several and an annotator has several rows on an item, the rows are the choices of one answer.

    Args:
        encoded: codes and values of task, worker and label; labels are text, and a missing one is an empty answer.
        options: how to read.
        gold: gold cells, by item.
        unvoted: items that do not occur in the rows.
        place: turns row numbers into text.

    Raises:
        InputError: an id is missing, or no answer has a choice.
    """
    codes, cells = distinct_names(*encoded["label"], "label")
    filled = np.where(codes < 0, len(cells), codes)
    label = filled, as_name_array([*(spelling(cell) for cell in np.asarray(cells).tolist()), NOTHING])
    answers = Annotations.from_encoded(
        {**encoded, "label": used_names(*distinct_names(*label, "label"))}, place_of_row=place, **options.policies
    )
    answers = with_items(answers, unvoted) if unvoted else answers
    known = dict(gold or {})
    texts = answers.classes.tolist()
    parsed, mark = split_cells([*texts, *known.values()], options.separator)
    given = dict(zip(known, parsed[len(texts) :], strict=True))
    further = [spelling(name) for name in options.classes or ()]
    choices = sort_labels({*further, *(name for names in parsed for name in names)})
    if not choices:
        raise InputError("no answer has a choice")
    rank = {name: number for number, name in enumerate(choices)}
    of_cell = np.zeros((len(texts), len(choices)), dtype=bool)
    for cell, names in enumerate(parsed[: len(texts)]):
        of_cell[cell, [rank[name] for name in names]] = True

    item, worker = answers.task_of_annotation(), answers.worker.astype(np.int64)
    ticks = of_cell[answers.label]
    notes = [f"the choices of an answer are separated by {shown(mark)}"] if mark else []
    n_rows = item.size
    if options.keep == "all" and not (of_cell.sum(axis=1) > 1).any():
        pair, of_pair = np.unique(item * max(answers.n_workers, 1) + worker, return_inverse=True)
        if pair.size < n_rows:
            together = np.zeros((pair.size, len(choices)), dtype=bool)
            row, choice = np.nonzero(ticks)
            together[of_pair[row], choice] = True
            ticks, item, worker = together, pair // answers.n_workers, pair % answers.n_workers
            notes.append("rows of one annotator on one item are the choices of one answer")
    empty = ~ticks.any(axis=1)
    ignored = options.nothing_ticked == "ignore"
    notes += nothing_ticked_note(int(empty.sum()), ignored=ignored)
    if ignored:
        ticks, item, worker = ticks[~empty], item[~empty], worker[~empty]
    named, parts = _named(np.asarray(answers.tasks).tolist(), choices)
    votes = _votes(
        (item[:, None] * len(choices) + np.arange(len(choices))).ravel(),
        as_name_array(named),
        (np.repeat(worker, len(choices)), answers.workers),
        ticks.ravel(),
    )
    unanswered, further_parts = _named(answers.unanswered.tolist(), choices)
    votes = with_items(votes, [*named, *unanswered])
    votes = replace(votes, abstentions=answers.abstentions, n_dropped=answers.n_dropped)
    return Problems(votes, tuple(choices), parts | further_parts, _gold(given, choices), _notes(choices, notes))


def problems_of_ticks(
    encoded: Encoded,
    options: ReadOptions,
    *,
    gold: Mapping[Any, str] | None = None,
    place: Place | None = None,
    every: bool = False,
) -> Problems:
    """The problems of rows that say whether one choice was ticked.

    Args:
        encoded: codes and values of task, worker, choice and label; labels are ticks.
        options: how to read.
        gold: gold cells, by item.
        place: turns row numbers into text.
        every: all annotators saw every choice, and an empty label means not ticked, unless other rows of
            that choice say no: then it means not answered.

    Raises:
        InputError: an id is missing, or a label is not a tick.
    """
    encoded = {role: distinct_names(*pair, role) for role, pair in encoded.items()}
    item, items = encoded["task"]
    choice, names = encoded["choice"]
    code, values = encoded["label"]
    said = [is_ticked(value) for value in np.asarray(values).tolist()]
    strange = [value for value, tick in zip(np.asarray(values).tolist(), said, strict=True) if tick is None]
    if strange:
        raise InputError(
            f"the answers to a choice must be yes or no, 1 or 0, true or false; got {some_names(map(repr, strange))}"
        )
    if (choice < 0).any() and options.missing == "error":
        rows = np.flatnonzero(choice < 0)
        where = f" ({place(rows[:5])})" if place else ""
        raise MissingValuesError(f"{counted(rows.size, 'row')} without a choice{where}: fill them in, or remove them")
    given_gold = dict(gold or {})
    parsed, _ = split_cells(list(given_gold.values()), options.separator)
    given = dict(zip(given_gold, parsed, strict=True))
    spelled = [spelling(name) for name in np.asarray(names).tolist()]
    choices = sort_labels({*spelled, *(name for known in parsed for name in known)})
    rank = np.array([choices.index(name) for name in spelled] + [-1], dtype=np.int64)
    tick = np.array([*said, False], dtype=bool)[code]
    if every:
        explicit = np.zeros(len(names), dtype=bool)
        explicit[choice[(code >= 0) & ~tick]] = True
        code = np.where((code < 0) & ~explicit[choice], 0, code)  # not ticked, as `tick` already says
        code = np.where((item >= 0) & (code < 0), -2, code)  # not answered: these rows are not votes
    kept = code != -2
    notes: list[str] = []
    worker, workers = encoded["worker"]
    pair = np.where((item < 0) | (worker < 0), -1, item.astype(np.int64) * max(len(workers), 1) + worker)
    number = np.unique(pair[kept], return_inverse=True)[1]
    ticked = np.bincount(number, weights=tick[kept]) > 0
    ignored = options.nothing_ticked == "ignore"
    notes += nothing_ticked_note(int((~ticked).sum()), ignored=ignored)
    if ignored:
        kept[kept] = ticked[number]
    named, parts = _named(np.asarray(items).tolist(), choices)
    task = np.where((item < 0) | (choice < 0), -1, item.astype(np.int64) * len(choices) + rank[choice])
    label = np.where(code < 0, -1, tick.astype(np.int64))
    rows = np.flatnonzero(kept)
    votes = Annotations.from_encoded(
        {
            "task": used_names(task[kept], as_name_array(named)),
            "worker": used_names(worker[kept], workers),
            "label": used_names(label[kept], _LABELS),
        },
        place_of_row=None if place is None else lambda found: place(rows[found]),
        **options.policies,
    )
    votes = with_items(votes, named if every else [named[one] for one in np.unique(task[task >= 0]).tolist()])
    return Problems(votes, tuple(choices), parts, _gold(given, choices), _notes(choices, notes))


def _votes(
    task: NDArray[np.int64], names: NDArray[Any], worker: tuple[NDArray[Any], NDArray[Any]], ticks: NDArray[np.bool_]
) -> Annotations:
    return Annotations.from_encoded(
        {
            "task": used_names(task, names),
            "worker": used_names(*worker),
            "label": used_names(ticks.astype(np.int64), _LABELS),
        }
    )


def _named(items: Iterable[Any], choices: Sequence[str]) -> tuple[list[str], dict[str, tuple[Any, str]]]:
    """The names of all problems of these items, with item and choice of each."""
    pairs = [(item, choice) for item in items for choice in choices]
    names = [pair_name(item, choice) for item, choice in pairs]
    parts = dict(zip(names, pairs, strict=True))
    if len(parts) < len(pairs):
        twice = next(name for name, pair in zip(names, pairs, strict=True) if parts[name] != pair)
        raise InputError(
            f"the problem {shown(twice)} stands for two items or choices, because their names have colons: rename the "
            "choices"
        )
    return names, parts


def _gold(known: Mapping[Any, Sequence[str]], choices: Sequence[str]) -> dict[str, str]:
    return {
        pair_name(item, choice): YES if choice in chosen else NO for item, chosen in known.items() for choice in choices
    }


def _notes(choices: Sequence[str], notes: Sequence[str]) -> tuple[str, ...]:
    return (f"one yes/no problem for each of {counted(len(choices), 'choice')}: {listed(list(choices), 12)}", *notes)
