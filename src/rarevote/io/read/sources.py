"""Tables in files as DuckDB reads them: the expression of SQL, the columns, and where a row is found again."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from rarevote.io.duck import AS_WRITTEN, connection, first_line, identifier, literal, with_objects
from rarevote.io.json_text import parse_json
from rarevote.io.read.csv_text import Delimited
from rarevote.io.read.detect import Compression, open_bytes

PARQUET = f"read_parquet(?, {AS_WRITTEN})"  # the reader of Parquet files
_FILE = "rarevote name of the file"  # longer than any column's name could be by chance
_MAX_RECORD = 1 << 25  # bytes; DuckDB refuses longer ones


@dataclass(frozen=True)
class File:
    """One file that DuckDB reads.

    Attributes:
        path: where it is.
        title: what messages call it.
        place: the noun and the numbers under which a person finds rows (from 0) in it.
    """

    path: str
    title: str
    place: Callable[[Sequence[int]], tuple[str, Sequence[int]]] = lambda rows: ("row", [row + 1 for row in rows])


@dataclass(frozen=True)
class FileTable:
    """Files that are read by one and the same expression.

    Attributes:
        files: the files, in order.
        form: "csv" (text as it is written), "json" (values as JSON text) or "typed" (columns with types).
        reader: the table function of SQL; its first parameter is the list of paths.
        arguments: its further parameters.
        columns: names of the columns.
        table: header and dialect of delimited text.
        objects: Python objects that the reader names.
        compression: how the files are packed.
        partitions: those of the columns that the names of folders give, not the files.
    """

    files: tuple[File, ...]
    form: str
    reader: str
    arguments: tuple[Any, ...]
    columns: list[str]
    table: Delimited | None = None
    objects: dict[str, Any] = field(default_factory=dict)
    compression: Compression = "none"
    partitions: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What messages call it."""
        return self.files[0].title + (f" and {len(self.files) - 1} more" if len(self.files) > 1 else "")

    @property
    def parameters(self) -> list[Any]:
        """The parameters of :attr:`reader`."""
        paths = [] if self.objects else [[literal(file.path) for file in self.files]]
        return [*paths, *self.arguments]


def place_of_rows(sources: Sequence[FileTable], rows: Sequence[int]) -> str:
    """Where rows (from 0, counted over all sources) are, in words."""
    files = [(source, file) for source in sources for file in source.files]
    if len(files) == 1:
        noun, numbers = files[0][1].place(rows)
        # Rows of tables without lines are named in the plural, as other tables' rows are.
        return f"{noun if noun == 'line' and len(numbers) == 1 else noun + 's'} {', '.join(map(str, numbers))}"
    places, begin, left = [], 0, sorted(int(row) for row in rows)
    with connection() as database:
        for source, file in files:
            if not left:
                break
            alone = replace(source, files=(file,))
            (size,) = (
                with_objects(database, alone.objects)
                .execute(f"SELECT count(*) FROM {alone.reader}", alone.parameters)
                .fetchone()
            )
            here = [row - begin for row in left if row < begin + size]
            left, begin = left[len(here) :], begin + size
            if here:
                noun, numbers = file.place(here)
                places.append(f"{file.title} {noun} {', '.join(map(str, numbers))}")
    return "; ".join(places)


# --------------------------------------------------------------------------------------------------------------------
# columns in the names of folders


def partition_values(path: str | Path) -> dict[str, str]:
    """What the folders of a path say in Spark's and Hive's manner.

    >>> partition_values("votes/day=2026-11-16/label=not%20sure/part-0.parquet")
    {'day': '2026-11-16', 'label': 'not sure'}
    """
    pairs = (folder.partition("=") for folder in Path(path).parts[:-1])
    return {unquote(name): unquote(value) for name, sign, value in pairs if name and sign}


def with_partitions(source: FileTable) -> FileTable:
    """The source with a column for each folder ``name=value`` on the way whose name no column of the file has."""
    (file,) = source.files
    absent = tuple(name for name in partition_values(Path(file.path).absolute()) if name not in source.columns)
    if not absent or source.objects or "://" in file.path:
        return source
    value = "list_last(regexp_extract_all({file}, '(?:^|[/\\\\]){key}=([^/\\\\]*)[/\\\\]', 1))"
    columns = []
    for name in absent:
        key = re.escape(quote(name, safe=" ")).replace("'", "''")
        text = f"url_decode({value.format(file=identifier(_FILE), key=key)})"
        columns.append(f"{f'to_json({text})' if source.form == 'json' else text} AS {identifier(name)}")
    function = source.reader.removesuffix(")") + f", filename={_FILE!r})"
    reader = f"(SELECT * EXCLUDE ({identifier(_FILE)}), {', '.join(columns)} FROM {function})"
    return replace(source, reader=reader, columns=[*source.columns, *absent], partitions=absent)


# --------------------------------------------------------------------------------------------------------------------
# how DuckDB reads them


def csv_source(file: File, table: Delimited, compression: Compression, options: str = "") -> FileTable:
    """Delimited text: every column as text."""
    # NULs and comment signs in cells are text; a cell that is empty is missing, and nothing else is.
    reader = (
        "read_csv(?, auto_detect=false, header=?, delim=?, quote=?, escape=?, nullstr='', comment='', "
        f"strict_mode=true, compression=?, columns=?, {AS_WRITTEN}{options})"
    )
    dialect = table.dialect
    arguments = (
        table.has_header,
        dialect.delimiter,
        dialect.quote,
        dialect.escape,
        compression,
        dict.fromkeys(table.columns, "VARCHAR"),
    )
    return FileTable((file,), "csv", reader, arguments, table.columns, table=table, compression=compression)


def json_source(file: File, layout: str, compression: Compression, columns: list[str]) -> FileTable:
    """JSON objects: every value as JSON text, so that its type is known and nothing is guessed."""
    reader = f"read_json(?, format='{layout}', compression=?, columns=?, {AS_WRITTEN})"
    kinds = dict.fromkeys(columns, "JSON")
    return FileTable((file,), "json", reader, (json_packing(compression), kinds), columns, compression=compression)


def json_packing(compression: Compression) -> str:
    """What DuckDB's reader of JSON calls a way of packing."""
    return "uncompressed" if compression == "none" else compression


def explain_json(error: Exception, path: str, compression: Compression) -> str:
    """DuckDB's complaint about JSON in words for the person who has the file."""
    text = first_line(error)
    for place in ("Malformed JSON in file", "JSON transform error in file"):
        if place in text:
            kind = "damaged or cut-off JSON" if place.startswith("Malformed") else "not the JSON of a table"
            reason = text.partition(": ")[2].rpartition(place)[2].partition(": ")[2] or text
            line = re.search(r"in line (\d+)", text)
            where = _broken_line(path, compression, int(line[1])) if line and "://" not in path else None
            return f"{f'line {where:,}: ' if where else ''}{kind} ({reason.strip()[:200]})"
    if "maximum_object_size" in text:
        return "a JSON record of more than 16 MB: this is no table of votes, or not JSON at all"
    return f"cannot be read as JSON ({text[:200]})"


def _broken_line(path: str, compression: Compression, near: int) -> int | None:
    """The line that is no JSON object; DuckDB's number may be one too high."""
    with open_bytes(Path(path), compression) as handle:
        for number, line in enumerate(iter(lambda: handle.readline(_MAX_RECORD), b""), 1):
            if near - 2 <= number <= near and line.strip():
                try:
                    if not isinstance(parse_json(line), dict):
                        return number
                except ValueError:
                    return number
            if number > near:
                break
    return None
