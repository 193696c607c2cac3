"""DuckDB as this package uses it: in memory or in a temporary file, never fetching an extension."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# What DuckDB may hold of a large input; the rest is on disk. A larger machine may lend more.
_MIN_MEMORY = 2 << 30
_PART_OF_MEMORY = 12

#: For every reader of files: without it DuckDB takes a folder called ``label=v2`` on the way for the column ``label``.
AS_WRITTEN = "hive_partitioning = false"


@contextmanager
def connection(*, on_disk: bool = False, limited: bool = False) -> Iterator[Any]:
    """A database that lives as long as the block.

    Args:
        on_disk: keep tables in a temporary file and only a limited part of them in memory.
        limited: of what queries need, too, keep only a limited part in memory.
    """
    import duckdb

    with tempfile.TemporaryDirectory(prefix="rarevote-", ignore_cleanup_errors=True) as folder:
        database = duckdb.connect(str(Path(folder) / "scratch.duckdb") if on_disk else ":memory:")
        try:
            if on_disk or limited:
                limit = max(_MIN_MEMORY, _physical_memory() // _PART_OF_MEMORY)
                database.execute(f"SET memory_limit = '{limit >> 20} MiB'")
            # Reading a file must never download anything, and what does not fit into memory must not go to the folder
            # that the user happens to be in.
            database.execute("SET autoinstall_known_extensions = false")
            database.execute("SET autoload_known_extensions = false")
            database.execute("SET enable_progress_bar = false")
            database.execute("SET temp_directory = ?", [folder])
            yield database
        except RuntimeError as error:
            # So DuckDB reports that Ctrl-C was pressed while it was at work.
            if "Query interrupted" in str(error):
                raise KeyboardInterrupt from None
            raise
        finally:
            database.close()


def _physical_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not every system tells
        return 0


def with_objects(database: Any, objects: Mapping[str, Any]) -> Any:
    """The database, knowing these Python objects as tables."""
    for name, value in objects.items():
        database.register(name, value)
    return database


def identifier(name: str) -> str:
    """A name as SQL writes it, between quotes."""
    return '"' + name.replace('"', '""') + '"'


def literal(path: str) -> str:
    """A path in which nothing is a pattern.

    >>> literal("labels[1].csv")
    'labels[[]1].csv'
    """
    if "://" in path:
        return path
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in path)


def first_line(error: Exception) -> str:
    """The first line of a message, which says what is wrong; the others are advice on SQL."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
