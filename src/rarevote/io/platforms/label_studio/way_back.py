"""Labels back to Label Studio: its tasks with the aggregated label as a prediction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rarevote.errors import InputError
from rarevote.io.platforms.base import Export, as_text
from rarevote.io.platforms.json_records import walk_json
from rarevote.io.platforms.label_studio.controls import PATH_MARK
from rarevote.io.platforms.parts import ExportFiles
from rarevote.io.platforms.write_back import ItemLabels

_KEPT = ("id", "data", "meta")  # of a task


def check(details: Mapping[str, Any]) -> None:
    """Refuse the short exports, by the details of an :class:`Export`."""
    if "control" not in details:
        raise InputError(
            "labels can go back to Label Studio only from its full JSON export: JSON-MIN and CSV do not say what is "
            "data and what the controls are called. Export as JSON"
        )


def labelled(
    export: Export, files: ExportFiles, results: Mapping[str, ItemLabels], model_version: str
) -> Iterator[tuple[dict[str, Any], bool]]:
    """The tasks of an export with their labels, and whether each got one."""
    part = files.only()
    control = export.details["control"]
    for number, record in walk_json(part, export.encoding):
        task = as_text(record.get("id"), f"{part.title}: record {number:,}: id")
        result = results.get(task or "")
        kept = {key: record[key] for key in _KEPT if key in record}
        predictions = []
        if result is not None:
            entry = {
                "id": f"rarevote-{task}",
                "from_name": export.question,
                "to_name": control["to_name"],
                "type": control["type"],
                "value": _value(export, control["type"], result.labels),
            }
            chosen = [entry] if result.labels else []  # nothing ticked is an empty result
            prediction = {"model_version": model_version, "score": result.score, "result": chosen}
            predictions.append({key: value for key, value in prediction.items() if value is not None})
        yield {**kept, "predictions": predictions}, result is not None


def items(export: Export, files: ExportFiles) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every task of an export with its data; none from the short exports, which do not say what is data."""
    if "control" not in export.details:
        return
    part = files.only()
    for number, record in walk_json(part, export.encoding):
        task = as_text(record.get("id"), f"{part.title}: record {number:,}: id")
        if task is not None and isinstance(record.get("data"), dict):
            yield task, record["data"]


def _value(export: Export, kind: str, labels: list[str]) -> dict[str, Any]:
    values = [export.values.get(label, label) for label in labels]
    if not values:
        return {}
    if kind == "taxonomy":
        paths = [value if isinstance(value, list) else value.split(PATH_MARK) for value in values]
        return {"taxonomy": paths}
    if kind == "pairwise":
        return {"selected": values[0]}
    return {kind: values if kind == "choices" else values[0]}
