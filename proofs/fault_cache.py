"""The cache of compiled loops: two processes that fill it, one killed meanwhile, damage, no room, no rights.

Each try is the command line in a new process that compiles whatever it runs. Whatever happens to the cache, the result
must be that of a run with a cache of its own.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from proofs.fault_verbs import write_inputs

_COMMAND = "aggregate votes.csv -m dawid-skene --set n_iter=5 -q --out result.csv"
_SCRIPT = f"""
import sys
from rarevote.kernels import plain
plain.MAX_PLAIN_CELLS = -1
from rarevote.__main__ import main
sys.argv[1:] = {_COMMAND.split()!r}
main()
"""


class CacheTries:
    """A command that compiles, and what it gives undisturbed."""

    def __init__(self, place: Path, dice: random.Random) -> None:
        self.place, self.dice = place, dice
        write_inputs(place, seed=1)
        self.filled = place / "filled"
        begin = time.perf_counter()
        said = self.start(self.filled).communicate()[1]
        self.seconds = time.perf_counter() - begin
        self.right = self.result()
        self.files = sorted(path for path in self.filled.rglob("*") if path.is_file())
        self.size = sum(path.stat().st_size for path in self.files)
        if not self.right or not self.files:
            raise RuntimeError(f"nothing was compiled or written: {said}")

    def start(self, cache: Path) -> subprocess.Popen[str]:
        """The command, with this cache."""
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "TMPDIR": str(self.place)}
        words = [sys.executable, "-c", _SCRIPT]
        pipe = subprocess.PIPE
        return subprocess.Popen(words, cwd=self.place, env=environment, stdout=pipe, stderr=pipe, text=True)

    def result(self) -> bytes:
        """What the last run wrote; it is removed."""
        path = self.place / "result.csv"
        content = path.read_bytes() if path.exists() else b""
        path.unlink(missing_ok=True)
        return content

    def ended(self, *processes: subprocess.Popen[str]) -> tuple[bool, bool]:
        """Whether the result is wrong, and whether anything foreign was said."""
        said = [one.communicate()[1] for one in processes]
        wrong = self.result() != self.right or any(one.returncode for one in processes)
        foreign = any("Traceback" in text or "fault of rarevote" in text for text in said)
        if wrong or foreign:
            print(f"    cache: {said}", flush=True)
        return wrong, foreign

    @contextlib.contextmanager
    def cache(self, *, filled: bool = False, room: int | None = None, writable: bool = True) -> Iterator[Path]:
        """A folder for a cache: empty or filled, with so much room, perhaps only to be read."""
        folder = Path(tempfile.mkdtemp(dir=self.place))
        if room is not None:
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={max(room, 4096)}", "tmpfs", folder], check=True)
        if filled:
            shutil.copytree(self.filled, folder, dirs_exist_ok=True)
        if not writable:
            subprocess.run(["mount", "--bind", folder, folder], check=True)
            subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)
        try:
            yield folder
        finally:
            if room is not None or not writable:
                subprocess.run(["umount", "--lazy", folder], check=True)
            shutil.rmtree(folder)

    # -- the faults --------------------------------------------------------------------------------------------------

    def two_at_once(self) -> tuple[int, bool, bool]:
        """Two processes with one cache and one output, and a third that finds what they left."""
        with self.cache() as cache:
            first = self.ended(self.start(cache), self.start(cache))
            second = self.ended(self.start(cache))
        return 1, first[0] or second[0], first[1] or second[1]

    def killed(self) -> tuple[int, bool, bool]:
        """Three that are killed while they compile, and one that finds what they left."""
        with self.cache() as cache:
            kills = 0
            for _ in range(3):
                one = self.start(cache)
                time.sleep(self.dice.uniform(0.2, 1.0) * self.seconds)
                one.kill()
                kills += one.wait() == -signal.SIGKILL
                one.communicate()
            return kills, *self.ended(self.start(cache))

    def damaged(self) -> tuple[int, bool, bool]:
        """Files that are cut, emptied or overwritten, before a run and while it goes on."""
        with self.cache(filled=True) as cache:
            self._damage(cache)
            stop = threading.Event()

            def go_on() -> None:
                while not stop.wait(self.seconds / 10):
                    self._damage(cache)

            other = threading.Thread(target=go_on)
            other.start()
            first = self.ended(self.start(cache))
            stop.set()
            other.join()
            second = self.ended(self.start(cache))
        return 1, first[0] or second[0], first[1] or second[1]

    def _damage(self, cache: Path) -> None:
        for path in sorted(cache.rglob("*.kernel")):
            with contextlib.suppress(OSError):
                content = bytearray(path.read_bytes())
                place = self.dice.randrange(len(content) + 1)
                kind = self.dice.randrange(4)
                if kind == 0:
                    del content[place:]
                elif kind == 1:
                    content[place : place + 200] = self.dice.randbytes(200)
                elif kind == 2:
                    content[:] = b"\0" * len(content)
                # Replaced as a whole: machine code that changes while it is being loaded is beyond any reader.
                other = path.with_suffix(".damaged")
                other.write_bytes(content)
                other.replace(path)

    def full(self) -> tuple[int, bool, bool]:
        """A file system on which a part of the cache finds room."""
        with self.cache(room=self.dice.randrange(self.size)) as cache:
            first = self.ended(self.start(cache))
            second = self.ended(self.start(cache))
        return 1, first[0] or second[0], first[1] or second[1]

    def no_rights(self) -> tuple[int, bool, bool]:
        """A cache that may only be read, filled or empty."""
        with self.cache(filled=self.dice.random() < 0.5, writable=False) as cache:
            return 1, *self.ended(self.start(cache))


Strike = Callable[[CacheTries], tuple[int, bool, bool]]
#: By name; those that need a mount, and how many of ten tries.
FAULTS: dict[str, tuple[Strike, bool, float]] = {
    "killed at a random moment": (CacheTries.killed, False, 1.0),
    "disk full": (CacheTries.full, True, 0.4),
    "no right to write": (CacheTries.no_rights, True, 0.2),
    "two at once": (CacheTries.two_at_once, False, 0.3),
    "damaged": (CacheTries.damaged, False, 0.5),
}
