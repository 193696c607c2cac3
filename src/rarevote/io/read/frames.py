"""Votes and gold from memory: columns of frames, arrays and rows are encoded, and their type is stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rarevote.crowd.annotations import Annotations, Encoded
from rarevote.crowd.encoding import (
    as_list,
    check_same_index,
    check_same_length,
    decode_column,
    distinct_names,
    is_series,
)
from rarevote.crowd.names import name_key
from rarevote.crowd.population import with_items
from rarevote.errors import ColumnsError, InputError, MissingValuesError, RarevoteError, shown
from rarevote.io.read.columns import (
    ALIASES,
    TRUTH_ALIASES,
    check_column_names,
    find_columns,
    ignored_weights,
    plain_name,
    preferred,
)
from rarevote.io.read.options import DEFAULTS, ReadOptions
from rarevote.io.read.series import arrow_library, encode_series, encode_values
from rarevote.io.tables import Kind, Table

if TYPE_CHECKING:
    from rarevote.io.read.problems import Problems

_VOTES = (
    "a pandas, polars or pyarrow frame, anything with __arrow_c_stream__, a mapping of columns, a tuple of arrays "
    "(task, worker, label), a list of rows (task, worker, label), or a path"
)
_TRUTH = (
    "a mapping from task to label, a Series indexed by task, a frame with a task and a label column, a tuple of "
    "arrays (task, label), or a path"
)
_SHOWN = 5  # how many rows a message names


@dataclass(frozen=True)
class Origin:
    """The original type of the data, so that results have the same type, and notes on how they were read."""

    kind: Kind = "table"
    dtypes: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def deliver(self, table: Table) -> Any:
        """The table in the type of the data."""
        return table.to(self.kind)


def read_annotations(data: Any, options: ReadOptions = DEFAULTS) -> tuple[Annotations, Origin]:
    """Encode data in memory.

    Args:
        data: a pandas, polars or pyarrow frame; anything with ``__arrow_c_stream__``; a mapping of column names to
            arrays; a tuple ``(task, worker, label)`` of arrays; rows as tuples or dicts; or :class:`Annotations`, which
            are used unchanged. Files are read by :func:`rarevote.io.read.crowd.read`.
        options: how to read; options for files are ignored.
    """
    columns, policies = options.columns, options.policies
    if isinstance(data, Annotations):
        return data, Origin()
    if isinstance(data, tuple) and len(data) == len(ALIASES):
        data = dict(zip(ALIASES, data, strict=True))
        columns = None
    if isinstance(data, list):
        data = _columns_of(data)
    if options.wide:
        long, tasks, kind = _unpivoted(data, columns)
        votes = Annotations.from_arrays(*(long[role] for role in ALIASES), **policies)
        return with_items(votes, tasks), Origin(kind)
    if isinstance(data, Mapping):
        chosen = find_columns(list(data), columns, where="the data", otherwise=_wide_hint([*map(str, data)]))
        given = {role: data[name] for role, name in chosen.items()}
        check_same_index(given)
        of_mapping: Encoded = {role: encode_values(values, role) for role, values in given.items()}
        aside = ignored_weights(map(str, data), chosen.values())
        return Annotations.from_encoded(of_mapping, **policies), Origin(notes=tuple(aside))
    frame, kind = as_frame(data, "annotations", _VOTES)
    chosen = find_columns(
        frame.columns, columns, where="the frame", otherwise=_index_hint(frame) + _wide_hint(frame.columns)
    )
    encoded: Encoded = {role: encode_series(frame.get_column(name), _titled(name)) for role, name in chosen.items()}
    dtypes = {}
    if kind == "pandas":
        dtypes = {role: frame.to_native()[name].dtype for role, name in chosen.items()}
        dtypes["agg_label"] = dtypes["columns"] = dtypes["label"]
    aside = ignored_weights(frame.columns, chosen.values())
    return Annotations.from_encoded(encoded, **policies), Origin(kind, dtypes, tuple(aside))


def read_problems(data: Any, options: ReadOptions) -> tuple[Problems, Origin]:
    """The yes/no problems of answers with several choices in memory, given in the same forms as votes."""
    from rarevote.io.read.multilabel import problems_in_memory

    kind: Kind = "table"
    if isinstance(data, tuple) and len(data) == len(ALIASES):
        data = dict(zip(ALIASES, data, strict=True))
    if isinstance(data, list):
        data = _columns_of(data)
    if isinstance(data, Mapping):
        check_same_index(data)
        columns = {str(name): as_list(column, _titled(name)) for name, column in data.items()}
        check_same_length({name: len(column) for name, column in columns.items()})
    else:
        frame, kind = as_frame(data, "annotations", _VOTES)
        columns = {name: frame.get_column(name).to_list() for name in frame.columns}
    return problems_in_memory(columns, options), Origin(kind)


def _columns_of(rows: Sequence[Any]) -> dict[str, list[Any]]:
    """Rows, as tuples (task, worker, label) or as dicts, turned into columns; a key that a dict lacks is missing."""
    if all(isinstance(row, Mapping) for row in rows):
        names = dict.fromkeys(name for row in rows for name in row)
        return {name: [row.get(name) for row in rows] for name in names} if rows else {role: [] for role in ALIASES}
    for number, row in enumerate(rows):
        if not isinstance(row, (tuple, list)) or len(row) != len(ALIASES):
            raise InputError(
                f"cannot read annotations from row {number}: a list holds (task, worker, label) or dicts in every row, "
                f"not {shown(row)}"
            )
    return dict(zip(ALIASES, map(list, zip(*rows, strict=True)), strict=True))


def _unpivoted(data: Any, columns: Mapping[str, str] | None) -> tuple[dict[str, list[Any]], list[Any], Kind]:
    """A wide frame or mapping as columns task, worker and label, all its tasks, and its type.

    A missing cell is not a vote; a task with only missing cells is a task without votes.
    """
    kind: Kind = "table"
    if isinstance(data, Mapping):
        table = {name: _values(column, _titled(name)) for name, column in data.items()}
    else:
        frame, kind = as_frame(data, "annotations", _VOTES)
        table = {name: _values(frame.get_column(name), _titled(name)) for name in frame.columns}
    task = (columns or {}).get("task", next(iter(table), None))
    if task not in table or set(columns or {}) - {"task"}:
        raise ColumnsError("a wide table accepts only task: its other columns are the annotators")
    check_same_length({str(name): len(column) for name, column in table.items()})
    rows = [
        (table[task][row], worker, label)
        for worker, labels in table.items()
        if worker != task
        for row, label in enumerate(labels)
        if label is not None
    ]
    tasks = [name for name in table[task] if name is not None]
    return {role: [row[place] for row in rows] for place, role in enumerate(ALIASES)}, tasks, kind


def _values(column: Any, what: str) -> list[Any]:
    """The names in the rows of a column, None for missing ones."""
    return decode_column(*distinct_names(*encode_values(column, what), what))


def _titled(name: Any) -> str:
    return f"the column {shown(name)}"


def read_truth(
    data: Any, *, columns: Mapping[str, str] | None = None, prefer: Mapping[str, str] | None = None
) -> dict[Any, Any]:
    """Gold or truth as a dict from task to label.

    Args:
        data: a mapping from task to label, a pandas Series indexed by task (crowd-kit's form), a frame with a task
            and a label column, a tuple ``(task, label)``, or a path.
        columns: which column is which.
        prefer: the columns of the votes, which are used if gold or truth has them.

    Raises:
        InputError: a task or a label is missing, a task has two labels, or the data are not gold.
    """
    if isinstance(data, (str, Path)):
        from rarevote.io.read.votes import read_truth_file

        return read_truth_file(data, columns=columns, prefer=prefer)
    return truth_from_pairs(*_truth_pairs(data, columns, prefer))


def _truth_pairs(
    data: Any, columns: Mapping[str, str] | None, prefer: Mapping[str, str] | None = None
) -> list[list[Any]]:
    """Tasks and labels of gold or truth that is in memory."""
    given: dict[str, Any]
    if isinstance(data, Mapping):
        given = {"task": list(data), "label": list(data.values())}
    elif isinstance(data, tuple) and len(data) == len(TRUTH_ALIASES):
        given = dict(zip(TRUTH_ALIASES, data, strict=True))
        check_same_index(given)
    elif is_series(data):
        given = {"task": data.index, "label": data}
    else:
        frame, _ = as_frame(data, "gold or truth", _TRUTH)
        named = preferred(prefer, frame.columns) | dict(columns or {})
        chosen = find_columns(frame.columns, named, aliases=TRUTH_ALIASES, where="the truth frame", choosable=False)
        given = {role: frame.get_column(name) for role, name in chosen.items()}
    pairs = {role: _values(column, f"the {role} of gold or truth") for role, column in given.items()}
    check_same_length({role: len(column) for role, column in pairs.items()})
    absent = [row for row, pair in enumerate(zip(*pairs.values(), strict=True)) if None in pair]
    if absent:
        rows = ", ".join(map(str, absent[:_SHOWN])) + (", ..." if len(absent) > _SHOWN else "")
        noun = "row has" if len(absent) == 1 else "rows have"
        raise MissingValuesError(
            f"{len(absent):,} {noun} no task or no label in the gold or truth (rows {rows}). Fill in the missing "
            "values, or remove the rows: every gold task needs a label"
        )
    return list(pairs.values())


def read_truths(data: Any) -> tuple[dict[Any, Any], list[tuple[Any, Any]]]:
    """Gold in which a task can have several labels, as in crowd-kit's Series.

    Of several labels, the one whose first occurrence in the data is the last counts.

    Returns:
        The label that counts for each task, and all other pairs of task and label.
    """
    if not is_series(data):
        return read_truth(data), []
    pairs = list(dict.fromkeys(zip(*_truth_pairs(data, None), strict=True)))
    rank = {label: number for number, label in enumerate(dict.fromkeys(label for _, label in pairs))}
    truth: dict[Any, Any] = {}
    for task, label in pairs:
        if task not in truth or rank[label] > rank[truth[task]]:
            truth[task] = label
    return truth, [(task, label) for task, label in pairs if truth[task] != label]


def truth_from_pairs(tasks: Sequence[Any], labels: Sequence[Any]) -> dict[Any, Any]:
    """A dict from task to label; two different labels for one task are an error."""
    truth = dict(zip(tasks, labels, strict=True))
    if len(truth) == len(tasks):
        return truth
    truth = {}
    for task, label in zip(tasks, labels, strict=True):
        if name_key(truth.setdefault(task, label)) != name_key(label):
            raise InputError(
                f"task {shown(task)} has two labels, {shown(truth[task])} and {shown(label)}: keep the right one"
            )
    return truth


# --------------------------------------------------------------------------------------------------------------------
# frames


def as_frame(data: Any, wanted: str, kinds: str) -> tuple[Any, Kind]:
    """A narwhals frame and the type of the underlying frame.

    Args:
        data: the user's data.
        wanted: what is read from it, for messages.
        kinds: the accepted types, for messages.
    """
    import narwhals as nw

    check_column_names(data)
    frame: Any = nw.from_native(data, allow_series=True, pass_through=True)
    if isinstance(frame, nw.Series):
        raise InputError(f"cannot read {wanted} from one column: give {kinds}")
    kind = _kind_of(frame)
    if kind == "polars" and isinstance(frame, nw.LazyFrame):
        frame = _computed(frame.collect, "the lazy frame")
    if kind is not None:
        return frame, kind
    native = data if hasattr(data, "__arrow_c_stream__") else nw.to_native(frame, pass_through=True)
    if not hasattr(native, "__arrow_c_stream__"):
        hint = "compute it first, or give" if isinstance(frame, (nw.DataFrame, nw.LazyFrame)) else "give"
        raise InputError(f"cannot read {wanted} from {type(data).__name__}: {hint} {kinds}")
    return _from_arrow(native)


def _kind_of(frame: Any) -> Kind | None:
    """The type of a narwhals frame, if results can have this type."""
    try:
        implementation = getattr(frame, "implementation", None)
    except NotImplementedError:  # for a frame that narwhals only describes
        return None
    if implementation is None:
        return None
    if implementation.is_polars():
        return "polars"
    if implementation.is_pyarrow():
        return "pyarrow"
    return "pandas" if implementation.is_pandas() else None


def _from_arrow(native: Any) -> tuple[Any, Kind]:
    import narwhals as nw

    backend = arrow_library()
    title = f"the Arrow data of {type(native).__name__}"
    return _computed(lambda: nw.from_arrow(native, backend=backend), title), backend


def _computed(compute: Callable[[], Any], what: str) -> Any:
    """The result of the user's lazy query; if the query is wrong, its library raises its own errors."""
    try:
        frame = compute()
        frame.columns  # noqa: B018  # where narwhals finds that two have one name
    except (RarevoteError, MemoryError):
        raise
    except Exception as error:
        raise InputError(
            f"{what} cannot be read ({type(error).__name__}: {' '.join(str(error).split())}): compute the frame "
            "first, and check its columns"
        ) from None
    return frame


def _wide_hint(names: Sequence[str]) -> str:
    """A hint that columns may be annotators, if only the task has a column."""
    own = {name for role, known in ALIASES.items() if role != "task" for name in known}
    if len(names) < 2 or any(plain_name(name) in own for name in names):
        return ""
    return ". If each column has the votes of one annotator (a pivoted table): wide=True"


def _index_hint(frame: Any) -> str:
    """A hint where missing columns may be: pandas keeps some in the index."""
    index = getattr(frame.to_native(), "index", None)
    names = [name for name in getattr(index, "names", ()) if name is not None]
    return f". The index has {', '.join(map(shown, names))}: reset_index() turns it into columns" if names else ""
