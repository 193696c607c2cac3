"""Every verb that writes, killed, without room, without rights, twice at once and with a wrong clock.

Each try begins with a folder in which an earlier run left its output. After it

- every visible file must be that of the earlier run or that of an undisturbed one (*half-visible* if not: torn, a
  stranger, or of two runs where files are read together), and none may be gone (*lost*; of files that are read together
  the old ones go before the first new one comes);
- the same command, run again, must succeed and leave exactly what an undisturbed run leaves (*wrong*);
- nobody may have seen a trace or an exception that is not ours (*foreign*);
- what a kill left is hidden, and gone after the next run of a day later (*left*).

Kills are SIGKILL, half at a random moment of the run, half right before a random operation on files. The disk is full
after a random number of bytes: by a limit on files, and on a file system of that size where one may be mounted. Killed
workers and drivers of dask clusters are in ``proofs.kills``, the workbench in ``proofs.workbench``.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from proofs import sources
from proofs.battery import Job, Proof, Row
from proofs.fault_cache import FAULTS as CACHE_FAULTS
from proofs.fault_cache import CacheTries
from proofs.fault_process import Ended, Fault, Running, run
from proofs.fault_verbs import VERBS, HalfError, Verb, leftovers

DAY = 24 * 3600.0


@dataclass
class Count:
    """What went wrong, over all tries of a verb and a fault."""

    tries: int = 0
    lost: int = 0
    half: int = 0
    wrong: int = 0
    foreign: int = 0
    left: int = 0

    @property
    def holds(self) -> bool:
        return not self.lost + self.half + self.wrong + self.foreign + self.left


class Bench:
    """A verb with its folder as it was before, and what is visible before and after an undisturbed run."""

    def __init__(self, verb: Verb, place: Path, dice: random.Random) -> None:
        self.verb, self.place, self.dice = verb, place, dice
        self.template = place / "template"
        verb.prepare(self.template)
        self.old = verb.seen(self.template)
        with self.folder() as folder:
            self.calm = run(folder, verb.command)
            self.new = verb.seen(folder)
            if self.calm.code or leftovers(folder):
                raise RuntimeError(f"{verb.name}: {self.calm.said} {leftovers(folder)}")

    @contextlib.contextmanager
    def folder(self, mount: int | None = None) -> Iterator[Path]:
        """A copy of what was there before; with ``mount`` on a file system with room for so many bytes more."""
        folder = Path(tempfile.mkdtemp(dir=self.place))
        folder.chmod(0o755)
        if mount is not None:
            used = sum((path.stat().st_size // 4096 + 2) * 4096 for path in self.template.rglob("*"))
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={used + mount}", "tmpfs", folder], check=True)
        try:
            shutil.copytree(self.template, folder, dirs_exist_ok=True)
            yield folder
        finally:
            if mount is not None:
                subprocess.run(["umount", "--lazy", folder], check=True)
            shutil.rmtree(folder)

    def look(self, folder: Path, count: Count) -> dict[str, Any] | None:
        """Compare what is visible with what was and what will be there."""
        try:
            now = self.verb.seen(folder)
        except HalfError as error:
            self._tell(str(error))
            count.half += 1
            return None
        strange = [name for name in now if now[name] not in (self.old.get(name, now), self.new.get(name, now))]
        if strange or self.verb.mixed(now, self.old, self.new):
            self._tell(f"half: {strange or sorted(now)}")
            count.half += 1
        if gone := self.verb.missing(now, self.old):
            self._tell(f"lost: {gone}")
            count.lost += 1
        return now

    def go_on(self, folder: Path, count: Count) -> None:
        """Run the command again; it must leave what an undisturbed one leaves."""
        command = self.verb.command
        if self.verb.resumed_by is not None and (folder / self.verb.resumed_by[0]).exists():
            command = self.verb.resumed_by[1]
        ended = run(folder, command)
        self.ended(ended, count)
        now = self.look(folder, count)
        if ended.code or now != self.new:
            self._tell(f"wrong: {ended.code} {ended.said}")
            count.wrong += 1

    def ended(self, ended: Ended, count: Count) -> None:
        """Note whether something foreign came through."""
        if ended.foreign:
            self._tell(f"foreign: {ended}")
            count.foreign += 1

    def cleaned(self, folder: Path, count: Count) -> None:
        if left := leftovers(folder):
            self._tell(f"left: {left}")
            count.left += 1

    def _tell(self, what: str) -> None:
        print(f"    {self.verb.name}: {what}", flush=True)


# --------------------------------------------------------------------------------------------------------------------
# the faults


def kill(bench: Bench, count: Count, *, at_operation: bool) -> None:
    """SIGKILL at a random moment, or right before a random operation on files."""
    if at_operation:
        fault = Fault(at_operation=bench.dice.randint(1, bench.calm.operations))
    else:
        fault = Fault(after=bench.dice.uniform(0.0, bench.calm.seconds))
    with bench.folder() as folder:
        ended = run(folder, bench.verb.command, fault)
        bench.ended(ended, count)
        if ended.code != -signal.SIGKILL:
            return  # it was faster this time: no try
        count.tries += 1
        bench.look(folder, count)
        yesterday = time.time() - 2 * DAY
        for path in leftovers(folder):
            os.utime(path, (yesterday, yesterday), follow_symlinks=False)
        bench.go_on(folder, count)
        bench.cleaned(folder, count)


def full_disk(bench: Bench, count: Count, *, mounted: bool) -> None:
    """Room for a random number of bytes: an error in one line, and what was there stays."""
    size = sum(path.stat().st_size for path in bench.template.rglob("*") if path.is_file())
    n_bytes = bench.dice.randint(0, size if mounted else max(size // 4, 2000))
    with bench.folder(n_bytes if mounted else None) as folder:
        ended = run(folder, bench.verb.command, Fault(file_bytes=None if mounted else n_bytes))
        _refused_or_done(bench, folder, ended, count)


def no_rights(bench: Bench, count: Count) -> None:
    """A folder that may not be written to; root may write anywhere, but not on what is mounted to be read."""
    with bench.folder() as folder:
        out = folder / "out"
        is_root = os.getuid() == 0
        if is_root:
            subprocess.run(["mount", "--bind", out, out], check=True)
            subprocess.run(["mount", "-o", "remount,bind,ro", out], check=True)
        else:
            for path in (out, *out.rglob("*")):
                path.chmod(0o555 if path.is_dir() else 0o444)
        try:
            ended = run(folder, bench.verb.command)
        finally:
            if is_root:
                subprocess.run(["umount", "--lazy", out], check=True)
            else:
                for path in (out, *out.rglob("*")):
                    path.chmod(0o755)
        _refused_or_done(bench, folder, ended, count)
        if not ended.refused:
            print(f"    {bench.verb.name}: wrong: {ended}", flush=True)
            count.wrong += 1


def _refused_or_done(bench: Bench, folder: Path, ended: Ended, count: Count) -> None:
    count.tries += 1
    bench.ended(ended, count)
    now = bench.look(folder, count)
    if (ended.code == 0 and now != bench.new) or (ended.code and not ended.refused):
        print(f"    {bench.verb.name}: wrong: {ended.code} {ended.said}", flush=True)
        count.wrong += 1
    if (folder / "kept").exists():
        shutil.rmtree(folder / "kept")  # a checkpoint is for whoever comes back with more room
    bench.cleaned(folder, count)


def two_at_once(bench: Bench, count: Count) -> None:
    """The same command twice at the same time: both succeed, or one says that the other is at work."""
    with bench.folder() as folder:
        both = [Running(folder, bench.verb.command) for _ in range(2)]
        ended = [one.end() for one in both]
        count.tries += 1
        for one in ended:
            bench.ended(one, count)
        if any(one.code and not one.refused for one in ended) or all(one.code for one in ended):
            print(f"    {bench.verb.name}: wrong: {ended}", flush=True)
            count.wrong += 1
        if bench.look(folder, count) != bench.new:
            count.wrong += 1
        bench.cleaned(folder, count)


def clock_back(bench: Bench, count: Count) -> None:
    """The clock is set back between two runs: what is in the future is left alone, and nothing else changes."""
    with bench.folder() as folder:
        others = folder / "out" / ".other.rarevote-01234567.csv"
        others.write_text("somebody is writing this")
        ended = run(folder, bench.verb.command, Fault(clock=-bench.dice.uniform(1, 30) * DAY))
        count.tries += 1
        bench.ended(ended, count)
        if ended.code or bench.look(folder, count) != bench.new or not others.exists():
            print(f"    {bench.verb.name}: wrong: {ended}", flush=True)
            count.wrong += 1
        others.unlink(missing_ok=True)
        bench.cleaned(folder, count)


Strike = Callable[[Bench, Count], None]
#: By name: what is done, and how often for a tenth of the tries.
FAULTS: dict[str, tuple[Strike, float]] = {
    "killed at a random moment": (lambda bench, count: kill(bench, count, at_operation=False), 1.0),
    "killed before an operation on files": (lambda bench, count: kill(bench, count, at_operation=True), 1.0),
    "a file cannot grow": (lambda bench, count: full_disk(bench, count, mounted=False), 0.4),
    "disk full": (lambda bench, count: full_disk(bench, count, mounted=True), 0.4),
    "no right to write": (no_rights, 0.1),
    "two at once": (two_at_once, 0.2),
    "clock set back": (clock_back, 0.2),
}


def may_mount() -> bool:
    """Whether this process may mount a file system of a chosen size."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], capture_output=True)
        if done.returncode == 0:
            subprocess.run(["umount", folder], check=True)
    return done.returncode == 0


