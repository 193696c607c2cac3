"""What every method promises, over the table of methods."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rarevote.errors import RarevoteError
from rarevote.methods.registry import METHODS
from tests.methods.contracts import PROPERTIES, Case
from tests.methods.crowds import EDGES, Rows, check_edges, columns, random_rows
from tests.tables import METHOD_ROWS, MethodRow

pytestmark = [
    pytest.mark.filterwarnings("ignore::rarevote.errors.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::rarevote.errors.RarevoteWarning"),
]

# The same cases everywhere: a number stands for a crowd (tests/methods/contracts.py).
numbers = st.integers(0, 2**31 - 1)
every_method = pytest.mark.parametrize("row", METHOD_ROWS, ids=lambda row: row.name)


def crowd_for(row: MethodRow, seed: int = 0) -> tuple[Rows, dict[str, str]]:
    """Without ties for the methods that see them: two classes and an odd number of votes."""
    if row.binary or row.sees_ties:
        rows, truth = random_rows(41, 7, "ab", votes=5, seed=seed)
        counts = {name: sum(label == name for _, _, label in rows) for name in "ab"}
        assert counts["a"] != counts["b"]
        return rows, truth
    return random_rows(40, 7, "abc", votes=4, seed=seed)


def fit(row: MethodRow, rows: Rows, gold: dict[str, str] | None, **options: Any) -> Any:
    model = row.make()
    return model.fit(columns(rows), gold, **options) if gold is not None else model.fit(columns(rows), **options)


every_property = pytest.mark.parametrize("name", PROPERTIES)
# Compiling takes longer than everything else here; the passes themselves are compared in test_plain.py.
ONLY_PROVED = {"compiled_is_plain"}


def check(row: MethodRow, name: str, number: int) -> None:
    broken = PROPERTIES[name].check(Case.drawn(row, number))
    assert broken is None or broken <= PROPERTIES[name].tolerance


@every_method
@every_property
def test_properties_of_generated_crowds(row: MethodRow, name: str) -> None:
    @settings(max_examples=3, derandomize=True, deadline=None, database=None)
    @given(numbers)
    def of_number(number: int) -> None:
        check(row, name, number)

    if name not in ONLY_PROVED:
        of_number()


@pytest.mark.prove
@every_method
@every_property
def test_properties_of_more_generated_crowds(row: MethodRow, name: str) -> None:
    @settings(max_examples=12, derandomize=True, deadline=None, database=None)
    @given(numbers)
    def of_number(number: int) -> None:
        check(row, name, number)

    of_number()


def test_every_method_is_in_the_table() -> None:
    assert {row.name for row in METHOD_ROWS} == set(METHODS)


@every_method
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_labels_are_the_most_probable(row: MethodRow, seed: int) -> None:
    if row.make().capabilities.ordered:
        return  # its labels are in the middle: tests/decide/test_ordered.py
    rows, truth = crowd_for(row, seed)
    model = fit(row, rows, truth if row.needs_gold else None)
    chosen = model.posterior_[range(len(model.posterior_)), model.label_codes()]
    assert (chosen >= model.posterior_.max(1) - 1e-12).all()
    assert set(model.labels_.to_dict()) == {task for task, _, _ in rows}
    assert isinstance(model.converged_, bool)
    assert model.n_iter_ >= 1


@every_method
def test_gold_that_a_method_cannot_use_is_refused(row: MethodRow) -> None:
    if not row.make().capabilities.gold:
        with pytest.raises((RarevoteError, TypeError)):
            row.make().fit(columns(crowd_for(row)[0]), true_labels={"t000": "a"})


@every_method
def test_gold_may_name_a_class_that_nobody_voted_for(row: MethodRow) -> None:
    if not row.make().capabilities.gold or row.binary:
        pytest.skip("no gold, or two classes only")
    rows, truth = crowd_for(row)
    model = fit(row, rows, {**truth, "t000": "rare"} if row.needs_gold else {"t000": "rare"})
    assert model.labels_.to_dict()["t000"] == "rare"
    assert np.isfinite(model.posterior_).all()


@every_method
@pytest.mark.parametrize("edge", EDGES)
def test_edges(row: MethodRow, edge: str) -> None:
    rows = EDGES[edge]
    gold = {task: label for task, _, label in rows} if row.needs_gold else None
    check_edges(row.make, rows, gold)


@every_method
def test_empty_crowds(row: MethodRow) -> None:
    model = row.make().fit(([], [], []), {}) if row.needs_gold else row.make().fit(([], [], []))
    assert model.labels_.to_dict() == {}
    assert model.posterior_.shape == (0, 0)
