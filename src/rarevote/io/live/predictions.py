"""Predictions for the tasks of a project, from a result and its export."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rarevote.crowd.names import as_name_array, find_name, some_names
from rarevote.errors import InputError, ParameterError, how
from rarevote.io.platforms.base import Export
from rarevote.io.platforms.label_studio import check
from rarevote.io.platforms.write_back import labelled_records
from rarevote.io.read.results import ResultFile

_CLASS = "p_"  # prefix of a column of probabilities, before the class
_DIGITS = 4  # digits of a number in a column: smaller changes are not sent


def predictions(
    export: Export, tasks: Iterable[Any], labels: Iterable[Any], scores: Iterable[float | None]
) -> list[dict[str, Any]]:
    """One record for each labelled task: ``{"task", "result", "score"}``.

    Args:
        export: the full JSON export of the project behind the labels.
        tasks: the tasks of the result.
        labels: the label of each; tasks whose label is empty are left out.
        scores: the probability of each label.

    Raises:
        InputError: it is not a full export of Label Studio, or a task's id is not a number.
    """
    check_export(export)
    rows = [row for row in zip(tasks, labels, scores, strict=True) if str(row[1]) != ""]
    found = []
    for record, has_label in labelled_records(export, *(zip(*rows, strict=True) if rows else ((), (), ()))):
        if has_label:
            (one,) = record["predictions"]
            found.append({"task": _number(record["id"]), "result": one["result"], "score": one.get("score")})
    return found


def check_export(export: Export) -> None:
    """Refuse an export whose labels cannot be pushed."""
    if export.platform != "label-studio":
        raise InputError(f"{export.path}: not an export of Label Studio; rarevote pull label-studio writes one")
    check(export.details)


def predictions_of_file(result: ResultFile, export: Export) -> list[dict[str, Any]]:
    """The predictions of a result that was read from a file."""
    return predictions(export, result.labels, result.labels.values(), _scores(result))


def _scores(result: ResultFile) -> list[float | None]:
    if "p:" not in result.classes:
        return [None] * len(result.labels)
    place = {name: k for k, name in enumerate(result.classes["p:"])}
    p = result.probabilities["p:"]
    return [float(p[row, place[label]]) if label in place else None for row, label in enumerate(result.labels.values())]


class Column:
    """A column of numbers for the tasks' data.

    Args:
        text: ``p_CLASS`` for the probability of a class, and after ``=`` another name for the column, if wanted.

    Example:
        >>> Column("p_defect").name, Column("p_defect=risk").name
        ('p_defect', 'risk')
    """

    def __init__(self, text: str) -> None:
        what, sign, name = text.rpartition("=") if "=" in text else (text, "", text)
        if not what.startswith(_CLASS) or len(what) == len(_CLASS) or (sign and not name.strip()):
            option = how("column", "--column")
            raise ParameterError(f"{option} must be p_CLASS, such as p_defect, or p_defect=NAME, got {text!r}")
        self.of_class, self.name = what.removeprefix(_CLASS), name.strip()

    def numbers(self, classes: Iterable[Any], tasks: Iterable[Any], p: Any, export: Export) -> dict[int, float]:
        """The numbers by task.

        Args:
            classes: names of the classes.
            tasks: names of the tasks.
            p: probability of every class, (n_tasks, n_classes).
            export: the export of the tasks.

        Raises:
            ParameterError: there is no such class.
            InputError: a task is a choice of an item, which has several probabilities.
        """
        names = [str(name) for name in classes]
        k = find_name(self.of_class, as_name_array(names))
        if k is None:
            raise ParameterError(f"no class is called {self.of_class!r}; the classes are {some_names(names)}")
        if export.multilabel:
            raise InputError("a column has one number per item, but with several choices an item has several")
        return {_number(task): round(float(p[row, k]), _DIGITS) for row, task in enumerate(tasks)}

    def numbers_of_file(self, result: ResultFile, export: Export) -> dict[int, float]:
        """The numbers from a result that was read from a file.

        Raises:
            InputError: it has no probabilities.
        """
        if "p:" not in result.classes:
            raise InputError("the result has no columns p:<class>, so there are no numbers for the column")
        return self.numbers(result.classes["p:"], result.labels, result.probabilities["p:"], export)


def _number(task: Any) -> int:
    try:
        return int(task)
    except ValueError:
        raise InputError(f"{task!r} is not the number of a Label Studio task; push labels of a pulled export") from None
