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


ENDS = pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])


@ENDS
@pytest.mark.parametrize("inner", ["\n", "\r\n", "\r"], ids=["lf inside", "crlf inside", "cr inside"])
@pytest.mark.parametrize("header", ["{}task,worker,label", '"task{}",worker,label', 'task,worker,"label{}"'])
@pytest.mark.parametrize("name", ["votes.csv", "votes.csv.gz"])
def test_a_line_break_before_the_end_of_the_header_is_like_it_or_refused(
    tmp_path: Path, name: str, header: str, inner: str, end: str
) -> None:
    rows = end.join([header.format(inner), "007,b,yes", "007,a,no", "10,a,yes", ""]).encode()
    path = write(tmp_path / name, gzip.compress(rows) if name.endswith(".gz") else rows)
    if inner == end:
        assert sorted(rows_of(read(path).annotations)) == sorted(ROWS)
        return
    said = {"\n": r"\n", "\r\n": r"\r\n", "\r": r"\r"}
    with pytest.raises(InputError) as refused:
        read(path)
    assert f"the header ends with {said[end]}, and a blank line" in str(refused.value)
    assert f"inside it is {said[inner]}. Remove" in str(refused.value)


@ENDS
def test_so_is_one_in_gold_and_in_a_first_row(tmp_path: Path, end: str) -> None:
    inner = "\r\n" if end == "\n" else "\n"
    gold = write(tmp_path / "gold.csv", f'"task{inner}",label{end}1,a{end}2,b{end}')
    with pytest.raises(InputError, match="mixes line endings: the header ends"):
        read_truth_file(gold)
    headless = write(tmp_path / "headless.csv", f'"1{inner}",a,x{end}2,a,y{end}')
    with pytest.raises(InputError, match="mixes line endings: the first row ends"):
        read(headless, columns={"task": "1", "worker": "2", "label": "3"}, has_header=False)


@ENDS
@pytest.mark.parametrize("inner", ["\n", "\r\n", "\r"], ids=["lf inside", "crlf inside", "cr inside"])
def test_line_breaks_in_cells_of_rows_are_text(tmp_path: Path, inner: str, end: str) -> None:
    path = write(tmp_path / "truth.csv", f'task,label{end}"1{inner}x",a{end}2,b{end}')
    assert read_truth_file(path) == {f"1{inner}x": "a", "2": "b"}


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
