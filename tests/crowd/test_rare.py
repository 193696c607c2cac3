"""Which class is the rare one, and that every verb means the same."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.grades import Grades
from rarevote.crowd.rare import RareClass
from rarevote.errors import ParameterError
from tests.command import rarevote


def crowd(labels: Sequence[object], **options: object) -> Annotations:
    return Annotations.from_arrays(list(range(len(labels))), ["ann"] * len(labels), labels, **options)  # type: ignore[arg-type]


def rare_of(votes: Annotations, wanted: object = None) -> RareClass:
    return RareClass.of(votes.classes, votes.class_votes, wanted)


def test_the_fewest_votes_decide() -> None:
    assert rare_of(crowd(["a", "b", "b", "c", "c"])) == RareClass((0,), "a", named=False, is_rare=True)
    assert rare_of(crowd(["a", "a", "b", "c", "c", "b"])).code == 0, "the first on a tie"
    assert rare_of(crowd(["a", "a", "b"], classes=["z"])).code == 1, "never a class without votes"


def test_a_name_decides() -> None:
    assert rare_of(crowd([0, 1, 1]), "1") == RareClass((1,), 1, named=True)
    assert rare_of(crowd([0, 1, 1]), 1).codes == (1,)
    assert rare_of(crowd(["a", "a", "b"], classes=["z"]), "z").code == 2, "a class without votes if it is named"
    with pytest.raises(ParameterError, match="rare: 'x' is not a class; the classes are 0, 1"):
        rare_of(crowd([0, 1, 1]), "x")


def test_rare_is_said_of_rare_classes_only() -> None:
    assert not rare_of(crowd(["a"] * 4 + ["b"] * 6)).is_rare  # exactly 0.8 of an equal share
    votes = crowd(["a"] * 4 + ["b"] * 7)
    assert rare_of(votes).is_rare
    assert not rare_of(votes, "b").is_rare
    assert not rare_of(crowd(["a"] * 4)).is_rare


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
    assert "2 “yes” and 1 “no”" in said


def test_a_class_is_named_only_if_a_user_named_it() -> None:
    assert not RareClass((0,), "a").named
    votes = crowd(["a", "b", "b"])
    assert not rare_of(votes).named
    assert rare_of(votes, "a").named


def test_a_tail_of_all_grades_or_of_none_is_refused() -> None:
    votes = crowd(["1", "2", "2"])
    for wanted, which in ((">=1", "all"), (">=3", "none"), ("<=0", "none"), ("<=2", "all")):
        with pytest.raises(ParameterError, match=rf"'{wanted}' holds {which} of the grades that have votes \(1, 2\)"):
            RareClass.of(votes.classes, votes.class_votes, wanted, Grades.of("0..3"))
