"""What a Parquet file unpacks to, before anything unpacks it: a file of kilobytes may hold gigabytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rarevote.errors import InputError
from rarevote.io.duck import AS_WRITTEN, identifier, literal

# Votes that all say the same are packed to a hundredth; a small file may be packed as it likes.
_MAX_PACKING = 300
_MAX_SMALL = 256 << 20
_ROW = 24  # bytes of a vote in memory: three numbers
# Of small files the text is measured, too: a dictionary tells neither how long its texts are nor how often they stand
# there, and what a footer says of sizes nobody else compares with the file.
_MAX_MEASURED = 4 << 20
_LENGTH = {"VARCHAR": "strlen", "BLOB": "octet_length"}


def check_parquet(database: Any, path: Path, title: str, kinds: dict[str, str]) -> None:
    """Refuse a file that is small only because it is packed.

    Args:
        database: a DuckDB.
        path: the file.
        title: what messages call it.
        kinds: the type of each column.
    """
    import duckdb

    size, file = path.stat().st_size, [literal(str(path))]
    declared, rows = database.execute(
        "SELECT (SELECT sum(total_uncompressed_size) FROM parquet_metadata(?)), "
        "(SELECT sum(num_rows) FROM parquet_file_metadata(?))",
        [file, file],
    ).fetchone()
    _compare(size, max(int(declared or 0), _ROW * int(rows or 0)), title)
    measures = [f"{_LENGTH[kind]}({identifier(name)})" for name, kind in kinds.items() if kind in _LENGTH]
    if measures and size <= _MAX_MEASURED:
        lengths = " + ".join(f"coalesce(sum({measure}), 0)" for measure in measures)
        try:
            (length,) = database.execute(f"SELECT {lengths} FROM read_parquet(?, {AS_WRITTEN})", [file]).fetchone()
        except duckdb.OutOfMemoryException:
            return  # whoever reads it says so
        _compare(size, int(length), title)


def _compare(size: int, unpacked: int, title: str) -> None:
    if unpacked > max(_MAX_SMALL, _MAX_PACKING * size):
        raise InputError(f"{title}: unpacks from {size:,} to {unpacked:,} bytes, as no table of votes does")
