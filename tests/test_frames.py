"""Results as frames: the columns of result.csv, in pandas, polars, pyarrow and DuckDB."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import rarevote

VOTES = [
    (7, "ann", "ok"), (7, "bob", "ok"), (9, "ann", "defect"), (9, "cy", "defect"), (9, "bob", "ok"),
    (12, "ann", "ok"), (12, "cy", "ok"),
]  # fmt: skip
FRAME = pd.DataFrame(VOTES, columns=["task", "worker", "label"])


@pytest.fixture(scope="module")
def result() -> rarevote.Result:
    return rarevote.fit(FRAME, "majority-vote").decide()


def rows_of(frame: Any) -> list[list[str]]:
    """Cells as result.csv writes them: six digits of a number."""
    return [[f"{cell:.6g}" if isinstance(cell, float) else str(cell) for cell in row] for row in frame]


def test_every_frame_has_the_cells_of_the_file(result: rarevote.Result, tmp_path: Path) -> None:
    result.write(tmp_path / "result.csv")
    with (tmp_path / "result.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    arrow, polars = result.to_arrow(), result.to_polars()
    frames = {
        "pandas": (list(result.to_pandas().columns), result.to_pandas().itertuples(index=False)),
        "polars": (polars.columns, polars.iter_rows()),
        "arrow": (arrow.column_names, [tuple(row.values()) for row in arrow.to_pylist()]),
    }
    for kind, (names, cells) in frames.items():
        assert list(names) == header, kind
        assert rows_of(cells) == rows, kind


def test_ids_keep_their_types(result: rarevote.Result) -> None:
    assert result.to_pandas()["task"].dtype == FRAME["task"].dtype
    assert result.to_polars().schema["task"] == pl.Int64
    assert result.to_arrow().schema.field("task").type == pa.int64()
    assert len(FRAME.merge(result.to_pandas(), on="task")) == len(FRAME)


def test_categories_of_the_frame_come_back() -> None:
    frame = FRAME.assign(label=FRAME["label"].astype("category"))
    assert rarevote.fit(frame, "majority-vote").decide().to_pandas()["label"].dtype == frame["label"].dtype


def test_libraries_take_a_result_as_it_is(result: rarevote.Result) -> None:
    expected = result.to_polars()
    assert pl.DataFrame(result).equals(expected)
    assert pa.table(result).equals(result.to_arrow())
    assert duckdb.sql("select task from result where label = 'defect'").fetchall() == [(9,)]
    if hasattr(pd.DataFrame, "from_arrow"):
        assert list(pd.DataFrame.from_arrow(result)["task"]) == [7, 9, 12]


def test_mixed_ids_and_items_without_an_answer_become_text() -> None:
    votes = [("a", "ann", 1), ("a", "bob", 1), (7, "ann", 2), (7, "bob", 2)]
    result = rarevote.fit(votes, "majority-vote", items=["a", 7, "b"]).decide()
    for frame in (result.to_polars(), result.to_arrow().to_pandas(), result.to_pandas()):
        assert sorted(frame["task"].to_list() if isinstance(frame, pl.DataFrame) else frame["task"]) == ["7", "a", "b"]
        assert sorted(frame["label"]) == ["", "1", "2"]


def test_several_labels_are_one_frame() -> None:
    rows = [("x", "ann", ["a", "b"]), ("x", "bob", ["a", "b"]), ("y", "ann", []), ("y", "bob", [])]
    each = rarevote.fit_each(
        pd.DataFrame(rows, columns=["task", "worker", "label"]), "majority-vote", multilabel=True
    ).decide()
    frame = each.to_pandas()
    assert list(frame.columns) == list(each.columns())
    assert set(frame["task"]) == {"x:a", "y:a", "x:b", "y:b"}
    assert pa.table(each).shape == each.to_polars().shape == frame.shape


def test_labels_come_back_in_kind() -> None:
    fitted = rarevote.fit(FRAME, "majority-vote")
    assert isinstance(fitted.labels_, pd.Series)
    assert fitted.labels_.to_dict() == {7: "ok", 9: "defect", 12: "ok"}
    assert isinstance(rarevote.fit(pl.DataFrame(FRAME), "majority-vote").labels_, pl.DataFrame)


def test_the_published_posterior_is_there_when_asked_for(result: rarevote.Result) -> None:
    frame = result.to_pandas(with_posterior=True)
    np.testing.assert_allclose(frame["posterior:defect"], [0, 2 / 3, 0])
