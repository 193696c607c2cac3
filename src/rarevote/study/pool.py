"""Many independent jobs on all cores, with a count of those done."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures.process import BrokenProcessPool
from threading import Thread
from typing import TypeVar

from rarevote.errors import RarevoteError
from rarevote.study.libraries import library

Job = TypeVar("Job")
Row = TypeVar("Row")
Report = Callable[[int], None]


def run_jobs(
    work: Callable[[Job], list[Row]],
    jobs: Sequence[Job],
    *,
    n_jobs: int | None = None,
    report: Report | None = None,
) -> list[Row]:
    """Run ``work`` on every job and return all rows in the order of the jobs.

    Args:
        work: a function at the top of a module, so that other processes can find it.
        jobs: the arguments, one per call.
        n_jobs: parallel processes; None for all cores, 1 to stay in this process.
        report: called with the number of jobs done.
    """
    joblib = library("joblib")
    n_processes = max(1, min(n_jobs or joblib.cpu_count(), len(jobs)))
    notify = report or (lambda _done: None)
    notify(0)
    # Arrays are copied to the processes: mapped files would be read-only, and need other compiled code.
    pool = joblib.Parallel(
        n_processes,
        return_as="generator_unordered",
        batch_size=1,
        max_nbytes=None,
        initializer=_start_process,
        initargs=(os.getpid(),),
    )
    placed = joblib.delayed(_placed)
    rows: dict[int, list[Row]] = {}
    try:
        for place, found in pool(placed(work, place, job) for place, job in enumerate(jobs)):
            rows[place] = found
            notify(len(rows))
    except BrokenProcessPool:
        raise RarevoteError(
            "a process of the study was killed, probably because memory ran out: run again with fewer --jobs"
        ) from None
    return [row for place in range(len(jobs)) for row in rows[place]]


def _placed(work: Callable[[Job], list[Row]], place: int, job: Job) -> tuple[int, list[Row]]:
    return place, work(job)


def _start_process(parent: int) -> None:
    """Make this process end soon after its parent, even if the parent was killed."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    Thread(target=watch, daemon=True).start()
