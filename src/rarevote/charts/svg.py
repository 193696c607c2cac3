"""Charts as files (SVG, PNG; no browser, no network) and as parts of the page: known elements, colours by class.

For the page, what the renderer writes is taken apart and put together again from a short list of what a chart needs.
Anything else is left out, so nothing that a task or an annotator is called can act; a colour that is not of the palette
is an error, because it would stay as it is when the page turns dark.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import altair as alt

from rarevote.charts.theme import COLOURS
from rarevote.errors import RarevoteError
from rarevote.io.write.atomic import replacing
from rarevote.kernels.memory import require_address_space

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
        text: what the renderer wrote.
        label: what the chart shows, for those who cannot see it.

    Raises:
        RarevoteError: the text is no SVG, or has a colour that the page does not know.
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
        # The first rectangle is the ground, which the page has already.
        if not (child.tag == f"{_NAMESPACE}rect" and child.get("transform") is None):
            _copy(child, clean)
    return ElementTree.tostring(clean, encoding="unicode")


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
    """The same with at most two decimals, which no eye can tell and which is a third of the size."""
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
    """The library that draws. Its engine ends the process where it cannot reserve addresses, most of them unused."""
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
