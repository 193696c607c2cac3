"""Pairs of votes, however many are compared at once, and errors of pairs against the same written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rarevote import Annotations
from rarevote.diagnose import agreement, pairs
from rarevote.diagnose.shared_errors import _Compared
from rarevote.kernels import plain


def crowd(seed: int = 0, n_classes: int = 7) -> Annotations:
    """Some workers vote twice on a task, some tasks have one vote."""
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(300), rng.integers(1, 12, 300))
    label = np.minimum(rng.geometric(0.4, task.size) - 1, n_classes - 1)
    return Annotations.from_arrays(task, rng.integers(0, 12, task.size), label)


def test_the_last_vote_of_a_worker_on_a_task_is_kept() -> None:
    made = crowd()
    task = made.task_of_annotation().tolist()
    last = {(t, w): y for t, w, y in zip(task, made.worker.tolist(), made.label.tolist(), strict=True)}
    votes = pairs.last_votes(made.task_ptr, made.worker, made.label)
    kept = zip(plain.task_of_votes(votes.task_ptr).tolist(), votes.worker.tolist(), strict=True)
    assert dict(zip(kept, votes.label.tolist(), strict=True)) == last
    assert votes.worker.size == len(last) < made.n_annotations


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
def test_figures_do_not_depend_on_how_many_are_compared_at_once(level: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = agreement.agreement_of(crowd(), level)
    monkeypatch.setattr(plain.runs, "__defaults__", (50,))
    monkeypatch.setattr(pairs, "_MAX_CELLS", 10)
    for module in (pairs, agreement):
        monkeypatch.setattr(module, "AT_ONCE", 100)
    parts = agreement.agreement_of(crowd(), level)
    for name in agreement.COEFFICIENTS:
        assert getattr(parts, name) == pytest.approx(getattr(whole, name), rel=1e-12)
        assert parts.intervals[name] == pytest.approx(whole.intervals[name], rel=1e-9)
    one, other = parts.pairs.to_pandas(), whole.pairs.to_pandas()
    assert one.index.equals(other.index)
    np.testing.assert_allclose(one, other, rtol=1e-11)


@pytest.mark.parametrize("n_classes", [2, 3, 4, 7])
@pytest.mark.parametrize("by_gold", [False, True])
def test_errors_of_two_are_those_by_gold_or_by_the_votes_of_others(by_gold: bool, n_classes: int) -> None:
    made = crowd(1, n_classes)
    compared = _Compared.of(made, np.ones(made.n_tasks, dtype=bool))
    gold = np.random.default_rng(2).integers(0, n_classes, len(compared.tasks))
    found, common = compared.correlation(gold if by_gold else np.empty(0, dtype=np.int64))
    errors: dict[tuple[int, int], list[tuple[bool, bool]]] = {}
    for task, (begin, end) in enumerate(zip(compared.task_ptr[:-1], compared.task_ptr[1:], strict=True)):
        votes = dict(zip(compared.worker[begin:end].tolist(), compared.label[begin:end].tolist(), strict=True))
        for a in votes:
            for b in (b for b in votes if b > a):
                left = np.bincount([votes[w] for w in votes if w not in (a, b)], minlength=n_classes)
                if by_gold or (left == left.max()).sum() == 1:
                    truth = gold[task] if by_gold else left.argmax()
                    errors.setdefault((a, b), []).append((votes[a] != truth, votes[b] != truth))
    assert len(errors) == 66
    for (a, b), both in errors.items():
        assert common[a, b] == common[b, a] == len(both)
        assert found[a, b] == pytest.approx(np.corrcoef(np.array(both, dtype=float).T)[0, 1])
