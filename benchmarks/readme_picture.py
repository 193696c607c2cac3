"""The picture of the README: ``python -m benchmarks.readme_picture`` writes docs/rails.svg and docs/rails-dark.svg.

It shows the data of ``rarevote demo``: the defects found for each number of flagged images, and the decision of each
method.
"""

from __future__ import annotations

import re
from typing import Any

import altair
import numpy as np

import rarevote
from benchmarks.evidence import REPOSITORY
from rarevote.charts.svg import COLOURS, light, themed, to_svg
from rarevote.cli.demo import METHOD_TITLES, RARE
from rarevote.simulate.files import example_files

PICTURE = REPOSITORY / "docs" / "rails.svg"
DARK_PICTURE = PICTURE.with_name("rails-dark.svg")
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
    """The picture as a chart, in the light colours."""
    curve, points, total = figures()
    x = altair.X("flagged:Q", title="images flagged, of 3,000", scale=altair.Scale(domain=[0, _MAX_FLAGGED]))
    y = altair.Y("found:Q", title=f"defects found, of {total}", scale=altair.Scale(domain=[0, total]))
    line = altair.Chart(altair.InlineData(values=curve)).mark_line(color=light("soft"), strokeWidth=2).encode(x=x, y=y)
    base = altair.Chart(altair.InlineData(values=points)).encode(x=x, y=y)
    dots = base.mark_point(filled=True, size=110, color=light("rare"), opacity=1)
    # A label on the right half ends below its point, so that a wider font does not run out of the picture.
    places: tuple[tuple[str, Any, int, int], ...] = (("<=", "left", 10, 12), (">", "right", 14, 20))
    labels = [
        base.transform_filter(f"datum.flagged {side} {_MAX_FLAGGED // 2}")
        .mark_text(align=align, dx=dx, dy=dy, fontSize=13, color=light("ink"))
        .encode(text="method:N")
        for side, align, dx, dy in places
    ]
    layers = altair.layer(line, dots, *labels)
    return themed(layers.properties(width=560, height=260, padding={"left": 5, "top": 8, "right": 16, "bottom": 5}))


def dark(svg: str) -> str:
    """The same picture in the dark colours."""
    swapped = {colour.light: colour.dark for colour in COLOURS.values()} | {"white": COLOURS["paper"].dark}
    return re.sub(
        r'(fill|stroke)="([^"]+)"', lambda match: f'{match[1]}="{swapped.get(match[2].lower(), match[2])}"', svg
    )


def main() -> None:
    svg = to_svg(chart())
    PICTURE.write_text(svg, encoding="utf-8")
    DARK_PICTURE.write_text(dark(svg), encoding="utf-8")


if __name__ == "__main__":
    main()
