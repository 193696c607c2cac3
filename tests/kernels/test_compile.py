"""Compiled code where no cache folder can be written."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import rarevote

FIT = """
import sys
sys.path.insert(0, {package!r})
import rarevote
assert rarevote.__file__.startswith({package!r}), rarevote.__file__
from rarevote.crowd.annotations import Annotations
from rarevote.kernels import plain
plain.MAX_PLAIN_VOTES = 0
crowd = Annotations.from_arrays([0, 0, 1], [0, 1, 0], ["a", "b", "a"])
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


def test_a_cache_folder_of_somebody_else_is_not_trusted(tmp_path: Path) -> None:
    import getpass

    temporary = tmp_path / "tmp"
    (temporary / f"rarevote-kernels-{getpass.getuser()}").mkdir(parents=True, mode=0o777)
    (temporary / f"rarevote-kernels-{getpass.getuser()}").chmod(0o777)
    done = run_read_only(tmp_path, str(temporary))
    assert done.returncode == 0, done.stderr
    assert not list(temporary.rglob("*.nbi"))
