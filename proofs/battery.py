"""The battery: every proof cut into jobs of a minute or so, kept in a ledger, and its evidence written from there.

A proof states its jobs (:class:`Proof`). Each runs in a process of its own; what came out is a line of the ledger, with
the commit and a hash of the code that it exercised. Lines of other code do not count: a job whose code changed is run
again, any other one is not, so that a run can be stopped and resumed at any moment.
"""

from __future__ import annotations

import datetime
import json
import resource
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import evidence

from proofs.sources import digest

Row = dict[str, Any]
#: Modules that each have a ``PROOF``, in the order of the page.
PROOFS = ("fuzz", "contracts", "faults", "kills", "workbench", "plan_fuzz", "audit_boundary")
_MODULES = {"fuzz": "proofs.fuzz.campaign"}
LEDGER = "ledger.jsonl"
COMMAND = "make prove-all"
#: What can be wrong with the evidence of a row, with the words for it.
FAULTS = {
    "changed": "the code changed since it was measured",
    "not run": "never measured",
    "too few": "tried less than make prove-all does",
    "unclean": "measured on a tree that differed from its commit",
    "findings": "findings",
}


class Job(NamedTuple):
    """A piece of a proof.

    Attributes:
        proof: its name, which is that of its evidence.
        row: what is tried; a name that :attr:`Proof.sources` knows.
        part: number of the piece, from 0: pieces with the same number run before those with the next one.
        size: how much is tried.
    """

    proof: str
    row: str
    part: int
    size: int


@dataclass(frozen=True)
class Proof:
    """A proof that the battery runs.

    Attributes:
        name: of its evidence, and of the module.
        jobs: the jobs at a scale, of which 1 is all.
        sources: patterns of the source files that a row exercises.
        run: runs a job; returns what came out, for JSON.
        rows: rows of evidence from what came out of all parts of a row.
        findings: how many findings a row of evidence has: 0 where everything holds.
        row_of: the row of jobs that a row of evidence belongs to.
    """

    name: str
    jobs: Callable[[float], Iterable[Job]]
    sources: Callable[[str], tuple[str, ...]]
    run: Callable[[Job], Any]
    rows: Callable[[str, list[Any]], list[Row]]
    findings: Callable[[Row], int]
    row_of: Callable[[Row], str]


def proof(name: str) -> Proof:
    """The proof of a name."""
    found: Proof = import_module(_MODULES.get(name, f"proofs.{name}")).PROOF
    return found


