from __future__ import annotations

import datetime
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarevote import Annotations
from rarevote.crowd.encoding import encode_column
from rarevote.crowd.names import sort_labels
from rarevote.errors import InputError, MissingValuesError, ParameterError


def rows_of(crowd: Annotations) -> list[tuple[Any, Any, Any]]:
    task = crowd.task_of_annotation()
    return [
        (crowd.tasks[t], crowd.workers[w], crowd.classes[y])
        for t, w, y in zip(task, crowd.worker, crowd.label, strict=True)
    ]


names = st.one_of(st.integers(-5, 5), st.text(min_size=1, max_size=3).filter(str.strip), st.tuples(st.integers(0, 3)))


@pytest.mark.filterwarnings("ignore:a value and its text are different names")
@given(st.lists(st.tuples(names, names, names), max_size=40))
def test_rows_come_back_as_given(rows: list[tuple[Any, Any, Any]]) -> None:
    crowd = Annotations.from_arrays(*([row[i] for row in rows] for i in range(3)))
    assert Counter(rows_of(crowd)) == Counter(rows)
    assert crowd.n_tasks == len({row[0] for row in rows})


@pytest.mark.parametrize(
    "column",
    [
        np.array([3, 1, 3, 900_000_000_000]),
        np.array([3, 1, 2], dtype=np.int8),
        np.array([2**63 + 1, 5], dtype=np.uint64),
        np.array([-(2**63), 2**63 - 1]),
        np.array([True, False, True]),
        np.array([True, True]),
        np.array([0.5, -1.0, 0.5]),
        np.array(["b", "a", "b"]),
        np.array(["2020-01-02", "2019-01-01"], dtype="datetime64[D]"),
        np.array([1, "1", (2,), None], dtype=object),
    ],
    ids=str,
)
def test_encoding_inverts(column: np.ndarray[Any, Any]) -> None:
    codes, values = encode_column(column)
    assert values[codes].tolist() == column.tolist()
    assert len(set(values.tolist())) == len(values)


def test_integers_stay_integers_and_text_stays_text() -> None:
    crowd = Annotations.from_arrays([10, 9], ["007", "8"], ["1", "0"])
    assert crowd.tasks.tolist() == [9, 10]
    assert crowd.tasks.dtype == np.int64
    assert crowd.workers.tolist() == ["007", "8"]
    assert crowd.classes.tolist() == ["0", "1"]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["10", "9", "-1"], ["-1", "9", "10"]),
        (["10", "9", "x"], ["10", "9", "x"]),
        ([10, 9, 1.5], [1.5, 9, 10]),
        (["b", 2, "a", 1], [1, 2, "a", "b"]),
        ([(1,), "a", 3], [3, "a", (1,)]),
        ([None, "a"], [None, "a"]),
        ([1j, 2], [1j, 2]),
        (["01", "1"], ["01", "1"]),
    ],
)
def test_order_of_labels(labels: list[Any], expected: list[Any]) -> None:
    assert sort_labels(labels) == expected
    assert sort_labels(labels[::-1]) == expected


def test_labels_of_thousands_of_digits_are_text() -> None:
    digits = "9" * 5_000
    assert sort_labels(["10", digits, "9"]) == ["10", "9", digits]
    assert Annotations.from_arrays(["a", "b"], ["x", "x"], ["1", digits]).classes.tolist() == ["1", digits]


def test_votes_of_a_task_keep_their_order() -> None:
    crowd = Annotations.from_arrays([1, 0, 1, 0, 1], ["e", "d", "c", "b", "a"], [0, 1, 0, 1, 1])
    assert [crowd.workers[w] for w in crowd.worker] == ["d", "b", "e", "c", "a"]
    assert crowd.task_ptr.tolist() == [0, 2, 5]


def test_arrays_cannot_be_changed() -> None:
    crowd = Annotations.from_arrays([0], [0], [0])
    for array in (crowd.task_ptr, crowd.worker, crowd.label):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(AttributeError):
        crowd.worker = crowd.label  # type: ignore[misc]


def test_rows_left_out_are_counted() -> None:
    tasks: list[Any] = [1, 1, 2, None]
    crowd = Annotations.from_arrays(tasks, ["a"] * 4, ["x", "y", "x", "x"], missing="drop", keep="last")
    assert crowd.n_dropped == 2
    fields = ("task_ptr", "worker", "label", "tasks", "workers", "classes")
    assert Annotations(*(getattr(crowd, name) for name in fields)).n_dropped == 0


def test_smallest_types() -> None:
    crowd = Annotations.from_arrays(np.arange(70_000), np.arange(70_000), np.arange(70_000) % 300)
    assert crowd.worker.dtype == np.uint32
    assert crowd.label.dtype == np.uint16
    small = Annotations.from_arrays([0, 1], [0, 1], [0, 1])
    assert small.worker.dtype == small.label.dtype == np.uint8


# -- policies ---------------------------------------------------------------------------------------------------------

REPEATS = ([1, 1, 2, 1], ["a", "b", "a", "a"], ["x", "y", "y", "z"])


