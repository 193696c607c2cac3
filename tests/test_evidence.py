"""Evidence carries when, at which commit and by which command it was made; what is not measured again stays."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from benchmarks import evidence


def test_rows_are_stamped_and_others_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "EVIDENCE", tmp_path)
    script = evidence.REPOSITORY / "proofs" / "fuzz" / "__main__.py"
    monkeypatch.setattr(sys, "argv", [str(script), "--tries", "2", "/some/where"])
    evidence.write("some", [{"verb": "a", "fault": 1, "lost": 0}, {"verb": "a", "fault": 2, "lost": 1}])
    monkeypatch.setattr(sys, "argv", [str(evidence.REPOSITORY / "benchmarks" / "size.py")])
    evidence.write(
        "some", [{"verb": "b", "fault": 1, "lost": 2}, {"verb": "a", "fault": 2, "lost": 3}], by=("verb", "fault")
    )
    rows = evidence.read("some")
    assert [(row["verb"], row["fault"], row["lost"]) for row in rows] == [
        ("a", "1", "0"),
        ("a", "2", "3"),
        ("b", "1", "2"),
    ]
    first, again = "python -m proofs.fuzz --tries 2 ...", "python -m benchmarks.size"
    assert [row["command"] for row in rows] == [first, again, again]
    assert all(row["date"] and row["commit"] for row in rows)


@pytest.mark.parametrize("path", sorted(evidence.EVIDENCE.glob("*.csv")), ids=lambda path: path.stem)
def test_benchmarks_were_measured_on_a_commit(path: Path) -> None:
    """`make release-check` also looks at proofs, which take hours."""
    rows = [row for row in evidence.read(path.stem) if row["command"].startswith("python -m benchmarks.")]
    assert not [row for row in rows if row["commit"].endswith("-dirty") or row["commit"] in ("", "unknown")]