def struck(verb: Verb, faults: dict[str, tuple[Strike, float]], tries: int, seed: int) -> Iterator[dict[str, Any]]:
    """Rows of the table for one verb."""
    with tempfile.TemporaryDirectory(prefix="rarevote-faults-") as name:
        Path(name).chmod(0o755)
        bench = Bench(verb, Path(name), random.Random(f"{verb.name} {seed}"))
        for fault, (strike, share) in faults.items():
            count, wanted, attempts = Count(), max(1, round(tries * share)), 0
            while count.tries < wanted and attempts < 3 * wanted:
                strike(bench, count)
                attempts += 1
            yield _row(verb.name, fault, count)


# --------------------------------------------------------------------------------------------------------------------
# the cache of compiled loops, which processes share

CACHE = "compiled loops (cache)"


def shared_cache(chosen: Callable[[str], bool], tries: int, dice: random.Random) -> Iterator[dict[str, Any]]:
    """Rows of the table for the cache."""
    with tempfile.TemporaryDirectory(prefix="rarevote-cache-") as name:
        cache = CacheTries(Path(name), dice)
        for fault, (strike, mounts, share) in CACHE_FAULTS.items():
            if not chosen(fault) or (mounts and not may_mount()):
                continue
            count, wanted = Count(), max(1, round(tries * share))
            while count.tries < wanted:
                tried, wrong, foreign = strike(cache)
                count.tries, count.wrong, count.foreign = (
                    count.tries + tried,
                    count.wrong + wrong,
                    count.foreign + foreign,
                )
            yield _row(CACHE, fault, count)