@pytest.mark.parametrize(
    ("keep", "expected"),
    [
        ("all", [(1, "a", "x"), (1, "b", "y"), (1, "a", "z"), (2, "a", "y")]),
        ("first", [(1, "a", "x"), (1, "b", "y"), (2, "a", "y")]),
        ("last", [(1, "b", "y"), (1, "a", "z"), (2, "a", "y")]),
    ],
)
def test_repeated_pairs(keep: Any, expected: list[tuple[int, str, str]]) -> None:
    crowd = Annotations.from_arrays(*REPEATS, keep=keep)
    assert rows_of(crowd) == expected
    assert crowd.n_dropped == 4 - len(expected)


def test_repeated_pairs_can_be_refused() -> None:
    with pytest.raises(InputError, match=r"1 row repeats an earlier \(task, worker\) pair: \(1, a\)"):
        Annotations.from_arrays(*REPEATS, keep="error")
    Annotations.from_arrays([1, 2], ["a", "a"], ["x", "x"], keep="error")


@pytest.mark.parametrize("gap", [None, float("nan"), "", "  ", np.datetime64("NaT")])
@pytest.mark.parametrize("role", [0, 1, 2])
def test_missing_values_are_refused_or_dropped(gap: Any, role: int) -> None:
    columns: list[list[Any]] = [["t1", "t2", "t1"], ["a", "b", "c"], ["x", "y", "x"]]
    columns[role][1] = gap
    with pytest.raises(MissingValuesError, match=r"1 row has no (task|worker|label) \(rows 1\)"):
        Annotations.from_arrays(*columns)
    crowd = Annotations.from_arrays(*columns, missing="drop")
    assert crowd.n_annotations == 2
    assert crowd.n_dropped == 1
    assert crowd.classes.tolist() == ["x"] if role == 2 else ["x", "y"]


def test_missing_floats() -> None:
    with pytest.raises(MissingValuesError, match=r"2 rows have no label \(rows 0, 2\)"):
        Annotations.from_arrays([1, 2, 3], [1, 2, 3], np.array([np.nan, 1.0, np.nan]))


def test_many_missing_values_are_counted_and_the_first_named() -> None:
    with pytest.raises(MissingValuesError, match=r"9 rows have no label \(rows 0, 1, 2, 3, 4, ...\)"):
        Annotations.from_arrays(range(9), range(9), [""] * 9)


def test_abstentions_are_no_votes_but_counted() -> None:
    crowd = Annotations.from_arrays(
        [1, 1, 2, 3], ["a", "b", "a", "a"], ["x", "not sure", "not sure", "y"], abstain=["not sure"]
    )
    assert crowd.classes.tolist() == ["x", "y"]
    assert crowd.abstentions == {"a": 1, "b": 1}
    assert crowd.unanswered.tolist() == [2]
    assert crowd.tasks.tolist() == [1, 3]
    assert crowd.workers.tolist() == ["a"]


def test_abstain_takes_a_single_label_too() -> None:
    assert Annotations.from_arrays([1, 1], ["a", "b"], ["x", "?"], abstain="?").n_annotations == 1


def test_classes_nobody_voted_for() -> None:
    crowd = Annotations.from_arrays([1], ["a"], ["b"], classes=["c", "a", "b"])
    assert crowd.classes.tolist() == ["a", "b", "c"]
    assert crowd.label.tolist() == [1]
    with pytest.raises(ParameterError, match="missing value"):
        Annotations.from_arrays([1], ["a"], ["b"], classes=[None])


def test_nothing_at_all() -> None:
    crowd = Annotations.from_arrays([], [], [])
    assert (crowd.n_tasks, crowd.n_workers, crowd.n_classes, crowd.n_annotations) == (0, 0, 0, 0)
    assert crowd.votes().shape == (0, 0)


# -- bad input --------------------------------------------------------------------------------------------------------


def test_too_many_classes() -> None:
    many = np.arange(65_536)
    with pytest.raises(InputError, match="65,536 distinct labels"):
        Annotations.from_arrays(many, many, many)
    Annotations.from_arrays(many[1:], many[1:], many[1:])


def test_columns_of_different_length() -> None:
    with pytest.raises(InputError, match="same length"):
        Annotations.from_arrays([1, 2], [1], [1, 2])


def test_series_in_another_order() -> None:
    frame = pd.DataFrame({"task": [1, 1, 2], "worker": ["a", "b", "a"], "label": ["x", "y", "y"]})
    crowd = Annotations.from_arrays(frame["task"], frame["worker"], frame["label"])
    assert rows_of(crowd) == [(1, "a", "x"), (1, "b", "y"), (2, "a", "y")]
    with pytest.raises(InputError, match="the index of label is not that of task: rows in another order"):
        Annotations.from_arrays(frame["task"], frame["worker"], frame["label"].iloc[::-1])


def test_two_dimensional_columns() -> None:
    with pytest.raises(InputError, match="one-dimensional"):
        Annotations.from_arrays(np.zeros((2, 2)), [1, 2], [1, 2])


def test_unhashable_names() -> None:
    with pytest.raises(InputError, match="not hashable"):
        Annotations.from_arrays([[1], [2]], [1, 2], [1, 2])


@pytest.mark.parametrize("option", [{"keep": "some"}, {"missing": "ignore"}])
def test_unknown_policies(option: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        Annotations.from_arrays([1], [1], [1], **option)


def test_dates_are_names_like_any_other() -> None:
    day: Any = datetime.date(2026, 1, 2)
    assert Annotations.from_arrays([day], [day], [day]).tasks[0] == day
