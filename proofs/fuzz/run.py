"""Executions: the number of one determines its file, so that any range can be run again, anywhere and in any order."""

from __future__ import annotations

import faulthandler
import json
import os
import random
import resource
import signal
import struct
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from proofs.fuzz.doors import Door, House
from proofs.fuzz.mutate import altered
from proofs.fuzz.oracles import WrongAnswerError
from rarevote.errors import RarevoteError

SECONDS_PER_FILE = 10  # of the processor: a busy machine is no finding
_SECONDS_WAITED = 120  # for what waits and does nothing
#: What a door may need beyond the size of the file.
MAX_MEMORY = 1 << 30
#: Longer messages help nobody.
MAX_MESSAGE = 2_000
OUTCOMES = ("read", "refused", "refused at length", "wrong", "foreign")
# A run must not take the machine down with it.
_MAX_ADDRESSES = 16 << 30
_PROGRESS = struct.Struct(f"<{2 + len(OUTCOMES)}q")


def outcomes(door: Door, seed: int, numbers: range, folder: Path, keep: Path) -> Iterator[tuple[int, str]]:
    """Hand altered files in; yields the number of each and what came out.

    Args:
        door: where to.
        seed: of the campaign.
        numbers: of the executions.
        folder: where the files are written.
        keep: where those that are findings stay, with what was raised.
    """
    for number in numbers:
        draw = random.Random(f"{seed} {door.name} {number}")
        ending, content = draw.choice(door.seeds)
        path = folder / f"{door.name}{ending}"
        path.write_bytes(altered(content, f".{ending.rpartition('.')[2]}", draw))
        # A signal that nobody handles ends the process: neither a loop in a library nor a lock is ever left otherwise.
        signal.setitimer(signal.ITIMER_PROF, SECONDS_PER_FILE)
        faulthandler.dump_traceback_later(_SECONDS_WAITED, exit=True)
        try:
            found = outcome(door, path, keep, str(number))
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            faulthandler.cancel_dump_traceback_later()
        yield number, found


def outcome(door: Door, path: Path, keep: Path, mark: str = "") -> str:
    """Hand one file in."""
    try:
        door.enter(path)
        return "read"
    except RarevoteError as error:
        if len(str(error)) < MAX_MESSAGE:
            return "refused"
        trace, kind = traceback.format_exc(), "refused at length"
    except WrongAnswerError:
        trace, kind = traceback.format_exc(), "wrong"
    except Exception:
        trace, kind = traceback.format_exc(), "foreign"
    raised = trace.rstrip().rpartition("\n")[2].partition(":")[0].rpartition(".")[2]
    name = f"{kind.replace(' ', '-')}-{door.name}-{raised[:40]}-{mark}"
    (keep / f"{name}{path.suffix}").write_bytes(path.read_bytes())
    (keep / f"{name}.txt").write_text(trace[-6000:], encoding="utf-8", errors="replace")
    return kind


def run_child(name: str, seed: int, numbers: range, keep: Path, progress: Path) -> None:
    """Run a range, and after each execution leave in a file how far it got: the process may end at any moment."""
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_ADDRESSES, _MAX_ADDRESSES))
    counts: Counter[str] = Counter()
    memory = 0
    with (
        tempfile.TemporaryDirectory(dir=_ram()) as folder,
        House(Path(folder)) as house,
        progress.open("wb", buffering=0) as handle,
    ):
        tempfile.tempdir = folder  # of the readers, too: a disk would take more time than they do
        door = house.door(name)
        before, peak = _resident(), _peak()
        for number, kind in outcomes(door, seed, numbers, Path(folder), keep):
            counts[kind] += 1
            reached = _peak()
            if reached > peak:
                peak, taken = reached, reached - before
                memory = max(memory, taken)
                if taken > MAX_MEMORY:
                    counts["memory"] += 1
                    (keep / f"memory-{name}-{number}.txt").write_text(f"{taken:,} bytes\n")
            before = _resident()
            handle.seek(0)
            handle.write(_PROGRESS.pack(number, *(counts[kind] for kind in OUTCOMES), memory))
    print(json.dumps({"memory findings": counts["memory"]}))


def read_progress(path: Path) -> tuple[int, dict[str, int], int] | None:
    """The last number, the counts and the memory that a child left; None if it did not get to the first execution."""
    content = path.read_bytes() if path.exists() else b""
    if len(content) < _PROGRESS.size:
        return None
    number, *counts, memory = _PROGRESS.unpack(content)
    return number, dict(zip(OUTCOMES, counts, strict=True)), memory


def _ram() -> str | None:
    """A folder in memory, where there is one."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _resident() -> int:
    return int(Path("/proc/self/statm").read_bytes().split()[1]) * resource.getpagesize()


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
