"""From what a person gives to tables in files.

A person gives a file, several, a pattern, a folder, ``-`` for standard input, or an address. What a file is, its first
bytes and its name say (:mod:`rarevote.io.read.detect`). What DuckDB cannot read by itself is turned into what it can: a
spreadsheet into JSON lines, standard input into a file.
"""

from __future__ import annotations

import glob
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from rarevote.errors import InputError, ParameterError
from rarevote.io.duck import AS_WRITTEN, connection, first_line, literal, with_objects
from rarevote.io.json_text import parse_json
from rarevote.io.read.csv_text import check_lines, lines_of_rows, read_header
from rarevote.io.read.detect import (
    FORMATS,
    UTF8_MARK,
    Compression,
    Found,
    format_of_name,
    keep_standard_input,
    look,
)
from rarevote.io.read.sources import (
    PARQUET,
    File,
    FileTable,
    csv_source,
    explain_json,
    json_packing,
    json_source,
    with_partitions,
)
from rarevote.io.write.atomic import scratch_folder, temporary_folder_full

_SAMPLED_RECORDS = 10_000
_TAIL = 1 << 16  # bytes in which the end of a list stands


@contextmanager
def open_sources(
    inputs: str | Path | Sequence[str | Path],
    *,
    file_format: str | None = None,
    has_header: bool = True,
    sheet: str | None = None,
    wanted: Sequence[str] | None = (),
    found: Found | None = None,
) -> Iterator[list[FileTable]]:
    """The sources behind the inputs, in order; temporary files live as long as the block.

    Args:
        inputs: files, patterns, folders, addresses, or "-" for standard input.
        file_format: "csv", "tsv", "json", "ndjson", "parquet", "arrow" or "xlsx", where the name does not tell.
        has_header: whether delimited text begins with the names of its columns.
        sheet: which sheet of a spreadsheet; the first if not given.
        wanted: columns that must be found even if the first records of a JSON file lack them; None for all.
        found: one of the inputs, if somebody has looked at it already.
    """
    if file_format == "ndjson":
        file_format = "json"
    if file_format is not None and file_format not in FORMATS:
        raise ParameterError(f"unknown format {file_format!r}; there are {', '.join([*FORMATS, 'ndjson'])}")
    given = [inputs] if isinstance(inputs, (str, Path)) else list(inputs)
    if not given:
        raise ParameterError("no input file")
    with ExitStack() as opened:
        folder = opened.enter_context(scratch_folder("input"))
        opener = _Opener(opened, folder, file_format, has_header, sheet, wanted, found)
        try:
            sources = [source for one in given for source in opener.open(one)]
        except OSError as error:
            if full := temporary_folder_full(error):
                raise full from None
            raise
        forms = {source.form: source.title for source in reversed(sources)}
        if len(forms) > 1:
            titles = " and ".join(forms.values())
            raise InputError(f"{', '.join(map(str, given))}: files of one kind are needed, not {titles}")
        yield _merged(sources)


def _merged(sources: Sequence[FileTable]) -> list[FileTable]:
    """Neighbours that are read alike as one source, so that DuckDB reads their files side by side."""
    merged: list[FileTable] = []
    for source in sources:
        if merged and not source.objects and _signature(merged[-1]) == _signature(source):
            merged[-1] = replace(merged[-1], files=merged[-1].files + source.files)
        else:
            merged.append(source)
    return merged


def _signature(source: FileTable) -> tuple[Any, ...]:
    return source.reader, repr(source.arguments), tuple(source.columns), bool(source.objects)


def is_temporary(name: str) -> bool:
    """Whether a file or folder is nobody's data: hidden, a marker of Spark's, or what a writer left half done.

    >>> [is_temporary(name) for name in (".part.csv", "_SUCCESS", "tmp_.part.csv", "~$votes.xlsx", "votes.csv")]
    [True, True, True, True, False]
    """
    return name.startswith((".", "_", "~$", "tmp_.")) or name.endswith((".tmp", ".part", ".crdownload"))


