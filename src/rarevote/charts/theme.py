"""The dress of every chart: fonts and colours, on the page and in the study."""

from __future__ import annotations

from typing import Any

from rarevote.charts.palette import light

_FONT = "Helvetica, Arial, sans-serif"


def themed(chart: Any, *, legend_columns: int = 2, legend_width: int = 210) -> Any:
    """The chart in our fonts and colours; ``legend_width`` is that of one of its names in pixels."""
    return (
        chart.configure(font=_FONT)
        .configure_title(fontSize=15, anchor="start", color=light("ink"), offset=10)
        .configure_axis(
            labelFontSize=12,
            titleFontSize=12.5,
            titleFontWeight="normal",
            titlePadding=10,
            labelColor=light("soft"),
            titleColor=light("ink"),
            gridColor=light("grid"),
            domainColor=light("rule"),
            tickColor=light("rule"),
        )
        .configure_legend(
            title=None,
            orient="top",
            direction="horizontal",
            columns=legend_columns,
            labelFontSize=12.5,
            labelColor=light("ink"),
            labelLimit=legend_width,
            symbolSize=80,
            symbolStrokeWidth=2,
            symbolOpacity=1,
        )
        .configure_view(stroke=None)
    )
