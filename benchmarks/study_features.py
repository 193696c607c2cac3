"""Put the means of a finished study of features into docs/evidence, and its figure into docs.

rarevote study features --data FOLDER --seeds 3 --contenders votes,features,pred-probs,raykar,crowdlab --out STUDY
rarevote study features --data FOLDER --contenders features,ccgpfl --ccgpfl-seeds 3 --out SLOW
python -m benchmarks.study_features STUDY [SLOW ...]

Further studies add by dataset what the first does not have: contenders that take longer, on fewer draws. Where they
have a contender on all datasets of the first study, its means over datasets and their differences from votes only are
added. A folder can also hold a copy of docs/evidence/study-features.csv as features_means.csv: its rows keep their
commit.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks import evidence
from benchmarks.evidence import REPOSITORY
from benchmarks.pages import table
from rarevote.charts.svg import adaptive_svg, to_svg
from rarevote.study.feature_contenders import TITLES
from rarevote.study.features import BASE, COST, LEVELS, MARKS, MEAN_OF_SETS, FeatureMean, over_sets, worth_chart
from rarevote.study.paired import bootstrap_interval
from rarevote.study.tables import signed

NAME = "study-features"
FIGURE = REPOSITORY / "docs" / "features-worth.svg"


def means_in(rows: list[dict[str, str]]) -> list[FeatureMean]:
    """The means as they are in a file."""

    def number(text: str) -> float | None:
        return float(text) if text else None

    return [
        FeatureMean(
            row["dataset"], row["votes"], row["contender"], row["figure"], int(row["sets"]), int(row["runs"]),
            float(row["mean"]), number(row["difference"]), number(row["low"]), number(row["high"]),
        )
        for row in rows
    ]  # fmt: skip


def rivals_table() -> str:
    """Every figure of every contender over datasets, by votes per item, with what it differs from votes only."""
    means = means_in(evidence.read(NAME))
    rows = []
    for figure, measure in MARKS.items():
        found = over_sets(means, figure)
        for name, title in TITLES.items():
            cells = [_cell(found.get((name, votes))) for votes in LEVELS]
            if any(cells):
                rows.append([measure.heading, title, *cells])
    return table(["figure", "contender", "1 vote", "2 votes", "3 votes", "all votes"], rows)


def _cell(one: FeatureMean | None) -> str:
    if one is None:
        return ""
    text = f"{one.mean:.3f}"
    if one.low is not None and one.high is not None and one.contender != "votes":
        text += f" ({signed(one.low)} to {signed(one.high)})"
    return text


def ccgpfl_table() -> str:
    """CCGPFL and our fit with features by dataset, with all votes: average precision, log loss, balanced accuracy."""
    means = {
        (one.dataset, one.contender, one.figure): one for one in means_in(evidence.read(NAME)) if one.votes == "all"
    }
    sets = dict.fromkeys(dataset for dataset, name, _ in means if name == "ccgpfl" and dataset != MEAN_OF_SETS)
    rows = []
    for dataset in sets:
        cells = []
        for name in ("features", "ccgpfl", "ccgpfl-votes"):
            figures = [means[dataset, name, figure].mean for figure in list(MARKS)[:3]]
            cells.append(", ".join(f"{value:.3f}" for value in figures))
        cost = means.get((dataset, "ccgpfl", COST))
        rows.append(
            [dataset, str(means[dataset, "ccgpfl", "log_loss"].runs), *cells, f"{cost.mean:.0f}" if cost else ""]
        )
    head = [
        "dataset",
        "seeds",
        "ours with features",
        "CCGPFL",
        "with the item's votes (our variant)",
        "times our processor time",
    ]
    return table(head, rows)


def _rows_of(folder: str) -> list[dict[str, Any]]:
    with (Path(folder) / "features_means.csv").open(newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def added_means(means: list[FeatureMean]) -> Iterator[FeatureMean]:
    """Means over datasets of contenders that were run on all of them, in studies beside the first one."""
    by_set = {(one.figure, one.votes, one.contender, one.dataset): one for one in means}
    sets = [one.dataset for one in means if (one.figure, one.votes, one.contender) == ("log_loss", "all", BASE)]
    sets = [name for name in sets if name != MEAN_OF_SETS]
    for figure, votes, name in dict.fromkeys((one.figure, one.votes, one.contender) for one in means):
        own = [by_set.get((figure, votes, name, dataset)) for dataset in sets]
        base = [by_set.get((figure, votes, BASE, dataset)) for dataset in sets]
        if figure not in MARKS or (figure, votes, name, MEAN_OF_SETS) in by_set or None in own or None in base:
            continue
        values, wanted = ([one.mean for one in ones if one is not None] for ones in (own, base))
        gaps = [value - other for value, other in zip(values, wanted, strict=True)]
        n_runs = sum(one.runs for one in own if one is not None)
        interval = bootstrap_interval(gaps, sets)  # every set has a source of its own
        yield FeatureMean(MEAN_OF_SETS, votes, name, figure, len(sets), n_runs, fmean(values), fmean(gaps), *interval)


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    rows = _rows_of(sys.argv[1])
    known = {(row["dataset"], row["votes"], row["contender"]) for row in rows}
    for folder in sys.argv[2:]:
        beside = [row for row in _rows_of(folder) if row["dataset"] != MEAN_OF_SETS]
        rows += [row for row in beside if (row["dataset"], row["votes"], row["contender"]) not in known]
        known |= {(row["dataset"], row["votes"], row["contender"]) for row in beside}
    rows += [asdict(one) for one in added_means(means_in(rows))]
    print(evidence.write(NAME, rows).relative_to(REPOSITORY))
    chart = worth_chart(means_in(rows))
    FIGURE.write_text(adaptive_svg(to_svg(chart.spec), label=f"{chart.title}. {chart.caption}"), encoding="utf-8")


if __name__ == "__main__":
    main()
