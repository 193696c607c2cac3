"""Time and memory of our methods and of other libraries, on the same labels.

Every fit runs in its own process (:mod:`rarevote.study.peers.one_fit`), one at a time. A fit that exceeds the time
limit is stopped and shown as such, and larger sizes are skipped. Other libraries can be installed in another Python.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from rarevote.charts.svg import Chart, Key
from rarevote.errors import InputError, ParameterError
from rarevote.methods.registry import DEFAULT_METHOD, method_title
from rarevote.simulate.crowds import simulate_crowd
from rarevote.study.experiment import Account, Experiment
from rarevote.study.figures import Axis, Mark, line_chart, look
from rarevote.study.peers.one_fit import CROWD_KIT_CLASSES
from rarevote.study.pool import Report
from rarevote.study.tables import ABSENT, StudyTable

SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
METHODS = ("majority-vote", "dawid-skene", "glad", "cc-rasch", DEFAULT_METHOD)
OURS, PEER = "rarevote", "crowd-kit"
VOTES_PER_TASK = 5
TIME_LIMIT = 120.0

_EXCEEDED = "exceeded the time limit"
_KEYS = [
    key
    for library, colour in ((OURS, "vermillion"), (PEER, "blue"))
    for key in (look(library, colour), Key(f"{library}, {_EXCEEDED}", colour, "cross", (1, 4)))
]

Status = Literal["done", "exceeded", "failed", "skipped"]


@dataclass(frozen=True)
class SpeedRow:
    """One fit of one library.

    Attributes:
        status: "done"; "exceeded" the time limit; "failed"; "skipped" because a smaller size exceeded it.
        seconds: duration of the fit alone.
        peak_mb: peak memory of the process, including libraries and data.
        before_mb: memory before the fit, including libraries and data.
        reason: reason of a failure.
    """

    library: str
    version: str
    method: str
    n_annotations: int
    n_tasks: int
    n_workers: int
    status: Status
    seconds: float | None = None
    peak_mb: float | None = None
    before_mb: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class Installation:
    """A library and the Python that has it."""

    library: str
    python: str
    version: str

    def has(self, method: str) -> bool:
        """Whether the library has the method."""
        return self.library == OURS or method in CROWD_KIT_CLASSES


_SCRIPT = Path(__file__).parent / "peers" / "one_fit.py"


def find_installation(library: str, python: str) -> Installation | None:
    """The library in this Python, or None if it is not installed there.

    Raises:
        InputError: there is no such Python.
    """
    try:
        answer = subprocess.run(
            [python, str(_SCRIPT), library], capture_output=True, text=True, timeout=60, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise InputError(f"{python}: is not a working Python interpreter ({error})") from None
    version = json.loads(answer)
    return None if version is None else Installation(library, python, version)


def draw_labels(n_annotations: int, path: Path) -> tuple[int, int, int]:
    """Write a crowd of about this many votes as arrays to ``path``; returns its sizes (votes, tasks, workers)."""
    n_tasks = max(n_annotations // VOTES_PER_TASK, 1)
    n_workers = max(50, n_tasks // 100)
    crowd = simulate_crowd(n_tasks, n_workers, votes_per_task=VOTES_PER_TASK, random_state=0)
    np.savez(path, task=crowd.task, worker=crowd.worker, label=crowd.label)
    return crowd.n_annotations, n_tasks, n_workers


def run_one(installation: Installation, method: str, labels: Path, time_limit: float) -> dict[str, Any]:
    """Status and figures of one fit in its own process."""
    command = [installation.python, str(_SCRIPT), installation.library, method, str(labels)]
    try:
        # A folder without our modules, which must not shadow those of the library.
        done = subprocess.run(command, capture_output=True, text=True, timeout=time_limit, cwd=labels.parent)
    except subprocess.TimeoutExpired:
        return {"status": "exceeded"}
    if done.returncode:
        # A process that the system killed gives no reason itself.
        last_line = (done.stderr.strip().splitlines() or [f"ended with code {done.returncode}"])[-1]
        return {"status": "failed", "reason": last_line[:200]}
    return {"status": "done", **json.loads(done.stdout.splitlines()[-1])}


@dataclass(frozen=True)
class SpeedStudy(Experiment):
    """The comparison.

    Attributes:
        installations: libraries, ours first.
        methods: the methods to compare.
        sizes: numbers of annotations.
        time_limit: seconds after which a fit is stopped.

    Raises:
        ParameterError: a size or the time limit is not above 0.
    """

    name = "speed"
    title = "Speed and memory"
    unit = "fits"
    kinds: ClassVar = {"speed": SpeedRow}

    installations: Sequence[Installation]
    methods: Sequence[str] = METHODS
    sizes: Sequence[int] = SIZES
    time_limit: float = TIME_LIMIT

    def __post_init__(self) -> None:
        if not self.sizes or min(self.sizes) < 1 or not self.time_limit > 0:
            raise ParameterError("sizes and the time limit must be above 0")

    def trials(self) -> list[tuple[int, str, Installation]]:
        """Every method of every library that has it, small sizes first."""
        return [
            (size, method, installation)
            for size in sorted(self.sizes)
            for method in self.methods
            for installation in self.installations
            if installation.has(method)
        ]

    def rows(self, n_jobs: int | None = None, report: Report | None = None) -> list[SpeedRow]:
        """One fit after the other, whatever ``n_jobs``; fits that exceeded the limit are skipped at larger sizes."""
        rows: list[SpeedRow] = []
        too_slow: set[tuple[str, str]] = set()
        with tempfile.TemporaryDirectory(prefix="rarevote-speed-") as folder:
            labels, drawn, facts = Path(folder) / "labels.npz", 0, (0, 0, 0)
            for size, method, installation in self.trials():
                if size != drawn:
                    drawn, facts = size, draw_labels(size, labels)
                place = (installation.library, method)
                found = (
                    {"status": "skipped"}
                    if place in too_slow
                    else run_one(installation, method, labels, self.time_limit)
                )
                if found["status"] == "exceeded":
                    too_slow.add(place)
                rows.append(SpeedRow(installation.library, installation.version, method, *facts, **found))
                if report:
                    report(len(rows))
        return rows

    def account(self, rows: Sequence[SpeedRow]) -> Account:
        """Seconds and memory as charts and as a table."""
        return Account(
            findings=findings(rows, self.time_limit),
            charts=_charts(rows, self.time_limit),
            tables=[_table(rows, self.time_limit)],
            settings=[
                f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python "
                f"{platform.python_version()}; "
                + ", ".join(f"{installation.library} {installation.version}" for installation in self.installations)
                + f". Two classes, {VOTES_PER_TASK} votes per task, one worker per 100 tasks (at least 50). Every fit "
                "in a process of its own, one at a time; the clock covers fit alone, after a first fit on a few votes; "
                "ours from integer arrays, the peer's from a data frame of the same integers. Peak memory is that of "
                f"the whole process. Time limit {self.time_limit:g} s for the whole process."
            ],
        )


def marks(rows: Sequence[SpeedRow], value: str, time_limit: float) -> list[Mark]:
    """Seconds or memory by size, a panel per method; the first fit that exceeded the limit is drawn at the limit."""
    found = []
    for row in rows:
        panel, y = method_title(row.method), getattr(row, value)
        if row.status == "done" and y is not None:
            found.append(Mark(panel, row.library, row.n_annotations, y, y, y))
        elif row.status == "exceeded" and value == "seconds":
            series = f"{row.library}, {_EXCEEDED}"
            found.append(Mark(panel, series, row.n_annotations, time_limit, time_limit, time_limit))
    return found


def _decades(title: str, values: Sequence[float], *, format: str) -> Axis:
    """A logarithmic axis with a tick at every power of ten around the values."""
    # A crowd of about a million can have slightly fewer votes: that must not add another decade.
    first, last = floor(log10(min(values)) + 0.01), ceil(log10(max(values)) - 0.01)
    ticks = [10.0**power for power in range(first, max(last, first + 1) + 1)]
    return Axis(title, log=True, ticks=ticks, format=format, domain=(ticks[0], ticks[-1]))


def _charts(rows: Sequence[SpeedRow], time_limit: float) -> list[Chart]:
    x = _decades("annotations", [row.n_annotations for row in rows], format="~s")
    charts = []
    for value, title, unit, number, caption in (
        ("seconds", "Time of a fit", "seconds", "~g", "Both axes are logarithmic: a straight line is a power."),
        ("peak_mb", "Peak memory of the process", "MB", ",", "Libraries and data included."),
    ):
        found = marks(rows, value, time_limit)
        if found:
            y = _decades(unit, [mark.y for mark in found], format=number)
            spec = line_chart(found, title=title, x=x, y=y, keys=_KEYS, columns=4, size=(210, 210))
            charts.append(Chart(f"speed_{value}", title, caption, (), spec))
    return charts


# --------------------------------------------------------------------------------------------------------------------
# results


def _pairs(rows: Sequence[SpeedRow]) -> list[tuple[SpeedRow, SpeedRow | None]]:
    """Our fits, each with the fit of the other library on the same labels if it has the method."""
    peers = {(row.method, row.n_annotations): row for row in rows if row.library != OURS}
    return [(row, peers.get((row.method, row.n_annotations))) for row in rows if row.library == OURS]


def findings(rows: Sequence[SpeedRow], time_limit: float) -> list[str]:
    """For each method, the largest size at which both finished, and the size from which the other library did not."""
    sentences = []
    for method in dict.fromkeys(row.method for row in rows):
        title = method_title(method)
        pairs = [(ours, peer) for ours, peer in _pairs(rows) if ours.method == method and ours.status == "done"]
        both = [(ours, peer) for ours, peer in pairs if peer and peer.status == "done" and peer.seconds]
        if pairs:
            ours, peer = (both or pairs)[-1]
            start = f"{title}, {ours.n_annotations:,} annotations: {_in_words(ours)}"
            if both and peer:
                ratio = _ratio(ours, peer, time_limit)
                sentences.append(f"{start} against {_in_words(peer)} of {peer.library}: {ratio} times as fast.")
            else:
                why = "has no such method" if peer is None else "finished at no size"
                sentences.append(f"{start}; the peer {why}.")
        sentences += [
            f"{row.library}'s {title} exceeded {time_limit:g} s at {row.n_annotations:,} annotations."
            for row in rows
            if row.method == method and row.status == "exceeded"
        ]
    return sentences


def _in_words(row: SpeedRow) -> str:
    return f"{row.seconds:.3g} s and {row.peak_mb:,.0f} MB"


def _ratio(ours: SpeedRow, peer: SpeedRow | None, time_limit: float) -> str:
    if peer is None or not ours.seconds:
        return ABSENT
    if peer.status == "exceeded":
        return f"> {time_limit / ours.seconds:,.0f}"
    return f"{peer.seconds / ours.seconds:,.1f}" if peer.seconds else ABSENT


def _table(rows: Sequence[SpeedRow], time_limit: float) -> StudyTable:
    def seconds(row: SpeedRow | None) -> str:
        if row is None:
            return "has none"
        if row.seconds is not None:
            return f"{row.seconds:.3g}"
        return {"exceeded": f"> {time_limit:g}", "skipped": "not tried"}.get(row.status, row.status)

    def memory(row: SpeedRow | None) -> str:
        return ABSENT if row is None or row.peak_mb is None else f"{row.peak_mb:,.0f}"

    libraries = list(dict.fromkeys(row.library for row in rows if row.library != OURS)) or ["no peer"]
    return StudyTable(
        ["Method", "Annotations", "Seconds", "Peak MB", "Seconds", "Peak MB", "Ratio of seconds"],
        [
            (
                method_title(ours.method),
                f"{ours.n_annotations:,}",
                seconds(ours),
                memory(ours),
                seconds(peer),
                memory(peer),
                _ratio(ours, peer, time_limit),
            )
            for ours, peer in sorted(_pairs(rows), key=lambda pair: (pair[0].method, pair[0].n_annotations))
        ],
        caption="Seconds of a fit and peak memory of its process.",
        groups=[("", 1), (OURS, 2), (libraries[0], 2), ("", 1)],
    )
