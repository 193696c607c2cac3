"""DuckDB as this package uses it: in memory or in a temporary file, never fetching an extension."""

from __future__ import annotations

import atexit
import itertools
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase
from typing import Any

from rarevote.io.write.atomic import lasting_scratch_folder, scratch_folder
from rarevote.kernels.memory import physical_memory, require_address_space

_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)

# How much of a large input DuckDB keeps in memory; the rest is on disk. A larger machine allows more.
_MIN_MEMORY = 2 << 30
_PART_OF_MEMORY = 12

# Address space that it and the libraries loaded after it reserve; they use a seventh of it.
_ADDRESS_SPACE = 850_000_000

#: For every reader of files: without it, DuckDB treats a folder called ``label=v2`` in the path as the column
#: ``label``.
AS_WRITTEN = "hive_partitioning = false"
#: Types of columns with fractions.
FLOATS = frozenset({"FLOAT", "DOUBLE"})
_MAX_WHOLE = "1e15"  # below it, a number of these types has all digits of its text


@contextmanager
def connection(*, on_disk: bool = False, limited: bool = False) -> Iterator[Any]:
    """A database for the duration of the block.

    Args:
        on_disk: keep tables in a temporary file and only a limited part of them in memory.
        limited: also limit the memory of queries.
    """
    with _limited_database(on_disk=on_disk) if on_disk or limited else _small_database() as database:
        try:
            yield _Guarded(database)
        except RuntimeError as error:
            # This is how DuckDB reports Ctrl-C during a query.
            if "Query interrupted" in str(error):
                raise KeyboardInterrupt from None
            raise


class _Guarded:
    """A DuckDB connection with readable errors: Python fails on a message that quotes invalid text of a file."""

    def __init__(self, database: Any) -> None:
        self._database = database

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._database, name)
        return partial(self._called, found) if callable(found) else found

    def _called(self, method: Any, *given: Any, **named: Any) -> Any:
        try:
            result = method(*given, **named)
        except UnicodeDecodeError as error:
            import duckdb

            raise duckdb.Error(bytes(error.object).decode("utf-8", "replace")) from None
        return self if result is self._database else result


@contextmanager
def _limited_database(*, on_disk: bool) -> Iterator[Any]:
    with scratch_folder("database") as folder:
        database = _connected(str(folder / "scratch.duckdb") if on_disk else ":memory:")
        try:
            _settle(database, folder)
            yield database
        finally:
            database.close()


# DuckDB takes 25 ms to start, and a tenth of that to read a table of votes: one instance serves the process. Every
# block has its own database in it, so that no block sees another's tables.
_LOCK = threading.Lock()
#: Text that DuckDB puts around an error.
OF_THE_DISK = ("No space left on device", "Disk quota exceeded", "File too large")
_BLOCKS = itertools.count()
_started: tuple[int, Any] | None = None
# A forked process has its parent's instance without threads: it cannot be used, and closing it would wait for them.
_INHERITED: list[Any] = []


@contextmanager
def _small_database() -> Iterator[Any]:
    global _started
    with _LOCK:
        if _started is None or _started[0] != os.getpid():
            _INHERITED.append(_started)
            folder, remove = lasting_scratch_folder("database")
            atexit.register(remove)
            _started = os.getpid(), _connected(":memory:")
            _settle(_started[1], folder)
        database = _started[1].cursor()
    name = f"block_{next(_BLOCKS)}"
    database.execute(f"ATTACH ':memory:' AS {name}")
    try:
        database.execute(f"USE {name}")
        yield database
    finally:
        try:
            database.execute("USE memory")
            database.execute(f"DETACH {name}")
        except Exception:  # after any failure, the next block starts another
            _started = None
        database.close()


def _connected(path: str) -> Any:
    """Start DuckDB if there is enough memory: otherwise it would crash, or fail in the middle of a query."""
    require_address_space(_ADDRESS_SPACE, "reading and writing tables (DuckDB)")
    import duckdb

    return duckdb.connect(path)


def _settle(database: Any, folder: Path) -> None:
    """Set DuckDB up: it must never download anything, nor write temporary files into the user's folder.

    Memory is also limited for small files: a compressed file of kilobytes can contain gigabytes.
    """
    limit = max(_MIN_MEMORY, physical_memory() // _PART_OF_MEMORY)
    database.execute(f"SET memory_limit = '{limit >> 20} MiB'")
    database.execute("SET autoinstall_known_extensions = false")
    database.execute("SET autoload_known_extensions = false")
    database.execute("SET enable_progress_bar = false")
    database.execute("SET temp_directory = ?", [str(folder)])


def with_objects(database: Any, objects: Mapping[str, Any]) -> Any:
    """The database with these Python objects registered as tables."""
    for name, value in objects.items():
        database.register(name, value)
    return database


def identifier(name: str) -> str:
    """A quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def folded(name: str) -> str:
    """A name as DuckDB compares the names of columns: it ignores the case of the letters A to Z, and only of these.

    >>> folded("p:Yes"), folded("É")
    ('p:yes', 'É')
    """
    return name.translate(_LOWER)


def literal(path: str) -> str:
    """A path with all pattern characters escaped.

    >>> literal("labels[1].csv")
    'labels[[]1].csv'
    """
    if "://" in path:
        return path
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in path)


def first_line(error: Exception) -> str:
    """The first line of a message, which says what is wrong; the others are advice on SQL.

    >>> first_line(OSError('Async write failed: {"exception_message":"Could not write: No space left on device"}'))
    'No space left on device'
    """
    line = (str(error).strip() or type(error).__name__).splitlines()[0]
    return next((cause for cause in OF_THE_DISK if cause in line), line)


def parquet_columns(database: Any, path: str) -> list[str]:
    """The names of a Parquet file's columns as the file has them; a query gives a repeated name another one."""
    nodes = database.execute("SELECT name, num_children FROM parquet_schema(?)", [[literal(path)]]).fetchall()
    names, inside = [], 0
    for name, children in nodes[1:]:  # the first contains all others; the parts of a column follow it
        if inside:
            inside -= 1
        else:
            names.append(name)
        inside += children or 0
    return names


def text_of(column: str, kind: str) -> str:
    """The SQL expression for a column as text; whole numbers have no point, because 1 and 1.0 are one name."""
    name = identifier(column)
    written = f"{name} ->> '$'" if kind == "JSON" else f"CAST({name} AS VARCHAR)"
    if kind != "JSON" and kind not in FLOATS:
        return written
    number = f"TRY_CAST({written} AS DOUBLE)" if kind == "JSON" else name
    is_number = f"json_type({name}) = 'DOUBLE' AND " if kind == "JSON" else ""
    is_whole = f"{is_number}{number} = trunc({number}) AND abs({number}) < {_MAX_WHOLE}"
    return f"CASE WHEN {is_whole} THEN CAST(CAST({number} AS BIGINT) AS VARCHAR) ELSE {written} END"
