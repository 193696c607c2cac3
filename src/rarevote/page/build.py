"""Records become one HTML file that needs nothing else: style, script, charts and lists are all inside.

A content-security policy allows the one style sheet and the one script by their hashes and forbids everything else, so
that even a name that slipped through as markup could neither run nor load anything. Names reach the page in two
ways: escaped by the template, or as JSON in a block that no browser runs and that the script shows as text.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from rarevote.charts.parts import Chart
from rarevote.charts.svg import inline_svg, save, to_svg
from rarevote.errors import InputError
from rarevote.io.write.atomic import replacing
from rarevote.meaning.diagnose import Diagnosis
from rarevote.page import sentences
from rarevote.page.assets import asset, page_style, template
from rarevote.page.sections import Section
from rarevote.page.sentences import About

# The marks of a legend, drawn around the origin; lines are stroked, shapes are filled.
_KEY_PATHS = {
    "circle": "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0Z",
    "square": "M-4.5 -4.5h9v9h-9Z",
    "diamond": "M0 -6L5 0L0 6L-5 0Z",
    "triangle-up": "M-5.5 4.5L0 -5.5L5.5 4.5Z",
    "triangle-down": "M-5.5 -4.5L0 5.5L5.5 -4.5Z",
    "cross": "M-2 -6h4v4h4v4h-4v4h-4v-4h-4v-4h4Z",
    "line": "M-8 0H8",
    "dashes": "M-8 0H-2M2 0H8",
}


def build_page(found: Diagnosis, about: About, sections: Sequence[Section]) -> str:
    """The whole page as text.

    Args:
        found: the records.
        about: where they come from.
        sections: what the page consists of, from :func:`rarevote.page.sections.page_sections`.
    """
    return _assembled(
        about,
        sections,
        headline=sentences.headline(found),
        lead=sentences.lead(found),
        tiles=sentences.tiles(found),
        n_classes=len(found.classes.names),
        leads=found.leading is not None,
        cautions=[*sentences.cautions(found), *found.alike.warnings, *about.cautions],
        classes=[str(name) for name in found.classes.names.tolist()],
        rare=found.rare,
    )


def plain_page(about: About, headline: str, sections: Sequence[Section]) -> str:
    """A page that is about no fit: a headline and sections.

    Args:
        about: where it comes from.
        headline: the answer in one sentence.
        sections: what the page consists of; without lists of items or annotators.
    """
    cautions = list(about.cautions)
    return _assembled(
        about, sections, headline=headline, lead="", tiles=[], n_classes=0, cautions=cautions, classes=[], rare=0
    )


def _assembled(about: About, sections: Sequence[Section], *, classes: list[str], rare: int, **head: Any) -> str:
    style = f"\n{page_style()}"
    script = f"\n{asset('rarevote.page', 'report.js')}"
    return template("rarevote.page", "report.html.j2").render(
        policy=_policy(style, script),
        style=Markup(style),
        script=Markup(script),
        data=Markup(_as_script_data(classes, rare, sections)),
        sections=[{"name": section.name, "link": section.link, "html": _html(section)} for section in sections],
        about=about,
        **head,
    )


def _html(section: Section) -> Markup:
    made = template("rarevote.page", f"sections/{section.name}.html.j2").render(
        **section.values,
        charts=section.charts,
        lists={entry.name: entry for entry in section.lists},
        svg=_svg,
        key_path=_KEY_PATHS,
    )
    return Markup(made)  # escaped by its own template


def write_page(path: Path, page: str) -> Path:
    """Write the page, whole or not at all."""
    with replacing(path) as temporary:
        # Newlines as they are: the hashes of the policy are those of this very text.
        temporary.write_text(page, encoding="utf-8", newline="\n")
    return path


def export_charts(folder: Path, sections: Sequence[Section]) -> list[Path]:
    """Write every chart as ``NAME.svg`` and ``NAME.png``, in light colours with its title; returns the files.

    Raises:
        InputError: the folder cannot be made or written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written ({error.strerror})") from None
    written = []
    for chart in (chart for section in sections for chart in section.charts):
        save(chart.spec.properties(title=chart.title, background="white", padding=12), folder / chart.name)
        written += [folder / f"{chart.name}.svg", folder / f"{chart.name}.png"]
    return written


def _svg(chart: Chart) -> Markup:
    """The chart in the page, whose legend is HTML."""
    return Markup(
        inline_svg(to_svg(chart.spec.configure_legend(disable=True)), label=f"{chart.title}. {chart.caption}")
    )


def _policy(style: str, script: str) -> str:
    """A policy under which nothing but this style sheet and this script counts."""
    rules = {
        "default-src": "'none'",
        "style-src": _hash(style),
        "script-src": _hash(script),
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _as_script_data(classes: list[str], rare: int, sections: Sequence[Section]) -> str:
    """The lists as JSON that no parser can take for the end of its element, or for markup."""
    data = {
        "classes": classes,
        "rare": rare,
        "lists": {entry.name: entry.as_json() for section in sections for entry in section.lists},
    }
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text
