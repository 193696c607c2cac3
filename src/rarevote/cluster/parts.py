"""A table in parts, and reading one on a dask worker: Parquet by row groups, CSV by file, a dask frame by partition."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Missing
from rarevote.crowd.names import as_name_array, in_kind
from rarevote.errors import InputError, MissingValuesError, how
from rarevote.io.duck import first_line
from rarevote.io.read.columns import ALIASES, check_file_columns, find_columns
from rarevote.io.read.partitions import partition_values, say_partitions
from rarevote.io.read.paths import files_below
from rarevote.io.read.sources import open_sources

# Row groups are read together up to this many rows, so that a part is large enough for a task.
_ROWS_PER_PART = 2_000_000
_ENDINGS = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv", ".txt": "csv"}
_SHOWN = 5  # how many offending rows a message names


@dataclass(frozen=True)
class Rows:
    """Votes of one part, without missing ones.

    Attributes:
        frame: a pandas frame with columns task, worker, label.
        n_given: number of rows before anything was left out.
    """

    frame: Any
    n_given: int

    def __len__(self) -> int:
        return len(self.frame)

    def without(self, abstain: Sequence[Any]) -> Rows:
        """The rows without the answers that are not votes."""
        if not len(abstain):
            return self
        silent = in_kind(abstain, as_name_array(self.names("label")))
        return Rows(self.frame[~self.frame["label"].isin(silent)], self.n_given)

    def names(self, role: str) -> list[Any]:
        """The distinct values of a column."""
        return list(self.frame[role].unique().tolist())

    def codes(self, role: str, names: Any) -> NDArray[np.int64]:
        """Positions of a column's values in ``names``, a pandas Index."""
        import pandas

        codes, distinct = pandas.factorize(self.frame[role])
        places = names.get_indexer(pandas.Index(distinct.tolist()))
        return np.asarray(places[codes])


@dataclass(frozen=True)
class Parts:
    """A table in parts.

    Attributes:
        title: its name in messages.
        readers: one dask task per part that returns its :class:`Rows`.
        identity: identifies the table, as far as possible without reading it.
    """

    title: str
    readers: list[Any]
    identity: str


def find_parts(data: Any, *, columns: Mapping[str, str] | None = None, missing: Missing = "error") -> Parts:
    """The parts of files or of a dask frame.

    Args:
        data: a Parquet or CSV file, a folder of such files, a list of files, or a dask DataFrame.
    """
    from dask.delayed import delayed

    if hasattr(data, "to_delayed") and hasattr(data, "npartitions"):
        from dask.base import tokenize

        chosen = find_columns([str(name) for name in data.columns], columns, where="the dask frame")
        partitions = data[[chosen[role] for role in ALIASES]].to_delayed()
        readers = [
            delayed(read_partition)(partition, number, missing, pure=False)
            for number, partition in enumerate(partitions)
        ]
        return Parts("the dask frame", readers, f"{len(readers)} partitions of {tokenize(data)}")
    if not isinstance(data, (str, Path, list, tuple)):
        raise InputError(
            f"the dask engine reads a dask DataFrame, Parquet or CSV files or a folder of them, not "
            f"{type(data).__name__}"
        )
    paths = list(_files(data))
    pieces = [piece for path in paths for piece in _pieces(path, columns)]
    _check_sorts(pieces)
    readers = [delayed(read_piece)(piece, missing, pure=False) for piece in pieces]
    known = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in paths]
    identity = hashlib.blake2b(repr((known, [piece.columns for piece in pieces], missing)).encode(), digest_size=16)
    return Parts(str(data), readers, identity.hexdigest())


# --------------------------------------------------------------------------------------------------------------------
# files


@dataclass(frozen=True)
class Piece:
    """A file, or some row groups of one.

    Attributes:
        path: the file.
        columns: the column of each role.
        sorts: what the values of each role are: "text", "numbers", ...
        row_groups: which row groups of a Parquet file; None for a whole text file.
        first_row: number of rows of the file before it.
    """

    path: Path
    columns: dict[str, str]
    sorts: dict[str, str]
    row_groups: tuple[int, ...] | None = None
    first_row: int = 0

    @property
    def title(self) -> str:
        """Its name in messages."""
        if not self.row_groups:
            return str(self.path)
        return f"{self.path} (row groups {self.row_groups[0]} to {self.row_groups[-1]})"


def _files(data: str | Path | Sequence[str | Path]) -> Iterator[Path]:
    for given in [data] if isinstance(data, (str, Path)) else data:
        path = Path(given).resolve()
        if path.is_dir():
            found = [file for file in files_below(path) if _kind(file)]
            if not found:
                raise InputError(f"{given}: a folder without any Parquet or CSV file")
            yield from found
        elif not path.exists():
            raise InputError(f"{given}: no such file")
        elif _kind(path) is None:
            raise InputError(f"{given}: the dask engine reads {', '.join(_ENDINGS)} (text also as .gz)")
        else:
            yield path


def _kind(path: Path) -> str | None:
    return _ENDINGS.get(Path(path.stem).suffix.lower() if path.suffix.lower() == ".gz" else path.suffix.lower())


