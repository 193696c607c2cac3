"""What every method promises, over the table of methods."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rarevote.errors import RarevoteError
from rarevote.methods.registry import METHODS
from tests.methods.crowds import EDGES, Rows, check_edges, columns, random_rows
from tests.tables import METHOD_ROWS, MethodRow

pytestmark = [
    pytest.mark.filterwarnings("ignore::rarevote.errors.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::rarevote.errors.RarevoteWarning"),
]

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


def test_every_method_is_in_the_table() -> None:
    assert {row.name for row in METHOD_ROWS} == set(METHODS)


@every_method
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_probabilities_and_labels(row: MethodRow, seed: int) -> None:
    rows, truth = crowd_for(row, seed)
    model = fit(row, rows, truth if row.needs_gold else None)
    assert np.abs(model.posterior_.sum(1) - 1).max() < 1e-12
    assert model.posterior_.min() >= 0
    chosen = model.posterior_[range(len(model.posterior_)), model.label_codes()]
    assert (chosen >= model.posterior_.max(1) - 1e-12).all()
    assert set(model.labels_.to_dict()) == {task for task, _, _ in rows}
    assert isinstance(model.converged_, bool)
    assert model.n_iter_ >= 1


@every_method
@pytest.mark.parametrize("renamed", ["tasks", "workers", "classes", "rows"])
def test_permutations(row: MethodRow, renamed: str) -> None:
    rows, truth = crowd_for(row, 1)
    rng = np.random.default_rng(7)
    maps = []
    for place, what in enumerate(("tasks", "workers", "classes")):
        names = sorted({entry[place] for entry in rows})
        other = rng.permutation(names).tolist() if what == renamed else names
        maps.append(dict(zip(names, other, strict=True)))
    task, worker, label = maps
    changed = [(task[t], worker[w], label[y]) for t, w, y in rows]
    if renamed == "rows":
        # Rows of one task keep their order: for some methods the last of repeated answers counts.
        order = sorted(range(len(changed)), key=lambda i: (hash(changed[i][0]), i))
        changed = [changed[i] for i in order]
    gold = {t: truth[t] for t in list(truth)[::2]} if row.needs_gold else None
    known = None if gold is None else {task[t]: label[y] for t, y in gold.items()}
    before = row.make()
    after = row.make()
    if row.name == "crowdfm":
        vectors = np.random.default_rng(3).normal(size=(3, 32))
        classes = sorted(label)
        moved = vectors.copy()
        for k, name in enumerate(classes):
            moved[classes.index(label[name])] = vectors[k]
        before.set_params(option_vectors=vectors)
        after.set_params(option_vectors=moved)
    extra = () if gold is None else (gold,)
    extra_after = () if known is None else (known,)
    one = before.fit(columns(rows), *extra).probas_.to_dict()
    two = after.fit(columns(changed), *extra_after).probas_.to_dict()
    for name, of_class in one.items():
        for y, probability in of_class.items():
            assert two[task[name]][label[y]] == pytest.approx(probability, abs=1e-10)


@every_method
def test_gold_stays_clamped(row: MethodRow) -> None:
    if not row.make().uses_gold:
        with pytest.raises((RarevoteError, TypeError)):
            row.make().fit(columns(crowd_for(row)[0]), true_labels={"t000": "a"})
        return
    rows, truth = crowd_for(row)
    wrong = {"t000": "b", "t001": "a"}
    model = fit(row, rows, {**{t: truth[t] for t in list(truth)[2:20]}, **wrong})
    probas = model.probas_.to_dict()
    for task, label in wrong.items():
        assert probas[task][label] == 1.0


@every_method
def test_gold_may_name_a_class_that_nobody_voted_for(row: MethodRow) -> None:
    if not row.make().uses_gold or row.binary:
        pytest.skip("no gold, or two classes only")
    rows, truth = crowd_for(row)
    model = fit(row, rows, {**truth, "t000": "rare"} if row.needs_gold else {"t000": "rare"})
    assert model.labels_.to_dict()["t000"] == "rare"
    assert np.isfinite(model.posterior_).all()


@every_method
@settings(max_examples=8)
@given(seed=st.integers(0, 10_000), votes=st.integers(1, 6))
def test_the_objective_never_falls(row: MethodRow, seed: int, votes: int) -> None:
    if row.climbs is None:
        return
    rows, truth = random_rows(20, 6, "abc", votes=votes, accuracy=0.6, seed=seed)
    for gold in (None, {t: truth[t] for t in list(truth)[:5]}):
        climbed = np.array(row.climbs(fit(row, rows, gold)))
        assert (np.diff(climbed) >= -1e-9 * (1 + np.abs(climbed[:-1]))).all()


@every_method
@pytest.mark.parametrize("edge", EDGES)
def test_edges(row: MethodRow, edge: str) -> None:
    rows = EDGES[edge]
    gold = {task: label for task, _, label in rows} if row.needs_gold else None
    check_edges(row.make, rows, gold)


@every_method
def test_the_same_twice(row: MethodRow) -> None:
    rows, truth = crowd_for(row)
    gold = truth if row.needs_gold else None
    assert np.array_equal(fit(row, rows, gold).posterior_, fit(row, rows, gold).posterior_)


@every_method
def test_empty_crowds(row: MethodRow) -> None:
    model = row.make().fit(([], [], []), {}) if row.needs_gold else row.make().fit(([], [], []))
    assert model.labels_.to_dict() == {}
    assert model.posterior_.shape == (0, 0)
