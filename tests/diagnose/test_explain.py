"""Why an item got its label: the parts add up to the posterior, and are what the parameters say they are."""

from __future__ import annotations

import json
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rarevote import GLAD, CCRasch, DawidSkene, GoldDawidSkene, MajorityVote
from rarevote.api import Fitted
from rarevote.diagnose import explain as module
from rarevote.diagnose.explain import Explanation, find_task
from rarevote.errors import InputError
from rarevote.methods.evidence import WeighsVotes
from tests.command import rarevote
from tests.methods.test_saved_models import crowds
from tests.tables import METHOD_ROWS

WEIGHING = [row for row in METHOD_ROWS if isinstance(row.make(), WeighsVotes)]
OTHERS = [row for row in METHOD_ROWS if not isinstance(row.make(), WeighsVotes)]
# Their errors_ are one step ahead of their posterior, as crowd-kit has it.
AHEAD = ("dawid-skene", "one-coin")


def explain(model: Any, task: Any) -> Explanation:
    """Why a task got the label of the method itself."""
    number = find_task(model.annotations_, task)
    is_gold = bool(model.gold_codes_[number] >= 0)
    return module.explain(model, number, model.label_codes()[number], model.reported_[number], is_gold=is_gold)


@pytest.mark.parametrize("row", WEIGHING, ids=lambda row: row.name)
@pytest.mark.filterwarnings("ignore::rarevote.errors.ConvergenceWarning")
def test_prior_and_votes_add_up_to_the_posterior(row: Any) -> None:
    votes, _, truth = crowds(3)
    model = row.make()
    model.fit(votes, truth) if row.needs_gold else model.fit(votes)
    probabilities, labels = model.probas_, model.labels_
    for task in labels.index:
        found = explain(model, task)
        assert found.classes[found.label] == labels[task]
        if found.is_gold:
            assert found.weighed is None
            continue
        assert found.weighed is not None
        own, rival = found.classes[found.label], found.classes[found.rival]
        assert own != rival
        wanted = log(probabilities.loc[task, own] / probabilities.loc[task, rival])
        parts = found.weighed.prior + found.weighed.votes.sum() + found.weighed.rest
        assert parts == pytest.approx(wanted, abs=1e-8)
        assert found.weighed.total == pytest.approx(wanted, abs=1e-8)
        if row.name in AHEAD:
            assert abs(found.weighed.rest) < 0.1 * (1 + abs(found.weighed.total))
        else:
            assert found.weighed.rest == 0.0


def sigmoid(x: float) -> float:
    return 1 / (1 + exp(-x))


def test_a_vote_counts_what_abilities_and_difficulties_say() -> None:
    votes, _, _ = crowds(3)
    model = CCRasch(prior="estimate").fit(votes)
    abilities, difficulties, priors = model.abilities_, model.difficulties_, model.priors_
    for task in model.labels_.index[:20]:
        found = explain(model, task)
        assert found.weighed is not None
        own, rival = found.classes[found.label], found.classes[found.rival]
        assert found.weighed.prior == pytest.approx(log(priors[own] / priors[rival]))
        assert found.weighed.difficulty == pytest.approx(difficulties.loc[task].to_numpy())
        for worker, code, contribution in zip(found.workers, found.labels, found.weighed.votes, strict=True):
            chance = {}
            for name in (own, rival):
                right = sigmoid(abilities.loc[worker, name] - difficulties.loc[task, name])
                chance[name] = right if found.classes[code] == name else (1 - right) / 2
            assert contribution == pytest.approx(log(chance[own] / chance[rival]))


def test_a_posterior_in_single_precision() -> None:
    votes, _, _ = crowds(3)
    model = CCRasch(dtype="float32").fit(votes)
    for task in model.labels_.index[:20]:
        found = explain(model, task)
        assert found.weighed is not None
        assert abs(found.weighed.rest) < 1e-4 * (1 + abs(found.weighed.total))


@pytest.mark.filterwarnings("ignore::rarevote.errors.ConvergenceWarning")
def test_a_vote_counts_what_the_other_methods_say() -> None:
    votes, _, truth = crowds(3)
    confusion = DawidSkene().fit(votes)
    found = explain(confusion, 5)
    assert found.weighed is not None
    own, rival = found.classes[found.label], found.classes[found.rival]
    for number, (worker, code) in enumerate(zip(found.workers, found.labels, strict=True)):
        row = confusion.errors_.loc[(worker, found.classes[code])]
        assert found.weighed.votes[number] == pytest.approx(log(row[own] / row[rival]))
        wanted = [confusion.errors_.get(name, {}).get((worker, name), 0.0) for name in found.classes]
        assert found.weighed.ability[number] == pytest.approx(wanted)
    easy = GLAD().fit(votes)
    found = explain(easy, 5)
    assert found.weighed is not None
    own, rival = found.classes[found.label], found.classes[found.rival]
    for number, (worker, code) in enumerate(zip(found.workers, found.labels, strict=True)):
        right = sigmoid(easy.alphas_[worker] * exp(easy.betas_[5]))
        sign = {own: 1, rival: -1}.get(found.classes[code], 0)
        assert found.weighed.votes[number] == pytest.approx(sign * log(right / ((1 - right) / 2)))
    known = explain(GoldDawidSkene().fit(votes, truth), 3)
    assert known.is_gold
    assert known.weighed is None


@pytest.mark.parametrize("row", [row for row in OTHERS if not row.binary], ids=lambda row: row.name)
def test_other_methods_show_votes_and_posterior(row: Any) -> None:
    votes, _, truth = crowds(3)
    model = row.make()
    model.fit(votes, truth) if row.needs_gold else model.fit(votes)
    task = 50
    found = explain(model, task)
    assert found.weighed is None
    own = votes[votes.task == task]
    assert sorted(zip(found.workers.tolist(), found.classes[found.labels].tolist(), strict=True)) == sorted(
        zip(own.worker, own.label, strict=True)
    )
    assert found.posterior.tolist() == model.probas_.loc[task].tolist()


