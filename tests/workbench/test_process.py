"""The workbench as a process of its own: kills, a second one, Ctrl-C, a port that is taken."""

from __future__ import annotations

import json
import random
import signal
import socket
from pathlib import Path

import pytest

from rarevote.audit import Audit
from rarevote.audit.journal import read_journal
from rarevote.workbench.serve import listen
from tests.workbench.benches import CLASSES, plan_file
from tests.workbench.processes import Process, answers_until_killed


def test_killed_at_any_moment_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    """The benchmark does this fifty times and more."""
    path, right = plan_file(tmp_path)
    dice = random.Random(0)
    kept: dict[int, int] = {}
    for _ in range(2):
        answers_until_killed(path, right, kept, dice, most=6)
    lines = read_journal(path)
    assert len(lines) == len({entry.task for entry in lines})
    said = {entry.task: CLASSES.index(entry.label) for entry in lines}
    assert said.items() >= kept.items()
    assert len(said) <= len(kept) + 2  # an answer that nobody was told of may have been kept
    assert Audit.load(path).n_reviewed == len(said)


def test_a_second_one_is_told_so_and_ctrl_c_ends_it(tmp_path: Path) -> None:
    path, right = plan_file(tmp_path)
    with Process("audit", "review", path, "--json", "--who", "ben") as first:
        second = Process("audit", "review", path)
        code, said = second.end()
        assert code == 1
        assert "another process is answering" in said
        assert first.answer(right) is not None
        first.process.send_signal(signal.SIGINT)
        code, said = first.end()
        assert code == 0, said
        assert "all are in" in said
        assert json.loads(first.out)["answered"] == 1
    assert [entry.who for entry in read_journal(path)] == ["ben"]


def test_ctrl_c_ends_with_one_line(tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text("task\na\nb\n")
    with Process("review", tmp_path / "list.csv", "--class", "x", "--class", "y") as process:
        process.process.send_signal(signal.SIGINT)
        code, said = process.end()
    assert code == 0
    assert said.splitlines()[-1].startswith("0 of 2 answered in this list")
    assert "leaked" not in said


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    path, _ = plan_file(tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code, said = Process("audit", "review", path, "--port", str(taken.getsockname()[1])).end()
    assert code == 1
    assert "choose another with --port" in said


def test_it_listens_on_this_machine_only() -> None:
    with listen(0) as opened:
        opened.listen()
        host, port = opened.getsockname()
        assert host == "127.0.0.1"
        # Another address of the same machine, as one of its network would be.
        with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.2", port), timeout=5):
            pass
