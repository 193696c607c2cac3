"""``rarevote plan``: which items to label again, and by whom."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rarevote.cli.options.common import Json, Quiet, Rare, Reading, examples, one_of, takes
from rarevote.cli.options.fit import REVIEW_FORMATS, Cost, Decide, DecisionArguments, FitOptions, check_review_file
from rarevote.cli.show import aligned, say, tell
from rarevote.crowd.words import counted
from rarevote.errors import ParameterError

if TYPE_CHECKING:
    from rarevote.decide.review import ReviewPlan

EXAMPLES = examples(
    "rarevote plan labels.csv --budget 100",
    "rarevote plan labels.csv --budget 100 --votes-per-item 2 --cost sound:defect=1,defect:sound=20 --out again.csv",
    "rarevote plan project-3.json --from label-studio --budget 50 --as label-studio --out again.json",
)

_SHOWN_NAMES = 3


@takes(Reading, FitOptions)
def plan(
    reading: Reading,
    fit_options: FitOptions,
    budget: Annotated[int, typer.Option(metavar="N", help="How many further votes there may be.")],
    votes_per_item: Annotated[int, typer.Option(metavar="N", help="How many of them each item gets.")] = 1,
    rare: Rare = None,
    decide: Decide = None,
    cost: Cost = None,
    top: Annotated[int, typer.Option(metavar="N", min=1, help="How many rows the terminal shows.")] = 20,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="File for all rows: .csv, .parquet, ...")] = None,
    out_as: Annotated[
        str,
        typer.Option(
            "--as",
            metavar="FORMAT",
            help=f"The file as {', '.join(REVIEW_FORMATS)}.",
            autocompletion=one_of(*REVIEW_FORMATS),
        ),
    ] = "table",
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Which items to label again, the most useful first, and who should: people good at it who have not voted there."""
    from rarevote.decide.review import check_budget, plan_figures

    if out_as not in REVIEW_FORMATS:
        raise ParameterError(f"--as must be {', '.join(REVIEW_FORMATS)}, got {out_as!r}")
    if out_as != "table" and out is None:
        raise ParameterError(f"--as {out_as} goes with --out FILE: where the items go")
    check_budget(budget, votes_per_item)
    deciding = DecisionArguments(decide=decide, cost=cost).options(has_gold=False, out=out)
    estimator = fit_options.make()
    if out is not None:
        check_review_file(out, out_as)
    crowd = reading.read(quiet=quiet)
    result = fit_options.fit(crowd, estimator, rare=rare, quiet=quiet).decide(**deciding)
    found = result.plan(budget, out, votes_per_item=votes_per_item, form=out_as)
    if as_json:
        asked = {"budget": budget, "votes_per_item": votes_per_item, "method": fit_options.method}
        typer.echo(json.dumps({**asked, **plan_figures(found)}, ensure_ascii=False, default=str))
    else:
        if not quiet:
            say()
        _tell(found, votes_per_item, top, has_file=out is not None)
    if out is not None and not quiet:
        say(f"wrote {out}: {counted(len(found.items), 'item')}")


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
    if len(found.items) > top:
        more = "" if has_file else " (--top N shows more, --out FILE writes them all)"
        tell(f"... {len(found.items) - top:,} more{more}")
    tell(
        f"\n{counted(len(found.items) * votes_per_item, 'vote')} on {counted(len(found.items), 'item')}; gain: by how "
        "much the expected cost falls once the item is known,"
    )
    tell(f"together from {found.expected_cost:,.1f} to {found.expected_cost - found.saved:,.1f} at best")
    if found.load:
        most = [f"{name} ({number})" for name, number in list(found.load.items())[:_SHOWN_NAMES]]
        tell(f"{counted(len(found.load), 'person is', 'people are')} asked, most often {', '.join(most)}")
