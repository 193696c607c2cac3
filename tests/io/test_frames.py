from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from rarevote import CCRasch, MajorityVote
from rarevote.errors import ColumnsError, InputError, MissingValuesError, ParameterError
from rarevote.io.read.columns import find_columns
from rarevote.io.read.crowd import read
from rarevote.io.read.frames import _index_hint, read_annotations, read_truth
from rarevote.io.read.options import ReadArguments, ReadOptions
from rarevote.io.read.series import encode_values

COLUMNS: dict[str, list[Any]] = {
    "task": ["007", "007", "8", "8", "8"],
    "worker": [3, 1, 1, 3, 2],
    "label": ["no", "yes", "yes", "yes", "no"],
}


class OnlyAnArrowStream:
    """What a query engine hands over: no frame, just the stream."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def relation() -> Any:
    table = pa.table(COLUMNS)
    return duckdb.from_arrow(table)  # type: ignore[no-untyped-call, unused-ignore]


SOURCES: dict[str, Callable[[], Any]] = {
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "pandas of objects": lambda: pd.DataFrame(COLUMNS).astype(object),
    "pandas categories": lambda: pd.DataFrame(COLUMNS).astype("category"),
    "pandas on arrow": lambda: pd.DataFrame(COLUMNS).convert_dtypes(dtype_backend="pyarrow"),
    "polars": lambda: pl.DataFrame(COLUMNS),
    "polars lazy": lambda: pl.LazyFrame(COLUMNS),
    "polars categories": lambda: pl.DataFrame(COLUMNS).with_columns(pl.col("task", "label").cast(pl.Categorical)),
    "pyarrow": lambda: pa.table(COLUMNS),
    "pyarrow in chunks": lambda: pa.concat_tables([pa.table(COLUMNS).slice(0, 2), pa.table(COLUMNS).slice(2)]),
    "pyarrow dictionaries": lambda: pa.table({k: pa.array(v).dictionary_encode() for k, v in COLUMNS.items()}),
    "narwhals": lambda: nw.from_native(pl.DataFrame(COLUMNS)),
    "arrow stream": lambda: OnlyAnArrowStream(pa.table(COLUMNS)),
    "duckdb": relation,
    "mapping": lambda: COLUMNS,
    "tuple": lambda: tuple(COLUMNS.values()),
    "arrays": lambda: tuple(np.array(column) for column in COLUMNS.values()),
}


@pytest.mark.parametrize("source", SOURCES)
def test_every_source_gives_the_same_crowd(source: str) -> None:
    crowd, _ = read_annotations(SOURCES[source]())
    assert crowd.tasks.tolist() == ["007", "8"]
    assert crowd.workers.tolist() == [1, 2, 3]
    assert crowd.classes.tolist() == ["no", "yes"]
    assert crowd.task_ptr.tolist() == [0, 2, 5]
    assert crowd.worker.tolist() == [2, 0, 0, 2, 1]
    assert crowd.label.tolist() == [0, 1, 1, 1, 0]


def test_pandas_comes_back_in_crowd_kits_layouts() -> None:
    model = CCRasch().fit(pd.DataFrame(COLUMNS))
    labels = model.labels_
    assert isinstance(labels, pd.Series)
    assert labels.name == "agg_label"
    assert labels.index.name == "task"
    assert labels.index.tolist() == ["007", "8"]
    probas = model.probas_
    assert (probas.index.name, probas.columns.name) == ("task", "label")
    assert probas.columns.tolist() == ["no", "yes"]
    np.testing.assert_allclose(probas.to_numpy(), model.posterior_)
    assert model.abilities_.index.name == "worker"
    assert model.abilities_.index.dtype == np.int64
    assert model.difficulties_.shape == (2, 2)
    assert model.mu_alpha_.index.tolist() == ["no", "yes"]
    assert MajorityVote().fit(pd.DataFrame(COLUMNS)).skills_.name == "skill"


@pytest.mark.parametrize("dtype", ["int64", "Int64", "float64", "bool", "category", object, "string"])
def test_pandas_label_types_survive(dtype: Any) -> None:
    frame = pd.DataFrame({"task": [1, 1, 2], "worker": ["a", "b", "a"], "label": [1, 0, 1]})
    frame["label"] = frame["label"].astype(dtype)
    labels = MajorityVote().fit(frame).labels_
    assert labels.tolist() == [frame["label"].iloc[1], frame["label"].iloc[0]]
    assert labels.dtype == frame["label"].dtype


def test_polars_and_pyarrow_come_back_in_kind() -> None:
    from_polars = CCRasch().fit(pl.DataFrame(COLUMNS))
    assert isinstance(from_polars.labels_, pl.DataFrame)
    assert from_polars.labels_.columns == ["task", "agg_label"]
    assert from_polars.labels_["task"].to_list() == ["007", "8"]
    assert from_polars.abilities_.columns == ["worker", "no", "yes"]
    assert from_polars.abilities_["worker"].dtype == pl.Int64
    from_arrow = CCRasch().fit(pa.table(COLUMNS))
    assert isinstance(from_arrow.labels_, pa.Table)
    assert from_arrow.labels_.column_names == ["task", "agg_label"]
    assert from_arrow.probas_.column_names == ["task", "no", "yes"]


def test_arrays_give_a_table_that_turns_into_anything() -> None:
    model = MajorityVote().fit(tuple(COLUMNS.values()))
    labels = model.labels_
    assert labels.to_dict() == {"007": "no", "8": "yes"}
    assert list(labels) == [("007", "no"), ("8", "yes")]
    assert labels.to_pandas().equals(MajorityVote().fit(pd.DataFrame(COLUMNS)).labels_)
    assert labels.to_polars().equals(pl.DataFrame({"task": ["007", "8"], "agg_label": ["no", "yes"]}))
    assert labels.to_arrow().column_names == ["task", "agg_label"]
    assert pa.table(labels).num_rows == 2
    assert model.probas_.to_dict()["8"] == pytest.approx({"no": 1 / 3, "yes": 2 / 3})
    assert repr(labels) == "task  agg_label\n007   no\n8     yes"


def test_html_escapes_what_the_data_say() -> None:
    model = MajorityVote().fit((["<script>"], ["a"], ["x&y"]))
    shown = model.labels_._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
    assert "x&amp;y" in shown


@pytest.mark.parametrize("source", ["pandas", "polars", "pyarrow"])
def test_missing_values_in_frames(source: str) -> None:
    columns = {**COLUMNS, "label": ["no", None, "yes", "yes", None]}
    frame = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}[source](columns)
    with pytest.raises(MissingValuesError, match=r"2 rows have no label \(rows 1, 4\)"):
        MajorityVote().fit(frame)
    assert MajorityVote().fit(frame, missing="drop").annotations_.n_annotations == 3


@pytest.mark.parametrize(
    "columns",
    [
        ("item", "annotator", "answer"),
        ("question", "rater", "response"),
        ("taskId", "workerId", "answer"),
        ("Task ID", "Worker_Id", "Label"),
        ("object", "user", "rating"),
        ("task", "performer", "label"),
    ],
)
def test_usual_column_names(columns: tuple[str, str, str]) -> None:
    frame = pd.DataFrame(dict(zip(columns, COLUMNS.values(), strict=True)))
    frame["comment"] = "-"
    assert MajorityVote().fit(frame).labels_.tolist() == ["no", "yes"]


@pytest.mark.parametrize(
    "header",
    ["worker,task,answer", "workerID,taskID,response,goldLabel", "worker,object,label",
     "taskId,tasksetId,workerId,answer,completeTime,truth,capability"],
)  # fmt: skip
def test_tables_as_other_packages_write_them(header: str) -> None:
    names = header.split(",")
    found = find_columns(names)
    assert found == {
        "task": next(name for name in names if name.lower() in ("task", "taskid", "object")),
        "worker": next(name for name in names if name.lower() in ("worker", "workerid")),
        "label": next(name for name in names if name in ("answer", "response", "label")),
    }


def test_explicit_columns() -> None:
    frame = pd.DataFrame({"picture": COLUMNS["task"], "who": COLUMNS["worker"], "label": COLUMNS["label"]})
    model = MajorityVote().fit(frame, columns={"task": "picture", "worker": "who"})
    assert model.labels_.index.name == "task"
    with pytest.raises(ColumnsError, match=r"no column for task or worker; it has 'picture', 'who', 'label'.*columns="):
        MajorityVote().fit(frame)
    with pytest.raises(ColumnsError, match="no column 'image'"):
        MajorityVote().fit(frame, columns={"task": "image"})
    with pytest.raises(ParameterError, match="columns= accepts"):
        MajorityVote().fit(frame, columns={"who": "who"})


def test_ambiguous_columns() -> None:
    frame = pd.DataFrame({"item": [1], "image": [2], "worker": [1], "label": [1]})
    said = "several columns that could be the task: 'item', 'image'. Say which: "
    said += "columns={'task': 'item', 'worker': 'worker', 'label': 'label'}"
    with pytest.raises(ColumnsError, match=re.escape(said)):
        MajorityVote().fit(frame)


@pytest.mark.parametrize("data", [42, object(), [1, 2], None])
def test_things_that_hold_no_annotations(data: Any) -> None:
    with pytest.raises(InputError, match="cannot read annotations"):
        MajorityVote().fit(data)


def test_empty_frame_gives_empty_results() -> None:
    model = CCRasch().fit(pd.DataFrame({"task": [], "worker": [], "label": []}))
    assert len(model.labels_) == 0
    assert model.labels_.name == "agg_label"
    assert model.probas_.shape[0] == 0
    assert model.n_iter_ == 0


@pytest.mark.parametrize(
    "truth",
    [
        {"007": "no", "8": "yes"},
        pd.Series({"007": "no", "8": "yes"}),
        pd.DataFrame({"task": ["007", "8"], "truth": ["no", "yes"]}),
        pl.DataFrame({"item": ["007", "8"], "label": ["no", "yes"]}),
        (["007", "8"], ["no", "yes"]),
        (np.array(["007", "8"]), np.array(["no", "yes"])),
    ],
    ids=["dict", "series", "pandas", "polars", "lists", "arrays"],
)
def test_truth_in_many_forms(truth: Any) -> None:
    assert read_truth(truth) == {"007": "no", "8": "yes"}


def test_contradicting_truth() -> None:
    with pytest.raises(InputError, match="has two labels"):
        read_truth((["a", "a"], ["x", "y"]))


def test_a_role_that_there_is_not() -> None:
    with pytest.raises(ParameterError, match=r"^columns= accepts task, worker, label; got job, tsk$"):
        find_columns(list(COLUMNS), {"tsk": "task", "job": "task"})


def test_rows_as_dicts_may_lack_keys() -> None:
    crowd, _ = read_annotations([{"task": 1, "worker": "a", "label": "x"}, {"task": 2, "label": "y", "worker": "a"}])
    assert (crowd.tasks.tolist(), crowd.classes.tolist()) == ([1, 2], ["x", "y"])
    with pytest.raises(MissingValuesError, match="1 row has no label"):
        read_annotations([{"task": 1, "worker": "a", "label": "x"}, {"task": 2, "worker": "a"}])
    assert read_annotations([])[0].n_annotations == 0


def test_an_index_with_a_name_may_be_a_column() -> None:
    frame = nw.from_native(pd.DataFrame({"x": [1]}, index=pd.Index([1], name="task")))
    assert _index_hint(frame) == ". The index has 'task': reset_index() turns it into columns"
    assert _index_hint(nw.from_native(pd.DataFrame({"x": [1]}))) == ""


def test_a_column_of_nulls_has_no_names() -> None:
    codes, names = encode_values(pa.nulls(2), "the labels")
    assert (codes.tolist(), names.tolist()) == ([-1, -1], [])


def test_no_argument_of_read_is_required() -> None:
    assert ReadArguments.__required_keys__ == frozenset()
    assert ReadOptions().given("wide", "sheet") is None


def test_a_crowd_says_how_many_items_have_no_votes() -> None:
    rows = [("a", "u", "x"), ("b", "u", "y")]
    assert repr(read(rows)) == "Crowd(your data: 2 tasks, 1 workers, 2 classes, 2 annotations)"
    listed = repr(read(rows, items=["a", "b", "c"]))
    assert listed == "Crowd(your data: 2 tasks, 1 workers, 2 classes, 2 annotations, 1 item without votes)"


def test_truth_has_its_tasks_where_the_votes_have_them() -> None:
    columns = {"task": "picture", "worker": "worker", "label": "label"}
    crowd = read({"picture": ["p", "q"], "worker": [1, 1], "label": ["x", "y"]}, columns=columns)
    truth = pd.DataFrame({"item": [1, 2], "picture": ["p", "q"], "label": ["x", "x"]})
    assert crowd.known(truth) == {"p": "x", "q": "x"}
