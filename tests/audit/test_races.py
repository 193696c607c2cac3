"""Two writers of one plan: what either was told is written is there, and the other is told to read it again."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest

from rarevote.audit import Audit
from rarevote.audit.locks import alone
from rarevote.errors import InputError
from tests.audit.worlds import started

N_RACES = 200


def _race(folder: Path, first: int, start: Barrier, results: Any) -> None:
    """Answer half of the open tasks of every plan and save, at the same moment as the other writer."""
    written: list[str | None] = []
    for number in range(N_RACES):
        path = folder / f"{number}.json"
        audit = Audit.load(path)
        audit.answer(dict.fromkeys(sorted(audit.pending)[first::2], False), who=str(first))
        start.wait(60)
        try:
            audit.save(path)
            written.append(None)
        except InputError as error:
            written.append(str(error))
    results.put((first, written))


@pytest.mark.prove
def test_two_writers_lose_nothing(tmp_path: Path) -> None:
    audit, _ = started(60)
    audit.round(10)
    for number in range(N_RACES):
        (tmp_path / f"{number}.json").write_text(audit.to_json(), encoding="utf-8")
    context = multiprocessing.get_context("spawn")
    start, results = context.Barrier(2), context.Queue()
    writers = [context.Process(target=_race, args=(tmp_path, first, start, results)) for first in (0, 1)]
    for writer in writers:
        writer.start()
    found = dict(results.get(timeout=120) for _ in writers)
    for writer in writers:
        writer.join()
    for number in range(N_RACES):
        kept = {answer.who for answer in Audit.load(tmp_path / f"{number}.json").plan.rounds[0].answers if answer}
        assert kept == {str(first) for first in (0, 1) if found[first][number] is None}
        (refused,) = [found[first][number] for first in (0, 1) if found[first][number] is not None]
        assert "has rounds or answers that this audit lacks" in refused
    # Nothing but the plans is left.
    assert len(list(tmp_path.iterdir())) == N_RACES


def test_a_writer_who_was_killed_locks_nobody_out(tmp_path: Path) -> None:
    audit, _ = started(60)
    path = tmp_path / "audit.json"
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom rarevote.audit.locks import alone\n"
        "with alone(Path(sys.argv[1])):\n    print('held', flush=True)\n    time.sleep(600)\n"
    )
    other = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE)
    assert other.stdout is not None
    assert other.stdout.readline() == b"held\n"
    assert list(tmp_path.iterdir()) != []
    other.kill()
    other.wait()
    other.stdout.close()
    audit.save(path)
    assert [one.name for one in tmp_path.iterdir()] == ["audit.json"]


def test_others_wait_for_their_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    audit, _ = started(60)
    path = tmp_path / "audit.json"
    monkeypatch.setattr("rarevote.audit.locks._PATIENCE", 0.05)
    begin = time.monotonic()
    with alone(path), pytest.raises(InputError, match="another process has held"):
        audit.save(path)
    assert time.monotonic() - begin >= 0.05
    audit.save(path)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(InputError, match="cannot be written"):
            started(60)[0].save(tmp_path / "audit.json")
    finally:
        tmp_path.chmod(0o700)


def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        started(60)[0].save(tmp_path / "none" / "audit.json")


def test_two_rounds_of_different_size_exclude_each_other(tmp_path: Path) -> None:
    path = tmp_path / "audit.json"
    started(60)[0].save(path)
    one, other = Audit.load(path), Audit.load(path)
    one.round(10)
    other.round(20)
    one.save(path)
    with pytest.raises(InputError, match="has rounds or answers that this audit lacks; load it again"):
        other.save(path)
    assert Audit.load(path).plan.rounds[0].tasks == one.plan.rounds[0].tasks
