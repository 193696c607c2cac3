"""What the how-to says of juries is what was measured."""

from __future__ import annotations

from pathlib import Path

from benchmarks.evidence import read

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_figures_of_the_page_are_those_of_the_evidence() -> None:
    rows = [row for row in read("juries") if row["gold"] == "150"]
    page = " ".join((DOCS / "howto" / "language-models-as-judges.md").read_text(encoding="utf-8").split())
    found = {row["jury"]: row for row in rows}
    independent, shared = found["5 independent"], found["3 of 5 share errors"]
    assert f"of 100 juries of five independent judges {independent['juries_with_a_cluster']} had any group" in page
    assert independent["juries_warned_of"] == "0"
    planted = [float(row["mean_adjusted_rand"]) for name, row in found.items() if "independent" not in name]
    assert f"{min(planted):.2f} to {max(planted):.0f}" in page
    for column in ("accuracy_default", "accuracy_majority_vote", "accuracy_default_one_of_each_cluster"):
        assert f"{100 * float(shared[column]):.1f}%" in page
