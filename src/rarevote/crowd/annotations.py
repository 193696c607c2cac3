"""The encoded crowd: task, worker and label of every vote as small integers, checked once and immutable.

Rows ``(task, worker, label)`` become a compressed table: the votes of task ``i`` are the positions
``task_ptr[i] .. task_ptr[i + 1]`` of ``worker`` and ``label``; the names behind the integers are stored beside
them and are returned exactly as given. Lower layers never use names.

Edge cases are defined as follows:

* a missing id or label (None, NaN, NA, a masked value, empty or blank text) is an error that says how many and where,
  unless ``missing="drop"``;
* repeated (task, worker) pairs all count, unless ``keep`` is ``"last"``, ``"first"`` or ``"error"``;
* no rows give a crowd of zero tasks, for which every method returns an empty result;
* a single class, tasks with a single vote and workers with a single vote are ordinary data;
* answers named in ``abstain`` are not votes: they are counted per worker;
* a task in the rows that has no vote (only abstentions, or rows that ``missing="drop"`` leaves out) is not
  in ``tasks`` but in ``unanswered``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rarevote.crowd.encoding import (
    Codes,
    Names,
    check_same_index,
    check_same_length,
    decode_column,
    distinct_names,
    encode_column,
    sort_codes,
    used_names,
)
from rarevote.crowd.names import (
    StoredNames,
    as_name_array,
    in_kind,
    look_alikes,
    name_key,
    some_names,
    sort_labels,
    sort_names,
    unmatched,
)
from rarevote.crowd.words import counted
from rarevote.errors import InputError, MissingValuesError, ParameterError, how, warn_user
from rarevote.kernels import plain

Keep = Literal["all", "first", "last", "error"]
Missing = Literal["error", "drop"]

MAX_CLASSES = 65_535
_COUNTED_AT_ONCE = 1 << 17
_SHOWN_ALIKE = 3  # how many names of two types a warning names
_SHOWN = 5  # how many offending rows or values a message names


Encoded = dict[str, tuple[Codes, Any]]  # codes and names by role; only names of tasks can be stored ones


# --------------------------------------------------------------------------------------------------------------------
# the crowd


@dataclass(frozen=True, eq=False)
class Annotations:
    """An immutable, validated crowd in compressed form.

    Attributes:
        task_ptr: int64 (n_tasks + 1); task ``i`` owns the positions ``task_ptr[i] : task_ptr[i + 1]``.
        worker: unsigned (n_annotations), the worker of each annotation.
        label: unsigned (n_annotations), the class of each annotation.
        tasks: names of the tasks, sorted; those of very large files stay on disk until :meth:`task_names` loads them.
        workers: names of the workers, sorted.
        classes: names of the classes, sorted.
        abstentions: how often each worker gave an answer named in ``abstain``.
        unanswered: names of all items in the data that have no vote, sorted; none of them is in ``tasks``.
        n_dropped: rows left out because of ``missing="drop"`` or ``keep``.

    >>> crowd = Annotations.from_arrays(["a", "a", "b"], [7, 8, 7], ["yes", "no", "yes"])
    >>> crowd
    Annotations(2 tasks, 2 workers, 2 classes, 3 annotations)
    """

    task_ptr: NDArray[np.int64]
    worker: NDArray[Any]
    label: NDArray[Any]
    tasks: Names
    workers: NDArray[Any]
    classes: NDArray[Any]
    abstentions: dict[Any, int] = field(default_factory=dict)
    unanswered: NDArray[Any] = field(default_factory=lambda: np.empty(0, dtype=object))
    n_dropped: int = 0

    def __post_init__(self) -> None:
        for array in (self.task_ptr, self.worker, self.label):
            array.setflags(write=False)

    @property
    def n_tasks(self) -> int:
        """Number of tasks with at least one vote."""
        return self.task_ptr.size - 1

    @property
    def n_workers(self) -> int:
        """Number of workers with at least one vote."""
        return len(self.workers)

    @property
    def n_classes(self) -> int:
        """Number of classes, including those named in ``classes=``."""
        return len(self.classes)

    @property
    def n_annotations(self) -> int:
        """Number of votes."""
        return self.worker.size

    @cached_property
    def class_votes(self) -> NDArray[np.int64]:
        """Number of votes for every class, (n_classes)."""
        votes = np.zeros(self.n_classes, dtype=np.int64)
        for begin in range(0, self.n_annotations, _COUNTED_AT_ONCE):  # counting copies the array in a wider type
            votes += np.bincount(self.label[begin : begin + _COUNTED_AT_ONCE], minlength=self.n_classes)
        return votes

    @property
    def nbytes(self) -> int:
        """Bytes of the encoded votes, without names."""
        return self.task_ptr.nbytes + self.worker.nbytes + self.label.nbytes

    def __repr__(self) -> str:
        return (
            f"Annotations({self.n_tasks} tasks, {self.n_workers} workers, {self.n_classes} classes, "
            f"{self.n_annotations} annotations)"
        )

    def votes(self, weight: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Votes per task and class, each weighted by ``weight`` (per annotation) or one.

        Returns:
            float64 (n_tasks, n_classes).
        """
        counted = np.zeros((self.n_tasks, self.n_classes))
        plain.count_votes(self.task_ptr, self.label, np.empty(0) if weight is None else weight, counted)
        return counted

    def task_names(self) -> NDArray[Any]:
        """Names of the tasks, in memory."""
        return np.asarray(self.tasks)

    def task_of_annotation(self) -> NDArray[np.int64]:
        """The task of every annotation, int64 (n_annotations)."""
        return np.repeat(np.arange(self.n_tasks), np.diff(self.task_ptr))

    def votes_on(self, item: int) -> slice:
        """The positions of the votes on an item of the population; items without votes come after all tasks."""
        if item >= self.n_tasks:
            return slice(0, 0)
        return slice(int(self.task_ptr[item]), int(self.task_ptr[item + 1]))

    @classmethod
    def from_arrays(
        cls,
        task: ArrayLike,
        worker: ArrayLike,
        label: ArrayLike,
        *,
        classes: Sequence[Any] | None = None,
        abstain: Sequence[Any] = (),
        keep: Keep = "all",
        missing: Missing = "error",
    ) -> Annotations:
        """Encode three columns of equal length.

        Args:
            task: ids of the tasks, of any hashable type.
            worker: ids of the workers.
            label: the answers.
            classes: classes that exist even without votes.
            abstain: answers that are not votes, such as "not sure".
            keep: which of repeated (task, worker) pairs count: "all", "first", "last", or "error" to refuse them.
            missing: "error" to refuse rows with missing ids or labels, "drop" to leave them out.
        """
        given = {"task": task, "worker": worker, "label": label}
        check_same_index(given)
        encoded: Encoded = {role: encode_column(values, role) for role, values in given.items()}
        return cls.from_encoded(encoded, classes=classes, abstain=abstain, keep=keep, missing=missing)

    @classmethod
    def from_encoded(
        cls,
        encoded: Encoded,
        *,
        classes: Sequence[Any] | None = None,
        abstain: Sequence[Any] = (),
        keep: Keep = "all",
        missing: Missing = "error",
        ready: Collection[str] = (),
        place_of_row: Callable[[NDArray[np.int64]], str] | None = None,
    ) -> Annotations:
        """Build from columns that are already encoded as codes and values.

        Arguments that are not named here are as in :meth:`from_arrays`.

        Args:
            encoded: ``{"task": (codes, values), "worker": ..., "label": ...}``; code -1 marks a missing value. Values
                can be in any order; equal ones become one name (:func:`~rarevote.crowd.encoding.distinct_names`).
            ready: columns whose values are sorted, distinct text with none missing, which need no further check.
            place_of_row: turns row numbers into text such as "lines 3, 7" for messages.
        """
        if keep not in ("all", "first", "last", "error"):
            raise ParameterError(f'keep must be "all", "first", "last" or "error", got {keep!r}')
        if missing not in ("error", "drop"):
            raise ParameterError(f'missing must be "error" or "drop", got {missing!r}')
        place_of_row = place_of_row or _rows_in_words
        check_same_length({role: codes.size for role, (codes, _) in encoded.items()})
        encoded = {role: pair if role in ready else distinct_names(*pair, role) for role, pair in encoded.items()}
        n_given = encoded["task"][0].size

        absent = {role: _absent_rows(codes) for role, (codes, _) in encoded.items()}
        unvoted = np.empty(0, dtype=object)
        if any(rows is not None for rows in absent.values()):
            if missing == "error":
                raise MissingValuesError(_missing_message(absent, place_of_row))
            present = ~np.logical_or.reduce([rows for rows in absent.values() if rows is not None])
            unvoted = _only_in_dropped_rows(*encoded["task"], present, absent["task"])
            encoded = {role: used_names(codes[present], values) for role, (codes, values) in encoded.items()}
        n_present = encoded["task"][0].size

        encoded, abstentions, unanswered = _set_abstentions_apart(encoded, abstain)
        if len(unvoted):
            unanswered = as_name_array(sort_names([*unvoted.tolist(), *unanswered.tolist()]))
        n_voted = encoded["task"][0].size

        if classes is not None:
            encoded["label"] = _add_classes(*encoded["label"], classes)
        task_codes, tasks = encoded["task"]
        worker_codes, workers = encoded["worker"]
        if "task" not in ready and not isinstance(tasks, StoredNames):  # they are sorted
            task_codes, tasks = sort_codes(task_codes, tasks, sort_names)
        if "worker" not in ready:
            worker_codes, workers = sort_codes(worker_codes, workers, sort_names)
        label_codes, class_names = sort_codes(*encoded["label"], sort_labels)
        _warn_of_look_alikes({"tasks": tasks, "workers": workers, "classes": class_names})
        if len(class_names) > MAX_CLASSES:
            raise InputError(
                f"{len(class_names):,} distinct labels, more than the {MAX_CLASSES:,} supported: is the label column "
                "free text or a number? Map it to classes first."
            )
        if keep != "all":
            chosen = _chosen_of_repeats(task_codes, worker_codes, len(workers), keep, tasks, workers)
            if chosen is not None:
                task_codes, worker_codes, label_codes = (
                    codes[chosen] for codes in (task_codes, worker_codes, label_codes)
                )
        n_dropped = n_given - n_present + n_voted - task_codes.size
        task_ptr = np.zeros(len(tasks) + 1, dtype=np.int64)
        worker = np.empty(task_codes.size, dtype=smallest_unsigned(len(workers)))
        label = np.empty(task_codes.size, dtype=smallest_unsigned(len(class_names)))
        if task_codes.size:
            plain.group_by_code(task_codes, task_ptr, worker_codes, label_codes, worker, label)
        return cls(task_ptr, worker, label, tasks, workers, class_names, abstentions, unanswered, n_dropped)


