"""Which labelling platforms there are. Nothing else repeats the list, and reading it imports no reader.

To add a platform: write a module (or a folder) of its name with a function ``recognises(beginning)``, which knows its
files, and a function ``read(files, options)``; add a line here, a fixture and a section of ``docs/howto/platforms.md``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rarevote.io.platforms.parts import Beginning


@dataclass(frozen=True)
class Platform:
    """One platform.

    Attributes:
        name: on the command line; with underscores, that of its module.
        title: for people.
        columns: a pattern of which the header of each of its tables has a column; "" if it writes no tables.
        keys: a pattern of which each of its JSON files has a key in one of the first records; "" if it writes none.
        loose: its files look like those of others: where two platforms know a file, it is the other's.
        has_predictions: its exports may hold predictions of models.
        takes_labels: labels can go back to it; its folder has a module ``way_back``.
    """

    name: str
    title: str
    columns: str = ""
    keys: str = ""
    loose: bool = False
    has_predictions: bool = False
    takes_labels: bool = False

    def part(self, ending: str = "") -> Any:
        """Its module, or one of its folder; imported here, when it is needed."""
        return import_module(f"rarevote.io.platforms.{self.name.replace('-', '_')}{ending}")

    def recognises(self, beginning: Beginning) -> bool:
        """Whether a file is of this platform; its module is imported only if the names in the file say that it may."""
        keys = {key for record in beginning.records if isinstance(record, dict) for key in record}
        for pattern, names in ((self.columns, beginning.header), (self.keys, keys)):
            if pattern and any(map(re.compile(pattern).fullmatch, names)):
                return bool(self.part().recognises(beginning))
        return False


PLATFORMS = {
    platform.name: platform
    for platform in (
        Platform(
            "label-studio", "Label Studio", "annotator", "annotator|data", has_predictions=True, takes_labels=True
        ),
        Platform("argilla", "Argilla", keys=".*", has_predictions=True, takes_labels=True),
        Platform("prodigy", "Prodigy", keys="_input_hash|_task_hash", takes_labels=True),
        Platform(
            "doccano",
            "doccano",
            "annotation_approver|text|data|filename",
            "text|data|filename",
            loose=True,
            takes_labels=True,
        ),
        Platform("mturk", "Amazon Mechanical Turk", r"Answer\..*"),
        Platform("toloka", "Toloka", "OUTPUT:.*"),
        Platform("appen", "Appen (CrowdFlower, Figure Eight)", "_unit_id", "results"),
    )
}
