"""The page of several problems in one crowd: a table of all of them, then a section for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from rarevote.crowd.names import find_name
from rarevote.crowd.words import capital, count, counted, listed, quoted
from rarevote.decide.expectations import UNKNOWN
from rarevote.diagnose.diagnosis import Diagnosis
from rarevote.diagnose.verdict import VERDICTS
from rarevote.errors import how
from rarevote.page.lines import MAX_LOOKS, ThreeLines, look_action, three_lines
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
from rarevote.page.sentences import Action, in_words
from rarevote.page.tables import MAX_ITEMS, SmallTable

# Two annotators with fewer common items can disagree by chance.
MIN_COMMON = 10
# With more labels, a page lists fewer items of each, but never fewer than this.
_MIN_ITEMS = 100
# With more labels than this, sections are collapsed at first.
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
        parts: the contents for each result, by its name.
        path: where to write; ends in ``.html``.
        source: the name of the data on the page.
        positive: the class that matters in each.
        n_items: number of all items, each counted once.
        noun: the kind of the results.
        charts: a folder for every chart as SVG and PNG.

    Raises:
        InputError: a file cannot be written.
    """
    page_path = check_page_path(Path(path))
    limit = max(_MIN_ITEMS, MAX_ITEMS // len(parts))
    table = overview_table(parts, positive, noun)
    sections = [Section("each", f"All {noun}s", {"table": table, "n_items": count(n_items), "noun": noun})]
    for number, (name, one) in enumerate(parts.items(), 1):
        sections.append(_section(f"{noun}-{number}-", name, one, source, limit, is_open=len(parts) <= _MAX_OPEN))
    lines = lines_of_each(parts, positive, n_items, noun)
    about = replace(next(iter(parts.values())).about(source), cautions=(), features="", n_gold=0)
    page = plain_page(about, lines.headline, sections, lines)
    return write_with_charts(page_path, page, lines.headline, sections, charts)


def overview_table(parts: Mapping[str, PageParts], positive: Mapping[str, Any], noun: str) -> SmallTable:
    """One row for each result: votes, votes for it, items flagged, expected and worth a review, lowest agreement."""
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
                count(found.piles.n_look),
                worst_pair(found),
            ]
        )
    header = [noun, "items", "votes", "votes for it", "flagged", "expected (90% interval)", "worth a look"]
    return SmallTable(f"All {noun}s", [*header, "lowest agreement"], rows)


def code_of(found: Diagnosis, name: Any) -> int:
    """Number of the class that matters in a result."""
    code = find_name(name, found.classes.names)
    return found.rare if code is None else code


def worst_pair(found: Diagnosis) -> str:
    """The two annotators with the lowest kappa among those with enough common items, as text."""
    pairs = found.agreement.pairs
    common, kappa = (np.asarray(pairs[name]) for name in ("common", "cohen_kappa"))
    known = np.flatnonzero(np.isfinite(kappa) & (common >= MIN_COMMON))
    if not known.size:
        return f"no two share {MIN_COMMON} items"
    row = int(known[np.lexsort((-common[known], kappa[known]))[0]])
    names = f"{pairs['worker'][row]} and {pairs['other'][row]}"
    return f"{names} (kappa {kappa[row]:.2f} on {counted(common[row], 'item')})"


def lines_of_each(parts: Mapping[str, PageParts], positive: Mapping[str, Any], n_items: int, noun: str) -> ThreeLines:
    """The three lines of several results: all flagged items, the least sure result, the items most worth a review."""
    flagged = [
        f"{count(one.found.classes.n_labelled[code_of(one.found, positive[name])])} {quoted(name)}"
        for name, one in parts.items()
    ]
    have = f"{counted(n_items, 'item')}, {counted(len(parts), noun)}: {listed(flagged, 6)}."
    told = {name: three_lines(one.found, one.basis) for name, one in parts.items()}
    silent = [name for name, one in told.items() if one.leads_with_sure]
    if len(silent) == len(parts):
        first = told[silent[0]]
        return replace(first, have=have, worlds=[], next=_look_at_each(parts, noun))
    accuracy = {name: one.found.expected_accuracy for name, one in parts.items() if name not in silent}
    known = {name: one for name, one in accuracy.items() if isfinite(one.value)}
    weights = {name: told[name].weight for name in accuracy}
    weight = max(weights.values(), key=list(VERDICTS).index)
    sure = f"{capital(VERDICTS[weight])}: how many labels are right is unknown."
    if known:
        least, most = min(known, key=lambda name: known[name].value), max(known, key=lambda name: known[name].value)
        right = f"{in_words(known[least])} of the labels are expected to be right for {quoted(least)}"
        if len(known) > 1:
            right += f", the least sure {noun}, and {in_words(known[most])} for {quoted(most)}, the surest"
        sure = f"{capital(VERDICTS[weight])}: {right}."
    if silent:
        sure = (
            f"{sure[:-1]}; the votes cannot show which labels are right for {listed([quoted(one) for one in silent])}."
        )
    return ThreeLines(have, sure, _look_at_each(parts, noun), [], weight, leads_with_sure=False)


def _look_at_each(parts: Mapping[str, PageParts], noun: str) -> Action:
    """The action to review the most useful items of every result; an item on two lists is reviewed for both."""
    basis = next(iter(parts.values())).basis
    looks = {name: one.found.piles.n_look for name, one in parts.items()}
    each = min(max(looks.values()), max(MAX_LOOKS // len(parts), 1))
    if not each:
        out = how('results.write("result.csv")', f"rarevote aggregate {basis.aggregate} --out result.csv")
        return Action(f"Use the labels: no item is worth a look for any {noun}.", (out,))
    # A review lists this many items of every result, fewer only if further reviews have no worth.
    n = sum(min(each, int((one.found.piles.worth > 0).sum())) for one in parts.values())
    start = f"Look at {counted(each, 'item')} first for each {noun}, {counted(n, 'look')} in all"
    return look_action(basis, each, start, n_looks=n, result="results")


def _section(at: str, name: str, one: PageParts, source: str, limit: int, *, is_open: bool) -> Section:
    """The contents of a page of one result, within one section."""
    about, found = one.about(source), one.found
    values = {
        "name": name,
        "lines": three_lines(found, about.basis),
        "cautions": all_cautions(found, about),
        "is_open": is_open,
    }
    inner = page_sections(found, about, shown=one.shown, extra=one.extra, at=at, max_items=limit)
    return Section("result", name, values, at=at, inner=inner)
