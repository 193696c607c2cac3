"""Which items to label again, and by whom: against brute force, in Python and on the command line."""

from __future__ import annotations

import csv
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rarevote as library
from rarevote.decide.balanced import Balanced
from rarevote.decide.review import ReviewItem, ReviewPlan, shared_load
from rarevote.decide.selection import parse_rule
from rarevote.diagnose.workers import recognition
from rarevote.errors import ParameterError
from rarevote.simulate.files import example_files
from tests.command import rarevote
from tests.diagnose.test_check import Rows, crowd, write

FILES = example_files()


@pytest.fixture(scope="module")
def result() -> Any:
    return library.fit(crowd(120, 12, 4, accuracy=0.75)).decide()


def test_the_text_counts_votes_and_items() -> None:
    items = tuple(ReviewItem(i, f"t{i}", "yes", "no", 0.5, "close", ("ann",)) for i in range(3))
    assert "6 votes on 3 items" in ReviewPlan(items, 9.0, 1.5, votes_per_item=2).text()
    assert ReviewPlan(items, 9.0, 1.5).text() == (
        "3 tasks to review; knowing them lowers the expected cost from 9.0 to 7.5"
    )


def gains_by_hand(result: Any) -> dict[str, float]:
    """What knowing each item is worth: every class weighed as the balanced rule weighs it."""
    p = result.fitted.method.reported_
    shares = p.mean(axis=0)
    weight = [min(shares.max() / shares[k], 10.0) for k in range(2)]
    return {
        task: sum(p[i, k] * weight[k] for k in range(2) if k != result.codes[i])
        for i, task in enumerate(result.tasks.tolist())
    }


@pytest.mark.parametrize("budget", [1, 5, 50, 1000])
def test_items_come_in_the_order_of_their_gain(result: Any, budget: int) -> None:
    gains = gains_by_hand(result)
    plan = result.plan(budget)
    best = sorted((gain for gain in gains.values() if gain > 0), reverse=True)[:budget]
    np.testing.assert_allclose([item.gain for item in plan.items], best)
    for item in plan.items:
        assert item.gain == pytest.approx(gains[item.task])
    assert plan.saved == pytest.approx(sum(best))
    assert plan.expected_cost == pytest.approx(sum(gains.values()))


@pytest.mark.parametrize(("budget", "each", "n_items"), [(10, 1, 10), (10, 3, 3), (7, 7, 1), (100, 2, 50)])
def test_the_budget_is_a_number_of_votes(result: Any, budget: int, each: int, n_items: int) -> None:
    plan = result.plan(budget, votes_per_item=each)
    assert len(plan.items) == n_items
    assert sum(len(item.annotators) for item in plan.items) <= budget
    assert all(len(item.annotators) <= each for item in plan.items)


def test_nobody_is_asked_twice_and_nobody_gets_everything(result: Any) -> None:
    voted = defaultdict(set)
    crowd_ = result.fitted.annotations
    for task, worker in zip(crowd_.task_of_annotation().tolist(), crowd_.worker.tolist(), strict=True):
        voted[crowd_.tasks[task]].add(crowd_.workers[worker])
    for budget, each in ((30, 1), (60, 3), (200, 2)):
        plan = result.plan(budget, votes_per_item=each)
        for item in plan.items:
            assert len(set(item.annotators)) == len(item.annotators) == each
            assert not set(item.annotators) & voted[item.task]
        counts = Counter(name for item in plan.items for name in item.annotators)
        assert dict(counts) == plan.load
        assert max(counts.values()) <= shared_load(len(plan.items) * each, 12)


def test_the_best_who_are_free_are_asked(result: Any) -> None:
    """Greedy by hand: by the lower ends of what they recognise of both classes, until somebody has a fifth."""
    crowd_ = result.fitted.annotations
    low = recognition(crowd_, result.fitted.probabilities)[1]
    order = sorted(range(crowd_.n_workers), key=lambda r: -low[r].clip(0.001, 0.999).sum())
    asked: Counter[int] = Counter()
    for item in result.plan(40).items:
        row = item.row
        voted = set(crowd_.worker[crowd_.task_ptr[row] : crowd_.task_ptr[row + 1]].tolist())
        chosen = next(r for r in order if r not in voted and asked[r] < 8)
        asked[chosen] += 1
        assert item.annotators == (crowd_.workers[chosen],)


