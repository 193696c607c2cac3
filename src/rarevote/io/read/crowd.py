"""Reading of votes: any input (a file, several, a folder, an export, a frame, arrays) becomes a crowd."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.arguments import named_arguments, with_named_arguments
from rarevote.crowd.encoding import Names
from rarevote.crowd.names import (
    as_name_array,
    in_kind,
    pair_name,
    positions_of,
    some_names,
    spellings_of_one,
    unmatched,
    values_by_name,
)
from rarevote.crowd.population import population, unvoted_note
from rarevote.crowd.steps import doing
from rarevote.crowd.words import counted, facts_html
from rarevote.errors import ColumnsError, InputError, ParameterError, how, warn_user
from rarevote.io.platforms.base import MODEL
from rarevote.io.read.detect import UTF8_MARK, FileInfo, begins_json, inspect_file, is_stream
from rarevote.io.read.frames import Origin, read_annotations, read_problems, read_truth
from rarevote.io.read.options import ReadArguments, ReadOptions

if TYPE_CHECKING:
    from rarevote.io.platforms import Export
    from rarevote.io.platforms.export_files import ExportFiles

_FOR_EXPORTS = ("question", "ground_truth", "include_predictions", "free_text")
_FOR_TABLES = ("show", "file_format", "has_header", "sheet", "platform", "worker_from")
_MAX_GROUPS = 3  # how many groups of spellings a warning names
_FOR_FILES = ("prediction_columns", "gold_column", "annotator_columns")


@with_named_arguments
@dataclass(frozen=True, eq=False)
class Crowd:
    """Votes, and everything read with them.

    Attributes:
        annotations: the encoded votes.
        title: the name of the input in messages.
        shown: columns to show, one text per item, in the order of :attr:`population`.
        gold: gold labels in the same data.
        models: the workers that are models, not people: those of predictions, and judges of a wide table.
        notes: notes on how the votes were read.
        export: the export, if the input is one.
        has_header: whether the files have a header line.
        columns: the columns that the user named, by role.
        source: the type of the data, so that results have the same type.
        files: the files, folders and patterns that the votes and gold were read from; no output replaces one.
        choices: the labels, if an answer can contain several: then each task is a pair of an item and a label, called
            ``<item>:<label>``, each vote a ``yes`` or a ``no``, and ``shown`` has the columns ``item`` and ``choice``.
            See :attr:`by_label`.
        choice: the label, if the crowd is that of one of several labels.
        arguments: the command-line arguments for the votes and their options, for a command that starts an audit.
        aggregate_arguments: likewise for a command that aggregates them, with the options of fit and decision.
    """

    annotations: Annotations
    title: str = "your data"
    shown: dict[str, NDArray[Any]] = field(default_factory=dict)
    gold: dict[Any, Any] = field(default_factory=dict)
    models: frozenset[Any] = frozenset()
    notes: tuple[str, ...] = ()
    export: Export | None = None
    has_header: bool = True
    columns: Mapping[str, str] = field(default_factory=dict)
    source: Origin = field(default_factory=Origin)
    files: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    choice: str | None = None
    arguments: str = "LABELS"
    aggregate_arguments: str = "LABELS"

    @property
    def n_unvoted(self) -> int:
        """Number of items in the data that have no votes."""
        return len(self.annotations.unanswered)

    @cached_property
    def population(self) -> Names:
        """Names of all items in the data: those with votes (``annotations.tasks``), then those without."""
        return population(self.annotations)

    @property
    def n_items(self) -> int:
        """Number of items in the data; with several labels, each item counts once."""
        return len(set(self.shown["item"].tolist())) if self.choices else len(self.population)

    @cached_property
    def by_label(self) -> dict[str, Crowd]:
        """For a crowd with several labels, the crowd of each label, whose tasks are the items; otherwise empty."""
        from rarevote.io.read.labels import by_label

        return by_label(self) if self.choices else {}

    def __repr__(self) -> str:
        votes = str(self.annotations).removeprefix("Annotations(").removesuffix(")")
        unvoted = f", {counted(self.n_unvoted, 'item')} without votes" if self.n_unvoted else ""
        several = f", {counted(len(self.choices), 'label')}" if self.choices else ""
        return f"Crowd({self.title}: {votes}{unvoted}{several})"

    @property
    def is_jury(self) -> bool:
        """Whether models cast more than half of the votes."""
        votes = self.annotations
        of_model = np.array([name in self.models for name in votes.workers.tolist()], dtype=bool)
        return bool(self.models) and 2 * int(of_model[votes.worker].sum()) > votes.n_annotations

    def _repr_html_(self) -> str:
        votes = self.annotations
        facts = {"tasks": votes.n_tasks, "workers": votes.n_workers, "votes": votes.n_annotations}
        facts |= {"items without votes": self.n_unvoted} if self.n_unvoted else {}
        facts |= {"models among the workers": len(self.models), "gold": len(self.gold)}
        counts = votes.class_votes.tolist()
        rows = sorted(zip(votes.classes.tolist(), counts, strict=True), key=lambda row: -row[1])
        return facts_html(f"Crowd: {self.title}", facts, [["class", "votes"], *rows])

    def known(self, labels: Any) -> dict[Any, Any]:
        """Gold or truth by task, with ids and labels of the same types as in the votes.

        A column named in :attr:`columns` is used if gold or truth also has it.

        A text table has "7" where Parquet or JSON has 7; both mean the same task. If the votes have no header
        line, a file of gold or truth needs none either: it has a task and its label.

        Args:
            labels: a file, a mapping, a pandas Series indexed by task, a frame, or a tuple ``(task, label)``.

        Raises:
            InputError: a task has two different labels.
        """
        try:
            truth = read_truth(labels, prefer=self.columns if self.has_header else None)
        except ColumnsError:
            if self.has_header:
                raise
            from rarevote.io.read.votes import read_truth_file

            truth = read_truth_file(labels, columns={"task": "1", "label": "2"}, has_header=False)
        tasks = in_kind(truth, self.annotations.tasks)
        classes = in_kind(truth.values(), self.annotations.classes)
        return values_by_name(zip(tasks, classes, strict=True), "task")

    @cached_property
    def to_show(self) -> dict[str, NDArray[Any]]:
        """What to show an expert about the items of the population: ``shown``, or the data of an export.

        The data of an export are values of JSON, :data:`~rarevote.io.platforms.base.ABSENT` if a task lacks one.
        """
        if self.choice is not None:  # the expert must know which
            return self._own_to_show | {"choice": np.full(len(self.population), self.choice, dtype=object)}
        return self._own_to_show

    @property
    def _own_to_show(self) -> dict[str, NDArray[Any]]:
        if self.shown or self.export is None:
            return self.shown
        from rarevote.io.platforms.base import ABSENT
        from rarevote.io.platforms.write_back import own_data

        data, tasks = own_data(self.export), self.population.tolist()
        columns: dict[str, NDArray[Any]] = {}
        for row, task in enumerate(tasks):
            own = task if self.choice is None else pair_name(task, self.choice)
            for name, value in data.get(own, {}).items():
                if name not in columns:
                    columns[name] = np.full(len(tasks), ABSENT, dtype=object)
                columns[name][row] = value
        return columns

    def truth(self, labels: Any) -> dict[Any, Any]:
        """The truth to compare a result with, as :meth:`known` returns it.

        Raises:
            InputError: the truth is about other tasks, so there is nothing to compare.
        """
        known = self.known(labels)
        if known and not (positions_of(self.population, list(known)) >= 0).any():
            first, own = next(iter(known)), self.annotations.tasks[:1].tolist()[0]
            where = f"{labels}: " if isinstance(labels, (str, Path)) else ""
            raise InputError(
                f"{where}the truth has none of the tasks (its first is {first!r}, and the tasks look like {own!r}): "
                "check the file and the ids"
            )
        return known

    def with_annotations(self, annotations: Annotations) -> Crowd:
        """The crowd with other votes on the same population."""
        return replace(self, annotations=annotations)

    def with_items(self, items: Any, *, task_column: str | None = None) -> Crowd:
        """The same votes in the population of a list, as given in :attr:`ReadOptions.items`.

        Raises:
            InputError: items that have votes are not in the list.
        """
        from rarevote.io.read.items import join_items
        from rarevote.io.read.labels import with_listed_items

        if self.choices:
            return with_listed_items(self, items, task_column=task_column)
        named = task_column if self.has_header else None  # a column without a name has a number
        return self.with_population(join_items(self.annotations, items, task_column=named, has_header=self.has_header))

    def with_population(self, votes: Annotations) -> Crowd:
        """The crowd with votes that have further items without votes, for which nothing is shown."""
        place = {name: row for row, name in enumerate(self.annotations.unanswered.tolist(), votes.n_tasks)}
        rows = [*range(votes.n_tasks), *(place.get(name, -1) for name in votes.unanswered.tolist())]
        # Nothing is shown for an item that only the list names: its text is empty.
        shown = {name: as_name_array([*texts, ""])[rows] for name, texts in self.shown.items()}
        return replace(self, annotations=votes, shown=shown)

    def with_files(self, data: Any) -> Crowd:
        """The crowd with ``data`` added to its files, if these are file names."""
        # Absolute: the working folder can change before an output is written.
        found = (one if one == "-" or "://" in one else os.path.abspath(one) for one in _as_paths(data) or ())  # noqa: PTH100
        return replace(self, files=(*self.files, *found))

    def check_way_back(self, path: Path) -> None:
        """Refuse a crowd that cannot be written back to the platform, before anything is computed."""
        from rarevote.io.platforms import PLATFORMS
        from rarevote.io.platforms.write_back import check_way_back

        back = how("write_back", "--back-out")
        if self.export is None:
            able = some_names(platform.title for platform in PLATFORMS.values() if platform.takes_labels)
            raise InputError(f"{back} needs an export of {able}; {self.title} is not one")
        if self.choice is not None:
            every = how("fit_each(crowd)", "the command without --choice")
            raise InputError(f"{back} writes all choices of an item together: use {every}")
        check_way_back(self.export.platform, path, self.export.details)


@named_arguments(ReadOptions)
def read(data: Any, options: ReadOptions | None = None, **given: Unpack[ReadArguments]) -> Crowd:
    """Read votes from files, exports, frames, arrays or rows.

    Args:
        data: a file, several files, patterns, a folder, ``"-"`` for standard input, an export of a labelling platform;
            a pandas, polars or pyarrow frame or anything with ``__arrow_c_stream__``; a tuple of three arrays; a
            mapping of columns; rows as tuples (task, worker, label) or as dicts; :class:`Annotations`, or a crowd.
        options: how to read.
        **given: fields of :class:`ReadOptions`, instead of ``options``.

    Raises:
        InputError: there are no votes, or they cannot be used; the message says where and what to do.

    Example:
        >>> crowd = read([("a", "ann", "yes"), ("a", "bob", "no"), ("b", "ann", "no")])
        >>> crowd.annotations
        Annotations(2 tasks, 2 workers, 2 classes, 3 annotations)
    """
    crowd = read_or_empty(data, options, **given)
    if not crowd.annotations.n_annotations:
        raise InputError(f"{crowd.title}: no annotations. Give at least one vote: a task, a worker and a label")
    return crowd


def read_or_empty(data: Any, options: ReadOptions | None = None, **given: Unpack[ReadArguments]) -> Crowd:
    """As :func:`read`, but frames and arrays without rows give an empty crowd, which methods and metrics accept."""
    options = options or ReadOptions(**given)
    if isinstance(data, Crowd):
        return (
            data
            if options.items is None and options.choice is None
            else _of_choice(_in_population(data, options), options)
        )
    paths = _as_paths(data)
    if not isinstance(data, Annotations):
        doing("reading the votes" if paths is None else f"reading {title_of(paths)}")
    if paths is None:
        crowd = _from_memory(data, options)
    else:
        # Inspected once: the result is passed to the reader.
        is_file = len(paths) == 1 and not is_stream(paths[0]) and Path(paths[0]).is_file()
        found = inspect_file(Path(paths[0])) if is_file else None
        export = _export_in(paths, options, found)
        crowd = _from_files(paths, options, found) if export is None else _from_export(paths, export, options)
        if not crowd.annotations.n_annotations:
            raise InputError(f"{crowd.title}: no annotations")
        _warn_of_empty_classes(crowd.annotations, options.policies["classes"])
    _warn_of_spellings(crowd.annotations)
    crowd = replace(crowd, columns=dict(options.columns or {}))
    return _of_choice(_in_population(crowd, options).with_files(data).with_files(options.items), options)


def _of_choice(crowd: Crowd, options: ReadOptions) -> Crowd:
    """The crowd of the requested choice, or of all choices."""
    from rarevote.io.read.labels import one_label

    return crowd if options.choice is None else one_label(crowd, options.choice)


def _in_population(crowd: Crowd, options: ReadOptions) -> Crowd:
    """The crowd with the listed items, and a note on those without votes."""
    said = _unvoted(crowd)
    if options.items is not None:
        crowd = crowd.with_items(options.items, task_column=(options.columns or {}).get("task"))
    notes = [note for note in crowd.notes if note not in said]  # for a crowd that was read earlier
    return replace(crowd, notes=(*notes, *_unvoted(crowd)))


def _unvoted(crowd: Crowd) -> tuple[str, ...]:
    """The note on items without votes; with several labels, items without a vote on any label."""
    if not crowd.choices:
        return unvoted_note(crowd.annotations.n_tasks, crowd.n_unvoted)
    voted = len(set(crowd.shown["item"][: crowd.annotations.n_tasks].tolist()))
    return unvoted_note(voted, crowd.n_items - voted)


@named_arguments(ReadOptions)
def read_each(data: Any, options: ReadOptions | None = None, **given: Unpack[ReadArguments]) -> dict[str, Crowd]:
    """One crowd for each question of an export that looks like a choice, by the name of the question, best first.

    A question with several choices in an answer becomes one yes/no problem per choice, as with ``multilabel``.

    Args:
        data: a platform's export.
        options: how to read.
        **given: fields of :class:`ReadOptions`, instead of ``options``.

    Raises:
        InputError: no question looks like a choice, or the export cannot be read.
    """
    from rarevote.io.platforms.base import ALL
    from rarevote.io.platforms.questions import EveryQuestionError

    options = replace(options or ReadOptions(**given), question=ALL)
    try:
        only = read(data, options)  # a question with this name
    except EveryQuestionError as every:
        return {
            name: read(data, replace(options, question=name, multilabel=options.multilabel or several))
            for name, several in every.questions.items()
        }
    return {ALL: only}


def title_of(inputs: str | Path | Sequence[str | Path]) -> str:
    """The name of these inputs in messages."""
    paths = [str(inputs)] if isinstance(inputs, (str, Path)) else [*map(str, inputs)]
    first = "standard input" if paths[0] == "-" else paths[0]
    return first + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")


def _as_paths(data: Any) -> list[str] | None:
    """The file names, if the data are file names."""
    if isinstance(data, (str, Path)):
        return [str(data)]
    if isinstance(data, list) and data and all(isinstance(one, (str, Path)) for one in data):
        return [str(one) for one in data]
    return None


def _from_memory(data: Any, options: ReadOptions) -> Crowd:
    for_files = options.given(*_FOR_TABLES, *_FOR_EXPORTS, *_FOR_FILES)
    if for_files is not None:
        raise ParameterError(f"{for_files} needs files, but the data are a {type(data).__name__}")
    if options.wide and isinstance(data, (tuple, list, Annotations)):
        raise ParameterError(f"wide needs files or frames, but the data are a {type(data).__name__}")
    if options.multilabel and not isinstance(data, Annotations):
        problems, source = read_problems(data, options)
        votes = problems.annotations
        shown = problems.shown({})
        return Crowd(
            votes, "your data", shown, {}, called_models(votes), problems.notes, source=source, choices=problems.choices
        )
    annotations, source = read_annotations(data, options)
    return Crowd(annotations, models=called_models(annotations), notes=source.notes, source=source)


def _from_files(paths: list[str], options: ReadOptions, found: FileInfo | None) -> Crowd:
    from rarevote.io.read.paths import found_paths
    from rarevote.io.read.votes import read_label_files

    title = title_of(paths)
    for_exports = options.given(*_FOR_EXPORTS)
    if for_exports is not None:
        for path in paths:
            if not is_stream(path) and "://" not in path:
                found_paths(path)  # a missing file is a different error
        option = how(for_exports, "--" + for_exports.replace("_", "-"))
        named = how("platform", "--from")
        raise ParameterError(f"{option} needs a platform's export; {title} is not one, see {named}")
    return read_label_files(paths, options, found=found)


def _from_export(paths: list[str], files: str | ExportFiles, options: ReadOptions) -> Crowd:
    from rarevote.io.platforms import export_annotations, read_export

    title = title_of(paths)
    if (len(paths) > 1 and not options.worker_from) or is_stream(paths[0]):
        raise InputError(f"{title}: give one export of {options.platform} at a time, as a file")
    export = read_export(files, options)
    for caution in export.cautions:
        warn_user(f"{title}: {caution}")
    votes, gold, by_task = export_annotations(export, **options.policies)
    shown = {}
    for name, texts in by_task.items():
        shown[name] = as_name_array([texts.get(task, "") for task in population(votes).tolist()])
    return Crowd(votes, title, shown, dict(gold), export.models, export.notes, export, choices=export.choices)


def called_models(votes: Annotations) -> frozenset[str]:
    """Workers that ``convert`` marks as models."""
    return frozenset(name for name in votes.workers.tolist() if isinstance(name, str) and name.startswith(MODEL))


def _export_in(paths: list[str], options: ReadOptions, found: FileInfo | None) -> str | ExportFiles | None:
    """The export, if a platform is named or recognises the file, and no option says that it is a plain table."""
    if options.worker_from and (files := _person_files(paths, options)) is not None:
        return files
    path = Path(paths[0])
    plain = options.given("columns", "wide", "file_format", "sheet", "has_header")
    named = options.platform and paths[0]
    if found is not None and options.platform is None and not _may_be_export(found):
        return None
    if plain or len(paths) > 1 or is_stream(paths[0]) or not path.exists():
        return named
    from rarevote.io.platforms import recognise
    from rarevote.io.platforms.containers import open_export

    try:
        files = open_export(path, found)
    except InputError:
        if found is not None and found.is_archive:
            raise
        return named  # the reader reports the fault
    return files if named or recognise(files) is not None else None


def _person_files(paths: list[str], options: ReadOptions) -> ExportFiles | None:
    """The export that several files form together, one per person."""
    from rarevote.io.platforms import PLATFORMS, recognise
    from rarevote.io.platforms.containers import open_export
    from rarevote.io.read.paths import found_paths
    from rarevote.io.read.persons import check_persons, person_of_part

    if options.given("columns", "file_format", "sheet", "has_header", "annotator_columns", "wide"):
        return None
    try:
        found = [open_export(path) for given in paths if not is_stream(given) for path in found_paths(given)]
    except InputError:
        return None  # the reader reports the fault
    kinds = {recognise(files) for files in found}
    (kind, *others) = kinds or {None}
    if kind is None or others or not PLATFORMS[kind].has_person_files:
        return None
    parts = [part for files in found for part in files.parts]
    named_by = options.worker_from or "file"
    check_persons({part.title: person_of_part(part, named_by) for part in parts}, named_by)
    return replace(found[0], parts=tuple(parts))


def _may_be_export(found: FileInfo) -> bool:
    """Whether a platform recognises a column of a table; anything that is not a table can be an export."""
    from rarevote.io.platforms import PLATFORMS
    from rarevote.io.read.csv_text import header_of

    if found.kind not in ("csv", "tsv") or begins_json(found.head.removeprefix(UTF8_MARK).strip()):
        return True
    try:
        _, header = header_of(found.head.decode().removeprefix("\ufeff"), complete=found.complete)
    except (UnicodeDecodeError, csv.Error):
        return True
    patterns = [re.compile(platform.columns) for platform in PLATFORMS.values() if platform.columns]
    return any(pattern.fullmatch(name) for pattern in patterns for name in header)


def _warn_of_spellings(crowd: Annotations) -> None:
    """Warn about classes that seem to be one class in several spellings."""
    groups = spellings_of_one(crowd.classes.tolist())
    if groups:
        named = "; ".join(some_names(map(repr, group)) for group in groups[:_MAX_GROUPS])
        more = f" and {len(groups) - _MAX_GROUPS} more" if len(groups) > _MAX_GROUPS else ""
        warn_user(f"classes that differ only in spelling are several classes: {named}{more}. Use one spelling for each")


def _warn_of_empty_classes(crowd: Annotations, classes: Sequence[Any] | None) -> None:
    """Warn about a class that the user named and that has no votes: it may be misspelled."""
    if classes and crowd.n_annotations:
        voted = crowd.classes[crowd.class_votes > 0]
        strange = unmatched(list(classes), voted)
        if strange:
            named = f"{some_names(map(repr, strange))} ({how('classes', '--class')})"
            warn_user(f"no vote is for {named}: the classes with votes are {some_names(voted)}")
