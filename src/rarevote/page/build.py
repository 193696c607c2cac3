"""Records become one HTML file that needs nothing else: style, script, charts and lists are all inside.

A content-security policy allows the one style sheet and the one script by their hashes and forbids everything else, so
that even a name that slipped through as markup could neither run nor load anything. Names reach the page in two
ways: escaped by the template, or as JSON in a block that no browser runs and that the script shows as text.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path

from markupsafe import Markup

from rarevote.charts.palette import style_variables
from rarevote.charts.parts import Chart
from rarevote.charts.save import save, to_svg
from rarevote.charts.svg import inline_svg
from rarevote.charts.templates import template
from rarevote.errors import InputError
from rarevote.io.write.atomic import replacing
from rarevote.meaning.diagnose import Diagnosis
from rarevote.meaning.words import jury_sentences
from rarevote.page import agreement as agreement_parts
from rarevote.page import charts, sentences, small_tables
from rarevote.page.sentences import About
from rarevote.page.small_tables import Matrix
from rarevote.page.tables import ListTable, Shown, item_list, worker_list

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


def all_charts(found: Diagnosis) -> dict[str, list[Chart]]:
    """The charts of each section of the page."""
    true = {curve.class_code: curve for curve in found.true_trade_offs}
    curves = [charts.trade_off_chart(found, curve, true.get(curve.class_code)) for curve in found.trade_offs]
    sections: dict[str, list[Chart | None]] = {
        "lost": [charts.rescued(found)],
        "annotators": [charts.ability_map(found)],
        "trade-off": list(curves),
        "classes": [charts.class_counts(found)],
        "truth": [],
        "fit": [charts.convergence(found)],
    }
    if found.truth is not None:
        check = found.truth
        sections["truth"].append(charts.calibration_chart(found, check.calibration, check.posterior_calibration))
    return {name: [chart for chart in drawn if chart is not None] for name, drawn in sections.items()}


def build_page(
    found: Diagnosis,
    about: About,
    *,
    shown: Shown | None = None,
    drawn: Mapping[str, Sequence[Chart]] | None = None,
) -> str:
    """The whole page as text.

    Args:
        found: the records.
        about: where they come from.
        shown: columns that say what an item shows, each with one value per item in the order of the crowd.
        drawn: the charts, if they have been made already.
    """
    drawn = all_charts(found) if drawn is None else drawn
    lists = [item_list(found, shown or {}), worker_list(found)]
    style = f"\n{style_variables()}\n{_asset('report.css')}"
    script = f"\n{_asset('report.js')}"
    confusion = small_tables.confusion(found)
    return template("rarevote.page", "report.html.j2").render(
        policy=_policy(style, script),
        style=Markup(style),
        script=Markup(script),
        data=Markup(_as_script_data(found, lists)),
        figures=drawn,
        svg=_svg,
        lists={entry.name: entry for entry in lists},
        about=about,
        headline=sentences.headline(found),
        lead=sentences.lead(found),
        tiles=sentences.tiles(found),
        n_classes=len(found.classes.names),
        cautions=[*sentences.cautions(found), *found.alike.warnings, *about.cautions],
        losses=sentences.losses(found),
        moves=small_tables.moves_table(found),
        profiles=small_tables.profile_table(found),
        jury=jury_sentences(found.classes.jury, found.classes.names),
        agreement=agreement_parts.agreement_table(found),
        class_agreement=agreement_parts.class_table(found),
        alike=found.alike.sentences(),
        alike_pairs=agreement_parts.alike_table(found),
        rates=small_tables.trade_off_table(found),
        steps=small_tables.steps_table(found),
        proportions=small_tables.proportion_table(found),
        scores=small_tables.score_table(found),
        matrix=confusion if isinstance(confusion, Matrix) else None,
        mistakes=None if isinstance(confusion, Matrix) else confusion,
        has_truth=found.truth is not None,
        facts=sentences.facts(found, about),
        key_path=_KEY_PATHS,
    )


def write_page(path: Path, page: str) -> Path:
    """Write the page, whole or not at all."""
    with replacing(path) as temporary:
        # Newlines as they are: the hashes of the policy are those of this very text.
        temporary.write_text(page, encoding="utf-8", newline="\n")
    return path


def export_charts(folder: Path, drawn: Mapping[str, Sequence[Chart]]) -> list[Path]:
    """Write every chart as ``NAME.svg`` and ``NAME.png``, in light colours with its title; returns the files.

    Raises:
        InputError: the folder cannot be made or written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written ({error.strerror})") from None
    written = []
    for chart in (chart for group in drawn.values() for chart in group):
        save(chart.spec.properties(title=chart.title, background="white", padding=12), folder / chart.name)
        written += [folder / f"{chart.name}.svg", folder / f"{chart.name}.png"]
    return written


def _svg(chart: Chart) -> Markup:
    """The chart in the page, whose legend is HTML."""
    return Markup(
        inline_svg(to_svg(chart.spec.configure_legend(disable=True)), label=f"{chart.title}. {chart.caption}")
    )


def _asset(name: str) -> str:
    return (resources.files("rarevote.page") / "templates" / name).read_text(encoding="utf-8")


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


def _as_script_data(found: Diagnosis, lists: Sequence[ListTable]) -> str:
    """The lists as JSON that no parser can take for the end of its element, or for markup."""
    data = {
        "classes": [str(name) for name in found.classes.names.tolist()],
        "rare": found.rare,
        "lists": {entry.name: entry.as_json() for entry in lists},
    }
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text