def test_only_those_who_are_available_are_asked_the_ablest_first(result: Any) -> None:
    crowd_ = result.fitted.annotations
    low = recognition(crowd_, result.fitted.probabilities)[1]
    available = [2, 5, 6, 9]
    order = sorted(available, key=lambda r: -low[r].clip(0.001, 0.999).sum())
    asked: Counter[int] = Counter()
    plan = result.plan(40, votes_per_item=2, named=[crowd_.workers[r] for r in available])
    assert len(plan.items) == 20
    for item in plan.items:
        voted = set(crowd_.worker[crowd_.task_ptr[item.row] : crowd_.task_ptr[item.row + 1]].tolist())
        # Of four people, nobody gets more than twice an equal share of the 40 votes.
        chosen = [r for r in order if r not in voted and asked[r] < 20][:2]
        asked.update(chosen)
        assert item.annotators == tuple(crowd_.workers[r] for r in chosen)
    free = result.plan(40, votes_per_item=2)
    assert [item.task for item in plan.items] == [item.task for item in free.items]


@pytest.mark.parametrize(("named", "message"), [(["w2", "zoe"], "named: 'zoe' has not voted"), ([], "at least one")])
def test_names_that_no_vote_has_are_refused(result: Any, named: list[str], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        result.plan(10, named=named)


def test_names_on_the_command_line() -> None:
    words = (
        "plan",
        FILES.labels,
        "--budget",
        "6",
        "--named",
        "inspector-01",
        "--named",
        "inspector-07",
        "--json",
        "-q",
    )
    found = json.loads(rarevote(*words).stdout)
    plan = library.fit(FILES.labels).decide().plan(6, named=["inspector-07", "inspector-01"])
    assert [one["ask"] for one in found["tasks"]] == [list(item.annotators) for item in plan.items]
    assert set(found["load"]) <= {"inspector-01", "inspector-07"}
    refused = rarevote("plan", FILES.labels, "--budget", "6", "--named", "zoe", code=2).stderr
    assert "--named: 'zoe' has not voted" in refused


def test_where_everybody_has_voted_it_takes_somebody_new() -> None:
    rows = [(i, name, int((i + j) % 3 == 0)) for i in range(20) for j, name in enumerate(["ann", "bob", "cy"])]
    plan = library.fit(rows).decide().plan(5)
    assert len(plan.items) == 5
    assert all(item.annotators == () for item in plan.items)
    assert plan.load == {}


def test_what_mistakes_cost_is_what_the_rule_trades() -> None:
    classes, shares = np.array(["a", "b", "c"]), np.array([0.8, 0.16, 0.04])
    expected = np.array([[0, 1, 1], [5, 0, 5], [10, 10, 0]])
    np.testing.assert_allclose(Balanced(10.0).stakes(classes, shares), expected)
    np.testing.assert_allclose(parse_rule("argmax").stakes(classes, shares), 1 - np.eye(3))


def test_costs_and_abstentions_take_part() -> None:
    fitted = library.fit(crowd(60, accuracy=0.75))
    costly = fitted.decide(costs="sound:defect=1,defect:sound=20").plan(3)
    p = fitted.probabilities
    codes = fitted.decide(costs="sound:defect=1,defect:sound=20").codes
    gains = [p[i, 0] * 20 if code else p[i, 1] for i, code in enumerate(codes)]
    np.testing.assert_allclose([item.gain for item in costly.items], sorted(gains, reverse=True)[:3])
    assert fitted.decide(abstain_below=0.9).plan(3).items


def test_methods_without_probabilities_of_their_own() -> None:
    plan = library.fit(crowd(60, accuracy=0.75), "majority-vote").decide().plan(6)
    assert len(plan.items) == 6
    assert all(item.annotators for item in plan.items)


@pytest.mark.parametrize("bad", [0, -3, 2.5, True, "ten"])
def test_bad_numbers(result: Any, bad: Any) -> None:
    with pytest.raises(ParameterError, match="budget must be a whole number of at least 1"):
        result.plan(bad)
    with pytest.raises(ParameterError, match="votes_per_item must be a whole number of at least 1"):
        result.plan(10, votes_per_item=bad)
    with pytest.raises(ParameterError, match="budget 2 is too small for one item of 3 votes"):
        result.plan(2, votes_per_item=3)


# --------------------------------------------------------------------------------------------------------------------
# the command line


def test_the_verb(tmp_path: Path) -> None:
    out = tmp_path / "again.csv"
    done = rarevote("plan", FILES.labels, "--budget", "30", "--top", "4", "--out", out)
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["item", "decided", "may", "be", "gain", "ask"]
    assert lines[6].startswith("... 26 more")
    assert "30 votes on 30 items" in done.stdout
    assert f"wrote {out}: 30 items" in done.stderr
    with out.open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    plan = library.fit(FILES.labels).decide().plan(30)
    assert [row["task"] for row in rows] == [item.task for item in plan.items]
    assert [row["ask"] for row in rows] == [", ".join(item.annotators) for item in plan.items]
    assert [line.split()[0] for line in lines[2:6]] == [row["task"] for row in rows[:4]]
    written = [float(row["expected_gain"]) for row in rows]
    np.testing.assert_allclose(written, [item.gain for item in plan.items], atol=1e-6)


def test_the_how_to_shows_what_is_said() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "howto" / "plan.md").read_text(encoding="utf-8")
    assert f"```text\n{rarevote('plan', FILES.labels, '--budget', '100', '--top', '5', '-q').stdout}```" in page


