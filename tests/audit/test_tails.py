"""Audits of a tail of grades: plans of version 2."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rarevote
from rarevote import Audit
from rarevote.audit import verify
from rarevote.audit.of_fit import result_columns
from rarevote.errors import InputError, ParameterError
from tests.command import rarevote as command

GRADES = ["none", "mild", "severe", "critical"]
N_ITEMS = 160


def crowd(seed: int = 0) -> tuple[list[tuple[str, str, str]], dict[str, str]]:
    """Votes of five people who err by a grade, and the truth; few items are severe or worse."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(4, N_ITEMS, p=[0.6, 0.25, 0.1, 0.05])
    votes = [
        (f"i{i:03d}", worker, GRADES[int(np.clip(truth[i] + rng.choice([-1, 0, 1], p=[0.12, 0.76, 0.12]), 0, 3))])
        for i in range(N_ITEMS)
        for worker in "abcde"
    ]
    return votes, {f"i{i:03d}": GRADES[truth[i]] for i in range(N_ITEMS)}


@pytest.fixture(scope="module")
def fitted() -> rarevote.Fitted:
    return rarevote.fit(crowd()[0], ordered=GRADES)


def answered(audit: Audit, truth: dict[str, str]) -> Audit:
    while review := audit.round():
        audit.answer({task: truth[task] for task in review})
    return audit


def test_a_tail_is_proved_and_verified(fitted: rarevote.Fitted) -> None:
    truth = crowd()[1]
    audit = answered(fitted.audit(">= severe", 0.8, seed=1), truth)
    severe = {task for task, grade in truth.items() if grade in ("severe", "critical")}
    reviewed = {task for one in audit.plan.rounds for task in one.tasks}
    assert audit.n_positives == len(severe & reviewed)
    assert audit.is_certified
    assert len(severe & set(audit.final_list())) >= 0.8 * len(severe)
    record = json.loads(audit.to_json())
    assert (record["version"], record["class"], record["tail"]) == (2, ">=severe", ["critical", "severe"])
    found = audit.certificate()
    assert "recall of “>=severe” (critical, severe) at least 0.80" in found["claim"]
    assert found["tail"] == ["critical", "severe"]
    assert not verify(audit.to_json(), found)
    # Earlier claims did not list the grades.
    verdict = verify(audit.to_json(), {**found, "claim": found["claim"].replace(" (critical, severe)", "")})
    assert not verdict
    assert any("exactly it is: flag" in note and "(critical, severe) at least 0.80" in note for note in verdict.notes)
    assert verify(audit.to_json(), {**found, "claim": found["claim"].replace(" (critical, severe)", " (severe)")})
    again = Audit.from_json(audit.to_json())
    assert again.to_json() == audit.to_json()
    # What was proved about one tail is not proved about another.
    assert verify(audit.to_json(), {**found, "tail": ["critical"]})
    assert verify(audit.to_json(), {key: value for key, value in found.items() if key != "tail"})
    assert verify(json.dumps({**record, "tail": ["critical"]}), found)


def test_the_ranking_is_by_the_sum_of_the_tail(fitted: rarevote.Fitted) -> None:
    audit = fitted.audit("<=mild", 0.9, seed=2)
    assert audit.plan.tail == ["none", "mild"]
    ranked = [task for stratum in audit.plan.strata.tasks for task in stratum]
    score = dict(zip(fitted.annotations.tasks, fitted.method.posterior_, strict=True))
    place = [fitted.annotations.classes.tolist().index(name) for name in ("none", "mild")]
    assert audit.plan.score == "posterior"
    assert (np.diff([score[task][place].sum() for task in ranked]) <= 1e-12).all()


def test_answers_are_grades_or_the_tail_itself(fitted: rarevote.Fitted) -> None:
    audit = fitted.audit(">=severe", 0.9, seed=1)
    first, second, third, *rest = audit.round()
    audit.answer({first: ">=severe", second: "critical", third: False})
    audit.answer(dict.fromkeys(rest, "none"))
    assert audit.n_positives == 2
    rows = result_columns(audit, fitted.annotations)
    labels = dict(zip(rows["task"], rows["label"], strict=True))
    assert labels[second] == "critical"
    # Without a grade of the expert's, the best of the crowd's on the side that the expert named.
    assert labels[first] in ("severe", "critical")
    assert labels[third] in ("none", "mild")
    assert set(labels.values()) <= set(GRADES)
    with pytest.raises(InputError, match="'awful' is not a class"):
        audit.answer({first: "awful"})


def test_gold_in_the_tail_counts_as_found() -> None:
    votes, truth = crowd()
    gold = {task: truth[task] for task in sorted(truth)[:40]}
    audit = rarevote.fit(votes, ordered=GRADES, gold=gold).audit(">=severe", 0.9, seed=1)
    assert audit.wealth.known_positives == sum(grade in ("severe", "critical") for grade in gold.values()) > 0


