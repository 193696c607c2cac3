"""A result has the same bits on machines of any number of cores: no sum is left to BLAS, whose threads split it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from benchmarks.evidence import REPOSITORY

pytestmark = pytest.mark.prove  # seconds each, and rarely breaks

# Tables of workers x classes x classes that BLAS would share out, in a crowd that is fitted in NumPy.
_ALL_METHODS = """
import hashlib, warnings
import numpy as np
from tests.tables import METHOD_ROWS

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
for row in METHOD_ROWS:
    if row.name == "crowdfm":
        continue  # compiled sums alone: tests/methods/test_crowdfm.py
    n_classes = 2 if row.binary else 3
    votes = np.repeat(np.arange(4000), 4), rng.integers(0, 3000, 16000), rng.integers(0, n_classes, 16000)
    gold = {task: task % n_classes for task in range(50)} if row.needs_gold else None
    model = row.make()
    model.fit(votes, gold) if gold else model.fit(votes)
    seen = hashlib.sha256()
    for value in (model.posterior_, *model._result.parameters.values(), getattr(model, "loss_history_", [])):
        seen.update(np.ascontiguousarray(value).tobytes())
    print(row.name, seen.hexdigest())
"""


def _results(threads: int) -> str:
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": str(threads), "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        [sys.executable, "-c", _ALL_METHODS], env=environment, cwd=REPOSITORY, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one core: BLAS has one thread whatever it is told")
def test_no_method_depends_on_the_threads_of_blas() -> None:
    one, two = _results(1), _results(2)
    assert len(one.splitlines()) > 10
    assert one.splitlines() == two.splitlines()
