"""What a decision expects, for a person: the table of classes, the recall target, the review."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rarevote.cli.show import aligned

if TYPE_CHECKING:
    from rarevote.api import Result
    from rarevote.meaning.review import ReviewPlan


def decision_words(result: Result) -> list[str]:
    """The decision, line by line; nothing where there are no calibrated probabilities to judge it by."""
    import numpy as np

    decision, found = result.decision, result.calibrated
    if decision is None or found is None:
        return []
    counts = np.bincount(decision.codes[decision.codes >= 0], minlength=len(found.classes))
    header = ["class", "share", "95% interval", "decided", "recall", "precision"]
    rows = [
        [
            str(name),
            f"{found.prevalence[k]:.4f}",
            "-" if found.low[k] != found.low[k] else f"{found.low[k]:.4f} to {found.high[k]:.4f}",
            f"{counts[k]:,}",
            _range(decision.recall.mean[k], decision.recall.low[k], decision.recall.high[k]),
            _range(decision.precision.mean[k], decision.precision.low[k], decision.precision.high[k]),
        ]
        for k, name in enumerate(found.classes.tolist())
    ]
    words = [f"decided by: {decision.rule}; class shares {found.how}", *aligned(header, rows).split("\n")]
    if decision.n_abstained:
        words.append(f"{decision.n_abstained:,} tasks have no answer")
    if result.rule.name == "cost":
        words.append(f"expected cost of these decisions: {decision.expected_cost:,.1f}")
    if decision.target is not None:
        begin = "target met as far as the data can tell" if decision.target.promised else "warning"
        words.append(f"{begin}: {decision.target.words}")
    words.append(f"recall and precision are expected values, {decision.how};")
    words.append("they hold if annotators err independently, which only gold that is a random sample can check")
    return words


def review_words(plan: ReviewPlan, path: Path | None) -> str:
    """What a review would save."""
    return (
        f"wrote {len(plan.items):,} tasks to review to {path}; knowing them lowers the expected cost "
        f"from {plan.expected_cost:,.1f} to {plan.expected_cost - plan.saved:,.1f}"
    )


def _range(mean: float, low: float, high: float) -> str:
    if mean != mean:
        return "-"
    return f"{mean:.3f}" if low != low else f"{mean:.3f} ({low:.3f} to {high:.3f})"
