"""One file per annotator: the name of the file, or of its folder, is the annotator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rarevote.errors import InputError, ParameterError, how, shown
from rarevote.io.duck import identifier
from rarevote.io.read.detect import name_without_endings
from rarevote.io.read.options import ReadOptions

if TYPE_CHECKING:
    from rarevote.io.platforms.export_files import Part
    from rarevote.io.read.sources import FileTable

PERSON = "(whose file it is)"  # the column; longer than the name of any real column


def person_of(path: str | Path, named_by: Literal["file", "folder"]) -> str:
    """The annotator of a file.

    >>> person_of("round 1/ana.csv.gz", "file"), person_of("ana/votes.csv", "folder")
    ('ana', 'ana')
    """
    path = Path(path)
    return name_without_endings(path) if named_by == "file" else path.absolute().parent.name


def person_of_part(part: Part, named_by: Literal["file", "folder"]) -> str:
    """The annotator of a file of an export; it can be a member of a zip."""
    return part.stem if named_by == "file" else person_of(part.title, named_by)


def with_person(table: FileTable, named_by: Literal["file", "folder"]) -> FileTable:
    """The table of one file with the column :data:`PERSON`."""
    (file,) = table.files
    text = "'" + person_of(file.title, named_by).replace("'", "''") + "'"
    value = f"to_json({text})" if table.form == "json" else text
    reader = f"(SELECT *, {value} AS {identifier(PERSON)} FROM {table.reader})"
    return replace(table, reader=reader, columns=[*table.columns, PERSON])


def by_person(options: ReadOptions) -> ReadOptions:
    """The options of tables that have the column :data:`PERSON`.

    Raises:
        ParameterError: another column is named as that of the worker, or the table has one column per annotator.
    """
    option = how("worker_from", "--worker-from")
    if "worker" in (options.columns or {}):
        raise ParameterError(f"{option} names the workers, and so does a column: drop one of them")
    if options.is_wide:
        raise ParameterError(f"{option} needs one file per person, not one column per annotator")
    return replace(options, columns={**(options.columns or {}), "worker": PERSON})


def check_persons(person_by_file: Mapping[str, str], named_by: Literal["file", "folder"]) -> None:
    """Refuse files if two belong to the same annotator.

    Raises:
        InputError: two have the same name.
    """
    seen: dict[str, str] = {}
    for path, person in person_by_file.items():
        if person in seen:
            other = "folder" if named_by == "file" else "file"
            instead = how(f'worker_from="{other}"', f"--worker-from {other}")
            raise InputError(
                f"{path}: {shown(person)} has a {named_by} already, {seen[person]}: rename one of them, or take the "
                f"names of the {other}s: {instead}"
            )
        seen[person] = path
