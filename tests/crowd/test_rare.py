"""Which class is the rare one, and that every verb means the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.numerics import rare_class
from rarevote.errors import ParameterError
from tests.command import rarevote


def crowd(labels: list[object], **options: object) -> Annotations:
    return Annotations.from_arrays(list(range(len(labels))), ["ann"] * len(labels), labels, **options)  # type: ignore[arg-type]


def test_the_fewest_votes_decide() -> None:
    assert rare_class(crowd(["a", "b", "b", "c", "c"])) == 0
    assert rare_class(crowd(["a", "a", "b", "c", "c", "b"])) == 0, "the first on a tie"
    assert rare_class(crowd(["a", "a", "b"], classes=["z"])) == 1, "never a class without votes"


def test_a_name_decides() -> None:
    assert rare_class(crowd([0, 1, 1]), "1") == 1
    assert rare_class(crowd([0, 1, 1]), 1) == 1
    with pytest.raises(ParameterError, match="rare: no class is called 'x'; the classes are 0, 1"):
        rare_class(crowd([0, 1, 1]), "x")


def test_every_verb_means_the_same_class(tmp_path: Path) -> None:
    # "yes" has the fewer votes and, by majority, the more tasks.
    path = tmp_path / "labels.csv"
    votes = [(1, "yes"), (2, "yes"), (3, "no"), (3, "no"), (3, "no")]
    path.write_text("task,worker,label\n" + "".join(f"{task},w{i},{label}\n" for i, (task, label) in enumerate(votes)))
    method = ("--method", "majority-vote")
    found = json.loads(rarevote("aggregate", path, *method, "-o", tmp_path / "r.csv", "--json").stdout)
    assert found["rare"]["class"] == "yes"
    assert found["rare"]["tasks"] == 2
    assert json.loads(rarevote("compare", path, "--json").stdout)["rare_class"] == "yes"
    said = rarevote("report", path, *method, "-o", tmp_path / "r.html").stderr
    assert "2 of 3 items are labelled “yes”" in said
