"""Charts of the study from typed records.

Every series keeps its colour, its mark and its dashes in all charts, so that a greyscale print is readable.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from math import isfinite
from typing import Any

import altair as alt

from rarevote.charts.svg import Key, colours, light, shapes, themed
from rarevote.methods.registry import method_title
from rarevote.study.measures import mean_interval

# Pixels between neighbouring series.
_SHIFT = 2.0

# Styles for series that have none of their own, in this order.
_LOOKS = (
    Key("", "blue", "triangle-up", (8, 3)),
    Key("", "vermillion", "circle"),
    Key("", "green", "diamond", (5, 2)),
    Key("", "purple", "cross", (8, 2, 2, 2)),
    Key("", "orange", "triangle-down", (3, 3)),
    Key("", "sky", "triangle-right", (6, 2, 1, 2)),
    Key("", "grey", "triangle-left", (1, 2)),
    Key("", "black", "square", (2, 2)),
    Key("", "olive", "wedge", (10, 4)),
)


def look(words: str, colour: str) -> Key:
    """The style with this colour for a series with this name."""
    return next(replace(key, description=words) for key in _LOOKS if key.colour == colour)


#: styles of the methods, by title
METHOD_KEYS: dict[str, Key] = {
    title: look(title, colour)
    for name, colour in {
        "majority-vote": "black",
        "dawid-skene": "blue",
        "glad": "green",
        "plat": "purple",
        "crowdfm": "orange",
        "cc-rasch": "vermillion",
        "anchored-rasch": "sky",
    }.items()
    for title in [method_title(name)]
}


@dataclass(frozen=True)
class Mark:
    """A mark of a line chart.

    Attributes:
        panel: the small chart that it belongs to.
        series: the line that it belongs to.
        x: the horizontal position.
        y: the value.
        low: lower end of its interval.
        high: upper end of its interval.
        line: where the line passes, if not through ``y``: the theory, with the measurement as the mark.
    """

    panel: str
    series: str
    x: float
    y: float
    low: float
    high: float
    line: float | None = None


def marks_with_intervals(values: Iterable[tuple[str, str, float, float]]) -> list[Mark]:
    """Means with 95% intervals of all scores that share panel, series and x, in the order of first appearance.

    Scores lie between 0 and 1, so intervals are clipped to that range.
    """
    groups: dict[tuple[str, str, float], list[float]] = {}
    for panel, series, x, value in values:
        groups.setdefault((panel, series, x), []).append(value)
    found = {place: mean_interval(of_place) for place, of_place in groups.items()}
    return [Mark(*place, one.mean, max(one.low, 0.0), min(one.high, 1.0)) for place, one in found.items()]


@dataclass(frozen=True)
class Axis:
    """The settings of an axis.

    Attributes:
        title: what it shows.
        log: whether the scale is logarithmic.
        ticks: positions of the ticks; chosen automatically if None.
        format: number format, in the notation of d3.
        domain: the range to show; that of the data if None.
    """

    title: str
    log: bool = False
    ticks: Sequence[float] | None = None
    format: str = "~g"
    domain: tuple[float, float] | None = None


@dataclass(frozen=True)
class Reference:
    """A horizontal line in all panels, with a label."""

    y: float
    description: str


def keys_for(series: Sequence[str], given: Sequence[Key] = ()) -> list[Key]:
    """The styles of all series: their own if they have one, else one that no other series uses."""
    known = {**METHOD_KEYS, **{key.description: key for key in given}}
    taken = {known[name].colour for name in series if name in known}
    free = [key for key in _LOOKS if key.colour not in taken]
    return [known[name] if name in known else replace(free.pop(0), description=name) for name in series]


def line_chart(
    marks: Sequence[Mark],
    *,
    title: str,
    x: Axis,
    y: Axis,
    keys: Sequence[Key] = (),
    without_marks: Sequence[str] = (),
    reference: Reference | None = None,
    columns: int = 3,
    size: tuple[int, int] = (260, 210),
    same_y: bool = True,
) -> alt.TopLevelMixin:
    """Lines with marks and error bars, one small chart per panel.

    Args:
        marks: what to draw; panels and series come in the order of first appearance.
        title: title of the chart.
        x: the horizontal axis.
        y: the vertical axis.
        keys: styles of series that have none of their own.
        without_marks: series drawn as lines without marks, such as a reference.
        reference: a level to compare with.
        columns: panels per row.
        size: width and height of a panel in pixels.
        same_y: whether all panels share the vertical scale.
    """
    drawn = [mark for mark in marks if isfinite(mark.y)]
    panels = list(dict.fromkeys(mark.panel for mark in drawn))
    chosen = keys_for(list(dict.fromkeys(mark.series for mark in drawn)), keys)
    rows = [{**asdict(mark), "line": mark.y if mark.line is None else mark.line} for mark in drawn]
    blank = alt.Chart(alt.InlineData(values=rows))
    base = blank.encode(
        x=alt.X("x:Q", title=x.title, scale=_scale(x, padding=12), axis=_axis(x)),
        color=colours("series", chosen),
    )
    y_scale, shape = _scale(y), shapes("series", chosen)
    line = alt.Y("line:Q", title=y.title or None, scale=y_scale, axis=_axis(y))
    layers: list[Any] = []
    for place, key in enumerate(chosen):
        # Series are slightly offset, so that error bars at the same x do not hide each other.
        shift = _SHIFT * (place - (len(chosen) - 1) / 2)
        own = base.transform_filter(alt.FieldEqualPredicate(key.description, "series"))
        layers.append(own.mark_line(strokeWidth=1.8, strokeDash=list(key.dash), xOffset=shift).encode(y=line))
        if key.description not in without_marks:
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
        return _dressed(small, title, chosen)
    many = _facets(small, panels, columns=columns, spacing=18)
    # Axis labels under every panel, so that each can be read alone.
    many = many.resolve_axis(x="independent", y="independent")
    return _dressed(many if same_y else many.resolve_scale(y="independent"), title, chosen)


@dataclass(frozen=True)
class Dot:
    """A value with its name, for a chart of dots."""

    panel: str
    row: str
    measure: str
    value: float


def dot_chart(
    dots: Sequence[Dot], *, title: str, x: Axis, keys: Sequence[Key] = (), width: int = 250, step: int = 24
) -> alt.TopLevelMixin:
    """One line per row with a mark and a number for every measure: a table as a chart."""
    rows = list(dict.fromkeys(dot.row for dot in dots))
    panels = list(dict.fromkeys(dot.panel for dot in dots))
    chosen = keys_for(list(dict.fromkeys(dot.measure for dot in dots)), keys)
    base = alt.Chart(alt.InlineData(values=[asdict(dot) for dot in dots])).encode(
        y=alt.Y("row:N", sort=rows, title=None, axis=alt.Axis(grid=True, ticks=False, domain=False, labelLimit=220)),
        x=alt.X("value:Q", title=x.title, scale=_scale(x), axis=_axis(x)),
    )
    span = base.mark_line(color=light("rule"), strokeWidth=2).encode(detail="row:N")
    marks = base.mark_point(filled=True, size=80, opacity=1).encode(
        color=colours("measure", chosen), shape=shapes("measure", chosen)
    )
    small = alt.layer(span, marks).properties(width=width, height=alt.Step(step))
    return _dressed(_facets(small, panels, columns=len(panels), spacing=34), title, chosen)


@dataclass(frozen=True)
class Track:
    """A point of a line without marks, or the single mark of the series."""

    panel: str
    series: str
    x: float
    y: float
    is_own: bool = False


def track_chart(
    tracks: Sequence[Track], *, title: str, x: Axis, y: Axis, size: tuple[int, int] = (290, 300)
) -> alt.TopLevelMixin:
    """Lines with a single mark each, one small chart per panel."""
    panels = list(dict.fromkeys(track.panel for track in tracks))
    chosen = keys_for(list(dict.fromkeys(track.series for track in tracks)))
    base = alt.Chart(alt.InlineData(values=[asdict(track) for track in tracks])).encode(
        x=alt.X("x:Q", title=x.title, scale=_scale(x), axis=_axis(x)),
        y=alt.Y("y:Q", title=y.title, scale=_scale(y), axis=_axis(y)),
        color=colours("series", chosen),
    )
    layers: list[Any] = []
    for key in chosen:
        own = base.transform_filter(alt.FieldEqualPredicate(key.description, "series"))
        line = own.transform_filter("!datum.is_own")
        layers.append(line.mark_line(strokeWidth=1.6, strokeDash=list(key.dash), clip=True))
    # Draw marks above all lines.
    marks = base.transform_filter("datum.is_own").mark_point(filled=True, size=110, opacity=1)
    edge = {"stroke": alt.value(light("paper")), "strokeWidth": alt.value(1)}
    layers.append(marks.encode(shape=shapes("series", chosen), **edge))
    small = alt.layer(*layers).properties(width=size[0], height=size[1])
    many = _facets(small, panels, columns=len(panels), spacing=24).resolve_axis(x="independent", y="independent")
    return _dressed(many, title, chosen)


def _reference_layers(blank: Any, reference: Reference, scale: alt.Scale) -> list[Any]:
    # One row per panel, at its smallest x, where the text begins.
    level = blank.transform_aggregate(x="min(x)", groupby=["panel"]).encode(
        y=alt.YDatum(reference.y, scale=scale), color=alt.value(light("grey"))
    )
    rule = level.mark_rule(strokeWidth=1, strokeDash=[1, 2])
    words = level.mark_text(align="left", baseline="bottom", dx=3, dy=-2, fontSize=10)
    return [rule, words.encode(x="x:Q", text=alt.value(reference.description))]


def _scale(axis: Axis, *, padding: int = 0) -> alt.Scale:
    """A scale; ``padding`` keeps marks at its ends away from the other axis."""
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


def _facets(small: Any, panels: Sequence[str], *, columns: int, spacing: int) -> Any:
    header = alt.Header(title=None, labelFontSize=12, labelFontWeight="bold", labelColor=light("ink"))
    return small.facet(facet=alt.Facet("panel:N", sort=panels, header=header), columns=columns, spacing=spacing)


def _dressed(chart: Any, title: str, keys: Sequence[Key]) -> alt.TopLevelMixin:
    whole = chart.properties(title=title, background="white")
    return themed(whole, legend_columns=min(len(keys), 6), legend_width=260)  # type: ignore[no-any-return]
