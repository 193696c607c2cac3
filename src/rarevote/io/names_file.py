"""Task names in a temporary Parquet file, which exists as long as it is needed."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.names import StoredNames
from rarevote.io.duck import AS_WRITTEN, connection, identifier
from rarevote.io.write.atomic import lasting_scratch_folder

# For more single rows than this, reading the whole file is faster.
_MAX_SINGLE_ROWS = 10_000


class NamesFile(StoredNames):
    """Names in the column ``name`` of a Parquet file, in order. The file is removed with this object.

    Attributes:
        path: the file, in its own folder.
    """

    def __init__(self, path: Path, count: int, remove: Callable[[], None]) -> None:
        self.path = path
        self._count = count
        weakref.finalize(self, remove)

    @classmethod
    def written_by(cls, database: Any, query: str) -> NamesFile:
        """Store the names that a query returns, in its order."""
        folder, remove = lasting_scratch_folder("names")
        path = folder / "names.parquet"
        try:
            database.execute(f"COPY ({query}) TO ? (FORMAT parquet, USE_TMP_FILE false)", [str(path)])
            (count,) = database.execute(f"SELECT count(*) FROM read_parquet(?, {AS_WRITTEN})", [str(path)]).fetchone()
        except BaseException:
            remove()
            raise
        return cls(path, count, remove)

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"NamesFile({self._count:,} names on disk)"

    def rows(self, columns: str) -> str:
        """The query for columns of the file and the number of each row, ``rowid``."""
        quoted = str(self.path).replace("'", "''")
        return (
            f"SELECT {columns}, file_row_number AS rowid "
            f"FROM read_parquet('{quoted}', file_row_number = true, {AS_WRITTEN})"
        )

    def as_table(self, column: str) -> str:
        """The names as a table of SQL with one column."""
        rows = f"SELECT {identifier(column)} FROM ({self.rows(f'name AS {identifier(column)}')})"
        return f"({rows}) AS {identifier('table ' + column)}"

    def load(self) -> NDArray[Any]:
        """All names, as an array of text."""
        with connection() as database:
            return _texts(database.execute(f"SELECT name FROM read_parquet(?, {AS_WRITTEN})", [str(self.path)]))

    def take(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """The names with these numbers."""
        if rows.size > _MAX_SINGLE_ROWS:
            return self.load()[rows]
        with connection() as database:
            database.register("wanted", {"number": rows, "place": np.arange(rows.size)})
            return _texts(
                database.execute(
                    f"SELECT name FROM read_parquet(?, file_row_number = true, {AS_WRITTEN}) "
                    "JOIN wanted ON number = file_row_number ORDER BY place",
                    [str(self.path)],
                )
            )

    def find(self, values: Sequence[Any]) -> NDArray[np.int64]:
        """The number of each value; -1 if it is not a name."""
        found = np.full(len(values), -1, dtype=np.int64)
        texts = np.array([value if isinstance(value, str) else None for value in values], dtype=object)
        if not texts.size:
            return found
        with connection() as database:
            database.register("wanted", {"name": texts, "place": np.arange(texts.size)})
            rows = database.execute(
                f"SELECT place, file_row_number FROM read_parquet(?, file_row_number = true, {AS_WRITTEN}) "
                "JOIN wanted USING (name)",
                [str(self.path)],
            ).fetchnumpy()
        found[np.asarray(rows["place"])] = np.asarray(rows["file_row_number"])
        return found

    def restricted(self, used: NDArray[np.bool_]) -> NamesFile:
        """Keep only the names that are used, renumbered."""
        with connection() as database:
            database.register("flags", {"used": used})
            flagged = f"SELECT * FROM {self.as_table('name')} POSITIONAL JOIN flags"
            return NamesFile.written_by(database, f"SELECT name FROM ({flagged}) WHERE used")


def _texts(result: Any) -> NDArray[Any]:
    return np.asarray(result.fetchnumpy()["name"], dtype=object)
