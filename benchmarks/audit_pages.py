"""What docs/evidence has measured about audits, on the page of what an audit means.

python -m benchmarks.audit_pages
"""

from __future__ import annotations

import csv

from benchmarks import pages
from benchmarks.evidence import EVIDENCE, REPOSITORY

PAGE = REPOSITORY / "docs" / "audit-meaning.md"
Row = dict[str, str]


def evidence_of(name: str) -> list[Row]:
    """The rows of an evidence file."""
    with (EVIDENCE / f"{name}.csv").open(newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def _number(value: str) -> str:
    return f"{round(float(value)):,}".replace(",", " ")


def _share(value: str) -> str:
    return f"{100 * float(value):.1f}%".replace(".0%", "%") if value else ""


def audits_table() -> str:
    """What certificates cost by both scores, whether they are true, and what a uniform sample would have proved."""
    rows = [
        [
            f"{row['crowd']} ({_number(row['items'])} items, {_number(row['positives'])} positives)",
            row["score"],
            f"{_number(row['reviews'])} ({_number(row['reviews_q90'])})",
            _number(row["flags_left"]),
            _share(row["certified"]),
            _share(row["true"]),
            _number(row["uniform_flags"]),
            _share(row["uniform_certified"]),
        ]
        for row in evidence_of("audit")
    ]
    head = ["crowd", "ranked by", "reviews (90% quantile)", "flags left", "certified", "true"]
    return pages.table([*head, "flags left, uniform sample", "certified, uniform sample"], rows)


def supported_table() -> str:
    """What the first reviews support."""
    rows = [
        [
            row["crowd"],
            _share(row["supported_reached"]),
            f"{float(row['supported_excess']):.2f}",
            *(_share(row[f"cover_{name}"]) for name in ("prevalence", "precision", "recall")),
        ]
        for row in evidence_of("audit")
        if row["score"] == "sampled"
    ]
    head = ["crowd", "recall reached", "flags / best threshold", "prevalence covered", "precision covered"]
    return pages.table([*head, "recall covered"], rows)


def min_recall_table() -> str:
    """What a recall target with random gold of the same size promises and keeps."""
    rows = [
        [row["crowd"], row["gold"], _share(row["promised"]), _share(row["kept"]), _number(row["flags_left"])]
        for row in evidence_of("audit_min_recall")
    ]
    return pages.table(["crowd", "random gold", "promised", "of these kept", "flags left"], rows)


def boundary_table() -> str:
    """False certificates where one set is just bad."""
    rows = [[row["misses"], row["model"], row["audits"], _share(row["false"])] for row in evidence_of("audit_boundary")]
    return pages.table(["misses", "scores", "audits", "false"], rows)


def filled() -> str:
    """The page with every figure as the evidence has it."""
    blocks = {
        "audits": audits_table(),
        "min-recall": min_recall_table(),
        "supported": supported_table(),
        "boundary": boundary_table(),
    }
    return pages.filled(PAGE.read_text(encoding="utf-8"), blocks, PAGE.name)


if __name__ == "__main__":
    PAGE.write_text(filled(), encoding="utf-8")
