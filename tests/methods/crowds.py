"""Small crowds and checks that the tests of several methods share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from rarevote.methods.base import Estimator

Rows = list[tuple[str, str, str]]
Columns = tuple[list[str], list[str], list[str]]

EDGES: dict[str, Rows] = {
    "one vote": [("t", "w", "a")],
    "one class": [("t", "w", "a"), ("u", "w", "a"), ("t", "v", "a")],
    "one worker": [("t", "w", "a"), ("u", "w", "b"), ("v", "w", "a")],
    "one task": [("t", "w", "a"), ("t", "v", "b"), ("t", "u", "b")],
    "unanimous": [(task, worker, label) for task, label in ("ta", "ua", "vb") for worker in "wxy"],
    "repeats": [("t", "w", "a"), ("t", "w", "b"), ("t", "w", "b"), ("u", "v", "a")],
}


def columns(rows: Rows) -> Columns:
    return tuple([row[i] for row in rows] for i in range(3))  # type: ignore[return-value]


def random_rows(
    n_tasks: int = 40,
    n_workers: int = 7,
    classes: str = "ab",
    votes: int = 3,
    accuracy: float = 0.75,
    seed: int = 0,
) -> tuple[Rows, dict[str, str]]:
    """Rows in shuffled order, no repeated pairs, and the truth."""
    rng = np.random.default_rng(seed)
    truth = {f"t{i:03d}": classes[int(rng.integers(len(classes)))] for i in range(n_tasks)}
    rows = [
        (task, f"w{r:02d}", label if rng.random() < accuracy - 0.03 * r else classes[int(rng.integers(len(classes)))])
        for task, label in truth.items()
        for r in rng.permutation(n_workers)[:votes]
    ]
    return [rows[i] for i in rng.permutation(len(rows))], truth


def check_edges(make: Callable[[], Estimator], rows: Rows, gold: Mapping[str, str] | None = None) -> None:
    """Every task has a distribution over the classes whose largest entry is its label."""
    model = make().fit(columns(rows), gold) if gold is not None else make().fit(columns(rows))
    probas, labels = model.probas_.to_dict(), model.labels_.to_dict()
    assert set(labels) == {task for task, _, _ in rows}
    for task, of_class in probas.items():
        assert abs(sum(of_class.values()) - 1) < 1e-12
        assert min(of_class.values()) >= 0
        # Where a fit cannot tell classes apart, a method may let the votes decide.
        assert of_class[labels[task]] >= max(of_class.values()) - 1e-4


def check_permutation(make: Callable[[], Estimator], rows: Rows, gold: Mapping[str, str] | None = None) -> None:
    """Other names and another order of tasks, workers, classes and rows give the same probabilities."""
    rng = np.random.default_rng(99)

    def renaming(place: int) -> dict[str, str]:
        names = sorted({row[place] for row in rows})
        return dict(zip(names, rng.permutation(names).tolist(), strict=True))

    task, worker, label = (renaming(place) for place in range(3))
    other = [(task[t], worker[w], label[y]) for t, w, y in rows]
    other = [other[i] for i in rng.permutation(len(other))]
    known: tuple[Any, ...] = () if gold is None else (dict(gold),)
    renamed: tuple[Any, ...] = () if gold is None else ({task[t]: label[y] for t, y in gold.items()},)
    before = make().fit(columns(rows), *known).probas_.to_dict()
    after = make().fit(columns(other), *renamed).probas_.to_dict()
    for name, of_class in before.items():
        for y, probability in of_class.items():
            assert abs(after[task[name]][label[y]] - probability) < 1e-10
