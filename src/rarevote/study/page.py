"""What a study found, for people: a Markdown summary, and one HTML page that gathers the studies of a folder.

A study publishes a :class:`StudySection`. It is kept as a small JSON file beside the figures, so that studies may be
run one by one, and each rebuilds the page from all sections that the folder has. The page holds everything it shows:
no script, no network, figures inline.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from markupsafe import Markup

from rarevote import __version__
from rarevote.charts.svg import inline_svg, style_variables
from rarevote.errors import InputError, RarevoteError
from rarevote.page.report import template
from rarevote.study.tables import StudyTable, TableCell, escape_markdown, to_markdown, write_text

PAGE = "index.html"
_SUFFIX = ".section.json"
# The order of the paper, then ours; studies that are not named here come last.
_ORDER = ("paper", "ablation", "synthetic", "gold", "theory", "speed")


@dataclass(frozen=True)
class Figure:
    """A figure of the folder: ``stem.svg`` and ``stem.png``."""

    stem: str
    caption: str


@dataclass(frozen=True)
class StudySection:
    """A study for people.

    Attributes:
        name: of the study on the command line, and of its files.
        title: its heading.
        findings: what it showed, in sentences.
        figures: in the order in which they are to be seen.
        tables: likewise.
        settings: all that is needed to judge the figures, in sentences.
        command: what was typed.
        seconds: how long it took.
        date: the day on which it ran, in UTC.
    """

    name: str
    title: str
    findings: Sequence[str]
    figures: Sequence[Figure]
    tables: Sequence[StudyTable]
    settings: Sequence[str]
    command: str
    seconds: float
    date: str = ""


def today() -> str:
    """The day in UTC, as 2026-03-31."""
    return datetime.now(UTC).date().isoformat()


def publish(out: Path, section: StudySection) -> Path:
    """Write a section's Markdown, keep it for the page, and rebuild the page; returns the page."""
    if not section.date:
        section = replace(section, date=today())
    write_text(out / f"{section.name}.md", section_markdown(section))
    write_text(out / f"{section.name}{_SUFFIX}", json.dumps(asdict(section), indent=1, ensure_ascii=False) + "\n")
    return build_page(out)


def section_markdown(section: StudySection) -> str:
    """The section as Markdown, with figures as links to the PNG files."""
    parts = [f"# {escape_markdown(section.title)}"]
    parts += ["\n".join(f"- {escape_markdown(finding)}" for finding in section.findings)]
    for figure in section.figures:
        headline = escape_markdown(figure.caption.partition(". ")[0])
        parts.append(f"![{headline}]({figure.stem}.png)\n\n*{escape_markdown(figure.caption)}*")
    for table in section.tables:
        caption = [f"**{escape_markdown(table.caption)}**"] if table.caption else []
        parts += [*caption, to_markdown(table).rstrip()]
    parts += [escape_markdown(setting) for setting in section.settings]
    parts.append(f"{section.date}, rarevote {__version__}, {section.seconds:,.0f} s: {as_code(section.command)}")
    return "\n\n".join(part for part in parts if part) + "\n"


def as_code(text: str) -> str:
    """Text as code in Markdown; a backtick in it would end the code, so it becomes another quote."""
    return f"`{text.replace('`', chr(39))}`"


def build_page(out: Path) -> Path:
    """Build the page from all sections of the folder.

    Raises:
        InputError: a section or a figure cannot be read.
    """
    sections = sorted((_read(path) for path in out.glob(f"*{_SUFFIX}")), key=_place)
    drawn = {figure.stem: _drawn(out, figure) for section in sections for figure in section.figures}
    page = template("rarevote.study", "study.html.j2").render(
        sections=sections, figures=drawn, style=Markup(style_variables()), date=today(), version=__version__, cell=_cell
    )
    return write_text(out / PAGE, page)


def _drawn(out: Path, figure: Figure) -> Markup:
    path = out / f"{figure.stem}.svg"
    try:
        return Markup(inline_svg(path.read_text(encoding="utf-8"), label=figure.caption))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except RarevoteError as error:
        raise InputError(f"{path}: {error}; delete it and run the study again") from None


def _cell(value: str | TableCell) -> TableCell:
    return value if isinstance(value, TableCell) else TableCell(value)


def _place(section: StudySection) -> tuple[int, str]:
    return (_ORDER.index(section.name) if section.name in _ORDER else len(_ORDER)), section.name


def _read(path: Path) -> StudySection:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        for table in content["tables"]:
            table["rows"] = [
                [cell if isinstance(cell, str) else TableCell(*cell) for cell in row] for row in table["rows"]
            ]
        tables = [StudyTable(**table) for table in content["tables"]]
        figures = [Figure(**figure) for figure in content["figures"]]
        return StudySection(**{**content, "tables": tables, "figures": figures})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: is no section of a study ({error}); delete it and run that study again") from None
