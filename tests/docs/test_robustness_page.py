"""The tables of docs/robustness.md sum up the evidence, and the evidence says what was asked for."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from benchmarks import evidence
from proofs.battery import PROOFS, proof

from proofs import robustness_page

STAMP = {"date": "2026-01-02", "commit": "abc", "command": "python -m benchmarks.some"}
ROWS: dict[str, list[dict[str, object]]] = {
    "fuzz": [
        {"door": "csv", "executions": 1200, "read": 200, "refused": 997, "foreign": 1, "hangs": 2, "crashes": 0},
        {"door": "model", "executions": 800, "read": 1, "refused": 799, "foreign": 0, "hangs": 0, "crashes": 3},
    ],
    "contracts": [
        {"property": "sums to one", "method": "cc-rasch", "kind": "small", "crowds": 300, "violations": 0},
        {"property": "sums to one", "method": "cc-rasch", "kind": "whole", "crowds": 50, "violations": 0},
        {"property": "sums to one", "method": "glad", "kind": "small", "crowds": 200, "violations": 4},
        {"property": "finite", "method": "glad", "kind": "small", "crowds": 150, "violations": 0},
    ],
    "faults": [
        {"verb": "report", "fault": "killed at a random moment", "tries": 11, "lost": 1, "half-visible": 0, "wrong": 0},
        {"verb": "report", "fault": "disk full", "tries": 7, "lost": 0, "half-visible": 0, "wrong": 5},
    ],
    "kills": [{"killed": "a worker", "holds": "yes"}, {"killed": "a worker", "holds": "no"}],
    "workbench": [{"part": "kills", "figure": "SIGKILL during 20 answers", "value": "0 lost", "holds": "yes"}],
    "mutants": [
        {
            "layer": "audit",
            "place": "audit/a.py:3",
            "change": "a | b → a & b",
            "outcome": "equivalent",
            "reason": "never both",
        },
        {"layer": "audit", "place": "audit/a.py:9", "change": "0 → 1", "outcome": "killed", "reason": ""},
        {"layer": "crowd", "place": "crowd/b.py:4", "change": "1 → 2", "outcome": "survived", "reason": ""},
        {"layer": "crowd", "place": "crowd/b.py:5", "change": "1 → 2", "outcome": "not tested", "reason": ""},
    ],
    "plan_fuzz": [{"altered": "gamma", "executions": 60, "refused": 50, "accepted": 8, "certify_more": 2}],
    "audit_boundary": [{"misses": "deep", "model": "right", "audits": 40, "false": 0.025, "allowed": 0.06, "holds": 1}],
}
REST: dict[str, dict[str, object]] = {
    "faults": {"foreign": 0, "left": 0},
    "fuzz": {"memory findings": 2, "largest memory MB": 90},
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(evidence, "EVIDENCE", tmp_path)
    for name, own in ROWS.items():
        full = [{**REST.get(name, {}), **row, **STAMP} for row in own]
        with (tmp_path / f"{name}.csv").open("w", newline="", encoding="utf-8") as handle:
            table = csv.DictWriter(handle, fieldnames=list(full[0]))
            table.writeheader()
            table.writerows(full)
    return tmp_path


def test_sums_are_those_of_the_rows(folder: Path) -> None:
    summary = robustness_page.summary_table()
    assert (
        "| 800 to 1,200 per input | 2 inputs | 0 wrong answers, 1 foreign exceptions, 2 hangs, 3 crashes, " in summary
    )
    assert "3 crashes, 4 times more than 1 GB |" in summary
    assert "| 200 to 350 per method | 2 methods, 2 properties | 4 violations |" in summary
    assert "| 60 | 1 alterations | 2 accepted plans certify more than an honest audit |" in summary
    assert "| 40 per case | 1 cases | false in 2.5% at most; 5% are allowed, and 6.0% with" in summary
    assert "| cc-rasch | 300 | 0 | 0 | 50 | 0 | 0 |" in robustness_page.methods_table()
    assert "| 33 | 1 verbs, dask, the workbench | 1 lost, 0 half visible, 5 wrong, 0 left behind; 1 of" in summary
    assert "| report | 11 | 7 | 0 | 0 | 0 | 0 | 1, 0, 5, 0, 0 |" in robustness_page.faults_table()
    assert "| `audit` | 2 | 1 | 0 | 0 | 1 | 100% |" in robustness_page.mutants_table()
    assert "| all | 4 | 1 | 1 | 1 | 1 | 33% |" in robustness_page.mutants_table()
    assert robustness_page.second_sample_text() == "A second sample was not tried yet."
    (folder / "mutants-2.csv").write_bytes((folder / "mutants.csv").read_bytes())
    assert "Of 3 mutants of a second sample" in robustness_page.second_sample_text()
    assert robustness_page.second_sample_text().endswith("noticed 1 (33%).")
    assert "| `audit/a.py:3` | `a \\| b → a & b` | never both |" in robustness_page.survivors_table()
    assert "| `crowd/b.py:4` | `1 → 2` | none of the tests tried noticed it |" in robustness_page.survivors_table()
    assert "| 2026-01-02 | abc | `python -m benchmarks.some` | in csv, model; not run: 36 of 38 rows |" in (
        robustness_page.state_table()
    )


@pytest.mark.parametrize("name", sorted(set(ROWS) - {"mutants"}))
def test_nothing_is_summed_without_all_evidence(name: str, folder: Path) -> None:
    (folder / f"{name}.csv").unlink()
    with pytest.raises(FileNotFoundError, match=rf"{name}\.csv"):
        robustness_page.summary_table()


def test_the_evidence_has_no_findings() -> None:
    """Whether it is of the code of today and whether rows are missing, make release-check says."""
    for name in PROOFS:
        one, rows = proof(name), evidence.read(name)
        assert rows
        assert [row for row in rows if one.findings(row)] == []
