"""Compiled code on disk: where it is kept, and that damage to it does no harm."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numba
import numpy as np
import pytest

import rarevote
from rarevote.kernels.compile import kernel

FIT = """
import sys
sys.path.insert(0, {package!r})
import rarevote
assert rarevote.__file__.startswith({package!r}), rarevote.__file__
from rarevote.crowd.annotations import Annotations
from rarevote.kernels import plain
plain.MAX_PLAIN_CELLS = 0
crowd = Annotations.from_arrays([1, 0, 0], [0, 0, 1], ["a", "a", "b"])  # out of order: grouped by compiled code
print(crowd.votes().tolist())
"""


def run_read_only(tmp_path: Path, temporary: str) -> subprocess.CompletedProcess[str]:
    """A copy of the package whose cache folders cannot be made, not even by root: files stand in their places."""
    package = tmp_path / "site"
    ignore = shutil.ignore_patterns("__pycache__", "data", "study")
    shutil.copytree(Path(rarevote.__file__).parent, package / "rarevote", ignore=ignore)
    (package / "rarevote" / "kernels" / "__pycache__").write_text("not a folder")
    home = tmp_path / "home"
    home.write_text("not a folder either")
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("NUMBA", "XDG", "PYTHONPATH", "RARE"))
    }
    environment |= {"HOME": str(home), "TMPDIR": temporary, "PYTHONDONTWRITEBYTECODE": "1", "XDG_CACHE_HOME": str(home)}
    return subprocess.run(
        [sys.executable, "-c", FIT.format(package=str(package))], env=environment, capture_output=True, text=True
    )


def test_works_where_site_packages_and_home_are_read_only(tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    done = run_read_only(tmp_path, str(temporary))
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[[1.0, 1.0], [1.0, 0.0]]"
    (cache,) = temporary.glob("rarevote-kernels-*")
    assert cache.stat().st_mode & 0o077 == 0
    assert list(cache.rglob("*.kernel"))


def twice(x: float) -> float:
    return 2.0 * x


def use(value: float) -> tuple[float, int]:
    """What a process that starts now gets, and how often it found compiled code."""
    fresh = kernel(twice)
    found = fresh(value)
    (compiled,) = fresh.compiled.values()  # type: ignore[attr-defined]
    return found, len(compiled.stats.cache_hits)


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a kernel that was compiled for one signature."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    assert use(3.0) == (6.0, 0)
    assert str(tmp_path) == numba.config.CACHE_DIR
    (path,) = tmp_path.iterdir()  # numba's own folder is gone
    return path


def test_compiled_code_is_found_again(kept: Path) -> None:
    assert use(4.0) == (8.0, 1)
    assert use(4) == (8, 0), "another signature"
    assert use(5) == (10, 1)
    assert use(5.0) == (10.0, 1)


@pytest.mark.parametrize("damage", ["emptied", "cut", "overwritten"])
def test_a_damaged_cache_is_a_miss(damage: str, kept: Path) -> None:
    whole = kept.read_bytes()
    kept.write_bytes({"emptied": b"", "cut": whole[: len(whole) // 2], "overwritten": b"\xff" * len(whole)}[damage])
    assert use(4.0) == (8.0, 0)
    assert kept.stat().st_size > 0.9 * len(whole)  # compiled and written again
    assert use(5.0) == (10.0, 1)


def test_a_record_that_was_renamed_since_is_a_miss(tmp_path: Path) -> None:
    # As after an upgrade: the file of the kernel is the same, that of the record it takes is not.
    (tmp_path / "doubling.py").write_text(
        "from rarevote.kernels.compile import kernel\n\n\n@kernel\ndef double(pair):\n    return 2 * pair.x\n"
    )
    for name in ("Before", "After"):
        (tmp_path / "records.py").write_text(
            f"from collections import namedtuple\n{name} = namedtuple('{name}', 'x')\n"
        )
        code = (
            f"from records import {name}; from doubling import double; print(double({name}(21)), len(double.compiled))"
        )
        done = subprocess.run(
            [sys.executable, "-B", "-c", code],
            cwd=tmp_path,
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kept")},
            capture_output=True,
            text=True,
        )
        assert done.stdout.split() == ["42", "1"], done.stderr
        assert list((tmp_path / "kept").glob("*.kernel"))


def test_no_byte_of_a_cache_may_change(kept: Path) -> None:
    """Machine code with a wrong byte ended the process from within LLVM, for every later command."""
    whole = kept.read_bytes()
    for place in range(len(whole) // 50, len(whole), len(whole) // 25):
        kept.write_bytes(whole[:place] + bytes([whole[place] ^ 16]) + whole[place + 1 :])
        assert use(4.0) == (8.0, 0), place
    assert use(5.0) == (10.0, 1)


def test_processes_that_compile_at_once_do_not_mix_up_signatures(kept: Path) -> None:
    """Each writes the whole file: the last one counts, and what it lacks is compiled and added."""
    of_floats = kept.read_bytes()
    kept.unlink()
    assert use(3) == (6, 0)
    kept.write_bytes(of_floats)
    assert use(3.5) == (7.0, 1)
    assert use(3) == (6, 0)
    assert [use(3.5), use(3)] == [(7.0, 1), (6, 1)]


def test_threads_that_call_at_once_compile_once(kept: Path) -> None:
    shared, found = kernel(twice), []
    threads = [threading.Thread(target=lambda: found.append(shared(2.5))) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert (found, len(shared.compiled)) == ([5.0] * 4, 1)  # type: ignore[attr-defined]


def test_arrays_are_told_apart_by_what_compiled_code_depends_on() -> None:
    @kernel
    def first_of(values: np.ndarray) -> float:
        return float(values[0, 0])

    rows = np.arange(12.0).reshape(3, 4)
    locked = rows.copy()
    locked.flags.writeable = False
    for array in (rows, rows.T, rows[:, ::2], locked, rows.astype(np.float32), rows.astype(np.int64), rows[1:]):
        assert first_of(array) == array[0, 0]
    assert len(first_of.compiled) == 6  # type: ignore[attr-defined]


@pytest.mark.parametrize("step", ["tempfile.TemporaryDirectory", "pathlib.Path.write_bytes"])
def test_a_cache_that_cannot_be_written_is_skipped(step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(step, full)
    assert use(3.0) == (6.0, 0)
    assert not list(tmp_path.rglob("*"))


def test_a_cache_folder_of_somebody_else_is_not_trusted(tmp_path: Path) -> None:
    import getpass

    temporary = tmp_path / "tmp"
    (temporary / f"rarevote-kernels-{getpass.getuser()}").mkdir(parents=True, mode=0o777)
    (temporary / f"rarevote-kernels-{getpass.getuser()}").chmod(0o777)
    done = run_read_only(tmp_path, str(temporary))
    assert done.returncode == 0, done.stderr
    assert not list(temporary.rglob("*.kernel"))
