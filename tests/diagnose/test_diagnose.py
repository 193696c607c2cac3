"""Every record against loops that do the same the long way."""

from __future__ import annotations

import dataclasses
from math import exp, isnan, log
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rarevote import GLAD, CCRasch, DawidSkene, MajorityVote, Rasch, simulate_crowd
from rarevote.api import Fitted
from rarevote.crowd.annotations import Annotations
from rarevote.decide.decision import with_expectations
from rarevote.decide.expectations import believed
from rarevote.decide.probabilities import Probabilities
from rarevote.decide.sampled import independent_draws
from rarevote.diagnose import diagnosis as module
from rarevote.diagnose.diagnosis import Diagnosis
from rarevote.diagnose.items import relative_entropy
from rarevote.diagnose.truth import calibration_groups, wilson
from rarevote.diagnose.workers import Profile, mean_recognition, recognition
from rarevote.errors import InputError, ParameterError
from rarevote.methods.base import Estimator
from tests.decide.made import made
from tests.page.crowds import random_crowd

CLASSES = [("no", "yes"), ("a", "b", "c")]


def diagnose(model: Estimator, *, labels: Any = None, truth: Any = None, rare: Any = None) -> Diagnosis:
    """What is known about a fit with the method's own labels, unless others are given."""
    fitted = Fitted.of(model, rare)
    codes = model.label_codes() if labels is None else labels
    found, costs = fitted.reported, 1.0 - np.eye(len(model.classes_))
    decision = with_expectations(found, codes, "as given", costs, fitted.rare)
    return module.diagnose(model, found, decision, fitted.rare, truth=truth)


def rows_of(crowd: Annotations) -> list[tuple[int, int, int]]:
    task = crowd.task_of_annotation().tolist()
    return list(zip(task, crowd.worker.tolist(), crowd.label.tolist(), strict=True))


@pytest.fixture(scope="module", params=[(CCRasch, 0), (CCRasch, 1), (MajorityVote, 0), (DawidSkene, 1)], ids=str)
def found(request: pytest.FixtureRequest) -> Diagnosis:
    method, number = request.param
    crowd, truth = random_crowd(number, classes=CLASSES[number])
    return diagnose(method().fit(crowd), truth=truth)


def test_votes_agreement_and_exposure_of_workers(found: Diagnosis) -> None:
    crowd, workers, items = found.crowd, found.workers, found.items
    for r in range(crowd.n_workers):
        own = [(i, k) for i, worker, k in rows_of(crowd) if worker == r]
        assert workers.n_votes[r] == len(own)
        assert workers.agreement[r] == pytest.approx(sum(items.label[i] == k for i, k in own) / len(own))
        for k in range(crowd.n_classes):
            assert workers.seen[r, k] == pytest.approx(sum(items.probabilities[i, k] for i, _ in own))


def test_profiles_follow_from_the_intervals_against_chance(found: Diagnosis) -> None:
    workers = found.workers
    for r in range(len(workers.names)):
        common, rare = (workers.low[r, k] > 1 / found.crowd.n_classes for k in (found.common, found.rare))
        wanted = {
            (True, True): Profile.BOTH,
            (True, False): Profile.MAJORITY_ONLY,
            (False, True): Profile.MINORITY_ONLY,
            (False, False): Profile.NEITHER,
        }[bool(common), bool(rare)]
        assert workers.profile[r] == wanted
    assert sum(workers.count(profile) for profile in Profile) == len(workers.names)
    assert ((workers.low < workers.accuracy) & (workers.accuracy < workers.high)).all()
    assert workers.ability == pytest.approx(np.log(workers.accuracy / (1 - workers.accuracy)))


