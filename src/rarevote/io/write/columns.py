"""Writing of results to files: the ending of the name decides the format; a file is written completely or not at all.

Text formats (CSV, TSV, JSON, JSON lines, each also compressed as ``.gz`` or ``.zst``) and Parquet are written by
DuckDB; ``.xlsx`` and ``.arrow`` need their extras.
"""

from __future__ import annotations

import errno
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.names import StoredNames, as_name_array
from rarevote.crowd.steps import doing
from rarevote.errors import InputError
from rarevote.io.arrow_files import need_pyarrow, write_arrow
from rarevote.io.duck import OF_THE_DISK, connection, first_line, folded, identifier
from rarevote.io.names_file import NamesFile
from rarevote.io.read.detect import refuse_address
from rarevote.io.spreadsheet import need_openpyxl, write_spreadsheet
from rarevote.io.write.atomic import replacing, scratch_folder, temporary_folder_full

Column = NDArray[Any] | StoredNames
Columns = Mapping[str, Column]

_TEXT = {
    ".csv": "FORMAT csv, HEADER true, DELIMITER ','",
    ".tsv": "FORMAT csv, HEADER true, DELIMITER '\t'",
    ".json": "FORMAT json, ARRAY true",
    ".ndjson": "FORMAT json",
    ".jsonl": "FORMAT json",
}
_PACKED = {".gz": "gzip", ".zst": "zstd"}
_ARROW = (".arrow", ".feather")
ENDINGS = (*_TEXT, ".parquet", ".xlsx", *_ARROW)
#: The title of the stream that rows are written to if no file is named.
STANDARD_OUTPUT = "standard output"
# A spreadsheet treats a cell that begins with one of these as a formula.
_FORMULA = "=+-@\t\r"


def _ending(path: Path) -> tuple[str, str]:
    """Format and compression from the name: ``(".csv", ".gz")``, ``(".parquet", "")``."""
    last = path.suffix.lower()
    if last in _PACKED and Path(path.stem).suffix.lower() in _TEXT:
        return Path(path.stem).suffix.lower(), last
    return last, ""


def check_output(path: Path) -> None:
    """Refuse a file that could not be written, before any work is done.

    Raises:
        InputError: the ending is not a known format, or the folder does not exist or cannot be written to.
        MissingExtraError: the format needs a library that is not installed.
    """
    check_ending(path)
    ending, _ = _ending(path)
    if ending == ".xlsx":
        need_openpyxl(str(path))
    elif ending in _ARROW:
        need_pyarrow(str(path))
    check_place(path)


def check_place(path: Path) -> None:
    """Refuse a file whose folder cannot be written to."""
    refuse_address(path, "write a local file and copy it there")
    if path.is_dir():
        raise InputError(f"{path}: is a folder; give the name of a file")
    if not path.parent.is_dir():
        raise InputError(f"{path}: cannot be written (no folder {path.parent})")
    try:
        tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from None


def check_ending(path: Path) -> None:
    """Refuse a file name whose ending is not a format that can be written."""
    if _ending(path)[0] not in ENDINGS:
        raise InputError(
            f"{path}: cannot write {path.suffix or 'a file without ending'}; use {', '.join(ENDINGS)} "
            "(text formats also with .gz or .zst)"
        )


def check_columns(names: Iterable[str], path: Path | str, *, otherwise: str = "write .xlsx or .arrow") -> None:
    """Refuse columns that DuckDB would confuse because of case: it would write the values of one column for both.

    Args:
        names: the names of the columns.
        path: the file, whose ending decides the format; any other text is the title of a stream of CSV.
        otherwise: what to do if the names have to stay.

    Raises:
        InputError: two names differ only in case, and DuckDB writes the format.
    """
    if _ending(Path(path))[0] in (".xlsx", *_ARROW):
        return
    met: dict[str, str] = {}
    for name in names:
        first = met.setdefault(folded(name), name)
        if first != name:
            both = " and ".join(map(repr, sorted((first, name))))
            raise InputError(
                f"{path}: cannot have both columns {both}, which differ only in upper and lower case: "
                f"give a class one spelling in the votes, rename a column to show, or {otherwise}"
            )


def joined(tables: Sequence[Mapping[str, Any]]) -> dict[str, NDArray[Any]]:
    """Concatenate tables; if one lacks a column, its cells are empty.

    >>> joined([{"task": ["a"], "p": [0.5]}, {"task": ["b"]}])
    {'task': array(['a', 'b'], dtype=object), 'p': array([0.5, nan])}
    """
    names = list(dict.fromkeys(name for table in tables for name in table))
    sizes = [len(next(iter(table.values()))) for table in tables]
    columns = {}
    for name in names:
        is_number = all(np.asarray(table[name]).dtype.kind in "iuf" for table in tables if name in table)
        cells: list[Any] = []
        for table, size in zip(tables, sizes, strict=True):
            cells += np.asarray(table[name]).tolist() if name in table else [np.nan if is_number else ""] * size
        columns[name] = np.array(cells) if is_number else as_name_array(cells)
    return columns


def write_columns(columns: Columns, path: Path, *, spreadsheet_safe: bool = False) -> None:
    """Write named columns of equal length to ``path``, replacing it only after everything is written.

    Args:
        columns: the columns by name.
        path: the file; its ending decides the format.
        spreadsheet_safe: put an apostrophe before text in CSV and TSV that a spreadsheet would treat as a formula. Such
            names change when they are read again.
    """
    check_ending(path)
    ending, packing = _ending(path)
    doing(f"writing {path}")
    with replacing(path) as temporary:
        if ending == ".xlsx":
            write_spreadsheet(_loaded(columns), temporary)
        elif ending in _ARROW:
            write_arrow(_loaded(columns), temporary)
        else:
            _write_by_duckdb(columns, temporary, ending, packing, path, spreadsheet_safe=spreadsheet_safe)


