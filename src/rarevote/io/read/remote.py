"""Files at an address: read if DuckDB's extension for it is installed, else refused. No extension is downloaded."""

from __future__ import annotations

from typing import Any

from rarevote.errors import InputError
from rarevote.io.duck import AS_WRITTEN
from rarevote.io.read.csv_text import MAX_LINE, Delimited, read_header

_EXTENSIONS = {"http": "httpfs", "https": "httpfs", "s3": "httpfs", "gs": "httpfs", "gcs": "httpfs", "r2": "httpfs",
               "hf": "httpfs", "az": "azure", "azure": "azure", "abfss": "azure"}  # fmt: skip
_SAMPLED_LINES = 100


def load_extension(database: Any, address: str) -> None:
    """Load the extension that reads this address.

    Raises:
        InputError: there is no extension for it, or it is not installed.
    """
    scheme = address.partition("://")[0].lower()
    extension = _EXTENSIONS.get(scheme)
    if extension is None:
        raise InputError(f"{address}: {scheme}:// cannot be read; download the file first")
    installed = database.execute(
        "SELECT installed FROM duckdb_extensions() WHERE extension_name = ?", [extension]
    ).fetchone()
    if not installed or not installed[0]:
        raise InputError(
            f"{address}: reading from an address needs DuckDB's extension {extension}, which is not installed, and "
            "rarevote never downloads one. Download the file and give its name, or install the extension yourself "
            f"(python -c \"import duckdb; duckdb.sql('INSTALL {extension}')\")"
        )
    database.execute(f"LOAD {extension}")


def peek(database: Any, address: str, *, delimiter: str | None, has_header: bool) -> Delimited:
    """Dialect and header of delimited text at an address, from its first lines."""
    import duckdb

    try:
        # With a delimiter that occurs in no text, every line is one cell.
        found = database.execute(
            "SELECT line FROM read_csv(?, auto_detect=false, header=false, delim='\x01', quote='', escape='', "
            f"comment='', columns={{'line': 'VARCHAR'}}, parallel=false, max_line_size={MAX_LINE}, "
            f"{AS_WRITTEN}) "
            f"LIMIT {_SAMPLED_LINES}",
            [address],
        ).fetchall()
    except duckdb.Error as error:
        raise InputError(f"{address}: cannot be read ({str(error).splitlines()[0][:200]})") from None
    begin = "".join(f"{line or ''}\n" for (line,) in found).encode()
    return read_header(begin, complete=False, title=address, delimiter=delimiter, has_header=has_header)
