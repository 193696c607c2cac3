"""How a fit did against the truth: its decision, its ranking, and the same rule of decision for everybody."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rarevote.crowd.names import sort_labels
from rarevote.crowd.numerics import balanced_codes
from rarevote.meaning import ranking
from rarevote.meaning.metrics import score
from rarevote.methods.base import Estimator

#: figures of a decision
SCORES = ("minority_recall", "minority_precision", "balanced_accuracy", "macro_f1", "accuracy")
#: figures of probabilities
RANKS = (
    *("average_precision", "mean_average_precision", "roc_auc", "log_loss", "ece"),
    *("r_precision", "flags_90", "flags_95"),
)


def score_fit(fitted: Estimator, truth: Mapping[Any, Any]) -> dict[str, Any]:
    """Everything that a cell keeps of a fit, on the tasks with truth.

    A true class that nobody voted for is a class: its probability is 0, and its items count as missed. Where nothing
    got the rarest class, its precision counts as 0.

    Returns:
        The :data:`SCORES` of the method's own labels; ``balanced``, the same of the balanced rule on its
        probabilities; the :data:`RANKS`; ``minority_items``, how many items have the rarest true class; ``flagged``,
        how many got it; and ``curve``, the corners of flags against found of the rarest class.
    """
    crowd = fitted.annotations_
    names = crowd.classes.tolist()
    probabilities = np.asarray(getattr(fitted, "reported_", fitted.posterior_), dtype=np.float64)
    even = balanced_codes(probabilities, crowd.votes())
    place = {task: number for number, task in enumerate(crowd.tasks.tolist())}
    items = [place[task] for task in truth if task in place]
    true = [label for task, label in truth.items() if task in place]
    own = _decided(true, [names[code] for code in fitted.label_codes()[items]])

    classes = [*names, *sort_labels(set(true).difference(names))]
    number = {name: code for code, name in enumerate(classes)}
    codes = np.array([number[label] for label in true])
    p = np.zeros((len(items), len(classes)))
    p[:, : len(names)] = probabilities[items]
    rare = number[own.pop("minority_class")]
    curve = ranking.flag_curve(p[:, rare], codes == rare)
    needed = ranking.flags_needed(p[:, rare], codes == rare, (0.9, 0.95))
    balanced = _decided(true, [names[code] for code in even[items]])
    return {
        **own,
        "balanced": {name: balanced[name] for name in (*SCORES, "flagged")},
        "minority_items": curve.total,
        "average_precision": ranking.average_precision(p[:, rare], codes == rare),
        "mean_average_precision": ranking.mean_average_precision(p, codes),
        "roc_auc": _or_none(ranking.roc_auc(p[:, rare], codes == rare)),
        "log_loss": ranking.clipped_log_loss(p, codes),
        "ece": ranking.calibration_error(p, codes),
        "r_precision": float(curve.recall_at(curve.total)),
        "flags_90": needed[0],
        "flags_95": needed[1],
        "curve": [curve.flagged.tolist(), curve.found.tolist()],
    }


def _decided(true: list[Any], labels: list[Any]) -> dict[str, Any]:
    found = score(true, labels)
    rare = found.minority_class
    return {
        "minority_class": rare,
        "minority_recall": found.minority_recall,
        "minority_precision": found.precision.get(rare, 0.0),
        "balanced_accuracy": found.balanced_accuracy,
        "macro_f1": found.macro_f1,
        "accuracy": found.accuracy,
        "flagged": labels.count(rare),
    }


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else value
