"""Controls of a Label Studio project: which of them are questions, and what an answer to one chooses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rarevote.errors import InputError
from rarevote.io.platforms.base import as_text
from rarevote.io.platforms.collector import Collector
from rarevote.io.platforms.questions import name_question

PATH_MARK = " / "  # between the levels of a taxonomy, or of choices within choices
_ASKED = ("choices", "taxonomy")
_ON_REQUEST = ("rating", "number", "pairwise")
_REGION_KEYS = frozenset(
    {"x", "y", "start", "end", "points", "rle", "imageDataURL", "sequence", "ranges", "vertices", "item_index"}
)  # fmt: skip
_VALUE_KEYS = {"pairwise": "selected"}  # otherwise the key is the kind


def is_of_region(value: Any) -> bool:
    """Whether the value of a result has a position on the item."""
    return isinstance(value, Mapping) and not _REGION_KEYS.isdisjoint(value)


def kind_of(value: Mapping[str, Any]) -> str | None:
    """The kind of control of a value, if nothing else shows it."""
    return next((kind for kind in (*_ASKED, *_ON_REQUEST) if _VALUE_KEYS.get(kind, kind) in value), None)


@dataclass
class Controls:
    """The controls of a project.

    Attributes:
        kinds: the kind of each control that was answered.
        of_regions: controls that ask about parts of an item.
    """

    kinds: dict[str, str] = field(default_factory=dict)
    of_regions: set[str] = field(default_factory=set)

    def answer(
        self, name: str, kind: str, value: Any, where: str, collector: Collector, *, of_region: bool
    ) -> list[str] | None:
        """The choices of an answer, None if it does not answer the collected question."""
        self.kinds.setdefault(name, kind)
        on_request = kind in _ON_REQUEST and name == collector.options.question
        if (kind not in _ASKED and not on_request) or not isinstance(value, Mapping):
            return None
        if of_region:
            self.of_regions.add(name)
            return None
        collector.note(name, value.get(_VALUE_KEYS.get(kind, kind)))
        return _chosen(kind, value, f"{where}: {name}", collector) if collector.takes(name) else None

    def check(self, collector: Collector) -> None:
        """Refuse a question that is only asked about parts of items."""
        wanted = collector.options.question
        if wanted in self.of_regions and wanted not in collector.questions:
            raise InputError(
                f"{collector.title}: {wanted!r} is asked about regions (boxes, passages), not about whole tasks; "
                "votes on regions cannot be aggregated here"
            )

    def listed(self) -> str:
        """The controls, for the message that none of them is a question."""
        named = [
            f"{name!r} ({kind}{' of regions' if name in self.of_regions else ''})" for name, kind in self.kinds.items()
        ]
        takable = [name for name, kind in self.kinds.items() if kind in _ON_REQUEST]
        hint = f". To use one as classes: {name_question(takable[0])}" if takable else ""
        return (", ".join(named) or "none") + hint


def _chosen(kind: str, value: Mapping[str, Any], where: str, collector: Collector) -> list[str]:
    given = value.get(_VALUE_KEYS.get(kind, kind))
    names = []
    for item in given if isinstance(given, list) else [given]:
        if kind in _ASKED and isinstance(item, list):
            names.append(PATH_MARK.join(as_text(level, where) or "" for level in item))
            collector.values.setdefault(names[-1], item)
        else:
            names += collector.names([item], where)
    return names
