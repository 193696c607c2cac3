"""Standard streams that are closed, full or cut off, as schedulers and pipes leave them; disks that are full."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.command import rarevote

# Every case is a process of its own: those that differ from another in little are long proofs.
LONG = pytest.mark.prove

ROWS = "task,worker,label\na,x,yes\na,y,yes\nb,x,no\nb,y,no\n"
RUN = f"{sys.executable} -m rarevote aggregate labels.csv -m majority-vote"


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "labels.csv").write_text(ROWS)
    return subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(
    ("command", "code", "told"),
    [
        pytest.param(f"{RUN} -q > /dev/full", 1, "standard output: cannot be", marks=LONG),
        (f"{RUN} -q >&-", 1, "standard output: cannot be read or written (it is closed; name a file with --out)"),
        pytest.param(f"{RUN} --json --out r.csv -q > /dev/full", 1, "standard output: cannot be", marks=LONG),
        (f"{sys.executable} -m rarevote --version > /dev/full", 1, "standard output: cannot be"),
        (f"{sys.executable} -m rarevote aggregate - -q <&-", 1, "standard input: the file is empty"),
    ],
)
def test_what_cannot_be_written_or_read_is_one_line(command: str, code: int, told: str, tmp_path: Path) -> None:
    done = shell(command, tmp_path)
    assert done.returncode == code
    assert told in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("where", ["2>&-", pytest.param("2>/dev/full", marks=LONG)])
def test_a_result_is_written_though_nobody_listens(where: str, tmp_path: Path) -> None:
    done = shell(f"{RUN} --out r.csv {where}", tmp_path)
    assert done.returncode == 0
    assert [line.split(",")[:2] for line in (tmp_path / "r.csv").read_text().splitlines()[1:]] == [
        ["a", "yes"],
        ["b", "no"],
    ]


@pytest.mark.parametrize("buffering", ["PYTHONUNBUFFERED=1", pytest.param("PYTHONUNBUFFERED=", marks=LONG)])
def test_a_pipe_that_was_cut_off_is_no_error(buffering: str, tmp_path: Path) -> None:
    (tmp_path / "many.csv").write_text(
        "task,worker,label\n" + "".join(f"{i:099},w{i % 7},{'ab'[i % 2]}\n" for i in range(2_000))
    )
    command = f"{sys.executable} -m rarevote aggregate many.csv -m majority-vote -q 2> told"
    done = shell(f"{buffering} {command} | head -1; echo ${{PIPESTATUS[0]}}", tmp_path)
    assert done.stdout.splitlines()[-1] in ("0", "141")
    assert "error" not in (tmp_path / "told").read_text()


MANY = "task,worker,label\n" + "".join(f"t{i // 3},w{i % 7},{'ab'[i % 2]}\n" for i in range(3000))
# Files may not grow beyond 8 kB: as on a disk that is full, at a place that needs no rights to make.
LITTLE_ROOM = "ulimit -f 8"


@pytest.mark.parametrize("given", ["- < many.csv", "many.xlsx"])
def test_a_full_temporary_folder_is_not_the_inputs_fault(given: str, tmp_path: Path) -> None:
    (tmp_path / "many.csv").write_text(MANY)
    book = import_module("openpyxl").Workbook()
    for line in MANY.splitlines():
        book.active.append(line.split(","))
    book.save(tmp_path / "many.xlsx")
    (tmp_path / "temporary").mkdir()
    done = shell(
        f"{LITTLE_ROOM}; TMPDIR=$PWD/temporary {sys.executable} -m rarevote aggregate -q -o r.csv {given}", tmp_path
    )
    assert done.returncode == 1
    assert done.stderr.startswith(f"rarevote: error: {tmp_path}/temporary: the folder of temporary files is full (")
    assert done.stderr.count("\n") == 1
    assert not list((tmp_path / "temporary").iterdir())


@pytest.mark.parametrize("given", ["--out r.xlsx", "| cat"])
def test_rows_on_their_way_that_find_no_room_in_the_temporary_folder(given: str, tmp_path: Path) -> None:
    """A spreadsheet's rows wait there, with openpyxl's trace after our word, and so do those for standard output."""
    (tmp_path / "many.csv").write_text(MANY)
    (tmp_path / "temporary").mkdir()
    run = f"{sys.executable} -m rarevote aggregate many.csv -m majority-vote -q"
    done = shell(f"set -o pipefail; {LITTLE_ROOM}; TMPDIR=$PWD/temporary {run} {given}", tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith(f"rarevote: error: {tmp_path}/temporary: the folder of temporary files is full (")
    assert (done.stderr.count("\n"), done.stdout) == (1, "")
    assert not (tmp_path / "r.xlsx").exists()


def test_a_simulated_crowd_without_room(tmp_path: Path) -> None:
    done = shell(f"{LITTLE_ROOM}; {sys.executable} -m rarevote simulate --tasks 5000 --out crowd -q", tmp_path)
    assert done.returncode == 1
    assert "crowd: cannot be written (" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "crowd").exists()


@pytest.mark.parametrize("words", [["aggregate", "{long}"], ["aggregate", "labels.csv", "--out", "{long}"]])
def test_a_name_too_long_for_any_disk(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text(ROWS)
    given = [word.replace("{long}", "x" * 5000 + ".csv") for word in words]
    said = rarevote(*given, folder=tmp_path, code=1).stderr
    assert "(5,004 characters): cannot be read or written (File name too long)" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("way", ["-W error -m rarevote", "-m rarevote"])
def test_warnings_that_are_errors_are_no_fault_of_ours(way: str, tmp_path: Path) -> None:
    environment = "PYTHONWARNINGS=error" if way == "-m rarevote" else ""
    run = f"{environment} {sys.executable} {way} aggregate labels.csv -o r.csv -q"
    done = shell(f"{run} -m cc-rasch --set n_iter=1", tmp_path)
    assert done.returncode == 1
    assert "reached the iteration limit" in done.stderr
    assert "(a ConvergenceWarning, which -W error or PYTHONWARNINGS makes an error)" in done.stderr
    assert "fault" not in done.stderr
    assert not (tmp_path / "r.csv").exists()
    done = shell(f"{run} -m majority-vote", tmp_path)  # of which nothing warns
    assert (done.returncode, done.stderr) == (0, "")
