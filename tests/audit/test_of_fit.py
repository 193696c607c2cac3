"""Audits of a fit: which score ranks, gold is known before, items without votes come last, results name every task."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rarevote
from rarevote import simulate_crowd
from rarevote.audit import Audit, of_fit, verify
from rarevote.audit.of_fit import result_columns
from rarevote.audit.plan_file import to_text
from rarevote.audit.words import start_words, status_words
from rarevote.crowd.population import population
from rarevote.decide import sampled
from rarevote.decide.sampled import sample_crowd
from rarevote.errors import InputError, ParameterError
from tests.audit.worlds import independent_replay


@pytest.mark.parametrize("method", ["anchored-rasch", "cc-rasch", "majority-vote"])
@pytest.mark.parametrize(("limit", "score"), [(0, "posterior"), (10**6, "sampler")])
def test_ranking_is_by_the_score_that_the_plan_names_and_gold_is_out(
    method: str, limit: int, score: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampled, "MAX_VOTES", limit)
    crowd = simulate_crowd(200, 30, imbalance=2, random_state=1)
    gold = None if method == "majority-vote" else {task: int(crowd.truth[task]) for task in range(20)}
    fitted = rarevote.fit(crowd.arrays, method, gold=gold)
    audit = fitted.audit("1", 0.8, seed=3)
    assert (audit.plan.name, audit.plan.score) == (1, score)
    assert audit.plan.gold == (gold or {})
    assert audit.wealth.known_positives == sum((gold or {}).values())
    ranked = [task for stratum in audit.plan.strata.tasks for task in stratum]
    assert sorted(ranked) == list(range(20 if gold else 0, 200))
    by = fitted.method.posterior_[:, 1]
    if limit:
        # Votes are sampled alike whatever the method.
        known = np.array([(gold or {}).get(task, -1) for task in range(200)])
        by = sample_crowd(fitted.annotations, known, n_sweeps=sampled.SWEEPS).score[:, 1]
    assert (np.diff(by[ranked]) <= 0).all()
    with pytest.raises(ParameterError, match=r"name: 'x' is not a class; the classes are 0, 1"):
        fitted.audit("x")


def test_what_cannot_be_sampled_is_ranked_by_the_posterior(monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = simulate_crowd(100, 30, imbalance=2, random_state=1)
    fitted = rarevote.fit(crowd.arrays)
    monkeypatch.setattr("rarevote.decide.sampled._MAX_CELLS", 1)
    probabilities, score = of_fit.ranking_score(fitted)
    assert score == "posterior"
    np.testing.assert_array_equal(probabilities, fitted.method.posterior_)


def test_result_has_the_best_other_class_of_every_task() -> None:
    crowd = simulate_crowd(150, 30, n_classes=4, imbalance=3, random_state=2)
    fitted = rarevote.fit(crowd.arrays)
    audit = fitted.audit(3, 0.9, seed=3)
    # An answer on an item nobody asked for decides that item.
    audit.answer({0: 2, 1: 3})
    rows = result_columns(audit, fitted.annotations)
    p = fitted.probabilities
    assert rows["decision"].tolist() == ["expert", "expert", *["audit"] * 148]
    assert rows["label"].tolist() == [2, 3, *[3] * 148]
    other = {task: name for name, group in (audit.plan.source or {})["others"] for task in group}
    found = [other.get(task, (audit.plan.source or {})["other"]) for task in population(fitted.annotations).tolist()]
    assert found == p[:, :3].argmax(axis=1).tolist()


# --------------------------------------------------------------------------------------------------------------------
# items without votes

SILENT = [f"s{i}" for i in range(9)]


def fit_with_unvoted(gold: dict[str, str] | None = None) -> Any:
    """60 items with votes, nine that got abstentions only."""
    crowd = simulate_crowd(60, 20, imbalance=2, random_state=1)
    votes = [(f"t{t}", f"w{w}", "yes" if c else "no") for t, w, c in zip(*crowd.arrays, strict=True)]
    return rarevote.fit([*votes, *((task, "w1", "?") for task in SILENT)], abstain=["?"], gold=gold)


def test_items_without_votes_are_a_last_stratum_of_their_own() -> None:
    fitted = fit_with_unvoted()
    audit = fitted.audit("yes", seed=3)
    strata = audit.plan.strata
    assert sorted(strata.tasks[-1]) == SILENT
    scores = of_fit.ranking_score(fitted)[0][:, fitted.annotations.classes.tolist().index("yes")]
    assert strata.p0[-1] == pytest.approx(scores.mean())
    assert strata.n_tasks == 69
    assert (audit.plan.as_json()["population"]) == {
        "voted": 60, "unvoted": 9, "left_out": 0, "only_voted_items": False
    }  # fmt: skip
    claim = audit.certificate()
    assert (claim["items"], claim["voted"], claim["unvoted"], claim["left_out"]) == (69, 60, 9, 0)
    assert claim["population"] == "69 items (60 with votes, 9 without)"
    assert "69 items (60 with votes, 9 without), about" in start_words(audit)
    assert "Population: 69 items (60 with votes, 9 without)." in status_words(audit)
    rows = result_columns(audit, fitted.annotations, {"text": np.array(["seen"] * 60, dtype=object)})
    assert (rows["task"][-1], rows["text"].tolist()) == ("s8", [*["seen"] * 60, *[""] * 9])
    assert set(rows["decision"].tolist()) == {"audit"}


def test_items_without_votes_can_be_left_out_and_everything_says_so() -> None:
    fitted = fit_with_unvoted()
    audit = fitted.audit("yes", seed=3, only_voted_items=True)
    assert not set(SILENT) & audit.plan.tasks
    assert audit.plan.as_json()["population"] == {
        "voted": 60, "unvoted": 0, "left_out": 9, "only_voted_items": True
    }  # fmt: skip
    while review := audit.round(20):
        audit.answer({task: int(task[1:]) % 4 == 0 for task in review})
    claim = audit.certificate()
    assert claim["population"] == "60 items with votes (9 without votes left out)"
    assert "recall of “yes” among items with votes at least 0.90" in claim["claim"]
    assert "60 items with votes (9 without votes left out)" in status_words(audit)
    assert (claim["left_out"], claim["only_voted_items"]) == (9, True)
    rows = result_columns(audit, fitted.annotations)
    assert rows["label"].tolist()[-9:] == [""] * 9
    assert rows["decision"].tolist()[-9:] == ["left out"] * 9
    verdict = verify(audit, claim, votes=fitted.annotations)
    assert not verdict
    assert "it covers 60 items with votes (9 without votes left out)" in verdict.notes
    # With nothing to leave out it is asked for all the same.
    crowd = simulate_crowd(60, 20, imbalance=2, random_state=1)
    full = rarevote.fit(crowd.arrays).audit(1, seed=3, only_voted_items=True)
    assert full.certificate()["population"] == "60 items with votes (0 without votes left out)"


def test_an_item_without_votes_that_is_not_flagged_has_no_label() -> None:
    fitted = fit_with_unvoted()
    audit = fitted.audit("yes", seed=3)
    while review := audit.round(30):
        audit.answer({task: not task.startswith("s") and int(task[1:]) % 4 == 0 for task in review[:-1]})
        audit.worst_case()
        if audit.certified < len(audit.plan.strata.tasks) - 1:
            break
    rows = result_columns(audit, fitted.annotations)
    said = dict(zip(rows["task"].tolist(), zip(rows["label"], rows["decision"], strict=True), strict=True))
    for task in SILENT:
        expected = ("no", "expert") if task in audit.answers else ("", "no votes")
        assert said[task] == expected


@pytest.mark.filterwarnings("ignore:gold for 1 task without votes")
def test_gold_without_votes_is_known_and_leaves_the_population() -> None:
    fitted = fit_with_unvoted(gold={"s0": "yes", "t0": "no"})
    audit = fitted.audit("yes", seed=3)
    assert audit.plan.gold == {"s0": "yes", "t0": "no"}
    assert audit.certificate()["population"] == "67 items (59 with votes, 8 without)"
    assert verify(audit, audit.certificate(), votes=fitted.annotations) == ()
    # Where items without votes are left out, so is their gold: the claim is not about them.
    voted = fitted.audit("yes", seed=3, only_voted_items=True)
    assert voted.plan.gold == {"t0": "no"}
    assert verify(voted, voted.certificate(), votes=fitted.annotations) == ()


def test_populations_that_are_not_those_of_the_labels_are_refused() -> None:
    fitted = fit_with_unvoted()
    votes = fitted.annotations
    audit = fitted.audit("yes", seed=3)
    record = audit.plan.as_json()
    assert verify(audit, audit.certificate(), votes=votes) == ()
    false = Audit.from_json(to_text({**record, "population": {**record["population"], "voted": 69, "unvoted": 0}}))
    assert "in these labels it is 9 and 0" in verify(false, false.certificate(), votes=votes)[0]
    # Leaving items without votes out in silence.
    silent = [one for one in record["strata"] if one["tasks"][0] not in SILENT]
    some = Audit.from_json(to_text({**record, "strata": silent, "population": {**record["population"], "unvoted": 0}}))
    assert "9 items in these labels but neither" in verify(some, some.certificate(), votes=votes)[0]
    for damage in ({"voted": 68}, {"left_out": 3}, {"only_voted_items": True}, {"unvoted": -9, "voted": 78}, {"a": 1}):
        with pytest.raises(InputError, match="damaged"):
            Audit.from_json(to_text({**record, "population": {**record["population"], **damage}}))


def test_plans_of_before_keep_their_population() -> None:
    """Version 0.2 counted no items without votes but those with abstentions; readers find more of them now."""
    fitted = fit_with_unvoted()
    votes = fitted.annotations
    record = fitted.audit("yes", seed=3, only_voted_items=True).plan.as_json()
    del record["population"], record["score"], record["planner"]
    old = Audit.from_json(to_text(record))
    assert old.to_json() == to_text(record)
    old.answer(dict.fromkeys(old.round(5), "no"))
    claim = old.certificate()
    assert "population" not in claim
    verdict = verify(old, claim, votes=votes)
    assert not verdict
    rows = result_columns(old, votes)
    assert rows["decision"].tolist()[-9:] == ["left out"] * 9


def test_scores_from_elsewhere_may_be_missing_and_say_who_voted() -> None:
    scores = [0.9, 0.8, np.nan, 0.2, 0.1, np.nan]
    audit = Audit.start(range(6), scores, name="x", target=0.5, seed=1, unvoted=[5])
    assert set(audit.plan.strata.tasks[-1]) == {2, 5}
    assert audit.plan.strata.p0[-1] == pytest.approx(0.5)
    assert audit.certificate()["population"] == "6 items (5 with votes, 1 without)"
    assert "population" not in Audit.start(range(6), scores, name="x", target=0.5, seed=1).certificate()
    with pytest.raises(ParameterError, match="needs unvoted"):
        Audit.start(range(6), scores, name="x", target=0.5, only_voted_items=True)
    with pytest.raises(InputError, match="task 9 of unvoted is not among the tasks"):
        Audit.start(range(6), scores, name="x", target=0.5, unvoted=[9])


@pytest.mark.prove
@pytest.mark.parametrize(("rate", "certifies"), [(0.45, False), (0.005, True)])
def test_certificates_hold_where_items_without_votes_have_positives(rate: float, certifies: bool) -> None:
    """Every third item has no votes. Where half of the positives are there, nothing but everything is certified."""
    n, n_silent, n_audits = 240, 80, 25
    false = certified = false_of_voted = 0
    for seed in range(n_audits):
        generator = np.random.default_rng(seed)
        p = np.concatenate([np.where(np.arange(n - n_silent) < 50, 0.85, 0.005), np.full(n_silent, rate)])
        truth = generator.random(n) < p
        scores = np.where(np.arange(n) < n - n_silent, p, np.nan)
        options: dict[str, Any] = {"name": "x", "target": 0.8, "seed": seed, "unvoted": range(n - n_silent, n)}
        for only_voted in (False, True):
            audit = Audit.start(range(n), scores, flag_cost=2.0, only_voted_items=only_voted, **options)
            while review := audit.round():
                audit.answer({task: bool(truth[task]) for task in review})
            inside = [task for group in audit.plan.strata.tasks[: audit.certified + 1] for task in group]
            found = int(truth[inside].sum())
            if only_voted:
                # What is claimed, recall among items with votes, is true; of all items it may be false.
                false_of_voted += found < 0.8 * truth[: n - n_silent].sum()
                assert certifies or found < 0.8 * truth.sum()
            else:
                certified += audit.is_certified
                false += found < 0.8 * truth.sum()
            if seed < 5:
                replayed = independent_replay(audit.to_json())
                assert audit.wealth.log_wealth.tolist() == pytest.approx(replayed, abs=1e-9)
                assert verify(audit, audit.certificate()) == ()
    most = n_audits * 0.05 + 3 * (n_audits * 0.05 * 0.95) ** 0.5
    assert false <= most
    assert false_of_voted <= most
    assert certified > n_audits // 2 if certifies else certified <= most
