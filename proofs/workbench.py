"""The workbench under kills, with a million items, and over a long session.

One row a figure:

- kills: the server is killed (SIGKILL) at a random moment of a random answer and started again with the same command,
  until so many kills; no answer that it said it had kept may be lost, none doubled, and the audit must end where an
  undisturbed one ends, answer by answer;
- items: what an answer takes in a plan of so many items: the server's own time on a processor, which must stay below
  50 ms for every one, and the whole way from the form to the redirect, disk and other jobs of the machine included, of
  which the median must;
- answers: resident memory after a tenth of so many answers and after all of them, in one session.
"""

from __future__ import annotations

import os
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tests.workbench.processes import Process, answers_until_killed

from proofs import sources
from proofs.battery import Job, Proof, parts
from rarevote.audit import Audit, verify
from rarevote.audit.journal import read_journal

CLASSES = ["defect", "sound"]
MAX_SECONDS = 0.050
# Bytes of resident memory per answer: an audit has all its answers in memory (about 400 bytes each), and the allocator
# keeps some of what writing the plan took. What a request needs must be given back.
MAX_GROWTH = 2_000


def make_plan(folder: Path, n: int, *, rate: float, flag_cost: float, seed: int, text: bool = False) -> list[int]:
    """A plan of ``n`` items whose scores are right on average, with labels to show; returns the right choices."""
    generator = np.random.default_rng(seed)
    p = generator.beta(4 * rate, 4 * (1 - rate), n)
    truth = generator.random(n) < p
    source: dict[str, Any] = {}
    if text:
        lines = (f"{i},w,{CLASSES[i % 2]},text of item {i}\n" for i in range(n))
        (folder / "labels.csv").write_text("task,worker,label,text\n" + "".join(lines), encoding="utf-8")
        source = {"labels": ["labels.csv"], "reading": {"show": ["text"]}, "review_as": "table"}
    tasks: Any = [str(i) for i in range(n)] if text else range(n)
    audit = Audit.start(
        tasks, p, name="defect", target=0.9, classes=CLASSES, flag_cost=flag_cost, seed=seed, source=source or None
    )
    audit.round()
    audit.save(folder / "audit.json")
    return [0 if positive else 1 for positive in truth.tolist()]


def kill(folder: Path, kills: int, first: int, dice: random.Random) -> dict[str, int]:
    """Kill the server so often, in audits whose numbers begin after ``first``."""
    done = lost = doubled = different = audits = answers = 0
    begin = time.perf_counter()
    while done < kills:
        audits += 1
        place = folder / f"audit-{audits}"
        place.mkdir()
        right = make_plan(place, 400, rate=0.33, flag_cost=5.0, seed=first + audits)
        path = place / "audit.json"
        calm = Audit.load(path)
        while review := calm.round():
            calm.answer({task: CLASSES[right[task]] for task in review})
        kept: dict[int, int] = {}
        over = False
        while not over:
            before = len(kept)
            _, over = answers_until_killed(path, right, kept, dice, most=15)
            done += not over
            lines = read_journal(path)
            said = {entry.task: entry.label for entry in lines}
            doubled += len(lines) - len(said)
            lost += sum(said.get(task) != CLASSES[choice] for task, choice in kept.items())
            print(f"kill {done}: {len(kept) - before} answers, {len(said)} on the disk", flush=True)
        ended = Audit.load(path)
        answers += len(read_journal(path))
        same = [one.tasks for one in ended.plan.rounds] == [one.tasks for one in calm.plan.rounds]
        different += not (same and ended.answers == calm.answers and verify(ended, ended.certificate()) == ())
    return {
        "kills": done, "audits": audits, "answers": answers, "lost": lost, "doubled": doubled, "different": different,
        "seconds": round(time.perf_counter() - begin),
    }  # fmt: skip


def kills_row(results: list[dict[str, int]]) -> dict[str, Any]:
    sums = {name: sum(result[name] for result in results) for name in results[0]}
    return {
        "figure": f"SIGKILL during {sums['kills']} answers in {sums['audits']} audits",
        "answers": sums["answers"],
        "value": f"{sums['lost']} lost, {sums['doubled']} doubled, {sums['different']} audits ended differently",
        "seconds": sums["seconds"],
        "holds": "yes" if not sums["lost"] + sums["doubled"] + sums["different"] else "no",
    }


