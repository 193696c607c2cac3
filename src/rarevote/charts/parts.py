"""What all charts share: a legend that the page can draw, scales, and the dress."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, log
from typing import Any

import altair as alt

from rarevote.charts.theme import light, themed

WIDTH = 400
_ABILITY_TICKS = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999)


@dataclass(frozen=True)
class Key:
    """A series in the legend.

    Attributes:
        words: what it is called.
        colour: its name in the palette.
        shape: "circle", "square", "diamond", "cross", "wedge", "triangle-" with "up", "down", "left" or "right", "line"
            or "dashes".
        dash: pixels on and off along the line of the series; empty for a solid line.
    """

    words: str
    colour: str
    shape: str
    dash: tuple[int, ...] = ()


@dataclass(frozen=True)
class Chart:
    """A chart with its words.

    Attributes:
        name: of its files.
        title: what it shows.
        caption: how to read it.
        keys: the legend.
        spec: the chart itself, without title and ground.
    """

    name: str
    title: str
    caption: str
    keys: tuple[Key, ...]
    spec: Any


def or_none(value: float) -> float | None:
    """A value for a chart, in which nothing stands for nan."""
    return float(value) if isfinite(value) else None


def short(name: str, limit: int = 24) -> str:
    """The name, cut where it would not fit an axis."""
    return name if len(name) <= limit else name[: limit - 1] + "…"


def percent_axis() -> alt.Axis:
    """An axis from 0 to 100 percent."""
    return alt.Axis(format=".0%", tickCount=5)


def ability_scale(ends: list[float]) -> dict[str, Any]:
    """Scale and axis of an ability: spaced in logits, marked in percent."""
    ticks = [log(share / (1 - share)) for share in _ABILITY_TICKS]
    inside = [tick for tick in ticks if ends[0] <= tick <= ends[1]]
    words = "round(1000 / (1 + exp(-datum.value))) / 10 + '%'"
    return {
        "scale": alt.Scale(domain=ends, nice=False, zero=False),
        "axis": alt.Axis(values=inside, labelExpr=words, labelOverlap=True),
    }


def colours(field: str, keys: Sequence[Key]) -> Any:
    """Colour by series."""
    return scaled(field, keys, [light(key.colour) for key in keys], alt.Color)


def shapes(field: str, keys: Sequence[Key]) -> Any:
    """Shape by series."""
    return scaled(field, keys, [key.shape for key in keys], alt.Shape)


def scaled(field: str, keys: Sequence[Key], looks: Sequence[Any], channel: Any) -> Any:
    """A channel with one look per series."""
    return channel(f"{field}:N", scale=alt.Scale(domain=[key.words for key in keys], range=list(looks)))


def row_axis() -> alt.Axis:
    """The axis that names the rows of a chart."""
    return alt.Axis(ticks=False, domain=False, labelLimit=130, labelFontSize=13, labelPadding=8)


def dressed(chart: Any) -> Any:
    """The chart as the page shows it."""
    # The same outer width for all, so that the page scales their words alike.
    size = alt.AutoSizeParams(type="fit-x", contains="padding")
    return themed(chart.properties(width=WIDTH, autosize=size, background="transparent", padding=2))
