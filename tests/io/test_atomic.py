"""What a process that dies leaves: nothing half visible, and what it left behind goes by age, unless somebody lives."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rarevote.errors import InputError
from rarevote.io.write import atomic
from rarevote.io.write.atomic import appearing, lasting_scratch_folder, remove_abandoned, replacing, temporary_folder
from tests.command import rarevote

DAY = 24 * 3600.0
VOTES = "task,worker,label\na,x,yes\na,y,yes\nb,x,no\nb,y,no\n"


@pytest.fixture(autouse=True)
def nothing_seen_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atomic, "_LOOKED_INTO", set())


def aged(path: Path, days: float = 2) -> Path:
    then = time.time() - days * DAY
    os.utime(path, (then, then))
    return path


def test_the_temporary_folder_of_the_machine_is_tidied_too(tmp_path: Path) -> None:
    """A killed run left as much there as it had read."""
    (tmp_path / "votes.csv").write_text(VOTES)
    temporary = tmp_path / "temporary"
    left, young = (temporary / f".input.rarevote-{name}" for name in ("left", "young"))
    others = temporary / "rarevote-results-of-mine"
    for folder in (left, young, others):
        folder.mkdir(parents=True)
        (folder / "standard-input.csv").write_text(VOTES)
    aged(left)
    aged(others)
    rarevote("aggregate", tmp_path / "votes.csv", "-q", environment={"TMPDIR": str(temporary)})
    # One of this process may be there, if no other test has used DuckDB yet.
    assert not left.exists()
    assert young.exists()
    assert others.exists()


def test_every_temporary_file_can_be_told_from_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder, remove = lasting_scratch_folder("names")
    assert folder.name.startswith(".names.rarevote-")
    remove()
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.name == "nt", reason="nothing that is open can be removed there")
def test_what_somebody_works_on_stays_however_old(tmp_path: Path) -> None:
    """A notebook that is open for days, or a clock that was set forward."""
    with temporary_folder(tmp_path, "x") as folder, replacing(tmp_path / "r.csv") as file:
        file.write_text("half")
        aged(file)
        aged(folder)
        remove_abandoned(tmp_path)
        assert folder.exists()
        assert file.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["r.csv"]


def test_a_clock_that_was_set_back_removes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / ".r.rarevote-01234567.csv"
    file.write_text("from tomorrow")
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now - 10 * DAY)
    remove_abandoned(tmp_path)
    assert file.exists()


def test_a_folder_is_replaced_in_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed between two renames, there was neither the old folder nor the new one."""
    target = tmp_path / "data"
    target.mkdir()
    (target / "old.csv").write_text("old")
    rename = Path.rename

    def checked(path: Path, to: Path) -> Path:
        done = rename(path, to)
        assert target.exists(), "a process that dies here has lost the folder"
        return done

    monkeypatch.setattr(Path, "rename", checked)
    with appearing(target) as made:
        (made / "new.csv").write_text("new")
    assert [path.name for path in target.iterdir()] == ["new.csv"]
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_a_folder_is_replaced_where_two_names_cannot_change_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", "plan9")
    target = tmp_path / "data"
    target.mkdir()
    (target / "old.csv").write_text("old")
    with appearing(target) as made:
        (made / "new.csv").write_text("new")
    assert [path.name for path in target.iterdir()] == ["new.csv"]


def test_a_temporary_folder_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    """And neither the input nor the result is blamed."""
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file: cannot be written"), temporary_folder(tmp_path / "file", "x"):
        pass


def _failing(monkeypatch: pytest.MonkeyPatch, name: str, allowed: int) -> Iterator[None]:
    """The so many-th call of a method of paths is where the process dies."""
    right: Any = getattr(Path, name)
    calls = 0

    def called(path: Path, *arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > allowed:
            raise KeyboardInterrupt
        return right(path, *arguments)

    monkeypatch.setattr(Path, name, called)
    yield
    monkeypatch.setattr(Path, name, right)


@pytest.mark.parametrize("allowed", [0, 1, 2])
def test_a_crowd_never_lies_beside_the_truth_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, allowed: int
) -> None:
    from rarevote.simulate.crowds import simulate_crowd
    from rarevote.simulate.files import write_crowd

    old = write_crowd(tmp_path, [simulate_crowd(20, 5, random_state=1)])
    texts = {path.name: path.read_text() for path in (old.labels, old.truth, old.workers)}
    dying = _failing(monkeypatch, "replace", allowed)
    next(dying)
    with pytest.raises(KeyboardInterrupt):
        write_crowd(tmp_path, [simulate_crowd(20, 5, random_state=2)])
    list(dying)
    now = {path.name: path.read_text() for path in tmp_path.iterdir()}
    changed = {now[name] != texts[name] for name in now if name in texts}
    assert len(changed) < 2, "of two crowds"


@pytest.mark.parametrize("allowed", range(5))
def test_files_of_a_dask_run_are_of_one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, allowed: int) -> None:
    from rarevote.cluster.fit import _publish

    out, desk = tmp_path / "out", tmp_path / "out" / ".desk"
    for folder, text in ((out, "old"), (desk, "new")):
        (folder / "tasks").mkdir(parents=True)
        for name in ("summary.json", "workers.parquet", "abilities.parquet", "tasks/part-00000.parquet"):
            (folder / name).write_text(text)
    (out / "skills.parquet").write_text("old")  # of another method
    dying = _failing(monkeypatch, "rename", allowed)
    next(dying)
    with pytest.raises(KeyboardInterrupt):
        _publish(desk, out)
    list(dying)
    now = {path.read_text() for path in out.rglob("*") if path.is_file() and ".desk" not in path.parts}
    assert len(now) < 2 or not (out / "summary.json").exists()
    assert "old" not in now or now == {"old"}
