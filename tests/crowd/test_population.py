"""Items without votes in the encoded crowd, against counts made without it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.gold import add_classes, with_gold
from rarevote.crowd.population import item_name, population, unvoted_note, with_items
from rarevote.errors import MissingValuesError, RarevoteWarning

_ROWS = st.lists(
    st.tuples(
        st.sampled_from([None, "", "a", "b", "c", "d"]),
        st.sampled_from([None, "u", "v"]),
        st.sampled_from(["x", "y", "skip", None, " "]),
    ),
    max_size=12,
)


def _columns(rows: list[tuple[Any, ...]]) -> list[list[Any]]:
    return [[row[place] for row in rows] for place in range(3)]


@given(_ROWS, st.lists(st.sampled_from(["a", "c", "e", "f"]), max_size=5), st.sampled_from(["all", "first", "last"]))
def test_every_item_that_is_named_is_there_once(rows: list[tuple[Any, ...]], more: list[str], keep: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no answer may be "skip"
        votes = Annotations.from_arrays(*_columns(rows), missing="drop", abstain=["skip"], keep=keep)
    named = {task for task, _, _ in rows if task}
    voted = {task for task, worker, label in rows if task and worker and label in ("x", "y")}
    assert votes.tasks.tolist() == sorted(voted)
    assert votes.unanswered.tolist() == sorted(named - voted)
    larger = with_items(votes, more)
    assert larger.tasks.tolist() == sorted(voted)
    assert larger.unanswered.tolist() == sorted({*named, *more} - voted)
    assert population(larger).tolist() == [*sorted(voted), *sorted({*named, *more} - voted)]
    assert larger.label is votes.label


def test_a_row_without_a_label_is_an_error_all_the_same() -> None:
    with pytest.raises(MissingValuesError, match="1 row has no label"):
        Annotations.from_arrays(*_columns([("a", "u", "x"), ("b", "u", None)]))


@pytest.mark.parametrize("tasks", [[7, 3, 9, 3], [7.5, 3.0, 9.0, 3.0], ["7", "3", "9", "3"]])
def test_names_keep_their_type(tasks: list[Any]) -> None:
    rows = [(task, "u", None if number else "x") for number, task in enumerate(tasks)]
    votes = Annotations.from_arrays(*_columns(rows), missing="drop")
    assert votes.tasks.tolist() == tasks[:1]
    assert votes.unanswered.tolist() == [tasks[1], tasks[2]]
    assert population(votes).tolist() == tasks[:3]
    assert {type(name) for name in population(votes).tolist()} == {type(tasks[0])}


def test_they_go_along() -> None:
    votes = with_items(Annotations.from_arrays(["a", "b"], ["u", "v"], ["x", "y"]), ["z"])
    assert add_classes(votes, ["w"]).unanswered.tolist() == ["z"]
    with pytest.warns(match="classes without votes"):
        known, _ = with_gold(votes, {"a": "q"})
    assert known.unanswered.tolist() == ["z"]


def test_gold_without_votes_is_warned_of_and_left_out() -> None:
    votes = Annotations.from_arrays(["a", "b"], ["u", "v"], ["x", "y"])
    with pytest.warns(RarevoteWarning, match=r"gold for 2 tasks without votes is left out \(first: 'q'\)"):
        _, gold = with_gold(votes, {"b": "x", "q": "y", "r": "y"})
    assert gold.tolist() == [-1, 0]
    assert with_gold(Annotations.from_arrays([], [], []), {"a": "x"})[1].tolist() == []


def test_an_item_is_named_by_its_number() -> None:
    votes = with_items(Annotations.from_arrays(["a", "b"], ["u", "v"], ["x", "y"]), ["z", "q"])
    assert [item_name(votes, item) for item in range(4)] == ["a", "b", "q", "z"]


def test_a_population_without_them_is_the_tasks() -> None:
    votes = Annotations.from_arrays(["a", "b"], ["u", "v"], ["x", "y"])
    assert population(votes) is votes.tasks
    assert with_items(votes, ["a"]) is votes
    assert population(Annotations.from_arrays([], [], [])).tolist() == []


def test_words() -> None:
    assert unvoted_note(0, 1_234) == ("1,234 of 1,234 items have no votes",)
    assert unvoted_note(5, 0) == ()


def test_numbers_stay_an_array_of_numbers() -> None:
    votes = with_items(Annotations.from_arrays(np.array([4, 2]), ["u", "v"], ["x", "y"]), [9, 2])
    assert population(votes).dtype == np.int64
