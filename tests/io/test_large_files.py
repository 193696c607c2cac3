"""Files that are not held in memory: the same crowd and the same result, names of tasks on disk meanwhile."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.names import positions_of
from rarevote.errors import InputError, MissingValuesError
from rarevote.io.duck import connection
from rarevote.io.names_file import NamesFile
from rarevote.io.read import encode as encode_files
from rarevote.io.read.crowd import read
from rarevote.io.read.votes import read_label_files, read_truth_file
from rarevote.io.write.columns import write_columns
from rarevote.methods.cc_rasch.estimator import CCRasch
from tests.command import rarevote

ROWS: list[tuple[str, str, str]] = [
    ("b", "ann", "yes"), ("a", "bob", "no"), ("é", "ann", "yes"), ("b", "bob", "not sure"), ("Z", "cy", "not sure"),
    ("a", "ann", "yes"), ("\U0001f600", "cy", "no"), ("b", "ann", "no"), ("é", "cy", "no"), ("\uffee", "bob", "yes"),
]  # fmt: skip


@pytest.fixture
def out_of_core(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Every file counts as large; returns the folder where everything temporary goes."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(encode_files, "OUT_OF_CORE_BYTES", 0)
    monkeypatch.setattr(encode_files, "_ROWS_AT_ONCE", 3)
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    return scratch


def as_csv(rows: list[tuple[Any, Any, Any]], path: Path) -> Path:
    path = path / "labels.csv"
    path.write_text("task,worker,label\n" + "".join(f"{t},{w},{y}\n" for t, w, y in rows), encoding="utf-8")
    return path


def as_ndjson(rows: list[tuple[Any, Any, Any]], path: Path) -> Path:
    path = path / "labels.ndjson"
    path.write_text(
        "".join(json.dumps({"task": t, "worker": w, "label": y}) + "\n" for t, w, y in rows), encoding="utf-8"
    )
    return path


def as_parquet(rows: list[tuple[Any, Any, Any]], path: Path) -> Path:
    path = path / "labels.parquet"
    task, worker, label = (np.array(column) for column in zip(*rows, strict=True))
    columns = {"task": task, "worker": worker, "label": label}
    columns = {name: column.astype(object) if column.dtype.kind == "U" else column for name, column in columns.items()}
    with duckdb.connect() as database:
        database.register("rows", columns)
        database.execute(f"COPY (SELECT * FROM rows) TO '{path}' (FORMAT parquet)")
    return path


def assert_same(one: Annotations, other: Annotations) -> None:
    for name in ("task_ptr", "worker", "label"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        assert getattr(one, name).dtype == getattr(other, name).dtype
    for name in ("tasks", "workers", "classes", "unanswered"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist()
    assert (one.abstentions, one.n_dropped) == (other.abstentions, other.n_dropped)


@pytest.mark.parametrize("write", [as_csv, as_ndjson, as_parquet])
@pytest.mark.parametrize(
    "options",
    [{}, {"keep": "first"}, {"keep": "last"}, {"abstain": ["not sure"]}, {"classes": ["maybe"]}],
    ids=["plain", "first", "last", "abstain", "classes"],
)
def test_the_crowd_is_that_of_the_rows(
    write: Callable[..., Path], options: dict[str, Any], tmp_path: Path, out_of_core: Path
) -> None:
    found = read_label_files(write(ROWS, tmp_path), **options).annotations
    assert isinstance(found.tasks, NamesFile)
    assert_same(found, Annotations.from_arrays(*zip(*ROWS, strict=True), **options))


def in_order(order: str) -> list[tuple[str, str, str]]:
    """Rows of 40 tasks with one to four votes each, some names odd."""
    rng = np.random.default_rng(3)
    names = ["!", "~", "\x7f", "é", "\u00a0x", " lead", "007", "7", "\U0001f600", *(f"task-{i:03}" for i in range(31))]
    rows = [(name, f"w{rng.integers(9)}", "ny"[rng.integers(2)]) for name in names for _ in range(rng.integers(1, 5))]
    if order == "shuffled":
        return [rows[number] for number in rng.permutation(len(rows))]
    if order == "grouped":
        place = dict(zip(names, rng.permutation(len(names)).tolist(), strict=True))
        return sorted(rows, key=lambda row: place[row[0]])
    rows.sort(key=lambda row: row[0], reverse=order == "falling")
    if order == "one vote each":
        return list({row[0]: row for row in rows}.values())
    return [*rows, rows[0]] if order == "one out of place" else rows


ORDERS = ["rising", "falling", "grouped", "shuffled", "one vote each", "one out of place"]


@pytest.mark.parametrize("write", [as_csv, as_ndjson, as_parquet])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("size", [0, 1 << 40], ids=["on disk", "in memory"])
def test_rows_in_any_order(
    write: Callable[..., Path],
    order: str,
    size: int,
    tmp_path: Path,
    out_of_core: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(encode_files, "OUT_OF_CORE_BYTES", size)
    rows = in_order(order)
    path = write(rows, tmp_path)
    wanted = Annotations.from_arrays(*zip(*rows, strict=True))
    assert_same(read_label_files(path).annotations, wanted)
    monkeypatch.setattr(encode_files, "_ROWS_TRIED", 4)  # what the first rows say is wrong, or not known
    monkeypatch.setattr(encode_files, "_MAX_NAMES_JOINED_AGAIN", 2)
    assert_same(read_label_files(path).annotations, wanted)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("where", [0, 7, -1])
def test_a_missing_task_among_rows_in_any_order(order: str, where: int, tmp_path: Path, out_of_core: Path) -> None:
    rows = in_order(order)
    rows[where] = ("\u3000" if where else "", *rows[where][1:])
    path = as_csv(rows, tmp_path)
    with pytest.raises(MissingValuesError, match=rf"1 row has no task \(line {2 + where % len(rows)}\)"):
        read_label_files(path)
    found = read_label_files(path, missing="drop").annotations
    assert_same(found, Annotations.from_arrays(*zip(*rows, strict=True), missing="drop"))


@pytest.mark.parametrize("write", [as_ndjson, as_parquet])
def test_ids_that_are_numbers_stay_numbers(write: Callable[..., Path], tmp_path: Path, out_of_core: Path) -> None:
    rows = [(10 - number // 2, f"w{number % 3}", number % 2) for number in range(12)]
    found = read_label_files(write(rows, tmp_path)).annotations
    assert found.tasks.tolist() == [5, 6, 7, 8, 9, 10]
    assert_same(found, Annotations.from_arrays(*zip(*rows, strict=True)))


@pytest.mark.filterwarnings("ignore:a value and its text are different names")
def test_json_with_ids_of_several_kinds(tmp_path: Path, out_of_core: Path) -> None:
    rows = [(1, "ann", "yes"), ("1", "ann", "no"), (1.0, "bob", "no")]
    found = read_label_files(as_ndjson(rows, tmp_path)).annotations
    assert_same(found, Annotations.from_arrays(*zip(*rows, strict=True)))


@pytest.mark.parametrize("blank", ["", " ", "\u3000\u2003", "\x1f"])
def test_missing_tasks_are_named_by_line_or_left_out(blank: str, tmp_path: Path, out_of_core: Path) -> None:
    rows = [*ROWS[:4], (blank, "ann", "yes"), *ROWS[4:]]
    path = as_csv(rows, tmp_path)
    with pytest.raises(MissingValuesError, match=r"1 row has no task \(line 6\)"):
        read_label_files(path)
    found = read_label_files(path, missing="drop").annotations
    assert_same(found, Annotations.from_arrays(*zip(*rows, strict=True), missing="drop"))
    assert found.n_dropped == 1


@pytest.mark.parametrize("write", [as_csv, as_ndjson])
def test_items_without_votes(write: Callable[..., Path], tmp_path: Path, out_of_core: Path) -> None:
    rows = [*ROWS[:4], ("b", "cy", ""), ("c", "ann", ""), ("0", "", "yes"), *ROWS[4:]]
    path = write(rows, tmp_path)
    found = read_label_files(path, missing="drop", abstain=["not sure"]).annotations
    assert_same(found, Annotations.from_arrays(*zip(*rows, strict=True), missing="drop", abstain=["not sure"]))
    assert found.unanswered.tolist() == ["0", "Z", "c"]
    items = tmp_path / "items.txt"
    items.write_text("\n".join(["new", "7", *dict.fromkeys(task for task, _, _ in ROWS)]), encoding="utf-8")
    crowd = read(path, missing="drop", abstain=["not sure"], items=items, show=["worker"])
    assert isinstance(crowd.annotations.tasks, NamesFile)
    assert crowd.population.tolist() == [*found.tasks.tolist(), "0", "7", "Z", "c", "new"]
    assert len(crowd.shown["worker"]) == len(crowd.population)


@pytest.mark.prove
def test_gold_truth_and_results_are_the_same_as_in_memory(
    tmp_path: Path, out_of_core: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    rows = [
        (f"t{number % 400}", f"w{rng.integers(9)}", "ny"[int(rng.random() < 0.2 + 0.5 * (number % 400 < 60))])
        for number in range(2000)
    ]
    labels, gold, truth = as_csv(rows, tmp_path), tmp_path / "gold.csv", tmp_path / "truth.csv"
    gold.write_text("task,label\nt3,y\nt300,n\n")
    truth.write_text("task,label\n" + "".join(f"t{i},{'y' if i < 60 else 'n'}\n" for i in range(400)) + "gone,y\n")
    written, scores = [], []
    for size, ending in ((0, "csv"), (1 << 40, "csv"), (0, "parquet"), (0, "ndjson"), (0, "xlsx"), (0, "arrow")):
        monkeypatch.setattr(encode_files, "OUT_OF_CORE_BYTES", size)
        out = tmp_path / f"result.{ending}"
        command = ["aggregate", str(labels), "--gold", str(gold), "--truth", str(truth), "--out", str(out), "--json"]
        done = rarevote(*command)
        scores.append(json.loads(done.stdout)["scores"])
        written.append(read_truth_file(out))
    assert len(written[0]) == 400
    assert all(one == written[0] for one in written)
    assert all(one == scores[0] for one in scores)
    assert scores[0]["truth_without_labels"] == 1


def test_results_for_python_carry_the_names(tmp_path: Path, out_of_core: Path) -> None:
    labels = CCRasch().fit(as_csv(ROWS, tmp_path)).labels_.to_dict()
    assert list(labels) == sorted({task for task, _, _ in ROWS})


# --------------------------------------------------------------------------------------------------------------------
# names on disk


def stored(n_names: int) -> NamesFile:
    with connection() as database:
        return NamesFile.written_by(
            database, f"SELECT printf('t%07d', i) AS name FROM range({n_names}) AS numbers(i) ORDER BY i"
        )


def test_stored_names_are_found_taken_and_restricted() -> None:
    n = 300_000  # several row groups
    names, texts = stored(n), [f"t{number:07d}" for number in range(n)]
    assert (len(names), names.size, names.dtype) == (n, n, np.dtype(object))
    assert (names[0], names[-1], names[np.int64(200_000)]) == (texts[0], texts[-1], texts[200_000])
    with pytest.raises(IndexError):
        names[n]
    assert names[[250_000, 3, 3]].tolist() == [texts[250_000], texts[3], texts[3]]
    assert names[1:20_001].tolist() == texts[1:20_001]
    values = ["t0000001", 7, None, "nobody", "t0299999"]
    assert names.find(values).tolist() == positions_of(names.load(), values).tolist() == [1, -1, -1, -1, 299_999]
    used = np.random.default_rng(1).random(n) < 0.3
    left = names.restricted(used)
    assert left.tolist() == np.array(texts, dtype=object)[used].tolist()


def test_columns_are_written_beside_the_right_names(tmp_path: Path) -> None:
    n = 300_000
    out = tmp_path / "result.csv"
    write_columns({"task": stored(n), "number": np.arange(n)}, out)
    lines = out.read_text().splitlines()
    assert lines[0] == "task,number"
    assert lines[1:] == [f"t{number:07d},{number}" for number in range(n)]


def test_files_of_names_go_when_nobody_needs_them(tmp_path: Path, out_of_core: Path) -> None:
    crowd = read_label_files(as_csv(ROWS, tmp_path), abstain=["not sure"]).annotations
    assert [path.name for path in out_of_core.rglob("*.parquet")] == ["names.parquet"]
    del crowd
    gc.collect()
    assert list(out_of_core.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="limits of files are set as POSIX does")
def test_a_full_disk_is_a_clear_error(tmp_path: Path) -> None:
    rows = [(f"task {number:020d}", f"w{number % 7}", "yes") for number in range(60_000)]
    script = (
        "import resource, sys\n"
        "from rarevote.io.read import encode as encode_files\n"
        "encode_files.OUT_OF_CORE_BYTES = 0\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))\n"
        "from rarevote.__main__ import main\n"
        "sys.argv = ['rarevote', 'aggregate', sys.argv[1], '--out', sys.argv[2]]\n"
        "main()\n"
    )
    out = tmp_path / "result.csv"
    done = subprocess.run(
        [sys.executable, "-c", script, str(as_csv(rows, tmp_path)), str(out)],
        capture_output=True,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert "not enough memory or disk" in done.stderr
    assert not out.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["labels.csv"]


def test_a_broken_file_is_named(tmp_path: Path, out_of_core: Path) -> None:
    path = as_parquet(ROWS, tmp_path)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(InputError, match=r"labels\.parquet"):
        read_label_files(path)


def test_several_parquet_files_are_read_in_their_order(tmp_path: Path, out_of_core: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder, rows in zip(folders, (ROWS[:6], ROWS[6:]), strict=True):
        folder.mkdir()
        as_parquet(rows, folder)
    found = read_label_files(folders, keep="last").annotations
    assert_same(found, Annotations.from_arrays(*zip(*ROWS, strict=True), keep="last"))


def test_parquet_files_of_several_types_are_read_too(tmp_path: Path, out_of_core: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    rows = [("7", "ann", "yes"), ("8", "bob", "no")]
    paths = [as_parquet(rows, one), as_parquet([(7, "cy", "yes"), (9, "cy", "no")], two)]
    found = read_label_files(paths).annotations
    assert_same(found, Annotations.from_arrays(["7", "8", "7", "9"], ["ann", "bob", "cy", "cy"], ["yes", "no"] * 2))
