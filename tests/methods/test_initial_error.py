"""What was known of the workers beforehand: assigned or added, in every layout, and refused where it cannot be used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from rarevote.errors import InputError, RarevoteWarning
from rarevote.methods.dawid_skene.estimator import DawidSkene
from tests.methods.test_dawid_skene import Counts, assert_same, columns, frame, oracle, random_crowd


def known_errors(workers: list[str], classes: list[str], seed: int = 0, scale: float = 1.0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    index = pd.MultiIndex.from_product([workers, classes], names=["worker", "label"])
    values = rng.dirichlet(np.ones(len(classes)), size=(len(workers), len(classes)))
    return pd.DataFrame(np.swapaxes(values, 1, 2).reshape(-1, len(classes)) * scale, index=index, columns=classes)


def as_dict(errors: pd.DataFrame) -> Counts:
    return {key: row.to_dict() for key, row in errors.iterrows()}


@pytest.mark.parametrize("scale", [1.0, 8.0], ids=["probabilities", "counts"])
def test_initial_errors_can_be_assigned(scale: float) -> None:
    votes = random_crowd(31)
    initial = known_errors([f"w{r}" for r in range(7)], ["c0", "c1", "c2"], scale=scale)  # w6 is a stranger

    model = DawidSkene(initial_error_strategy="assign").fit(frame(votes), initial_error=initial)

    assert_same(model, oracle(votes, first_counts=lambda _: as_dict(initial)))


def test_initial_counts_can_be_added() -> None:
    votes = [vote for vote in random_crowd(32) if vote[1:] != ("w0", "c0")]
    # Partial: some workers only, a missing column, and a label that the worker does not use in these votes.
    initial = known_errors(["w0", "w1"], ["c0", "c1", "c2"], scale=5.0).drop(columns="c1").iloc[:-1]

    def added(counts: Counts) -> Counts:
        for key, row in as_dict(initial).items():
            own = counts.setdefault(key, dict.fromkeys(["c0", "c1", "c2"], 0.0))
            for k, value in row.items():
                own[k] += value
        return counts

    model = DawidSkene(initial_error_strategy="addition").fit(frame(votes), initial_error=initial)

    assert_same(model, oracle(votes, first_counts=added))


@pytest.mark.parametrize("kind", ["table", "polars"])
def test_errors_can_go_back_in_any_kind(kind: str) -> None:
    votes = [(task, int(worker[1]), int(label[1])) for task, worker, label in random_crowd(33)]
    data: Any = columns(votes) if kind == "table" else pl.DataFrame(votes, ["task", "worker", "label"], orient="row")
    in_pandas = DawidSkene().fit(frame(votes))
    model = DawidSkene().fit(data)

    expected = DawidSkene(initial_error_strategy="assign").fit(frame(votes), None, in_pandas.errors_)
    again = DawidSkene(initial_error_strategy="assign").fit(data, None, model.errors_)

    np.testing.assert_allclose(again.posterior_, expected.posterior_, atol=1e-12)
    if kind == "polars":
        assert model.errors_.columns == ["worker", "label", "0", "1", "2"]


def _without_last_row(errors: pd.DataFrame) -> pd.DataFrame:
    return errors.iloc[:-1] * 10


@pytest.mark.parametrize(
    ("strategy", "spoil", "message"),
    [
        ("assign", _without_last_row, "every label that a worker used"),
        ("assign", lambda errors: errors * 0.5, "sum to 1 per worker"),
        ("assign", lambda errors: errors.drop(columns="c1"), "no column for the class 'c1'"),
        ("assign", lambda errors: errors.replace(errors.iloc[0, 0], np.nan), "finite"),
        ("assign", lambda errors: errors.rename_axis(["who", "label"]), "indexed by worker and label"),
        ("addition", lambda errors: errors.reset_index(drop=True), "indexed by worker and label"),
        ("addition", lambda errors: -errors, "at least 0"),
        ("addition", lambda errors: errors.rename(columns={"c1": "other"}), "'other', which is not one of the classes"),
        ("addition", lambda errors: errors.rename(index={"c1": "other"}), "'other', which is not one of the classes"),
        ("addition", lambda errors: pd.concat([errors, errors]), "several rows"),
        ("addition", lambda errors: pl.DataFrame({"c0": [1.0]}), "columns worker and label"),
        ("addition", lambda errors: {"w0": 0.9}, "in the layout of errors_"),
        (
            "addition",
            lambda errors: errors.astype(object).where(errors != errors.iloc[0, 0], "much"),
            "frame of numbers",
        ),
    ],
)
def test_unusable_initial_errors_are_refused(strategy: Any, spoil: Callable[[pd.DataFrame], Any], message: str) -> None:
    initial = spoil(known_errors([f"w{r}" for r in range(6)], ["c0", "c1", "c2"]))
    with pytest.raises(InputError, match=message):
        DawidSkene(initial_error_strategy=strategy).fit(frame(random_crowd(34)), initial_error=initial)


def test_initial_errors_without_a_strategy_are_left_unused() -> None:
    votes = frame(random_crowd(35))
    initial = known_errors(["w0"], ["c0", "c1", "c2"])
    with pytest.warns(RarevoteWarning, match="no effect"):
        model = DawidSkene().fit(votes, initial_error=initial)
    pd.testing.assert_frame_equal(model.probas_, DawidSkene().fit(votes).probas_)
