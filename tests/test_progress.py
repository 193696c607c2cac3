"""Progress: the steps of long work, the bar in a terminal, lines elsewhere, and ``progress=`` in Python."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import rarevote as library
from rarevote.crowd.steps import ProgressStep, alone, counting, doing, listening, steps, within
from rarevote.progress import Display, Pace, _has_bar_in_python, displayed, hide, showing
from tests.command import rarevote

ROWS = [(f"t{i}", f"w{j}", "ab"[(i * j) % 3 == 0]) for i in range(40) for j in range(4)]


def heard(work: Callable[[], Any]) -> list[str]:
    seen: list[ProgressStep] = []
    with listening(seen.append):
        work()
    return [f"{step.what} {step.state}".strip() for step in seen]


def test_steps_count_what_the_caller_is_done_with() -> None:
    assert heard(lambda: list(steps("adding", "ab"))) == ["adding 0 of 2", "adding 1 of 2", "adding 2 of 2"]

    def stopped() -> None:
        for one in steps("looking", range(1000)):
            if one == 1:
                break

    assert heard(stopped) == ["looking 0 of 1,000", "looking 1 of 1,000"]


def test_titles_are_put_before_what_is_done_within() -> None:
    def work() -> None:
        with within("health"), within("2 of 3"):
            doing("fitting")
        with within(""):
            doing("reading")

    assert heard(work) == ["health: 2 of 3: fitting", "reading"]


def test_one_count_hides_the_steps_within() -> None:
    def work() -> None:
        with counting("datasets", 2) as report:
            doing("fitting")
            report(1)
        with alone() as show:
            doing("fitting")
            show(ProgressStep("cells"))

    assert heard(work) == ["datasets 1 of 2", "cells"]


def test_nothing_is_reported_where_no_one_listens() -> None:
    seen: list[ProgressStep] = []
    with listening(seen.append), listening(None):
        doing("reading")
    doing("reading")
    assert not seen


@pytest.mark.parametrize(
    ("times", "done", "left"),
    [
        ([0.0, 2.0], [0, 25], "about 0:06 left"),  # a quarter in two seconds
        ([0.0, 0.5], [0, 25], ""),  # too early to say
        ([0.0, 2.0], [0, 100], ""),
        ([0.0, 10.0, 12.0], [0, 0, 10], "about 1:48 left"),
        ([5.0, 3605.0], [50, 51], "about 49:00:00 left"),  # what was done before does not count
    ],
)
def test_the_time_left_goes_by_the_pace(times: list[float], done: list[int], left: str) -> None:
    clock = iter(times)
    pace = Pace(lambda: next(clock))
    assert [pace.after(ProgressStep("x", n, 100)) for n in done][-1] == left


def test_each_piece_of_work_has_a_pace_of_its_own() -> None:
    clock = iter([0.0, 60.0, 61.0, 62.0, 64.0])
    pace = Pace(lambda: next(clock))
    pace.after(ProgressStep("slow", 0, 4))
    assert pace.after(ProgressStep("slow", 1, 4)) == "about 3:00 left"
    assert pace.after(ProgressStep("in one piece")) == ""
    pace.after(ProgressStep("fast", 0, 4))
    assert pace.after(ProgressStep("fast", 1, 4)) == "about 0:06 left"


# -- in Python ---------------------------------------------------------------------------------------------------------


CALLS: dict[str, tuple[Callable[[Any, Path], Any], str]] = {
    "fit": (lambda progress, _: library.fit(ROWS, progress=progress), "fitting anchored-rasch"),
    "decide": (lambda progress, _: library.fit(ROWS).decide(progress=progress), "deciding"),
    "check": (lambda progress, _: library.fit(ROWS).check(progress=progress), "simulating votes from the model"),
    "audit": (lambda progress, _: library.fit(ROWS).audit("a", progress=progress), "planning the audit"),
    "report": (
        lambda progress, folder: library.fit(ROWS).decide().report(folder / "page.html", progress=progress),
        "drawing the page",
    ),
    "compare": (
        lambda progress, _: library.compare(ROWS, ["majority-vote", "dawid-skene"], progress=progress),
        "method 2 of 2: fitting dawid-skene",
    ),
    "fit_each": (
        lambda progress, _: library.fit_each({"x": library.read(ROWS), "y": library.read(ROWS)}, progress=progress),
        "y (2 of 2): fitting anchored-rasch",
    ),
    "decide of each": (
        lambda progress, _: library.fit_each({"x": library.read(ROWS)}).decide(progress=progress),
        "x: deciding",
    ),
    "check of each": (
        lambda progress, _: library.fit_each({"x": library.read(ROWS)}).check(progress=progress),
        "x: simulating votes from the model",
    ),
}


@pytest.mark.filterwarnings("ignore::rarevote.errors.RarevoteWarning")
@pytest.mark.usefixtures("short_chains")
@pytest.mark.parametrize("name", CALLS)
def test_a_function_is_called_with_every_step(name: str, tmp_path: Path) -> None:
    call, what = CALLS[name]
    seen: list[ProgressStep] = []
    call(seen.append, tmp_path)
    assert what in [step.what for step in seen]
    before = len(seen)
    call(False, tmp_path)
    assert len(seen) == before


def test_a_fit_says_how_far_it_is_and_calls_back() -> None:
    seen: list[ProgressStep] = []
    iterations: list[int] = []
    fitted = library.fit(ROWS, progress=seen.append, callback=lambda one: iterations.append(one.iteration))
    of_fit = [step for step in seen if step.what == "fitting anchored-rasch"]
    assert [step.done for step in of_fit[1:]] == iterations == list(range(1, fitted.method.n_iter_ + 1))
    shares = [step.part or 0.0 for step in of_fit]
    assert shares == sorted(shares)
    assert of_fit[-1].state.startswith(f"iteration {fitted.method.n_iter_}, change ")


def test_true_prints_lines_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with mock.patch("rarevote.progress.LINES_IN_PYTHON", 0.0):
        library.fit(ROWS, progress=True)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines()[:2] == ["reading the votes", "fitting anchored-rasch"]
    assert said.err.splitlines()[2].startswith("fitting anchored-rasch: iteration 1, change ")
    library.fit(ROWS, progress=True)
    assert capsys.readouterr().err == ""  # it took less than two seconds


@pytest.mark.parametrize("has_widgets", [True, False])
def test_a_notebook_has_a_bar_where_it_can_change_what_it_shows(has_widgets: bool) -> None:
    found = {"ipywidgets": object()} if has_widgets else {}
    with (
        mock.patch("rich.console._is_jupyter", return_value=True),
        mock.patch("rarevote.progress.find_spec", side_effect=found.get),
    ):
        assert _has_bar_in_python() is has_widgets


def test_displays_within_a_display_share_its_bar(capsys: pytest.CaptureFixture[str]) -> None:
    said: list[str] = []
    with displayed(Display(False, said.append, 0.0)):
        with showing(True):
            doing("reading")
        with showing(False):
            doing("fitting")
    assert said == ["reading", "fitting"]
    assert capsys.readouterr().err == ""
    hide()  # where nothing is shown


# -- in a terminal -----------------------------------------------------------------------------------------------------


def on_terminal(code: list[str], folder: Path, *, stdout: Any = None) -> str:
    """What a process writes to its terminal."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "110"}
    out = theirs if stdout is None else stdout
    process = subprocess.Popen(code, cwd=folder, stdin=theirs, stdout=out, stderr=theirs, env=environment)
    os.close(theirs)
    parts = []
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:
            break
        if not part:
            break
        parts.append(part)
    os.close(ours)
    assert process.wait() == 0
    return b"".join(parts).decode()


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def test_a_verb_shows_its_steps_in_a_terminal_and_leaves_only_its_answer(tmp_path: Path) -> None:
    rarevote("simulate", "--tasks", "3000", "--workers", "40", "--out", "crowd", "--seed", "1", "-q", folder=tmp_path)
    command = [sys.executable, "-m", "rarevote", "check", "crowd/labels.csv"]
    with (tmp_path / "out.txt").open("w") as out:
        shown = on_terminal(command, tmp_path, stdout=out)
    for what in ("reading crowd/labels.csv", "fitting anchored-rasch", "simulating votes from the model"):
        assert re.search(rf"{re.escape(what)} .*━", plain(shown)), what
    assert re.search(r"\d+ of 200", plain(shown))
    data = (tmp_path / "out.txt").read_text()
    assert data.startswith("Can this crowd answer?")
    assert "━" not in data
    quiet = on_terminal([*command, "--quiet"], tmp_path)
    assert "━" not in quiet


def test_python_shows_a_bar_in_a_terminal(tmp_path: Path) -> None:
    code = (
        "import rarevote, time\n"
        "from rarevote.crowd.steps import steps\n"
        "from rarevote.progress import showing\n"
        "with showing(True):\n"
        "    for _ in steps('counting [red]sheep', range(3)): time.sleep(0.15)\n"
        "print('done')\n"
    )
    shown = plain(on_terminal([sys.executable, "-c", code], tmp_path))
    assert "counting [red]sheep" in shown  # which is no markup of rich
    assert "2 of 3" in shown
    assert shown.rstrip().endswith("done")