def write_rows(columns: Columns, handle: IO[str], *, spreadsheet_safe: bool = False) -> None:
    """Write named columns as CSV to an open stream, such as standard output; on an error, nothing is written."""
    with scratch_folder("rows") as folder:
        path = folder / "rows.csv"
        try:
            _write_csv(columns, path, STANDARD_OUTPUT, spreadsheet_safe=spreadsheet_safe)
        except OSError as error:
            raise temporary_folder_full(error) or error from None
        handle.flush()
        with path.open("rb") as rows:
            shutil.copyfileobj(rows, handle.buffer, 1 << 20)  # type: ignore[attr-defined]
    handle.flush()


@contextmanager
def appending_csv(path: Path) -> Iterator[Callable[[Columns], None]]:
    """A function that appends rows to a new CSV file of any size; only the rows of one call are in memory.

    Raises:
        OSError: the disk is full.
    """
    block = path.with_name(f"block of {path.name}")

    with path.open("xb") as file:

        def append(columns: Columns) -> None:
            _write_csv(columns, block, path, header=not file.tell())
            with block.open("rb") as rows:
                shutil.copyfileobj(rows, file, 1 << 20)

        yield append
    block.unlink(missing_ok=True)


def _write_csv(
    columns: Columns, temporary: Path, named: Path | str, *, spreadsheet_safe: bool = False, header: bool = True
) -> None:
    """Write an internal temporary file, which no message names: it need not be atomic or durable."""
    try:
        _write_by_duckdb(columns, temporary, ".csv", "", named, spreadsheet_safe=spreadsheet_safe, header=header)
    except InputError as error:
        cause = next((cause for cause in OF_THE_DISK if cause in str(error)), None)
        raise OSError(errno.ENOSPC, cause) if cause else error from None


def _write_by_duckdb(
    columns: Columns,
    temporary: Path,
    ending: str,
    packing: str,
    path: Path | str,
    *,
    spreadsheet_safe: bool = False,
    header: bool = True,
) -> None:
    import duckdb

    check_columns(columns, path)
    columns = {name: column if isinstance(column, NamesFile) else _one_type(column) for name, column in columns.items()}
    on_disk = {name: column for name, column in columns.items() if isinstance(column, NamesFile)}
    in_memory = {name: column for name, column in columns.items() if name not in on_disk}
    safe = spreadsheet_safe and ending in (".csv", ".tsv")
    selected = ", ".join(
        f"{_expression(name, column, ending, safe=safe)} AS {identifier(_escaped(name) if safe else name)}"
        for name, column in columns.items()
    )
    # Without this, DuckDB writes its own visible file beside our hidden temporary file, and leaves it when killed.
    options = f"{_TEXT.get(ending, 'FORMAT parquet')}, USE_TMP_FILE false"
    if not header:
        options = options.replace("HEADER true", "HEADER false")
    if packing:
        options += f", COMPRESSION {_PACKED[packing]}"
    with connection(on_disk=bool(on_disk)) as database:
        try:
            database.register("results", in_memory)
            # Rows are in the order of the tasks, so that results can be compared by eye and with tools.
            joined = "".join(f" POSITIONAL JOIN {column.as_table(name)}" for name, column in on_disk.items())
            database.execute(f"COPY (SELECT {selected} FROM results{joined}) TO ? ({options})", [str(temporary)])
        except duckdb.Error as error:
            raise InputError(f"{path}: cannot be written ({first_line(error)[:200]})") from None


def _expression(name: str, column: Column, ending: str, *, safe: bool) -> str:
    """The SQL expression that writes a column in a format."""
    written = identifier(name)
    if ending not in _TEXT:
        return written
    is_json = "FORMAT json" in _TEXT[ending]
    if column.dtype.kind == "f":
        # Six significant digits of a probability are more than enough and keep files small.
        number = f"format('{{:.6g}}', {written})"
        return f"CASE WHEN isfinite({written}) THEN CAST({number} AS DOUBLE) END" if is_json else number
    if column.dtype.kind == "b" and not is_json:
        return f"CASE WHEN {written} THEN 'True' ELSE 'False' END"  # as in the names of columns
    if safe and column.dtype == object:
        marks = ", ".join(f"chr({ord(mark)})" for mark in _FORMULA)
        return f"CASE WHEN {written}[1] IN ({marks}) THEN chr(39) || {written} ELSE {written} END"
    return written


def _escaped(text: str) -> str:
    return f"'{text}" if text[:1] and text[0] in _FORMULA else text


def _loaded(columns: Columns) -> dict[str, NDArray[Any]]:
    return {name: _one_type(np.asarray(column)) for name, column in columns.items()}


def _one_type(column: Column) -> NDArray[Any]:
    """A column with one type that every format supports: mixed names and times become text."""
    column = np.asarray(column)
    if column.dtype.kind in "iubf":
        return column
    if column.dtype.kind in "Mm":
        column = column.astype(object)  # times of Python: the text is the same, whatever the votes were given as
    if column.dtype != object:
        return column.astype(str).astype(object)
    kinds = set(map(type, column.tolist()))
    if kinds <= {str}:
        return column
    texts = np.empty(len(column), dtype=object)
    texts[:] = ["" if value is None else str(value) for value in column.tolist()]
    return texts