def smallest_unsigned(count: int) -> type[np.unsignedinteger[Any]]:
    """The smallest unsigned type that can number ``count`` things."""
    if count <= 2**8:
        return np.uint8
    if count <= 2**16:
        return np.uint16
    return np.uint32


# --------------------------------------------------------------------------------------------------------------------
# steps of the construction


def _absent_rows(codes: Codes) -> NDArray[np.bool_] | None:
    """Which rows have missing values, or None if no row has."""
    if codes.dtype.kind == "i" and codes.size and codes.min() < 0:
        return np.asarray(codes < 0)
    return None


def _rows_in_words(rows: NDArray[np.int64]) -> str:
    return "rows " + ", ".join(str(row) for row in rows)


def _missing_message(
    absent: dict[str, NDArray[np.bool_] | None], place_of_row: Callable[[NDArray[np.int64]], str]
) -> str:
    parts = []
    for role, rows in absent.items():
        if rows is not None:
            where = np.flatnonzero(rows)
            more = ", ..." if where.size > _SHOWN else ""
            noun = "row has" if where.size == 1 else "rows have"
            parts.append(f"{where.size:,} {noun} no {role} ({place_of_row(where[:_SHOWN])}{more})")
    drop = how('missing="drop"', "--missing drop")
    return f"{'; '.join(parts)}. Fill in the missing values, or leave the rows out: {drop}"


