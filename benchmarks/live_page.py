"""The table of docs/howto/live.md: what was proved against a real Label Studio."""

from __future__ import annotations

from benchmarks import evidence, pages


def proved() -> str:
    """The claims of docs/evidence/live.csv."""
    rows = evidence.read("live")
    held = sum(row["holds"] == "yes" for row in rows)
    begin, end = rows[0], rows[-1]
    lines = [
        "## What was proved against a real server",
        "",
        f"`make prove-live` starts Label Studio {begin['found']} and checks {len(rows)} claims, of which {held} hold "
        f"([the list](../evidence/live.csv), {begin['date']}, {float(end['seconds']) / 60:.0f} minutes):",
        "",
        pages.table(["claim", "holds"], [[row["claim"], row["holds"]] for row in rows]),
    ]
    return "\n".join(lines)
