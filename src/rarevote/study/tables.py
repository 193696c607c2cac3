"""Tables of a study as text: Markdown to read, LaTeX to print, CSV to compute with.

>>> table = StudyTable(("Set", "Recall"), [("CF*", TableCell("0.667 ± 0.000", "best"))], caption="One set")
>>> print(to_markdown(table), end="")
| Set | Recall |
| --- | ---: |
| CF\\* | **0.667 ± 0.000** |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rarevote.io.write.atomic import replacing
from rarevote.study.libraries import library

#: shown if there is no figure
ABSENT = "–"

Rank = Literal["", "best", "second"]


class TableCell(NamedTuple):
    """A cell of a table; the best and the second best of a column are highlighted."""

    text: str
    rank: Rank = ""


@dataclass(frozen=True)
class StudyTable:
    """A table that is independent of the output format.

    Attributes:
        columns: headings; the first ``n_text_columns`` columns are left-aligned, the others right-aligned.
        rows: cells, as text or as :class:`TableCell`.
        caption: what the table shows.
        groups: headings above the column headings: (title, number of columns), not counting the text columns.
        notes: sentences below the table.
        n_text_columns: number of columns that hold text.
        breaks: rows that have a little space before them.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str | TableCell]]
    caption: str = ""
    groups: Sequence[tuple[str, int]] = ()
    notes: Sequence[str] = ()
    n_text_columns: int = 1
    breaks: Sequence[int] = ()

    @property
    def cells(self) -> list[list[TableCell]]:
        """The rows, every cell with its rank."""
        return [[cell if isinstance(cell, TableCell) else TableCell(cell) for cell in row] for row in self.rows]

    @property
    def group_of_column(self) -> list[str]:
        """The group heading above each column heading; may be empty."""
        titles = [title for title, width in self.groups for _ in range(width)]
        return [""] * (len(self.columns) - len(titles)) + titles


def ranked(
    values: Sequence[float | None], texts: Sequence[str] | None = None, *, second: bool = True, better: int = 1
) -> list[TableCell]:
    """The cells of a column, with the best (and second best) highlighted; equal values share a rank.

    Without ``texts`` the values are written with three decimals. ``better`` is 1 if larger is better, -1 if
    smaller is, and 0 to highlight nothing.
    """
    texts = [ABSENT if value is None else f"{value:.3f}" for value in values] if texts is None else texts
    distinct = sorted({value for value in values if value is not None}, reverse=better > 0) if better else []
    ranks: tuple[Rank, ...] = ("best", "second") if second else ("best",)
    rank: dict[float | None, Rank] = dict(zip(distinct, ranks, strict=False))
    return [TableCell(text, rank.get(value, "")) for value, text in zip(values, texts, strict=True)]


def mean_and_sd(mean: float | None, sd: float | None) -> str:
    """``0.732 ± 0.209``, as in the paper."""
    return ABSENT if mean is None else f"{mean:.3f} ± {sd or 0.0:.3f}"


def signed(difference: float) -> str:
    """``+0.006``; a value that rounds to zero has no minus sign."""
    return f"{round(difference, 3) + 0.0:+.3f}"


# --------------------------------------------------------------------------------------------------------------------
# Markdown


_MARKDOWN = str.maketrans({mark: f"\\{mark}" for mark in "\\|*_`[]"} | {"<": "&lt;", ">": "&gt;", "\n": " "})


def escape_markdown(text: str) -> str:
    """Escape text for a Markdown table."""
    return text.translate(_MARKDOWN)


