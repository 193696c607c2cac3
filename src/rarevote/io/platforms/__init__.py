"""Exports of labelling platforms as rows of task, worker, label; :mod:`.registry` says which platforms there are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rarevote.errors import InputError, ParameterError, how, warn_user
from rarevote.io.platforms.base import Export, NotUtf8Error, Options, ReadAgain
from rarevote.io.platforms.registry import PLATFORMS, Platform

if TYPE_CHECKING:
    from rarevote.crowd.annotations import Annotations
    from rarevote.io.platforms.parts import ExportFiles

__all__ = ["PLATFORMS", "Export", "Platform", "detect", "export_annotations", "read_export", "recognise"]


def detect(path: str | Path) -> str | None:
    """The platform that a file comes from, by its content, or None.

    Only the beginning of the file is read. A plain table of tasks, workers and labels is none of the platforms.
    """
    from rarevote.io.platforms.parts import open_export

    try:
        return recognise(open_export(Path(path)))
    except InputError:
        return None


def recognise(files: ExportFiles) -> str | None:
    """The platform whose export these files are, or None; see :func:`detect`."""
    found = [platform for platform in PLATFORMS.values() if platform.recognises(files.beginning)]
    if len(found) > 1:
        found = [platform for platform in found if not platform.loose]
    return found[0].name if len(found) == 1 else None


def read_export(export: str | Path | ExportFiles, *, platform: str | None = None, **wanted: Any) -> Export:
    """Read the answers to one question of an export.

    Args:
        export: a file (also ``.gz``), a zip, or a folder; or its files, if somebody has looked at them already.
        platform: one of :data:`PLATFORMS`; detected if not given.
        **wanted: fields of :class:`~rarevote.io.platforms.base.Options`: ``question``, ``multilabel``, ``show`` ...

    Raises:
        InputError: the file cannot be used; the message says where and what to do.

    A file that is not UTF-8 is read as Windows-1252, with a warning.
    """
    options = Options(**wanted)
    if platform is not None and platform not in PLATFORMS:
        raise ParameterError(f"no platform is called {platform!r}; there is {', '.join(PLATFORMS)}")
    files = _opened(export)
    reader = _reader(files, platform)
    if options.include_predictions and not options.prediction_columns and not reader.has_predictions:
        raise ParameterError(
            f"an export of {reader.title} holds no predictions of models; name the column that does: "
            + how("prediction_columns=[...]", "--prediction-column NAME")
        )
    try:
        return _read_question(reader, files, options)
    except NotUtf8Error as error:
        # Files that were opened and saved on Windows; five bytes have no meaning there, and then the first error holds.
        try:
            found = _read_question(reader, files, replace(options, encoding="cp1252"))
        except NotUtf8Error:
            raise error from None
        reason = str(error).split(";")[0]
        warn_user(f"{reason}: read as Windows-1252 instead; check letters with accents")
    return found


def _read_question(reader: Platform, files: ExportFiles, options: Options) -> Export:
    """The answers to the question that is meant, which is not known in every export before it was read."""
    read = reader.part().read
    try:
        found: Export = read(files, options)
    except ReadAgain as again:
        found = read(files, replace(options, question=again.question))
    return found


def _opened(export: str | Path | ExportFiles) -> ExportFiles:
    from rarevote.io.platforms.parts import open_export
    from rarevote.io.read.detect import refuse_address

    if not isinstance(export, (str, Path)):
        return export
    refuse_address(export, "download the export first")
    return open_export(Path(export))


def _reader(files: ExportFiles, name: str | None) -> Platform:
    found = recognise(files)
    if name is None and found is None:
        files.check_whole()
        named = how("platform=...", "--from NAME")
        table = how("rarevote.read(path)", "rarevote aggregate FILE")
        raise InputError(
            f"{files.path}: not recognised as an export of {', '.join(PLATFORMS)}. Name the platform ({named}), or, if "
            f"this is a table of tasks, workers and labels, read it as it is: {table}"
        )
    if name is not None and found is not None and found != name:
        raise InputError(
            f"{files.path}: this is an export of {PLATFORMS[found].title}, not of {PLATFORMS[name].title}: "
            + how(f"platform={found!r}", f"--from {found}")
        )
    return PLATFORMS[name or str(found)]


def export_annotations(
    export: Export, **policies: Any
) -> tuple[Annotations, dict[str, str], dict[str, dict[str, str]]]:
    """An export as the encoded crowd, its gold by task, and its shown columns by name and task.

    Args:
        export: what :func:`read_export` gave.
        **policies: ``classes``, ``abstain``, ``keep`` and ``missing`` of
            :meth:`rarevote.crowd.annotations.Annotations.from_arrays`.
    """
    import numpy as np

    from rarevote.crowd.annotations import Annotations

    columns = (np.array(values, dtype=object) for values in (export.task, export.worker, export.label))
    return Annotations.from_arrays(*columns, **policies), export.gold, export.shown_by_task()
