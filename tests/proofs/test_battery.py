"""The battery runs what today's code was not tried with, and the release check sees evidence that is older."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from benchmarks import evidence
from proofs.battery import PROOFS, Job, Ledger, Proof, proof

from proofs import battery, release, sources, whole_fits
from tests.tables import METHOD_ROWS

STAMP = {"date": "2026-01-02", "commit": "abc"}


# --------------------------------------------------------------------------------------------------------------------
# the hash

SOURCE = '''"""A module."""

# a comment
def area(a, b):  # of a rectangle
    """Width by height."""
    return a * b, "# no comment"
'''


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "area.py").write_text(SOURCE)
    (tmp_path / "pack" / "page.html").write_text("<p>")
    (tmp_path / "other.py").write_text("x = 1\n")
    return tmp_path


@pytest.mark.parametrize(
    ("file", "before", "after", "same"),
    [
        ("pack/area.py", "a * b", "a + b", False),
        ("pack/area.py", "# no comment", "# a text", False),
        ("pack/area.py", "of a rectangle", "of any rectangle", True),
        ("pack/area.py", "Width by height.", "Height by width.\n\n    Always.", True),
        ("pack/area.py", "# a comment\n", "", True),
        ("pack/page.html", "<p>", "<b>", False),
        ("other.py", "1", "2", True),
    ],
)
def test_the_hash_is_of_the_code_that_is_named(tree: Path, file: str, before: str, after: str, same: bool) -> None:
    first = sources.digest(["pack"], tree)
    text = (tree / file).read_text()
    assert before in text
    (tree / file).write_text(text.replace(before, after))
    assert (sources.digest(["pack"], tree) == first) is same


def test_a_new_file_and_a_new_name_change_the_hash(tree: Path) -> None:
    first = sources.digest(["pack"], tree)
    (tree / "pack" / "more.py").write_text("")
    second = sources.digest(["pack"], tree)
    (tree / "pack" / "more.py").rename(tree / "pack" / "less.py")
    assert len({first, second, sources.digest(["pack"], tree)}) == 3
    with pytest.raises(FileNotFoundError, match=r"moved\.py"):
        sources.digest(["pack/moved.py"], tree)


@pytest.mark.parametrize("name", PROOFS)
def test_every_row_names_source_files_that_exist(name: str) -> None:
    one = proof(name)
    rows = dict.fromkeys(job.row for job in one.jobs(1.0))
    assert rows
    for row in rows:
        assert len(sources.files_of(one.sources(row))) > 5


# A function of the package that runs although the row does not name its file would go unnoticed when it changes.
EXERCISED = """
import json, os, sys, threading
from proofs.battery import Job, proof
from proofs.sources import REPOSITORY, files_of
import proofs.fuzz.campaign, proofs.fuzz.doors, proofs.fuzz.run
called = set()
def note(frame, event, argument):
    if event == "call" and frame.f_code.co_flags & 1:  # a function, not the body of a class or a module
        called.add(frame.f_code.co_filename)
threading.setprofile(note)
for name, row, size in json.loads(sys.argv[1]):
    called.clear()
    job = Job(name, row, 0, size)
    sys.setprofile(note)
    if name == "fuzz":
        import tempfile
        from pathlib import Path
        with tempfile.TemporaryDirectory() as folder, proofs.fuzz.doors.House(Path(folder)) as house:
            door = house.door(row)
            called.clear()
            list(proofs.fuzz.run.outcomes(door, 3, range(size), Path(folder), Path(folder)))
    else:
        proof(name).run(job)
    sys.setprofile(None)
    own = {str(path) for path in files_of(proof(name).sources(row))}
    package = str(REPOSITORY / "src" / "rarevote") + os.sep
    print(json.dumps([name, row, sorted(file for file in called - own if file.startswith(package))]))