def to_markdown(table: StudyTable) -> str:
    """The table in Markdown, with its notes below; the caption is not included."""

    def shown(cell: TableCell) -> str:
        mark = {"": "", "best": "**", "second": "_"}[cell.rank]
        return f"{mark}{escape_markdown(cell.text)}{mark}"

    # Markdown has one row of headings: a group heading is joined to the headings below it.
    headings = [
        escape_markdown(f"{group}: {name}" if group else name)
        for group, name in zip(table.group_of_column, table.columns, strict=True)
    ]
    rules = ["---" if place < table.n_text_columns else "---:" for place in range(len(headings))]
    lines = [headings, rules, *([shown(cell) for cell in row] for row in table.cells)]
    text = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    return text + "".join(f"\n{escape_markdown(note)}\n" for note in table.notes)


# --------------------------------------------------------------------------------------------------------------------
# LaTeX

_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "{": r"\{",
        "}": r"\}",
        "$": r"\$",
        "&": r"\&",
        "#": r"\#",
        "_": r"\_",
        "%": r"\%",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": "$<$",
        ">": "$>$",
        "±": r"$\pm$",
        "≥": r"$\geq$",
        "↑": r"$\uparrow$",
        "–": "--",
        "−": "$-$",
    }
)


def escape_latex(text: str) -> str:
    """Escape text for LaTeX, including the mathematical signs of our tables."""
    return text.translate(_LATEX)


def to_latex(table: StudyTable, *, label: str, long: bool = False) -> str:
    """The table for a LaTeX document that loads ``booktabs`` (and ``longtable`` if ``long``)."""

    def shown(cell: TableCell) -> str:
        command = {"": "{}", "best": r"\textbf{{{}}}", "second": r"\underline{{{}}}"}[cell.rank]
        return command.format(escape_latex(cell.text))

    # Text between two rows goes before the first cell of the second: pandas has no other place for it.
    body = [[shown(cell) for cell in row] for row in table.cells]
    for place in table.breaks:
        body[place][0] = "\\addlinespace[2pt]\n" + body[place][0]
    names = [escape_latex(name) for name in table.columns]
    frame = library("pandas").DataFrame(body, columns=names)
    if table.groups:
        ends = accumulate((width for _, width in table.groups), initial=table.n_text_columns)
        names[0] = "".join(rf"\cmidrule(lr){{{before + 1}-{end}}}" for before, end in pairwise(ends)) + f"\n{names[0]}"
        frame.columns = [[escape_latex(title) for title in table.group_of_column], names]
    layout = "l" * table.n_text_columns + "r" * (len(names) - table.n_text_columns)
    style = {"column_format": layout, "hrules": True, "multicol_align": "c"}
    latex = frame.style.hide(axis="index").to_latex
    caption = escape_latex(table.caption)
    notes = [rf"\par\smallskip\footnotesize {escape_latex(note)}" for note in table.notes]
    if long:
        lines = [latex(environment="longtable", caption=caption, label=f"tab:{label}", **style).rstrip(), *notes]
    else:
        caption = rf"\caption{{{caption}}}\label{{tab:{label}}}"
        begin = [r"\begin{table*}", r"\centering\small", latex(**style).rstrip()]
        lines = [*begin, *notes, caption, r"\end{table*}"]
    return "\n".join(lines) + "\n"


# --------------------------------------------------------------------------------------------------------------------
# files


def write_text(path: Path, text: str) -> Path:
    """Write ``path`` completely or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return path


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> Path:
    """Write records as CSV; numbers with six decimals, None as an empty cell."""
    values = [[_as_text(row[name]) for name in columns] for row in rows]
    with replacing(path) as temporary:
        # As objects: a column of integers with gaps would become floats.
        frame = library("pandas").DataFrame(values, columns=list(columns), dtype=object)
        frame.to_csv(temporary, index=False, lineterminator="\n")
    return path


def write_records(path: Path, kind: type, records: Iterable[Any]) -> Path:
    """Write dataclass records of one kind as CSV, a column per field."""
    return write_csv(path, [field.name for field in fields(kind)], map(asdict, records))


def _as_text(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    # Adding 0.0 turns -0.0 into 0.0, which would otherwise be printed with its sign.
    return format(round(value, 6) + 0.0, ".6f") if isinstance(value, float) else value
