"""Small helpers by hand: sums, shares, names in messages, names that users type, and arguments."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from math import inf, log, nan
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import rarevote
from rarevote.audit import Audit
from rarevote.crowd.arguments import check_count
from rarevote.crowd.grades import Grades
from rarevote.crowd.names import as_name_array, in_kind, some_names
from rarevote.crowd.numerics import dot, finite_or_none, log_prior_from_mass
from rarevote.errors import InputError, ParameterError, RarevoteWarning
from rarevote.page.lines import pace


def test_sums_and_shares() -> None:
    assert dot(np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])) == 32.0
    assert [finite_or_none(value) for value in (0.5, nan, inf, -inf)] == [0.5, None, None, None]
    assert log_prior_from_mass(np.array([3.0, 1.0])).tolist() == pytest.approx([log(0.75), log(0.25)])
    assert log_prior_from_mass(np.zeros(4)).tolist() == pytest.approx([log(0.25)] * 4)  # nothing is known


def test_a_message_lists_twelve_names() -> None:
    assert some_names(range(12)) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11"
    assert some_names(range(13)) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, ..."


@pytest.mark.parametrize(
    ("given", "known", "expected"),
    [
        ([3, 7], [1, 3], [3, 7]),
        (["3", 7], [1, 3], [3, 7]),
        (["7", "x"], [1, 3], [7, "x"]),
        ([3, 7], ["1", "3"], ["3", "7"]),
        (["TRUE", "False"], ["True", "x"], ["True", "False"]),
        (["true", "FALSE"], [True, False], [True, False]),
        (["false"], [True], [False]),
        (["2", "a"], [2, "a"], [2, "a"]),
        (["007", "1_0", "+7", "-3"], [7, 10], ["007", "1_0", "+7", -3]),  # other names, as they are among texts
        (["1_0", "2.50"], [10.0, 0.5], ["1_0", 2.5]),
    ],
)
def test_names_that_users_type(given: list[Any], known: list[Any], expected: list[Any]) -> None:
    assert list(map(repr, in_kind(given, as_name_array(known)))) == list(map(repr, expected))


@pytest.mark.parametrize(
    ("tasks", "gold"),
    [
        ([7, 7, 10], {7: "a", "7": "b"}),
        (["7", "7", "10"], {7: "a", "7": "b"}),
        (["7", "7", "10"], {7.0: "b", "7": "a"}),
        ([0.5, 0.5, 1.5], {"0.5": "a", "0.50": "b"}),
    ],
)
def test_two_spellings_of_a_task_with_two_labels_are_refused(tasks: list[Any], gold: dict[Any, str]) -> None:
    votes = (tasks, ["v", "w", "v"], ["a", "b", "a"])
    with pytest.raises(InputError, match=r"has two values, '[ab]' and '[ab]' .a number and the same number as text"):
        rarevote.read(votes).known(gold)
    with pytest.raises(InputError, match="has two values"):
        rarevote.fit(votes, "dawid-skene", gold=gold)
    with pytest.raises(InputError, match="has two values"):
        Audit.start(tasks[1:], [0.5, 0.5], name="a", target=0.5, gold=gold, classes=["a", "b"])
    agreed = dict.fromkeys(gold, "a")
    assert rarevote.read(votes).known(agreed) == {tasks[0]: "a"}


def test_two_answers_on_one_task_in_one_call_are_refused() -> None:
    audit = rarevote.fit(([7, 7, 10], ["v", "w", "v"], ["a", "b", "a"]), "majority-vote").audit("a", target=0.5)
    with pytest.raises(InputError, match="task 7 has two values, 'a' and 'b'"):
        audit.answer({7: "a", "7": "b"})
    assert not audit.answers
    audit.answer({7: "a", "7": None})
    assert audit.answers == {7: "a"}


def test_two_shares_of_one_class_are_refused() -> None:
    fitted = rarevote.fit(([1, 1, 2], ["v", "w", "v"], [0, 1, 1]), "majority-vote")
    with pytest.raises(InputError, match=r"prevalence: class 0 has two values, 0\.3 and 0\.4"):
        fitted.decide(prevalence={0: 0.3, "0": 0.4, 1: 0.3})


@pytest.mark.parametrize("value", [0, -1, 2.5, "3", True, None])
def test_a_count_is_a_whole_number(value: Any) -> None:
    check_count("n", 1)
    with pytest.raises(ParameterError, match=f"n must be a whole number of at least 1, got {value!r}"):
        check_count("n", value)


def test_mean_grades_by_hand() -> None:
    classes = np.array(["2", "4", "skip"], dtype=object)
    p = np.array([[0.25, 0.75, 0.0], [0.1, 0.1, 0.8], [0.0, 0.0, 1.0]])
    assert Grades.of("2,4,6").means(p, classes).tolist() == pytest.approx([3.5, 3.0, nan], nan_ok=True)


def test_a_look_takes_ten_seconds() -> None:
    assert pace(60) == "10 minutes at 10 seconds per item"


NAIVE, AWARE = datetime(2020, 1, 2), datetime(2020, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([NAIVE, AWARE], [AWARE, NAIVE]),
        ([("a", 1), (1, "a")], [("a", 1), (1, "a")]),
        ([2, "b", 1.5, "a", NAIVE, AWARE], [AWARE, NAIVE, 1.5, 2, "a", "b"]),
    ],
)
def test_names_that_cannot_be_compared_have_an_order(names: list[Any], expected: list[Any]) -> None:
    for given in (names, names[::-1]):
        votes = (given * 2, ["x"] * len(names) + ["y"] * len(names), ["no", "yes"] * len(names))
        assert rarevote.read(votes).annotations.tasks.tolist() == expected


@pytest.mark.parametrize(
    ("ordered", "message"),
    [
        ({"1", "2", "3"}, "must be a list of classes, the lowest first"),
        (frozenset([1, 2, 3]), "must be a list of classes, the lowest first"),
        (b"123", "must be a list of classes, the lowest first"),
        ([1, "1", 2, 3], "ordered names 1 twice"),
        ([1, 2, 2.0, 3], "ordered names 2 twice"),
        ([1, 2, None], "ordered holds None, which is not the name of a class"),
        ([1, 2, float("nan"), 4], "ordered holds nan, which"),
        ([1, 2, pd.NA, 4], "ordered holds <NA>, which"),
        ([[1], [2], [3]], r"ordered holds \[1\], which"),
    ],
)
def test_grades_are_names_in_an_order(ordered: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        rarevote.fit([(1, "x", 1), (1, "y", 2)], ordered=ordered)


@pytest.mark.parametrize("make", [list, tuple, np.array, pd.Series, pa.array, pl.Series, dict.fromkeys, pd.Categorical])
def test_an_order_comes_in_many_forms(make: Callable[[list[int]], Any]) -> None:
    assert Grades.of(make([3, 1, 2])).names == (3, 1, 2)


def test_a_number_and_its_text_are_two_names_that_look_alike() -> None:
    rows = [
        (1, 7, "no"),
        ("1", 7, "no"),
        (2, 8, "yes"),
        ("2", 8, "yes"),
        *((task, 8, "no") for task in (3, "3", 4, "4")),
    ]
    with pytest.warns(RarevoteWarning, match=r"write them alike: 1, 2, 3, \.\.\. among the tasks\. If") as caught:
        crowd = rarevote.read(rows).annotations
    assert len(caught) == 1
    assert crowd.tasks.tolist() == [1, 2, 3, 4, "1", "2", "3", "4"]
    with pytest.warns(RarevoteWarning, match="alike: 7 among the workers; true among the classes"):
        rarevote.read([("a", 7, True), ("a", "7", "true"), ("b", 8, "no")])
    rarevote.read([("a", 7, 1), (8, "x", 2.5), ("b", "8", "no")])  # no two of them are written alike
