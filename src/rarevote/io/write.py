"""Results to files: CSV, TSV or Parquet by the ending of the name, whole or not at all."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from rarevote.errors import InputError
from rarevote.io.atomic import replacing

_DELIMITER = {".csv": ",", ".tsv": "\t"}
ENDINGS = (*_DELIMITER, ".parquet")

_ROWS_PER_BATCH = 100_000


def check_ending(path: Path) -> None:
    """Refuse a file name whose ending says no format that can be written."""
    if path.suffix.lower() not in ENDINGS:
        raise InputError(f"{path}: cannot write {path.suffix or 'a file without ending'}; use {', '.join(ENDINGS)}")


def write_columns(columns: Mapping[str, NDArray[Any]], path: Path) -> None:
    """Write named columns of equal length to ``path``, replacing it only once all is written."""
    check_ending(path)
    with replacing(path) as temporary:
        if path.suffix.lower() == ".parquet":
            _write_parquet(columns, temporary)
        else:
            with temporary.open("w", newline="", encoding="utf-8") as handle:
                write_rows(columns, handle, delimiter=_DELIMITER[path.suffix.lower()])


def write_rows(columns: Mapping[str, NDArray[Any]], handle: IO[str], *, delimiter: str = ",") -> None:
    """Write named columns as delimited text with a header."""
    writer = csv.writer(handle, delimiter=delimiter, lineterminator="\n")
    writer.writerow(columns)
    size = len(next(iter(columns.values()))) if columns else 0
    for begin in range(0, size, _ROWS_PER_BATCH):
        batch = [_as_text(column[begin : begin + _ROWS_PER_BATCH]) for column in columns.values()]
        writer.writerows(zip(*batch, strict=True))


def _as_text(column: NDArray[Any]) -> list[Any]:
    # Six significant digits of a probability are more than anybody can use and keep files small.
    return [format(value, ".6g") for value in column.tolist()] if column.dtype.kind == "f" else column.tolist()


def _write_parquet(columns: Mapping[str, NDArray[Any]], path: Path) -> None:
    import duckdb

    results = {name: _one_type(column) for name, column in columns.items()}
    connection = duckdb.connect()
    try:
        connection.register("results", results)
        connection.execute(f"COPY results TO '{str(path).replace(chr(39), chr(39) * 2)}' (FORMAT parquet)")
    except duckdb.Error as error:
        raise InputError(f"{path}: cannot be written ({str(error).splitlines()[0]})") from None
    finally:
        connection.close()


def _one_type(column: NDArray[Any]) -> NDArray[Any]:
    """A Parquet column has one type: mixed names become text."""
    if column.dtype == object and not all(isinstance(value, str) for value in column.tolist()):
        return np.array([str(value) for value in column.tolist()], dtype=object)
    return column
