"""The options of the decision: how probabilities become labels, and which tasks are listed for review.

Contradictions and files that cannot be written are refused before anything is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rarevote.cli.options.verb import PATH, Option, one_of, takes
from rarevote.crowd.rare import parse_tail
from rarevote.errors import InputError, ParameterError

if TYPE_CHECKING:
    from rarevote.api import Result
    from rarevote.crowd.grades import Grades
    from rarevote.decide.review import ReviewPlan
    from rarevote.io.read.crowd import Crowd

REVIEW_FORMATS = ("table", "label-studio", "argilla")
# Options that are ways to decide; only one can be chosen.
_RULES = ("decide", "cost", "min_recall", "abstain_below")


@dataclass(frozen=True)
class DecisionArguments:
    """The options of the decision."""

    decide: str | None = None
    cost: str | None = None
    min_recall: str | None = None
    errors: str = "shared"
    abstain_below: float | None = None
    prevalence: str | None = None
    random_gold: bool = False
    allow_unvoted: bool | None = None
    max_review: int | None = None
    review_out: Path | None = None
    review_as: str = "table"

    @property
    def _rules(self) -> list[str]:
        return [name for name in _RULES if getattr(self, name) is not None]

    @property
    def active(self) -> bool:
        """Whether anything beyond the method's own labels is requested."""
        return bool(self._rules) or self.max_review is not None or self.prevalence is not None

    def options(self, *, has_gold: bool, grades: Grades | None = None) -> dict[str, Any]:
        """The arguments of :meth:`rarevote.Fitted.decide`; contradictions are refused before anything is read.

        Args:
            has_gold: whether there are or can be gold labels.
            grades: the order of the classes, if one is given.
        """
        if len(self._rules) > 1:
            given = " and ".join(f"--{name.replace('_', '-')}" for name in self._rules)
            raise ParameterError(f"{given} cannot be used together: choose one")
        if self.decide is not None:
            from rarevote.decide.selection import parse_rule

            parse_rule(self.decide, grades)
        if self.errors not in ("independent", "shared"):
            raise ParameterError(f"--errors must be independent or shared, got {self.errors!r}")
        if self.errors == "independent" and self.min_recall is None:
            raise ParameterError("--errors independent needs --min-recall")
        if self.abstain_below is not None and not 0.0 < self.abstain_below <= 1.0:
            raise ParameterError(f"--abstain-below must be above 0 and at most 1, got {self.abstain_below:g}")
        self._check_review()
        cost = self.cost
        if cost is not None and "=" not in cost and not Path(cost).is_file():
            raise InputError(f"--cost {cost}: not a file, and not costs such as sound:defect=1,defect:sound=20")
        shares = parse_prevalence(self.prevalence)
        for name, needs in (("--gold-is-random", self.random_gold), ("--prevalence gold", shares == "gold")):
            if needs and not has_gold:
                raise ParameterError(f"{name} needs gold labels: give them with --gold FILE")
        return {
            "decide": self.decide,
            "costs": cost,
            "min_recall": None if self.min_recall is None else check_min_recall(self.min_recall),
            "errors": self.errors,
            "abstain_below": self.abstain_below,
            "prevalence": shares,
            "random_gold": self.random_gold or shares == "gold",
            "allow_unvoted": self.allow_unvoted,
        }

    def review(self, result: Result) -> ReviewPlan | None:
        """Write the review list, if one is requested."""
        if self.max_review is None:
            return None
        return result.review(self.max_review, self.review_out, form=self.review_as)

    def check_columns(self, crowd: Crowd) -> None:
        """Refuse a review list that cannot have the columns to show."""
        if self.review_out is not None and self.review_as == "table":
            from rarevote.decide.review import REVIEW_NAMES
            from rarevote.io.write.columns import check_columns

            check_columns([*REVIEW_NAMES, *crowd.to_show], self.review_out)

    def _check_review(self) -> None:
        if (self.max_review is None) != (self.review_out is None):
            raise ParameterError("--max-review N and --review-out FILE must be used together")
        if self.max_review is not None and self.max_review < 1:
            raise ParameterError(f"--max-review must be at least 1, got {self.max_review}")
        check_review_form(self.review_as)
        if self.review_out is not None:
            check_review_file(self.review_out, self.review_as)


def _class_and_number(text: str) -> tuple[str, float]:
    """``defect=0.95`` as a name and a number, else a ValueError."""
    name, _, number = text.rpartition("=")
    if not name.strip():
        raise ValueError(text)
    return name.strip(), float(number)