"""
ROWS = [
    *(
        ("fuzz", row, 40)
        for row in ("csv", "json", "xlsx", "frames", "toloka", "label_studio", "zip", "wide", "folders")
    ),
    *(
        ("fuzz", row, 40)
        for row in ("aggregate", "gold", "costs", "result", "answers", "model", "checkpoint", "weights")
    ),
    *(("fuzz", row, 40) for row in ("crowdfm", "plan", "journal", "certificate", "workbench", "review_list", "truth")),
    *(("contracts", f"{name}/{kind}", 1) for name in ("anchored-rasch", "wawa", "glad") for kind in ("small", "whole")),
    ("contracts", "anchored-ordered/whole", 1),
    ("plan_fuzz", "plans", 14),
    ("audit_boundary", "deep-right", 1),
]


@pytest.mark.prove
def test_every_row_names_the_files_whose_functions_it_calls() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", EXERCISED, json.dumps(ROWS)],
        cwd=evidence.REPOSITORY, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert len(found) == len(ROWS)
    assert [line for line in found if line[2]] == []


def test_a_start_drawn_in_the_order_of_workers_promises_nothing_of_other_names_for_them() -> None:
    rows = {row.name: row for row in METHOD_ROWS}
    assert whole_fits.whole_workers_permuted(whole_fits.WholeCase(rows["mace"], 100002)) is None
    assert whole_fits.whole_workers_permuted(whole_fits.WholeCase(rows["majority-vote"], 100002)) == 0.0


# --------------------------------------------------------------------------------------------------------------------
# the ledger, and evidence from it


@pytest.fixture
def toy(tree: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A battery of one proof with two rows, of which one exercises a folder and one a file."""
    patterns = {"wide": ("pack",), "small": ("other.py",)}
    made = Proof(
        "toy",
        jobs=lambda scale: [job for row in patterns for job in battery.parts("toy", row, 10 * scale, 4)],
        sources=lambda row: patterns[row],
        run=lambda job: job.size,
        rows=lambda row, results: [{"row": row, "tried": sum(results)}],
        findings=lambda row: int(row["tried"]) > 1000,
        row_of=lambda row: row["row"],
    )
    for module in (battery, release):
        monkeypatch.setattr(module, "PROOFS", ("toy",))
        monkeypatch.setattr(module, "digest", lambda patterns: sources.digest(patterns, tree))
    monkeypatch.setattr(battery, "proof", lambda _: made)
    monkeypatch.setattr(evidence, "EVIDENCE", tree / "evidence")
    monkeypatch.setattr(evidence, "commit", lambda: "abc")
    return tree


def filled(ledger: Ledger, jobs: list[Job], code: str, **changes: Any) -> None:
    for job in jobs:
        ledger.add({**job._asdict(), "code": code, **STAMP, "result": job.size, **changes})


def test_parts_cover_the_whole_and_the_first_come_first(toy: Path) -> None:
    del toy
    assert [job.size for job in battery.parts("toy", "wide", 10, 4)] == [4, 4, 4]
    assert battery.parts("toy", "wide", 0.3, 4) == [Job("toy", "wide", 0, 1)]
    assert [(job.part, job.row) for job in battery.wanted([], 1.0)][:3] == [(0, "wide"), (0, "small"), (1, "wide")]
    assert {job.row for job in battery.wanted(["toy:small"], 1.0)} == {"small"}
    with pytest.raises(ValueError, match="toys is not a proof"):
        battery.wanted(["toys"], 1.0)


def test_only_what_ran_with_the_code_of_today_counts(toy: Path) -> None:
    path = toy / "ledger.jsonl"
    jobs = battery.wanted([], 1.0)
    ledger = Ledger(path)
    filled(ledger, [job for job in jobs if job.row == "wide"], sources.digest(["pack"], toy))
    filled(ledger, [job for job in jobs if job.row == "small"], "older")
    with path.open("a") as handle:
        handle.write('{"proof": "toy", "row": "sm')  # cut off
    again = Ledger(path)
    code = {"wide": sources.digest(["pack"], toy), "small": sources.digest(["other.py"], toy)}
    assert {job.row for job in jobs if not again.has(job, code[job.row])} == {"small"}
    battery.write_evidence(again)
    assert [(row["row"], row["tried"], row["commit"]) for row in evidence.read("toy")] == [("wide", "12", "abc")]
    # Of a part that ran twice, the larger run counts, and counts once.
    filled(again, [Job("toy", "wide", 0, 3), Job("toy", "wide", 1, 9)], code["wide"])
    battery.write_evidence(Ledger(path))
    assert [row["tried"] for row in evidence.read("toy")] == ["17"]


def test_what_is_wrong_with_the_evidence_of_a_row(toy: Path) -> None:
    ledger = Ledger(toy / "ledger.jsonl")
    jobs = battery.wanted([], 1.0)
    assert battery.faults("toy") == {"wide": {"not run"}, "small": {"not run"}}
    filled(ledger, [job for job in jobs if job.row == "wide"], sources.digest(["pack"], toy))
    filled(ledger, [job for job in jobs if job.row == "small"][1:], sources.digest(["other.py"], toy))
    battery.write_evidence(ledger)
    assert battery.faults("toy") == {"wide": set(), "small": {"too few"}}
    filled(ledger, [job for job in jobs if job.row == "small"][:1], sources.digest(["other.py"], toy))
    battery.write_evidence(ledger)
    assert battery.faults("toy") == {"wide": set(), "small": set()}
    rows = evidence.read("toy")
    for change, fault in (
        ({"commit": "abc-dirty"}, "unclean"),
        ({"tried": 1001}, "findings"),
        ({"scale": 0.5}, "too few"),
        ({"scale": ""}, "too few"),
        ({"code": "older"}, "changed"),
    ):
        evidence.write("toy", [rows[0], {**rows[1], **change}])
        assert battery.faults("toy") == {"wide": set(), "small": {fault}}
        assert {fault} <= battery.FAULTS.keys()
    evidence.write("toy", [*rows, {**rows[1], "row": "gone", "tried": 1001}])
    (toy / "other.py").write_text("x = 2\n")
    assert battery.faults("toy") == {"wide": set(), "small": {"changed"}}


