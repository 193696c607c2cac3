"""The sources of a watch: files that grow, and a project on a server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from rarevote.audit.source import labels_sha256
from rarevote.errors import InputError
from rarevote.io.live.label_studio import Project, Pushed
from rarevote.io.live.predictions import Column, check_export, predictions
from rarevote.io.live.pulled import pull
from rarevote.io.read.crowd import Crowd, read
from rarevote.io.read.options import ReadOptions

if TYPE_CHECKING:
    from rarevote.result import Result

EXPORT = "export.json"


class Source(Protocol):
    """A source of votes."""

    @property
    def title(self) -> str:
        """Its identity, to recognise a folder of its results."""

    def fetch(self) -> str | None:
        """Make the votes readable; returns a text that changes if the votes may have changed, None without votes."""

    def read(self, options: ReadOptions) -> Crowd:
        """The votes."""

    def push(self, result: Result) -> Pushed | None:
        """Write the labels back; None if the source does not accept labels."""


class Files:
    """Files of votes.

    Args:
        labels: files, folders and patterns.
        items: the list of all items, if there is one.
    """

    def __init__(self, labels: Sequence[str], items: str | None = None) -> None:
        self.labels, self.items = list(labels), items

    @property
    def title(self) -> str:
        """The files, by their full paths."""
        return ", ".join(str(Path(one).absolute()) for one in self.labels)

    def fetch(self) -> str:
        """SHA-256 of the files."""
        return labels_sha256(self.labels, self.items)

    def read(self, options: ReadOptions) -> Crowd:
        """The votes."""
        return read(self.labels, options)

    def push(self, result: Result) -> Pushed | None:
        """Do nothing: files do not accept labels."""
        del result
        return None


class LabelStudioProject:
    """A project of Label Studio, stored in a file.

    Args:
        project: the project on its server.
        folder: the folder of the file.
        pushes: whether to write labels back as predictions.
        column: a column of the tasks' data to update.
    """

    def __init__(self, project: Project, folder: Path, *, pushes: bool = True, column: Column | None = None) -> None:
        self.project, self.path = project, folder / EXPORT
        self._pushes, self._column = pushes, column

    @property
    def title(self) -> str:
        """The project and its server."""
        return self.project.title

    def fetch(self) -> str | None:
        """Fetch what changed; None if nothing has been annotated yet."""
        found = pull(self.project, self.path)
        return labels_sha256([self.path], None) if found.annotations else None

    def read(self, options: ReadOptions) -> Crowd:
        """The votes."""
        crowd = read(self.path, options)
        if self._pushes and crowd.export is not None:
            check_export(crowd.export)
            if crowd.export.multilabel:
                raise InputError(
                    f"{self.title}: a watch can push only one label per item, but items here can have several. Use "
                    "--no-push, or pull, aggregate and push with --multilabel"
                )
        return crowd

    def push(self, result: Result) -> Pushed | None:
        """Replace our predictions."""
        export = result.fitted.crowd.export
        if not self._pushes or export is None:
            return None
        records = predictions(export, result.tasks.tolist(), result.labels.tolist(), result.confidence.tolist())
        column = None
        if self._column is not None:
            classes = result.fitted.annotations.classes.tolist()
            numbers = self._column.numbers(classes, result.tasks.tolist(), result.probabilities.p, export)
            column = (self._column.name, numbers)
        return self.project.push(records, column=column)
