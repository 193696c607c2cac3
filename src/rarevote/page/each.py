"""The page of several problems in one crowd: a table of all of them, then a section for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rarevote.crowd.names import find_name
from rarevote.crowd.words import count, counted, listed
from rarevote.decide.expectations import UNKNOWN
from rarevote.diagnose.diagnosis import Diagnosis
from rarevote.page import sentences
from rarevote.page.report import (
    PageParts,
    Report,
    Section,
    all_cautions,
    check_page_path,
    page_sections,
    plain_page,
    write_with_charts,
)
from rarevote.page.tables import MAX_ITEMS, SmallTable

# Two people who share fewer items disagree by chance.
MIN_COMMON = 10
# Of more labels a page lists fewer items of each, but never fewer than these.
_MIN_ITEMS = 100
# Sections of more labels than these are folded together at first.
_MAX_OPEN = 4


def write_report_of_each(
    parts: Mapping[str, PageParts],
    path: str | Path,
    *,
    source: str,
    positive: Mapping[str, Any],
    n_items: int,
    noun: str = "choice",
    charts: str | Path | None = None,
) -> Report:
    """Write the page of several results; see :meth:`rarevote.ResultEach.report`.

    Args:
        parts: what the page says about each, by its name.
        path: where to write; ends in ``.html``.
        source: what the page calls the data.
        positive: the class that each is about.
        n_items: all items, each counted once.
        noun: what the results are of.
        charts: a folder for every chart as SVG and PNG.

    Raises:
        InputError: a file cannot be written.
    """
    page_path = check_page_path(Path(path))
    limit = max(_MIN_ITEMS, MAX_ITEMS // len(parts))
    overview = Section(
        "each", f"All {noun}s", {"table": overview_table(parts, positive, noun), "n_items": count(n_items)}
    )
    sections = [overview]
    for number, (name, one) in enumerate(parts.items(), 1):
        sections.append(_section(f"{noun}-{number}-", name, one, source, limit, is_open=len(parts) <= _MAX_OPEN))
    headline = _headline(parts, positive, n_items, noun)
    about = replace(next(iter(parts.values())).about(source), cautions=(), features="", n_gold=0)
    return write_with_charts(page_path, plain_page(about, headline, sections), headline, sections, charts)


def overview_table(parts: Mapping[str, PageParts], positive: Mapping[str, Any], noun: str) -> SmallTable:
    """One row for each result: votes, how many say it, items flagged and expected, who agrees least."""
    rows = []
    for name, one in parts.items():
        found, k = one.found, code_of(one.found, positive[name])
        classes, expected = found.classes, found.expected[k].prevalence
        ends = f"{count(classes.expected_low[k])} to {count(classes.expected_high[k])}"
        rows.append(
            [
                name,
                count(found.n_items),
                count(found.crowd.n_annotations),
                count(classes.n_votes[k]),
                count(classes.n_labelled[k]),
                f"{count(classes.n_expected[k])} ({ends})" if expected.is_told else UNKNOWN,
                worst_pair(found),
            ]
        )
    header = [noun, "items", "votes", "votes for it", "flagged", "expected (90% interval)", "agree least"]
    return SmallTable(f"All {noun}s", header, rows)


def code_of(found: Diagnosis, name: Any) -> int:
    """Number of the class that a result is about."""
    code = find_name(name, found.classes.names)
    return found.rare if code is None else code


def worst_pair(found: Diagnosis) -> str:
    """The two annotators with the lowest kappa among those who share enough items, in words."""
    pairs = found.agreement.pairs
    common, kappa = (np.asarray(pairs[name]) for name in ("common", "cohen_kappa"))
    known = np.flatnonzero(np.isfinite(kappa) & (common >= MIN_COMMON))
    if not known.size:
        return f"nobody shares {MIN_COMMON} items"
    row = int(known[np.lexsort((-common[known], kappa[known]))[0]])
    names = f"{pairs['worker'][row]} and {pairs['other'][row]}"
    return f"{names} (kappa {kappa[row]:.2f} on {counted(common[row], 'item')})"


def _headline(parts: Mapping[str, PageParts], positive: Mapping[str, Any], n_items: int, noun: str) -> str:
    flagged = [
        f"{count(one.found.classes.n_labelled[code_of(one.found, positive[name])])} {name}"
        for name, one in parts.items()
    ]
    return f"{counted(n_items, 'item')}, {counted(len(parts), noun)}: {listed(flagged, 6)}."


def _section(at: str, name: str, one: PageParts, source: str, limit: int, *, is_open: bool) -> Section:
    """All that a page of one result says, within one section."""
    about, found = one.about(source), one.found
    values = {
        "name": name,
        "headline": sentences.headline(found),
        "lead": " ".join(filter(None, (sentences.lead(found), f"{about.features}." if about.features else ""))),
        "tiles": sentences.tiles(found),
        "cautions": all_cautions(found, about),
        "is_open": is_open,
    }
    inner = page_sections(found, about, shown=one.shown, extra=one.extra, at=at, max_items=limit)
    return Section("result", name, values, at=at, inner=inner)
