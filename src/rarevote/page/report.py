"""One page for a person who decides: from a fitted method to a single HTML file, and its charts as files.

::

    import rarevote

    rarevote.fit("labels.csv").decide().report("report.html")

The file is self-contained: it includes style, script, charts and lists. A content-security policy allows the one
style sheet and the one script by their hashes and forbids everything else, so that even a name that slipped through as
markup could neither run nor load anything. Names reach the page in two ways: escaped by the template, or as JSON in a
block that no browser runs and that the script shows as text.

Each section has its own template with its values, charts and lists. To add one, write
``templates/sections/NAME.html.j2``, which contains one ``<section id="NAME">`` and can import what ``parts.html.j2``
provides, and a function that creates its :class:`Section`: here if it applies to every fit, or elsewhere to be
passed to :func:`write_report`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from rarevote.charts.svg import Chart, inline_svg, save, style_variables, to_svg
from rarevote.crowd.steps import doing, steps
from rarevote.diagnose.diagnosis import Diagnosis
from rarevote.diagnose.jury import jury_sentences
from rarevote.errors import InputError
from rarevote.io.read.detect import refuse_address
from rarevote.io.write.atomic import replacing
from rarevote.methods.base import Estimator
from rarevote.methods.registry import method_title
from rarevote.page import charts, sentences, tables
from rarevote.page.lines import ThreeLines, pile_sentences, three_lines
from rarevote.page.sentences import About, Basis
from rarevote.page.tables import MAX_ITEMS, ListTable, Matrix, Shown, class_list, item_list, worker_list


@dataclass(frozen=True)
class Section:
    """A section without markup.

    Attributes:
        name: name of its template and of its element.
        link: its name in the navigation.
        values: the variables of its template, besides ``charts`` and ``lists``.
        charts: in the order on the page.
        lists: lists that the script sorts, filters and pages.
        at: prefix of the names of its elements, if a page has the section more than once.
        classes: names of the classes in its lists.
        rare: number of the main class of the page; -1 for none.
        inner: sections within it.
    """

    name: str
    link: str
    values: Mapping[str, Any] = field(default_factory=dict)
    charts: Sequence[Chart] = ()
    lists: Sequence[ListTable] = ()
    at: str = ""
    classes: Sequence[str] = ()
    rare: int = 0
    inner: Sequence[Section] = ()

    @property
    def element(self) -> str:
        """The id of its element."""
        return f"{self.at}{self.name}"

    @property
    def everything(self) -> Iterator[Section]:
        """The section and those within it."""
        yield self
        for one in self.inner:
            yield from one.everything


def page_sections(
    found: Diagnosis,
    about: About,
    *,
    shown: Shown | None = None,
    extra: Sequence[Section] = (),
    at: str = "",
    max_items: int = MAX_ITEMS,
) -> list[Section]:
    """All sections of a page in their order.

    Args:
        extra: further sections, which come before the section on the computation.
        at: prefix of the names of their elements.
        max_items: the largest number of items to list.
    """
    sections = [
        *_piles(found, about),
        Section(
            "look", "Items", {"has_pile": found.piles.n_look > 0}, lists=[item_list(found, shown or {}, max_items)]
        ),
        *_lost(found),
        _annotators(found),
        Section("agreement", "Agreement", tables.agreement_values(found)),
        _trade_off(found, about),
        _classes(found),
        *_truth(found),
        *extra,
        Section("fit", "Method", {"facts": sentences.facts(found, about)}, _drawn(charts.convergence(found))),
    ]
    names = [str(name) for name in found.classes.names.tolist()]
    marked = _NO_CLASS if found.leading is None else found.rare
    return [replace(one, at=at, classes=names, rare=marked) for one in sections]


# The number for no class: nothing is shown in the colour of the rare class.
_NO_CLASS = -1


def _drawn(*made: Chart | None) -> list[Chart]:
    """The charts that have something to draw."""
    return [chart for chart in made if chart is not None]


def _piles(found: Diagnosis, about: About) -> list[Section]:
    """Which labels to accept and which items to review; if nothing can be decided, only that."""
    if len(found.classes.names) < 2:
        return []
    undecided = bool(about.basis.cannot_answer) or not found.piles.n_sure
    values = {
        "piles": [] if undecided else sentences.piles(found),
        "notes": pile_sentences(found, about.basis),
    }
    return [Section("piles", "What to look at", values)]


def _look(found: Diagnosis, shown: Shown, max_items: int) -> Section:
    return Section("look", "Items", {"has_pile": found.piles.n_look > 0}, lists=[item_list(found, shown, max_items)])


def _lost(found: Diagnosis) -> list[Section]:
    """The result compared with a majority vote; empty if it is one."""
    if found.method == "majority-vote" and not found.overruled.items.size:
        return []
    values = {"losses": sentences.losses(found), "moves": tables.moves_table(found)}
    leads = found.head.leading is not None
    return [Section("lost", "Majority vote", values, _drawn(charts.rescued(found) if leads else None))]


def _annotators(found: Diagnosis) -> Section:
    values = {
        "profiles": tables.profile_table(found),
        "jury": jury_sentences(found.head.classes.jury, found.head.classes.names),
        "leans": sentences.leans(found),
    }
    drawn = _drawn(charts.ability_map(found) if tables.is_about_two(found.head) else None)
    return Section("annotators", "Annotators", values, drawn, [worker_list(found)])


def _trade_off(found: Diagnosis, about: About) -> Section:
    head = found.head
    true = {curve.class_code: curve for curve in head.true_trade_offs}
    curves = [charts.trade_off_chart(head, curve, true.get(curve.class_code)) for curve in head.trade_offs]
    values = {"rates": tables.trade_off_table(found), "steps": tables.steps_table(found, about.basis.targets)}
    return Section("trade-off", "Finding more", values, _drawn(*curves))


def _classes(found: Diagnosis) -> Section:
    proportions = tables.proportion_table(found)
    lists = [class_list(found)] if proportions is None else []
    drawn = charts.class_counts(found) if found.grades is None else charts.grade_counts(found)
    return Section("classes", "Classes", {"proportions": proportions}, [drawn], lists)


def _truth(found: Diagnosis) -> list[Section]:
    """The comparison with the truth, if there is any."""
    check = found.truth
    if check is None:
        return []
    confusion = tables.confusion(found)
    values = {
        "scores": tables.score_table(check),
        "matrix": confusion if isinstance(confusion, Matrix) else None,
        "mistakes": None if isinstance(confusion, Matrix) else confusion,
    }
    of_head = found.head.truth or check
    drawn = charts.calibration_chart(found.head, of_head.calibration, of_head.posterior_calibration)
    return [Section("truth", "Truth", values, [drawn])]


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
    """The whole page as text."""
    return _assembled(about, sections, **_top(found, about), n_classes=len(found.classes.names))


def _top(found: Diagnosis, about: About) -> dict[str, Any]:
    """The variables of the template for the top of a page."""
    lines = three_lines(found, about.basis)
    return {
        "headline": lines.headline,
        "lines": lines,
        "tiles": [] if about.basis.cannot_answer else sentences.tiles(found),
        "leads": found.head.leading is not None,
        "cautions": all_cautions(found, about),
    }


def top_of_page(parts: PageParts, source: str) -> str:
    """Only the top of a page, for notebooks: the three lines, features and cautions, without style and script."""
    about = parts.about(source)
    # The note on classes left out links to a section that is not there.
    top = template("rarevote.page", "top.html.j2").render(
        about=about, **_top(parts.found, about), n_classes=0, in_notebook=True
    )
    return f"<div>{top}</div>"


def all_cautions(found: Diagnosis, about: About) -> list[str]:
    """Cautions about a result, as sentences."""
    said = [*sentences.cautions(found), *found.alike.warnings, *about.cautions]
    return [one if one.endswith((".", "?", "!")) else f"{one}." for one in said]


def plain_page(about: About, headline: str, sections: Sequence[Section], lines: ThreeLines | None = None) -> str:
    """A page that is not about one fit: a headline, lines if there are any, and sections.

    Args:
        sections: the sections of the page, without lists of items or annotators.
        lines: how sure it is, and what to do next.
    """
    return _assembled(about, sections, headline=headline, lines=lines, tiles=[], n_classes=0, cautions=about.cautions)


def _assembled(about: About, sections: Sequence[Section], **head: Any) -> str:
    style = f"\n{page_style()}"
    script = f"\n{asset('rarevote.page', 'report.js')}"
    drawn = steps("drawing the page", sections)
    return template("rarevote.page", "report.html.j2").render(
        policy=_policy(style, script),
        style=Markup(style),
        script=Markup(script),
        data=Markup(_as_script_data(sections)),
        sections=[{"name": section.element, "link": section.link, "html": _html(section)} for section in drawn],
        about=about,
        **head,
    )


def _html(section: Section) -> Markup:
    made = template("rarevote.page", f"sections/{section.name}.html.j2").render(
        **section.values,
        charts=section.charts,
        lists={entry.name: entry for entry in section.lists},
        inner=[_html(one) for one in section.inner],
        at=section.at,
        svg=_svg,
        key_path=_KEY_PATHS,
    )
    return Markup(made)  # escaped by its own template


def write_page(path: Path, page: str) -> Path:
    """Write the page, completely or not at all."""
    with replacing(path) as temporary:
        # Newlines are not converted: the hashes of the policy depend on the exact text.
        temporary.write_text(page, encoding="utf-8", newline="\n")
    return path


def export_charts(folder: Path, sections: Sequence[Section]) -> list[Path]:
    """Write every chart as ``NAME.svg`` and ``NAME.png``, in light colours with its title; returns the files.

    Raises:
        InputError: the folder cannot be created or written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written ({error.strerror})") from None
    written = []
    drawn = [(one.at, chart) for section in sections for one in section.everything for chart in one.charts]
    for at, chart in steps("writing the charts", drawn):
        name = f"{at}{chart.name}"
        save(chart.spec.properties(title=chart.title, background="white", padding=12), folder / name)
        written += [folder / f"{name}.svg", folder / f"{name}.png"]
    return written