def test_accuracies_with_certain_classes_are_counted() -> None:
    """With every class known: hits and misses, and four votes of the average person."""
    crowd, truth = random_crowd(2)
    code = {name: k for k, name in enumerate(crowd.classes.tolist())}
    known = np.array([code[truth[name]] for name in crowd.tasks.tolist()], dtype=np.int32)
    accuracy, low, high = recognition(crowd, np.eye(2)[known])
    for k in range(2):
        own = [(r, label == k) for i, r, label in rows_of(crowd) if known[i] == k]
        average = (sum(hit for _, hit in own) + 1) / (len(own) + 2)
        for r in range(crowd.n_workers):
            hits = [hit for worker, hit in own if worker == r]
            right, wrong = sum(hits) + 4 * average, len(hits) - sum(hits) + 4 * (1 - average)
            assert accuracy[r, k] == pytest.approx(right / (right + wrong))
            assert low[r, k] == pytest.approx(beta_quantile(0.025, right, wrong), abs=0.06)
            assert high[r, k] == pytest.approx(beta_quantile(0.975, right, wrong), abs=0.06)


def beta_quantile(share: float, right: float, wrong: float) -> float:
    from scipy.stats import beta

    return float(beta.ppf(share, right, wrong))


def test_expected_hits_stand_for_hits_where_classes_are_not_certain() -> None:
    crowd, _ = random_crowd(2)
    p = np.random.default_rng(1).dirichlet([1, 2], crowd.n_tasks)
    accuracy = recognition(crowd, p)[0]
    np.testing.assert_array_equal(mean_recognition(crowd, p), accuracy)
    for k in range(2):
        own = [(r, float(p[i, k]), label == k) for i, r, label in rows_of(crowd)]
        average = (sum(w for _, w, hit in own if hit) + 1) / (sum(w for _, w, _ in own) + 2)
        for r in range(crowd.n_workers):
            right = sum(w for worker, w, hit in own if worker == r and hit) + 4 * average
            total = sum(w for worker, w, _ in own if worker == r) + 4
            assert accuracy[r, k] == pytest.approx(right / total)


def covered(method: type[Estimator] | None) -> NDArray[np.float64]:
    """Share of the workers whose interval covers what they would reach over all items of a class, (2).

    The classes are as the method reports them, or known where there is none.
    """
    inside = []
    for seed in range(2):
        crowd = simulate_crowd(1200, 30, votes_per_task=6, random_state=seed)
        model = (method or MajorityVote)().fit((crowd.task, crowd.worker, crowd.label))
        p = model.reported_ if method else np.eye(2)[crowd.truth]
        _, low, high = recognition(model.annotations_, p)
        # Items are easy and hard as they come.
        chance = np.clip(crowd.accuracy, 0.01, 0.99) - 0.3 * 0.15
        inside.append((low <= chance) & (chance <= high))
    return np.asarray(np.mean(inside, axis=(0, 1)))


def test_intervals_of_accuracies_cover_the_truth_where_classes_are_known() -> None:
    assert (covered(None) > 0.9).all()


def test_intervals_of_accuracies_cover_the_truth_of_the_common_class() -> None:
    assert covered(CCRasch)[0] > 0.9


@pytest.mark.xfail(reason="probabilities of the rare class are too high where errors are independent", strict=True)
def test_intervals_of_accuracies_cover_the_truth_of_the_rare_class() -> None:
    assert covered(CCRasch)[1] > 0.85


def test_expectations_are_those_of_the_decision() -> None:
    crowd = simulate_crowd(2000, 30, imbalance=15, p_bad=0.1, p_good=0.4, votes_per_task=6, random_state=3)
    model = CCRasch().fit((crowd.task, crowd.worker, crowd.label))
    fitted = Fitted.of(model)
    found, decision = diagnose(model), fitted.decide().decision
    assert found.expected == dict(enumerate(decision.expected))
    assert found.expected_accuracy == decision.accuracy
    for k in range(2):
        shares = decision.expected[k].prevalence
        ends = (found.classes.expected_low[k], found.classes.n_expected[k], found.classes.expected_high[k])
        assert ends == pytest.approx([2000 * share for share in (shares.low, shares.value, shares.high)])


