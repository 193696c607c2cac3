"""The how-to of the workbench says what the evidence says, and the evidence says what was asked for."""

from __future__ import annotations

import csv

from benchmarks import workbench_pages
from benchmarks.evidence import EVIDENCE


def test_the_page_is_up_to_date() -> None:
    text = workbench_pages.PAGE.read_text(encoding="utf-8")
    assert text == workbench_pages.filled(), "the figures changed: run python -m benchmarks.workbench_pages"


def test_everything_held() -> None:
    with (EVIDENCE / "workbench.csv").open(newline="", encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    assert [row["part"] for row in rows] == ["kills", "items", "answers"]
    assert {row["holds"] for row in rows} == {"yes"}
    assert int(rows[0]["figure"].split()[2]) >= 50
    assert rows[0]["value"].startswith("0 lost, 0 doubled")
