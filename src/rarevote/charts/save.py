"""Charts as SVG and PNG, without a browser or a network."""

from __future__ import annotations

from pathlib import Path

import altair as alt
import vl_convert

from rarevote.io.write.atomic import replacing

PNG_SCALE = 2.0
_VEGA_LITE = alt.SCHEMA_VERSION.removeprefix("v").rpartition(".")[0]


def to_svg(chart: alt.TopLevelMixin) -> str:
    """The chart as SVG."""
    return vl_convert.vegalite_to_svg(chart.to_json(), vl_version=_VEGA_LITE)


def save(chart: alt.TopLevelMixin, stem: Path) -> None:
    """Write ``stem.svg`` and ``stem.png``."""
    with replacing(stem.with_name(f"{stem.name}.svg")) as temporary:
        temporary.write_text(to_svg(chart), encoding="utf-8")
    png = vl_convert.vegalite_to_png(chart.to_json(), vl_version=_VEGA_LITE, scale=PNG_SCALE)
    with replacing(stem.with_name(f"{stem.name}.png")) as temporary:
        temporary.write_bytes(png)
