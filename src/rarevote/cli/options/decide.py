"""Options that turn labels into decisions, for verbs that aggregate: costs, recall targets, abstention, review.

A verb takes :class:`DecisionArguments` and has them checked before it reads anything: contradictions and files that
cannot be written are refused there. What comes of them after the fit is in :mod:`rarevote.cli.decisions`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import typer

from rarevote.cli.options.common import one_of
from rarevote.errors import InputError, ParameterError

REVIEW_FORMATS = ("table", "label-studio", "argilla")

Cost = Annotated[
    str | None,
    typer.Option(
        metavar="TRUE:DECIDED=COST,...|FILE",
        help="Decide by least expected cost, such as sound:defect=1,defect:sound=20, or a CSV file "
        "(rows true, columns decided).",
    ),
]
MinRecall = Annotated[
    str | None,
    typer.Option(
        metavar="CLASS=RECALL",
        help="Flag as many tasks as this recall of the class needs, such as defect=0.95.",
    ),
]
AbstainBelow = Annotated[
    float | None,
    typer.Option(metavar="P", help="No label where its calibrated probability is below P."),
]
Prevalence = Annotated[
    str | None,
    typer.Option(
        metavar="estimate|gold|CLASS=SHARE,...",
        help="Share of each class: estimated from the votes, those of the gold labels (a random sample), or given.",
    ),
]
RandomGold = Annotated[
    bool,
    typer.Option(
        "--gold-is-random",
        help="The gold labels are a random sample of the tasks, so that they can vouch for a recall.",
    ),
]
MaxReview = Annotated[
    int | None,
    typer.Option(metavar="N", help="List the N tasks whose review lowers the expected cost most."),
]
ReviewOut = Annotated[Path | None, typer.Option(help="Where the review list goes.")]
ReviewAs = Annotated[
    str,
    typer.Option(
        metavar="FORMAT",
        help=f"The review list as {', '.join(REVIEW_FORMATS)}.",
        autocompletion=one_of(*REVIEW_FORMATS),
    ),
]


@dataclass(frozen=True)
class DecisionArguments:
    """The options as they are given."""

    PANEL: ClassVar[str] = "From labels to decisions"

    cost: Cost = None
    min_recall: MinRecall = None
    abstain_below: AbstainBelow = None
    prevalence: Prevalence = None
    random_gold: RandomGold = False
    max_review: MaxReview = None
    review_out: ReviewOut = None
    review_as: ReviewAs = "table"

    def parse(self, *, calibrate: bool = False, has_gold: bool, out: Path | None) -> DecisionOptions:
        """What they mean; see :meth:`DecisionOptions.parse`."""
        return DecisionOptions.parse(**vars(self), calibrate=calibrate, has_gold=has_gold, out=out)


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
    from rarevote.io.write.columns import check_output

    if review_as != "table" and path.suffix.lower() != ".json":
        raise InputError(f"{path}: tasks for {review_as} are written as JSON; use a name that ends in .json")
    check_output(path)
