"""The command line in a forked copy of this process, where faults happen to it: a kill, a limit, another clock.

Whoever forks has imported the package already, so that a command takes what it does and not a second more. Nothing was
run in it: a fork with threads of DuckDB or numba inside would be none that a user has.
"""

from __future__ import annotations

import atexit
import contextlib
import datetime
import os
import resource
import shlex
import signal
import sys
import tempfile
import time
import traceback
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import rarevote.cli
import rarevote.page.report
import rarevote.study.paper
from rarevote.__main__ import main

# What is imported on use, imported here once for all forks.
for _name in ("altair", "duckdb", "jinja2", "narwhals", "openpyxl", "pyarrow.dataset", "pyarrow.parquet", "vl_convert"):
    import_module(_name)
for _name in (
    "api", "io.read.crowd", "decide.sampled", "decide.sampler", "methods.cc_rasch.estimator",
    "methods.majority", "result",
):  # fmt: skip
    import_module(f"rarevote.{_name}")
with contextlib.suppress(ImportError):
    import_module("pydantic")  # which others load if it is there
for verb in rarevote.cli.VERBS:  # which are loaded on use, too
    import_module(f"rarevote.cli.{verb}")

_OPERATIONS = ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate", "os.chmod", "os.link")
_RELATIVE = ("out", "kept", ".")  # as our commands name files


@dataclass(frozen=True)
class Fault:
    """What happens to a process.

    Attributes:
        after: killed so many seconds after its start.
        at_operation: killed right before its so many-th operation on files.
        file_bytes: no file may become longer, as on a disk with so much room.
        clock: seconds by which its clock is wrong.
    """

    after: float | None = None
    at_operation: int | None = None
    file_bytes: int | None = None
    clock: float = 0.0


@dataclass(frozen=True)
class Ended:
    """How a process ended: its exit code (negative for a signal), what it said, how long and how busy it was."""

    code: int
    said: str
    seconds: float
    operations: int

    @property
    def foreign(self) -> bool:
        """Whether something came through that is not ours: a trace, an exception without a message of ours, a crash."""
        crashed = self.code < 0 and self.code != -signal.SIGKILL
        return crashed or "Traceback" in self.said or "fault of rarevote" in self.said

    @property
    def refused(self) -> bool:
        """Whether it said in one line why it does not do it."""
        return self.code == 1 and self.said.count("\n") == 1 and self.said.startswith("rarevote: error: ")


class Running:
    """A command in a process of its own, started by a fork, in a folder of its own."""

    def __init__(self, folder: Path, what: str | Callable[[Path], Any], fault: Fault | None = None) -> None:
        self.fault = fault or Fault()
        read, write = os.pipe()
        counted, counting = os.pipe()
        sys.stdout.flush()
        self._begin = time.perf_counter()
        self.pid = os.fork()
        if not self.pid:
            os.close(read)
            os.close(counted)
            _be_the_command(folder, what, self.fault, write, counting)
        os.close(write)
        os.close(counting)
        self._said, self._counted = read, counted

    def end(self) -> Ended:
        """Wait for it, killing it on the way if that is its fault."""
        if self.fault.after is not None:
            time.sleep(max(0.0, self._begin + self.fault.after - time.perf_counter()))
            os.kill(self.pid, signal.SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        seconds = time.perf_counter() - self._begin
        said = _waiting(self._said).decode("utf-8", "replace")
        operations = int(_waiting(self._counted) or b"0")
        return Ended(os.waitstatus_to_exitcode(status), said, seconds, operations)


def run(folder: Path, what: str | Callable[[Path], Any], fault: Fault | None = None) -> Ended:
    """Run a command line (or a function of the folder) there, with a fault."""
    return Running(folder, what, fault).end()


def _waiting(pipe: int) -> bytes:
    """What is in a pipe; nobody waits for others who may still hold its other end."""
    os.set_blocking(pipe, False)
    try:
        return os.read(pipe, 1 << 16)
    except BlockingIOError:
        return b""
    finally:
        os.close(pipe)


def _be_the_command(folder: Path, what: str | Callable[[Path], Any], fault: Fault, said: int, counting: int) -> None:
    """Never returns: this is the forked process."""
    code, n_operations = 70, [0]
    try:
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream, target in ((nothing, 0), (nothing, 1), (said, 2)):
            os.dup2(stream, target)
        # Whatever captured the streams of the process that forked has no part in this one.
        sys.stdin, sys.stdout, sys.stderr = (os.fdopen(number, mode) for number, mode in enumerate(("r", "w", "w")))
        os.chdir(folder)
        os.environ |= {"TMPDIR": str(folder / "tmp"), "NO_COLOR": "1", "HOME": str(folder / "tmp")}
        tempfile.tempdir = None
        # Folders of the process that forked are its own to remove.
        atexit._clear()
        weakref.finalize._registry.clear()  # type: ignore[attr-defined]
        weakref.finalize._registered_with_atexit = False  # type: ignore[attr-defined]
        _suffer(folder, fault, n_operations)
        if isinstance(what, str):
            sys.argv = ["rarevote", *shlex.split(what)]
            main()
        else:
            what(folder)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()
        sys.stderr.flush()
        os.write(counting, str(n_operations[0]).encode())
        os._exit(code)


def _suffer(folder: Path, fault: Fault, n_operations: list[int]) -> None:
    place = str(folder)

    def watch(event: str, arguments: Sequence[Any]) -> None:
        if event not in _OPERATIONS:
            return
        if not str(arguments[0]).startswith((place, *_RELATIVE)):
            return  # such as what Python imports
        n_operations[0] += 1
        if n_operations[0] == fault.at_operation:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)
    if fault.file_bytes is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (fault.file_bytes, fault.file_bytes))
    if fault.clock:
        _set_clock(fault.clock)


def _set_clock(seconds: float) -> None:
    """Move the clock of this process: that of the machine belongs to others."""
    right = time.time

    class Moved(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Moved:
            return cls.fromtimestamp(right() + seconds, tz)

    time.time = lambda: right() + seconds
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("rarevote") and getattr(module, "datetime", None) is not None:
            held = vars(module)["datetime"]
            if held is datetime.datetime:
                module.datetime = Moved  # type: ignore[attr-defined]
    datetime.datetime = Moved  # type: ignore[misc]
