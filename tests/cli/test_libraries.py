"""What the command line says when a library cannot be loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numba
import pytest

from rarevote.cli.libraries import load_failure

WITHOUT_A_NAME = """
import sys
import numba
del numba.typeof
from rarevote.kernels import plain
plain.MAX_PLAIN_CELLS = -1
from rarevote.cli import run
sys.exit(run(["aggregate", "votes.csv", "-m", "dawid-skene", "-q"]))
"""


def test_a_name_that_a_library_no_longer_has_is_named(tmp_path: Path) -> None:
    (tmp_path / "votes.csv").write_text(
        "task,worker,label\n" + "".join(f"t{i // 3},w{i % 3},{i % 2}\n" for i in range(9))
    )
    done = subprocess.run([sys.executable, "-c", WITHOUT_A_NAME], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert "cannot import name 'typeof' from 'numba'" in done.stderr
    assert f"this rarevote does not work with numba {numba.__version__}" in done.stderr
    assert f'pip install "numba<{numba.__version__}"' in done.stderr
    assert "memory" not in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (ModuleNotFoundError("No module named 'llvmlite.ir'", name="llvmlite.ir"), 'pip install "llvmlite<'),
        (ModuleNotFoundError("No module named 'nonsense'", name="nonsense"), "pip install nonsense"),
        (ImportError("cannot import name 'a' from 'rarevote.b'", name="rarevote.b"), "--force-reinstall rarevote"),
        (ImportError("libx.so: undefined symbol: y", name="numpy.z"), "pip install --force-reinstall numpy"),
        (ImportError("libx.so: failed to map segment", name="numpy.z"), "where memory is limited, allow at least 2 GB"),
        (ImportError("failed to map segment"), "where memory is limited, allow at least 2 GB"),
    ],
)
def test_the_advice_fits_the_failure(error: ImportError, advice: str) -> None:
    assert str(error) in load_failure(error)
    assert advice in load_failure(error)
