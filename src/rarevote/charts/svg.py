"""Charts as files (SVG, PNG; no browser, no network) and as parts of the page, with a common style.

For the page, the renderer's output is parsed and rebuilt from a short list of elements that a chart needs.
Anything else is left out, so the name of a task or an annotator cannot run code; a colour outside the palette
is an error, because it would not change with the dark theme.

One table of colours defines the style sheet and the SVG classes. Charts are drawn in the light colours. In the page
each of them becomes the name of a CSS variable, so that a chart follows the theme of the page. The hues are those of
Okabe and Ito, which are distinguishable for colour-blind readers; the page's light ones are darkened and its dark ones
lightened until text-sized marks stand out (a contrast of 3 or more). The last nine are for the series of a study, whose
lines also differ in mark and dashes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import log
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from xml.etree import ElementTree

import altair as alt

from rarevote.errors import RarevoteError
from rarevote.io.write.atomic import replacing
from rarevote.kernels.memory import require_address_space


class Colour(NamedTuple):
    """A colour on a light and on a dark background."""

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
    """The light variant of a colour, which charts use."""
    return COLOURS[name].light


def style_variables() -> str:
    """CSS: the variables for light, dark and print, and the classes that give an SVG element its colours."""
    light_ones, dark_ones = (
        " ".join(f"--{name}: {getattr(colour, ground)};" for name, colour in COLOURS.items())
        for ground in ("light", "dark")
    )
    parts = [
        f":root {{ {light_ones} }}",
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark_ones} }} }}",
    ]
    for name in COLOURS:
        parts.append(f".fill-{name} {{ fill: var(--{name}); }} .stroke-{name} {{ stroke: var(--{name}); }}")
    return "\n".join(parts)


_FONT = "Helvetica, Arial, sans-serif"


def themed(chart: Any, *, legend_columns: int = 2, legend_width: int = 210) -> Any:
    """The chart in our fonts and colours; ``legend_width`` is the width of a legend entry in pixels."""
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


WIDTH = 400
_ABILITY_TICKS = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999)


@dataclass(frozen=True)
class Key:
    """A series in the legend.

    Attributes:
        description: its name.
        colour: its name in the palette.
        shape: "circle", "square", "diamond", "cross", "wedge", "triangle-" with "up", "down", "left" or "right", "line"
            or "dashes".
        dash: pixels on and off along the line of the series; empty for a solid line.
    """

    description: str
    colour: str
    shape: str
    dash: tuple[int, ...] = ()


@dataclass(frozen=True)
class Chart:
    """A chart with its texts.

    Attributes:
        name: name of its files.
        title: what it shows.
        caption: how to read it.
        keys: the legend.
        spec: the chart itself, without title and background.
    """

    name: str
    title: str
    caption: str
    keys: tuple[Key, ...]
    spec: Any


def short(name: str, limit: int = 24) -> str:
    """The name, shortened to fit an axis."""
    return name if len(name) <= limit else name[: limit - 1] + "…"


def drawn_from(rows: list[dict[str, Any]], **encoding: Any) -> alt.Chart:
    """A chart of rows, without marks yet."""
    return alt.Chart(alt.InlineData(values=rows)).encode(**encoding)


def described_by_words(rows: list[dict[str, Any]], **encoding: Any) -> alt.Chart:
    """The chart with the ``words`` of a row as the description of its mark."""
    return drawn_from(rows, description=alt.Description("words:N"), **encoding)


def share_axis(channel: Any, field: str, title: str, **options: Any) -> Any:
    """A share along an axis from 0 to 100 percent."""
    axis = alt.Axis(format=".0%", tickCount=5)
    return channel(f"{field}:Q", title=title, scale=alt.Scale(domain=[0, 1]), axis=axis, **options)


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
    """A channel with one style per series."""
    return channel(f"{field}:N", scale=alt.Scale(domain=[key.description for key in keys], range=list(looks)))


def row_axis() -> alt.Axis:
    """The axis that names the rows of a chart."""
    return alt.Axis(ticks=False, domain=False, labelLimit=130, labelFontSize=13, labelPadding=8)


def dressed(chart: Any, height: Any) -> Any:
    """The chart in the style of the page."""
    # The same outer width for all, so that the page scales their texts equally.
    size = alt.AutoSizeParams(type="fit-x", contains="padding")
    return themed(chart.properties(width=WIDTH, height=height, autosize=size, background="transparent", padding=2))


_NAMESPACE = "{http://www.w3.org/2000/svg}"
_ELEMENTS = frozenset({"g", "path", "line", "rect", "text", "tspan"})
_ATTRIBUTES = frozenset(
    {
        "d", "transform", "x", "y", "x1", "x2", "y1", "y2", "dx", "dy", "width", "height", "rx", "opacity",
        "fill-opacity", "stroke-opacity", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin",
        "stroke-miterlimit", "text-anchor", "font-size", "font-weight", "font-style",
    }
)  # fmt: skip
_CLASS_OF_COLOUR = {colour.light: name for name, colour in COLOURS.items()}
_NUMBER = re.compile(r"-?\d+\.\d{3,}")


def inline_svg(text: str, *, label: str) -> str:
    """The chart for the page.

    Args:
        label: what the chart shows, for screen readers.

    Raises:
        RarevoteError: the text is not SVG, or has a colour that is not in the palette.
    """
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise RarevoteError(f"a chart could not be drawn ({error})") from None
    width, height = root.get("width", ""), root.get("height", "")
    clean = ElementTree.Element(
        "svg",
        {"viewBox": f"0 0 {width} {height}", "width": width, "height": height, "role": "img", "aria-label": label},
    )
    for child in root:
        # The first rectangle is the background, which the page already has.
        if not (child.tag == f"{_NAMESPACE}rect" and child.get("transform") is None):
            _copy(child, clean)
    return ElementTree.tostring(clean, encoding="unicode")


def adaptive_svg(text: str, *, label: str) -> str:
    """The chart as a separate file, with its own background, in light or dark colours as set in the reader's system.

    Args:
        label: what the chart shows, for screen readers.

    Raises:
        RarevoteError: the text is not SVG, or has a colour that is not in the palette.
    """
    root = ElementTree.fromstring(inline_svg(text, label=label))
    root.set("xmlns", _NAMESPACE.strip("{}"))
    style = ElementTree.Element("style")
    style.text = f"{style_variables()}\ntext {{ font-family: {_FONT}; }}"
    ground = ElementTree.Element("rect", {"width": "100%", "height": "100%", "class": "fill-paper"})
    root[:0] = [style, ground]
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _copy(source: ElementTree.Element, parent: ElementTree.Element) -> None:
    name = source.tag.removeprefix(_NAMESPACE)
    if name not in _ELEMENTS or source.get("display") == "none" or source.get("d") == "M0,0h0v0h0Z":
        return
    attributes = {key: _rounded(value) for key, value in source.attrib.items() if key in _ATTRIBUTES}
    classes = []
    for key in ("fill", "stroke"):
        value = source.get(key)
        if value in ("none", "transparent"):
            attributes[key] = "none"
        elif value is not None:
            classes.append(f"{key}-{_colour_name(value)}")
    if classes:
        attributes["class"] = " ".join(classes)
    element = ElementTree.SubElement(parent, name, attributes)
    element.text = source.text
    if name in ("path", "line", "rect") and source.get("role") == "graphics-symbol" and source.get("aria-label"):
        # Browsers show the title of a mark when the pointer rests on it.
        ElementTree.SubElement(element, "title").text = source.get("aria-label")
    for child in source:
        _copy(child, element)
    if name == "g" and not len(element):
        parent.remove(element)


def _rounded(value: str) -> str:
    """The numbers with at most two decimals, which look the same and take a third of the size."""
    return _NUMBER.sub(lambda match: f"{float(match.group()):.2f}".rstrip("0").rstrip("."), value)


def _colour_name(value: str) -> str:
    try:
        return _CLASS_OF_COLOUR[value.lower()]
    except KeyError:
        raise RarevoteError(f"a chart has the colour {value}, which is not of the palette") from None


PNG_SCALE = 2.0
_ADDRESS_SPACE = 70_000_000_000
_VEGA_LITE = alt.SCHEMA_VERSION.removeprefix("v").rpartition(".")[0]


@cache
def _renderer() -> ModuleType:
    """The rendering library. Its engine ends the process if it cannot reserve address space, most of it unused."""
    require_address_space(_ADDRESS_SPACE, "drawing charts (V8)")
    import vl_convert

    return vl_convert


def to_svg(chart: alt.TopLevelMixin) -> str:
    """The chart as SVG."""
    return str(_renderer().vegalite_to_svg(chart.to_json(), vl_version=_VEGA_LITE))


def save(chart: alt.TopLevelMixin, stem: Path) -> None:
    """Write ``stem.svg`` and ``stem.png``."""
    with replacing(stem.with_name(f"{stem.name}.svg")) as temporary:
        temporary.write_text(to_svg(chart), encoding="utf-8")
    png = _renderer().vegalite_to_png(chart.to_json(), vl_version=_VEGA_LITE, scale=PNG_SCALE)
    with replacing(stem.with_name(f"{stem.name}.png")) as temporary:
        temporary.write_bytes(png)
