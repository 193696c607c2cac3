"""Exports of labelling platforms as rows of task, worker, label.

:data:`PLATFORMS` is the only list of platforms, and importing it imports no reader. To
add one: write a module with its name and a function ``recognises(beginning)``, which recognises its files, and a
function ``read(files, options)``; if labels can be written back, also ``check`` and ``labelled``, and if it marks what
is shown ``items`` (:mod:`.write_back`). Add a line here, a fixture and a section of ``docs/howto/platforms.md``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rarevote.errors import InputError, ParameterError, how, warn_user
from rarevote.io.platforms.base import Export, NotUtf8Error, ReadAgain
from rarevote.io.read.options import ReadOptions

if TYPE_CHECKING:
    from rarevote.crowd.annotations import Annotations
    from rarevote.io.platforms.export_files import Beginning, ExportFiles


__all__ = ["PLATFORMS", "Export", "Platform", "detect", "export_annotations", "read_export", "recognise"]


@dataclass(frozen=True)
class Platform:
    """One platform.

    Attributes:
        name: name on the command line; with underscores, the name of its module.
        title: name in messages and docs.
        columns: a pattern that matches a column in the header of each of its tables; "" if it writes no tables.
        keys: a pattern that matches a key in one of the first records of its JSON files; "" if it writes none.
        inner: the same, for keys at any depth.
        loose: its files look like those of others: if two platforms recognise a file, the other one is chosen.
        has_predictions: its exports can contain predictions of models.
        takes_labels: labels can be written back to it.
        has_person_files: it is read from several files together, one per person.
    """

    name: str
    title: str
    columns: str = ""
    keys: str = ""
    inner: str = ""
    loose: bool = False
    has_predictions: bool = False
    takes_labels: bool = False
    has_person_files: bool = False

    def module(self) -> Any:
        """Its module; imported here, when it is needed."""
        return import_module(f"rarevote.io.platforms.{self.name.replace('-', '_')}")

    def recognises(self, beginning: Beginning) -> bool:
        """Whether a file is of this platform; its module is imported only if the names in the file allow it."""
        for pattern, names in (
            (self.columns, beginning.header),
            (self.keys, beginning.keys),
            (self.inner, beginning.inner_keys),
        ):
            if pattern and any(map(re.compile(pattern).fullmatch, names)):
                return bool(self.module().recognises(beginning))
        return False


PLATFORMS = {
    platform.name: platform
    for platform in (
        Platform(
            "label-studio", "Label Studio", "annotator", "annotator|data|tasks", has_predictions=True, takes_labels=True
        ),
        Platform(
            "argilla",
            "Argilla",
            inner=r"(.*\.)?responses|.*[.-]suggestion|user_id|annotation_agent",
            has_predictions=True,
            takes_labels=True,
        ),
        Platform("prodigy", "Prodigy", keys="_input_hash|_task_hash", takes_labels=True),
        Platform(
            "doccano",
            "doccano",
            "annotation_approver|text|data|filename",
            "text|data|filename",
            loose=True,
            takes_labels=True,
            has_person_files=True,
        ),
        Platform("mturk", "Amazon Mechanical Turk", r"Answer\..*"),
        Platform("toloka", "Toloka", "OUTPUT:.*"),
        Platform("appen", "Appen (CrowdFlower, Figure Eight)", "_unit_id", "results"),
        Platform("inspect-ai", "Inspect", "score_.*", "eval"),
        Platform("asreview", "ASReview", "asreview_label", has_person_files=True),
    )
}


_WINDOWS = "cp1252"


def detect(path: str | Path) -> str | None:
    """The platform of a file, detected from its content, or None.

    Only the beginning of the file is read. A plain table of tasks, workers and labels belongs to no platform.
    """
    from rarevote.io.platforms.containers import open_export

    try:
        return recognise(open_export(Path(path)))
    except InputError:
        return None


def recognise(files: ExportFiles) -> str | None:
    """The platform whose export these files are, or None; see :func:`detect`."""
    for loose in (False, True):
        asked = (platform for platform in PLATFORMS.values() if platform.loose == loose)
        if found := [platform.name for platform in asked if platform.recognises(files.beginning)]:
            return found[0] if len(found) == 1 else None
    return None


def read_export(export: str | Path | ExportFiles, options: ReadOptions | None = None, **given: Any) -> Export:
    """Read the answers to one question of an export.

    Args:
        export: a file (also ``.gz``), a zip, or a folder; or its files, if they are already open.
        options: how to read.
        **given: fields of :class:`ReadOptions`, instead of ``options``: ``platform``, ``question``, ``show`` ...

    Raises:
        InputError: the file cannot be used; the message says where and what to do.

    A file that is not UTF-8 is read as Windows-1252, with a warning.
    """
    options = options or ReadOptions(**given)
    options = replace(options, show=[name for names in options.show for name in names.split(",")])
    if options.platform is not None and options.platform not in PLATFORMS:
        raise ParameterError(f"no platform is called {options.platform!r}; the platforms are {', '.join(PLATFORMS)}")
    files = _opened(export)
    reader = _reader(files, options.platform)
    if options.include_predictions and not options.prediction_columns and not reader.has_predictions:
        raise ParameterError(
            f"an export of {reader.title} has no predictions of models; name the column that has them: "
            + how("prediction_columns=[...]", "--prediction-column NAME")
        )
    if options.ground_truth and reader.name != "label-studio":
        raise ParameterError(f"an export of {reader.title} marks no annotation as ground truth")
    if options.annotator_columns and reader.name != "inspect-ai":
        raise ParameterError(
            f"{how('annotator_columns', '--annotator-column')} needs a table with one column per annotator; this is "
            f"an export of {reader.title}"
        )
    if options.worker_from and not reader.has_person_files:
        raise ParameterError(
            f"{how('worker_from', '--worker-from')} needs tables, one file per person; an export of {reader.title} "
            "names its annotators"
        )
    try:
        return _read_question(reader, files, options)
    except NotUtf8Error as error:
        # Files that were opened and saved on Windows; five bytes are invalid in this encoding, and then the first error
        # is raised.
        try:
            found = _read_question(reader, files.in_encoding(_WINDOWS), options)
        except NotUtf8Error:
            raise error from None
        reason = str(error).split(";")[0]
        warn_user(f"{reason}: read as Windows-1252 instead; check letters with accents")
    return replace(found, encoding=_WINDOWS)


def _read_question(reader: Platform, files: ExportFiles, options: ReadOptions) -> Export:
    """The answers to the chosen question, which in some exports is only known after reading."""
    read = reader.module().read
    try:
        found: Export = read(files, options)
    except ReadAgain as again:
        found = read(files, replace(options, question=again.question))
    return found


def _opened(export: str | Path | ExportFiles) -> ExportFiles:
    from rarevote.io.platforms.containers import open_export
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
            f"this is a table of tasks, workers and labels, read it as a table: {table}"
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
        export: the result of :func:`read_export`.
        **policies: ``classes``, ``abstain``, ``keep`` and ``missing`` of
            :meth:`rarevote.crowd.annotations.Annotations.from_arrays`.
    """
    import numpy as np

    from rarevote.crowd.annotations import Annotations
    from rarevote.crowd.population import with_items

    columns = (np.array(values, dtype=object) for values in (export.task, export.worker, export.label))
    votes = Annotations.from_arrays(*columns, **policies)
    return with_items(votes, export.unanswered), export.gold, export.shown_by_task()
