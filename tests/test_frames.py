"""Results as frames: the columns of result.csv, in pandas, polars, pyarrow and DuckDB."""

from __future__ import annotations

import csv
from enum import Enum
from fractions import Fraction
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


# --------------------------------------------------------------------------------------------------------------------
# names that frames do not have a type for


quietly = pytest.mark.filterwarnings("ignore::rarevote.errors.RarevoteWarning")  # so few votes decide nothing
T, W, L = ["a", "a", "b", "b", "c", "c"], ["x", "y"] * 3, ["no", "yes", "no", "no", "yes", "yes"]


@quietly
@pytest.mark.parametrize("ordered", [False, True])
def test_new_names_become_categories(ordered: bool) -> None:
    kind = pd.CategoricalDtype(["yes", "no"], ordered=ordered)
    frame = pd.DataFrame({"task": T, "worker": W, "label": pd.Series(L, dtype=kind)}).astype({"task": "category"})
    with pytest.warns(rarevote.errors.RarevoteWarning, match="gold contains classes without votes: 'other'"):
        fitted = rarevote.fit(frame, gold={"a": "other"}, items=["a", "b", "c", "z"])
    assert fitted.labels_["a"] == "other"
    table = fitted.decide().to_pandas()
    assert table["task"].tolist() == ["a", "b", "c", "z"]
    assert table["label"][0] == "other"
    assert table["label"].cat.categories.tolist() == ["yes", "no", "other"]
    assert pd.isna(table["label"][3])  # no answer is not a category
    named = rarevote.MajorityVote().fit(frame, classes=["yes", "no", "maybe"])
    assert named.probas_.columns.tolist() == ["maybe", "no", "yes"]


class Kind(Enum):
    ONE = 1
    TWO = 2


AS_TEXT: dict[str, list[Any]] = {
    "enums": [Kind.ONE, Kind.TWO, Kind.TWO],
    "fractions": [Fraction(1, 3), Fraction(2, 3), Fraction(2, 3)],
    "complex": [1j, 2j, 2j],
}
AS_TEXT_IN_ARROW: dict[str, list[Any]] = {
    "intervals": list(pd.interval_range(0, 3)),
    "periods": list(pd.period_range("2020", periods=3, freq="M")),
    "integers of 70 bits": [2**70, 2**70 + 1, 2**70 + 1],
}


@pytest.mark.parametrize("name", [*AS_TEXT, *AS_TEXT_IN_ARROW])
@quietly
def test_ids_without_a_type_in_a_frame_are_text(name: str) -> None:
    ids = {**AS_TEXT, **AS_TEXT_IN_ARROW}[name]
    result = rarevote.fit((ids, ["x", "x", "y"], ["a", "b", "b"]), "majority-vote").decide()
    expected = list(map(str, result.tasks.tolist()))
    assert result.to_arrow()["task"].to_pylist() == expected
    assert list(map(str, result.to_polars()["task"])) == expected
    if name in AS_TEXT:
        assert result.to_polars().schema["task"] == pl.String
    assert list(map(str, result.to_pandas()["task"])) == expected


@quietly
def test_integers_of_64_bits_without_a_sign() -> None:
    ids = [2**63, 2**64 - 1, 2**63]
    result = rarevote.fit((ids, ["x", "x", "y"], ["a", "b", "b"]), "majority-vote").decide()
    assert result.to_arrow()["task"].to_pylist() == result.to_polars()["task"].to_list() == sorted(set(ids))


@quietly
def test_tuples_are_ids_in_pandas() -> None:
    frame = pd.DataFrame({"task": [(1, 2), (1, 2), (3, 4)], "worker": ["x", "y", "x"], "label": ["a", "a", "b"]})
    fitted = rarevote.fit(frame, "majority-vote")
    assert fitted.labels_.to_dict() == {(1, 2): "a", (3, 4): "b"}
    assert fitted.decide().to_pandas()["task"].tolist() == [(1, 2), (3, 4)]


@quietly
def test_half_precision_comes_back_as_numbers() -> None:
    half = np.array([0, 0, 1.5, 1.5, 2, 2], dtype=np.float16)
    fitted = rarevote.fit(pd.DataFrame({"task": half, "worker": W, "label": L}), "majority-vote")
    assert fitted.labels_.index.tolist() == fitted.decide().to_pandas()["task"].tolist() == [0.0, 1.5, 2.0]


@quietly
@pytest.mark.parametrize("way", ["to_polars", "to_arrow", "to_pandas"])
def test_text_that_is_not_unicode_is_refused_by_frames(way: str) -> None:
    result = rarevote.fit((["\ud800", "\ud800", "b"], ["x", "y", "x"], ["a", "a", "b"]), "majority-vote").decide()
    if way == "to_pandas" and pd.Series(["a"]).dtype == object:
        pytest.skip("this pandas has text as objects")
    with pytest.raises(rarevote.errors.InputError, match=r"a frame cannot store the name .*ud800.*replace such"):
        getattr(result, way)()
