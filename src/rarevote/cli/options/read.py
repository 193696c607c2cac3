"""The votes a verb works on: one set of options for all verbs, and what they read.

A verb that reads labels is decorated with ``@takes(Reading)`` (:mod:`rarevote.cli.options.groups`); it gets a
:class:`Reading` as its first argument, and its command line gets the argument LABELS and the options that say what
the files are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rarevote.cli.convert import (
    From,
    GoldColumn,
    IncludePredictions,
    Multilabel,
    PredictionColumns,
    Question,
    export_summary,
    tell_export,
)
from rarevote.cli.options.common import (
    Abstain,
    Classes,
    Columns,
    FileFormat,
    HasHeader,
    Keep,
    LabelsFiles,
    Missing,
    Sheet,
    Show,
    Wide,
    parse_columns,
)
from rarevote.cli.show import say
from rarevote.errors import ColumnsError, InputError, ParameterError, warn_user

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rarevote.crowd.annotations import Annotations
    from rarevote.io.platforms import Export


@dataclass(frozen=True)
class Reading:
    """What the command line says about the labels."""

    PANEL: ClassVar[str] = "What the labels are"

    labels: LabelsFiles
    columns: Columns = None
    show: Show = None
    keep: Keep = "all"
    missing: Missing = "error"
    abstain: Abstain = None
    classes: Classes = None
    wide: Wide = False
    file_format: FileFormat = None
    has_header: HasHeader = True
    sheet: Sheet = None
    platform: From = None
    question: Question = None
    multilabel: Multilabel = False
    include_predictions: IncludePredictions = False
    prediction_columns: PredictionColumns = None
    gold_column: GoldColumn = None

    @property
    def title(self) -> str:
        """What messages call the input."""
        first = "standard input" if self.labels[0] == "-" else self.labels[0]
        return first + (f" and {len(self.labels) - 1} more" if len(self.labels) > 1 else "")

    def read(self) -> Crowd:
        """Read the votes; an input without any is an error."""
        for name, value, known in (
            ("keep", self.keep, ("all", "first", "last", "error")),
            ("missing", self.missing, ("error", "drop")),
        ):
            if value not in known:
                raise ParameterError(f"{name} must be {', '.join(known)}, got {value!r}")
        platform = self.platform or self._detected()
        crowd = self._read_files() if platform is None else self._read_export(platform)
        if not crowd.annotations.n_annotations:
            raise InputError(f"{self.title}: no annotations")
        self._warn_of_empty_classes(crowd.annotations)
        return crowd

    def _warn_of_empty_classes(self, crowd: Annotations) -> None:
        """A class named by hand that got no vote may be meant, or misspelled."""
        import numpy as np

        from rarevote.crowd.names import listed, unmatched

        if self.classes:
            voted = crowd.classes[np.bincount(crowd.label, minlength=crowd.n_classes) > 0]
            strange = unmatched(self.classes, voted)
            if strange:
                warn_user(f"nobody voted for {listed(map(repr, strange))} (--class): votes are for {listed(voted)}")

    # -- the two kinds of input --------------------------------------------------------------------------------------

    def _read_files(self) -> Crowd:
        from rarevote.io.read.votes import read_label_files

        for option, value in (
            ("--question", self.question),
            ("--multilabel", self.multilabel),
            ("--include-predictions", self.include_predictions),
            ("--prediction-column", self.prediction_columns),
            ("--gold-column", self.gold_column),
        ):
            if value:
                raise ParameterError(f"{option} is for a platform's export, and {self.title} is none; see --from")
        found = read_label_files(
            self.labels,
            columns=parse_columns(self.columns),
            file_format=self.file_format,
            has_header=self.has_header,
            sheet=self.sheet,
            wide=self.wide,
            show=self.show or (),
            **self._policies(),
        )
        return Crowd(found.annotations, self.title, found.shown, has_header=self.has_header)

    def _read_export(self, platform: str) -> Crowd:
        import numpy as np

        from rarevote.io.platforms import export_annotations, read_export

        if len(self.labels) > 1 or self.labels[0] == "-":
            raise InputError(f"{self.title}: give one export of {platform} at a time, as a file")
        export = read_export(
            self.labels[0],
            platform=platform,
            question=self.question,
            multilabel=self.multilabel,
            include_predictions=self.include_predictions,
            prediction_columns=self.prediction_columns or (),
            show=[name for names in self.show or () for name in names.split(",")],
            gold_column=self.gold_column,
        )
        crowd, gold, by_task = export_annotations(export, **self._policies())
        shown = {}
        for name, texts in by_task.items():
            shown[name] = np.empty(crowd.n_tasks, dtype=object)
            shown[name][:] = [texts.get(task, "") for task in crowd.tasks.tolist()]
        return Crowd(crowd, self.title, shown, gold, export)

    def _policies(self) -> dict[str, Any]:
        return {
            "classes": self.classes,
            "abstain": self.abstain or (),
            "keep": self.keep,
            "missing": self.missing,
        }

    def _detected(self) -> str | None:
        """The platform, where nothing on the command line says that this is a plain table."""
        plain = self.columns or self.wide or self.file_format or self.sheet or not self.has_header
        if plain or len(self.labels) > 1 or not Path(self.labels[0]).exists():
            return None
        from rarevote.io.platforms import detect

        return detect(self.labels[0])


@dataclass(frozen=True)
class Crowd:
    """Votes as a verb gets them.

    Attributes:
        annotations: the encoded votes.
        title: what messages call the input.
        shown: columns carried along, one text per task, in the order of ``annotations.tasks``.
        gold: known answers that came with a platform's export.
        export: the export, where the input is one.
        has_header: whether the files begin with the names of their columns.
    """

    annotations: Annotations
    title: str
    shown: dict[str, NDArray[Any]] = field(default_factory=dict)
    gold: dict[Any, Any] = field(default_factory=dict)
    export: Export | None = None
    has_header: bool = True

    def check_way_back(self, path: Path) -> None:
        """Refuse, before anything is computed, what could not be written back."""
        from rarevote.io.platforms.write_back import check_way_back

        if self.export is None:
            raise InputError(f"--back-out needs an export of Label Studio or Argilla, and {self.title} is none")
        check_way_back(self.export.platform, path, self.export.details)

    def write_back(self, rows: dict[str, Any], path: Path, model_version: str) -> int:
        """Write labels as predictions that the platform of the export imports; returns how many items got one."""
        from rarevote.io.platforms.write_back import write_back

        assert self.export is not None
        scores = rows["confidence"].tolist()
        return write_back(self.export, rows["task"], rows["label"], scores, path, model_version=model_version)

    def tell(self) -> None:
        """Say what was read."""
        crowd = self.annotations
        if self.export is not None:
            tell_export(export_summary(self.export))
            say()
        say(
            f"{self.title}: {crowd.n_annotations:,} annotations, {crowd.n_tasks:,} tasks, {crowd.n_workers:,} workers, "
            f"{crowd.n_classes} classes ({crowd.n_annotations / crowd.n_tasks:.1f} votes per task)"
        )
        if crowd.n_dropped:
            say(f"{crowd.n_dropped:,} rows left out (missing values or repeated pairs)")
        if crowd.abstentions:
            say(f"{sum(crowd.abstentions.values()):,} abstentions by {len(crowd.abstentions):,} workers")
        if len(crowd.unanswered):
            first = crowd.unanswered[0]
            say(f"{len(crowd.unanswered):,} tasks got abstentions only and have no result (first: {first})")

    def known(self, path: str | Path) -> dict[Any, Any]:
        """Known labels from a file, with ids and labels of the kind that the votes have.

        A table of text says "7" where Parquet or JSON says 7; they mean the same task. Where the votes have no header
        line, the known labels need none either: a task and its label.
        """
        from rarevote.crowd.names import in_kind
        from rarevote.io.read.votes import read_truth_file

        try:
            truth = read_truth_file(path)
        except ColumnsError:
            if self.has_header:
                raise
            truth = read_truth_file(path, columns={"task": "1", "label": "2"}, has_header=False)
        tasks = in_kind(truth, self.annotations.tasks)
        labels = in_kind(truth.values(), self.annotations.classes)
        return dict(zip(tasks, labels, strict=True))
