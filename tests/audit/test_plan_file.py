"""The plan file, the journal beside it, and a certificate that nobody can change unseen."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rarevote.audit import Audit, verify, verify_files
from rarevote.audit.journal import Entry, journal_path, read_journal, writing
from rarevote.audit.plan_file import to_text
from rarevote.errors import InputError, ParameterError
from tests.audit.worlds import finished, started

LABELS = hashlib.sha256(b"task,worker,label\n").hexdigest()


def test_json_round_trip() -> None:
    audit, _ = finished(
        600, gold={0: True, 1: False}, labels_sha256=LABELS, classes=["défaut", "ok"], name="défaut", budget=90
    )
    again = Audit.from_json(audit.to_json())
    assert again.to_json() == audit.to_json()
    assert again.certificate() == audit.certificate()
    np.testing.assert_array_equal(again.wealth.log_wealth, audit.wealth.log_wealth)


@pytest.mark.parametrize("tasks", [["a", "ü", "1", " "], [5, 2**60, -1, 0], ["a", 1, 2.5, "2.5"]])
def test_tasks_come_back_exactly_as_given(tasks: list[Any]) -> None:
    audit = Audit.start(tasks, [0.9, 0.5, 0.4, 0.1], name="x", target=0.5, seed=1)
    audit.answer(dict.fromkeys(audit.round(4), True))
    again = Audit.from_json(audit.to_json())
    assert sorted(map(repr, again.final_list())) == sorted(map(repr, tasks))


def test_a_saved_plan_has_the_certified_fingerprint(tmp_path: Path) -> None:
    audit, _ = finished(600)
    audit.save(tmp_path / "audit.json")
    record = audit.certificate()
    assert hashlib.sha256((tmp_path / "audit.json").read_bytes()).hexdigest() == record["plan_sha256"]
    (tmp_path / "certificate.json").write_text(to_text(record))
    assert verify_files(tmp_path / "audit.json", tmp_path / "certificate.json") == ()
    assert Audit.load(tmp_path / "audit.json").to_json() == audit.to_json()


def test_a_plan_is_never_overwritten_by_another(tmp_path: Path) -> None:
    path = tmp_path / "audit.json"
    audit, truth = started(600)
    audit.save(path)
    with pytest.raises(InputError, match="never overwritten"):
        started(600, seed=2)[0].save(path)
    review = audit.round()
    audit.save(path)
    behind = Audit.load(path)
    audit.answer({task: truth[task] for task in review})
    audit.save(path)
    with pytest.raises(InputError, match="rounds or answers that this audit lacks"):
        behind.save(path)
    with pytest.raises(InputError, match="rounds or answers that this audit lacks"):
        _unplayed(audit).save(path)
    (tmp_path / "notes.json").write_text("{}")
    with pytest.raises(InputError, match="not an audit plan"):
        audit.save(tmp_path / "notes.json")


def _unplayed(audit: Audit) -> Audit:
    record = json.loads(audit.to_json())
    record["rounds"] = []
    return Audit.from_json(to_text(record))


def test_unreadable_plans_say_why(tmp_path: Path) -> None:
    audit, _ = started(60)
    text = audit.to_json()
    with pytest.raises(InputError, match="cannot be read as JSON"):
        Audit.from_json(text[:-40])
    with pytest.raises(InputError, match="version 9"):
        Audit.from_json(text.replace('"version":1', '"version":9'))
    with pytest.raises(InputError, match="damaged: KeyError"):
        Audit.from_json(text.replace('"strata"', '"layers"'))
    with pytest.raises(InputError, match="cannot be read"):
        Audit.load(tmp_path / "none.json")


def _set(*path: Any, to: Any) -> Callable[[dict[str, Any]], None]:
    def change(plan: dict[str, Any]) -> None:
        holder: Any = plan
        for key in path[:-1]:
            holder = holder[key]
        holder[path[-1]] = to

    return change


def _nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return [{"a": value}]


DAMAGES = [
    _set("rounds", 0, "v", to=0.5),
    _set("rounds", 0, "v", to=[[0.5], [0.5]]),
    _set("rounds", 0, "w", 0, to=10**400),
    _set("rounds", 0, "answers", 0, to="defect"),
    _set("rounds", 0, "answers", 0, "label", to={"a": 1}),
    _set("rounds", 0, "answers", 0, "who", to=float("nan")),
    _set("strata", 0, "tasks", 0, to={"a": 1}),
    _set("strata", 0, "tasks", 0, to=float("inf")),
    _set("strata", 0, "p0", to=float("nan")),
    _set("strata", 0, "p0", to=10**400),
    _set("flag_cost", to=float("inf")),
    _set("target", to="1e999999999"),
    _set("target", to=0.9),
    _set("classes", to="ab"),
    _set("budget", to=[]),
    _set("aim", to=[]),
    _set("seed", to=7),
    _set("started", to=float("nan")),
    _set("source", to={"a": float("nan")}),
    *(_set("source", to={"labels": labels}) for labels in (5, "labels.csv", [5], {"labels.csv": 1})),
    *(_set("source", to={"reading": reading}) for reading in ([1], "x", {"items": [1]})),
    *(_set("source", to={name: 5}) for name in ("others", "grades", "review_as", "score")),
    *(_set("source", to={"others": others}) for others in ([5], [["sound", 5]], [["sound"]], [["sound", [["a"]]]])),
    *(_set("earlier", to=_nested(depth)) for depth in (60, 600)),
    *(_set("source", to=_nested(depth)[0]) for depth in (60, 600)),
    *(_set("class", to=json.loads(name)) for name in ("[]", '{"a": 1}', "NaN", "null")),
    *(_set("classes", to=classes) for classes in ([], ["sound"], ["defect", ["sound"]], ["defect", float("nan")])),
    _set("instructions", to={"question": None, "definitions": [[float("nan"), "x"]]}),
    _set("earlier", to=[[]]),
    _set("gold", to=[[[], "defect"]]),
    _set("extras", to=[[]]),
]


@pytest.mark.parametrize(
    "change",
    [
        *(_set("strata", 0, "p0", to=score) for score in (1.5, -0.1)),
        *(_set("flag_cost", to=cost) for cost in (-1.0, 0, 9e-7, 1.1e6, 1.7e308)),
    ],
)
def test_scores_and_costs_out_of_range_are_named(change: Callable[[dict[str, Any]], None]) -> None:
    plan = json.loads(started(60)[0].to_json())
    change(plan)
    with pytest.raises(InputError, match="the plan is damaged: its scores or its cost are out of range"):
        Audit.from_json(json.dumps(plan))


@pytest.mark.parametrize(
    "place", [("flag_cost",), ("strata", 0, "p0"), ("rounds", 0, "v", 0), ("rounds", 0, "gamma", 0)]
)
def test_numbers_that_are_not_finite_are_named(place: tuple[Any, ...]) -> None:
    plan = json.loads(finished()[0].to_json())
    _set(*place, to=1e308)(plan)
    text = json.dumps(plan).replace("1e+308", "1e309")  # JSON, and infinite for Python
    with pytest.raises(InputError, match=r"the plan is damaged: .*a number is not finite"):
        Audit.from_json(text)


def test_a_round_with_open_answers_before_another_is_refused() -> None:
    audit, truth = started(600)
    audit.answer({task: truth[task] for task in audit.round(10)})
    audit.round(10)
    plan = json.loads(audit.to_json())
    plan["rounds"][0]["answers"][4] = None
    with pytest.raises(InputError, match="the plan is damaged: round 1 has open answers, but round 2 was drawn"):
        Audit.from_json(json.dumps(plan))


@pytest.mark.parametrize(
    ("classes", "labels"),
    [
        (None, ["defect", False]),
        (["defect"], ["defect", False]),
        (["sound", "defect", "dirt"], ["sound", "defect", "dirt"]),
    ],
)
def test_an_expert_can_always_say_no(classes: list[str] | None, labels: list[Any]) -> None:
    assert started(60, classes=classes)[0].plan.labels == labels


@pytest.mark.parametrize("change", DAMAGES)
def test_damage_of_any_kind_is_an_error_of_ours(change: Callable[[dict[str, Any]], None]) -> None:
    audit, _ = finished()
    plan = json.loads(audit.to_json())
    change(plan)
    with pytest.raises(InputError, match="the plan is damaged"):
        Audit.from_json(json.dumps(plan)).certificate()


@pytest.mark.parametrize("change", [{"class": []}, {"classes": ["x", ["y"]]}, {"class": {"a": 1}}])
def test_so_is_damage_of_a_tail(change: dict[str, Any]) -> None:
    plan = {**json.loads(started(60)[0].to_json()), "version": 2, "tail": ["x"], "classes": ["x", "y"], **change}
    assert "the plan is damaged: class" in verify(json.dumps(plan), {})[0]


@pytest.mark.parametrize("what", ["tasks", "name"])
def test_half_a_character_cannot_be_stored(what: str) -> None:
    half: dict[str, Any] = {
        "tasks": ["a", "b"],
        "name": "defect",
        what: "\ud800" if what == "name" else ["a", "\ud800"],
    }
    with pytest.raises(InputError, match=r"'\\ud800' has half of a character"):
        Audit.start(scores=[0.5, 0.4], target=0.9, **half)


def test_a_source_that_could_not_be_read_again_is_refused() -> None:
    with pytest.raises(ParameterError, match="source cannot be stored in a plan"):
        started(60, source={"labels": "labels.csv"})


# --------------------------------------------------------------------------------------------------------------------
# tampering


def _answer(plan: dict[str, Any]) -> None:
    answer = plan["rounds"][0]["answers"][3]
    answer["label"] = False if answer["label"] == "defect" else "defect"


def _answer_to_worst(plan: dict[str, Any]) -> None:
    plan["rounds"][0]["answers"][3] = {"worst_case": True, "who": None, "when": ""}


def _order(plan: dict[str, Any]) -> None:
    for name in ("tasks", "answers"):
        row = plan["rounds"][0][name]
        row[0], row[1] = row[1], row[0]


def _weight(plan: dict[str, Any]) -> None:
    w = plan["rounds"][0]["w"]
    w[0], w[-1] = w[-1] // 2, w[0] // 3


def _rate(plan: dict[str, Any]) -> None:
    plan["rounds"][0]["v"][0] *= 0.99


def _stake(plan: dict[str, Any]) -> None:
    plan["rounds"][0]["gamma"][2] = 0.5123


def _seed(plan: dict[str, Any]) -> None:
    plan["seed"] = "00000000000000aa"


def _stratum(plan: dict[str, Any]) -> None:
    drawn = {task for one in plan["rounds"] for task in one["tasks"]}
    a, b = (one["tasks"] for one in (plan["strata"][0], plan["strata"][-1]))
    i, j = (next(i for i, task in enumerate(row) if task not in drawn) for row in (a, b))
    a[i], b[j] = b[j], a[i]


def _labels(plan: dict[str, Any]) -> None:
    plan["labels_sha256"] = "0" * 64


def _target(plan: dict[str, Any]) -> None:
    plan["target"] = "4/5"


def _class(plan: dict[str, Any]) -> None:
    plan["class"] = "sound"


def _gold(plan: dict[str, Any]) -> None:
    plan["gold"].append([10_000, "defect"])


def _last_round(plan: dict[str, Any]) -> None:
    plan["rounds"].pop()


def _dropped_draw(plan: dict[str, Any]) -> None:
    for name in ("tasks", "answers"):
        del plan["rounds"][0][name][5]


def _when(plan: dict[str, Any]) -> None:
    plan["rounds"][0]["answers"][0]["when"] = "2001-01-01T00:00:00+00:00"


def _score(plan: dict[str, Any]) -> None:
    plan["strata"][1]["p0"] += 1e-9


CHANGES: list[tuple[Callable[[dict[str, Any]], None], str]] = [
    (_answer, "the bets on set"),
    (_answer_to_worst, "the number of worst cases"),
    (_order, "round 1 of the plan was altered: seed and weights draw"),
    (_weight, "round 1 of the plan was altered: seed and weights draw"),
    (_rate, "the bets on set"),
    (_stake, "the bets on set 2"),
    (_seed, "seed and weights draw"),
    (_stratum, "the ranking and its strata"),
    (_labels, "the SHA-256 of the labels"),
    (_target, "the target"),
    (_class, "the class"),
    (_gold, "the number of gold positives"),
    (_last_round, "the number of reviews"),
    (_dropped_draw, "round 1 of the plan was altered"),
    (_when, "the SHA-256 of the plan"),
    (_score, "the ranking and its strata"),
]


@pytest.mark.parametrize(("change", "reason"), CHANGES, ids=lambda x: getattr(x, "__name__", ""))
def test_every_change_of_the_plan_is_found(change: Callable[[dict[str, Any]], None], reason: str) -> None:
    audit, _ = finished(1500, labels_sha256=LABELS)
    claimed = to_text(audit.certificate())
    assert verify(audit.to_json(), claimed) == ()
    assert verify(audit, claimed, labels_sha256=LABELS) == ()
    plan = json.loads(audit.to_json())
    change(plan)
    reasons = verify(to_text(plan), claimed)
    assert any(reason in one for one in reasons), reasons


@pytest.mark.parametrize(
    "name", ["class", "target", "confidence", "certified_set", "reviewed", "flagged", "seed", "claim"]
)
def test_every_change_of_the_certificate_is_found(name: str) -> None:
    audit, _ = finished(1500)
    record = audit.certificate()
    record[name] = "something else"
    assert len(verify(audit, record)) == 1


def test_a_number_beyond_all_others_is_no_log_wealth() -> None:
    audit, _ = finished()
    claimed = {**audit.certificate(), "log_wealth": [10**400] * len(audit.certificate()["log_wealth"])}
    assert any("the bets on set 0" in reason for reason in verify(audit.to_json(), claimed))


def test_other_reasons() -> None:
    audit, _ = finished(600)
    record = audit.certificate()
    assert audit.verify(record) == ()
    assert "these labels" in audit.verify(record, labels_sha256="1" * 64)[0]
    assert "the bets" in verify(audit, {**record, "log_wealth": record["log_wealth"][:-1]})[0]
    assert "not a JSON object" in verify(audit, "{")[0]
    assert "not a JSON object" in verify(audit, "[]")[0]
    assert "cannot be read as JSON" in verify("{", record)[0]


def test_the_certificate_names_earlier_audits_and_says_what_it_rests_on() -> None:
    first, _ = finished(600)
    second, _ = started(600, seed=5, earlier=[first])
    record = second.certificate()
    assert record["earlier_audits"][0]["plan_sha256"] == first.sha256
    assert "1 earlier audit of the same labels" in record["relative_to"]
    assert "expert's labels" in record["relative_to"]
    assert not record["certified"]


def test_estimates_that_do_not_exist_are_null_in_the_certificate() -> None:
    # All items reviewed and none of the class: no recall.
    audit = Audit.start(range(60), np.linspace(0.3, 0.01, 60), name="x", target=0.9, seed=2)
    audit.answer(dict.fromkeys(audit.round(60), False))
    estimates = json.loads(to_text(audit.certificate()))["estimates"]
    assert estimates["recall"] == {"middle": None, "low": None, "high": None}
    assert estimates["prevalence"] == {"middle": 0.0, "low": 0.0, "high": 0.0}


# --------------------------------------------------------------------------------------------------------------------
# the journal


def test_answers_one_by_one_are_read_beside_the_plan(tmp_path: Path) -> None:
    path = tmp_path / "audit.json"
    audit, truth = started(600)
    review = audit.round(20)
    audit.save(path)
    with writing(path) as journal:
        for task in review[:15]:
            journal.append(Entry(task, "defect" if truth[task] else "sound", "anna", "2026-01-01T10:00:00+00:00"))
        journal.append(Entry(review[15], None, "anna", "2026-01-01T10:00:00+00:00"))
    again = Audit.load(path)
    assert set(again.pending) == set(review[15:])
    assert again.plan.rounds[0].answers[again.plan.rounds[0].tasks.index(review[0])].who == "anna"  # type: ignore[union-attr]
    again.save(path)
    assert Audit.load(path).to_json() == again.to_json()  # read twice, counted once
    (tmp_path / "c.json").write_text(to_text(again.certificate()))
    assert verify_files(path, tmp_path / "c.json") == ()
    with writing(path) as journal:
        journal.append(Entry(review[0], not truth[review[0]], "eve", ""))
    assert "answered" in verify_files(path, tmp_path / "c.json")[0]


def test_a_torn_last_line_is_left_out_and_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "audit.json"
    with writing(path) as journal:
        journal.append(Entry("a", "defect", None, "t"))
    with journal_path(path).open("ab") as handle:
        handle.write(b'{"task": "b", "lab')
    assert [entry.task for entry in read_journal(path)] == ["a"]
    with writing(path) as journal:
        journal.append(Entry("c", "sound", None, "t"))
    assert [entry.task for entry in read_journal(path)] == ["a", "c"]
    with journal_path(path).open("ab") as handle:
        handle.write(b"nonsense\n")
    with pytest.raises(InputError, match="line 3: not an answer"):
        read_journal(path)


def _try_to_write(path: Path, results: Any) -> None:
    try:
        with writing(path):
            results.put("written")
    except InputError as error:
        results.put(str(error))


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "audit.json"
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    with writing(path):
        other = context.Process(target=_try_to_write, args=(path, results))
        other.start()
        said = results.get(timeout=60)
        other.join()
        assert "another process is answering" in said
    with writing(path):
        pass
    with pytest.raises(InputError, match="cannot be written"), writing(tmp_path / "none" / "audit.json"):
        pass
