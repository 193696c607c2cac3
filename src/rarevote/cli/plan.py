"""``rarevote plan``: which items to label again, and by whom."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rarevote.cli.each import begin, tell_records
from rarevote.cli.options.decisions import (
    REVIEW_FORMATS,
    DecisionArguments,
    check_review_file,
    check_review_form,
    cost_option,
    decide_option,
)
from rarevote.cli.options.fit import FitOptions, with_fit_and_rare
from rarevote.cli.options.output import talk_options, top_option
from rarevote.cli.options.reading import Reading, with_reading
from rarevote.cli.options.verb import file_option, one_of, takes, verb
from rarevote.cli.show import aligned, say, tell, tell_rest
from rarevote.crowd.words import counted
from rarevote.errors import ParameterError

if TYPE_CHECKING:
    from rarevote.decide.review import ReviewPlan

_SHOWN_NAMES = 3


@verb(
    "rarevote plan labels.csv --budget 100",
    "rarevote plan labels.csv --budget 100 --votes-per-item 2 --cost sound:defect=1,defect:sound=20 --out again.csv",
    "rarevote plan labels.csv --budget 100 --named inspector-01 --named inspector-23",
    "rarevote plan project-3.json --from label-studio --budget 50 --as label-studio --out again.json",
)
@with_reading
@with_fit_and_rare
@takes(DecisionArguments, decide_option, cost_option)
@click.option("--budget", metavar="N", type=int, required=True, help="How many further votes there may be.")
@click.option("--votes-per-item", metavar="N", default=1, help="How many of them each item gets.")
@click.option(
    "--named",
    metavar="NAME",
    multiple=True,
    help="Somebody who is available, once for each: the ablest of these are asked. Default: all who have voted.",
)
@top_option
@file_option("--out", "-o", help="File for all rows: .csv, .parquet, ...")
@click.option(
    "--as",
    "out_as",
    metavar="FORMAT",
    default="table",
    help=f"The file as {', '.join(REVIEW_FORMATS)}.",
    shell_complete=one_of(*REVIEW_FORMATS),
)
@talk_options
def plan(
    reading: Reading,
    fit_options: FitOptions,
    decisions: DecisionArguments,
    *,
    budget: int,
    votes_per_item: int,
    named: tuple[str, ...],
    top: int,
    out: Path | None,
    out_as: str,
    as_json: bool,
) -> None:
    """Which items to label again, the most useful first, and who should: people good at it who have not voted there."""
    from rarevote.decide.review import check_budget, plan_figures

    check_review_form(out_as, "--as")
    if out_as != "table" and out is None:
        raise ParameterError(f"--as {out_as} goes with --out FILE: where the items go")
    check_budget(budget, votes_per_item)
    deciding = decisions.options(has_gold=False, out=out, grades=fit_options.grades)
    estimator = fit_options.make()
    if out is not None:
        check_review_file(out, out_as)
    crowd = reading.read()
    asked = {"budget": budget, "votes_per_item": votes_per_item, "method": fit_options.method}
    given: dict[str, Any] = {"votes_per_item": votes_per_item, "named": named or None, "form": out_as}
    plans = (
        fit_options.fit_each(crowd, estimator).decide(**deciding).plan(budget, out, **given)
        if crowd.choices
        else {"": fit_options.fit(crowd, estimator).decide(**deciding).plan(budget, out, **given)}
    )
    if as_json:
        tell_records({name: {**asked, **plan_figures(found)} for name, found in plans.items()})
    else:
        for name, found in plans.items():
            say()
            begin(name)
            _tell(found, votes_per_item, top, has_file=out is not None)
    if out is not None:
        say(f"wrote {out}: {counted(sum(len(found.items) for found in plans.values()), 'item')}")


def _tell(found: ReviewPlan, votes_per_item: int, top: int, *, has_file: bool) -> None:
    if not found.items:
        tell("nothing is in doubt: further votes would change no label")
        return
    rows = [
        [
            str(item.task),
            "no answer" if item.decided is None else str(item.decided),
            str(item.doubt),
            f"{item.gain:.3f}",
            ", ".join(map(str, item.annotators)) or "somebody new",
        ]
        for item in found.items[:top]
    ]
    tell(aligned(["item", "decided", "may be", "gain", "ask"], rows))
    tell_rest(len(found.items) - top, has_file=has_file)
    tell(
        f"\n{counted(len(found.items) * votes_per_item, 'vote')} on {counted(len(found.items), 'item')}; gain: by how "
        "much the expected cost falls once the item is known,"
    )
    tell(f"together from {found.expected_cost:,.1f} to {found.expected_cost - found.saved:,.1f} at best")
    if found.load:
        most = [f"{name} ({number})" for name, number in list(found.load.items())[:_SHOWN_NAMES]]
        tell(f"{counted(len(found.load), 'person is', 'people are')} asked, most often {', '.join(most)}")
