"""Options that turn labels into decisions, for verbs that aggregate: costs, recall targets, abstention, review.

A verb takes the options, hands them to :meth:`DecisionOptions.parse` before it reads anything (contradictions and files
that cannot be written are refused there), and calls :func:`apply_decision` once it has fitted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rarevote.cli.show import aligned
from rarevote.errors import InputError, ParameterError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rarevote.calibrate import CalibratedPosterior
    from rarevote.decide import Decision
    from rarevote.estimator import Estimator
    from rarevote.review import ReviewPlan

PANEL = "From labels to decisions"
REVIEW_FORMATS = ("table", "label-studio", "argilla")

Calibrate = Annotated[
    bool,
    typer.Option("--calibrate", help="Add calibrated probabilities and class shares.", rich_help_panel=PANEL),
]
Cost = Annotated[
    str | None,
    typer.Option(
        metavar="TRUE:DECIDED=COST,...|FILE",
        help="Decide by least expected cost, such as sound:defect=1,defect:sound=20, or a CSV file "
        "(rows true, columns decided).",
        rich_help_panel=PANEL,
    ),
]
MinRecall = Annotated[
    str | None,
    typer.Option(
        metavar="CLASS=RECALL",
        help="Flag as many tasks as this recall of the class needs, such as defect=0.95.",
        rich_help_panel=PANEL,
    ),
]
AbstainBelow = Annotated[
    float | None,
    typer.Option(metavar="P", help="No label where its calibrated probability is below P.", rich_help_panel=PANEL),
]
Prevalence = Annotated[
    str | None,
    typer.Option(
        metavar="estimate|gold|CLASS=SHARE,...",
        help="Share of each class: estimated from the votes, those of the gold labels (a random sample), or given.",
        rich_help_panel=PANEL,
    ),
]
RandomGold = Annotated[
    bool,
    typer.Option(
        "--gold-is-random",
        help="The gold labels are a random sample of the tasks, so that they can vouch for a recall.",
        rich_help_panel=PANEL,
    ),
]
MaxReview = Annotated[
    int | None,
    typer.Option(
        metavar="N", help="List the N tasks whose review lowers the expected cost most.", rich_help_panel=PANEL
    ),
]
ReviewOut = Annotated[Path | None, typer.Option(help="Where the review list goes.", rich_help_panel=PANEL)]
ReviewAs = Annotated[
    str,
    typer.Option(metavar="FORMAT", help=f"The review list as {', '.join(REVIEW_FORMATS)}.", rich_help_panel=PANEL),
]


@dataclass(frozen=True)
class DecisionOptions:
    """What the command line says about decisions, checked as far as that needs no data.

    Attributes:
        calibrate: whether calibrated probabilities are wanted without any of the others.
        cost: costs as text or the name of a file.
        min_recall: a class and its recall target.
        abstain_below: the lowest probability that counts as an answer.
        prevalence: "estimate", "gold", or shares by class.
        random_gold: whether the gold labels are a random sample.
        max_review: the most tasks to review.
        review_out: where they are listed.
        review_as: in which format.
    """

    calibrate: bool = False
    cost: str | None = None
    min_recall: dict[str, float] | None = None
    abstain_below: float | None = None
    prevalence: str | dict[str, float] = "estimate"
    random_gold: bool = False
    max_review: int | None = None
    review_out: Path | None = None
    review_as: str = "table"

    @property
    def active(self) -> bool:
        """Whether there is anything to do."""
        rules = (self.cost, self.min_recall, self.abstain_below, self.max_review)
        return self.calibrate or self.prevalence != "estimate" or any(rule is not None for rule in rules)

    @classmethod
    def parse(
        cls,
        *,
        calibrate: bool = False,
        cost: str | None = None,
        min_recall: str | None = None,
        abstain_below: float | None = None,
        prevalence: str | None = None,
        random_gold: bool = False,
        max_review: int | None = None,
        review_out: Path | None = None,
        review_as: str = "table",
        has_gold: bool = False,
        out: Path | None = None,
    ) -> DecisionOptions:
        """Read the options and refuse what cannot be meant.

        Args:
            calibrate: ``--calibrate``.
            cost: ``--cost``.
            min_recall: ``--min-recall``.
            abstain_below: ``--abstain-below``.
            prevalence: ``--prevalence``.
            random_gold: ``--gold-is-random``.
            max_review: ``--max-review``.
            review_out: ``--review-out``.
            review_as: ``--review-as``.
            has_gold: whether there are, or may be, gold labels.
            out: where the result goes, which cannot be where the review list goes.
        """
        rules = {"--cost": cost, "--min-recall": min_recall, "--abstain-below": abstain_below}
        given = [name for name, value in rules.items() if value is not None]
        if len(given) > 1:
            raise ParameterError(f"{' and '.join(given)} contradict each other: each is a way to decide, choose one")
        if abstain_below is not None and not 0.0 < abstain_below <= 1.0:
            raise ParameterError(f"--abstain-below must be above 0 and at most 1, got {abstain_below:g}")
        if (max_review is None) != (review_out is None):
            raise ParameterError("--max-review N and --review-out FILE go together: how many tasks, and where to")
        if max_review is not None and max_review < 1:
            raise ParameterError(f"--max-review must be at least 1, got {max_review}")
        if review_as not in REVIEW_FORMATS:
            raise ParameterError(f"--review-as must be {', '.join(REVIEW_FORMATS)}, got {review_as!r}")
        if review_out is not None:
            if out is not None and out.resolve() == review_out.resolve():
                raise ParameterError(f"--out and --review-out are the same file, {out}")
            _check_review_file(review_out, review_as)
        if cost is not None and "=" not in cost and not Path(cost).is_file():
            raise InputError(f"--cost {cost}: no such file, and no costs such as sound:defect=1,defect:sound=20")
        shares = parse_prevalence(prevalence)
        for name, needs in (("--gold-is-random", random_gold), ("--prevalence gold", shares == "gold")):
            if needs and not has_gold:
                raise ParameterError(f"{name} needs gold labels: give them with --gold FILE")
        return cls(
            calibrate,
            cost,
            None if min_recall is None else parse_min_recall(min_recall),
            abstain_below,
            shares,
            random_gold or shares == "gold",
            max_review,
            review_out,
            review_as,
        )


def parse_min_recall(text: str) -> dict[str, float]:
    """``defect=0.95`` as a class and its target."""
    name, sign, number = text.rpartition("=")
    try:
        target = float(number)
    except ValueError:
        sign = ""
    if not sign or not name.strip():
        raise ParameterError(f"--min-recall wants CLASS=RECALL, such as defect=0.95, got {text!r}")
    if not 0.0 < target <= 1.0:
        raise ParameterError(f"--min-recall {text}: a recall target lies above 0 and is at most 1")
    return {name.strip(): target}


def parse_prevalence(text: str | None) -> str | dict[str, float]:
    """``estimate``, ``gold``, or ``defect=0.02,sound=0.98`` as shares by class."""
    if text is None or text in ("estimate", "gold"):
        return text or "estimate"
    shares: dict[str, float] = {}
    for part in text.split(","):
        name, sign, number = part.rpartition("=")
        try:
            share = float(number)
        except ValueError:
            sign = ""
        if not sign or not name.strip():
            raise ParameterError(f"--prevalence wants estimate, gold or CLASS=SHARE pairs with commas, got {text!r}")
        if name.strip() in shares:
            raise ParameterError(f"--prevalence names {name.strip()} twice")
        shares[name.strip()] = share
    return shares


def _check_review_file(path: Path, review_as: str) -> None:
    """Refuse, before any work is done, a list that could not be written in the end."""
    from rarevote.io.write import check_output

    if review_as != "table" and path.suffix.lower() != ".json":
        raise InputError(f"{path}: tasks for {review_as} are written as JSON; use a name that ends in .json")
    check_output(path)


# --------------------------------------------------------------------------------------------------------------------
# after the fit


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

    from rarevote.calibrate import calibrated
    from rarevote.costs import cost_matrix
    from rarevote.decide import ABSTAINED, decide, one_target
    from rarevote.review import plan_review

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

    from rarevote.io.atomic import replacing
    from rarevote.io.write import write_columns
    from rarevote.review import argilla_records, label_studio_tasks, review_columns

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