def _only_in_dropped_rows(
    codes: Codes, values: Names, present: NDArray[np.bool_], without_task: NDArray[np.bool_] | None
) -> NDArray[Any]:
    """Tasks that occur only in dropped rows; rows without a task are ignored."""
    dropped = ~present if without_task is None else ~(present | without_task)
    unvoted = np.zeros(len(values), dtype=bool)
    unvoted[codes[dropped]] = True
    unvoted[codes[present]] = False
    return np.asarray(values[unvoted])


def _warn_of_look_alikes(names: Mapping[str, Any]) -> None:
    """Warn about different names that files and pages write alike."""
    alike = {role: look_alikes(listed) for role, listed in names.items() if not isinstance(listed, StoredNames)}
    parts = [
        f"{', '.join(texts[:_SHOWN_ALIKE])}{', ...' if len(texts) > _SHOWN_ALIKE else ''} among the {role}"
        for role, texts in alike.items()
        if texts
    ]
    if parts:
        warn_user(
            f"a value and its text are different names, but files and pages write them alike: {'; '.join(parts)}. If "
            "they are the same, write them in one way, for example as text"
        )


def _set_abstentions_apart(encoded: Encoded, abstain: Sequence[Any]) -> tuple[Encoded, dict[Any, int], NDArray[Any]]:
    nothing = np.empty(0, dtype=object)
    if isinstance(abstain, str) or not isinstance(abstain, Iterable):
        abstain = [abstain]
    abstain = _named_by_hand(list(abstain) if isinstance(abstain, (Set, Mapping)) else abstain, "abstain=")
    if not abstain:
        return encoded, {}, nothing
    label_codes, labels = encoded["label"]
    strange = unmatched(abstain, labels)
    if strange and len(labels):
        warn_user(
            f"none of the answers is {some_names(map(repr, strange))} (abstain): the answers are "
            f"{some_names(labels.tolist())}"
        )
    wanted = set(map(name_key, in_kind(abstain, labels)))
    is_abstention = np.fromiter((name_key(name) in wanted for name in labels.tolist()), dtype=bool, count=len(labels))
    if not is_abstention.any():
        return encoded, {}, nothing
    silent = is_abstention[label_codes]
    worker_codes, workers = encoded["worker"]
    counts = np.bincount(worker_codes[silent], minlength=len(workers))
    abstentions = {workers[code]: int(counts[code]) for code in np.flatnonzero(counts)}
    task_codes, tasks = encoded["task"]
    answered = np.zeros(len(tasks), dtype=bool)
    answered[task_codes[~silent]] = True
    unanswered = as_name_array(sort_names(tasks[~answered].tolist()))
    voted = {role: used_names(codes[~silent], values) for role, (codes, values) in encoded.items()}
    return voted, abstentions, unanswered


