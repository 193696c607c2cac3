"""A result as rows for a file and as figures for a summary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.names import positions_of
from rarevote.crowd.words import facts_html
from rarevote.errors import InputError
from rarevote.meaning.calibrate import CalibratedPosterior
from rarevote.meaning.decide import ABSTAINED, Decision
from rarevote.meaning.expect import Expected
from rarevote.meaning.metrics import score


def result_rows(
    crowd: Annotations,
    labels: NDArray[Any],
    probabilities: NDArray[Any],
    confidence: NDArray[Any] | None,
    shown: Mapping[str, NDArray[Any]],
) -> dict[str, Any]:
    """One row per task: task, label, confidence where there is one, ``p:<class>``, then what is shown."""
    rows: dict[str, Any] = {"task": crowd.tasks, "label": labels}
    if confidence is not None:
        rows["confidence"] = confidence
    for k, name in enumerate(crowd.classes.tolist()):
        rows[f"p:{name}"] = probabilities[:, k]
    for name, texts in shown.items():
        rows[name if name not in rows else f"show:{name}"] = texts
    return rows


def decision_rows(calibrated: CalibratedPosterior, codes: NDArray[np.int64], rule: str) -> dict[str, Any]:
    """How each task was decided ("none" without an answer, "gold" where it was known), and ``calibrated:<class>``."""
    source = np.full(len(codes), rule, dtype=object)
    source[codes == ABSTAINED] = "none"
    source[calibrated.gold >= 0] = "gold"
    rows: dict[str, Any] = {"decision": source}
    for k, name in enumerate(calibrated.classes.tolist()):
        rows[f"calibrated:{name}"] = calibrated.posterior[:, k]
    return rows


def class_figures(crowd: Annotations, codes: NDArray[np.int64]) -> dict[str, dict[str, Any]]:
    """Of every class: tasks that got it, their share, and the share of the votes."""
    counts = np.bincount(codes[codes >= 0], minlength=crowd.n_classes)
    votes = np.bincount(crowd.label, minlength=crowd.n_classes)
    return {
        str(name): {
            "tasks": int(count),
            "share_of_tasks": float(count / max(crowd.n_tasks, 1)),
            "share_of_votes": float(part / max(crowd.n_annotations, 1)),
        }
        for name, count, part in zip(crowd.classes.tolist(), counts, votes, strict=True)
    }


def figures_html(summary: Mapping[str, Any]) -> str:
    """The figures of a result as a notebook shows them: the class that matters first, then the largest."""
    rare = summary["rare"]["class"]
    ordered = sorted(summary["classes"].items(), key=lambda entry: (entry[0] != rare, -entry[1]["tasks"]))
    rows = [[name, *entry.values()] for name, entry in ordered]
    facts = {
        "tasks": summary["n_tasks"],
        "workers": summary["n_workers"],
        "votes": summary["n_annotations"],
        "decided by": summary["decided_by"],
        "fit": f"{summary['n_iter']} iterations, {summary['status']}",
    } | {f"warning {number}": words for number, words in enumerate(summary["warnings"], 1)}
    header = ["class", "tasks", "of tasks", "of votes"]
    return facts_html(f"Result of {summary['method']}", facts, [header, *rows])


def scores_of(tasks: Any, labels: NDArray[Any], known: Mapping[Any, Any], rare: str) -> dict[str, Any]:
    """Labels against the truth, the rare class first.

    Raises:
        InputError: the truth names none of the tasks.
    """
    place = positions_of(tasks, list(known))
    if not (place >= 0).any():
        raise InputError("the truth names none of the tasks: check ids")
    true = [label for label, number in zip(known.values(), place.tolist(), strict=True) if number >= 0]
    found = score(true, labels[place[place >= 0]].tolist(), unanswered="")
    recall = {str(name): value for name, value in found.recall.items()}
    precision = {str(name): value for name, value in found.precision.items()}
    return {
        "n_items": found.n_items,
        "rare_class": rare,
        "rare_recall": recall.get(rare),
        "rare_precision": precision.get(rare),
        "minority_class": found.minority_class,
        "minority_recall": found.minority_recall,
        "balanced_accuracy": found.balanced_accuracy,
        "macro_f1": found.macro_f1,
        "accuracy": found.accuracy,
        "recall": recall,
        "precision": precision,
        "truth_without_labels": len(known) - len(true),
    }


def decision_figures(decision: Decision) -> dict[str, Any]:
    """What a decision expects, in figures; a figure that there is not is None."""

    def number(value: float) -> float | None:
        return None if value != value else float(value)

    def figure(name: str, found: Expected) -> dict[str, Any]:
        return {name: number(found.value), f"{name}_interval": [number(found.low), number(found.high)]}

    per_class = {
        str(one.name): {
            **figure("share", one.prevalence),
            **figure("expected_recall", one.recall),
            **figure("expected_precision", one.precision),
            "only_an_audit_can_know": [
                what
                for what, found in (("share", one.prevalence), ("recall", one.recall), ("precision", one.precision))
                if found.value == found.value and not found.is_told
            ],
        }
        for one in decision.expected
    }
    figures: dict[str, Any] = {
        "rule": decision.rule,
        "how": decision.how,
        "classes": per_class,
        **figure("expected_accuracy", decision.accuracy),
        "n_abstained": decision.n_abstained,
        "expected_cost": decision.expected_cost,
    }
    if decision.target is not None:
        target = decision.target
        # JSON has no infinity, which is the threshold where nothing needs a flag.
        threshold = target.threshold if target.threshold < float("inf") else None
        figures["recall_target"] = {**vars(target), "name": str(target.name), "threshold": threshold}
    return figures
