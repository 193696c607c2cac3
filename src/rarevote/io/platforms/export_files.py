"""The files of an export, and the beginning by which a platform recognises it.

However the files are compressed (:mod:`.containers` opens them), an export is :class:`ExportFiles` with a list of
:class:`Part`, each of which opens as bytes.
"""

from __future__ import annotations

import csv
import lzma
import struct
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import IO, Any, Literal

from rarevote.errors import InputError
from rarevote.io.platforms.base import NotUtf8Error
from rarevote.io.platforms.json_stream import first_records, walk_json
from rarevote.io.read.csv_text import Dialect, header_of
from rarevote.io.read.detect import UTF8_MARK, begins_json, read_head, readable

_FIRST_RECORDS = 5
# Other errors of a zip file: a wrong checksum, an unknown compression, a password, damaged fields.
_NOT_UNZIPPED = (zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError, struct.error, lzma.LZMAError)


@contextmanager
def undamaged(title: str) -> Iterator[None]:
    """Turn damage into an :class:`InputError`."""
    try:
        with readable(title):
            yield
    except _NOT_UNZIPPED as error:
        raise InputError(f"{title}: cannot be read (damaged or incomplete: {error})") from None


@dataclass(frozen=True)
class Beginning:
    """The beginning of an export, by which it is recognised.

    Attributes:
        records: the first records of JSON.
        header: the columns of a table.
        n_files: number of files.
    """

    records: list[Any] = field(default_factory=list)
    header: list[str] = field(default_factory=list)
    n_files: int = 1

    @property
    def keys(self) -> set[str]:
        """The keys of the records."""
        return {key for record in self.records if isinstance(record, dict) for key in record}

    @cached_property
    def inner_keys(self) -> set[str]:
        """The keys of the records and of everything in them."""
        found: set[str] = set()
        left = list(self.records)
        while left:
            value = left.pop()
            if isinstance(value, dict):
                found.update(key for key in value if isinstance(key, str))
                left += value.values()
            elif isinstance(value, list):
                left += value
        return found


@dataclass(frozen=True)
class Part:
    """One readable file of an export.

    Attributes:
        title: its name in messages.
        stem: its name without folder and ending; doccano names its files after the annotators.
        open: returns its bytes from the beginning.
        looked: its first bytes and whether there are no more, if already read.
        encoding: encoding of its text.
    """

    title: str
    stem: str
    open: Callable[[], IO[bytes]]
    looked: tuple[bytes, bool] | None = None
    encoding: str = "utf-8"

    def guarded(self) -> AbstractContextManager[None]:
        """Turn errors of a damaged stream into an :class:`InputError`."""
        return undamaged(self.title)

    @cached_property
    def head(self) -> tuple[bytes, bool]:
        """Its first bytes, and whether there are no more."""
        if self.looked is not None:
            return self.looked
        with self.guarded(), self.open() as stream:
            return read_head(stream)

    @property
    def kind(self) -> Literal["json", "table", "empty"]:
        """The format from its first bytes; the name is not trusted."""
        begin = self.head[0].removeprefix(UTF8_MARK).strip()
        if not begin or begin == b'""':  # the second is a table without columns
            return "empty"
        return "json" if begins_json(begin) else "table"

    @property
    def beginning(self) -> tuple[list[Any], list[str]]:
        """The first records of JSON, or the header of a table; both empty if it is neither."""
        for encoding in ("utf-8", "latin-1"):  # the names that identify an export are the same in all encodings
            part = replace(self, looked=self.head, encoding=encoding)
            try:
                return (first_records(part, _FIRST_RECORDS), []) if self.kind == "json" else ([], table_head(part)[1])
            except NotUtf8Error:
                continue
            except InputError:
                break
        return [], []


@dataclass(frozen=True)
class ExportFiles:
    """The files of an export.

    Attributes:
        path: the given path.
        parts: the files, in the order of their names.
        parquet: the Parquet files of a dataset on the hub, instead of parts.
    """

    path: Path
    parts: tuple[Part, ...]
    parquet: tuple[Path, ...] = ()

    @cached_property
    def beginning(self) -> Beginning:
        """The beginning by which the export is recognised."""
        if self.parquet:
            from rarevote.io.platforms.argilla import first_parquet_records

            return Beginning(first_parquet_records(self.parquet[0], _FIRST_RECORDS))
        for part in self.parts:
            # An annotator without answers has an empty file: use the next one.
            records, header = part.beginning
            if records or any(header):
                return Beginning(records, header, len(self.parts))
        return Beginning()

    def in_encoding(self, encoding: str) -> ExportFiles:
        """The same files with text in another encoding."""
        return replace(self, parts=tuple(replace(part, encoding=encoding) for part in self.parts))

    def only(self) -> Part:
        """The only part of an export that is a single file."""
        if not self.parts:
            raise InputError(f"{self.path}: Parquet, which this platform does not export")
        if len(self.parts) > 1:
            first, second, *_ = self.parts
            raise InputError(
                f"{self.path}: has {len(self.parts)} files ({first.stem}, {second.stem}, ...), but this platform "
                "exports one: give that file"
            )
        return self.parts[0]

    def check_whole(self) -> None:
        """Raise an error if a file was not recognised because it is damaged or truncated."""
        for part in self.parts:
            if part.kind == "json":
                for number, _ in walk_json(part):
                    if number == _FIRST_RECORDS:
                        return
            if part.kind != "empty":
                return


def table_head(part: Part) -> tuple[Dialect, list[str]]:
    """Dialect and header of a table, from its first bytes.

    Raises:
        InputError: there is no header line.
    """
    head, complete = part.head
    first, newline, _ = head.partition(b"\n")
    if b"\0" in first or not (newline or complete):
        raise InputError(f"{part.title}: not a text file")
    try:
        text = head.decode(part.encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = head[: error.start].count(b"\n") + 1
        raise NotUtf8Error(f"{part.title}: line {line:,}", part.encoding) from None
    if not text:
        raise InputError(f"{part.title}: the file is empty")
    try:
        return header_of(text, complete=complete)
    except csv.Error as error:
        raise InputError(f"{part.title}: the header cannot be read: {error}") from None
