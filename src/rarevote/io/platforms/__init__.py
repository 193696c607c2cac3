"""Exports of labelling platforms as rows: Label Studio, Argilla, Prodigy, doccano, MTurk, Toloka, Appen.

One module per platform. Each has a ``NAME``, a ``TITLE``, a function ``recognises`` that knows its files by their first
records or their header, and a function ``read``. To add a platform: write such a module and add it to ``PLATFORMS``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rarevote.errors import InputError, ParameterError, RarevoteWarning
from rarevote.io.platforms import appen, argilla, doccano, label_studio, mturk, prodigy, toloka
from rarevote.io.platforms.argilla_records import parquet_files, walk_records
from rarevote.io.platforms.base import Export, Options
from rarevote.io.platforms.json_records import walk_json
from rarevote.io.platforms.parts import NotUtf8Error, Part, find_parts
from rarevote.io.platforms.table_records import open_table
from rarevote.io.read.remote import refuse_address

if TYPE_CHECKING:
    from rarevote.crowd.annotations import Annotations, Keep, Missing

__all__ = ["PLATFORMS", "Export", "Platform", "detect", "export_annotations", "read_export"]

_FIRST_RECORDS = 5
_WITH_PREDICTIONS = (label_studio.NAME, argilla.NAME)


@dataclass(frozen=True)
class Platform:
    """One platform: its name on the command line, its name for people, and what reads its files."""

    name: str
    title: str
    recognises: Callable[[list[Any], list[str]], bool]
    read: Callable[[Path, Options], Export]


PLATFORMS = {
    module.NAME: Platform(module.NAME, module.TITLE, module.recognises, module.read)
    for module in (label_studio, argilla, prodigy, doccano, mturk, toloka, appen)
}


def detect(path: str | Path) -> str | None:
    """The platform that a file comes from, by its content, or None.

    Only the beginning of the file is read. A plain table of tasks, workers and labels is none of the platforms.
    """
    path = Path(path)
    records, header = _beginning(path)
    found = [platform.name for platform in PLATFORMS.values() if platform.recognises(records, header)]
    if not found and doccano.lists_documents(header) and _is_packed_together(path):
        return doccano.NAME  # its older tables are known only by there being one for each annotator
    if len(found) > 1:
        # A text with a list of labels is all that doccano is known by, and others may have such data.
        found = [name for name in found if name != doccano.NAME]
    return found[0] if len(found) == 1 else None


def _is_packed_together(path: Path) -> bool:
    return len(find_parts(path)) > 1


def _beginning(path: Path) -> tuple[list[Any], list[str]]:
    """The first records of a JSON file, or the header of a table; both empty if it is neither."""
    if parquet_files(path):
        try:
            return [record for _, record in islice(walk_records(path), _FIRST_RECORDS)], []
        except InputError:
            return [], []
    try:
        parts = find_parts(path)
    except InputError:
        return [], []
    for part in parts:
        # An annotator who has done nothing has an empty file: the next one tells.
        records, header = _beginning_of(part)
        if records or any(header):
            return records, header
    return [], []


def _beginning_of(part: Part) -> tuple[list[Any], list[str]]:
    records: list[Any] = []
    for encoding in ("utf-8", "cp1252"):
        try:
            records = []
            for _, record in islice(walk_json(part, encoding), _FIRST_RECORDS):
                records.append(record)
            return records, []
        except NotUtf8Error:
            continue
        except InputError:
            break
    # A file that breaks after its first record is still of its platform: the reader says what is wrong with it.
    return (records, []) if records else ([], _header(part))


def _header(part: Part) -> list[str]:
    for encoding in ("utf-8", "cp1252"):
        try:
            return open_table(part, encoding, repeated_names=True).header
        except NotUtf8Error:
            continue
        except InputError:
            break
    return []


def read_export(
    path: str | Path,
    *,
    platform: str | None = None,
    question: str | None = None,
    multilabel: bool = False,
    include_predictions: bool = False,
    prediction_columns: Sequence[str] = (),
    show: Sequence[str] = (),
    gold_column: str | None = None,
) -> Export:
    """Read the answers to one question of an export.

    Args:
        path: the export: a file (also ``.gz``), a zip, or a folder.
        platform: one of :data:`PLATFORMS`; detected if not given.
        question: which question, with or without the platform's prefix (``Answer.``, ``OUTPUT:``); needed where
            several were asked.
        multilabel: make one yes/no problem per choice, for questions with several choices per answer. The task is
            then ``<item>:<choice>``, and the columns ``item`` and ``choice`` are added to what is shown.
        include_predictions: take the predictions of models (Label Studio, Argilla's suggestions) as further workers,
            named ``model:<version>``.
        prediction_columns: columns or keys that hold what a model says, such as an LLM judge's verdict; each is a
            further worker, named ``model:<column>``.
        show: columns or keys to carry along, such as the text of an item.
        gold_column: the column or key with known answers, where the platform has no fixed one.

    Raises:
        InputError: the file cannot be used; the message says where and what to do.

    A file that is not UTF-8 is read as Windows-1252, with a warning.
    """
    path = Path(path)
    refuse_address(path, "download the export first")
    if not path.exists():
        raise InputError(f"{path}: no such file")
    reader = _reader(path, platform)
    if include_predictions and not prediction_columns and reader.name not in _WITH_PREDICTIONS:
        raise ParameterError(
            f"an export of {reader.title} holds no predictions of models; name the column that does: "
            "prediction_columns=[...] (--prediction-column NAME)"
        )
    options = Options(
        question,
        multilabel,
        include_predictions,
        tuple(prediction_columns),
        tuple(dict.fromkeys(show)),
        gold_column,
    )
    try:
        return reader.read(path, options)
    except NotUtf8Error as error:
        # Files that were opened and saved on Windows; five bytes have no meaning there, and then the first error holds.
        try:
            export = reader.read(path, replace(options, encoding="cp1252"))
        except NotUtf8Error:
            raise error from None
        reason = str(error).split(";")[0]
        warnings.warn(
            f"{reason}: read as Windows-1252 instead; check letters with accents", RarevoteWarning, stacklevel=2
        )
        return export


def _reader(path: Path, name: str | None) -> Platform:
    if name is not None and name not in PLATFORMS:
        raise ParameterError(f"no platform is called {name!r}; there is {', '.join(PLATFORMS)}")
    found = detect(path)
    if name is None:
        if found is None:
            _check_whole(find_parts(path))
            raise InputError(
                f"{path}: not recognised as an export of {', '.join(PLATFORMS)}. Name the platform (--from), or, if "
                "this is a table of tasks, workers and labels, read it as it is: rarevote aggregate FILE"
            )
        return PLATFORMS[found]
    if found is not None and found != name:
        raise InputError(
            f"{path}: this is an export of {PLATFORMS[found].title}, not of {PLATFORMS[name].title}: --from {found}"
        )
    return PLATFORMS[name]


def _check_whole(parts: Sequence[Part]) -> None:
    """Raise what is wrong with a file, where it is not known because it is damaged or cut off."""
    for part in parts:
        if part.kind() == "json":
            for _ in islice(walk_json(part), _FIRST_RECORDS):
                pass
        if part.kind() != "empty":
            return


def export_annotations(
    export: Export,
    *,
    classes: Sequence[Any] | None = None,
    abstain: Sequence[Any] = (),
    keep: Keep = "all",
    missing: Missing = "error",
) -> tuple[Annotations, dict[str, str], dict[str, dict[str, str]]]:
    """An export as the encoded crowd, its known answers by task, and its shown columns by name and task.

    Args:
        export: what :func:`read_export` gave.
        classes: see :meth:`rarevote.crowd.annotations.Annotations.from_arrays`.
        abstain: see there.
        keep: see there.
        missing: see there.
    """
    import numpy as np

    from rarevote.crowd.annotations import Annotations

    columns = (np.array(values, dtype=object) for values in (export.task, export.worker, export.label))
    crowd = Annotations.from_arrays(*columns, classes=classes, abstain=abstain, keep=keep, missing=missing)
    return crowd, export.gold, export.shown_by_task()
