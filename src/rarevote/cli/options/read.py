"""The votes a verb works on: one set of options for all verbs, and what they read.

A verb that reads labels is decorated with ``@takes(Reading)`` (:mod:`rarevote.cli.options.common`); it gets a
:class:`Reading` as its first argument, and its command line gets the argument LABELS and the options that say what
the files are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

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
    one_of,
    parse_columns,
)
from rarevote.cli.show import export_summary, reading_files, say, tell_export, tell_notes
from rarevote.crowd.words import counted
from rarevote.io.platforms import PLATFORMS

if TYPE_CHECKING:
    from rarevote.io.read.crowd import Crowd

From = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="NAME",
        help=f"The platform: {', '.join(PLATFORMS)}. Detected if not given.",
        autocompletion=one_of(*PLATFORMS),
    ),
]
Question = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Which question, if several were asked; with aggregate, all answers every one of them."
    ),
]
FreeText = Annotated[
    bool, typer.Option("--free-text", help="Take a question although its answers are free text, each a class.")
]
Multilabel = Annotated[
    bool, typer.Option("--multilabel", help="Several choices per answer: make one yes/no problem per choice.")
]
IncludePredictions = Annotated[
    bool,
    typer.Option("--include-predictions", help="Take models' predictions in as further workers (model:<version>)."),
]
PredictionColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--prediction-column",
        metavar="COLUMN",
        help="A column that holds what a model says, such as an LLM judge: a further worker of an export, marked as a "
        "model in a wide table. Repeatable.",
    ),
]
GoldColumn = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="The column with gold, where the format names none.")
]


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
    free_text: FreeText = False

    @property
    def title(self) -> str:
        """What messages call the input."""
        first = "standard input" if self.labels[0] == "-" else self.labels[0]
        return first + (f" and {len(self.labels) - 1} more" if len(self.labels) > 1 else "")

    @property
    def columns_by_role(self) -> dict[str, str] | None:
        """Which column is which."""
        return parse_columns(self.columns)

    def options(self) -> dict[str, Any]:
        """The options as :func:`rarevote.read` takes them."""
        return {
            "columns": self.columns_by_role,
            "show": tuple(self.show or ()),
            "keep": self.keep,
            "missing": self.missing,
            "abstain": tuple(self.abstain or ()),
            "classes": self.classes,
            "wide": self.wide,
            "file_format": self.file_format,
            "has_header": self.has_header,
            "sheet": self.sheet,
            "platform": self.platform,
            "question": self.question,
            "multilabel": self.multilabel,
            "include_predictions": self.include_predictions,
            "prediction_columns": tuple(self.prediction_columns or ()),
            "gold_column": self.gold_column,
            "free_text": self.free_text,
        }

    def read(self, *, quiet: bool = False) -> Crowd:
        """Read the votes, and say what was read."""
        from rarevote.io.read.crowd import read

        with reading_files(self.title, quiet=quiet):
            crowd = read(list(self.labels), **self.options())
        if not quiet:
            tell_crowd(crowd)
        return crowd


def tell_crowd(crowd: Crowd) -> None:
    """Say what was read."""
    votes = crowd.annotations
    if crowd.export is not None:
        tell_export(export_summary(crowd.export))
        say()
    tell_notes(crowd.notes)
    say(
        f"{crowd.title}: {counted(votes.n_annotations, 'annotation')}, {counted(votes.n_tasks, 'task')}, "
        f"{counted(votes.n_workers, 'worker')}, {counted(votes.n_classes, 'class', 'classes')} "
        f"({votes.n_annotations / votes.n_tasks:.1f} votes per task)"
    )
    if votes.n_dropped:
        say(f"{votes.n_dropped:,} rows left out (missing values or repeated pairs)")
    if votes.abstentions:
        say(f"{sum(votes.abstentions.values()):,} abstentions by {len(votes.abstentions):,} workers")
    if len(votes.unanswered):
        first = votes.unanswered[0]
        say(f"{len(votes.unanswered):,} tasks got abstentions only and have no result (first: {first})")
