"""Audits of a fit: the score is the calibrated probability, gold is known before, results name every task."""

from __future__ import annotations

import numpy as np
import pytest
from rarevote.meaning.calibrate import calibrate_fit

import rarevote
from rarevote import simulate_crowd
from rarevote.errors import ParameterError
from rarevote.meaning.audit import of_fit
from rarevote.meaning.audit.of_fit import all_tasks, result_columns


@pytest.mark.parametrize(("method", "limit"), [("anchored-rasch", 0), ("anchored-rasch", 10**6), ("cc-rasch", 0)])
def test_ranking_is_by_calibrated_probability_and_gold_is_out(
    method: str, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(of_fit, "MAX_SAMPLED", limit)
    crowd = simulate_crowd(200, 30, imbalance=2, random_state=1)
    gold = {task: int(crowd.truth[task]) for task in range(20)}
    fitted = rarevote.fit(crowd.arrays, method, gold=gold)
    audit = fitted.audit("1", 0.8, seed=3)
    assert audit.plan.name == 1
    assert audit.plan.gold == gold
    assert audit.wealth.known_positives == sum(gold.values())
    ranked = [task for stratum in audit.plan.strata.tasks for task in stratum]
    assert sorted(ranked) == list(range(20, 200))
    score = fitted.method.posterior_[:, 1] if method == "anchored-rasch" else fitted.calibrate().posterior[:, 1]
    if limit:
        # Votes are sampled alike whatever the method.
        other = rarevote.fit(crowd.arrays, "cc-rasch", gold=gold).method
        score = calibrate_fit(other, gold, n_sweeps=400).posterior[:, 1]
    assert (np.diff(score[ranked]) <= 0).all()
    with pytest.raises(ParameterError, match=r"no class is called 'x'; the classes are 0, 1"):
        fitted.audit("x")


def test_result_has_the_best_other_class_of_every_task() -> None:
    crowd = simulate_crowd(150, 30, n_classes=4, imbalance=3, random_state=2)
    fitted = rarevote.fit(crowd.arrays)
    audit = fitted.audit(3, 0.9, seed=3)
    # An answer on an item nobody asked for decides that item.
    audit.answer({0: 2, 1: 3})
    tasks = all_tasks(fitted.annotations)
    rows = result_columns(audit, tasks)
    p = fitted.calibrate().posterior
    assert rows["decision"].tolist() == ["expert", "expert", *["audit"] * 148]
    assert rows["label"].tolist() == [2, 3, *[3] * 148]
    other = {task: name for name, group in (audit.plan.source or {})["others"] for task in group}
    found = [other.get(task, (audit.plan.source or {})["other"]) for task in tasks]
    assert found == p[:, :3].argmax(axis=1).tolist()


def test_items_with_abstentions_only_are_part_of_the_population() -> None:
    crowd = simulate_crowd(60, 20, imbalance=2, random_state=1)
    votes = [(f"t{t}", f"w{w}", "yes" if c else "no") for t, w, c in zip(*crowd.arrays, strict=True)]
    fitted = rarevote.fit([*votes, ("silent", "w1", "?")], abstain=["?"])
    audit = fitted.audit("yes", seed=3)
    assert "silent" in audit.final_list()
    rows = result_columns(audit, all_tasks(fitted.annotations), {"text": np.array(["seen"] * 60, dtype=object)})
    assert (rows["task"][-1], rows["text"].tolist()) == ("silent", [*["seen"] * 60, ""])
