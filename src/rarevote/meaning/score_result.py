"""A result that was written to a file, against the truth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rarevote.crowd.names import spelling
from rarevote.errors import InputError, ParameterError
from rarevote.io.read.frames import read_truth
from rarevote.io.read.results import read_result
from rarevote.meaning.compare import score_probabilities
from rarevote.meaning.metrics import score as score_labels


def score_result(
    result: str | Path, truth: Any, *, rare: str | None = None, columns: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """A result file against the truth, in figures; ids and labels are compared as text.

    Args:
        result: a file with columns task and label, and perhaps ``p:<class>``.
        truth: the labels to score against: a file, a mapping, a Series or a frame.
        rare: the class that matters; the least frequent true one if not given.
        columns: which column of the result is which.

    Raises:
        InputError: the truth names none of the tasks.
        ParameterError: ``rare`` is no class.
    """
    found = read_result(result, columns=columns)
    known = {spelling(task): spelling(label) for task, label in read_truth(truth).items()}
    items = [task for task in found.labels if task in known]
    if not items:
        first, other = next(iter(found.labels)), next(iter(known), None)
        raise InputError(
            f"{result}: the truth names none of its tasks ({first!r} there, {other!r} in the truth): check ids"
        )
    true, labels = [known[task] for task in items], [found.labels[task] for task in items]
    scores = score_labels(true, labels, unanswered="")
    recall, precision = (
        {str(name): value for name, value in part.items()} for part in (scores.recall, scores.precision)
    )
    if rare is not None and rare not in {*recall, *precision}:
        raise ParameterError(
            f"rare: no class is called {rare!r}; there are {', '.join(list({**recall, **precision})[:12])}"
        )
    of_interest = str(scores.minority_class) if rare is None else rare
    n_true, n_given = Counter(true), Counter(labels)
    summary: dict[str, Any] = {
        "n_items": scores.n_items,
        "rare_class": of_interest,
        "rare_recall": recall.get(of_interest),
        "rare_precision": precision.get(of_interest),
        "balanced_accuracy": scores.balanced_accuracy,
        "macro_f1": scores.macro_f1,
        "accuracy": scores.accuracy,
        "recall": recall,
        "precision": precision,
        "n_true": {name: n_true[name] for name in {**recall, **precision}},
        "n_labelled": {name: n_given[name] for name in {**recall, **precision}},
        "n_unanswered": n_given[""],
        "truth_without_result": len(known) - len(items),
        "result_without_truth": len(found.labels) - len(items),
        "probabilities": {},
    }
    place = {task: row for row, task in enumerate(found.labels)}
    rows = [place[task] for task in items]
    for begin, table in found.probabilities.items():
        loss, error = score_probabilities(table[rows], found.classes[begin], true, labels)
        summary["probabilities"][begin.removesuffix(":")] = {
            "log_loss": loss,
            "calibration_error": None if error != error else error,  # JSON knows no NaN
        }
    return summary