def test_the_rival_is_what_the_majority_says() -> None:
    rows = ([0] * 5, [*"abcde"], ["x", "x", "y", "y", "y"])
    model = CCRasch().fit(rows)
    found = explain(model, 0)
    assert found.classes[found.majority] == "y"
    assert found.votes.tolist() == [2, 3]
    assert {found.label, found.rival} == {0, 1}
    alone = explain(CCRasch().fit(([0], ["a"], ["x"])), 0)
    assert alone.weighed is None, "one class has no rival"


def test_the_one_probability_stands_beside_the_posterior() -> None:
    votes, _, _ = crowds(2)
    fitted = Fitted.of(MajorityVote().fit(votes))
    number = find_task(fitted.annotations, 7)
    found = fitted.explain(7)
    assert np.array_equal(found.p, fitted.probabilities[number])
    assert np.array_equal(found.posterior, fitted.method.posterior_[number])
    assert not np.array_equal(found.p, found.posterior)
    with pytest.raises(InputError, match="there is no task 'x'"):
        fitted.explain("x")


def test_a_decision_explains_its_own_label_by_its_own_probability() -> None:
    votes, _, _ = crowds(2)
    fitted = Fitted.of(CCRasch().fit(votes))
    names = fitted.annotations.classes.tolist()
    result = fitted.decide(costs=[[0, 1], [9, 0]], prevalence=[0.7, 0.3])
    for number, task in enumerate(fitted.annotations.tasks.tolist()[:20]):
        found = result.explain(task)
        assert names[found.label] == result.labels[number]
        assert np.array_equal(found.p, result.probabilities.p[number])
        assert found.rival == (found.majority if found.majority != found.label else 1 - found.label)


def test_an_item_without_an_answer_is_explained_by_its_likeliest_class() -> None:
    votes, _, _ = crowds(3)
    fitted = Fitted.of(CCRasch().fit(votes))
    result = fitted.decide(abstain_below=0.97)
    number = int(np.flatnonzero(result.codes < 0)[0])
    found = result.explain(result.tasks[number])
    assert not found.has_answer
    assert found.label == int(fitted.probabilities[number].argmax())


# -- the command line ------------------------------------------------------------------------------------------------


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    path = tmp_path / "labels.csv"
    votes, _, _ = crowds(3)
    votes.assign(task=[f"t{task}" for task in votes.task], text="<b>\x1b[2Jx").to_csv(path, index=False)
    return path


def test_a_person_sees_parts_that_add_up(labels: Path) -> None:
    done = rarevote("explain", labels, "--task", "t5", "--show", "text")
    assert "t5: " in done.stdout
    assert "text: <b>\\x1b[2Jx" in done.stdout, "text is shown, never obeyed"
    lines = done.stdout.splitlines()
    begin = next(n for n, line in enumerate(lines) if line.startswith("before any vote"))
    end = next(n for n, line in enumerate(lines) if line.startswith("together"))
    parts = [float(line.split()[-1]) for line in lines[begin:end]]
    assert sum(parts) == pytest.approx(float(lines[end].split()[-1]), abs=0.005)
    assert "probability" in done.stdout


def test_json_of_several_items(labels: Path) -> None:
    done = rarevote(
        "explain",
        labels,
        "--task",
        "t5",
        "--task",
        "t9",
        "--task",
        "t5",
        "--json",
        "-q",
        "-m",
        "cc-rasch",
    )
    found = json.loads(done.stdout)
    assert [one["task"] for one in found] == ["t5", "t9"]
    for one in found:
        total = one["prior_log_odds"] + sum(vote["log_odds"] for vote in one["votes"]) + one["rest_log_odds"]
        odds = one["posterior"][one["label"]] / one["posterior"][one["rival"]]
        assert total == pytest.approx(log(odds), abs=1e-8)
        assert sum(one["p"].values()) == pytest.approx(1)
        assert one["p"] != one["posterior"]
    assert done.stderr == ""


def test_methods_without_parts_say_so(labels: Path) -> None:
    said = rarevote("explain", labels, "--task", "t5", "-m", "majority-vote").stdout
    assert "The posterior of majority-vote is not a sum over votes" in said


def test_ties_and_single_classes(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("task,worker,label\n1,a,x\n1,b,y\n2,a,x\n2,b,x\n3,b,y\n")
    said = rarevote("explain", path, "--task", "1", "-m", "cc-rasch").stdout
    assert "a majority vote says the same (1 of 2 votes, tied between x and y: the first class in sorted order)" in said
    assert "together they give even odds" in said
    assert "-0.000" not in said
    path.write_text("task,worker,label\n1,a,x\n")
    assert "There is only one class, so there is nothing to weigh" in rarevote("explain", path, "--task", "1").stdout


def test_items_that_there_are_not(labels: Path, tmp_path: Path) -> None:
    done = rarevote("explain", labels, "--task", "t555", code=1)
    assert "labels.csv: there is no task 't555'; similar: t55" in done.stderr
    assert done.stdout == ""
    done = rarevote("explain", labels, "--task", "zzz", code=1)
    assert "there is no task 'zzz'; tasks look like t0" in done.stderr
    done = rarevote("explain", labels, code=2)
    assert "--task" in done.stderr
    path = tmp_path / "x.csv"
    path.write_text("task,worker,label\n1,a,x\n1,b,y\n2,a,?\n")
    done = rarevote("explain", path, "--task", "2", "--abstain", "?", code=1)
    assert "task '2' has no votes" in done.stderr
