"""Tables of docs/audit-meaning.md: what docs/evidence has measured about audits."""

from __future__ import annotations

from benchmarks import pages
from benchmarks.evidence import read


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
        for row in read("audit")
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
        for row in read("audit")
        if row["score"] == "sampled"
    ]
    head = ["crowd", "recall reached", "flags / best threshold", "prevalence covered", "precision covered"]
    return pages.table([*head, "recall covered"], rows)


def min_recall_table() -> str:
    """What a recall target with random gold of the same size promises and keeps."""
    rows = [
        [row["crowd"], row["gold"], _share(row["promised"]), _share(row["kept"]), _number(row["flags_left"])]
        for row in read("audit_min_recall")
    ]
    return pages.table(["crowd", "random gold", "promised", "of these kept", "flags left"], rows)


def boundary_table() -> str:
    """False certificates where one set is just bad."""
    rows = [[row["misses"], row["model"], row["audits"], _share(row["false"])] for row in read("audit_boundary")]
    return pages.table(["misses", "scores", "audits", "false"], rows)