def _pieces(path: Path, columns: Mapping[str, str] | None) -> Iterator[Piece]:
    if _kind(path) == "csv":
        with open_sources(path) as (source,):
            chosen = find_columns(source.columns, columns, where=str(path))
            say_partitions(str(path), chosen, source.partitions)
        yield Piece(path, chosen, dict.fromkeys(chosen, "text"))
        return
    import pyarrow
    from pyarrow import parquet

    try:
        footer = parquet.read_metadata(path)
        schema = parquet.read_schema(path)
    except (OSError, pyarrow.ArrowException) as error:
        raise InputError(f"{path}: not a readable Parquet file ({first_line(error)})") from None
    check_file_columns(schema.names, str(path))
    said = {name: value for name, value in partition_values(path).items() if name not in schema.names}
    chosen = find_columns([*schema.names, *said], columns, where=str(path))
    say_partitions(str(path), chosen, said)
    sorts = {role: "text" if name in said else _sort(schema.field(name).type, role) for role, name in chosen.items()}
    group: list[int] = []
    begin = size = 0
    for number in range(footer.num_row_groups):
        group.append(number)
        size += footer.row_group(number).num_rows
        if size >= _ROWS_PER_PART or number == footer.num_row_groups - 1:
            yield Piece(path, chosen, sorts, tuple(group), begin)
            begin, size, group = begin + size, 0, []


def _sort(kind: Any, role: str) -> str:
    """What the values of an Arrow type are; a task that is a fraction becomes text."""
    from pyarrow import types

    if types.is_integer(kind):
        return "numbers"
    if types.is_floating(kind):
        return "numbers" if role != "task" else "numbers with fractions"
    return "truth values" if types.is_boolean(kind) else "text"


def _check_sorts(pieces: Sequence[Piece]) -> None:
    """Refuse files of which one has 7 and another "7" or true: whether these are equal cannot be known."""
    for role in ALIASES:
        found = {piece.sorts[role]: piece for piece in reversed(pieces)}
        if len(found) > 1:
            said = ", ".join(
                f"{piece.path} has {sort} in column {piece.columns[role]!r}" for sort, piece in found.items()
            )
            raise InputError(f"{said}: give the {role}s one type, for example text")


def read_piece(piece: Piece, missing: Missing) -> Rows:
    """Read a piece on the worker that this runs on.

    Raises:
        InputError: the file cannot be read, or is damaged; the message names it.
    """
    if piece.row_groups is None:
        from rarevote.io.read.encode import Choice, loaded

        with open_sources(piece.path) as sources, loaded(sources, [Choice(piece.columns)]) as database:
            frame = database.execute("SELECT task, worker, label FROM rows").df()
        return _checked(frame, piece.title, 0, missing)
    import pyarrow
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(piece.path) as file:
            names = [name for name in piece.columns.values() if name in file.schema_arrow.names]
            table = file.read_row_groups(list(piece.row_groups), columns=names)
    except (OSError, pyarrow.ArrowException) as error:
        raise InputError(f"{piece.title}: cannot be read ({first_line(error)})") from None
    for name in piece.columns.values():
        if name not in names:  # from the name of the folder
            table = table.append_column(name, pyarrow.array([partition_values(piece.path)[name]] * len(table)))
    table = table.select(list(piece.columns.values())).rename_columns(list(piece.columns))
    return _checked(table.to_pandas(), piece.title, piece.first_row, missing)


def read_partition(frame: Any, number: int, missing: Missing) -> Rows:
    """Rows of a partition of a dask frame, whose columns are task, worker, label in this order."""
    return _checked(frame.set_axis(list(ALIASES), axis=1), f"partition {number} of the dask frame", 0, missing)


# --------------------------------------------------------------------------------------------------------------------
# values


def _checked(frame: Any, title: str, first_row: int, missing: Missing) -> Rows:
    """Columns as whole numbers or text; labels and workers of other types are unchanged."""
    import pandas

    columns = {}
    absent = np.zeros(len(frame), dtype=bool)
    complaints = []
    for role in ALIASES:
        column = frame[role].reset_index(drop=True)
        kind = column.dtype.kind if isinstance(column.dtype, np.dtype) else "O"
        if kind in "iu":
            column = column.astype("int64")
        elif kind not in "bf" or role == "task":
            column = column.astype("string[pyarrow]")
        blank = column.isna().to_numpy(dtype=bool)
        if isinstance(column.dtype, pandas.StringDtype):
            blank = blank | (column.str.strip() == "").fillna(True).to_numpy(dtype=bool)
        if blank.any():
            where = np.flatnonzero(blank)
            numbers = ", ".join(str(first_row + row + 1) for row in where[:_SHOWN])
            more = ", ..." if where.size > _SHOWN else ""
            complaints.append(f"{where.size:,} row{'s have' if where.size > 1 else ' has'} no {role} ({numbers}{more})")
            absent |= blank
        columns[role] = column
    if complaints and missing == "error":
        raise MissingValuesError(
            f"{title}: {'; '.join(complaints)}. Fill in the missing values, or skip these rows: "
            + how('missing="drop"', "--missing drop")
        )
    read = pandas.DataFrame(columns)
    return Rows(read[~absent].reset_index(drop=True) if absent.any() else read, len(read))
