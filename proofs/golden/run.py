"""Sections of cases, run in child processes so that a crash takes one case with it."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

from proofs.golden.repeatable import REPOSITORY, normalised, unpacked

SECTIONS = ("commands", "snippets", "bits")
#: hashes of the parts of a case, by name
Parts = dict[str, str]

_AT_ONCE = 2
# A child takes seconds to load the libraries, and the kernels of the fits longer.
_CASES_OF_A_CHILD = {"commands": 16, "snippets": 24, "bits": 96}
_ENVIRONMENT = {
    "COLUMNS": "110", "TERM": "dumb", "NO_COLOR": "1", "TZ": "UTC", "LC_ALL": "C.UTF-8", "PYTHONPATH": str(REPOSITORY),
}  # fmt: skip
_NOT_FOR_CHILDREN = ("RAREVOTE_DATA", "RAREVOTE_CACHE", "RAREVOTE_DEBUG", "PYTHONWARNINGS", "FORCE_COLOR")


def cases_of(section: str) -> list[str]:
    """Names of the cases of a section."""
    return list(import_module(f"proofs.golden.{section}").CASES)


def run_section(section: str, store: Path, names: Iterable[str] | None = None) -> dict[str, Parts]:
    """Run the cases of a section, all if none is named; the parts are kept in ``store`` by hash."""
    chosen = cases_of(section) if names is None else list(names)
    store.mkdir(parents=True, exist_ok=True)
    size = _CASES_OF_A_CHILD[section]
    chunks = [chosen[begin : begin + size] for begin in range(0, len(chosen), size)]
    found: dict[str, Parts] = {}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for one in pool.map(lambda chunk: _in_children(section, store, chunk), chunks):
            found |= one
    return found


def _in_children(section: str, store: Path, names: list[str]) -> dict[str, Parts]:
    """Run cases in a child; where it dies, the case that it died of is marked and another child takes the rest."""
    found: dict[str, Parts] = {}
    while left := [name for name in names if name not in found]:
        with tempfile.TemporaryDirectory(prefix="golden-") as folder:
            words = [sys.executable, "-m", "proofs.golden.child", section, str(store), folder]
            kept = {name: value for name, value in os.environ.items() if name not in _NOT_FOR_CHILDREN}
            environment = {**kept, **_ENVIRONMENT, "RAREVOTE_CACHE": f"{folder}/cache"}
            done = subprocess.run(words, input=json.dumps(left), text=True, env=environment, stdout=subprocess.PIPE)
        for line in done.stdout.splitlines():
            found.update(json.loads(line))
        missing = [name for name in left if name not in found]
        if missing:
            found[missing[0]] = {"crash": keep(f"the process ended with {done.returncode}", store)}
    return found


def run_here(section: str, store: Path, folder: Path, names: Iterable[str], tell: Callable[[str], None]) -> None:
    """Run cases in this process, each in an empty folder; ``tell`` gets a line of JSON for each."""
    from rarevote import __version__

    run: Callable[[str, Path, Path], dict[str, str | bytes]] = import_module(f"proofs.golden.{section}").run
    inputs = folder / "inputs"
    for number, name in enumerate(names):
        scratch = folder / str(number)
        scratch.mkdir()
        parts = run(name, scratch, inputs)
        tell(
            json.dumps(
                {name: {part: keep(_repeatable(one, scratch, __version__), store) for part, one in parts.items()}}
            )
        )


def _repeatable(content: str | bytes, scratch: Path, version: str) -> bytes:
    if isinstance(content, bytes):
        raw = unpacked(content)
        try:
            content = raw.decode("utf-8")
        except UnicodeDecodeError:
            return raw
    return normalised(content, scratch, version).encode("utf-8")


def keep(content: str | bytes, store: Path) -> str:
    """Put a part into the store; returns its hash."""
    content = content.encode("utf-8") if isinstance(content, str) else content
    digest = hashlib.sha256(content).hexdigest()[:40]
    path = store / digest
    if not path.exists():
        path.write_bytes(content)
    return digest