def test_tails_that_cannot_be_audited(fitted: rarevote.Fitted) -> None:
    with pytest.raises(ParameterError, match="holds all of the grades"):
        fitted.audit(">=none")
    with pytest.raises(ParameterError, match="is not a tail of the classes"):
        Audit.start(["a"], [0.5], name=">=b", target=0.9, classes=["a", "b"], tail=["c"])
    with pytest.raises(ParameterError, match="is not a tail of the classes"):
        Audit.start(["a"], [0.5], name=">=b", target=0.9, tail=["b"])


def test_a_tail_can_be_named_by_a_grade_without_votes() -> None:
    audit = Audit.start(range(60), [0.5] * 60, name=">=2", target=0.9, classes=[0, 1, 3, 4], tail=[4, 3], seed=1)
    assert Audit.from_json(audit.to_json()).plan.tail == [4, 3]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": 1}, "only version 2 has the grades of a tail"),
        ({"version": 3}, "reads versions 1 and 2"),
        ({"version": True}, "reads versions 1 and 2"),
        ({"tail": None}, "damaged"),
        ({"tail": []}, "not a tail of its classes"),
        ({"tail": GRADES}, "not a tail of its classes"),
        ({"tail": ["severe", "severe"]}, "not a tail of its classes"),
        ({"tail": ["awful"]}, "not a tail of its classes"),
        ({"class": "severe"}, "not a tail of its classes"),
        ({"classes": None}, "not a tail of its classes"),
    ],
    ids=str,
)
def test_damaged_plans(fitted: rarevote.Fitted, change: dict[str, Any], words: str) -> None:
    record = json.loads(fitted.audit(">=severe", 0.9, seed=1).to_json())
    with pytest.raises(InputError, match=words):
        Audit.from_json(json.dumps({**record, **change}))
    plain = json.loads(fitted.audit("severe", 0.9, seed=1).to_json())
    assert plain["version"] == 1
    assert "tail" not in plain
    with pytest.raises(InputError, match="only version 2 has the grades of a tail"):
        Audit.from_json(json.dumps({**plain, "version": 2}))


@pytest.fixture
def started(tmp_path: Path) -> tuple[Path, Path, Path]:
    """Labels in a file, the options of a start, and the first list."""
    labels = tmp_path / "labels.csv"
    labels.write_text("task,worker,label\n" + "".join(f"{','.join(row)}\n" for row in crowd()[0]), encoding="utf-8")
    return labels, tmp_path / "audit.json", tmp_path / "1.csv"


def start(labels: Path, plan: Path, review: Path, find: str, code: int = 0) -> str:
    order = ",".join(GRADES)
    given = ("--ordered", order, "--plan", plan, "--review-out", review, "--find", find)
    return command("audit", "start", labels, *given, code=code).stderr


def test_what_is_to_be_proved_on_the_command_line(started: tuple[Path, Path, Path]) -> None:
    assert "--find must be CLASS=RECALL, such as >=severe=0.9" in start(*started, ">=severe", code=2)
    assert "about" in start(*started, ">=severe=0.8")
    record = json.loads(started[1].read_text(encoding="utf-8"))
    assert (record["class"], record["target"], record["tail"]) == (">=severe", "4/5", ["critical", "severe"])


@pytest.mark.prove
def test_from_start_to_certificate_on_the_command_line(started: tuple[Path, Path, Path], tmp_path: Path) -> None:
    start(*started, ">=severe=0.8")
    truth, plan = crowd()[1], started[1]
    for number in range(1, 100):
        with (tmp_path / f"{number}.csv").open(encoding="utf-8", newline="") as handle:
            rows = list(csv.DictReader(handle))
        with (tmp_path / "answers.csv").open("w", encoding="utf-8", newline="") as handle:
            writer = csv.writer(handle)
            writer.writerows([("task", "label"), *((row["task"], truth[row["task"]]) for row in rows)])
        following = tmp_path / f"{number + 1}.csv"
        command("audit", "continue", plan, "--answers", tmp_path / "answers.csv", "--review-out", following)
        if not following.exists():
            break
    result, certificate = tmp_path / "result.csv", tmp_path / "certificate.json"
    command("audit", "finish", plan, "--out", result, "--certificate", certificate)
    assert "follows from" in command("audit", "verify", plan, certificate).stderr
    assert json.loads(certificate.read_text(encoding="utf-8"))["tail"] == ["critical", "severe"]
    with result.open(encoding="utf-8", newline="") as handle:
        labels_found = {row["task"]: row["label"] for row in csv.DictReader(handle)}
    severe = {task for task, grade in truth.items() if grade in ("severe", "critical")}
    found = {task for task, label in labels_found.items() if label in ("severe", "critical")}
    assert len(severe & found) >= 0.8 * len(severe)
