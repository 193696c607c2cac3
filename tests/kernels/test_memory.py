"""What this process may take: machine, container and ``ulimit -v``, each told by files and limits of our making."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from rarevote.errors import NotEnoughMemoryError
from rarevote.kernels import memory
from rarevote.kernels.blocks import empty_mapped
from rarevote.simulate.files import example_files


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(memory, "_PROC", tmp_path)
    monkeypatch.setattr(memory, "_CGROUP", tmp_path)
    (tmp_path / "meminfo").write_text("MemTotal: 9000 kB\nMemAvailable: 5000 kB\nSwapFree: 1000 kB\n")
    return tmp_path


def test_the_least_of_machine_and_container_counts(machine: Path) -> None:
    assert memory.available_memory() == 6000 * 1024
    (machine / "memory.max").write_text("max\n")
    (machine / "memory.current").write_text("3000000\n")
    (machine / "memory.stat").write_text("anon 2000000\ninactive_file 500000\n")
    assert memory.available_memory() == 6000 * 1024
    (machine / "memory.max").write_text("4000000\n")
    assert memory.available_memory() == 4_000_000 - 3_000_000 + 500_000


def test_a_machine_that_tells_nothing_is_believed_to_have_what_it_has(tmp_path: Path, machine: Path) -> None:
    (machine / "meminfo").write_text("nonsense")
    assert memory.available_memory() == memory.physical_memory()
    assert memory.physical_memory() > 1 << 28


def under_limit(kilobytes: int, *command: str) -> subprocess.CompletedProcess[str]:
    limited = f"ulimit -v {kilobytes} && exec " + " ".join(f"'{word}'" for word in (sys.executable, *command))
    return subprocess.run(["sh", "-c", limited], capture_output=True, text=True, check=False)


@pytest.mark.skipif(sys.platform != "linux", reason="ulimit -v is Linux's")
@pytest.mark.parametrize(
    ("kilobytes", "verb", "name", "what"),
    [
        (500_000, "aggregate", "result.csv", "reading and writing tables (DuckDB)"),
        pytest.param(4_000_000, "report", "page.html", "drawing charts (V8)", marks=pytest.mark.prove),
    ],
)
def test_libraries_that_would_end_the_process_are_not_started(
    tmp_path: Path, kilobytes: int, verb: str, name: str, what: str
) -> None:
    out = tmp_path / name
    done = under_limit(kilobytes, "-m", "rarevote", verb, str(example_files().labels), "-q", "--out", str(out))
    assert done.returncode == 1, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"rarevote: error: {what} needs ")
    assert "of address space, and ulimit -v leaves " in line
    assert not out.exists()


def test_without_a_limit_nothing_is_refused() -> None:
    if memory.address_space_left() is None:
        memory.require_address_space(1 << 60, "nothing")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "address_space_left", lambda: 10)
        with pytest.raises(
            NotEnoughMemoryError, match=r"it needs 2\.00 GB of address space, and ulimit -v leaves 0\.0"
        ):
            memory.require_address_space(2 * 10**9, "it")


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_mapped_arrays_are_given_back() -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

    before = resident()
    made = [empty_mapped(1 << 20, np.uint32) for _ in range(32)]
    for number, array in enumerate(made):
        array[:] = number
    assert [int(array.sum()) >> 20 for array in made] == list(range(32))
    assert resident() - before > 100 << 20
    del made, array
    assert resident() - before < 32 << 20
    assert empty_mapped(0, np.uint8).shape == (0,)
