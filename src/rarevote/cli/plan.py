"""``rarevote plan``: which items to label again, and by whom."""

from __future__ import annotations

from collections.abc import Mapping
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
from rarevote.cli.show import say, tell
from rarevote.crowd.words import counted
from rarevote.errors import ParameterError

if TYPE_CHECKING:
    from rarevote.decide.review import ReviewPlan
    from rarevote.result import Result


@verb(
    "rarevote plan labels.csv --budget 100",
    "rarevote plan labels.csv --budget 100 --votes-per-item 2 --cost sound:defect=1,defect:sound=20 --out again.csv",
    "rarevote plan labels.csv --budget 100 --named inspector-01 --named inspector-23",
    "rarevote plan labels.csv --features embeddings.parquet --budget 100 --find defect",
    "rarevote plan project-3.json --from label-studio --budget 50 --as label-studio --out again.json",
)
@with_reading
@with_fit_and_rare
@takes(DecisionArguments, decide_option, cost_option)
@click.option("--budget", metavar="N", type=int, required=True, help="The number of further votes to plan for.")
@click.option("--votes-per-item", metavar="N", default=1, help="Further votes for each item.")
@click.option(
    "--named",
    metavar="NAME",
    multiple=True,
    help="An annotator who is available; the best of them are asked. Repeatable. Default: all who have voted.",
)
@click.option(
    "--find",
    metavar="CLASS",
    help="List items without votes, the most likely of this class first. Needs --features or --pred-probs.",
)
@top_option
@file_option("--out", "-o", help="File for all rows: .csv, .parquet, ...")
@click.option(
    "--as",
    "out_as",
    metavar="FORMAT",
    default="table",
    help=f"Format of the file: {', '.join(REVIEW_FORMATS)}.",
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
    find: str | None,
    top: int,
    out: Path | None,
    out_as: str,
    as_json: bool,
) -> None:
    """List the items to label next, the most useful first, and the annotators to ask."""
    from rarevote.decide.review import check_budget, plan_figures

    check_review_form(out_as, "--as")
    if out_as != "table" and out is None:
        raise ParameterError(f"--as {out_as} needs --out FILE")
    check_budget(budget, votes_per_item)
    deciding = decisions.options(has_gold=False, grades=fit_options.grades)
    estimator = fit_options.make()
    if out is not None:
        check_review_file(out, out_as)
    if find is not None and not fit_options.has_features:
        raise ParameterError("--find needs --features or --pred-probs: it ranks items without votes by them")
    crowd = reading.read()
    asked = {"budget": budget, "votes_per_item": votes_per_item, "method": fit_options.method, "find": find}
    given: dict[str, Any] = {"votes_per_item": votes_per_item, "named": named or None, "find": find, "form": out_as}
    results: Mapping[str, Result]
    if crowd.choices:
        every = fit_options.fit_each(crowd, estimator).decide(**deciding)
        results, plans = every.parts, every.plan(budget, out, **given)
    else:
        alone = fit_options.fit(crowd, estimator).decide(**deciding)
        results, plans = {"": alone}, {"": alone.plan(budget, out, **given)}
    if as_json:
        tell_records(
            {
                name: {**asked, **plan_figures(found), **results[name].fitted.feature_figures}
                for name, found in plans.items()
            }
        )
    else:
        for name, found in plans.items():
            say()
            begin(name)
            tell(found.text(top, has_file=out is not None))
            if find is not None and found.items:
                n_expected = _expected_number(results[name], found, find)
                tell(f"{n_expected:,.1f} of these items are expected to be {find}")
    if out is not None:
        say(f"wrote {out}: {counted(sum(len(found.items) for found in plans.values()), 'item')}")


def _expected_number(result: Result, found: ReviewPlan, find: str) -> float:
    """Expected number of items of a class in a plan."""
    from rarevote.crowd.rare import RareClass

    votes = result.fitted.annotations
    code = RareClass.of(votes.classes, votes.class_votes, find).code
    return float(result.probabilities.p[[item.row for item in found.items], code].sum())
