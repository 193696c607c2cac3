"""The command line in this process (``tests/command.py``) says and does what it does in a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest

from tests.command import rarevote

VOTES = "task,worker,label\n1,a,yes\n1,b,no\n1,c,no\n2,a,yes\n2,b,yes\n"


def without_seconds(said: str) -> str:
    return re.sub(r"[0-9.]+ s\b", "? s", said)


@pytest.mark.parametrize(
    ("words", "stdin", "code"),
    [
        (["aggregate", "-", "-m", "majority-vote"], VOTES.replace("yes", "Riß"), 0),
        (["aggregate", "labels.csv", "--set", "n_iter=1", "--strict", "-o", "out.csv", "-q"], "", 3),
        (["aggregate", "absent.csv"], "", 1),
        (["aggregate", "labels.csv", "--no-such-option"], "", 2),
        *(
            pytest.param(words, "", code, marks=pytest.mark.prove)
            for words, code in (
                (["--version"], 0),
                (["aggregate", "--help"], 0),
                (["aggregate", "labels.csv", "-m", "majority-vote"], 0),
                (["aggregate", "labels.csv", "-m", "nonsense"], 2),
                (["nonsense"], 2),
                ([], 2),
            )
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_as_a_process(tmp_path: Path, words: list[str], stdin: str, code: int) -> None:
    (tmp_path / "labels.csv").write_text(VOTES)
    here = rarevote(*words, stdin=stdin.encode(), folder=tmp_path, code=code)
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    (tmp_path / "out.csv").unlink(missing_ok=True)
    there = subprocess.run(
        [sys.executable, "-m", "rarevote", *words], input=stdin, cwd=tmp_path, capture_output=True,
        env={**os.environ, "NO_COLOR": "1"}, encoding="utf-8",
    )  # fmt: skip
    assert (here.stdout, here.returncode) == (there.stdout, there.returncode)
    assert without_seconds(here.stderr) == without_seconds(there.stderr)
    assert made == {path.name: path.read_bytes() for path in tmp_path.iterdir()}


def test_warnings_are_shown_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def divides(_words: list[str]) -> None:
        np.float64(1) / np.float64(0)

    monkeypatch.setattr("rarevote.cli._run", divides)
    for _ in range(2):
        assert rarevote("methods").stderr == "rarevote: warning: divide by zero encountered in scalar divide\n"


def test_it_leaves_no_trace(tmp_path: Path) -> None:
    def state() -> tuple[object, ...]:
        streams = sys.stdin, sys.stdout, sys.stderr, sys.excepthook
        shown = warnings.showwarning, list(warnings.filters)
        return streams, shown, signal.getsignal(signal.SIGTERM), dict(os.environ), Path.cwd(), tempfile.gettempdir()

    before = state()
    rarevote("methods", folder=tmp_path, environment={"TMPDIR": str(tmp_path), "RAREVOTE_NEW": "1"})
    rarevote("nonsense", folder=tmp_path, code=2)
    rarevote("aggregate", "absent.csv", folder=tmp_path, code=1)
    assert state() == before
