"""The section "What was proved": every figure against the audit's own log, and the page in a real browser."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rarevote
from rarevote import simulate_crowd
from rarevote.audit import Audit
from rarevote.audit.source import files_sha256
from rarevote.page.proved import proved_section, write_proved_page
from tests.audit.worlds import finished, started
from tests.command import rarevote as command
from tests.page.conftest import Watched

if TYPE_CHECKING:
    from playwright.sync_api import Browser

HOSTILE = "<img src=x onerror=alert(1)>"


def rows_of(audit: Audit) -> dict[str, list[str]]:
    return {row[0]: row[1:] for row in proved_section(audit).values["claims"].rows}


def test_the_two_claims_are_the_lists() -> None:
    audit, truth = finished(600, gold={i: i % 4 == 0 for i in range(20)})
    assert audit.is_certified
    found = rows_of(audit)
    lists = [audit.final_list(), audit.final_list(audit.supported)]
    assert found["items on the list"] == [f"{len(flagged):,}" for flagged in lists]
    reviewed = set(audit.answers)
    left = [sum(task not in reviewed for task in flagged) for flagged in lists]
    assert found["of these not reviewed"] == [f"{n:,}" for n in left]
    assert found["recall, proved with 95%"] == ["at least 0.90", "nothing"]
    assert "the same without the gold" in found
    assert "the same without the gold" not in rows_of(finished(300)[0])
    values = proved_section(audit).values
    assert values["proved"]
    facts = dict(values["facts"])
    assert facts["Reviewed"] == f"{len(reviewed)} items in {len(audit.plan.rounds)} rounds"
    assert facts["Found among them"] == f"{sum(truth[task] for task in reviewed)} items"
    assert facts["Experts"] == "anna"
    assert facts["SHA-256 of the plan"] == audit.sha256


def test_the_curve_is_what_every_round_bought() -> None:
    audit, _ = finished(600, flag_cost=3.0)
    assert len(audit.plan.rounds) > 2
    # Cut the log after every round and replay what is left.
    plan = json.loads(audit.to_json())
    for n_rounds, step in enumerate(audit.bought):
        cut = Audit.from_json(json.dumps({**plan, "rounds": plan["rounds"][:n_rounds]}))
        assert (step.reviews, step.flagged) == (cut.n_reviewed, cut.wealth.unreviewed(cut.certified))
    (chart,) = proved_section(audit).charts
    points = [row for rows in chart.spec.to_dict()["datasets"].values() for row in rows]
    so_far = {(row["reviews"], row["flagged"]) for row in points if row["series"] == "certified so far"}
    assert so_far >= {(step.reviews, step.flagged) for step in audit.bought}


def test_forecasts_only_ever_improve() -> None:
    audit, truth = started(600)
    for _ in range(3):
        audit.answer({task: truth[task] for task in audit.round(30)})
        ahead = audit.to_be_bought
        assert (ahead[0].reviews, ahead[0].flagged) == (audit.n_reviewed, audit.wealth.unreviewed(audit.certified))
        assert all(b.reviews > a.reviews and b.flagged < a.flagged for a, b in itertools.pairwise(ahead))


@pytest.mark.parametrize("stage", ["before any review", "no positive", "everything reviewed"])
def test_every_stage_has_a_page(stage: str, tmp_path: Path) -> None:
    audit, truth = started(80)
    if stage == "no positive":
        audit.answer(dict.fromkeys(audit.round(30), False))
    elif stage == "everything reviewed":
        while review := audit.round(40):
            audit.answer({task: truth[task] for task in review})
    page = write_proved_page(audit, tmp_path / "page.html").read_text(encoding="utf-8")
    claim = {"no positive": "No “defect” was found", "everything reviewed": "recall of “defect” at least 0.90"}
    assert claim.get(stage, "Nothing has been reviewed yet.") in page
    assert ("<strong>Certified.</strong>" in page) == (stage == "everything reviewed")


def hostile_page(path: Path) -> Path:
    options: dict[str, Any] = {"name": HOSTILE, "classes": [HOSTILE, "no"]}
    audit, _truth = finished(400, **options)
    audit.answer({audit.round(1)[0]: "no"}, who=HOSTILE)
    return write_proved_page(audit, path, source=HOSTILE)


def test_names_are_text(tmp_path: Path) -> None:
    assert HOSTILE not in hostile_page(tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_section_of_the_page_of_the_fit(tmp_path: Path) -> None:
    crowd = simulate_crowd(80, 12, imbalance=3, random_state=2)
    rows = [f"t{t},w{w},{'yes' if c else 'no'}" for t, w, c in zip(*crowd.arrays, strict=True)]
    labels = tmp_path / "labels.csv"
    labels.write_text("\n".join(["task,worker,label", *rows]), encoding="utf-8")
    fitted = rarevote.fit(labels)
    audit = Audit.start(
        fitted.annotations.tasks.tolist(), [0.25] * 80, name="yes", target=0.9, labels_sha256=files_sha256([labels])
    )
    audit.save(tmp_path / "audit.json")
    command("report", labels, "--audit", tmp_path / "audit.json", "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert '<section id="proved">' in page
    assert '<a href="#proved">What was proved</a>' in page
    labels.write_text("\n".join(["task,worker,label", *rows[:-1]]), encoding="utf-8")
    said = command("report", labels, "--audit", tmp_path / "audit.json", "--out", tmp_path / "other.html", code=1)
    assert "audit.json: the labels have changed since the audit started" in said.stderr
    assert not (tmp_path / "other.html").exists()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light")])
def test_the_page_in_a_browser(browser: Browser, tmp_path: Path, width: int, scheme: Any) -> None:
    context = browser.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme)
    seen = Watched(context.new_page(), hostile_page(tmp_path / "page.html"))
    assert seen.page.locator("#proved table tbody tr").count() == 7
    assert seen.page.locator("#proved figure svg").first.is_visible()
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
    seen.assert_quiet()
    context.close()