def parts(name: str, row: str, total: float, size: int) -> list[Job]:
    """Jobs that together try ``total`` or a little more, ``size`` at most each."""
    number = max(1, -int(-total // size))
    return [Job(name, row, part, max(1, -int(-total // number))) for part in range(number)]


class Ledger:
    """What came out of jobs, a line each.

    Args:
        path: of the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self.lines: list[Row] = []
        for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            try:
                self.lines.append(json.loads(text))
            except json.JSONDecodeError:
                continue  # cut off when the machine stopped: that job runs again

    def has(self, job: Job, code: str) -> bool:
        """Whether the job, or a larger one of the same part, ran with this code."""
        return any(
            (line["proof"], line["row"], line["part"], line["code"]) == (job.proof, job.row, job.part, code)
            and line["size"] >= job.size
            for line in self.lines
        )

    def add(self, line: Row) -> None:
        """Append a line, whole."""
        with self._lock:
            self.lines.append(line)
            with self.path.open("a", encoding="utf-8") as handle:
                handle.write(json.dumps(line) + "\n")

    def findings(self, job: Job) -> int:
        """How many findings the last run of a job had."""
        one = proof(job.proof)
        ran = [line["result"] for line in self.lines if Job(*(line[key] for key in Job._fields)) == job][-1:]
        return sum(one.findings(figures) for figures in one.rows(job.row, ran)) if ran else 0

    def counted(self, name: str, row: str, code: str) -> list[Row]:
        """Of every part of a row, the line with the largest size that ran with this code."""
        largest: dict[int, Row] = {}
        for line in self.lines:
            if (line["proof"], line["row"], line["code"]) == (name, row, code):
                known = largest.get(line["part"])
                if known is None or line["size"] >= known["size"]:
                    largest[line["part"]] = line
        return [largest[part] for part in sorted(largest)]


def wanted(names: Sequence[str], scale: float) -> list[Job]:
    """Jobs of the proofs and rows that are named (``fuzz``, ``fuzz:csv``), or of all; first parts come first."""
    chosen = [name.partition(":") for name in names]
    unknown = {name for name, _, _ in chosen} - set(PROOFS)
    if unknown:
        raise ValueError(f"{', '.join(sorted(unknown))} is not a proof: {', '.join(PROOFS)}")
    found = []
    for name in PROOFS:
        rows = {row for proof_name, _, row in chosen if proof_name == name}
        if rows or not chosen:
            found += [job for job in proof(name).jobs(scale) if not chosen or "" in rows or job.row in rows]
    return sorted(found, key=lambda job: (job.part, PROOFS.index(job.proof)))


def faults(name: str) -> dict[str, set[str]]:
    """What is wrong with the evidence of each row of a proof, of :data:`FAULTS`; a row without any is not run again."""
    one = proof(name)
    measured: dict[str, list[dict[str, str]]] = {job.row: [] for job in one.jobs(1.0)}
    for row in evidence.read(name) if (evidence.EVIDENCE / f"{name}.csv").exists() else ():
        if (row_name := one.row_of(row)) in measured:
            measured[row_name].append(row)
    found: dict[str, set[str]] = {}
    for row_name, rows in measured.items():
        code = digest(one.sources(row_name))
        wrong = {
            "not run": not rows,
            "changed": any(row.get("code") != code for row in rows),
            "too few": any(float(row.get("scale") or 0) < 1 for row in rows),
            "unclean": any(row["commit"].endswith("-dirty") for row in rows),
            "findings": any(one.findings(row) for row in rows),
        }
        found[row_name] = {fault for fault, is_so in wrong.items() if is_so}
    return found


def run_job(job: Job, ledger: Ledger, work: Path) -> str:
    """Run a job in a process of its own; returns what went wrong, "" if nothing did."""
    code = digest(proof(job.proof).sources(job.row))
    begin = time.perf_counter()
    words = [sys.executable, "-m", "proofs", "job", json.dumps(job), str(work)]
    child = subprocess.run(words, cwd=evidence.REPOSITORY, capture_output=True, text=True)
    if child.returncode:
        return f"{child.stdout[-1000:]}{child.stderr[-3000:]}"
    if digest(proof(job.proof).sources(job.row)) != code:
        return "the code changed while the job ran"
    result = json.loads(child.stdout.splitlines()[-1])
    ledger.add(
        {
            **job._asdict(), "code": code, "commit": evidence.commit(), "date": datetime.date.today().isoformat(),
            "seconds": round(time.perf_counter() - begin, 1), **result,
        }
    )  # fmt: skip
    return ""


def run_child(text: str) -> None:
    """Run the job of this process, and print what came out as the last line."""
    job = Job(*json.loads(text))
    result = proof(job.proof).run(job)
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu = sum(one.ru_utime + one.ru_stime for one in used)
    print("\n" + json.dumps({"cpu": round(cpu, 1), "result": result}))


class Progress:
    """Says what was done, what was found and how long the rest takes.

    Args:
        jobs: all that are to be run.
        at_once: how many run at the same time.
    """

    def __init__(self, jobs: Sequence[Job], at_once: int) -> None:
        self._left, self._at_once = list(jobs), at_once
        self._total, self._lock = len(jobs), threading.Lock()
        self._seconds: Counter[str] = Counter()
        self._sizes: Counter[str] = Counter()

    def done(self, job: Job, seconds: float, failure: str, n_findings: int) -> None:
        """Note the end of a job."""
        result = ", FAILED" if failure else f", {n_findings} FINDINGS" if n_findings else ""
        with self._lock:
            self._left.remove(job)
            self._seconds[job.proof] += round(seconds)
            self._sizes[job.proof] += job.size
            mean = sum(self._seconds.values()) / (self._total - len(self._left))
            rest = sum(
                one.size * self._seconds[one.proof] / self._sizes[one.proof] if self._sizes[one.proof] else mean
                for one in self._left
            )
            number = self._total - len(self._left)
            print(
                f"{number}/{self._total} {job.proof} {job.row}, part {job.part}: {seconds:.0f} s"
                f"{result}; about {rest / self._at_once / 60:.0f} min left",
                flush=True,
            )
            if failure:
                print(failure, flush=True)


def run_all(jobs: Sequence[Job], ledger: Ledger, work: Path, *, at_once: int, minutes: float | None) -> list[Job]:
    """Run what the ledger does not have yet, until the time is over; returns the jobs that failed."""
    left = [job for job in jobs if not ledger.has(job, digest(proof(job.proof).sources(job.row)))]
    print(f"{len(jobs) - len(left)} of {len(jobs)} jobs ran with this code already", flush=True)
    end = time.monotonic() + 60 * minutes if minutes is not None else float("inf")
    progress, failed = Progress(left, at_once), []

    def run(job: Job) -> None:
        if time.monotonic() >= end:
            return
        begin = time.monotonic()
        failure = run_job(job, ledger, work)
        if failure:
            failed.append(job)
        progress.done(job, time.monotonic() - begin, failure, 0 if failure else ledger.findings(job))

    with ThreadPoolExecutor(at_once) as pool:
        try:
            list(pool.map(run, left))
        except KeyboardInterrupt:
            end = 0.0  # jobs that run now end with this process; those that wait are not started
            raise
    return failed


def write_evidence(ledger: Ledger) -> list[Path]:
    """Write what the ledger has of the code of today; rows without any stay as they were measured before."""
    written = []
    for name in PROOFS:
        made: dict[str, list[Row]] = {}
        one = proof(name)
        whole: Counter[str] = Counter()
        for job in one.jobs(1.0):
            whole[job.row] += job.size
        known: dict[str, list[Row]] = {row: [] for row in whole}
        for row in known:
            code = digest(one.sources(row))
            if lines := ledger.counted(name, row, code):
                results = [line["result"] for line in lines]
                scale = min(1.0, round(sum(line["size"] for line in lines) / whole[row], 3))
                about = {"scale": scale, "code": code, **_stamp(lines)}
                made[row] = [{**figures, **about} for figures in one.rows(row, results)]
        if made:
            for old in evidence.read(name) if (evidence.EVIDENCE / f"{name}.csv").exists() else ():
                if one.row_of(old) in known and one.row_of(old) not in made:
                    known[one.row_of(old)].append(old)
            rows = [figures for row, before in known.items() for figures in made.get(row, before)]
            written.append(evidence.write(name, rows, command=COMMAND))
    return written


def _stamp(lines: list[Row]) -> Row:
    """Date and commit of the last line; a commit with changes in the tree, if there is one, is the commit of all."""
    last = max(lines, key=lambda line: line["date"])
    changed = [line["commit"] for line in lines if line["commit"].endswith("-dirty")]
    return {"date": last["date"], "commit": (changed or [last["commit"]])[-1]}
