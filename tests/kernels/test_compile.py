"""Compiled code where no cache folder can be written."""

from __future__ import annotations

import errno
import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import rarevote
from rarevote.kernels.compile import _LATEST_KNOWN, kernel

FIT = """
import sys
sys.path.insert(0, {package!r})
import rarevote
assert rarevote.__file__.startswith({package!r}), rarevote.__file__
from rarevote.crowd.annotations import Annotations
from rarevote.kernels import plain
plain.MAX_PLAIN_VOTES = 0
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
    assert list(cache.rglob("*.nbi"))


def twice(x: float) -> float:
    return 2.0 * x


MODULE = """
from math import log
import numpy as np
from rarevote.kernels.compile import kernel

@kernel
def logs(values):
    if values.shape[0] == 0:
        raise ValueError("none")
    found = np.zeros(values.shape[0])
    for i in range(values.shape[0]):
        found[i] = log(values[i])
    return found
"""

USE = """
import json, sys
import numba
import numpy as np
from module import logs
values = logs(np.array([1.0, 2.0])).tolist()
try:
    logs(np.empty(0))
except ValueError as error:
    values.append(str(error))
names = [name for name in ("numba.np.arraymath", "scipy.linalg") if name in sys.modules]
again = numba.njit(lambda x: np.dot(x, x) + logs(x)[0])(np.array([1.0, 2.0]))
print(json.dumps([values, names, len(logs.stats.cache_hits), again]))
"""


@pytest.mark.skipif(
    numba.version_info.short > _LATEST_KNOWN, reason="of a newer numba it is not known: loaded as numba does"
)
def test_what_is_compiled_is_loaded_without_what_compiles(tmp_path: Path) -> None:
    """Arrays, errors and the compiler itself work as ever."""
    (tmp_path / "module.py").write_text(MODULE)
    path = os.pathsep.join([str(tmp_path), str(Path(rarevote.__file__).parents[1])])
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": path}
    first, later = (
        json.loads(subprocess.run([sys.executable, "-c", USE], env=environment, capture_output=True, check=True).stdout)
        for _ in range(2)
    )
    values, again = [0.0, math.log(2.0), "none"], 5.0
    assert first == [values, ["numba.np.arraymath", "scipy.linalg"], 0, again]
    assert later == [values, [], 1, again]


@pytest.mark.parametrize("damage", ["emptied", "cut", "overwritten"])
@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_a_damaged_cache_is_a_miss(ending: str, damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    assert kernel(twice)(3.0) == 6.0
    (path,) = tmp_path.rglob(f"*.{ending}")
    whole = path.read_bytes()
    path.write_bytes({"emptied": b"", "cut": whole[: len(whole) // 2], "overwritten": b"\xff" * len(whole)}[damage])
    assert kernel(twice)(4.0) == 8.0
    assert path.read_bytes()[:1] == whole[:1]
    assert path.stat().st_size > 0.9 * len(whole)  # removed, compiled and written again
    assert kernel(twice)(5.0) == 10.0


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_no_byte_of_a_cache_may_change(ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Machine code with a wrong byte ended the process from within LLVM, for every later command."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    assert kernel(twice)(3.0) == 6.0
    (path,) = tmp_path.rglob(f"*.{ending}")
    whole = path.read_bytes()
    for place in range(len(whole) // 50, len(whole), len(whole) // 25):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 16]) + whole[place + 1 :])
        again = kernel(twice)
        assert again(4.0) == 8.0
        assert not again.stats.cache_hits, place  # type: ignore[attr-defined]
    untouched = kernel(twice)
    assert untouched(5.0) == 10.0
    assert len(untouched.stats.cache_hits) == 1  # type: ignore[attr-defined]


def test_code_for_another_signature_is_a_miss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes that compile at once may give two signatures one file, and the index names but the last."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    first = kernel(twice)
    assert (first(3.0), first(3)) == (6.0, 6.0)
    of_floats, of_integers = sorted(tmp_path.rglob("*.nbc"))
    of_floats.write_bytes(of_integers.read_bytes())
    again = kernel(twice)
    assert (again(3.5), again(3)) == (7.0, 6.0)
    assert len(again.stats.cache_hits) == 1  # type: ignore[attr-defined]


def test_a_cache_that_cannot_be_written_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("numba.core.caching.IndexDataCacheFile.save", full)
    assert kernel(twice)(3.0) == 6.0
    assert not list(tmp_path.rglob("*.nb?"))


def test_a_cache_folder_of_somebody_else_is_not_trusted(tmp_path: Path) -> None:
    import getpass

    temporary = tmp_path / "tmp"
    (temporary / f"rarevote-kernels-{getpass.getuser()}").mkdir(parents=True, mode=0o777)
    (temporary / f"rarevote-kernels-{getpass.getuser()}").chmod(0o777)
    done = run_read_only(tmp_path, str(temporary))
    assert done.returncode == 0, done.stderr
    assert not list(temporary.rglob("*.nbi"))