def test_items(found: Diagnosis) -> None:
    crowd, items = found.crowd, found.items
    for i in range(crowd.n_tasks):
        votes = [0] * crowd.n_classes
        for task, _, k in rows_of(crowd):
            votes[k] += task == i
        assert items.votes[i].tolist() == votes
        assert items.majority[i] == votes.index(max(votes))
        assert items.confidence[i] == items.probabilities[i, items.label[i]]
        shares = [number / sum(votes) for number in votes if number]
        assert items.disputed[i] == pytest.approx(-sum(p * log(p) for p in shares) / log(crowd.n_classes))
        assert items.overruled[i] == (items.label[i] != items.majority[i])


def test_difficulty_is_that_of_the_label() -> None:
    crowd, _ = random_crowd(4)
    model = CCRasch().fit(crowd)
    found = diagnose(model)
    items, workers = found.items, found.workers
    assert items.difficulty is not None
    assert items.typical_accuracy is not None
    beta = np.column_stack([model.difficulties_[name] for name in crowd.classes.tolist()])
    mean = np.array(list(model.mu_beta_.to_dict().values()))
    typical = (workers.seen * workers.accuracy).sum(axis=0) / workers.seen.sum(axis=0)
    for i, k in enumerate(items.label.tolist()):
        assert items.difficulty[i] == pytest.approx(beta[i, k] - mean[k])
        odds = typical[k] / (1 - typical[k]) * exp(mean[k] - beta[i, k])
        assert items.typical_accuracy[i] == pytest.approx(odds / (1 + odds))
    assert diagnose(CCRasch(difficulty=None).fit(crowd)).items.difficulty is None
    assert diagnose(MajorityVote().fit(crowd)).items.typical_accuracy is None


def test_difficulties_of_glad_are_what_an_average_worker_loses() -> None:
    crowd, _ = random_crowd(1, classes=CLASSES[1])
    model = GLAD().fit(crowd)
    items = diagnose(model).items
    alpha, b = list(model.alphas_.to_dict().values()), [model.betas_.to_dict()[name] for name in crowd.tasks.tolist()]
    ability, mean_b = sum(alpha) / len(alpha), sum(b) / len(b)
    assert items.difficulty is not None
    for i in range(crowd.n_tasks):
        # The model's own log odds, alpha exp(b), on a task of mean b and on this one.
        assert items.difficulty[i] == pytest.approx(ability * exp(mean_b) - ability * exp(b[i]))


def test_difficulties_of_rasch_stand_against_their_mean() -> None:
    crowd, truth = random_crowd(0)
    gold = dict(list(truth.items())[::2])
    model = Rasch().fit(crowd, gold)
    found = diagnose(model)
    beta = model.difficulties_.to_dict()
    # Tasks without gold have the mean difficulty: they are neither hard nor easy.
    mean = next(beta[name] for name in crowd.tasks.tolist() if name not in gold)
    assert found.items.difficulty is not None
    assert found.items.typical_accuracy is not None
    for i, name in enumerate(crowd.tasks.tolist()):
        assert found.items.difficulty[i] == pytest.approx(beta[name] - mean, abs=1e-12)
        typical = found.workers.typical_accuracy[found.items.label[i]]
        odds = typical / (1 - typical) * exp(mean - beta[name])
        assert found.items.typical_accuracy[i] == pytest.approx(odds / (1 + odds), abs=2e-3)


@pytest.mark.parametrize(("method", "knows"), [(GLAD, True), (DawidSkene, False)])
def test_items_are_hard_where_votes_disagree_with_their_label(method: type[Estimator], knows: bool) -> None:
    made = simulate_crowd(
        200, 30, votes_per_task=15, hard_share=0.5, imbalance=1.5, p_good=0.5, p_bad=0.0, random_state=3
    )
    items = diagnose(method().fit(Annotations.from_arrays(*made.arrays))).items
    assert (items.typical_accuracy is not None) == knows
    if items.typical_accuracy is not None:
        agreeing = items.votes[np.arange(200), items.label] / items.votes.sum(axis=1)
        assert np.corrcoef(items.typical_accuracy, agreeing)[0, 1] > 0.6


