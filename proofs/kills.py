"""Fits whose workers or driver are killed (SIGKILL) at a random moment, against the fit that nobody disturbs.

A worker's death must leave the penalised objective within 1e-8
(relative) and the posteriors within 1e-6; a driver that is started again with the same command must end bit for bit
where an undisturbed one ends. Half of the drivers use a cluster that survives them, half take theirs with them.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.dask_engine import cluster, columns, posterior, write_files

from proofs import sources
from proofs.battery import Job, Proof, Row, parts
from rarevote import CCRasch
from rarevote.cluster.fit import Dask
from rarevote.em.loop import Progress

N_ANNOTATIONS, N_WORKERS, N_SHARDS = 200_000, 1_000, 6
# Of annotators: low enough for a fit of some dozens of iterations.
ACCURACY = 0.65
EVERY = 5

DRIVER = """
import sys
from rarevote import CCRasch
from rarevote.cluster.fit import Dask

def told(progress):
    print(progress.iteration, flush=True)

if __name__ == "__main__":
    data, out, checkpoint, every, n_shards, *scheduler = sys.argv[1:]
    engine = Dask(out, scheduler=(scheduler or [None])[0], checkpoint=checkpoint, every=int(every),
                  n_shards=int(n_shards))
    engine.fit(CCRasch(), data, callback=told)
"""


def kill_workers(client: Any, data: Path, folder: Path, kills: int, dice: random.Random) -> list[dict[str, Any]]:
    calm = Dask(folder / "calm", client=client, n_shards=N_SHARDS).fit(CCRasch(), data)
    expected, objective = posterior(folder / "calm"), calm.fit.history[-1]
    rows = []
    for number in range(kills):
        at = dice.randint(1, calm.fit.n_iter - 1)
        delay = dice.uniform(0.0, 0.05)  # into the round that follows
        done: list[int] = []

        def kill(at: int = at, delay: float = delay, done: list[int] = done) -> None:
            victims = sorted(client.run(os.getpid).values())
            time.sleep(delay)
            os.kill(dice.choice(victims), signal.SIGKILL)
            done.append(at)

        killer = threading.Thread(target=kill)

        def told(progress: Progress, at: int = at, killer: threading.Thread = killer) -> None:
            if progress.iteration == at:
                killer.start()

        client.wait_for_workers(2, timeout=180)  # so that whoever is killed holds shards; dask can be slow to restart
        begin = time.perf_counter()
        struck = Dask(folder / "struck", client=client, n_shards=N_SHARDS).fit(CCRasch(), data, callback=told)
        seconds = time.perf_counter() - begin
        killer.join()
        difference = float(np.abs(posterior(folder / "struck") - expected).max())
        relative = abs(struck.fit.history[-1] - objective) / abs(objective)
        rows.append(
            {
                "run": number + 1,
                "killed": "a worker",
                "iteration": at,
                "of": calm.fit.n_iter,
                "resumed_at": "",
                "objective_difference": f"{relative:.3g}",
                "posterior_difference": f"{difference:.3g}",
                "seconds": f"{seconds:.1f}",
                "holds": "yes" if done and relative <= 1e-8 and difference <= 1e-6 else "no",
            }
        )
        print(rows[-1], flush=True)
    return rows


def drive(folder: Path, data: Path, name: str, scheduler: str | None, kill_at: int | None) -> list[int]:
    """Run a driver; returns the iterations that it told of until it ended or was killed."""
    arguments = [data, folder / f"{name}-out", folder / f"{name}-checkpoint", EVERY, N_SHARDS]
    words = [str(word) for word in arguments] + ([scheduler] if scheduler else [])
    script = folder / "driver.py"
    script.write_text(DRIVER)
    told = []
    with subprocess.Popen([sys.executable, str(script), *words], stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        for line in driver.stdout:
            told.append(int(line))
            if told[-1] == kill_at:
                driver.send_signal(signal.SIGKILL)
                break
    assert kill_at is not None or driver.returncode == 0
    return told


def kill_drivers(client: Any, data: Path, folder: Path, kills: int, dice: random.Random) -> list[dict[str, Any]]:
    address = client.scheduler.address
    told = drive(folder, data, "calm", address, None)
    expected = posterior(folder / "calm-out")
    objective = json.loads((folder / "calm-out" / "summary.json").read_text())["objective"]
    rows = []
    for number in range(kills):
        at = dice.randint(2, told[-1] - 1)
        scheduler = address if number % 2 == 0 else None
        begin = time.perf_counter()
        drive(folder, data, f"struck-{number}", scheduler, at)
        assert not (folder / f"struck-{number}-out" / "summary.json").exists()
        resumed = drive(folder, data, f"struck-{number}", scheduler, None)
        seconds = time.perf_counter() - begin
        found = json.loads((folder / f"struck-{number}-out" / "summary.json").read_text())["objective"]
        difference = float(np.abs(posterior(folder / f"struck-{number}-out") - expected).max())
        same = np.array_equal(posterior(folder / f"struck-{number}-out"), expected) and found == objective
        rows.append(
            {
                "run": number + 1,
                "killed": "the driver" if scheduler else "the driver with its cluster",
                "iteration": at,
                "of": told[-1],
                "resumed_at": resumed[0],
                "objective_difference": f"{abs(found - objective) / abs(objective):.3g}",
                "posterior_difference": f"{difference:.3g}",
                "seconds": f"{seconds:.1f}",
                "holds": "yes" if same else "no",
            }
        )
        print(rows[-1], flush=True)
    return rows


_PER_JOB = 4
_STRIKES = {"workers": kill_workers, "drivers": kill_drivers}


def run(job: Job) -> list[Row]:
    """Some kills, one row each, on a cluster of their own."""
    dice = random.Random(f"{job.row} {job.part}")
    task, worker, label = columns(N_ANNOTATIONS, N_WORKERS, ACCURACY)
    with tempfile.TemporaryDirectory(prefix="rarevote-") as name:
        folder = Path(name)
        order = np.array_split(np.random.default_rng(1).permutation(task.size), 4)
        data = write_files(folder / "data", task, worker, label, order)
        with cluster(2) as client:
            return _STRIKES[job.row](client, data, folder, job.size, dice)


def rows(name: str, results: list[list[Row]]) -> list[Row]:
    """A row a kill."""
    del name
    kills = [row for result in results for row in result]
    return [{**row, "run": number} for number, row in enumerate(kills, 1)]


PROOF = Proof(
    "kills",
    jobs=lambda scale: [job for name in _STRIKES for job in parts("kills", name, 12 * scale, _PER_JOB)],
    sources=lambda _: (
        *sources.FITTING, "src/rarevote/methods/cc_rasch", "src/rarevote/cluster", "proofs/kills.py",
        "benchmarks/dask_engine.py",
    ),
    run=run,
    rows=rows,
    findings=lambda row: row["holds"] != "yes",
    row_of=lambda row: "workers" if row["killed"] == "a worker" else "drivers",
)  # fmt: skip
