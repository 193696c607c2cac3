from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarevote import Annotations
from rarevote.crowd.encoding import check_same_length, decode_column, distinct_names, encode_column, used_names
from rarevote.crowd.names import as_name_array, positions_of
from rarevote.errors import InputError

texts = st.sampled_from(["a", "b", "B", "", " ", "é", "10", "9"])
numbers = st.one_of(st.integers(-2, 2), st.sampled_from([0.0, -0.0, 1.0, 0.5, math.nan, 2**53 + 1, 2**70]))
gaps = st.sampled_from([None, math.nan, ""])


def is_gap(value: Any) -> bool:
    return value is None or value != value or (isinstance(value, str) and not value.strip())


@given(st.data())
def test_names_are_distinct_whatever_the_dictionary_repeats(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from([texts, numbers, st.one_of(texts, numbers, gaps)]))
    values = data.draw(st.lists(kind, min_size=1, max_size=12))
    codes = np.array(data.draw(st.lists(st.integers(-1, len(values) - 1), max_size=30)), dtype=np.int64)
    meant = [None if code < 0 or is_gap(values[code]) else values[code] for code in codes]

    new, names = distinct_names(codes, as_name_array(values), "label")
    listed = names.tolist()
    assert len(set(listed)) == len(listed)
    assert not any(map(is_gap, listed))
    assert decode_column(new, names) == meant
    assert not any(isinstance(name, float) and math.copysign(1, name) < 0 and name == 0 for name in listed)


@given(st.lists(st.one_of(texts, numbers, gaps, st.dates(), st.tuples(st.integers(0, 2))), max_size=30))
def test_lists_come_back(values: list[Any]) -> None:
    expected = [None if is_gap(value) else value for value in values]
    assert decode_column(*distinct_names(*encode_column(values), "label")) == expected


@given(st.lists(st.one_of(st.integers(-3, 3), st.booleans(), st.floats(0, 1))))
def test_truth_values_and_equal_numbers_are_refused(values: list[Any]) -> None:
    truths = {value for value in values if isinstance(value, bool)}
    equal = truths & {value for value in values if not isinstance(value, bool)}
    if equal:
        with pytest.raises(InputError, match="which are not the same name"):
            distinct_names(*encode_column(values), "label")
    else:
        assert decode_column(*distinct_names(*encode_column(values), "label")) == values


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint64, np.float32, np.float64, bool, "datetime64[D]"])
def test_arrays_of_values_that_repeat(dtype: Any) -> None:
    values = np.array([3, 1, 3, 0, 1, 0]).astype(dtype)
    codes = np.array([0, 1, 2, -1, 3, 4, 5], dtype=np.int16)
    new, names = distinct_names(codes, values, "task")
    assert names.dtype == values.dtype
    assert len(set(names.tolist())) == names.size
    rows = [None if code < 0 else values[code].item() for code in codes]
    assert decode_column(new, names) == rows


def test_a_crowd_of_names_that_repeat() -> None:
    """Unsorted names that repeat used to leave numbers unwritten: any class could come out."""
    codes = np.arange(6)
    pair = codes, as_name_array(["b", "a", "b", "c", "a", "a"])
    crowd = Annotations.from_encoded({"task": pair, "worker": pair, "label": pair})
    assert crowd.tasks.tolist() == crowd.workers.tolist() == crowd.classes.tolist() == ["a", "b", "c"]
    assert crowd.task_ptr.tolist() == [0, 3, 5, 6]
    assert crowd.worker.tolist() == crowd.label.tolist() == [0, 0, 0, 1, 1, 2]


@pytest.mark.parametrize("values", [[1, 2, 3], ["a", "b", "c"], [0.5, 1.5, 2.5], [True, False, True]])
def test_masked_values_are_missing(values: list[Any]) -> None:
    column = np.ma.array(values, mask=[False, True, False])
    codes, names = distinct_names(*encode_column(column), "label")
    assert decode_column(codes, names) == [values[0], None, values[2]]
    assert decode_column(*distinct_names(*encode_column(list(column)), "label")) == [values[0], None, values[2]]
    whole = np.ma.array(values, mask=False)
    assert decode_column(*distinct_names(*encode_column(whole), "label")) == values
    assert decode_column(*distinct_names(*encode_column(np.ma.array([1, 2], mask=True)), "label")) == [None, None]


def test_values_of_numpy_in_lists_are_pythons_own() -> None:
    scalars: list[Any] = [np.int64(3), 3, np.float64(0.5), np.str_("x"), np.float32(-0.0)]
    _, names = distinct_names(*encode_column(scalars), "label")
    assert list(map(repr, names.tolist())) == ["3", "0.5", "'x'", "0.0"]
    _, flags = distinct_names(*encode_column([np.bool_(True), np.bool_(False)]), "label")
    assert flags.dtype == bool


def test_the_integer_is_the_name_of_equal_numbers() -> None:
    for equal in ([1.0, 1], [1, 1.0], [Decimal(1), 1.0, 1]):
        _, names = distinct_names(*encode_column(equal), "label")
        assert repr(names.tolist()) == "[1]"


def test_dates_stay_dates() -> None:
    days: list[Any] = [datetime.date(2026, 1, 2), None, datetime.date(2026, 1, 1)]
    assert decode_column(*distinct_names(*encode_column(days), "task")) == days


def test_unused_names_are_left_out() -> None:
    codes, names = used_names(np.array([3, -1, 1], dtype=np.int8), np.array(["a", "b", "c", "d"]))
    assert codes.tolist() == [1, -1, 0]
    assert names.tolist() == ["b", "d"]
    same = np.array([0, 1, 0])
    assert used_names(same, np.array([5, 6]))[0] is same


def test_lengths() -> None:
    check_same_length({"task": 3, "label": 3})
    with pytest.raises(InputError, match="task and label must have the same length"):
        check_same_length({"task": 3, "label": 2})


def test_positions_know_truth_values() -> None:
    assert positions_of(np.array([0, 1]), [True, 1, False, 0, 2]).tolist() == [-1, 1, -1, 0, -1]
    assert positions_of(np.array([False, True]), [True, 1]).tolist() == [1, -1]
    assert positions_of(as_name_array(["a", "b"]), ["b", "c"]).tolist() == [1, -1]