def test_rows_that_did_not_run_keep_what_was_measured_before(toy: Path) -> None:
    evidence.write("toy", [{"row": "small", "tried": 5, **STAMP}, {"row": "gone", "tried": 6, **STAMP}])
    ledger = Ledger(toy / "ledger.jsonl")
    filled(ledger, [Job("toy", "wide", 0, 4)], sources.digest(["pack"], toy), commit="abc-dirty")
    filled(ledger, [Job("toy", "wide", 1, 4)], sources.digest(["pack"], toy))
    battery.write_evidence(ledger)
    rows = evidence.read("toy")
    assert [(row["row"], row["tried"], row["scale"], row["commit"]) for row in rows] == [
        ("wide", "8", "0.667", "abc-dirty"),
        ("small", "5", "", "abc"),
    ]
    assert battery.faults("toy") == {"wide": {"too few", "unclean"}, "small": {"changed", "too few"}}


def test_a_release_is_refused_for_evidence_that_is_older_unclean_missing_or_broken(
    toy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release, "MUTANTS", 3)
    (toy / "src" / "rarevote").mkdir(parents=True)
    mutated = toy / "src" / "rarevote" / "mutated.py"
    mutated.write_text("x = 1\n")
    row = {"place": "mutated.py:1", "code": sources.digest(["src/rarevote/mutated.py"], toy), **STAMP}
    mutants = [{"outcome": outcome, **row} for outcome in ("killed", "equivalent", "killed")]
    evidence.write("mutants", mutants, command="some")
    ledger = Ledger(toy / "ledger.jsonl")
    for job in battery.wanted([], 1.0):
        filled(ledger, [job], sources.digest({"wide": ["pack"], "small": ["other.py"]}[job.row], toy))
    battery.write_evidence(ledger)
    assert release.problems() == []
    evidence.write("speed", [{"seconds": 3, "date": "2026-01-02", "commit": "abc-dirty"}], command="some")
    assert [line for line in release.problems() if line.startswith("speed.csv: measured on a tree")]
    (toy / "evidence" / "speed.csv").unlink()
    (toy / "other.py").write_text("x = 2\n")
    assert release.problems() == ["toy.csv: the code changed since it was measured: small"]
    (toy / "other.py").write_text("x = 1  # as before\n")
    assert release.problems() == []
    rows = evidence.read("toy")
    evidence.write("toy", rows[:1])
    assert release.problems() == ["toy.csv: never measured: small"]
    evidence.write("toy", [{**rows[0], "scale": 0.1}, {key: text for key, text in rows[1].items() if key != "scale"}])
    assert release.problems() == ["toy.csv: tried less than make prove-all does: wide, small"]
    evidence.write("toy", [{**rows[0], "tried": 1001}, rows[1]])
    assert release.problems() == ["toy.csv: findings: wide"]
    evidence.write("toy", rows)
    evidence.write("mutants", mutants[:2], command="some")
    assert release.problems() == ["mutants.csv: 2 of 3 mutants tried"]
    evidence.write("mutants", [*mutants, {"outcome": "survived", **row}], command="some")
    assert release.problems() == ["mutants.csv: 2 of 3 mutants killed, 92% are wanted"]
    evidence.write("mutants", mutants, command="some")
    mutated.write_text("x = 2\n")
    assert release.problems() == ["mutants.csv: the code changed since it was measured: mutated.py"]
    mutated.write_text("x = 1\n")
    monkeypatch.setattr(evidence, "commit", lambda: "abc-dirty")
    assert release.problems() == ["the tree differs from its commit"]


def test_findings_are_shown_when_the_job_ends(
    toy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run_job(job: Job, ledger: Ledger, work: Path) -> str:
        del work
        if job.row == "wide":
            filled(ledger, [job], "same", result=1001 if job.part == 1 else 4)
        return "" if job.row == "wide" else "it broke"

    monkeypatch.setattr(battery, "run_job", run_job)
    jobs = [Job("toy", "wide", 0, 4), Job("toy", "wide", 1, 4), Job("toy", "small", 0, 4)]
    battery.run_all(jobs, Ledger(toy / "ledger.jsonl"), toy, at_once=1, minutes=None)
    lines = [line for line in capsys.readouterr().out.splitlines() if "toy" in line]
    assert [line.partition(";")[0] for line in lines] == [
        "1/3 toy wide, part 0: 0 s",
        "2/3 toy wide, part 1: 0 s, 1 FINDINGS",
        "3/3 toy small, part 0: 0 s, FAILED",
    ]


def test_time_that_is_over_starts_no_job(toy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Job] = []

    def run_job(job: Job, ledger: Ledger, work: Path) -> str:
        del ledger, work
        started.append(job)
        return ""

    monkeypatch.setattr(battery, "run_job", run_job)
    jobs, ledger = battery.wanted([], 1.0), Ledger(toy / "ledger.jsonl")
    assert battery.run_all(jobs, ledger, toy, at_once=2, minutes=0) == []
    assert started == []
    filled(ledger, jobs[:1], sources.digest(["pack"], toy))
    assert battery.run_all(jobs, ledger, toy, at_once=1, minutes=None) == []
    assert started == jobs[1:]