def _named_by_hand(given: Any, what: str) -> list[Any]:
    """Names that a user lists, by the rules for columns; None for missing ones."""
    return decode_column(*distinct_names(*encode_column(given, what), what))


def _add_classes(codes: Codes, values: NDArray[Any], classes: Sequence[Any]) -> tuple[Codes, NDArray[Any]]:
    named = _named_by_hand(classes, "classes=")
    if None in named:
        raise ParameterError("classes= contains a missing value")
    return distinct_names(codes, as_name_array([*values.tolist(), *in_kind(named, values)]), "label")


def _chosen_of_repeats(
    task_codes: Codes,
    worker_codes: Codes,
    n_workers: int,
    keep: Keep,
    tasks: Names,
    workers: NDArray[Any],
) -> NDArray[np.int64] | None:
    """Rows that remain after the policy on repeated pairs, in order; None if nothing repeats."""
    pair = task_codes.astype(np.int64) * max(n_workers, 1) + worker_codes
    backwards = keep == "last"
    distinct, first = np.unique(pair[::-1] if backwards else pair, return_index=True)
    if distinct.size == pair.size:
        return None
    if keep == "error":
        repeated = np.ones(pair.size, dtype=bool)
        repeated[first] = False
        rows = np.flatnonzero(repeated)
        named = ", ".join(f"({tasks[task_codes[row]]!s}, {workers[worker_codes[row]]!s})" for row in rows[:_SHOWN])
        raise InputError(
            f"{counted(rows.size, 'row repeats', 'rows repeat')} an earlier (task, worker) pair: "
            f"{named}{', ...' if rows.size > _SHOWN else ''}. "
            + how('Choose keep="all", "first" or "last".', "Choose --keep all, first or last.")
        )
    chosen = np.sort(pair.size - 1 - first if backwards else first)
    return chosen.astype(np.int64)
