"""Pipes: standard input under its other names and process substitution are read; a named pipe is refused at once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rarevote
from rarevote.errors import InputError
from rarevote.io.read.detect import refuse_endless
from tests.command import rarevote as command

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")

VOTES = "task,worker,label\na,ann,yes\na,bob,no\na,cy,no\nb,ann,no\nb,bob,no\n"
GOLD = "task,label\na,yes\n"
SECONDS = 20  # after which a command that waits is ended


def in_shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash")
    line = line.replace("rarevote", f"{sys.executable} -m rarevote")
    return subprocess.run([bash, "-c", line], cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "votes.csv").write_text(VOTES)
    (tmp_path / "gold.csv").write_text(GOLD)
    os.mkfifo(tmp_path / "pipe.csv")
    return tmp_path


@pytest.mark.parametrize(
    "line",
    [
        "cat votes.csv | rarevote aggregate - -q",
        "cat votes.csv | rarevote aggregate /dev/stdin -q",
        "rarevote aggregate /dev/stdin -q < votes.csv",
        "rarevote aggregate /dev/fd/0 -q < votes.csv",
        "rarevote aggregate <(cat votes.csv) -q",
        "rarevote aggregate <(gzip < votes.csv) -q",
        "rarevote aggregate <(head -3 votes.csv) <(head -1 votes.csv; tail -3 votes.csv) -q",
        "rarevote aggregate votes.csv -q --gold <(cat gold.csv)",
        "rarevote aggregate <(cat votes.csv) -q --gold <(cat gold.csv) --truth <(cat gold.csv)",
    ],
)
def test_streams_are_read(line: str, folder: Path) -> None:
    done = in_shell(line, folder)
    assert done.returncode == 0, done.stderr
    assert [row.split(",")[0] for row in done.stdout.splitlines()] == ["task", "a", "b"]


def test_streams_give_the_votes_of_the_file(folder: Path) -> None:
    expected = in_shell("rarevote aggregate votes.csv -q --gold gold.csv", folder).stdout
    assert in_shell("rarevote aggregate <(cat votes.csv) -q --gold <(cat gold.csv)", folder).stdout == expected


@pytest.mark.parametrize(
    "line",
    [
        "rarevote aggregate pipe.csv",
        "rarevote aggregate votes.csv pipe.csv",
        "rarevote aggregate votes.csv --gold pipe.csv",
        "rarevote compare votes.csv --truth pipe.csv",
        "rarevote convert pipe.csv",
        "rarevote predict pipe.csv votes.csv",
        "rarevote score pipe.csv --truth gold.csv",
        "rarevote audit status pipe.csv",
        "rarevote audit start pipe.csv --find yes=0.9 --plan p.json --review-out r.csv",
        "rarevote audit verify pipe.csv pipe.csv",
        "rarevote audit continue votes.csv --answers pipe.csv --review-out r.csv",
        "rarevote review pipe.csv --no-browser",
        "rarevote report votes.csv --audit pipe.csv",
        "rarevote aggregate votes.csv --cost pipe.csv",
        "rarevote datasets import cifar10h pipe.csv --cache c",
    ],
)
def test_a_named_pipe_is_refused_at_once(line: str, folder: Path) -> None:
    done = in_shell(line, folder)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "pipe.csv: is a pipe" in done.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["gold.csv", "pipe.csv", "votes.csv"]


def test_named_pipes_in_python(folder: Path) -> None:
    for given in (folder / "pipe.csv", [folder / "votes.csv", folder / "pipe.csv"], str(folder / "p*.csv")):
        with pytest.raises(InputError, match=r"pipe\.csv: is a pipe"):
            rarevote.read(given)
    with pytest.raises(InputError, match=r"pipe\.csv: is a pipe"):
        rarevote.read(folder / "votes.csv").known(folder / "pipe.csv")


def test_devices_are_refused() -> None:
    for name in ("/dev/zero", "/dev/null"):
        with pytest.raises(InputError, match=f"{name}: is a device"):
            rarevote.read(name)


def test_a_device_is_not_a_file() -> None:
    with pytest.raises(InputError, match=r"^/dev/null: is a device or a socket, not a file$"):
        refuse_endless(Path("/dev/null"))


def test_a_stream_that_is_not_open() -> None:
    with pytest.raises(InputError, match="/dev/fd/987: cannot be read"):
        rarevote.read("/dev/fd/987")


def test_an_export_needs_a_file(folder: Path) -> None:
    done = in_shell("rarevote aggregate --from label-studio <(cat votes.csv)", folder)
    assert done.returncode == 1
    assert "as a file" in done.stderr


def test_an_audit_comes_back_to_its_labels(folder: Path) -> None:
    done = in_shell("rarevote audit start <(cat votes.csv) --find yes=0.9 --plan p.json --review-out r.csv", folder)
    assert done.returncode == 2
    assert "cannot be read again" in done.stderr


def test_standard_input_that_has_no_file_behind_it() -> None:
    done = command("aggregate", "/dev/stdin", "-q", stdin=VOTES.encode())
    assert done.stdout.splitlines()[1].startswith("a,")
