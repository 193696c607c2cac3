"""Files in, by DuckDB: CSV and Parquet are read, checked and turned into integer codes without Python seeing a row.

Text is kept as it is written (``007`` stays ``007``); a Parquet column keeps its type. The delimiter comes from the
header line. Nothing is ever fetched: DuckDB's extensions are switched off.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from rarevote.annotations import Annotations, Keep, Missing, encode_column
from rarevote.errors import InputError
from rarevote.io.columns import TRUTH_ALIASES, find_columns

_DELIMITERS = ",\t;|"
_LONGEST_HEADER = 1_000_000
_COMPRESSED = (".gz",)


def read_annotations_file(
    path: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    classes: Sequence[Any] | None = None,
    abstain: Sequence[Any] = (),
    keep: Keep = "all",
    missing: Missing = "error",
) -> Annotations:
    """Encode a CSV or Parquet file with a task, a worker and a label column.

    Args:
        path: a ``.csv``, ``.tsv``, ``.txt`` (each also ``.gz``) or ``.parquet`` file, or a folder of Parquet files.
        columns: which column is which, where the usual names do not tell.
        classes: see :meth:`Annotations.from_arrays`.
        abstain: see :meth:`Annotations.from_arrays`.
        keep: see :meth:`Annotations.from_arrays`.
        missing: see :meth:`Annotations.from_arrays`.
    """
    source = _open_source(Path(path))
    chosen = find_columns(source.columns, columns, where=source.title)
    with _loaded(source, chosen) as connection:
        encoded = _encode(connection)
    return Annotations.from_encoded(
        encoded,
        classes=classes,
        abstain=abstain,
        keep=keep,
        missing=missing,
        place_of_row=source.place_of_rows,
    )


def read_truth_file(path: str | Path, *, columns: Mapping[str, str] | None = None) -> dict[Any, Any]:
    """Known labels from a CSV or Parquet file with a task and a label column."""
    from rarevote.io.frames import truth_from_pairs

    source = _open_source(Path(path))
    chosen = find_columns(source.columns, columns, aliases=TRUTH_ALIASES, where=source.title)
    with _loaded(source, chosen) as connection:
        rows = connection.execute("SELECT task, label FROM rows").fetchall()
    tasks, labels = [row[0] for row in rows], [row[1] for row in rows]
    absent = [number for number, pair in enumerate(zip(tasks, labels, strict=True)) if None in pair or "" in pair]
    if absent:
        raise InputError(
            f"{source.title}: {len(absent):,} rows have no task or no label "
            f"({source.place_of_rows(np.array(absent[:5]))})"
        )
    try:
        return truth_from_pairs(tasks, labels)
    except InputError as error:
        raise InputError(f"{source.title}: {error}") from None


# --------------------------------------------------------------------------------------------------------------------
# what a file is


@dataclass(frozen=True)
class _Source:
    """A file or folder that DuckDB can read: how, and with which columns."""

    path: Path
    reader: str
    arguments: tuple[Any, ...]
    columns: list[str]
    delimiter: str | None = None

    @property
    def title(self) -> str:
        return str(self.path)

    def place_of_rows(self, rows: NDArray[np.int64]) -> str:
        """Rows in words: line numbers of a text file, row numbers of anything else."""
        if self.delimiter is None:
            return "rows " + ", ".join(str(row + 1) for row in rows)
        wanted = {int(row) for row in rows}
        lines: list[int] = []
        with _open_text(self.path) as handle:
            reader = csv.reader(handle, delimiter=self.delimiter)
            next(reader, None)
            begin = reader.line_num + 1
            number = 0
            for record in reader:
                if not record:  # DuckDB skips blank lines too
                    begin = reader.line_num + 1
                    continue
                if number in wanted:
                    lines.append(begin)
                    if len(lines) == len(wanted):
                        break
                begin = reader.line_num + 1
                number += 1
        return f"line{'s' if len(lines) > 1 else ''} " + ", ".join(str(line) for line in lines)


def _open_source(path: Path) -> _Source:
    if not path.exists():
        raise InputError(f"{path}: no such file")
    if path.is_dir():
        parts = sorted(path.glob("*.parquet"))
        if not parts:
            raise InputError(f"{path}: a folder without any .parquet file")
        return _parquet_source(path, [str(part) for part in parts])
    if path.suffix.lower() in (".parquet", ".pq"):
        return _parquet_source(path, [str(path)])
    return _csv_source(path)


def _parquet_source(path: Path, parts: list[str]) -> _Source:
    import duckdb

    with _connection() as connection:
        try:
            described = connection.execute("DESCRIBE SELECT * FROM read_parquet(?)", [parts]).fetchall()
        except duckdb.Error as error:
            raise InputError(f"{path}: not a readable Parquet file ({_first_line(error)})") from None
    return _Source(path, "read_parquet(?)", (parts,), [row[0] for row in described])


def _csv_source(path: Path) -> _Source:
    with _open_text(path) as handle:
        try:
            header = handle.readline(_LONGEST_HEADER)
        except (UnicodeDecodeError, OSError, EOFError) as error:
            raise _unreadable(path, error) from None
    if not header.strip():
        raise InputError(f"{path}: the file is empty; a header line with task, worker, label is needed")
    if "\0" in header or len(header) >= _LONGEST_HEADER:
        raise InputError(f"{path}: not a text file with a header line")
    delimiter = max(_DELIMITERS, key=lambda mark: len(next(csv.reader([header], delimiter=mark))))
    names = [name.strip() for name in next(csv.reader([header], delimiter=delimiter))]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InputError(f"{path}: the header names {', '.join(map(repr, repeated))} more than once")
    names = [name or f"column{number}" for number, name in enumerate(names)]
    reader = (
        "read_csv(?, auto_detect=false, header=true, delim=?, quote='\"', escape='\"', nullstr='', comment='', "
        "strict_mode=true, columns=?)"
    )
    return _Source(path, reader, (str(path), delimiter, dict.fromkeys(names, "VARCHAR")), names, delimiter)


def _open_bytes(path: Path) -> IO[bytes]:
    try:
        return gzip.open(path, "rb") if path.suffix.lower() in _COMPRESSED else path.open("rb")  # type: ignore[return-value]
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None


def _open_text(path: Path) -> IO[str]:
    return io.TextIOWrapper(_open_bytes(path), encoding="utf-8-sig", newline="")


def _unreadable(path: Path, error: Exception) -> InputError:
    """The error for a file whose bytes are no UTF-8 text, with the first line that is not."""
    if isinstance(error, UnicodeDecodeError):
        number = _first_undecodable_line(path)
        return InputError(f"{path}: line {number} is not UTF-8 text; convert the file first (iconv -f latin1 -t utf-8)")
    return InputError(f"{path}: cannot be read ({_first_line(error)})")


def _first_undecodable_line(path: Path) -> int:
    with _open_bytes(path) as handle:
        for number, line in enumerate(handle, 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                return number
    return 1


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0]


# --------------------------------------------------------------------------------------------------------------------
# DuckDB


@contextmanager
def _connection() -> Iterator[Any]:
    import duckdb

    connection = duckdb.connect()
    try:
        # Reading a file must never download an extension.
        connection.execute("SET autoinstall_known_extensions = false; SET autoload_known_extensions = false")
        yield connection
    finally:
        connection.close()


@contextmanager
def _loaded(source: _Source, chosen: Mapping[str, str]) -> Iterator[Any]:
    """A connection with the chosen columns in a table ``rows``, in file order, named by role."""
    import duckdb

    def quoted(name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    selected = ", ".join(f"{quoted(name)} AS {role}" for role, name in chosen.items())
    with _connection() as connection:
        try:
            connection.execute(
                f"CREATE TEMP TABLE rows AS SELECT {selected} FROM {source.reader}", list(source.arguments)
            )
        except duckdb.Error as error:
            raise _translated(source, error) from None
        yield connection


def _translated(source: _Source, error: Exception) -> InputError:
    text = str(error)
    if source.delimiter is not None and ("unicode" in text.lower() or "utf" in text.lower()):
        return _unreadable(source.path, UnicodeDecodeError("utf-8", b"", 0, 1, "invalid"))
    detail = [line.strip() for line in text.split("\n") if line.strip()]
    reason = next((line for line in detail if line.startswith(("Expected", "Value", "Error when", "Unterminated"))), "")
    return InputError(f"{source.title}: {detail[0]}{' ' + reason if reason and reason != detail[0] else ''}")


def _encode(connection: Any) -> dict[str, tuple[NDArray[Any], NDArray[Any]]]:
    """Codes and distinct values of every column of ``rows``, in file order; missing values are -1.

    Text is encoded by joining a table of its distinct values, numbered in sorted order: DuckDB does this in parallel
    and out of core. Other types are left to NumPy.
    """
    kinds = dict(
        connection.execute("SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = 'rows'").fetchall()
    )
    encoded: dict[str, tuple[NDArray[Any], NDArray[Any]]] = {}
    selected, joined = [], []
    for role, kind in kinds.items():
        if kind != "VARCHAR":
            encoded[role] = _encode_masked(connection.execute(f"SELECT {role} FROM rows").fetchnumpy()[role])
            continue
        connection.execute(
            f"CREATE TEMP TABLE {role}_names AS SELECT {role} AS name, "
            f"(row_number() OVER (ORDER BY {role}) - 1)::INTEGER AS code "
            f"FROM (SELECT DISTINCT {role} FROM rows WHERE {role} IS NOT NULL)"
        )
        selected.append(f"coalesce({role}_names.code, -1) AS {role}")
        joined.append(f"LEFT JOIN {role}_names ON rows.{role} = {role}_names.name")
    if selected:
        codes = connection.execute(
            f"SELECT {', '.join(selected)} FROM rows {' '.join(joined)} ORDER BY rows.rowid"
        ).fetchnumpy()
        for role, column in codes.items():
            names = connection.execute(f"SELECT name FROM {role}_names ORDER BY code").fetchnumpy()["name"]
            encoded[role] = np.asarray(column), np.asarray(names, dtype=object)
    return {role: encoded[role] for role in kinds}


def _encode_masked(fetched: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    if isinstance(fetched, np.ma.MaskedArray):
        present = ~np.ma.getmaskarray(fetched)
        if not present.all():
            codes = np.full(fetched.size, -1, dtype=np.int64)
            codes[present], values = encode_column(fetched.data[present])
            return codes, values
    return encode_column(np.asarray(fetched))