def test_entropy_of_certain_even_and_single_classes() -> None:
    shares = np.array([[1.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3], [0.5, 0.5, 0.0]])
    assert relative_entropy(shares).tolist() == pytest.approx([0, 1, log(2) / log(3)])
    assert relative_entropy(np.ones((2, 1))).tolist() == [0, 0]


def test_classes_and_moves(found: Diagnosis) -> None:
    crowd, items, classes, moved = found.crowd, found.items, found.classes, found.overruled
    for k in range(crowd.n_classes):
        assert classes.n_labelled[k] == sum(items.label == k)
        assert classes.n_majority[k] == sum(items.majority == k)
        assert classes.n_expected[k] == pytest.approx(crowd.n_tasks * found.expected[k].prevalence.value)
        assert classes.n_votes[k] == sum(label == k for _, _, label in rows_of(crowd))
    assert (classes.expected_low <= classes.n_expected).all()
    assert (classes.n_expected <= classes.expected_high).all()
    assert sorted(moved.items.tolist()) == [i for i in range(crowd.n_tasks) if items.label[i] != items.majority[i]]
    for a, b, number in zip(moved.majority, moved.label, moved.count, strict=True):
        own = [i for i in moved.items if items.majority[i] == a and items.label[i] == b]
        assert number == len(own)
    assert moved.count.sum() == len(moved.items)


def test_the_rare_class_is_the_one_with_the_fewest_votes_or_the_one_named(found: Diagnosis) -> None:
    items, n_votes = found.items, found.classes.n_votes.tolist()
    assert found.rare == n_votes.index(min(n_votes))
    mass = items.probabilities.sum(axis=0)
    assert found.common == max((k for k in range(len(mass)) if k != found.rare), key=mass.__getitem__)
    crowd, _ = random_crowd(0)
    model = MajorityVote().fit(crowd)
    assert diagnose(model, rare="no").rare == 0
    with pytest.raises(ParameterError, match="'maybe' is not a class; the classes are no, yes"):
        diagnose(model, rare="maybe")
    numbers = MajorityVote().fit(([1, 2], ["a", "b"], [0, 1]))
    assert diagnose(numbers, rare="1").rare == 1


def test_a_headline_names_a_class_that_a_person_named_or_a_clear_one_of_few() -> None:
    rows = [(i, f"w{j}", "abc"[0 if i < 3 else 1 if i < 20 else 2]) for i in range(60) for j in range(3)]
    model = MajorityVote().fit(rows)
    assert diagnose(model).leading is None  # three items of a, the rarest: too few to speak of
    assert diagnose(model).rare == 0
    assert diagnose(model, rare="a").leading == 0
    assert diagnose(model, rare="b").leading == 1
    clear = MajorityVote().fit([(i, w, "a" if i < 12 else y) for i, w, y in rows])
    assert clear.annotations_.class_votes.tolist() == [36, 24, 120]
    assert diagnose(clear, rare=None).leading is None  # eight items of b
    enough = MajorityVote().fit([(i, w, "a" if i < 10 else y) for i, w, y in rows])
    assert diagnose(enough).leading == 0  # ten of a, a sixth of the votes
    two = MajorityVote().fit([(i, "x", "a" if i < 2 else "b") for i in range(10)])
    assert diagnose(two).leading == 0  # of two classes a rare one leads, however few
    alike = MajorityVote().fit([(i, "x", "a" if i < 3 else "b") for i in range(10)])
    assert diagnose(alike).leading is None  # above a fifth of the votes, and not named
    many = MajorityVote().fit([(i, f"w{j}", i % 13) for i in range(260) for j in range(2)])
    assert diagnose(many).leading is None


def test_a_class_without_votes_is_not_the_rare_one() -> None:
    model = MajorityVote().fit(([1, 2, 3], ["a"] * 3, ["x", "x", "y"]), classes=["z"])
    found = diagnose(model)
    assert found.classes.names[found.rare] == "y"


