"""The tables of docs/robustness.md sum up the evidence, and the evidence says what was asked for."""

from __future__ import annotations

import csv
import tempfile
from pathlib import Path

import pytest
from benchmarks import evidence
from proofs.fault_cache import FAULTS as CACHE_FAULTS
from proofs.fuzz.doors import House

from proofs import robustness_page

STAMP = {"date": "2026-01-02", "commit": "abc", "command": "python -m benchmarks.some"}
ROWS: dict[str, list[dict[str, object]]] = {
    "fuzz": [
        {"door": "csv", "executions": 1200, "read": 200, "refused": 997, "foreign": 1, "hangs": 2, "crashes": 0},
        {"door": "model", "executions": 800, "read": 1, "refused": 799, "foreign": 0, "hangs": 0, "crashes": 3},
    ],
    "contracts": [
        {"property": "sums to one", "method": "cc-rasch", "crowds": 300, "violations": 0},
        {"property": "sums to one", "method": "glad", "crowds": 200, "violations": 4},
        {"property": "finite", "method": "glad", "crowds": 150, "violations": 0},
    ],
    "faults": [
        {"verb": "report", "fault": "killed at a random moment", "tries": 11, "lost": 1, "half-visible": 0, "wrong": 0},
        {"verb": "report", "fault": "disk full", "tries": 7, "lost": 0, "half-visible": 0, "wrong": 5},
    ],
    "kills": [{"killed": "a worker", "holds": "yes"}, {"killed": "a worker", "holds": "no"}],
    "workbench": [{"part": "kills", "figure": "SIGKILL during 20 answers", "value": "0 lost", "holds": "yes"}],
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


@pytest.mark.usefixtures("folder")
def test_sums_are_those_of_the_rows() -> None:
    summary = robustness_page.summary_table()
    assert "| 2,000 | 2 doors | 1 foreign exceptions, 2 hangs, 3 crashes, 4 times more than 1 GB |" in summary
    assert "| 500 | 2 contracts, 2 methods | 4 violations |" in summary
    assert "| 33 | 1 verbs, dask, the workbench | 1 lost, 0 half visible, 5 wrong, 0 left behind; 1 of" in summary
    assert "| report | 11 | 7 | 0 | 0 | 0 | 0 | 1, 0, 5, 0, 0 |" in robustness_page.faults_table()
    assert "| 2026-01-02 | abc | `python -m benchmarks.some` |" in robustness_page.stamps_table()


@pytest.mark.parametrize("name", list(ROWS))
def test_nothing_is_summed_without_all_evidence(name: str, folder: Path) -> None:
    (folder / f"{name}.csv").unlink()
    with pytest.raises(FileNotFoundError, match=rf"{name}\.csv"):
        robustness_page.summary_table()


def test_every_verb_was_killed_ten_times_and_nothing_was_lost() -> None:
    rows = evidence.read("faults")
    kills = {
        verb: robustness_page.killed(row for row in rows if row["verb"] == verb)
        for verb in {row["verb"] for row in rows}
    }
    assert min(kills.values()) >= 10, kills
    assert sum(kills.values()) >= 200
    assert robustness_page.total(rows, "lost", "half-visible", "wrong", "foreign", "left") == 0


def test_every_fault_befell_every_verb() -> None:
    rows = evidence.read("faults")
    faults: dict[str, set[str]] = {}
    for row in rows:
        faults.setdefault(row["verb"], set()).add(row["fault"])
        assert int(row["tries"]) > 0
    assert faults.pop("compiled loops (cache)") == set(CACHE_FAULTS)
    assert len(faults) == 20
    assert {frozenset(found) for found in faults.values()} == {
        frozenset(
            (
                "killed at a random moment",
                "killed before an operation on files",
                "a file cannot grow",
                "disk full",
                "no right to write",
                "two at once",
                "clock set back",
            )
        )
    }


def test_a_million_executions_and_no_door_left_out() -> None:
    executions = {row["door"]: int(row["executions"]) for row in evidence.read("fuzz")}
    total = sum(executions.values())
    assert total >= 1_000_000
    assert min(executions.values()) >= 20_000
    assert max(executions.values()) <= total / 5
    with tempfile.TemporaryDirectory() as folder:
        assert set(executions) == set(House(Path(folder)).names)