def on_processor(one: Process) -> float:
    """Seconds that the server has been on a processor."""
    return int(Path(f"/proc/{one.process.pid}/schedstat").read_text().split()[0]) / 1e9


def timed_answers(one: Process, right: list[int], n: int, times: list[tuple[float, float]]) -> None:
    """Answer ``n`` items, each timed from the form to the server's word that it is kept: on a processor, and in all."""
    while n:
        shown = one.item()
        if shown is None:
            if not one.resume():
                return
            continue
        fields, name = shown
        form = {**fields, "choice": str(right[int(name)])}
        begin, before = time.perf_counter(), on_processor(one)
        sent = one.client.post("/answer", data=form)
        times.append((on_processor(one) - before, time.perf_counter() - begin))
        assert sent.status_code == 303
        n -= 1


def items_row(folder: Path, n: int) -> dict[str, Any]:
    right = make_plan(folder, n, rate=0.05, flag_cost=1.0, seed=1, text=True)
    begin = time.perf_counter()
    times: list[tuple[float, float]] = []
    with Process("audit", "review", folder / "audit.json") as one:
        opening = time.perf_counter() - begin
        timed_answers(one, right, 250, times)
        begin = time.perf_counter()
        assert one.client.get("/claims").status_code == 200
        claims = time.perf_counter() - begin
    longest, whole = max(own for own, _ in times), [way for _, way in times]
    quantiles = statistics.quantiles(whole, n=100)
    return {
        "figure": f"an answer among {n:,} items",
        "answers": len(times),
        "value": f"at most {1000 * longest:.1f} ms of CPU time; by the clock {1000 * quantiles[49]:.1f} ms (median), "
        f"{1000 * quantiles[98]:.1f} ms (99%), {1000 * max(whole):.1f} ms (longest); {opening:.0f} s to open, "
        f"{1000 * claims:.0f} ms for the panel of claims",
        "seconds": f"{sum(whole):.1f}",
        "holds": "yes" if longest < MAX_SECONDS and quantiles[49] < MAX_SECONDS else "no",
    }


def memory(one: Process) -> float:
    """Resident memory in MB."""
    pages = int(Path(f"/proc/{one.process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def answers_row(folder: Path, n: int) -> dict[str, Any]:
    right = make_plan(folder, 3 * n, rate=0.5, flag_cost=1e6, seed=2)
    times: list[tuple[float, float]] = []
    with Process("audit", "review", folder / "audit.json") as one:
        timed_answers(one, right, n // 10, times)
        before = memory(one)
        timed_answers(one, right, n - n // 10, times)
        after = memory(one)
    growth = 1e6 * (after - before) / (n - n // 10)
    return {
        "figure": f"resident memory after {n // 10:,} and {n:,} answers in one session",
        "answers": len(times),
        "value": f"{before:.1f} MB, {after:.1f} MB ({growth:+,.0f} bytes per answer)",
        "seconds": f"{sum(way for _, way in times):.1f}",
        "holds": "yes" if growth < MAX_GROWTH and len(times) == n else "no",
    }


_AUDITS_PER_JOB = 1000  # at most; the numbers of their plans do not meet


def run(job: Job) -> dict[str, Any]:
    """Kills, or one of the two measurements."""
    with tempfile.TemporaryDirectory(prefix="rarevote-") as name:
        folder = Path(name)
        if job.row == "kills":
            return kill(folder, job.size, job.part * _AUDITS_PER_JOB, random.Random(job.part))
        return items_row(folder, job.size) if job.row == "items" else answers_row(folder, job.size)


def jobs(scale: float) -> Iterator[Job]:
    """A hundred kills; a million items and ten thousand answers, or fewer."""
    yield from parts("workbench", "kills", 100 * scale, 25)
    yield Job("workbench", "items", 0, max(10_000, round(1_000_000 * scale)))
    yield Job("workbench", "answers", 0, max(500, round(10_000 * scale)))


PROOF = Proof(
    "workbench",
    jobs=jobs,
    sources=lambda _: (
        *sources.READING, *sources.AUDIT, "src/rarevote/workbench", "src/rarevote/cli/audit*.py", "proofs/workbench.py",
        "tests/workbench/processes.py",
    ),
    run=run,
    rows=lambda row, results: [{"part": row, **(kills_row(results) if row == "kills" else results[0])}],
    findings=lambda row: row["holds"] != "yes",
    row_of=lambda row: row["part"],
)  # fmt: skip
