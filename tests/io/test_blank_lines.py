"""Blank lines before the header of delimited text: they are skipped by every reader."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import pytest

from rarevote import read
from rarevote.errors import InputError, MissingValuesError
from rarevote.io.read.answers import read_review_list
from rarevote.io.read.votes import read_truth_file
from tests.io.platforms.exports import FIXTURES
from tests.io.test_inputs import PLAIN, ROWS, rows_of, write


@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["", "mark"])
@pytest.mark.parametrize("blank", [1, 2, 7])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
@pytest.mark.parametrize("name", ["votes.csv", "votes.tsv", "votes.csv.gz"])
def test_blank_lines_before_the_header_are_not_the_header(
    tmp_path: Path, name: str, end: str, blank: int, mark: str
) -> None:
    text = PLAIN.replace(",", "\t") if name.endswith(".tsv") else PLAIN
    content = (mark + end * blank + text.replace("\n", end)).encode()
    path = write(tmp_path / name, gzip.compress(content) if name.endswith(".gz") else content)
    assert sorted(rows_of(read(path).annotations)) == sorted(ROWS)


def test_blank_lines_before_other_tables(tmp_path: Path) -> None:
    path = write(tmp_path / "truth.csv", "\n\ntask,label\n1,a\n2,b\n")
    assert read_truth_file(path) == {"1": "a", "2": "b"}
    found = read_review_list(write(tmp_path / "list.csv", "\ufeff\ntask,text\n1,one\n2,two\n"))
    assert (found.tasks, found.columns) == (["1", "2"], {"text": ["one", "two"]})
    headless = write(tmp_path / "headless.csv", "\n\n007,b,yes\n007,a,no\n10,a,yes\n")
    by_number = {"task": "1", "worker": "2", "label": "3"}
    crowd = read(headless, columns=by_number, has_header=False)
    assert sorted(rows_of(crowd.annotations)) == sorted(ROWS)
    several = [write(tmp_path / f"{n}.csv", "\n" * n + f"task,worker,label\n{n},a,x\n{n},b,y\n") for n in range(3)]
    assert read(several).annotations.tasks.tolist() == ["0", "1", "2"]
    assert read(several).annotations.classes.tolist() == ["x", "y"]


def test_lines_are_numbered_with_blank_lines_before_the_header(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"line 5 has 2 cells, the header has 3"):
        read(write(tmp_path / "short.csv", "\n\ntask,worker,label\n1,a,x\n2,b\n"))
    with pytest.raises(MissingValuesError, match=r"line 5"):
        read(write(tmp_path / "missing.csv", "\n\ntask,worker,label\n1,a,x\n2,b,\n"))


def outcome(path: Path) -> Any:
    """Names and counts of what is read, or the message of the refusal without line numbers."""
    try:
        crowd = read(path)
    except InputError as error:
        return re.sub(r"lines? [\d, ]+", "line", str(error).replace(str(path), "FILE"))
    votes = crowd.annotations
    names = [found.tolist() for found in (votes.tasks, votes.workers, votes.classes)]
    return names, votes.n_annotations, dict(crowd.gold)


@pytest.mark.filterwarnings("ignore::rarevote.errors.RarevoteWarning")
@pytest.mark.parametrize("name", sorted(path.name for path in FIXTURES.iterdir() if path.suffix in (".csv", ".tsv")))
def test_blank_lines_before_the_header_change_nothing(name: str, tmp_path: Path) -> None:
    content = (FIXTURES / name).read_bytes()
    (tmp_path / name).write_bytes((b"\r\n" if b"\r\n" in content else b"\n") * 2 + content)
    assert outcome(tmp_path / name) == outcome(FIXTURES / name)