def test_json(tmp_path: Path) -> None:
    words = ("plan", FILES.labels, "--budget", "9", "--votes-per-item", "2", "--json", "-q")
    found = json.loads(rarevote(*words).stdout)
    assert set(found) == {
        "budget", "find", "votes_per_item", "method", "n_tasks", "expected_cost", "saved", "load", "tasks",
    }  # fmt: skip
    assert found["n_tasks"] == len(found["tasks"]) == 4
    assert all(len(one["ask"]) == 2 for one in found["tasks"])
    assert sum(found["load"].values()) == 8
    assert set(found["tasks"][0]) == {"task", "decided", "doubt", "reason", "expected_gain", "ask"}


@pytest.mark.parametrize("form", ["label-studio", "argilla"])
def test_platforms_get_the_same_items(tmp_path: Path, form: str) -> None:
    out = tmp_path / "again.json"
    rarevote("plan", FILES.labels, "--budget", "5", "--as", form, "--out", out, "-q")
    tasks = [item.task for item in library.fit(FILES.labels).decide().plan(5).items]
    text = out.read_text()
    assert [text.index(f'"{task}"') for task in tasks] == sorted(text.index(f'"{task}"') for task in tasks)
    assert len(json.loads(text)) == 5


def test_what_was_asked_can_be_answered(tmp_path: Path) -> None:
    """The list is one that ``rarevote review`` reads."""
    from rarevote.io.read.answers import read_review_list

    out = tmp_path / "again.csv"
    rarevote("plan", FILES.labels, "--budget", "5", "--out", out, "-q")
    assert len(read_review_list(out).tasks) == 5


def test_nothing_in_doubt(tmp_path: Path) -> None:
    rows: Rows = [(f"t{i}", f"w{j}", "a") for i in range(10) for j in range(3)]
    done = rarevote("plan", write(tmp_path / "v.csv", rows), "--budget", "5", "-q")
    assert done.stdout == "nothing is in doubt: further votes would change no label\n"


def test_mistakes_are_refused_before_anything_is_read(tmp_path: Path) -> None:
    absent = tmp_path / "absent.csv"
    assert "--budget" in rarevote("plan", absent, code=2).stderr
    none = rarevote("plan", absent, "--budget", "0", code=2).stderr
    assert none == "rarevote: error: --budget must be a whole number of at least 1, got 0\n"
    small = rarevote("plan", absent, "--budget", "2", "--votes-per-item", "3", code=2).stderr
    assert "--budget 2 is too small for one item of 3 votes (--votes-per-item)" in small
    assert "--as must be" in rarevote("plan", absent, "--budget", "2", "--as", "x", code=2).stderr
    assert "needs --out FILE" in rarevote("plan", absent, "--budget", "2", "--as", "argilla", code=2).stderr
    wrong = rarevote("plan", absent, "--budget", "2", "--as", "argilla", "--out", tmp_path / "a.csv", code=1).stderr
    assert "ends in .json" in wrong
    assert "cannot be used together" in rarevote(
        "plan", absent, "--budget", "2", "--decide", "argmax", "--cost", "a:b=1", code=2
    ).stderr  # fmt: skip
    assert "no such file" in rarevote("plan", absent, "--budget", "2", code=1).stderr
