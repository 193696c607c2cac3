"""What Python prints of check, explain, review and plan is what the terminal prints; reprs are one short line."""

from __future__ import annotations

from pathlib import Path

import pytest

import rarevote
from tests.command import rarevote as command

ROWS = [
    (f"t{i:02}", worker, "defect" if i < 6 and (i + place) % 3 else "ok")
    for i in range(30)
    for place, worker in enumerate(("ann", "bob", "cy", "dee"))
]


@pytest.fixture(scope="module")
def votes(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("printed") / "votes.csv"
    path.write_text("task,worker,label\n" + "".join(",".join(row) + "\n" for row in ROWS))
    return str(path)


@pytest.fixture(scope="module")
def result(votes: str) -> rarevote.Result:
    return rarevote.fit(votes, "dawid-skene", rare="defect").decide()


OPTIONS = ("-m", "dawid-skene", "--rare", "defect")


def test_check(votes: str, result: rarevote.Result) -> None:
    found = result.fitted.check()
    printed = command("check", votes, "-m", "dawid-skene", "--rare", "defect").stdout
    # Python names calls where the terminal names commands.
    own = [line for line in str(found).splitlines() if "audit" not in line and "=" not in line]
    assert len(own) > 8
    assert set(own) <= set(printed.splitlines())
    assert repr(found) == f"Check(30 items by dawid-skene: {found.verdict})"


@pytest.mark.parametrize("task", ["t00", "t03"])
def test_explain(task: str, votes: str, result: rarevote.Result) -> None:
    found = result.explain(task)
    assert f"{found}\n" == command("explain", votes, "-m", "dawid-skene", "--task", task).stdout
    assert repr(found) == f"Explanation({task}: {result.labels[int(task[1:])]}, 4 votes)"


def test_plan(votes: str, result: rarevote.Result) -> None:
    found = result.plan(8, votes_per_item=2)
    printed = command("plan", votes, *OPTIONS, "--budget", "8", "--votes-per-item", "2").stdout
    assert f"{found}\n" == printed
    assert "8 votes on 4 items" in str(found)
    assert repr(found).startswith("ReviewPlan(4 tasks; knowing them lowers the expected cost from")


def test_plan_shows_the_first(result: rarevote.Result) -> None:
    found = result.plan(8)
    assert len(found.text(3).splitlines()) == len(str(found).splitlines()) - 5 + 1
    assert "... 5 more (items has them all)" in found.text(3)


def test_review(votes: str, result: rarevote.Result, tmp_path: Path) -> None:
    found = result.review(5)
    out = ("--max-review", "5", "--review-out", str(tmp_path / "review.csv"), "-o", str(tmp_path / "result.csv"))
    printed = command("aggregate", votes, *OPTIONS, *out).stderr
    assert str(found) == f"5 tasks to review; {found.saving}"
    assert found.saving in printed


def test_short_reprs(result: rarevote.Result) -> None:
    for one in (result, result.fitted, result.fitted.crowd, result.plot):
        assert "\n" not in repr(one)
        assert len(repr(one)) < 220
