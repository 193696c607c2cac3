"""Kills, full disks and wrong clocks, a few of each; ``proofs.faults`` does hundreds.

In processes of their own: what is struck is a fork, and this process has threads.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]

# A verb that writes where others read, as no verb of ours does.
CARELESS = """
import time
from proofs import faults
from proofs.fault_verbs import Verb

def careless(folder):
    with (folder / "out" / "r.csv").open("w") as file:
        for number in range(100):
            file.write(f"{number},{(folder / 'votes.csv').stat().st_size}\\n")
            file.flush()
            time.sleep(0.01)

killed = {"killed at a random moment": faults.FAULTS["killed at a random moment"]}
for row in faults.struck(Verb("careless", careless), killed, 3, 1):
    print(row["tries"], row["half-visible"] + row["lost"])
"""


def python(*words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(REPOSITORY / "src"), str(REPOSITORY)])}
    return subprocess.run([sys.executable, *words], cwd=REPOSITORY, env=environment, capture_output=True, text=True)


@pytest.mark.prove
@pytest.mark.skipif(sys.platform != "linux", reason="forks and file systems of Linux")
@pytest.mark.parametrize("verb", ["aggregate .parquet", "simulate", "datasets"])
def test_whatever_happens_nothing_is_half(verb: str, tmp_path: Path) -> None:
    done = python("-m", "proofs", "job", json.dumps(["faults", verb, 0, 2]), str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads(done.stdout.splitlines()[-1])["result"]
    assert sum(row["tries"] == 2 for row in rows) >= 2  # both kinds of kills
    assert sum(row[name] for row in rows for name in ("lost", "half-visible", "wrong", "foreign", "left")) == 0, rows


@pytest.mark.prove
@pytest.mark.skipif(sys.platform != "linux", reason="forks of Linux")
def test_a_careless_writer_is_found_out() -> None:
    done = python("-c", CARELESS)
    assert done.returncode == 0, done.stderr
    tries, found = map(int, done.stdout.splitlines()[-1].split())
    assert tries == 3
    assert found >= 1
