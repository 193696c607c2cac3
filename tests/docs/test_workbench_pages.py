"""The evidence of the workbench says what was asked for."""

from __future__ import annotations

from benchmarks.evidence import read


def test_everything_held() -> None:
    rows = read("workbench")
    assert [row["part"] for row in rows] == ["kills", "items", "answers"]
    assert {row["holds"] for row in rows} == {"yes"}
    assert int(rows[0]["figure"].split()[2]) >= 50
    assert rows[0]["value"].startswith("0 lost, 0 doubled")
