"""Operating points and rankings: how much of the rare class a method's ranking finds, and where its labels stop.

Two methods with the same curve differ only in boldness: the bolder one finds more because it flags more, and the other
could do so too. A better ranking is a higher curve. To combine datasets, flags are counted per item that truly has
the rarest class, and all datasets have equal weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor
from statistics import fmean
from typing import Literal

from rarevote.charts.svg import Chart
from rarevote.methods.registry import method_title
from rarevote.study.datasets import DatasetInfo
from rarevote.study.figures import Axis, Track, track_chart
from rarevote.study.results import ResultRow, Results
from rarevote.study.summaries import BINARY, MULTICLASS, Regime, members

# Flags per true item at which the curves are evaluated.
_STEP, _LAST = 0.05, 4.0
#: the panels: all binary datasets, those in which one class is rare, and the others
PANELS = (
    BINARY.regimes[0]._replace(key="binary", title="binary"),
    BINARY.regimes[1]._replace(key="binary_imb3", title="binary, imbalance ≥ 3"),
    MULTICLASS.regimes[0]._replace(key="multiclass", title="multiclass"),
)


@dataclass(frozen=True)
class OperatingPoint:
    """A point of the figure.

    Attributes:
        sets_of: the group of datasets.
        sets: number of datasets.
        method: name of the method.
        kind: "ranking" for a point of the curve, "own" for the method's own labels.
        flags_per_item: items flagged per item of the rarest class, in every dataset; the mean for "own".
        recall: mean share of the rarest class among them.
    """

    sets_of: str
    sets: int
    method: str
    kind: Literal["ranking", "own"]
    flags_per_item: float
    recall: float


def operating_points(results: Results, sets: Sequence[DatasetInfo], methods: Sequence[str]) -> list[OperatingPoint]:
    """All points; a method that lacks a dataset of a panel is left out of it, so that curves can be compared."""
    steps = [_STEP * step for step in range(round(_LAST / _STEP) + 1)]
    found = []
    for panel in PANELS:
        for method in methods:
            rows = _of_panel(results, panel, sets, method)
            for x in steps if rows else ():
                recalls = [row.recall_at(x * (row.minority_items or 0)) or 0.0 for row in rows]
                found.append(OperatingPoint(panel.key, len(rows), method, "ranking", x, fmean(recalls)))
            if rows:
                own = (
                    fmean(row.flags_per_item or 0.0 for row in rows),
                    fmean(row.minority_recall or 0.0 for row in rows),
                )
                found.append(OperatingPoint(panel.key, len(rows), method, "own", *own))
    return found


def _of_panel(results: Results, panel: Regime, sets: Sequence[DatasetInfo], method: str) -> list[ResultRow]:
    rows = [results[one.slug, method] for one in members(panel, sets) if (one.slug, method) in results]
    here = [row for row in rows if row.status != "absent"]
    return here if all(row.curves for row in here) else []


def operating_chart(points: Sequence[OperatingPoint]) -> Chart:
    """The figure: a curve per method, with the point of its own labels."""
    words = {panel.key: panel.title for panel in PANELS}
    tracks = [
        Track(
            f"{one.sets} datasets: {words[one.sets_of]}",
            method_title(one.method),
            one.flags_per_item,
            one.recall,
            is_own=one.kind == "own",
        )
        for one in points
    ]
    title = "Operating point against ranking"
    own = [one for one in points if one.kind == "own"]
    # Near the points of the own labels, where the curves differ.
    flags = [one.flags_per_item for one in own]
    x = (floor(2 * min(flags) - 1) / 2, max(3.0, 1.05 * max(flags)))
    y = (floor(10 * min(one.recall for one in own) - 1.5) / 10, 1.0)
    return Chart(
        "operating_points",
        title,
        "Lines: recall of the rarest class among the highest-ranked items, by how many are flagged for every one that "
        "has the class; mean over datasets. Marks: where the method's own labels stand, mean flags against mean "
        "recall. A mark may lie off its line, since a method flags more in some datasets than in others. Along a "
        "line, more is found only because more is flagged; a better ranking is a higher line.",
        (),
        track_chart(
            tracks,
            title=title,
            x=Axis("items flagged per item that has the rarest class", domain=(max(x[0], 0.0), x[1])),
            y=Axis("recall of the rarest class", domain=(max(y[0], 0.0), y[1])),
        ),
    )
