"""Labels back to the platform they came from, as predictions with scores: Label Studio's tasks, Argilla's suggestions.

The items are read from the export again, one by one, and written with the aggregated label in place of the answers, so
that ids, data and the names of the controls are the platform's own and the file can be imported as it is. Answers are
not written: the platform has them, and importing them again would double or overwrite them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from rarevote.errors import InputError, ParameterError
from rarevote.io.platforms import argilla, label_studio
from rarevote.io.platforms.argilla_records import SINGLE, record_id, walk_records, with_suggestion
from rarevote.io.platforms.base import YES, Export, as_text
from rarevote.io.platforms.json_records import walk_json
from rarevote.io.platforms.label_studio_controls import PATH_MARK
from rarevote.io.platforms.parts import one_part
from rarevote.io.write.atomic import replacing

ENDINGS = (".json", ".jsonl", ".ndjson")
_KEPT = ("id", "data", "meta")  # of a Label Studio task


@dataclass(frozen=True)
class _Result:
    """The aggregated answer to one item: the labels chosen, and how sure each is."""

    labels: list[str]
    scores: list[float | None]

    @property
    def score(self) -> float | None:
        """One score for the whole answer: that of its least certain part."""
        known = [score for score in self.scores if score is not None]
        return min(known) if known else None


def check_way_back(platform: str, path: Path, details: Mapping[str, Any] | None = None) -> None:
    """Refuse, before anything is computed, what could not be written.

    Args:
        platform: the platform's name.
        path: the file to be written.
        details: those of the :class:`Export`, where it is known.
    """
    if platform not in _WRITERS:
        raise InputError(f"labels can go back to {' and '.join(_WRITERS)}, not to {platform}")
    if platform == label_studio.NAME and details is not None and "control" not in details:
        raise InputError(
            "labels can go back to Label Studio only from its full JSON export: JSON-MIN and CSV do not say what is "
            "data and what the controls are called. Export as JSON"
        )
    if platform == argilla.NAME and details is not None and details.get("form") == SINGLE:
        raise InputError(
            "records with a single annotation cannot take suggestions; move the dataset to Argilla 2 first"
        )
    if path.suffix.lower() not in ENDINGS:
        raise InputError(f"{path}: labels go back as JSON; use {', '.join(ENDINGS)}")


def write_back(
    export: Export,
    tasks: Iterable[Any],
    labels: Iterable[Any],
    scores: Iterable[float | None],
    path: str | Path,
    *,
    model_version: str = "rarevote",
) -> int:
    """Write the items of an export with their aggregated labels, for the platform to import.

    Args:
        export: the export that was aggregated, from Label Studio or Argilla; its file must still be there.
        tasks: the tasks of the result, as in ``export.task``.
        labels: the label of each.
        scores: the probability of each label.
        path: a ``.json`` file (one list) or a ``.jsonl`` file (one record per line); replaced only once all is written.
        model_version: the name that the platform shows for the predictions.

    Returns:
        How many items got a label.

    Raises:
        InputError: the platform takes no labels, or the file cannot be written.
    """
    path = Path(path)
    check_way_back(export.platform, path, export.details)
    results = _by_item(export, tasks, labels, scores)
    if path.resolve() == Path(export.path).resolve():
        raise ParameterError(f"{path} is the export itself; write to another file")
    records = _WRITERS[export.platform](export, results, model_version)
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8") as handle:
        return _write(records, handle, as_list=path.suffix.lower() == ".json")


def _write(records: Iterator[tuple[dict[str, Any], bool]], handle: IO[str], *, as_list: bool) -> int:
    labelled = 0
    opened, between, closed = ("[\n", ",\n", "\n]\n") if as_list else ("", "\n", "\n")
    handle.write(opened)
    for number, (record, has_label) in enumerate(records):
        handle.write(between if number else "")
        handle.write(json.dumps(record, ensure_ascii=False, default=str))
        labelled += has_label
    handle.write(closed)
    return labelled


def _by_item(
    export: Export, tasks: Iterable[Any], labels: Iterable[Any], scores: Iterable[float | None]
) -> dict[str, _Result]:
    """Results by item of the platform; the yes/no problems of one item are one answer again."""
    rows = list(zip(map(str, tasks), map(str, labels), map(_finite, scores), strict=True))
    if not export.multilabel:
        return {task: _Result([label], [score]) for task, label, score in rows}
    parts = dict(zip(export.task, zip(export.shown["item"], export.shown["choice"], strict=True), strict=True))
    results: dict[str, _Result] = {}
    for task, label, score in rows:
        if task in parts:
            item, choice = parts[task]
            result = results.setdefault(item, _Result([], []))
            if label == YES:
                result.labels.append(choice)
                result.scores.append(score)
    return results


def _finite(score: float | None) -> float | None:
    return round(float(score), 6) if score is not None and math.isfinite(score) else None


# --------------------------------------------------------------------------------------------------------------------
# Label Studio


def _label_studio(
    export: Export, results: Mapping[str, _Result], model_version: str
) -> Iterator[tuple[dict[str, Any], bool]]:
    part = one_part(export.path)
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
                "value": _label_studio_value(export, control["type"], result.labels),
            }
            chosen = [entry] if result.labels else []  # nothing ticked is an empty result
            prediction = {"model_version": model_version, "score": result.score, "result": chosen}
            predictions.append({key: value for key, value in prediction.items() if value is not None})
        yield {**kept, "predictions": predictions}, result is not None


def _label_studio_value(export: Export, kind: str, labels: list[str]) -> dict[str, Any]:
    values = [export.values.get(label, label) for label in labels]
    if not values:
        return {}
    if kind == "taxonomy":
        paths = [value if isinstance(value, list) else value.split(PATH_MARK) for value in values]
        return {"taxonomy": paths}
    if kind == "pairwise":
        return {"selected": values[0]}
    return {kind: values if kind == "choices" else values[0]}


# --------------------------------------------------------------------------------------------------------------------
# Argilla


def _argilla(
    export: Export, results: Mapping[str, _Result], model_version: str
) -> Iterator[tuple[dict[str, Any], bool]]:
    several = export.multilabel or export.details.get("several", False)
    for number, fields in walk_records(export.path, export.encoding):
        item = record_id(fields, number, f"{export.path}: record {number:,}")
        result = results.get(item)
        value: Any = None
        score: Any = None
        if result is not None:
            values = [export.values.get(label, label) for label in result.labels]
            value, score = (values, result.scores) if several else (values[0], result.score)
        agent = None if result is None else model_version
        yield with_suggestion(fields, export.question, value, score, agent), result is not None


_WRITERS: dict[str, Callable[[Export, Mapping[str, _Result], str], Iterator[tuple[dict[str, Any], bool]]]] = {
    label_studio.NAME: _label_studio,
    argilla.NAME: _argilla,
}
