"""From a fit to decisions on the command line: calibrate, decide, plan the review, and say what to expect of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rarevote.cli.options.decide import DecisionOptions
from rarevote.cli.show import aligned

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rarevote.meaning.calibrate import CalibratedPosterior
    from rarevote.meaning.decide import Decision
    from rarevote.meaning.review import ReviewPlan
    from rarevote.methods.base import Estimator


@dataclass(frozen=True, eq=False)
class Applied:
    """What came of the options.

    Attributes:
        columns: label, confidence, decision and ``calibrated:<class>``, one value per task; they take the place of
            columns of the same name.
        words: what to tell, line by line.
        summary: the same for ``--json``.
        calibrated: the probabilities behind it.
        decision: the decision.
        plan: tasks to review, if asked for.
    """

    columns: dict[str, NDArray[Any]]
    words: list[str]
    summary: dict[str, Any]
    calibrated: CalibratedPosterior
    decision: Decision
    plan: ReviewPlan | None


def apply_decision(
    estimator: Estimator,
    options: DecisionOptions,
    *,
    gold: Mapping[Any, Any] | None = None,
    shown: Mapping[str, NDArray[Any]] | None = None,
    random_state: int = 0,
) -> Applied:
    """Calibrate a fit, decide, and plan the review; the review list is written here, whole or not at all.

    Args:
        estimator: the fitted method.
        options: what to do.
        gold: known labels by task.
        shown: what people were shown, by column, one text per task.
        random_state: seed of the calibration.
    """
    import numpy as np

    from rarevote.meaning.calibrate import calibrated
    from rarevote.meaning.costs import cost_matrix
    from rarevote.meaning.decide import ABSTAINED, decide, one_target
    from rarevote.meaning.review import plan_review

    crowd = estimator.annotations_
    # Calibration takes seconds: refuse wrong names before it.
    if options.cost is not None:
        cost_matrix(options.cost, crowd.classes)
    if options.min_recall is not None:
        one_target(options.min_recall, crowd.classes)
    found = calibrated(
        estimator.posterior_,
        prevalence=options.prevalence,
        gold=gold,
        annotations=crowd,
        random_state=random_state,
    )
    decision = decide(
        found,
        costs=options.cost,
        min_recall=options.min_recall,
        abstain_below=options.abstain_below,
        random_gold=options.random_gold,
    )
    plan = None
    if options.max_review is not None:
        plan = plan_review(found, decision, crowd, max_review=options.max_review)
        _write_review(plan, options, shown)
    rule = "cost" if options.cost is not None else "recall" if options.min_recall is not None else "method"
    source = np.full(crowd.n_tasks, rule, dtype=object)
    source[decision.codes == ABSTAINED] = "none"
    source[found.gold >= 0] = "gold"
    labels = decision.labels
    labels[decision.codes == ABSTAINED] = ""
    columns: dict[str, NDArray[Any]] = {"label": labels, "confidence": decision.confidence, "decision": source}
    for k, name in enumerate(crowd.classes.tolist()):
        columns[f"calibrated:{name}"] = found.posterior[:, k]
    return Applied(
        columns, _words(found, decision, plan, options), _summary(found, decision, plan), found, decision, plan
    )


def _write_review(plan: ReviewPlan, options: DecisionOptions, shown: Mapping[str, NDArray[Any]] | None) -> None:
    import json

    from rarevote.io.write.atomic import replacing
    from rarevote.io.write.columns import write_columns
    from rarevote.meaning.review import argilla_records, label_studio_tasks, review_columns

    assert options.review_out is not None
    if options.review_as == "table":
        write_columns(review_columns(plan, shown), options.review_out)
        return
    records = (label_studio_tasks if options.review_as == "label-studio" else argilla_records)(plan, shown)
    with replacing(options.review_out) as temporary:
        temporary.write_text(json.dumps(records, ensure_ascii=False, indent=1), encoding="utf-8")


def _words(
    found: CalibratedPosterior, decision: Decision, plan: ReviewPlan | None, options: DecisionOptions
) -> list[str]:
    import numpy as np

    counts = np.bincount(decision.codes[decision.codes >= 0], minlength=len(found.classes))
    header = ["class", "share", "95 % interval", "decided", "recall", "precision"]
    rows = [
        [
            str(name),
            f"{found.prevalence[k]:.4f}",
            f"{found.low[k]:.4f} to {found.high[k]:.4f}",
            f"{counts[k]:,}",
            _range(decision.recall.mean[k], decision.recall.low[k], decision.recall.high[k]),
            _range(decision.precision.mean[k], decision.precision.low[k], decision.precision.high[k]),
        ]
        for k, name in enumerate(found.classes.tolist())
    ]
    words = [f"decided by: {decision.rule}; class shares {found.how}", *aligned(header, rows).split("\n")]
    if decision.n_abstained:
        words.append(f"{decision.n_abstained:,} tasks have no answer")
    if options.cost is not None:
        words.append(f"expected cost of these decisions: {decision.expected_cost:,.1f}")
    if decision.target is not None:
        begin = "target met as far as the data can tell" if decision.target.promised else "warning"
        words.append(f"{begin}: {decision.target.words}")
    words.append(f"recall and precision are expected values, {decision.how};")
    words.append("they hold if annotators err independently, which only a random sample of known labels can check")
    if plan is not None:
        words.append(
            f"wrote {len(plan.items):,} tasks to review to {options.review_out}; knowing them lowers the expected cost "
            f"from {plan.expected_cost:,.1f} to {plan.expected_cost - plan.saved:,.1f}"
        )
    return words


def _range(mean: float, low: float, high: float) -> str:
    if mean != mean:
        return "-"
    return f"{mean:.3f}" if low != low else f"{mean:.3f} ({low:.3f} to {high:.3f})"


def _summary(found: CalibratedPosterior, decision: Decision, plan: ReviewPlan | None) -> dict[str, Any]:
    def number(value: float) -> float | None:
        return None if value != value else float(value)

    per_class = {
        str(name): {
            "share": number(found.prevalence[k]),
            "share_interval": [number(found.low[k]), number(found.high[k])],
            "expected_recall": number(decision.recall.mean[k]),
            "expected_recall_interval": [number(decision.recall.low[k]), number(decision.recall.high[k])],
            "expected_precision": number(decision.precision.mean[k]),
            "expected_precision_interval": [number(decision.precision.low[k]), number(decision.precision.high[k])],
        }
        for k, name in enumerate(found.classes.tolist())
    }
    summary: dict[str, Any] = {
        "rule": decision.rule,
        "how": decision.how,
        "classes": per_class,
        "n_abstained": decision.n_abstained,
        "expected_cost": decision.expected_cost,
    }
    if decision.target is not None:
        target = decision.target
        # JSON has no infinity, which is the threshold where nothing needs a flag.
        threshold = target.threshold if target.threshold < float("inf") else None
        summary["recall_target"] = {**vars(target), "name": str(target.name), "threshold": threshold}
    if plan is not None:
        summary["review"] = {"tasks": len(plan.items), "expected_cost": plan.expected_cost, "saved": plan.saved}
    return summary
