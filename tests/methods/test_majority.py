from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarevote import MajorityVote
from rarevote.errors import InputError, ParameterError

VOTES = ([0, 0, 0, 1, 1], ["a", "b", "c", "a", "b"], ["x", "y", "y", "y", "x"])


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.sampled_from("zyx")), min_size=1, max_size=40))
def test_equals_counting(rows: list[tuple[int, int, str]]) -> None:
    columns = tuple([row[i] for row in rows] for i in range(3))
    labels = MajorityVote().fit(columns).labels_.to_dict()
    for task, label in labels.items():
        counts = Counter(row[2] for row in rows if row[0] == task)
        best = max(counts.values())
        assert label == min(name for name, count in counts.items() if count == best)


def test_probabilities_are_vote_shares_and_ties_go_to_the_first_class() -> None:
    model = MajorityVote().fit(VOTES)
    np.testing.assert_allclose(model.posterior_, [[1 / 3, 2 / 3], [1 / 2, 1 / 2]])
    assert model.labels_.to_dict() == {0: "y", 1: "x"}


def test_skills_are_agreement_with_the_result() -> None:
    assert MajorityVote().fit(VOTES).skills_.to_dict() == {"a": 0.0, "b": 1.0, "c": 1.0}


def test_an_answer_repeated_word_for_word_counts_once_for_the_skill() -> None:
    # The value that crowd-kit 1.4.2 gives.
    rows = ([1, 1, 1, 1, 2, 2], list("aabcab"), list("yyynny"))
    assert MajorityVote().fit(rows).skills_.to_dict() == {"a": 1.0, "b": 0.5, "c": 0.0}
    changed_mind = ([1, 1, 1, 1, 2, 2, 2], list("aabcabd"), list("ynyynyy"))
    assert MajorityVote().fit(changed_mind).skills_.to_dict()["a"] == pytest.approx(1 / 3)


def test_skills_weigh_votes() -> None:
    skills = pd.Series({"a": 3.0, "b": 1.0, "c": 1.0})
    model = MajorityVote().fit(VOTES, skills)
    assert model.labels_.to_dict() == {0: "x", 1: "y"}
    np.testing.assert_allclose(model.posterior_, [[0.6, 0.4], [0.25, 0.75]])


def test_workers_without_skill() -> None:
    skills = {"a": 1.0, "b": 0.2}
    with pytest.raises(InputError, match="1 worker has no skill"):
        MajorityVote().fit(VOTES, skills)
    assert MajorityVote(on_missing_skill="ignore").fit(VOTES, skills).labels_.to_dict() == {0: "x", 1: "y"}
    given_value = MajorityVote(5.0, "value").fit(VOTES, skills)
    np.testing.assert_allclose(given_value.posterior_[0], [1.0 / 6.2, 5.2 / 6.2])
    with pytest.raises(InputError, match="1 task has only votes of workers without a skill"):
        MajorityVote(on_missing_skill="ignore").fit(([0, 1], ["a", "z"], ["x", "y"]), {"a": 1.0})
    with pytest.raises(InputError, match="1 worker has no skill"):
        MajorityVote().fit(VOTES, {**skills, "c": float("nan")})


@pytest.mark.parametrize(
    "parameters",
    [{"on_missing_skill": "value"}, {"default_skill": 1.0}, {"on_missing_skill": "drop"}],
)
def test_bad_parameters(parameters: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        MajorityVote(**parameters).fit(VOTES)
