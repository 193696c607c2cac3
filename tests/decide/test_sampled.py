"""The sampler of votes: against loops over votes, against its own prior, and what its draws cover."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import rarevote
from rarevote.crowd.annotations import Annotations
from rarevote.decide import sampled
from rarevote.decide.sampled import independent_draws, sample_crowd, why_not_sampled
from rarevote.decide.sampler import Drawn, Votes, VoteSampler, are_settled
from rarevote.simulate.crowds import SimulatedCrowd, simulate_crowd

pytestmark = pytest.mark.usefixtures("always_sampled")
Floats = NDArray[np.float64]
NOBODY_KNOWN = np.empty(0, dtype=np.int32)


def annotations_of(crowd: SimulatedCrowd) -> Annotations:
    return Annotations.from_arrays(*crowd.arrays, classes=list(range(crowd.n_classes)))


def unknown(crowd: Annotations) -> NDArray[np.int32]:
    return np.full(crowd.n_tasks, -1, dtype=np.int32)


def drawn_shares(draws: Drawn, n_classes: int) -> Floats:
    """Share of every class in every draw, (n_draws, K)."""
    return np.stack([(draws.classes == k).mean(axis=1) for k in range(n_classes)], axis=1)


def little_crowd(n_tasks: int, n_workers: int, n_classes: int, seed: int) -> Annotations:
    rng = np.random.default_rng(seed)
    size = rng.integers(1, n_workers + 1, n_tasks)
    worker = np.concatenate([rng.permutation(n_workers)[:votes] for votes in size])
    label = rng.integers(0, n_classes, worker.size)
    return Annotations.from_arrays(np.repeat(np.arange(n_tasks), size), worker, label, classes=list(range(n_classes)))


def sampler_of(crowd: Annotations, gold: NDArray[np.int32] = NOBODY_KNOWN, seed: int = 0) -> VoteSampler:
    known = gold if gold.size else np.full(crowd.n_tasks, -1, dtype=np.int32)
    return VoteSampler(crowd, known, seed)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_class_probabilities_against_a_loop_over_votes(n_classes: int) -> None:
    crowd = little_crowd(12, 5, n_classes, seed=n_classes)
    sampler = sampler_of(crowd)
    for _ in range(3):
        sampler.sweep()
    found = sampler.class_probability(sampler.likelihood(sampler.votes)).T
    for row, task in enumerate(sampler.votes.tasks):
        weight = np.zeros(n_classes)
        for k in range(n_classes):
            for hard in (False, True):
                part = sampler.shares[k] * (sampler.hard_share if hard else 1 - sampler.hard_share)
                for vote in range(crowd.task_ptr[task], crowd.task_ptr[task + 1]):
                    ability = sampler.ability[crowd.worker[vote], k]
                    log_odds = sampler.hard[0] + sampler.hard[1] * ability if hard else ability
                    right = 1 / (1 + np.exp(-log_odds))
                    named = int(crowd.label[vote])
                    part *= right if named == k else (1 - right) * np.exp(sampler.log_error[named, k])
                weight[k] += part
        np.testing.assert_allclose(found[row], weight / weight.sum(), rtol=1e-9)


def test_wrong_votes_name_the_other_classes_in_proportion() -> None:
    sampler = sampler_of(little_crowd(12, 5, 3, seed=0))
    named = np.array([[500.0, 10, 0], [30, 600, 200], [90, 30, 700]])  # vote x class
    draws = []
    for _ in range(300):
        sampler._draw_errors(named)
        draws.append(np.exp(sampler.log_error))
    mean = np.mean(draws, axis=0)
    np.testing.assert_allclose(mean[[1, 2], 0], [0.25, 0.75], atol=0.02)
    np.testing.assert_allclose(mean[[0, 2], 1], [0.25, 0.75], atol=0.05)
    assert mean[1, 2] > 0.98


def test_classes_without_support_take_no_share() -> None:
    truth = simulate_crowd(600, 20, random_state=0)
    task, worker, label = (column.copy() for column in truth.arrays)
    label[[5, 900]] = 7
    crowd = Annotations.from_arrays(task, worker, label, classes=[0, 1, 7, 8])
    shares = drawn_shares(sample_crowd(crowd, unknown(crowd), n_sweeps=300), 4).mean(axis=0)
    assert shares[2:].max() < 1e-6
    assert abs(shares[1] - (truth.truth == 1).mean()) < 0.1


def drawn_again(sampler: VoteSampler) -> Votes:
    """New votes for the sampler's current classes, levels and abilities."""
    votes, K = sampler.votes, sampler.n_classes
    cell, worker = sampler.cell[votes.row], votes.code // K
    log_odds = sampler._log_odds(sampler.ability)[worker, cell // 2, cell % 2]
    right = sampler.rng.random(worker.size) < 1 / (1 + np.exp(-log_odds))
    other = (cell // 2 + sampler.rng.integers(1, K, worker.size)) % K
    code = worker * K + np.where(right, cell // 2, other)
    parts = np.split(code, np.cumsum([len(part) for part in votes.by_position])[:-1])
    return dataclasses.replace(votes, by_position=parts, code=code)


@pytest.mark.prove
def test_sampler_leaves_its_prior_unchanged() -> None:
    """If votes are redrawn from the model after every sweep, every parameter must keep its prior (Geweke 2004)."""
    sampler = sampler_of(little_crowd(8, 4, 2, seed=0))
    traces = []
    for _ in range(2400):
        sampler.sweep()
        sampler.votes = drawn_again(sampler)
        traces.append([sampler.shares[0], sampler.shares[0] ** 2, sampler.hard_share, *sampler.hard])
    trace = np.array(traces)
    rng = np.random.default_rng(0)
    hard = rng.normal([-0.8, 0.7], 0.5, size=(200_000, 2))
    hard = hard[((hard > [-1.25, 0]) & (hard < [0, 1])).all(axis=1)].mean(axis=0)
    expected = np.array([1 / 2, 1 / 3, 1 / 2, *hard])
    error = trace.reshape(40, -1, 5).mean(axis=1).std(axis=0, ddof=1) / np.sqrt(40)
    assert (error < 0.03).all()
    assert (np.abs(trace.mean(axis=0) - expected) < 4 * error).all()


def autoregressive(n_sweeps: int, memory: float, seed: int) -> Floats:
    """A chain around 0.3 with standard deviation 0.02 whose neighbours are correlated, (n_sweeps, 1)."""
    rng = np.random.default_rng(seed)
    chain = np.empty(n_sweeps)
    state = 0.02 * rng.standard_normal()
    for number in range(n_sweeps):
        state = memory * state + 0.02 * np.sqrt(1 - memory**2) * rng.standard_normal()
        chain[number] = 0.3 + state
    return chain[:, None]


def test_sweeps_that_are_much_alike_must_be_more() -> None:
    # The standard error of the mean is about 0.02 sqrt((1 + memory) / (1 - memory) / sweeps); 0.15 sqrt(0.3 0.7 / 2500)
    # is 0.0014: 211 sweeps are enough without memory, 8 200 with a memory of 0.95.
    for memory, n_sweeps, wanted in ((0.0, 600, True), (0.95, 600, False), (0.95, 30_000, True)):
        settled = [are_settled(autoregressive(n_sweeps, memory, seed), 2500) for seed in range(20)]
        assert (sum(settled) >= 18) if wanted else (sum(settled) <= 6), (memory, n_sweeps)


@pytest.mark.prove
def test_the_chain_ends_by_itself_and_says_what_a_long_one_says() -> None:
    truth = simulate_crowd(400, 15, votes_per_task=6, imbalance=4, random_state=0)
    crowd = annotations_of(truth)
    short, long = sampler_of(crowd), sampler_of(crowd, seed=1)
    found, known = short.run(400), long.run(400, 2000)
    assert 200 <= len(found.classes) < 800
    assert len(known.classes) >= 400
    assert len(sampler_of(crowd).run(400, 50).classes) == 38  # exactly so many sweeps, a quarter of them to settle
    error = np.sqrt(known.score[:, 1].mean() * (1 - known.score[:, 1].mean()) / 400)
    assert abs(found.score[:, 1].mean() - known.score[:, 1].mean()) < 0.6 * error


def test_many_classes_cost_fewer_sweeps() -> None:
    assert sampler_of(little_crowd(50, 5, 2, seed=0)).max_sweeps() == 2000
    many = Annotations.from_arrays(np.repeat(np.arange(2000), 5), np.arange(10_000) % 50, np.arange(10_000) % 200)
    # 2e9 / (2 * 200 * (10 000 votes + 6 * 2000 tasks + 200 * 50 workers)), although a chain that ends by itself has 300
    assert sampler_of(many).max_sweeps() == 156


def test_the_budget_of_cells_is_never_overruled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampled, "SWEEPS", 400)
    rng = np.random.default_rng(0)
    seen = set()
    for n_tasks, n_votes, n_workers, n_classes in [
        (60_000, 300_000, 1000, 2), (60_000, 300_000, 1000, 5), (60_000, 300_000, 1000, 20),
        (60_000, 300_000, 100, 100), (2_000, 10_000, 400, 100), (300_000, 300_000, 50, 3), (1_000, 5_000, 40, 2),
    ]:  # fmt: skip
        task = np.sort(np.concatenate([np.arange(n_tasks), rng.integers(n_tasks, size=n_votes - n_tasks)]))
        worker = np.concatenate([np.arange(n_workers), rng.integers(n_workers, size=n_votes - n_workers)])
        label = np.concatenate([np.arange(n_classes), rng.integers(n_classes, size=n_votes - n_classes)])
        crowd = Annotations.from_arrays(task, worker, label)
        plan = sampled.SamplingPlan.of(crowd)
        if plan is None:
            assert why_not_sampled(crowd) == "there are too many votes and classes"
            seen.add("none")
            continue
        # By the definition of a visit: votes, six visits of a task, K chances of each worker; K classes at two levels.
        part = plan.share
        visits = plan.n_sweeps * 2 * n_classes * (part * (n_votes + 6 * n_tasks) + n_classes * n_workers)
        visits += plan.n_draws * 2 * n_classes * (1 - part) * (n_votes + 6 * n_tasks)
        assert visits <= sampled.CELL_VISITS
        seen.add("thinned" if part < 1 else "fewer" if plan.n_sweeps < 400 else "all")
    assert seen == {"none", "thinned", "fewer", "all"}


def test_a_thinned_chain_draws_what_a_whole_one_draws() -> None:
    truth = simulate_crowd(1500, 20, votes_per_task=6, imbalance=4, random_state=0)
    crowd, gold = annotations_of(truth), np.full(1500, -1, dtype=np.int32)
    gold[:3] = 1
    whole = sample_crowd(crowd, gold, n_sweeps=200, n_draws=150)
    thinned = sample_crowd(crowd, gold, n_sweeps=200, n_draws=50, share=0.4)
    assert thinned.classes.shape == (50, 1500)
    np.testing.assert_allclose(thinned.score.sum(axis=1), 1.0)
    # Votes of 600 tasks teach less about 20 workers than those of 1500: probabilities differ a little, ranks hardly.
    assert np.abs(thinned.score[:, 1] - whole.score[:, 1]).mean() < 0.03
    assert np.corrcoef(thinned.score[:, 1], whole.score[:, 1])[0, 1] > 0.98
    share, error = whole.classes.mean(axis=1).mean(), whole.classes.mean(axis=1).std()
    assert abs(thinned.classes.mean() - share) < 3 * max(error, 0.01)
    drawn = thinned.classes.mean(axis=0)
    free = gold < 0
    assert np.abs(drawn - thinned.score[:, 1])[free].mean() < 0.05  # 50 draws have the mean that the score states
    again = sample_crowd(crowd, gold, n_sweeps=200, n_draws=50, share=0.4)
    np.testing.assert_array_equal(thinned.classes, again.classes)


def test_known_tasks_keep_their_class_in_every_draw() -> None:
    crowd = annotations_of(simulate_crowd(200, 12, random_state=0))
    gold = np.full(200, -1, dtype=np.int32)
    gold[::10] = np.arange(20) % 2
    found = sample_crowd(crowd, gold, n_sweeps=60)
    known = gold >= 0
    assert (found.classes[:, known] == gold[known]).all()
    assert found.score[known].max() < 1, "the score is from the votes alone"


def test_draws_depend_on_the_seed_alone() -> None:
    crowd = annotations_of(simulate_crowd(150, 10, random_state=2))

    def run(seed: int) -> NDArray[Any]:
        return sample_crowd(crowd, unknown(crowd), n_sweeps=40, random_state=seed).classes

    np.testing.assert_array_equal(run(1), run(1))
    assert not np.array_equal(run(1), run(2))


@pytest.mark.parametrize(("labels", "can"), [(["no", "no"], False), (["no", "yes"], True)])
def test_one_class_leaves_nothing_to_draw(labels: list[str], can: bool) -> None:
    assert (not why_not_sampled(Annotations.from_arrays(["a", "b"], ["x", "y"], labels))) == can
    assert why_not_sampled(Annotations.from_arrays([], [], [], classes=["no", "yes"]))


def test_tables_that_do_not_fit_into_memory_are_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = little_crowd(12, 5, 3, seed=0)
    monkeypatch.setattr(sampled, "_MAX_CELLS", 5 * 3 * 3)
    assert why_not_sampled(crowd) == ""
    monkeypatch.setattr(sampled, "_MAX_CELLS", 5 * 3 * 3 - 1)
    assert why_not_sampled(crowd) == "there are too many annotators and classes"


def test_draws_of_all_items(monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = annotations_of(simulate_crowd(60, 10, random_state=2))
    monkeypatch.setattr(sampled, "SWEEPS", 400)
    gold = np.full(1060, -1)
    gold[[5, 1059]] = 1, 0
    found = independent_draws(crowd, gold)
    assert found.classes.shape == (sampled.N_DRAWS, 1060)  # 300 of 400 sweeps, every second
    voted = sample_crowd(crowd, gold[:60], n_sweeps=sampled.SWEEPS, n_draws=sampled.N_DRAWS)
    np.testing.assert_array_equal(found.classes[:, :60], voted.classes)
    np.testing.assert_array_equal(found.score, voted.score)
    assert (found.classes[:, [5, 1059]] == [1, 0]).all()
    # Items without votes have the shares of each draw, up to four standard errors.
    share = found.classes[:, :60].mean(axis=1)
    error = np.sqrt(np.maximum(share * (1 - share), 1e-3) / 999)
    assert (np.abs(found.classes[:, 60:1059].mean(axis=1) - share) < 4 * error).all()
    monkeypatch.setattr(sampled, "MAX_ITEMS", 1000)
    many = independent_draws(crowd, gold)
    assert (many.why_not, many.classes.shape) == ("there are more than 1,000 items", (0, 1060))
    np.testing.assert_array_equal(many.score, voted.score)
    monkeypatch.setattr(sampled, "MAX_VOTES", crowd.n_annotations - 1)
    assert "votes" in independent_draws(crowd, gold).why_not
    assert independent_draws(crowd, gold, "features count").why_not == "features count"


@pytest.mark.filterwarnings("ignore::rarevote.errors.RarevoteWarning")
def test_only_what_is_expected_is_sampled_and_once_per_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[int] = []
    run = VoteSampler.run

    def counting(sampler: VoteSampler, *plan: int) -> Drawn:
        runs.append(1)
        return run(sampler, *plan)

    monkeypatch.setattr(VoteSampler, "run", counting)
    fitted = rarevote.fit(simulate_crowd(80, 8, random_state=1).arrays)
    result = fitted.decide()
    result.columns()
    result.summary(expected=False)
    result.review(5)
    result.plan(5)
    fitted.explain(0)
    fitted.decide(costs="0:1=1,1:0=5").columns()
    assert not runs
    expected = result.expect()
    fitted.check()
    fitted.diagnose()
    fitted.audit(1, seed=1)
    fitted.decide(min_recall={1: 0.9})
    assert len(runs) == 1
    again = rarevote.fit(simulate_crowd(80, 8, random_state=1).arrays).decide().expect()
    assert again.recall == expected.recall  # the seed is fixed
    assert len(runs) == 2


@pytest.mark.prove
def test_shares_in_the_draws_cover_the_truth() -> None:
    """Where people err on their own, as in simulated crowds, the draws say how many items a class has."""
    covered = 0
    for seed in range(5):
        truth = simulate_crowd(1500, 40, imbalance=7, random_state=seed)
        crowd, share = annotations_of(truth), float((truth.truth == 1).mean())
        found = drawn_shares(sample_crowd(crowd, unknown(crowd), n_sweeps=700), 2)[:, 1]
        low, high = np.quantile(found, [0.025, 0.975])
        assert high - low < share  # an interval that says something
        covered += bool(low <= share <= high)
    assert covered >= 4


def test_only_classes_with_the_most_votes_somewhere_are_possible() -> None:
    crowd = Annotations.from_arrays([0, 0, 0, 1, 1], [0, 1, 2, 0, 1], ["a", "a", "c", "b", "b"], classes=["d"])
    assert sampler_of(crowd).possible.tolist() == [True, True, False, False]
    gold = np.array([3, -1], dtype=np.int32)
    assert sampler_of(crowd, gold).possible.tolist() == [False, True, False, True]


def test_a_thinned_chain_keeps_the_draws_that_were_asked_for() -> None:
    crowd = little_crowd(40, 5, 2, seed=1)
    found = sample_crowd(crowd, unknown(crowd), n_sweeps=20, n_draws=15, share=0.5)
    assert found.classes.shape == (15, 40)


def test_cells_of_a_sweep_by_hand() -> None:
    # 2 levels of 3 classes, for 10 votes, 6 visits of 4 tasks, and 3 chances of each of 5 workers.
    assert sampled.cells_of_sweep(10, 4, 5, 3) == 2 * 3 * (10 + 6 * 4 + 3 * 5)


def test_half_of_two_billion_cells_is_for_the_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampled, "SWEEPS", 400)
    size: Any = SimpleNamespace(n_annotations=300_000, n_tasks=60_000, n_workers=1000, n_classes=20)
    plan = sampled.SamplingPlan.of(size)
    assert plan is not None
    # A sweep over all tasks visits 40 (300,000 + 6 * 60,000) cells, and 40 * 20 * 1000 of the workers' errors.
    assert plan.share == pytest.approx((1e9 / 150 - 800_000) / 26_400_000, rel=1e-12)
    assert (plan.n_sweeps, plan.n_draws) == (150, 37)  # 1e9 / 26,400,000
