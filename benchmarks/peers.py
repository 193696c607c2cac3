"""crowd-kit as users have it: in a Python of its own, timed on the same file."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

_TIMED = """
import sys, time, warnings
warnings.filterwarnings("ignore")
import pandas as pd
from crowdkit import aggregation
frame = pd.read_csv(sys.argv[2], dtype=str, keep_default_na=False)
begin = time.perf_counter()
getattr(aggregation, sys.argv[1])().fit(frame)
print(time.perf_counter() - begin)
"""


def crowdkit_python(folder: Path) -> str:
    """A new environment with crowd-kit from the package index; returns its Python."""
    print("installing crowd-kit ...", flush=True)
    venv.create(folder / "peer", with_pip=True)
    python = folder / "peer" / ("Scripts" if os.name == "nt" else "bin") / "python"
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", "crowd-kit"], check=True, stdout=sys.stderr)
    return str(python)


def crowdkit_seconds(python: str, method: str, labels: str) -> float:
    """Seconds that crowd-kit's ``method`` takes to fit a CSV that is already in memory."""
    shown = subprocess.run([python, "-c", _TIMED, method, labels], check=True, capture_output=True, text=True)
    return float(shown.stdout.split()[-1])