def _svg(chart: Chart) -> Markup:
    """The chart in the page, whose legend is HTML."""
    return Markup(
        inline_svg(to_svg(chart.spec.configure_legend(disable=True)), label=f"{chart.title}. {chart.caption}")
    )


def _policy(style: str, script: str) -> str:
    """A policy that allows only this style sheet and this script."""
    rules = {
        "default-src": "'none'",
        "style-src": content_hash(style),
        "script-src": content_hash(script),
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def content_hash(text: str) -> str:
    """The hash of a style or a script in a content-security policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _as_script_data(sections: Sequence[Section]) -> str:
    """The lists as JSON that cannot end its element or be parsed as markup."""
    listed = [one for section in sections for one in section.everything if one.lists]
    data = {
        "of": {one.at: {"classes": one.classes, "rare": one.rare} for one in listed},
        "lists": {f"{one.at}{entry.name}": {"at": one.at, **entry.as_json()} for one in listed for entry in one.lists},
    }
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def page_style() -> str:
    """CSS: colours for light, dark and print, then the rest of the style of our pages."""
    return f"{style_variables()}\n{asset('rarevote.page', 'report.css')}"


def asset(package: str, name: str) -> str:
    """The text of a file among the templates of a package."""
    return (resources.files(package) / "templates" / name).read_text(encoding="utf-8")


@cache
def _environment(package: str) -> Environment:
    loader = PackageLoader(package)
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def template(package: str, name: str) -> Template:
    """The template with this name in a package; a missing variable is an error."""
    return _environment(package).get_template(name)


__all__ = ["PageParts", "Report", "check_page_path", "write_report"]


@dataclass(frozen=True)
class Report:
    """The written report.

    Attributes:
        page: the HTML file.
        n_bytes: its size.
        headline: the answer in one sentence.
        charts: files of the exported charts.
    """

    page: Path
    n_bytes: int
    headline: str
    charts: list[Path]


@dataclass(frozen=True, eq=False)
class PageParts:
    """The contents of a page about one result.

    Attributes:
        found: the diagnosis of the fitted crowd.
        estimator: the fitted method.
        decision: a sentence on how the labels were decided.
        n_gold: number of gold labels of the fit.
        features: a sentence on how features were used.
        shown: columns to show, each with one value per item in the order of the crowd.
        cautions: further cautions, as sentences.
        basis: what the three lines need besides the records.
        extra: sections besides those of every page.
    """

    found: Diagnosis
    estimator: Estimator
    decision: str
    n_gold: int = 0
    features: str = ""
    shown: Shown = field(default_factory=dict)
    cautions: tuple[str, ...] = ()
    basis: Basis = field(default_factory=Basis)
    extra: tuple[Section, ...] = ()

    def about(self, source: str) -> About:
        """The origin of the page."""
        return About(
            source=source,
            method=method_title(self.estimator.method_name),
            parameters=repr(self.estimator).partition("(")[2].removesuffix(")"),
            decision=self.decision,
            n_gold=self.n_gold,
            cautions=self.cautions,
            features=self.features,
            basis=self.basis,
        )


def write_report(parts: PageParts, path: str | Path, *, source: str, charts: str | Path | None = None) -> Report:
    """Write the page of a result; see :meth:`rarevote.Result.report`.

    Args:
        parts: the contents of the page.
        path: where to write; ends in ``.html``.
        source: the name of the data on the page.
        charts: a folder for every chart as SVG and PNG.

    Raises:
        InputError: a file cannot be written.
    """
    page_path = check_page_path(Path(path))
    doing("preparing the page")
    about = parts.about(source)
    sections = page_sections(parts.found, about, shown=parts.shown, extra=parts.extra)
    page = build_page(parts.found, about, sections)
    return write_with_charts(page_path, page, three_lines(parts.found, parts.basis).headline, sections, charts)


def write_with_charts(
    path: Path, page: str, headline: str, sections: Sequence[Section], charts: str | Path | None
) -> Report:
    """Write a page, and its charts if a folder for them is named."""
    files = [] if charts is None else export_charts(Path(charts), sections)
    write_page(path, page)
    return Report(path, len(page.encode()), headline, files)


def check_page_path(path: Path) -> Path:
    """The path, if a page can be written there; checked before a long fit.

    Raises:
        InputError: it cannot be written.
    """
    refuse_address(path, "write the page here and copy it there")
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{path}: the page is HTML; give it a name that ends in .html")
    if path.is_dir():
        raise InputError(f"{path}: is a folder; give the name of a file")
    if not path.parent.is_dir():
        raise InputError(f"{path}: cannot be written (there is no folder {path.parent})")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"{path}: cannot be written (no permission for the folder {path.parent})")
    return path
