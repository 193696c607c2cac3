"""The options of reading, in one record that is passed to every reader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from rarevote.errors import ParameterError, how

if TYPE_CHECKING:
    from rarevote.crowd.annotations import Keep, Missing

_KNOWN = {
    "keep": ("all", "first", "last", "error"),
    "missing": ("error", "drop"),
    "nothing_ticked": ("no", "ignore"),
    "worker_from": ("file", "folder"),
    "ground_truth": ("votes", "gold", "ignore"),
}


class ReadArguments(TypedDict, total=False):
    """Fields of :class:`ReadOptions` as keyword arguments, for editors and type checkers; a test keeps them equal."""

    columns: Mapping[str, str] | None
    classes: Sequence[Any] | None
    abstain: Sequence[Any]
    keep: Keep
    missing: Missing
    show: Sequence[str]
    wide: bool
    annotator_columns: Sequence[str]
    worker_from: Literal["file", "folder"] | None
    file_format: str | None
    has_header: bool
    sheet: str | None
    platform: str | None
    question: str | None
    multilabel: bool | None
    choice: str | None
    nothing_ticked: Literal["no", "ignore"] | None
    separator: str | None
    choice_columns: Sequence[str]
    ground_truth: Literal["votes", "gold", "ignore"] | None
    include_predictions: bool
    free_text: bool
    prediction_columns: Sequence[str]
    gold_column: str | None
    items: Any


@dataclass(frozen=True)
class ReadOptions:
    """How to read votes.

    Attributes:
        columns: which column is which, such as ``{"task": "image"}``.
        classes: classes that exist even without votes; with ``multilabel``, choices.
        abstain: answers that are not votes, such as "not sure".
        keep: which of repeated (task, worker) pairs count: "all", "first", "last" or "error".
        missing: "error" or "drop", for rows with a missing id or label.
        show: columns to show in the result.
        wide: one row per task and one column per annotator.
        annotator_columns: the columns of a wide table that contain the votes of one annotator each, or patterns of
            their names; detected by default.
        worker_from: the worker is the name of the "file", or of its "folder": one per annotator.
        file_format: needed if the name of a file does not show it.
        has_header: whether delimited text has a header line.
        sheet: which sheet of a spreadsheet.
        platform: the labelling platform of an export; detected from its content by default.
        question: which question of an export.
        multilabel: several choices in one answer: one yes/no problem per choice. False means one choice in
            every answer, whatever it looks like; None decides by the data, and refuses them if they seem to have
            several.
        choice: with ``multilabel``, the only choice to read: a yes/no problem whose tasks are the items.
        nothing_ticked: with ``multilabel``, the meaning of an answer without any choice: "no" (to every choice) or
            "ignore" (left out). None means the convention of the platform, and "no" in a table.
        separator: with ``multilabel``, the separator between the choices of a cell; detected by default.
        choice_columns: with ``multilabel``, the columns of a table that say whether one choice each was ticked,
            or patterns of their names; detected by default.
        ground_truth: for an export of Label Studio, how to read annotations marked as ground truth: "votes", "gold" or
            "ignore". None reads them as gold, but as votes if a task has several or the whole export is marked.
        include_predictions: for an export, read models' predictions as further workers.
        free_text: for an export, accept a question whose answers are free text.
        prediction_columns: columns of an export or of a wide table with predictions of a model.
        gold_column: the column with gold.
        items: all items to be labelled, including those without votes: a file with a column of ids, or the ids as
            a list, an array, a Series or a column of a frame.
    """

    columns: Mapping[str, str] | None = None
    classes: Sequence[Any] | None = None
    abstain: Sequence[Any] = ()
    keep: Keep = "all"
    missing: Missing = "error"
    show: Sequence[str] = ()
    wide: bool = False
    annotator_columns: Sequence[str] = ()
    worker_from: Literal["file", "folder"] | None = None
    file_format: str | None = None
    has_header: bool = True
    sheet: str | None = None
    platform: str | None = None
    question: str | None = None
    multilabel: bool | None = None
    choice: str | None = None
    nothing_ticked: Literal["no", "ignore"] | None = None
    separator: str | None = None
    choice_columns: Sequence[str] = ()
    ground_truth: Literal["votes", "gold", "ignore"] | None = None
    include_predictions: bool = False
    free_text: bool = False
    prediction_columns: Sequence[str] = ()
    gold_column: str | None = None
    items: Any = None

    def __post_init__(self) -> None:
        for name in ("show", "annotator_columns", "choice_columns", "prediction_columns"):
            if isinstance(value := getattr(self, name), str):  # one column, not a sequence of letters
                object.__setattr__(self, name, (value,))
        for name, known in _KNOWN.items():
            value = getattr(self, name)
            if value not in known and not (value is None and getattr(type(self), name) is None):
                raise ParameterError(f"{name} must be {', '.join(known)}, got {value!r}")
        for name in ("nothing_ticked", "separator", "choice_columns"):
            if getattr(self, name) and not self.multilabel:
                option = how(name, "--" + name.replace("_", "-").removesuffix("s"))
                raise ParameterError(
                    f"{option} needs several choices in one answer: {how('multilabel=True', '--multilabel')}"
                )

    @property
    def is_wide(self) -> bool:
        """Whether the user says that a table has one column per annotator."""
        return self.wide or bool(self.annotator_columns)

    @property
    def policies(self) -> dict[str, Any]:
        """The options that apply to votes from any source."""
        policies = {name: getattr(self, name) for name in ("classes", "abstain", "keep", "missing")}
        return {**policies, "classes": None} if self.multilabel else policies  # the classes are yes and no

    def given(self, *names: str) -> str | None:
        """The first of these options that is not the default, or None."""
        return next((name for name in names if getattr(self, name) != getattr(DEFAULTS, name)), None)


DEFAULTS = ReadOptions()
