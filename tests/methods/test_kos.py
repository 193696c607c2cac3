"""KOS against messages written out over single votes; crowd-kit's own results are in test_crowdkit_dropin."""

from __future__ import annotations

import numpy as np
import pytest

from rarevote import KOS, simulate_crowd
from rarevote.errors import ParameterError
from tests.methods.crowds import columns, random_rows


def slow(rows: list[tuple[str, str, str]], n_iter: int, seed: int) -> dict[str, str]:
    """Messages along every edge, none of them scaled; no worker votes twice on a task."""
    rows = sorted(rows)
    sign = {(task, worker): 1.0 if label == "a" else -1.0 for task, worker, label in rows}
    start = np.random.RandomState(seed).normal(1, 1, len(rows))
    y = {(task, worker): value for (task, worker, _), value in zip(rows, start, strict=True)}
    for _ in range(n_iter):
        x = {
            (task, worker): sum(sign[e] * y[e] for e in sign if e[0] == task and e[1] != worker)
            for task, worker in sign
        }
        y = {
            (task, worker): sum(sign[e] * x[e] for e in sign if e[1] == worker and e[0] != task)
            for task, worker in sign
        }
    return {
        task: "a" if sum(sign[e] * y[e] for e in sign if e[0] == task) >= 0 else "b" for task in {t for t, _ in sign}
    }


@pytest.mark.parametrize("seed", range(3))
def test_messages_are_those_along_the_edges(seed: int) -> None:
    rows, _ = random_rows(20, 6, "ab", accuracy=0.6, seed=seed)
    for n_iter in (0, 1, 5):
        assert KOS(n_iter, seed).fit(columns(rows)).labels_.to_dict() == slow(rows, n_iter, seed)


def test_adversaries_are_turned_round() -> None:
    """Who is mostly wrong counts the other way, where a majority vote follows them."""
    crowd = simulate_crowd(
        500,
        9,
        imbalance=1,
        votes_per_task=40,
        p_good=1,
        p_majority=0,
        p_minority=0,
        p_bad=0,
        hard_share=0,
        random_state=0,
    )
    label = np.where(crowd.worker < 3, 1 - crowd.label, crowd.label)
    model = KOS().fit((crowd.task, crowd.worker, label))
    assert (model.label_codes() == crowd.truth).mean() > 0.98


def test_scores_are_shares_of_weights() -> None:
    rows, _ = random_rows(20, 6, "ab")
    model = KOS().fit(columns(rows))
    np.testing.assert_allclose(model.posterior_.sum(axis=1), 1)
    assert ((model.posterior_ >= 0) & (model.posterior_ <= 1)).all()


def test_two_classes_only() -> None:
    with pytest.raises(ParameterError, match="two classes"):
        KOS().fit(([0, 0, 0], ["ann", "bob", "cy"], ["a", "b", "c"]))
    assert KOS().fit(([0, 0], ["ann", "bob"], ["a", "a"])).labels_.to_dict() == {0: "a"}
    assert KOS().fit(([], [], [])).labels_.to_dict() == {}