def _row(verb: str, fault: str, count: Count) -> dict[str, Any]:
    row = asdict(count)
    row["half-visible"] = row.pop("half")
    columns = ("tries", "lost", "half-visible", "wrong", "foreign", "left")
    return {"verb": verb, "fault": fault, **{column: row[column] for column in columns}}


def _possible(fault: str) -> bool:
    """Whether this machine allows the fault: some need a file system to be mounted."""
    unable = () if may_mount() else ("disk full", "no right to write") if os.getuid() == 0 else ("disk full",)
    return fault not in unable


def run_job(job: Job) -> list[Row]:
    """All faults of a verb, or of the cache."""
    if job.row == CACHE:
        return list(shared_cache(_possible, job.size, random.Random(_SEED)))
    (verb,) = [verb for verb in VERBS if verb.name == job.row]
    return list(struck(verb, {name: one for name, one in FAULTS.items() if _possible(name)}, job.size, _SEED))


_SEED, _TRIES = 1, 5
_FOUND = ("lost", "half-visible", "wrong", "foreign", "left")
PROOF = Proof(
    "faults",
    jobs=lambda scale: [
        Job("faults", name, 0, max(1, round(_TRIES * scale))) for name in (*(verb.name for verb in VERBS), CACHE)
    ],
    sources=lambda row: (
        *sources.FITTING, "src/rarevote/cli", "src/rarevote/methods/cc_rasch", "proofs/fault*.py",
        *_EXERCISED.get(row, ()),
    ),
    run=run_job,
    rows=lambda _, results: list(results[0]),
    findings=lambda row: sum(int(row[column]) for column in _FOUND),
    row_of=lambda row: row["verb"],
)  # fmt: skip
# Beyond what every verb exercises.
_AUDIT = (*sources.AUDIT, "src/rarevote/decide")
_EXERCISED: dict[str, tuple[str, ...]] = {
    "report": ("src/rarevote/page", "src/rarevote/charts", "src/rarevote/diagnose"),
    "compare": ("src/rarevote/scoring",), "plan": ("src/rarevote/diagnose",),
    "simulate": ("src/rarevote/simulate",), "study": ("src/rarevote/study",), "datasets": ("src/rarevote/study",),
    "audit start": _AUDIT, "audit continue": _AUDIT, "audit finish": _AUDIT, "dask": ("src/rarevote/cluster",),
    "convert": ("src/rarevote/io",),
}  # fmt: skip
