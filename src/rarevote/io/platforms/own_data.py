"""What a platform shows of its items: the data of a task, the fields of a record, as they are in the export."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rarevote.io.platforms.base import Export
from rarevote.io.platforms.parts import open_export
from rarevote.io.platforms.registry import PLATFORMS


def own_data(export: Export) -> dict[str, Mapping[str, Any]]:
    """The data of every task of an export, read from its file again; neither answers nor predictions are among them.

    Empty for platforms whose exports do not tell what is shown from what is said: there ``show`` names it.

    Raises:
        InputError: the file cannot be read any more.
    """
    platform = PLATFORMS[export.platform]
    if not platform.takes_labels:
        return {}
    items = dict(platform.part(".way_back").items(export, open_export(export.path)))
    if not export.multilabel:
        return items
    # The task is a choice of an item, and whoever answers must know which.
    parts = zip(export.task, export.shown["item"], export.shown["choice"], strict=True)
    return {task: {**items.get(item, {}), "choice": choice} for task, item, choice in parts}
