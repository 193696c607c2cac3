"""Crowds written to files: what comes back, and what is left when something goes wrong."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from rarevote.errors import InputError, ParameterError
from rarevote.simulate.crowds import SimulatedCrowd, simulate_cc_rasch, simulate_chunks, simulate_crowd
from rarevote.simulate.files import write_crowd


def read(path: Path) -> list[tuple[str, ...]]:
    """Read a table of text by other means than those that wrote it: header first, then rows."""
    if path.suffix == ".parquet":
        result = duckdb.sql(f"SELECT * FROM read_parquet('{path}')")
        assert set(map(str, result.types)) == {"VARCHAR"}
        return [tuple(result.columns), *result.fetchall()]
    with path.open(encoding="utf-8", newline="") as file:
        return [tuple(row) for row in csv.reader(file)]


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_files_hold_the_crowd_row_for_row(tmp_path: Path, format: Any) -> None:
    crowd = simulate_crowd(25_000, 12, votes_per_task=2, random_state=4)
    chunks = simulate_chunks(25_000, 12, votes_per_task=2, random_state=4, chunk_tasks=10_000)
    seen: list[tuple[int, int]] = []

    files = write_crowd(tmp_path / "out" / "crowd", chunks, format=format, progress=lambda *totals: seen.append(totals))

    assert files.labels == tmp_path / "out" / "crowd" / f"labels.{format}"
    assert sorted(path.name for path in files.labels.parent.iterdir()) == [
        f"labels.{format}",
        f"truth.{format}",
        "workers.csv",
    ]
    header, *rows = read(files.labels)
    assert header == ("task", "worker", "label")
    assert rows == [
        (f"task-{task:012d}", f"worker-{worker:05d}", str(label))
        for task, worker, label in zip(*(column.tolist() for column in crowd.arrays), strict=True)
    ]
    header, *rows = read(files.truth)
    assert header == ("task", "label")
    assert rows == [(f"task-{task:012d}", str(label)) for task, label in enumerate(crowd.truth.tolist())]
    assert (files.n_tasks, files.n_annotations) == (25_000, crowd.n_annotations)
    assert [n_tasks for n_tasks, _ in seen] == [10_000, 20_000, 25_000]
    assert seen[-1] == (files.n_tasks, files.n_annotations)


def test_workers_file(tmp_path: Path) -> None:
    crowd = simulate_crowd(20, 8, random_state=0)
    assert crowd.worker_type is not None
    files = write_crowd(tmp_path, [crowd], class_names=["sound", "defect, small"])
    header, *rows = read(files.workers)
    assert header == ("worker", "type", "accuracy:sound", "accuracy:defect, small")
    assert [row[0] for row in rows] == [f"worker-{worker:05d}" for worker in range(8)]
    assert [row[1] for row in rows] == crowd.worker_type.tolist()
    np.testing.assert_allclose(np.array([row[2:] for row in rows], dtype=float), crowd.accuracy)


def test_workers_of_a_cc_rasch_crowd_have_no_type(tmp_path: Path) -> None:
    crowd = simulate_cc_rasch(20, 3, n_classes=3, random_state=0)
    _, *rows = read(write_crowd(tmp_path, [crowd]).workers)
    assert [row[1] for row in rows] == ["", "", ""]
    np.testing.assert_allclose(np.array([row[2:] for row in rows], dtype=float), crowd.accuracy, rtol=1e-5)


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_awkward_names_survive(tmp_path: Path, format: Any) -> None:
    crowd = simulate_crowd(30, 4, n_classes=4, random_state=0)
    classes = ["NULL", 'the "big" one', "a,b", " née "]
    files = write_crowd(
        tmp_path,
        [crowd],
        format=format,
        task_name=lambda number: f"bild, {number + 1}",
        worker_name="{:d}",
        class_names=classes,
    )
    _, *rows = read(files.labels)
    assert rows == [
        (f"bild, {task + 1}", str(worker), classes[label])
        for task, worker, label in zip(*(column.tolist() for column in crowd.arrays), strict=True)
    ]
    _, *truth = read(files.truth)
    assert [label for _, label in truth] == [classes[label] for label in crowd.truth]


def breaking_off() -> Iterator[SimulatedCrowd]:
    yield simulate_crowd(10, 3, random_state=0)
    raise RuntimeError("the source broke off")


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_a_failure_in_the_middle_leaves_nothing(tmp_path: Path, format: Any) -> None:
    with pytest.raises(RuntimeError, match="broke off"):
        write_crowd(tmp_path / "new", breaking_off(), format=format)
    assert list(tmp_path.iterdir()) == []


def test_a_failure_leaves_older_files_as_they_were(tmp_path: Path) -> None:
    files = write_crowd(tmp_path, [simulate_crowd(10, 3, random_state=1)])
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(RuntimeError, match="broke off"):
        write_crowd(tmp_path, breaking_off())
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    write_crowd(tmp_path, [simulate_crowd(10, 3, random_state=2)])
    assert files.labels.read_bytes() != before["labels.csv"]


def test_a_failure_while_making_parquet_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise duckdb.OutOfMemoryException("no memory")

    monkeypatch.setattr(duckdb, "connect", fail)
    with pytest.raises(duckdb.OutOfMemoryException):
        write_crowd(tmp_path, [simulate_crowd(10, 3, random_state=1)], format="parquet")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "xlsx"}, "format must be csv or parquet, not 'xlsx'"),
        ({"task_name": "task"}, "task_name gives the same name twice"),
        ({"task_name": "{}{}"}, "task_name cannot turn a number into a name"),
        ({"task_name": "{task}"}, "task_name cannot turn a number into a name"),
        ({"worker_name": lambda number: "x" * number}, "worker_name gives an empty name"),
        ({"worker_name": "w\n{}"}, "worker_name gives a name with a line break"),
        ({"class_names": ["one"]}, "class_names has 1 names, but the crowd has 2 classes"),
        ({"class_names": ["one", "one"]}, "class_names gives the same name twice"),
    ],
)
def test_bad_options_are_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        write_crowd(tmp_path / "new", [simulate_crowd(10, 3, random_state=1)], **options)
    assert list(tmp_path.iterdir()) == []


def test_no_chunk_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no chunk"):
        write_crowd(tmp_path / "new", [])
    assert list(tmp_path.iterdir()) == []
