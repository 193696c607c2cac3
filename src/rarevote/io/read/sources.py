"""From the user's inputs to tables that DuckDB reads.

The input is a file, several, a pattern, a folder, ``-`` for standard input, or an address. The first bytes and the name
of a file show its format (:mod:`rarevote.io.read.detect`). Formats that DuckDB cannot read are converted: a
spreadsheet into JSON lines, standard input into a file. Each table has its SQL expression, its columns, and
a way to locate a row.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

from rarevote.errors import InputError, ParameterError, how
from rarevote.io.duck import (
    AS_WRITTEN,
    connection,
    first_line,
    literal,
    parquet_columns,
    text_of,
    with_objects,
)
from rarevote.io.json_text import parse_json
from rarevote.io.read.columns import check_file_columns
from rarevote.io.read.csv_text import Delimited, check_lines, explain, lines_of_rows, read_header, undecodable_line
from rarevote.io.read.detect import (
    FORMATS,
    UTF8_MARK,
    Compression,
    FileInfo,
    format_of_name,
    inspect_file,
    is_stream,
    is_unread_table,
    keep_stream,
    open_bytes,
)
from rarevote.io.read.options import DEFAULTS, ReadOptions
from rarevote.io.read.partitions import with_partitions
from rarevote.io.read.paths import files_below, found_paths
from rarevote.io.read.persons import with_person
from rarevote.io.unpacked import check_parquet
from rarevote.io.write.atomic import scratch_folder, temporary_folder_full

PARQUET = f"read_parquet(?, {AS_WRITTEN})"  # the reader of Parquet files
_MAX_RECORD = 1 << 25  # bytes; DuckDB refuses longer records


@dataclass(frozen=True)
class File:
    """One file that DuckDB reads.

    Attributes:
        path: its path.
        title: its name in messages.
        place: the noun and the numbers that locate rows (from 0) for a user.
    """

    path: str
    title: str
    place: Callable[[Sequence[int]], tuple[str, Sequence[int]]] = lambda rows: ("row", [row + 1 for row in rows])


@dataclass(frozen=True)
class FileTable:
    """Files that are read by the same expression.

    Attributes:
        files: the files, in order.
        form: "csv" (unchanged text), "json" (values as JSON text) or "typed" (columns with types).
        reader: the table function of SQL; its first parameter is the list of paths.
        arguments: its further parameters.
        columns: names of the columns.
        table: header and dialect of delimited text.
        objects: Python objects that the reader uses.
        compression: how the files are compressed.
        partitions: the columns that come from folder names, not from the files.
        types: the type of each column of a file with types.
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
    types: Mapping[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Its name in messages."""
        return self.files[0].title + (f" and {len(self.files) - 1} more" if len(self.files) > 1 else "")

    def text(self, column: str) -> str:
        """The SQL expression for a column as text."""
        return text_of(column, self.kinds[column])

    @property
    def kinds(self) -> dict[str, str]:
        """The type of each column in DuckDB; a column from the name of a file or folder is text."""
        if self.form == "json":
            return dict.fromkeys(self.columns, "JSON")
        return {name: self.types.get(name, "VARCHAR") for name in self.columns}

    @property
    def parameters(self) -> list[Any]:
        """The parameters of :attr:`reader`."""
        paths = [] if self.objects else [[literal(file.path) for file in self.files]]
        return [*paths, *self.arguments]


@contextmanager
def asking(source: FileTable) -> Iterator[Callable[[str], Any]]:
    """A function that runs queries with a table's reader; errors of DuckDB are translated.

    Raises:
        InputError: the table cannot be read.
    """
    import duckdb

    with connection() as database:
        try:
            with_objects(database, source.objects)  # once: DuckDB registers nothing while a result is open
            yield lambda query: database.execute(query, source.parameters)
        except duckdb.Error as error:
            raise translated(source, error) from None


def count_rows(source: FileTable) -> int:
    """Number of rows of a table."""
    with asking(source) as ask:
        return int(ask(f"SELECT count(*) FROM {source.reader}").fetchone()[0])


def place_of_rows(sources: Sequence[FileTable], rows: Sequence[int]) -> str:
    """The location of rows (from 0, counted over all sources), as text."""
    files = [(source, file) for source in sources for file in source.files]
    if len(files) == 1:
        noun, numbers = files[0][1].place(rows)
        # Rows of tables without lines use the plural, as for other tables.
        return f"{noun if noun == 'line' and len(numbers) == 1 else noun + 's'} {', '.join(map(str, numbers))}"
    places, begin, left = [], 0, sorted(int(row) for row in rows)
    for source, file in files:
        if not left:
            break
        size = count_rows(replace(source, files=(file,)))
        here = [row - begin for row in left if row < begin + size]
        left, begin = left[len(here) :], begin + size
        if here:
            noun, numbers = file.place(here)
            places.append(f"{file.title} {noun} {', '.join(map(str, numbers))}")
    return "; ".join(places)


# --------------------------------------------------------------------------------------------------------------------
# how DuckDB reads them


def csv_source(file: File, table: Delimited, compression: Compression, options: str = "") -> FileTable:
    """Delimited text: every column as text."""
    # NULs and comment signs in cells are text; only an empty cell is missing.
    reader = (
        "read_csv(?, auto_detect=false, header=?, skip=?, delim=?, quote=?, escape=?, nullstr='', comment='', "
        f"strict_mode=true, compression=?, columns=?, {AS_WRITTEN}{options})"
    )
    dialect = table.dialect
    arguments = (
        table.has_header,
        table.blank_lines,
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
    """The name of a compression in DuckDB's JSON reader."""
    return "uncompressed" if compression == "none" else compression


def _explain_json(error: Exception, path: str, compression: Compression) -> str:
    """DuckDB's error about JSON as a message for the user."""
    text = first_line(error)
    for place in ("Malformed JSON in file", "JSON transform error in file"):
        if place in text:
            kind = "damaged or incomplete JSON" if place.startswith("Malformed") else "not the JSON of a table"
            reason = text.partition(": ")[2].rpartition(place)[2].partition(": ")[2] or text
            line = re.search(r"in line (\d+)", text)
            where = _broken_line(path, compression, int(line[1])) if line and "://" not in path else None
            return f"{f'line {where:,}: ' if where else ''}{kind} ({reason.strip()[:200]})"
    if "maximum_object_size" in text:
        return "a JSON record of more than 16 MB: not a table of votes, or not JSON"
    return f"cannot be read as JSON ({text[:200]})"


def translated(source: FileTable, error: Exception) -> InputError:
    """DuckDB's error about a table as a message for the user."""
    text = str(error)
    # The message about several files names the file with the fault.
    file = next((one for one in source.files if one.path in text), source.files[0])
    if source.form == "json":
        return InputError(f"{file.title}: {_explain_json(error, file.path, source.compression)}")
    if source.table is None:
        return InputError(f"{source.title}: cannot be read ({first_line(error)[:300]})")
    line = None
    if ("unicode" in text.lower() or "utf-8" in text.lower()) and "://" not in file.path:
        line = undecodable_line(Path(file.path), source.compression)
    return InputError(explain(error, source.table, title=file.title, undecodable=line))


def _broken_line(path: str, compression: Compression, near: int) -> int | None:
    """The line that is not a JSON object; DuckDB's number can be one too high."""
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


# --------------------------------------------------------------------------------------------------------------------
# opening the inputs


_SAMPLED_RECORDS = 10_000
_TAIL = 1 << 16  # bytes that contain the end of a list


@contextmanager
def open_sources(
    inputs: str | Path | Sequence[str | Path],
    options: ReadOptions = DEFAULTS,
    *,
    wanted: Sequence[str] | None = (),
    found: FileInfo | None = None,
) -> Iterator[list[FileTable]]:
    """The sources behind the inputs, in order; temporary files exist during the block.

    Args:
        inputs: files, patterns, folders, addresses, or "-" for standard input.
        options: how to read; only options for tables are used.
        wanted: columns that must be found even if the first records of a JSON file lack them; None for all.
        found: one of the inputs, if it was already inspected.
    """
    if options.file_format == "ndjson":
        options = replace(options, file_format="json")
    if options.file_format not in (None, *FORMATS):
        raise ParameterError(f"unknown format {options.file_format!r}; there are {', '.join([*FORMATS, 'ndjson'])}")
    given = [inputs] if isinstance(inputs, (str, Path)) else list(inputs)
    if not given:
        raise ParameterError("no input file")
    with ExitStack() as opened:
        folder = opened.enter_context(scratch_folder("input"))
        opener = _Opener(opened, folder, options, wanted, found)
        try:
            sources = [source for one in given for source in opener.open(one)]
        except OSError as error:
            if full := temporary_folder_full(error):
                raise full from None
            raise
        forms = {source.form: source.title for source in reversed(sources)}
        if len(forms) > 1:
            titles = " and ".join(forms.values())
            raise InputError(f"{', '.join(map(str, given))}: the files must have one format, not {titles}")
        yield _merged(sources)


def _merged(sources: Sequence[FileTable]) -> list[FileTable]:
    """Merge neighbouring sources with the same reader, so that DuckDB reads their files in parallel."""
    groups = (list(group) for _, group in groupby(sources, key=_signature))
    return [replace(group[0], files=tuple(file for one in group for file in one.files)) for group in groups]


def _signature(source: FileTable) -> tuple[Any, ...]:
    # Files of other types would be cast to those of the first file.
    columns = tuple(source.kinds.items())
    return source.reader, repr(source.arguments), columns, id(source) if source.objects else None


@dataclass(frozen=True)
class _Opener:
    """Opens one input after the other."""

    opened: ExitStack
    folder: Path  # for temporary files
    options: ReadOptions
    wanted: Sequence[str] | None
    found: FileInfo | None

    @cached_property
    def database(self) -> Any:
        """The database for formats that only DuckDB can read."""
        return self.opened.enter_context(connection())

    def open(self, given: str | Path) -> list[FileTable]:
        text = str(given)
        if self.options.worker_from and (is_stream(text) or "://" in text):
            raise InputError(f"{text}: the name has no person; {how('worker_from', '--worker-from')} is for files")
        if is_stream(text):
            title = "standard input" if text == "-" else text
            return [self._file(keep_stream(text, title, self.folder), title)]
        if "://" in text:
            return [self._remote(text)]
        files = [file for path in found_paths(text) for file in (self._in_folder(path) if path.is_dir() else [path])]
        given_as = text if files == [Path(text)] else None
        tables = [with_partitions(self._file(file, given_as or str(file))) for file in files]
        return [self._by_person(table) for table in tables]

    def _by_person(self, table: FileTable) -> FileTable:
        """The table with a column for the annotator, if the file name says it."""
        if self.options.worker_from is None:
            return table
        return with_person(table, self.options.worker_from)

    def _in_folder(self, folder: Path) -> list[Path]:
        """The data files of a folder and those below it; without Spark's markers and hidden files."""
        kinds: dict[str, list[Path]] = {}
        for file in files_below(folder):
            # If a format is chosen, an archive is left out like the files of other formats.
            chosen = self.options.file_format
            if is_unread_table(file) and chosen in (None, format_of_name(file.with_suffix(""))):
                raise InputError(
                    f"{file}: cannot be read as a table; unpack or convert it, move it to another folder, or name the "
                    "files to read"
                )
            if kind := format_of_name(file):
                kinds.setdefault("csv" if kind == "tsv" else kind, []).append(file)
        if self.options.file_format is not None:
            kinds = {kind: found for kind, found in kinds.items() if kind == self.options.file_format}
        if not kinds:
            raise InputError(f"{folder}: the folder has no .parquet file and no other table (.csv, .json ...)")
        if len(kinds) > 1:
            raise InputError(
                f"{folder}: a folder of {' and '.join(kinds)} files; choose one with --format, or name the files"
            )
        return next(iter(kinds.values()))

    def _temporary(self) -> Path:
        return self.folder / f"{len(list(self.folder.iterdir()))}.json"

    # -- one file ----------------------------------------------------------------------------------------------------

    def _file(self, path: Path, title: str) -> FileTable:
        found = self.found if self.found is not None and self.found.path == path else inspect_file(path, title)
        kind = self.options.file_format or found.kind
        if found.compression != "none" and kind in ("parquet", "arrow", "xlsx"):
            raise InputError(f"{title}: a {kind} file is already compressed; unpack the .gz or .zst first")
        if kind in ("csv", "tsv"):
            return self._delimited(found, "\t" if kind == "tsv" else None)
        if kind == "json":
            return self._json(found)
        if kind == "parquet":
            return self._parquet(str(path), title)
        if kind == "arrow":
            return self._arrow(found)
        return self._spreadsheet(path, title)

    def _delimited(self, found: FileInfo, delimiter: str | None) -> FileTable:
        table = read_header(
            found.head,
            complete=found.complete,
            title=found.title,
            delimiter=delimiter,
            has_header=self.options.has_header,
        )
        check_lines(found)

        def place(rows: Sequence[int]) -> tuple[str, Sequence[int]]:
            lines = lines_of_rows(found, table, rows)
            return ("line", lines) if lines else ("row", [row + 1 for row in rows])

        return csv_source(File(str(found.path), found.title, place), table, found.compression)

    def _json(self, found: FileInfo) -> FileTable:
        if found.head.startswith(UTF8_MARK):
            plain = self._temporary()
            with found.open() as given, plain.open("wb") as copy:
                given.read(len(UTF8_MARK))
                shutil.copyfileobj(given, copy, 1 << 20)
            found = inspect_file(plain, found.title)
        layout = _json_layout(found.head, found.title)
        # DuckDB accepts a truncated list, and a truncated compressed file.
        if layout == "array" and found.last_bytes(_TAIL).rstrip()[-1:] != b"]":
            raise InputError(f"{found.title}: the JSON is incomplete: the list has no end")
        if found.compression == "zstd":
            found.last_bytes(1)

        def place(rows: Sequence[int]) -> tuple[str, Sequence[int]]:
            return "record", [row + 1 for row in rows]

        return self._json_source(File(str(found.path), found.title, place), layout, found.compression)

    def _spreadsheet(self, path: Path, title: str) -> FileTable:
        from rarevote.io.spreadsheet import read_spreadsheet

        copy = self._temporary()
        columns, skipped = read_spreadsheet(path, self.options.sheet, copy, title=title)

        def place(rows: Sequence[int]) -> tuple[str, Sequence[int]]:
            numbers = []
            for row in rows:
                number = row + 2  # the header is row 1
                for blank in skipped:
                    number += blank <= number
                numbers.append(number)
            return "row", numbers

        return json_source(File(str(copy), title, place), "newline_delimited", "none", columns)

    # -- addresses ---------------------------------------------------------------------------------------------------

    def _remote(self, address: str) -> FileTable:
        from rarevote.io.read.remote import load_extension, peek

        kind = self.options.file_format or format_of_name(Path(address.split("?")[0]))
        load_extension(self.database, address)
        if kind == "parquet":
            return self._parquet(address, address)
        if kind in ("csv", "tsv"):
            mark = "\t" if kind == "tsv" else None
            table = peek(self.database, address, delimiter=mark, has_header=self.options.has_header)
            # The lines of a remote file cannot be measured first, and only this way none is lost.
            return csv_source(File(address, address), table, "none", ", parallel=false")
        if kind == "json":
            return self._json_source(File(address, address), "newline_delimited", "none")
        raise InputError(
            f"{address}: only CSV, JSON lines and Parquet are read from an address; choose one with --format"
        )

    # -- with the help of DuckDB -------------------------------------------------------------------------------------

    def _json_source(self, file: File, layout: str, compression: Compression) -> FileTable:
        """A source of JSON objects; its columns are the keys of the first records, or of all if needed."""
        columns = self._json_keys(file, layout, compression, f"LIMIT {_SAMPLED_RECORDS}")
        if self.wanted is None or not set(self.wanted) <= set(columns):
            columns = self._json_keys(file, layout, compression, "")
        return json_source(file, layout, compression, columns)

    def _json_keys(self, file: File, layout: str, compression: Compression, limit: str) -> list[str]:
        import duckdb

        try:
            found = self.database.execute(
                "SELECT key FROM (SELECT unnest(keys) AS key, generate_subscripts(keys, 1) AS place, n FROM "
                "(SELECT json_keys(json) AS keys, row_number() OVER () AS n FROM "
                f"(SELECT json FROM read_json_objects(?, format='{layout}', compression=?, {AS_WRITTEN}) {limit}))) "
                "GROUP BY key ORDER BY min(n), arg_min(place, n)",
                [[literal(file.path)], json_packing(compression)],
            ).fetchall()
        except duckdb.Error as error:
            raise InputError(f"{file.title}: {_explain_json(error, file.path, compression)}") from None
        keys = [key for (key,) in found]
        check_file_columns(keys, file.title)
        return keys

    def _arrow(self, found: FileInfo) -> FileTable:
        import duckdb

        from rarevote.io.arrow_files import open_arrow

        name, opened, columns = open_arrow(found)
        try:
            described = with_objects(self.database, {name: opened}).execute(f"DESCRIBE SELECT * FROM {name}").fetchall()
        except duckdb.Error as error:  # it does not support all Arrow types
            reason = first_line(error)[:200]
            raise InputError(f"{found.title}: a column has a type that cannot be read ({reason})") from None
        check_file_columns(columns, found.title)
        types = {column: kind for column, kind, *_ in described}
        file = File(str(found.path), found.title)
        return FileTable((file,), "typed", name, (), columns, objects={name: opened}, types=types)

    def _parquet(self, path: str, title: str) -> FileTable:
        import duckdb

        try:
            described = self.database.execute(f"DESCRIBE SELECT * FROM {PARQUET}", [[literal(path)]]).fetchall()
            kinds = {row[0]: row[1] for row in described}
            check_file_columns(parquet_columns(self.database, path), title)
            if "://" not in path:
                check_parquet(self.database, Path(path), title, kinds)
        except duckdb.Error as error:
            raise InputError(f"{title}: not a readable Parquet file ({first_line(error)[:200]})") from None
        return FileTable((File(path, title),), "typed", PARQUET, (), list(kinds), types=kinds)


def _json_layout(head: bytes, title: str) -> str:
    begin = head.lstrip()
    if not begin:
        raise InputError(f"{title}: the file is empty")
    if begin.startswith(b"["):
        return "array"
    if not begin.startswith(b"{"):
        shown = begin[:20].decode("utf-8", "replace")
        raise InputError(f"{title}: not JSON: it must be a list of objects or lines of objects, not {shown!r}")
    first, newline, _ = begin.partition(b"\n")
    if not newline:
        return "newline_delimited"
    try:
        parse_json(first)
    except ValueError:
        return "unstructured"  # objects over several lines
    return "newline_delimited"
