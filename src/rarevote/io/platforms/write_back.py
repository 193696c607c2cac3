"""Files for a platform to import: labels, and tasks for a person to answer.

Labels are written as predictions with scores, or as answers if the platform has no predictions. The items are read from
the export again, one by one, and written with the aggregated label instead of the answers, so that ids, data and the
names of the controls are the platform's own and the file can be imported unchanged. Answers are not written: the
platform has them, and importing them again would double or overwrite them.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from numpy.typing import NDArray

from rarevote.crowd.names import as_name_array
from rarevote.crowd.words import counted, listed
from rarevote.errors import InputError, ParameterError, warn_user
from rarevote.io.platforms import PLATFORMS
from rarevote.io.platforms.base import ABSENT, MODEL_NAME, ONE_CHOICE, YES, Export, shown_text
from rarevote.io.platforms.containers import open_export
from rarevote.io.platforms.export_files import ExportFiles
from rarevote.io.write.atomic import replacing

ENDINGS = (".json", ".jsonl", ".ndjson")


@dataclass(frozen=True)
class ItemLabels:
    """The aggregated answer to one item.

    Attributes:
        decided: yes or no to each choice that has a label, and its score; otherwise yes to the label of the item.
    """

    decided: dict[str, tuple[str, float | None]]

    @property
    def labels(self) -> list[str]:
        """The chosen labels."""
        return [choice for choice, (answer, _) in self.decided.items() if answer == YES]

    @property
    def scores(self) -> list[float | None]:
        """The probability of each chosen label."""
        return [score for answer, score in self.decided.values() if answer == YES]

    @property
    def score(self) -> float | None:
        """One score for the whole answer: that of its least certain part."""
        known = [score for score in self.scores if score is not None]
        return min(known) if known else None


def check_way_back(platform: str, path: Path, details: Mapping[str, Any] | None = None) -> None:
    """Refuse what could not be written, before anything is computed.

    Args:
        platform: the platform's name.
        path: the file to write.
        details: details of the :class:`Export`, if known.
    """
    if platform not in PLATFORMS or not PLATFORMS[platform].takes_labels:
        able = listed([name for name, one in PLATFORMS.items() if one.takes_labels])
        raise InputError(f"labels can be written back to {able}, not to {platform}")
    if details is not None:
        PLATFORMS[platform].module().check(details)
    if path.suffix.lower() not in ENDINGS:
        raise InputError(f"{path}: labels are written back as JSON; use {', '.join(ENDINGS)}")


def write_back(
    export: Export,
    tasks: Iterable[Any],
    labels: Iterable[Any],
    scores: Iterable[float | None],
    path: str | Path,
    *,
    model_version: str = MODEL_NAME,
) -> int:
    """Write the items of an export with their aggregated labels, for the platform to import.

    Args:
        export: the export that was aggregated, of a platform that accepts labels; its file must still exist.
        tasks: the tasks of the result, as in ``export.task``.
        labels: the label of each.
        scores: the probability of each label.
        path: a ``.json`` file (one list) or a ``.jsonl`` file (one record per line); replaced only after everything is
            written.
        model_version: the name that the platform shows for the predictions.

    Returns:
        The number of items with a label.

    Raises:
        InputError: the platform does not accept labels, or the file cannot be written.
    """
    path = Path(path)
    check_way_back(export.platform, path, export.details)
    if path.resolve() == Path(export.path).resolve():
        raise ParameterError(f"{path} is the export itself; write to another file")
    records = labelled_records(export, tasks, labels, scores, model_version=model_version)
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8") as handle:
        return _write(records, handle, as_list=path.suffix.lower() == ".json")


def labelled_records(
    export: Export,
    tasks: Iterable[Any],
    labels: Iterable[Any],
    scores: Iterable[float | None],
    *,
    model_version: str = MODEL_NAME,
) -> Iterator[tuple[dict[str, Any], bool]]:
    """The items of an export with their aggregated labels, in the format of the platform, and whether each has one.

    Arguments are as for :func:`write_back`.
    """
    results = _by_item(export, tasks, labels, scores)
    records: Iterator[tuple[dict[str, Any], bool]] = (
        PLATFORMS[export.platform].module().labelled(export, _files(export), results, model_version)
    )
    return records


def _files(export: Export) -> ExportFiles:
    return open_export(export.path).in_encoding(export.encoding)


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
) -> dict[str, ItemLabels]:
    """Results by item of the platform; the yes/no problems of one item are combined into one answer.

    An item of which a choice has no label is left out, unless each record of the platform is about one choice.
    """
    rows = list(zip(map(str, tasks), map(str, labels), map(_finite, scores), strict=True))
    if not export.multilabel:
        return {task: ItemLabels({label: (YES, score)}) for task, label, score in rows}
    parts: dict[str, tuple[str, str]] = {}
    for problems, shown in ((export.task, export.shown), (export.unanswered, export.shown_unanswered)):
        parts.update(zip(problems, zip(shown["item"], shown["choice"], strict=True), strict=True))
    results: dict[str, ItemLabels] = {}
    for task, label, score in rows:
        if task in parts:
            item, choice = parts[task]
            results.setdefault(item, ItemLabels({})).decided[choice] = label, score
    if export.details.get(ONE_CHOICE):
        return results
    n_choices = Counter(item for item, _ in parts.values())
    whole = {item: result for item, result in results.items() if len(result.decided) == n_choices[item]}
    if n_partial := len(results) - len(whole):
        warn_user(
            f"{counted(n_partial, 'item has', 'items have')} no label for some choices, so no label is written for "
            f"{'it' if n_partial == 1 else 'them'}: {PLATFORMS[export.platform].title} would read such a choice as "
            "not chosen"
        )
    return whole


def _finite(score: float | None) -> float | None:
    return round(float(score), 6) if score is not None and math.isfinite(score) else None


# --------------------------------------------------------------------------------------------------------------------
# what a platform shows of its items


def own_data(export: Export) -> dict[str, Mapping[str, Any]]:
    """The data of every task of an export, read from its file again; without answers and predictions.

    Empty for platforms whose exports do not separate data from answers: use ``show`` for these.

    Raises:
        InputError: the file can no longer be read.
    """
    items_of = getattr(PLATFORMS[export.platform].module(), "items", None)
    if items_of is None:
        return {}
    items = dict(items_of(export, _files(export)))
    if not export.multilabel:
        return items
    # The task is a choice of an item, and the person who answers must know which.
    own: dict[str, Mapping[str, Any]] = {}
    for tasks, shown in ((export.task, export.shown), (export.unanswered, export.shown_unanswered)):
        for task, item, choice in zip(tasks, shown["item"], shown["choice"], strict=True):
            own[task] = {**items.get(item, {}), "choice": choice}
    return own


# --------------------------------------------------------------------------------------------------------------------
# tasks for a person to answer


#: the key with our name of a task in Label Studio, since an import gives it a new id
TASK_KEY = "task"


def values_to_show(shown: Mapping[str, NDArray[Any]], row: int) -> dict[str, Any]:
    """The values to show for one task, by its position in the population."""
    return {str(name): values[row] for name, values in shown.items() if row < len(values) and values[row] is not ABSENT}


def shown_columns(
    shown: Mapping[str, NDArray[Any]], rows: Iterable[int], taken: Collection[str]
) -> dict[str, NDArray[Any]]:
    """The columns to show for the tasks at these positions, as text; a column with one of our names is renamed.

    >>> shown_columns({"text": ["a rail", "a crack"], "label": [7, None]}, [1, 0], taken=["task", "label"])
    {'text': array(['a crack', 'a rail'], dtype=object), 'show:label': array(['', '7'], dtype=object)}
    """
    places = list(rows)
    return {
        f"show:{name}" if name in taken else name: as_name_array([shown_text(values[row]) for row in places])
        for name, values in shown.items()
    }


def write_records(records: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Write tasks for a platform to import, completely or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(list(records), ensure_ascii=False, indent=1), encoding="utf-8")


def label_studio_task(task: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """A task in Label Studio's import format; data with one of our names are renamed.

    >>> label_studio_task(7, {"text": "a rail", "task": "x"})
    {'data': {'task': '7', 'text': 'a rail', 'show:task': 'x'}}
    """
    return {"data": {TASK_KEY: str(task), **{_free(name): value for name, value in values.items()}}}


def _free(name: str) -> str:
    return f"show:{name}" if name == TASK_KEY else name


def argilla_record(task: Any, values: Mapping[str, Any], metadata: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A record of Argilla (version 2) without an answer.

    >>> argilla_record("a", {"text": "a rail"})["fields"]
    {'text': 'a rail'}
    """
    return {
        "id": str(task),
        "fields": {name: shown_text(value) for name, value in values.items()} or {"task": str(task)},
        "metadata": dict(metadata or {}),
        "suggestions": {},
        "responses": {},
        "vectors": {},
    }
