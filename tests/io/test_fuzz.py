"""A few thousand damaged files at every door: an answer or an error of ours, never anything else."""

from __future__ import annotations

import argparse
import warnings
from itertools import islice
from pathlib import Path

import pytest
from benchmarks import fuzz

# A number, not seconds: a faster machine must not try what a slower one did not.
EXECUTIONS = 100


@pytest.mark.prove
def test_no_door_lets_a_foreign_error_through(tmp_path: Path) -> None:
    options = argparse.Namespace(seed=2, keep=tmp_path)
    counts: dict[str, dict[str, int]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, (door, seeds) in fuzz.doors(tmp_path).items():
            outcomes = list(islice(fuzz.tried(name, door, seeds, options, tmp_path), EXECUTIONS))
            counts[name] = {kind: outcomes.count(kind) for kind in set(outcomes)}
    assert {name: found for name, found in counts.items() if "foreign" in found} == {}
    assert sum(sum(found.values()) for found in counts.values()) > 2_000
    # A mutation that never or always breaks a file would test nothing.
    assert sum(found.get("read", 0) > 0 for found in counts.values()) > 18
    assert sum(found.get("refused", 0) > 0 for found in counts.values()) > 18


def test_a_finding_is_seen(tmp_path: Path) -> None:
    def broken(path: Path) -> None:
        raise RecursionError(path.name)

    options = argparse.Namespace(seed=2, keep=tmp_path)
    outcomes = list(islice(fuzz.tried("broken", broken, [(".csv", b"task,label\n")], options, tmp_path), 5))
    assert set(outcomes) == {"foreign"}
    assert (tmp_path / "finding-broken-RecursionError.csv").is_file()
