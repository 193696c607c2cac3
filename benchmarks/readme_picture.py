"""The picture on the first screen of the README: ``python -m benchmarks.readme_picture`` writes docs/rails.svg.

The rails of ``rarevote demo``: how many defects each number of flagged images finds, with every method's own decision.
"""

from __future__ import annotations

from typing import Any

import altair
import numpy as np

import rarevote
from benchmarks.evidence import REPOSITORY
from rarevote.charts.svg import themed, to_svg
from rarevote.cli.demo import METHOD_TITLES, RARE
from rarevote.simulate.files import example_files

PICTURE = REPOSITORY / "docs" / "rails.svg"
_MAX_FLAGGED = 600


def figures() -> tuple[list[dict[str, Any]], list[dict[str, Any]], int]:
    """The curve of the default's ranking, each method's decision, and how many defects there are."""
    files = example_files()
    crowd = rarevote.read(files.labels)
    truth = crowd.known(files.truth)
    points = []
    for name, title in METHOD_TITLES.items():
        result = rarevote.fit(crowd, name, rare=RARE).decide(allow_unvoted=True)
        is_rare = np.array([truth[task] == RARE for task in result.tasks.tolist()])
        flagged = result.labels == RARE
        points.append({"method": title, "flagged": int(flagged.sum()), "found": int((flagged & is_rare).sum())})
    order = np.argsort(-result.fitted.probabilities[:, result.fitted.rare.code], kind="stable")
    found = np.concatenate([[0], is_rare[order].cumsum()])[: _MAX_FLAGGED + 1]
    curve = [{"flagged": number, "found": int(count)} for number, count in enumerate(found)]
    return curve, points, int(is_rare.sum())


def chart() -> Any:
    """The picture as a chart."""
    curve, points, total = figures()
    x = altair.X("flagged:Q", title="images flagged, of 3,000", scale=altair.Scale(domain=[0, _MAX_FLAGGED]))
    y = altair.Y("found:Q", title=f"defects found, of {total}", scale=altair.Scale(domain=[0, total]))
    line = altair.Chart(altair.InlineData(values=curve)).mark_line(color="#5b7083", strokeWidth=2).encode(x=x, y=y)
    base = altair.Chart(altair.InlineData(values=points)).encode(x=x, y=y)
    dots = base.mark_point(filled=True, size=110, color="#c4622d", opacity=1)
    words = base.mark_text(align="left", dx=10, dy=12, fontSize=13).encode(text="method:N")
    return themed((line + dots + words).properties(width=560, height=260))


def main() -> None:
    PICTURE.write_text(to_svg(chart()), encoding="utf-8")


if __name__ == "__main__":
    main()
