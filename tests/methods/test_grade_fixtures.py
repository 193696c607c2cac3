"""Crowds that look like real ones: stars, ratings, severity, agreement, answers outside the scale, wrong orders.

Each person errs to neighbouring grades, some rate high or low; the truth is known.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import pytest

import rarevote
from rarevote.errors import RarevoteWarning


@dataclass(frozen=True)
class Rated:
    """A scale, how its true grades are distributed, and what may be answered beside it."""

    scale: tuple[str, ...]
    shares: tuple[float, ...]
    outside: str = ""
    spread: float = 0.7

    def votes(
        self, seed: int = 0, n_items: int = 260, n_people: int = 12
    ) -> tuple[list[tuple[str, str, str]], list[int]]:
        rng = np.random.default_rng(seed)
        truth = rng.choice(len(self.scale), n_items, p=self.shares)
        lean = rng.normal(0, 0.4, n_people)
        rows = []
        for i in range(n_items):
            for r in rng.choice(n_people, 5, replace=False).tolist():
                place = int(np.clip(np.rint(truth[i] + lean[r] + rng.normal(0, self.spread)), 0, len(self.scale) - 1))
                skips = self.outside and rng.random() < 0.06
                rows.append((f"i{i:04d}", f"w{r:02d}", self.outside if skips else self.scale[place]))
        return rows, truth.tolist()


FIXTURES = {
    "stars": Rated(("1 star", "2 stars", "3 stars", "4 stars", "5 stars"), (0.1, 0.1, 0.2, 0.35, 0.25)),
    "ratings from 1 to 10": Rated(tuple(map(str, range(1, 11))), (0.1,) * 10, spread=1.2),
    "severity": Rated(("none", "mild", "moderate", "severe"), (0.5, 0.28, 0.15, 0.07)),
    "severity, can't tell": Rated(("none", "mild", "moderate", "severe"), (0.5, 0.28, 0.15, 0.07), "can't tell"),
    "agreement": Rated(
        ("Strongly disagree", "Disagree", "Neutral", "Agree", "Strongly agree"), (0.15, 0.2, 0.2, 0.3, 0.15)
    ),
}


def without_order(votes: list[tuple[str, str, str]]) -> rarevote.Fitted:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RarevoteWarning)
        return rarevote.fit(votes)


@pytest.mark.parametrize("name", FIXTURES)
def test_grades_are_recognised_and_fitted(name: str) -> None:
    made = FIXTURES[name]
    votes, truth = made.votes()
    default = without_order(votes)
    hint = default.order_hint()
    assert hint is not None
    assert hint.grades is not None
    assert hint.grades.names == made.scale  # the lowest first, what is outside left out
    assert "and neighbours are confused" in hint.description
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RarevoteWarning)
        fitted = rarevote.fit(votes, ordered=hint.grades.names)
        result, plain = fitted.decide(), default.decide()
    assert isinstance(fitted.method, rarevote.AnchoredOrdered)
    assert fitted.method.nearness_ > 0.05
    # A label lies between the lowest and the highest grade voted on its item.
    place = {grade: rank for rank, grade in enumerate(made.scale)}
    said: dict[str, list[int]] = {}
    for task, _, label in votes:
        if label in place:
            said.setdefault(task, []).append(place[label])
    far: dict[str, list[float]] = {"ordered": [], "default": []}
    for row, (task, label) in enumerate(zip(result.tasks.tolist(), result.labels.tolist(), strict=True)):
        if label in place:
            assert min(said[task]) <= place[label] <= max(said[task])
            far["ordered"].append(abs(place[label] - truth[row]))
        if (other := plain.labels.tolist()[row]) in place:
            far["default"].append(abs(place[other] - truth[row]))
    assert np.mean(far["ordered"]) < np.mean(far["default"])
    grade = result.columns()["grade"]
    first = 1.0 if made.scale[0] == "1" else 0.0  # of numbers the mean is in these numbers
    assert np.nanmean(np.abs(grade - first - np.array(truth))) < 1.0
    assert (made.outside in fitted.annotations.classes.tolist()) is bool(made.outside)


def test_a_wrong_order_is_said_and_obeyed() -> None:
    votes, _ = FIXTURES["stars"].votes()
    one, two, three, four, five = FIXTURES["stars"].scale
    with pytest.warns(RarevoteWarning, match="the votes do not show this order"):
        fitted = rarevote.fit(votes, ordered=[one, four, two, five, three])
    assert fitted.grades is not None
    assert fitted.grades.names == (one, four, two, five, three)


def test_numbers_that_are_codes_of_categories_get_no_hint() -> None:
    """Two breeds look alike, whatever their numbers are."""
    rng = np.random.default_rng(1)
    alike = {0: 3, 3: 0, 1: 4, 4: 1, 2: 2}
    votes = []
    for i in range(300):
        kind = int(rng.integers(5))
        for r in range(5):
            other = alike[kind] if rng.random() < 0.6 else int(rng.integers(5))
            votes.append((f"i{i:03d}", f"w{r}", str(kind if rng.random() < 0.65 else other)))
    assert rarevote.fit(votes).order_hint() is None