def test_expected_trade_off(found: Diagnosis) -> None:
    items, curve = found.items, found.trade_offs[0]
    probability = items.probabilities[:, found.rare]
    for threshold, flagged, recall, precision in zip(
        curve.threshold, curve.n_flagged, curve.recall, curve.precision, strict=True
    ):
        assert flagged == (probability >= threshold).sum()
        assert 0 <= recall <= 1 + 1e-9
        assert 0 <= precision <= 1
    assert (np.diff(curve.recall) >= 0).all()
    assert curve.recall[-1] == pytest.approx(1)
    draws = independent_draws(found.crowd, np.full(len(probability), -1))
    both = dataclasses.replace(made(items.probabilities), how=Probabilities.how, draws=lambda: draws)
    mass = believed(both, found.rare)
    for threshold, recall, precision in zip(curve.threshold, curve.recall, curve.precision, strict=True):
        taken = probability >= threshold
        assert recall == pytest.approx(mass[taken].sum() / mass.sum())
        assert precision == pytest.approx(mass[taken].mean())
    one, labelled = found.expected[found.rare], items.label == found.rare
    assert curve.chosen.n_flagged == labelled.sum()
    assert curve.chosen.recall == one.recall.value
    assert curve.majority.recall == found.majority_recall[found.rare].value
    if labelled.any():
        assert curve.chosen.precision == one.precision.value


def test_true_trade_off_and_truth(found: Diagnosis) -> None:
    crowd, truth_check = found.crowd, found.truth
    assert truth_check is not None
    _, truth = random_crowd(0 if crowd.n_classes == 2 else 1, classes=CLASSES[crowd.n_classes - 2])
    names, rare = crowd.classes.tolist(), crowd.classes[found.rare]
    is_rare = np.array([truth[name] == rare for name in crowd.tasks.tolist()])
    curve = found.true_trade_offs[0]
    for threshold, recall, precision in zip(curve.threshold, curve.recall, curve.precision, strict=True):
        taken = found.items.probabilities[:, found.rare] >= threshold
        assert recall == pytest.approx((taken & is_rare).sum() / is_rare.sum())
        assert precision == pytest.approx((taken & is_rare).sum() / taken.sum())
    cells = {(truth_check.classes[a], truth_check.classes[b]): n for a, b, n in truth_check.confusion()}
    for (true_name, label), number in cells.items():
        own = [
            i for i, task in enumerate(crowd.tasks) if truth[task] == true_name and names[found.items.label[i]] == label
        ]
        assert number == len(own)
    assert sum(cells.values()) == crowd.n_tasks
    assert truth_check.scores.n_items == crowd.n_tasks


def test_long_curves_are_thinned_and_keep_their_ends() -> None:
    crowd = simulate_crowd(4000, 30, random_state=1)
    curve = diagnose(CCRasch().fit((crowd.task, crowd.worker, crowd.label))).trade_offs[0]
    assert len(curve.recall) <= 200
    assert curve.recall[-1] == pytest.approx(1)
    assert np.diff(curve.recall).max() < 0.03


def test_gold_is_left_out_of_the_check() -> None:
    crowd, truth = random_crowd(6)
    gold = {task: truth[task] for task in crowd.tasks[:20].tolist()}
    model = CCRasch().fit(crowd, gold)
    found = diagnose(model, truth=truth)
    assert found.truth is not None
    assert found.truth.n_given == 20
    assert len(found.truth.items) == crowd.n_tasks - 20
    assert found.items.is_known.sum() == 20
    with pytest.raises(InputError, match="also given as gold"):
        diagnose(model, truth=gold)


def test_truth_that_does_not_fit() -> None:
    crowd, truth = random_crowd(6)
    model = MajorityVote().fit(crowd)
    with pytest.raises(InputError, match="names none of the tasks"):
        diagnose(model, truth={"elsewhere": "yes"})
    found = diagnose(model, truth={"t000": "unheard of", "elsewhere": "yes"})
    assert found.truth is not None
    assert found.truth.n_unseen == 1
    assert found.truth.classes == ["no", "unheard of", "yes"]
    assert truth["t000"] in ("no", "yes")


