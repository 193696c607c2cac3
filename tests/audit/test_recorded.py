"""Plans and certificates that version 0.2 wrote verify for ever, on every machine and NumPy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rarevote.audit import Audit, verify, verify_files
from tests.audit.worlds import independent_replay

RECORDED = Path(__file__).parent / "recorded"
NAMES = sorted(path.name.removesuffix(".plan.json") for path in RECORDED.glob("*.plan.json"))


def files(name: str) -> tuple[Path, Path]:
    return RECORDED / f"{name}.plan.json", RECORDED / f"{name}.certificate.json"


@pytest.mark.parametrize("name", NAMES)
def test_old_plans_verify_and_stay_as_they_are(name: str) -> None:
    plan, certificate = files(name)
    assert verify_files(plan, certificate) == ()
    text = plan.read_text(encoding="utf-8")
    assert "planner" not in json.loads(text)
    audit = Audit.from_json(text)
    # Written again they have the fingerprint that their certificate names.
    assert audit.to_json() == text
    assert audit.wealth.log_wealth.tolist() == pytest.approx(independent_replay(text), abs=1e-9)


def test_what_was_recorded() -> None:
    """The recorded audits have what makes rounds hard to plan again."""
    plans = {name: json.loads(files(name)[0].read_text(encoding="utf-8")) for name in NAMES}
    assert len(plans) == 9
    assert {plan["aim"] for plan in plans.values()} == {"certificate", "estimate"}
    assert any(plan["gold"] for plan in plans.values())
    assert any(plan["extras"] for plan in plans.values())
    assert any(plan["source"] for plan in plans.values())
    answers = [answer for plan in plans.values() for one in plan["rounds"] for answer in one["answers"]]
    assert None in answers
    assert any(answer and answer.get("worst_case") for answer in answers)


@pytest.mark.parametrize("name", ["certificate", "open", "estimate"])
def test_old_plans_go_on(name: str) -> None:
    audit = Audit.from_json(files(name)[0].read_text(encoding="utf-8"))
    audit.answer(dict.fromkeys(audit.pending, True))
    audit.answer(dict.fromkeys(audit.round(2), False))
    assert "planner" not in audit.plan.as_json()
    assert verify(audit, audit.certificate()) == ()


def test_the_labels_of_an_old_plan_are_compared() -> None:
    plan, certificate = files("files")
    verdict = verify_files(plan, certificate, labels=[RECORDED / "labels.csv"])
    assert not verdict
    assert "it covers 121 items" in verdict.notes
    assert any("all their items, read with abstain=('?',)" in note for note in verdict.notes)


def test_sizes_that_were_not_planned_are_named() -> None:
    verdict = verify_files(*files("sizes"))
    assert not verdict
    assert "it was planned with a cost of 3 reviews for each flagged item, instead of 1" in verdict.notes
    assert any(
        "5 rounds with a size that differs from the planned one: round 1 has 7 instead of 67" in note
        for note in verdict.notes
    )
