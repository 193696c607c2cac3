"""The dress of page and charts: fonts, and one table of colours that the style sheet and the SVG classes are made of.

Charts are drawn in the light colours. In the page each of them becomes the name of a CSS variable, so that a chart
follows the page into the dark. The hues are those of Okabe and Ito, which the colour-blind can tell apart; the page's
light ones are darkened and its dark ones lightened until text-sized marks stand out (a contrast of 3 or more). The last
nine are for the series of a study, whose lines also differ in mark and dashes.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Colour(NamedTuple):
    """A colour on light and on dark ground."""

    light: str
    dark: str


COLOURS: dict[str, Colour] = {
    "paper": Colour("#ffffff", "#15191e"),
    "ink": Colour("#1b1f24", "#e9ecef"),
    "soft": Colour("#57606a", "#a3adb8"),
    "rule": Colour("#d5dae0", "#39414a"),
    "grid": Colour("#e7eaee", "#2b323a"),
    "band": Colour("#f4f6f8", "#1d232a"),
    "link": Colour("#0a5ea8", "#7cc0f5"),
    "rare": Colour("#c14f00", "#ff8d47"),
    "common": Colour("#0068a8", "#5ab4ee"),
    "vote": Colour("#6a737d", "#98a2ad"),
    "good": Colour("#00795a", "#3ccf9f"),
    "odd": Colour("#a8447f", "#e79ac6"),
    "black": Colour("#000000", "#f5f5f5"),
    "orange": Colour("#e69f00", "#f0b73a"),
    "sky": Colour("#56b4e9", "#8fd0f5"),
    "green": Colour("#009e73", "#2fcf9f"),
    "blue": Colour("#0072b2", "#5aa9e6"),
    "vermillion": Colour("#d55e00", "#ff7f33"),
    "purple": Colour("#cc79a7", "#e0a3c4"),
    "grey": Colour("#666666", "#a0a0a0"),
    "olive": Colour("#7a6a00", "#d2c25a"),
}


def light(name: str) -> str:
    """The colour that charts are drawn in."""
    return COLOURS[name].light


def style_variables() -> str:
    """CSS: the variables for light, dark and print, and the classes that give an SVG element its colours."""
    schemes = {
        "": [f"--{name}: {colour.light};" for name, colour in COLOURS.items()],
        "@media screen and (prefers-color-scheme: dark)": [
            f"--{name}: {colour.dark};" for name, colour in COLOURS.items()
        ],
    }
    parts = []
    for condition, lines in schemes.items():
        block = ":root { " + " ".join(lines) + " }"
        parts.append(f"{condition} {{ {block} }}" if condition else block)
    for name in COLOURS:
        parts.append(f".fill-{name} {{ fill: var(--{name}); }} .stroke-{name} {{ stroke: var(--{name}); }}")
    return "\n".join(parts)


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