@dataclass(frozen=True)
class _Opener:
    """Opens one input after the other."""

    opened: ExitStack
    folder: Path  # for temporary files
    file_format: str | None
    has_header: bool
    sheet: str | None
    wanted: Sequence[str] | None
    found: Found | None

    @cached_property
    def database(self) -> Any:
        """For what cannot be told without DuckDB."""
        return self.opened.enter_context(connection())

    def open(self, given: str | Path) -> list[FileTable]:
        text = str(given)
        if text == "-":
            return [self._file(keep_standard_input(self.folder), "standard input")]
        if "://" in text:
            return [self._remote(text)]
        path = Path(text)
        if path.is_dir():
            return [with_partitions(self._file(file, str(file))) for file in self._in_folder(path)]
        if path.exists():
            return [with_partitions(self._file(path, text))]
        matches = sorted(glob.glob(text, recursive=True)) if glob.has_magic(text) else []  # noqa: PTH207
        if not matches:
            raise InputError(f"{text}: no such file")
        return [source for match in matches for source in self.open(Path(match))]

    def _in_folder(self, folder: Path) -> list[Path]:
        """The data files of a folder and those below it; Spark's markers and hidden files are none."""
        files = [
            file
            for file in sorted(folder.rglob("*"))
            if file.is_file() and not any(map(is_temporary, file.relative_to(folder).parts))
        ]
        kinds: dict[str, list[Path]] = {}
        for file in files:
            if kind := format_of_name(file):
                kinds.setdefault("csv" if kind == "tsv" else kind, []).append(file)
        if self.file_format is not None:
            kinds = {kind: found for kind, found in kinds.items() if kind == self.file_format}
        if not kinds:
            raise InputError(f"{folder}: a folder without any .parquet file or other table (.csv, .json ...)")
        if len(kinds) > 1:
            raise InputError(
                f"{folder}: a folder of {' and '.join(kinds)} files; say which with --format, or name files"
            )
        return next(iter(kinds.values()))

    def _temporary(self) -> Path:
        return self.folder / f"{len(list(self.folder.iterdir()))}.json"

    # -- one file ----------------------------------------------------------------------------------------------------

    def _file(self, path: Path, title: str) -> FileTable:
        found = self.found if self.found is not None and self.found.path == path else look(path, title)
        kind = self.file_format or found.kind
        if found.compression != "none" and kind in ("parquet", "arrow", "xlsx"):
            raise InputError(f"{title}: a {kind} file is packed by itself; unpack the .gz or .zst around it first")
        if kind in ("csv", "tsv"):
            return self._delimited(found, "\t" if kind == "tsv" else None)
        if kind == "json":
            return self._json(found)
        if kind == "parquet":
            return self._parquet(str(path), title)
        if kind == "arrow":
            return self._arrow(found)
        return self._spreadsheet(path, title)

    def _delimited(self, found: Found, delimiter: str | None) -> FileTable:
        table = read_header(
            found.head, complete=found.complete, title=found.title, delimiter=delimiter, has_header=self.has_header
        )
        check_lines(found)

        def place(rows: Sequence[int]) -> tuple[str, Sequence[int]]:
            lines = lines_of_rows(found, table, rows)
            return ("line", lines) if lines else ("row", [row + 1 for row in rows])

        return csv_source(File(str(found.path), found.title, place), table, found.compression)

    def _json(self, found: Found) -> FileTable:
        if found.head.startswith(UTF8_MARK):
            plain = self._temporary()
            with found.open() as given, plain.open("wb") as copy:
                given.read(len(UTF8_MARK))
                shutil.copyfileobj(given, copy, 1 << 20)
            found = look(plain, found.title)
        layout = _json_layout(found.head, found.title)
        # DuckDB takes the end of the file for the end of a list, and that of a packed file for its end.
        if layout == "array" and found.last_bytes(_TAIL).rstrip()[-1:] != b"]":
            raise InputError(f"{found.title}: the JSON is cut off: the list has no end")
        if found.compression == "zstd":
            found.last_bytes(1)

        def place(rows: Sequence[int]) -> tuple[str, Sequence[int]]:
            return "record", [row + 1 for row in rows]

        return self._json_source(File(str(found.path), found.title, place), layout, found.compression)

    def _spreadsheet(self, path: Path, title: str) -> FileTable:
        from rarevote.io.spreadsheet import read_spreadsheet

        copy = self._temporary()
        columns, skipped = read_spreadsheet(path, self.sheet, copy, title=title)

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

        kind = self.file_format or format_of_name(Path(address.split("?")[0]))
        load_extension(self.database, address)
        if kind == "parquet":
            return self._parquet(address, address)
        if kind in ("csv", "tsv"):
            mark = "\t" if kind == "tsv" else None
            table = peek(self.database, address, delimiter=mark, has_header=self.has_header)
            # The lines of a remote file cannot be measured beforehand, and only this way is none lost.
            return csv_source(File(address, address), table, "none", ", parallel=false")
        if kind == "json":
            return self._json_source(File(address, address), "newline_delimited", "none")
        raise InputError(
            f"{address}: only CSV, JSON lines and Parquet are read from an address; say which with --format"
        )

    # -- with the help of DuckDB -------------------------------------------------------------------------------------

    def _json_source(self, file: File, layout: str, compression: Compression) -> FileTable:
        """A source of JSON objects; its columns are the keys of the first records, or of all if any is wanted."""
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
            raise InputError(f"{file.title}: {explain_json(error, file.path, compression)}") from None
        return [key for (key,) in found]

    def _arrow(self, found: Found) -> FileTable:
        import duckdb

        from rarevote.io.arrow_files import open_arrow

        name, opened, columns = open_arrow(found)
        try:
            with_objects(self.database, {name: opened}).execute(f"DESCRIBE SELECT * FROM {name}")
        except duckdb.Error as error:  # it does not know all types that Arrow has
            reason = first_line(error)[:200]
            raise InputError(f"{found.title}: a column is of a type that cannot be read ({reason})") from None
        file = File(str(found.path), found.title)
        return FileTable((file,), "typed", name, (), columns, objects={name: opened})

    def _parquet(self, path: str, title: str) -> FileTable:
        import duckdb

        try:
            described = self.database.execute(f"DESCRIBE SELECT * FROM {PARQUET}", [[literal(path)]]).fetchall()
        except duckdb.Error as error:
            raise InputError(f"{title}: not a readable Parquet file ({first_line(error)[:200]})") from None
        return FileTable((File(path, title),), "typed", PARQUET, (), [row[0] for row in described])


def _json_layout(head: bytes, title: str) -> str:
    begin = head.lstrip()
    if not begin:
        raise InputError(f"{title}: the file is empty")
    if begin.startswith(b"["):
        return "array"
    if not begin.startswith(b"{"):
        shown = begin[:20].decode("utf-8", "replace")
        raise InputError(f"{title}: not JSON: a list of objects or lines of objects is needed, not {shown!r}")
    first, newline, _ = begin.partition(b"\n")
    if not newline:
        return "newline_delimited"
    try:
        parse_json(first)
    except ValueError:
        return "unstructured"  # objects over several lines
    return "newline_delimited"
