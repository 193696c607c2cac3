"""Which method is fitted, with what and where (parameters, gold, engine, checkpoints), and how its labels are decided.

Contradictions and files that cannot be written are refused before anything is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from rarevote.cli.options.common import MethodName, Settings, make_method, one_of
from rarevote.cli.show import fitting, say
from rarevote.crowd.words import counted
from rarevote.errors import InputError, ParameterError
from rarevote.methods.registry import DEFAULT_METHOD, require_capability, which_methods

if TYPE_CHECKING:
    from rarevote.api import Fitted
    from rarevote.io.read.crowd import Crowd
    from rarevote.methods.base import Estimator


GoldFile = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help=f"Gold: labels that the method learns from (task, label). With {which_methods('gold')}.",
    ),
]
UseGold = Annotated[bool, typer.Option("--use-gold/--ignore-gold", help="Whether to learn from gold in an export.")]


@dataclass(frozen=True)
class FitOptions:
    """What the command line says about the fit."""

    method: MethodName = DEFAULT_METHOD
    settings: Settings = None
    gold: GoldFile = None
    use_gold: UseGold = True

    @property
    def may_have_gold(self) -> bool:
        """Whether there is gold, or may be."""
        return self.gold is not None or self.use_gold

    def make(self) -> Estimator:
        """The method, not fitted yet; what there is not, or cannot be, is refused here."""
        estimator = make_method(self.method, self.settings)
        if self.gold is not None:
            require_capability(estimator, "gold", "--gold")
        return estimator

    def fit(
        self,
        crowd: Crowd,
        estimator: Estimator,
        *,
        rare: str | None = None,
        quiet: bool = False,
        verbose: bool = False,
        **options: Any,
    ) -> Fitted:
        """Fit the method, telling what it learns from and how it gets on."""
        from rarevote.api import fit

        if crowd.gold and self.use_gold and self.gold is None and estimator.capabilities.gold and not quiet:
            count = counted(len(crowd.gold), "gold label")
            say(f"{self.method} learns from {count} that came with the votes (--ignore-gold leaves them out)")
        with fitting(f"fitting {self.method}", quiet=quiet, verbose=verbose) as callback:
            return fit(
                crowd, estimator, gold=self.gold, use_gold=self.use_gold, rare=rare, callback=callback, **options
            )


PANEL = "Where it runs"

EngineName = Annotated[
    str,
    typer.Option(
        "--engine",
        help=f"local: this machine; dask: a cluster, results in a folder, with {which_methods('dask')}.",
        autocompletion=one_of("local", "dask"),
        rich_help_panel=PANEL,
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="With --engine dask, the scheduler of a running cluster, such as tcp://head:8786. Without it a cluster of "
        "one process per core is started here.",
        rich_help_panel=PANEL,
    ),
]
CheckpointFolder = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        metavar="DIR",
        help="Keep the fit in this folder now and then; the same command resumes after a crash. With "
        f"{which_methods('checkpoint')}.",
        rich_help_panel=PANEL,
    ),
]
CheckpointEvery = Annotated[
    int,
    typer.Option(
        "--checkpoint-every", metavar="N", min=1, help="Iterations between two checkpoints.", rich_help_panel=PANEL
    ),
]


def check_engine(engine: str, scheduler: str | None) -> None:
    """Refuse an engine that there is not, and an address that nobody would use."""
    if engine not in ("local", "dask"):
        raise ParameterError(f"unknown engine {engine!r}: there are local and dask")
    if scheduler is not None and engine != "dask":
        raise ParameterError("--scheduler goes with --engine dask")


REVIEW_FORMATS = ("table", "label-studio", "argilla")

Decide = Annotated[
    str | None,
    typer.Option(
        metavar="RULE",
        help="labels: the method's own; argmax: the most probable class; balanced or balanced:CAP: a miss is weighted "
        "by how rare the class is, up to CAP false alarms. Default: the method's own rule.",
        autocompletion=one_of("labels", "argmax", "balanced", "balanced:5", "balanced:20"),
    ),
]
AllowUnvoted = Annotated[
    bool, typer.Option("--allow-unvoted", help="Let a label be one that nobody voted for on the item.")
]
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
        help="Flag as many tasks as this recall of the class is expected to need, such as defect=0.95.",
    ),
]
AbstainBelow = Annotated[
    float | None,
    typer.Option(metavar="P", help="No label where its probability is below P."),
]
Prevalence = Annotated[
    str | None,
    typer.Option(
        metavar="estimate|gold|CLASS=SHARE,...",
        help="Share of each class: as the votes have them, those of the gold labels (a random sample), or given.",
    ),
]
RandomGold = Annotated[
    bool,
    typer.Option(
        "--gold-is-random",
        help="The gold labels are a random sample of the tasks, so that they can promise a recall.",
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
    """What the command line says about decisions."""

    PANEL: ClassVar[str] = "From labels to decisions"

    decide: Decide = None
    cost: Cost = None
    min_recall: MinRecall = None
    abstain_below: AbstainBelow = None
    prevalence: Prevalence = None
    random_gold: RandomGold = False
    allow_unvoted: AllowUnvoted = False
    max_review: MaxReview = None
    review_out: ReviewOut = None
    review_as: ReviewAs = "table"

    @property
    def active(self) -> bool:
        """Whether anything is asked beyond the method's own labels."""
        given = (self.decide, self.cost, self.min_recall, self.abstain_below, self.max_review, self.prevalence)
        return any(value is not None for value in given)

    def options(self, *, has_gold: bool, out: Path | None) -> dict[str, Any]:
        """The arguments of :meth:`rarevote.Fitted.decide`; what cannot be meant is refused before anything is read.

        Args:
            has_gold: whether there are, or may be, gold labels.
            out: where the result goes, which cannot be where the review list goes.
        """
        rules = {
            "--decide": self.decide,
            "--cost": self.cost,
            "--min-recall": self.min_recall,
            "--abstain-below": self.abstain_below,
        }
        given = [name for name, value in rules.items() if value is not None]
        if len(given) > 1:
            raise ParameterError(f"{' and '.join(given)} contradict each other: each is a way to decide, choose one")
        if self.decide is not None:
            from rarevote.decide.selection import parse_rule

            parse_rule(self.decide)
        if self.abstain_below is not None and not 0.0 < self.abstain_below <= 1.0:
            raise ParameterError(f"--abstain-below must be above 0 and at most 1, got {self.abstain_below:g}")
        self._check_review(out)
        cost = self.cost
        if cost is not None and "=" not in cost and not Path(cost).is_file():
            raise InputError(f"--cost {cost}: no such file, and no costs such as sound:defect=1,defect:sound=20")
        shares = parse_prevalence(self.prevalence)
        for name, needs in (("--gold-is-random", self.random_gold), ("--prevalence gold", shares == "gold")):
            if needs and not has_gold:
                raise ParameterError(f"{name} needs gold labels: give them with --gold FILE")
        return {
            "decide": self.decide,
            "costs": cost,
            "min_recall": None if self.min_recall is None else parse_min_recall(self.min_recall),
            "abstain_below": self.abstain_below,
            "prevalence": shares,
            "random_gold": self.random_gold or shares == "gold",
            "allow_unvoted": self.allow_unvoted,
        }

    def _check_review(self, out: Path | None) -> None:
        if (self.max_review is None) != (self.review_out is None):
            raise ParameterError("--max-review N and --review-out FILE go together: how many tasks, and where to")
        if self.max_review is not None and self.max_review < 1:
            raise ParameterError(f"--max-review must be at least 1, got {self.max_review}")
        if self.review_as not in REVIEW_FORMATS:
            raise ParameterError(f"--review-as must be {', '.join(REVIEW_FORMATS)}, got {self.review_as!r}")
        if self.review_out is not None:
            if out is not None and out.resolve() == self.review_out.resolve():
                raise ParameterError(f"--out and --review-out are the same file, {out}")
            check_review_file(self.review_out, self.review_as)


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


def check_review_file(path: Path, review_as: str) -> None:
    """Refuse, before any work is done, a list that could not be written in the end."""
    from rarevote.io.write.columns import check_output

    if review_as != "table" and path.suffix.lower() != ".json":
        raise InputError(f"{path}: tasks for {review_as} are written as JSON; use a name that ends in .json")
    check_output(path)
