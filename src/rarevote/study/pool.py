"""Many independent jobs on all cores, with a count of those done."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from rarevote.errors import RarevoteError

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
    """Run ``work`` on every job and return all rows in the order of the jobs, however they were spread.

    Args:
        work: a function at the top of a module, so that other processes can find it.
        jobs: what to call it with.
        n_jobs: processes side by side; None for all cores, 1 to stay in this one.
        report: called with the number of jobs done.
    """
    n_processes = min(n_jobs if n_jobs is not None and n_jobs > 0 else os.cpu_count() or 1, len(jobs))
    rows: list[list[Row]] = [[] for _ in jobs]
    tell = report or (lambda _done: None)
    tell(0)
    if n_processes <= 1:
        for place, job in enumerate(jobs):
            rows[place] = work(job)
            tell(place + 1)
        return [row for of_job in rows for row in of_job]
    # Fresh processes rather than forked ones: forking a process that has threads may hang.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(n_processes, mp_context=context, initializer=_start_process) as pool:
        running = {pool.submit(work, job): place for place, job in enumerate(jobs)}
        try:
            for n_done, future in enumerate(as_completed(running), start=1):
                rows[running[future]] = future.result()
                tell(n_done)
        except BrokenProcessPool:
            raise RarevoteError(
                "a process of the study was killed, probably for want of memory: run again with fewer --jobs"
            ) from None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    return [row for of_job in rows for row in of_job]


def _start_process() -> None:
    # Ctrl-C reaches the whole group: each process should end without a traceback of its own.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A killed study cannot tell its processes, which would wait for work for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