def test_another_decision() -> None:
    crowd, _ = random_crowd(1)
    labels = np.zeros(crowd.n_tasks, dtype=np.int64)
    found = diagnose(CCRasch().fit(crowd), labels=labels, rare="yes")
    assert found.classes.n_labelled.tolist() == [crowd.n_tasks, 0]
    assert isnan(found.trade_offs[0].chosen.precision)


def test_abstentions_are_counted() -> None:
    crowd = Annotations.from_arrays([1, 1, 2, 2], ["a", "b", "a", "b"], ["x", "?", "y", "y"], abstain=["?"])
    workers = diagnose(MajorityVote().fit(crowd)).workers
    assert workers.n_abstentions.tolist() == [0, 1]


def test_no_votes_and_a_single_class() -> None:
    empty = MajorityVote().fit(([], [], []))
    with pytest.raises(InputError, match="no annotations: there is nothing to decide"):
        Fitted.of(empty)
    with pytest.raises(InputError, match="no annotations: there is nothing to describe"):
        module.diagnose(empty, None, None, None)  # type: ignore[arg-type]
    found = diagnose(CCRasch().fit(([1, 1, 2], ["a", "b", "a"], ["x", "x", "x"])))
    assert (found.rare, found.common) == (0, 0)
    assert found.items.entropy.tolist() == [0, 0]


def test_calibration_groups() -> None:
    draw = np.random.default_rng(1)
    probability = draw.random(500)
    is_class = (draw.random(500) < probability).astype(float)
    found = calibration_groups(probability, is_class)
    total = 0.0
    for g in range(10):
        own = (probability >= g / 10) & (probability < (g + 1) / 10)
        assert found.count[g] == own.sum()
        assert found.predicted[g] == pytest.approx(probability[own].mean())
        assert found.observed[g] == pytest.approx(is_class[own].mean())
        total += own.sum() * abs(probability[own].mean() - is_class[own].mean())
    assert found.error == pytest.approx(total / 500)
    assert calibration_groups(np.array([1.0]), np.array([1.0])).count.tolist() == [1]


@pytest.mark.parametrize(("share", "count"), [(0.0, 10), (1.0, 10), (0.3, 50)])
def test_wilson_solves_its_equation(share: float, count: int) -> None:
    """The ends are the shares from which the observed one is just 1.96 standard deviations away."""
    for end in wilson(np.array([share]), np.array([count])):
        spread = np.sqrt(end * (1 - end) / count)
        assert abs(share - end) == pytest.approx(1.959963984540054 * spread, abs=1e-7)


def test_items_without_an_answer_are_nobodys() -> None:
    rows = ([1, 1, 1, 2, 2, 2, 3, 3], [*"abcabcab"], ["no", "no", "yes", "yes", "yes", "no", "no", "yes"])
    model = MajorityVote().fit(rows)
    found = diagnose(model, labels=np.array([0, -1, 1]), rare="yes", truth={1: "no", 2: "yes", 3: "yes"})
    assert found.classes.n_labelled.tolist() == [1, 1]
    # Worker a voted no, (yes), no against no, none, yes; b no, (yes), yes; c yes, (no).
    assert found.workers.agreement.tolist() == [0.5, 1.0, 0.0]
    assert found.items.overruled.tolist() == [False, False, True]
    assert found.items.confidence[1] == found.items.probabilities[1].max()
    assert found.truth is not None
    assert found.truth.label.tolist() == [0, -1, 1]
    assert found.truth.scores.recall == {"no": 1.0, "yes": 0.5}
    assert found.truth.scores.precision == {"no": 1.0, "yes": 1.0}
    # F1 of "no" is 1, of "yes" 2 * 1 / (2 + 1).
    assert found.truth.scores.macro_f1 == pytest.approx((1 + 2 / 3) / 2)
