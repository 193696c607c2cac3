"""What a person sees: time left, tables of many classes, rows on a terminal, flags in the help."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from rarevote.cli.show import told_classes
from rarevote.progress import TimeLeft
from tests.command import rarevote
from tests.io.platforms.exports import FIXTURES


def progress(iteration: int, change: float, n_iter: int = 100) -> Any:
    return SimpleNamespace(iteration=iteration, change=change, n_iter=n_iter, stage="")


def test_no_time_is_told_before_the_second_iteration() -> None:
    clock = iter([0.0, 40.0, 40.5, 41.0])
    left = TimeLeft(lambda: next(clock))
    next(clock)
    # The first iteration took forty seconds, of which compiling took all but half a second.
    assert left.after(progress(1, 0.5)) == ""
    # (1 - d) t / (d - 0.01) with d = log(0.5 / 0.4) / log(0.5 / 1e-4) done after t = 0.5 s
    assert left.after(progress(2, 0.4)) == "about 0:30 left"
    assert left.after(progress(3, 0.05)).startswith("about 0:0")


def test_never_hours_for_seconds() -> None:
    # The change does not shrink at all: no more than the iterations that are left can take.
    times = iter(range(1000))
    left = TimeLeft(lambda: 0.1 * next(times))
    told = [left.after(progress(iteration, 0.5)) for iteration in range(1, 50)]
    assert told[0] == ""
    assert all(text.startswith("about 0:") for text in told[1:])
    assert told[1] == "about 0:10 left"  # 98 iterations of a tenth of a second


def test_a_finished_fit_has_no_time_left() -> None:
    times = iter(range(10))
    left = TimeLeft(lambda: float(next(times)))
    left.after(progress(1, 0.5))
    assert left.after(progress(2, 1e-5)) == ""


def test_tables_of_many_classes_show_the_largest_and_the_rarest() -> None:
    sizes = {f"class {n}": float(n) for n in range(332)}
    told, left_out = told_classes(sizes, "class 200")
    assert told[0] == "class 200"
    assert told[1:11] == [f"class {n}" for n in range(331, 321, -1)]
    assert set(told[11:]) == {"class 0", "class 1", "class 2"}
    assert left_out == "... 318 more classes between the largest and the rarest (--json has all)"
    few = {"b": 1.0, "a": 2.0, "c": 0.0}
    assert told_classes(few, "c") == (["c", "b", "a"], "")


def test_aggregate_shows_few_of_many_classes(tmp_path: Path) -> None:
    lines = [f"t{n},w{k},c{(n + k * (n % 5 == 0)) % 40:02d}" for n in range(80) for k in range(2)]
    (tmp_path / "votes.csv").write_text("\n".join(["task,worker,label", *lines]) + "\n")
    done = rarevote("aggregate", "votes.csv", "-m", "majority-vote", "-o", "r.csv", folder=tmp_path)
    assert sum(line.startswith("c") and line[1:3].isdigit() for line in done.stderr.splitlines()) <= 16
    assert "more classes between the largest and the rarest" in done.stderr


class Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("quiet", "n_lines"), [(False, 0), (True, 9)])
def test_a_terminal_gets_the_summary_and_how_to_get_rows(quiet: bool, n_lines: int) -> None:
    words = ["aggregate", str(FIXTURES / "toloka_outputs.tsv"), "-m", "majority-vote", *(["-q"] if quiet else [])]
    with mock.patch("tests.command.io.TextIOWrapper", Terminal):
        done = rarevote(*words, environment={"TERM": "dumb"})
    assert len(done.stdout.splitlines()) == n_lines
    assert ("--out result.csv" in done.stderr) is not quiet
    if not quiet:
        assert "of tasks" in done.stderr


def test_flags_have_no_type() -> None:
    for verb in (["aggregate"], ["convert"], ["report"], ["audit", "start"], []):
        shown = rarevote(*verb, "--help").stdout
        assert "<bool>" not in shown
        assert "--help" in shown