def check_min_recall(text: str) -> str | float:
    """The text, if it can be a class and its target; the class is checked later, with the data.

    A number alone is a recall of the rare class.
    """
    try:
        alone = float(text)
    except ValueError:
        alone = nan
    if 0.0 < alone <= 1.0:
        return alone
    try:
        _, target = _class_and_number(text)
    except ValueError:
        raise ParameterError(
            f"--min-recall must be CLASS=RECALL, such as defect=0.95, or the RECALL of the rare class, got {text!r}"
        ) from None
    if not 0.0 < target <= 1.0 and parse_tail(text) is None:
        raise ParameterError(f"--min-recall {text}: a recall must be above 0 and at most 1")
    return text


def parse_prevalence(text: str | None) -> str | dict[str, float]:
    """``estimate``, ``gold``, or ``defect=0.02,sound=0.98`` as shares by class."""
    if text is None or text in ("estimate", "gold"):
        return text or "estimate"
    shares: dict[str, float] = {}
    for part in text.split(","):
        try:
            name, share = _class_and_number(part)
        except ValueError:
            wanted = "estimate, gold or CLASS=SHARE pairs separated by commas"
            raise ParameterError(f"--prevalence must be {wanted}, got {text!r}") from None
        if name in shares:
            raise ParameterError(f"--prevalence names {name} twice")
        shares[name] = share
    return shares


def check_review_form(form: str, option: str = "--review-as") -> None:
    """Refuse a format that review lists do not have."""
    if form not in REVIEW_FORMATS:
        raise ParameterError(f"{option} must be {', '.join(REVIEW_FORMATS)}, got {form!r}")


def check_review_file(path: Path, review_as: str) -> None:
    """Refuse a list that cannot be written, before any work is done."""
    from rarevote.io.write.columns import check_output

    if review_as != "table" and path.suffix.lower() != ".json":
        raise InputError(f"{path}: tasks for {review_as} are written as JSON; use a name that ends in .json")
    check_output(path)


_option = partial(click.option, cls=Option, section="From labels to decisions")

decide_option = _option(
    "--decide",
    metavar="RULE",
    help="labels: the method's own; argmax: the most probable class; balanced or balanced:CAP: a miss is weighted "
    "by how rare the class is, up to CAP false alarms; with --ordered also levelled, median, mean, balanced-median "
    "and balanced-median:CAP. Default: the method's own rule.",
    shell_complete=one_of(
        "labels", "argmax", "balanced", "balanced:5", "balanced:20", "levelled", "median", "mean", "balanced-median"
    ),
)
cost_option = _option(
    "--cost",
    metavar="TRUE:DECIDED=COST,...|FILE",
    help="Decide by least expected cost, such as sound:defect=1,defect:sound=20, or a CSV file "
    "(rows true, columns decided).",
)
calibrate_option = _option(
    "--calibrate", is_flag=True, help="Show the expected class shares, recall and precision, with intervals."
)
review_as_option = _option(
    "--review-as",
    metavar="FORMAT",
    default="table",
    help=f"Format of the review list: {', '.join(REVIEW_FORMATS)}.",
    shell_complete=one_of(*REVIEW_FORMATS),
)
with_decisions = takes(
    DecisionArguments,
    decide_option,
    cost_option,
    _option(
        "--min-recall",
        metavar="[CLASS=]RECALL",
        help="Flag as many tasks as needed to expect this recall of the class (default: the rare class), such as "
        "defect=0.95.",
    ),
    _option(
        "--errors",
        metavar="independent|shared",
        default="shared",
        help="Whether annotators make errors independently or share them, as in real crowds; this sets how many "
        "tasks --min-recall flags. Both numbers are shown.",
        shell_complete=one_of("independent", "shared"),
    ),
    _option("--abstain-below", metavar="P", type=float, help="Give no label if its probability is below P."),
    _option(
        "--prevalence",
        metavar="estimate|gold|CLASS=SHARE,...",
        help="Share of each class: estimated from the votes, counted in the gold labels (a random sample), or given.",
    ),
    _option(
        "--gold-is-random",
        "random_gold",
        is_flag=True,
        help="The gold labels are a random sample of the tasks, so they can guarantee a recall.",
    ),
    _option(
        "--allow-unvoted/--no-allow-unvoted",
        default=None,
        help="Whether a label may have no votes on its item. Default: only if features are used.",
    ),
    _option(
        "--max-review",
        metavar="N",
        type=int,
        help="List the N tasks whose review lowers the expected cost most.",
    ),
    _option("--review-out", type=PATH, help="File for the review list."),
    review_as_option,
)
