"""Charts of the study from typed records.

Every series keeps its colour (from the palette of Okabe and Ito, which the colour-blind can tell apart), its mark and
its dashes in all charts, so that a print in grey can be read too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any, NamedTuple

import altair as alt

from rarevote.charts.palette import light
from rarevote.charts.theme import themed
from rarevote.methods.registry import method_title
from rarevote.study.intervals import mean_interval

_INK = light("ink")
# Pixels between neighbouring series.
_SHIFT = 2.0


class Style(NamedTuple):
    """How a series looks."""

    colour: str
    shape: str
    dash: tuple[int, ...]


_BLACK, _ORANGE, _SKY, _GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
_BLUE, _VERMILLION, _PURPLE, _GREY = "#0072B2", "#D55E00", "#CC79A7", "#666666"
_SOLID = (1, 0)

#: looks of the methods, by their titles
STYLES: dict[str, Style] = {
    method_title(name): style
    for name, style in {
        "majority-vote": Style(_BLACK, "square", (2, 2)),
        "dawid-skene": Style(_BLUE, "triangle-up", (8, 3)),
        "glad": Style(_GREEN, "diamond", (5, 2)),
        "plat": Style(_PURPLE, "cross", (8, 2, 2, 2)),
        "crowdfm": Style(_ORANGE, "triangle-down", (3, 3)),
        "cc-rasch": Style(_VERMILLION, "circle", _SOLID),
    }.items()
}
# For series of other names, in the order in which they come.
_OTHERS = (
    Style(_BLUE, "triangle-up", (8, 3)),
    Style(_VERMILLION, "circle", _SOLID),
    Style(_GREEN, "diamond", (5, 2)),
    Style(_PURPLE, "cross", (8, 2, 2, 2)),
    Style(_ORANGE, "triangle-down", (3, 3)),
    Style(_SKY, "triangle-right", (6, 2, 1, 2)),
    Style(_GREY, "triangle-left", (1, 2)),
    Style(_BLACK, "square", (2, 2)),
)


@dataclass(frozen=True)
class Point:
    """A mark of a line chart.

    Attributes:
        panel: which of the small charts side by side.
        series: which line.
        x: where.
        y: the value.
        low: lower end of its interval.
        high: upper end of its interval.
        line: where the line passes, if not through ``y``: theory, with the measurement as the mark.
    """

    panel: str
    series: str
    x: float
    y: float
    low: float
    high: float
    line: float | None = None


def points_with_intervals(values: Iterable[tuple[str, str, float, float]]) -> list[Point]:
    """Means with 95 % intervals of all scores that share panel, series and x, in the order of first appearance.

    Scores lie between 0 and 1, and so does what is drawn of their intervals.
    """
    groups: dict[tuple[str, str, float], list[float]] = {}
    for panel, series, x, value in values:
        groups.setdefault((panel, series, x), []).append(value)
    found = {place: mean_interval(of_place) for place, of_place in groups.items()}
    return [Point(*place, one.mean, max(one.low, 0.0), min(one.high, 1.0)) for place, one in found.items()]


@dataclass(frozen=True)
class Axis:
    """An axis in words.

    Attributes:
        title: what it shows.
        log: whether equal steps are equal ratios.
        ticks: where to write numbers; chosen automatically if None.
        format: how to write them, in the notation of d3.
        domain: the range to show; that of the data if None.
    """

    title: str
    log: bool = False
    ticks: Sequence[float] | None = None
    format: str = "~g"
    domain: tuple[float, float] | None = None


@dataclass(frozen=True)
class Reference:
    """A level that all panels show, with words beside it."""

    y: float
    words: str


def styles_for(series: Sequence[str], given: dict[str, Style] | None = None) -> list[Style]:
    """The styles of all series: their own where they have one, else one that nobody else uses."""
    known = {**STYLES, **(given or {})}
    taken = {known[name] for name in series if name in known}
    free = [style for style in _OTHERS if style not in taken]
    return [known[name] if name in known else free.pop(0) for name in series]


def line_chart(
    points: Sequence[Point],
    *,
    title: str,
    x: Axis,
    y: Axis,
    styles: dict[str, Style] | None = None,
    without_marks: Sequence[str] = (),
    reference: Reference | None = None,
    columns: int = 3,
    size: tuple[int, int] = (260, 210),
    same_y: bool = True,
) -> alt.TopLevelMixin:
    """Lines with marks and error bars, one small chart per panel.

    Args:
        points: what to draw; panels and series come in the order of first appearance.
        title: stands above everything.
        x: the horizontal axis.
        y: the vertical axis.
        styles: looks of series that have none of their own.
        without_marks: series drawn as bare lines, such as a reference.
        reference: a level to compare with.
        columns: panels in a row.
        size: width and height of a panel in pixels.
        same_y: whether all panels share the vertical scale.
    """
    drawn = [point for point in points if isfinite(point.y)]
    series = list(dict.fromkeys(point.series for point in drawn))
    panels = list(dict.fromkeys(point.panel for point in drawn))
    looks = styles_for(series, styles)
    rows = [{**asdict(point), "line": point.y if point.line is None else point.line} for point in drawn]
    blank = alt.Chart(alt.InlineData(values=rows))
    base = blank.encode(
        x=alt.X("x:Q", title=x.title, scale=_scale(x, padding=12), axis=_axis(x)),
        color=_by_series(series, [look.colour for look in looks]),
    )
    shape = alt.Shape(
        "series:N", scale=alt.Scale(domain=series, range=[look.shape for look in looks]), legend=_legend(series)
    )
    y_scale = _scale(y)
    line = alt.Y("line:Q", title=y.title or None, scale=y_scale, axis=_axis(y))
    layers: list[Any] = []
    for place, (name, look) in enumerate(zip(series, looks, strict=True)):
        # Series stand a little apart, so that the error bars of one x do not hide each other.
        shift = _SHIFT * (place - (len(series) - 1) / 2)
        own = base.transform_filter(alt.FieldEqualPredicate(name, "series"))
        layers.append(own.mark_line(strokeWidth=1.8, strokeDash=list(look.dash), xOffset=shift).encode(y=line))
        if name not in without_marks:
            layers += [
                own.mark_rule(strokeWidth=1.4, xOffset=shift).encode(y=alt.Y("low:Q", scale=y_scale), y2="high:Q"),
                own.mark_point(filled=True, size=46, opacity=1, xOffset=shift).encode(
                    y=alt.Y("y:Q", scale=y_scale), shape=shape
                ),
            ]
    if reference is not None:
        layers += _reference_layers(blank, reference, y_scale)
    small = alt.layer(*layers).properties(width=size[0], height=size[1])
    if len(panels) == 1:
        return _dressed(small, title)
    header = alt.Header(title=None, labelFontSize=12, labelFontWeight="bold", labelColor=_INK)
    many = small.facet(facet=alt.Facet("panel:N", sort=panels, header=header), columns=columns, spacing=18)
    # A number under every panel, so that each can be read alone.
    many = many.resolve_axis(x="independent", y="independent")
    if not same_y:
        many = many.resolve_scale(y="independent")
    return _dressed(many, title)


@dataclass(frozen=True)
class Dot:
    """A value with its name, for a chart of dots."""

    panel: str
    row: str
    measure: str
    value: float


def dot_chart(
    dots: Sequence[Dot],
    *,
    title: str,
    x: Axis,
    styles: dict[str, Style] | None = None,
    width: int = 250,
    step: int = 24,
) -> alt.TopLevelMixin:
    """One line per row with a mark and a number for every measure: a table that can be seen."""
    rows = list(dict.fromkeys(dot.row for dot in dots))
    panels = list(dict.fromkeys(dot.panel for dot in dots))
    measures = list(dict.fromkeys(dot.measure for dot in dots))
    looks = styles_for(measures, styles)
    base = alt.Chart(alt.InlineData(values=[asdict(dot) for dot in dots])).encode(
        y=alt.Y("row:N", sort=rows, title=None, axis=alt.Axis(grid=True, ticks=False, domain=False, labelLimit=220)),
        x=alt.X("value:Q", title=x.title, scale=_scale(x), axis=_axis(x)),
    )
    colour = _by_series(measures, [look.colour for look in looks], field="measure")
    shape = alt.Shape(
        "measure:N",
        scale=alt.Scale(domain=measures, range=[look.shape for look in looks]),
        legend=_legend(measures),
    )
    span = base.mark_line(color="#bbbbbb", strokeWidth=2).encode(detail="row:N")
    marks = base.mark_point(filled=True, size=80, opacity=1).encode(color=colour, shape=shape)
    small = alt.layer(span, marks).properties(width=width, height=alt.Step(step))
    header = alt.Header(title=None, labelFontSize=12, labelFontWeight="bold", labelColor=_INK)
    many = small.facet(facet=alt.Facet("panel:N", sort=panels, header=header), columns=len(panels), spacing=34)
    return _dressed(many, title)


def _reference_layers(blank: Any, reference: Reference, scale: alt.Scale) -> list[Any]:
    # One row per panel, at its smallest x, where the words begin.
    level = blank.transform_aggregate(x="min(x)", groupby=["panel"]).encode(
        y=alt.YDatum(reference.y, scale=scale), color=alt.value(_GREY)
    )
    rule = level.mark_rule(strokeWidth=1, strokeDash=[1, 2])
    words = level.mark_text(align="left", baseline="bottom", dx=3, dy=-2, fontSize=10)
    return [rule, words.encode(x="x:Q", text=alt.value(reference.words))]


def _scale(axis: Axis, *, padding: int = 0) -> alt.Scale:
    """A scale; ``padding`` keeps marks that stand at its ends off the other axis."""
    return alt.Scale(
        type="log" if axis.log else "linear",
        zero=False,
        domain=list(axis.domain) if axis.domain else alt.Undefined,
        nice=axis.domain is None and not padding,
        padding=padding or alt.Undefined,
    )


def _axis(axis: Axis) -> alt.Axis:
    values = list(axis.ticks) if axis.ticks is not None else alt.Undefined
    return alt.Axis(values=values, format=axis.format, labelFlush=False, labelOverlap=axis.ticks is None)


def _by_series(series: Sequence[str], colours: Sequence[str], field: str = "series") -> alt.Color:
    return alt.Color(f"{field}:N", scale=alt.Scale(domain=list(series), range=list(colours)), legend=_legend(series))


def _legend(series: Sequence[str]) -> alt.Legend:
    return alt.Legend(title=None, orient="top", direction="horizontal", columns=min(len(series), 6), labelLimit=260)


def _dressed(chart: Any, title: str) -> alt.TopLevelMixin:
    dressed: alt.TopLevelMixin = themed(chart.properties(title=title, background="white"))
    return dressed
