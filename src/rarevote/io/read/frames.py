"""Any data frame in: columns are found, encoded by the frame's own library, and the kind is remembered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations, check_same_index, encode_column
from rarevote.crowd.names import as_name_array, is_missing
from rarevote.errors import ColumnsError, InputError, MissingExtraError
from rarevote.io.read.columns import ALIASES, TRUTH_ALIASES, find_columns
from rarevote.io.tables import Kind, Table


@dataclass(frozen=True)
class Origin:
    """What the data came as, so that results can go back in kind."""

    kind: Kind = "table"
    dtypes: Mapping[str, Any] = field(default_factory=dict)

    def deliver(self, table: Table) -> Any:
        """The table in the kind that the data came as."""
        return table.to(self.kind)


def read_annotations(
    data: Any,
    *,
    columns: Mapping[str, str] | None = None,
    wide: bool = False,
    **policies: Any,
) -> tuple[Annotations, Origin]:
    """Encode whatever a user has in memory.

    Args:
        data: a pandas, polars or pyarrow frame; anything with ``__arrow_c_stream__``; a mapping of column names to
            arrays; a tuple ``(task, worker, label)`` of arrays; rows as tuples or dicts; or :class:`Annotations`, which
            are taken as they are. Files are read by :func:`rarevote.io.read.crowd.read`.
        columns: which column is which, where the usual names do not tell.
        wide: whether a frame or mapping has one row per task and one column per annotator, the task first.
        **policies: ``classes``, ``abstain``, ``keep`` and ``missing`` of :meth:`Annotations.from_arrays`.
    """
    if isinstance(data, Annotations):
        return data, Origin()
    if isinstance(data, tuple) and len(data) == 3:
        return Annotations.from_arrays(*data, **policies), Origin()
    if isinstance(data, list):
        data = _columns_of(data)
    if wide:
        long, kind = _unpivoted(data, columns)
        return Annotations.from_arrays(*(long[role] for role in ALIASES), **policies), Origin(kind)
    if isinstance(data, Mapping):
        chosen = find_columns(list(data), columns, where="the data")
        return Annotations.from_arrays(*(data[chosen[role]] for role in ALIASES), **policies), Origin()
    frame, kind = _as_frame(data)
    chosen = find_columns(frame.columns, columns, where="the frame")
    encoded = {role: _encode_series(frame[name], kind) for role, name in chosen.items()}
    dtypes = {}
    if kind == "pandas":
        dtypes = {role: frame[name].to_native().dtype for role, name in chosen.items()}
        dtypes["agg_label"] = dtypes["columns"] = dtypes["label"]
    return Annotations.from_encoded(encoded, **policies), Origin(kind, dtypes)


def _columns_of(rows: Sequence[Any]) -> dict[str, list[Any]]:
    """Rows, as tuples (task, worker, label) or as dicts, turned into columns; a key that a dict lacks is missing."""
    if all(isinstance(row, Mapping) for row in rows):
        names = dict.fromkeys(name for row in rows for name in row)
        return {name: [row.get(name) for row in rows] for name in names} if rows else {role: [] for role in ALIASES}
    for number, row in enumerate(rows):
        if not isinstance(row, (tuple, list)) or len(row) != len(ALIASES):
            raise InputError(
                f"cannot read annotations from row {number}: a list holds (task, worker, label) or dicts, not {row!r}"
            )
    return dict(zip(ALIASES, map(list, zip(*rows, strict=True)), strict=True))


def _unpivoted(data: Any, columns: Mapping[str, str] | None) -> tuple[dict[str, list[Any]], Kind]:
    """A wide frame or mapping as columns task, worker and label, and its kind; a missing cell is no vote."""
    kind: Kind = "table"
    if isinstance(data, Mapping):
        table = {name: list(values) for name, values in data.items()}
    else:
        frame, kind = _as_frame(data)
        table = {name: frame[name].to_list() for name in frame.columns}
    task = (columns or {}).get("task", next(iter(table), None))
    if task not in table or set(columns or {}) - {"task"}:
        raise ColumnsError("of a wide table only the task can be named: its other columns are the annotators")
    rows = [
        (table[task][row], worker, label)
        for worker, labels in table.items()
        if worker != task
        for row, label in enumerate(labels)
        if not is_missing(label)
    ]
    return {role: [row[place] for row in rows] for place, role in enumerate(ALIASES)}, kind


def read_truth(data: Any, *, columns: Mapping[str, str] | None = None) -> dict[Any, Any]:
    """Gold or truth as a dict from task to label.

    Args:
        data: a mapping from task to label, a pandas Series indexed by task (crowd-kit's form), a frame with a task
            and a label column, a tuple ``(task, label)``, or a path.
        columns: which column is which.
    """
    if isinstance(data, Mapping):
        return dict(data)
    if isinstance(data, (str, Path)):
        from rarevote.io.read.votes import read_truth_file

        return read_truth_file(data, columns=columns)
    if isinstance(data, tuple) and len(data) == 2:
        check_same_index(dict(zip(TRUTH_ALIASES, data, strict=True)))
        pairs = [np.asarray(column).tolist() if isinstance(column, np.ndarray) else list(column) for column in data]
    elif hasattr(data, "index") and hasattr(data, "to_numpy") and not hasattr(data, "columns"):
        pairs = [data.index.tolist(), data.tolist()]
    else:
        frame, _ = _as_frame(data)
        chosen = find_columns(frame.columns, columns, aliases=TRUTH_ALIASES, where="the truth frame", choosable=False)
        pairs = [frame[chosen[role]].to_list() for role in TRUTH_ALIASES]
    return truth_from_pairs(*pairs)


def read_truths(data: Any) -> tuple[dict[Any, Any], list[tuple[Any, Any]]]:
    """Gold of which a task may have several labels, as crowd-kit's Series may.

    Of several labels the one counts that is named last among all, by where each label is first named.

    Returns:
        The label that counts by task, and all other pairs of task and label.
    """
    if not (hasattr(data, "index") and hasattr(data, "to_numpy") and not hasattr(data, "columns")):
        return read_truth(data), []
    pairs = list(dict.fromkeys(zip(data.index.tolist(), data.tolist(), strict=True)))
    rank = {label: number for number, label in enumerate(dict.fromkeys(label for _, label in pairs))}
    truth: dict[Any, Any] = {}
    for task, label in pairs:
        if task not in truth or rank[label] > rank[truth[task]]:
            truth[task] = label
    return truth, [(task, label) for task, label in pairs if truth[task] != label]


def truth_from_pairs(tasks: Sequence[Any], labels: Sequence[Any]) -> dict[Any, Any]:
    """A dict from task to label; two different labels for one task are an error."""
    if len(tasks) != len(labels):
        raise InputError(f"{len(tasks)} tasks but {len(labels)} labels")
    truth: dict[Any, Any] = {}
    for task, label in zip(tasks, labels, strict=True):
        if truth.setdefault(task, label) != label:
            raise InputError(f"task {task!r} has two labels, {truth[task]!r} and {label!r}")
    return truth


def _as_frame(data: Any) -> tuple[Any, Kind]:
    """A narwhals frame and the kind of the frame behind it."""
    import narwhals as nw

    try:
        frame: Any = nw.from_native(data)
    except TypeError:
        if not hasattr(data, "__arrow_c_stream__"):
            raise InputError(
                f"cannot read annotations from {type(data).__name__}: give a pandas, polars or pyarrow frame, anything "
                "with __arrow_c_stream__, a mapping of columns, a tuple of arrays (task, worker, label), or a path"
            ) from None
        frame = None
    if isinstance(frame, nw.LazyFrame) and frame.implementation.is_polars():
        frame = frame.collect()
    if isinstance(frame, nw.DataFrame):
        implementation = frame.implementation
        if implementation.is_polars():
            return frame, "polars"
        if implementation.is_pyarrow():
            return frame, "pyarrow"
        if implementation.is_pandas():
            return frame, "pandas"
    for backend in ("pyarrow", "polars"):
        try:
            return nw.from_arrow(data, backend=backend), backend
        except ImportError:
            continue
    raise MissingExtraError("reading Arrow data needs pyarrow or polars: pip install 'rarevote[arrow]'")


def _encode_series(series: Any, kind: Kind) -> tuple[NDArray[Any], NDArray[Any]]:
    """Codes and distinct values of one column, by the fastest way its library has; missing values are -1."""
    native = series.to_native()
    if kind == "pandas":
        if native.dtype.kind in "iub" and isinstance(native.dtype, np.dtype):
            return encode_column(native.to_numpy())
        namespace = series.implementation.to_native_namespace()
        try:
            # Text sorts itself quickest, and in less memory than a table of names would take afterwards.
            codes, values = namespace.factorize(native, sort=isinstance(native.dtype, namespace.StringDtype))
        except TypeError:
            return encode_column(native.to_numpy(dtype=object))
        # The next column is encoded while this one's codes are held: half the bytes do for all but giant crowds.
        return codes.astype(np.int32 if len(values) < 2**31 else np.int64), _distinct(np.asarray(values))
    if kind == "polars":
        frame = native.alias("value").to_frame()
        distinct = frame.drop_nulls().unique(maintain_order=True).with_row_index("code")
        codes = frame.join(distinct, on="value", how="left", maintain_order="left")["code"]
        return codes.cast(int).fill_null(-1).to_numpy(), _distinct(distinct["value"].to_list())
    array = native.combine_chunks() if hasattr(native, "combine_chunks") else native
    encoded = array if hasattr(array, "indices") else array.dictionary_encode()
    codes = encoded.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)
    return codes, _distinct(encoded.dictionary.to_pylist())


def _distinct(values: Any) -> NDArray[Any]:
    return as_name_array(values if isinstance(values, np.ndarray) else list(values))
