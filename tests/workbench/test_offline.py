"""One file for an expert elsewhere: answered from the disk by keys, closed and reopened, and taken back in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rarevote.audit import Audit, verify_files
from rarevote.audit.instructions import Instructions
from rarevote.audit.journal import Entry
from rarevote.audit.saved_answers import asked_in, read_saved_answers
from rarevote.errors import InputError
from rarevote.workbench import offline
from rarevote.workbench.media import Media
from rarevote.workbench.offline import write_offline
from tests.command import rarevote
from tests.workbench.benches import CLASSES, audit_session, list_session, plan_file
from tests.workbench.test_kinds import HOSTILE, write_list, write_sound

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page


@contextmanager
def expert_of(context: BrowserContext, page: Path, said: list[str]) -> Iterator[Page]:
    """The file from the disk, without a network."""
    context.set_offline(True)
    opened = context.new_page()
    opened.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    opened.on("pageerror", lambda error: said.append(f"error: {error}"))
    opened.goto(page.as_uri())
    yield opened
    opened.close()


def task_of(page: Page) -> str:
    return page.locator("#main .task b").inner_text()


def save(page: Page, path: Path) -> Path:
    with page.expect_download() as download:
        page.keyboard.press("Enter")
    download.value.save_as(path)
    return path


def test_round_by_round_to_the_same_certificate_as_in_the_terminal(browser: Browser, tmp_path: Path) -> None:
    plan, right = plan_file(tmp_path, 150, rate=1 / 3, flag_cost=1.0)
    terminal = Audit.load(plan)
    while review := terminal.round():
        terminal.answer({task: CLASSES[right[task]] for task in review})
    said: list[str] = []
    context = browser.new_context()
    for number in range(1, 50):
        audit = Audit.load(plan)
        if audit.stopped is not None:
            break
        with audit_session(plan) as session:
            of, of_round = session.asked
            write_offline(session, tmp_path / f"round-{number}.html", of=of, number=of_round)
        with expert_of(context, tmp_path / f"round-{number}.html", said) as page:
            page.keyboard.press("Enter")
            while page.locator("#main .task").count():
                page.keyboard.press(str(right[int(task_of(page))] + 1))
            saved = save(page, tmp_path / f"round-{number}.answers.json")
        audit = Audit.load(plan)
        plan_round = audit.plan.rounds[-1].tasks
        for entry in read_saved_answers(
            saved, of=asked_in(audit.plan), number=len(audit.plan.rounds), tasks=plan_round, labels=audit.plan.labels
        ):
            audit.answer({entry.task: entry.label}, who=entry.who, when=entry.when)
        audit.round()
        audit.save(plan)
    context.close()
    assert said == []
    ours, theirs = Audit.load(plan), terminal
    assert ours.certificate()["claim"] == theirs.certificate()["claim"]
    assert ours.final_list() == theirs.final_list()


def test_closed_and_reopened_in_the_middle_loses_nothing(browser: Browser, tmp_path: Path) -> None:
    plan, _ = plan_file(tmp_path, 60)
    with audit_session(plan, who=None) as session:
        of, number = session.asked
        n_items = write_offline(session, tmp_path / "round.html", of=of, number=number)
        tasks = list(session.tasks)
    said: list[str] = []
    context = browser.new_context()
    with expert_of(context, tmp_path / "round.html", said) as page:
        page.locator("input").fill("Anna Ä.")
        page.keyboard.press("Enter")
        for key in "121u":
            page.keyboard.press(key)
        page.keyboard.press("z")  # the unsure one is taken back
        assert task_of(page) == str(tasks[3])
    with expert_of(context, tmp_path / "round.html", said) as page:
        assert f"3 of {n_items} answered" in page.locator("[data-part=count]").inner_text()
        page.keyboard.press("Enter")
        assert task_of(page) == str(tasks[3])
        page.keyboard.press("2")
        page.get_by_role("button", name="Finish").click()
        saved = save(page, tmp_path / "answers.json")
    context.close()
    assert said == []
    audit = Audit.load(plan)
    read = read_saved_answers(saved, of=of, number=1, tasks=audit.plan.rounds[-1].tasks, labels=audit.plan.labels)
    assert [(entry.task, entry.label, entry.who) for entry in read] == [
        (task, label, "Anna Ä.") for task, label in zip(tasks[:4], ["defect", "sound", "defect", "sound"], strict=True)
    ]


def saved_record(plan: Path, answers: list[list[Any]], **changed: Any) -> dict[str, Any]:
    """What a page would save."""
    from hashlib import sha256

    audit = Audit.load(plan)
    kept = {"of": asked_in(audit.plan), "round": len(audit.plan.rounds), "who": "anna", "answers": answers, **changed}
    text = json.dumps(list(kept.values()), ensure_ascii=False, separators=(",", ":"))
    return {"format": "rarevote answers", "version": 1, **kept, "sha256": sha256(text.encode()).hexdigest()}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"of": "0" * 64}, "another audit or list"),
        ({"round": 7}, "answers are for round 7, but round 1 is open"),
        ({"answers": [[0, 5, "2026-01-01T00:00:00Z"]]}, "not asked"),
        ({"answers": [[10**6, 0, "2026-01-01T00:00:00Z"]]}, "not asked"),
        ({"answers": [[-1, 0, "2026-01-01T00:00:00Z"]]}, "not asked"),
        ({"answers": [[0, True, "2026-01-01T00:00:00Z"]]}, "not asked"),
    ],
)
def test_answers_to_something_else_are_refused(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    plan, _ = plan_file(tmp_path, 60)
    record = saved_record(plan, **{"answers": [[0, 0, "2026-01-01T00:00:00Z"]], **change})
    (tmp_path / "saved.json").write_text(json.dumps(record))
    before = plan.read_bytes()
    audit = Audit.load(plan)
    with pytest.raises(InputError, match=said):
        read_saved_answers(tmp_path / "saved.json", of=asked_in(audit.plan), number=1,
                           tasks=audit.plan.rounds[-1].tasks, labels=audit.plan.labels)  # fmt: skip
    assert plan.read_bytes() == before


@pytest.mark.parametrize("alter", ["answers", "who", "cut"])
def test_altered_answers_are_refused(tmp_path: Path, alter: str) -> None:
    plan, _ = plan_file(tmp_path, 60)
    record = saved_record(plan, [[0, 0, "2026-01-01T00:00:00Z"]])
    text = json.dumps({**record, **({"answers": [[0, 1, "2026-01-01T00:00:00Z"]]} if alter == "answers" else {}),
                       **({"who": "eve"} if alter == "who" else {})})  # fmt: skip
    path = tmp_path / "saved.json"
    path.write_text(text[:-20] if alter == "cut" else text)
    audit = Audit.load(plan)
    with pytest.raises(InputError, match=r"altered|not a file of answers"):
        read_saved_answers(path, of=record["of"], number=1, tasks=audit.plan.rounds[-1].tasks, labels=CLASSES)


def test_nothing_of_the_crowd_is_in_the_file_and_nothing_hostile_runs(browser: Browser, tmp_path: Path) -> None:
    write_sound(tmp_path / "a.wav")
    (tmp_path / "r.pdf").write_bytes(b"%PDF-1.4\n%%EOF\n")
    path = write_list(
        tmp_path,
        doubt=["secret-vote", *["" for _ in HOSTILE]],
        media=["a.wav", *["r.pdf" for _ in HOSTILE]],
        body=["<p>One</p>", *HOSTILE],
    )
    said: list[str] = []
    asked = Instructions("Is </script> it <b>broken</b>?", (("x", "<img src=x onerror=alert(1)>"),))
    with list_session(
        path, classes=["x", "y"], media=Media([tmp_path]), show_as=["body=html"], instructions=asked
    ) as one:
        of, number = one.asked
        write_offline(one, tmp_path / "list.html", of=of, number=number)
    assert "secret-vote" not in (tmp_path / "list.html").read_text()
    context = browser.new_context()
    requests: list[str] = []
    context.on("request", lambda request: requests.append(request.url))
    with expert_of(context, tmp_path / "list.html", said) as page:
        assert page.locator("h1").inner_text() == "Is </script> it <b>broken</b>?"
        page.keyboard.press("Enter")
        ready = "async (player) => { player.muted = true; await player.play(); return player.readyState; }"
        assert page.locator("audio").evaluate(ready) >= 2
        for _ in range(1 + len(HOSTILE)):
            frame = page.frame_locator("#main iframe")
            frame.locator("body").wait_for(state="attached")
            assert frame.locator("script, img, svg, iframe, form, [href], [src]").count() == 0
            page.keyboard.press("x")
        saved = save(page, tmp_path / "list.answers.json")
    context.close()
    assert said == []
    assert {url.split(":")[0] for url in requests} <= {"file", "data", "blob", "about"}
    rarevote("review", str(path), "--class", "x", "--class", "y", "--answers", str(saved))
    assert (tmp_path / "list.answers.csv").read_text().splitlines()[:2] == ["task,label", "t0,x"]
    # The same once more changes nothing.
    journal = (tmp_path / "list.csv.answers.jsonl").read_bytes()
    rarevote("review", str(path), "--class", "x", "--class", "y", "--answers", str(saved))
    assert (tmp_path / "list.csv.answers.jsonl").read_bytes() == journal
    # Another answer to an item that has one is refused, and nothing is written.
    with list_session(path, classes=["x", "y"]) as one, pytest.raises(InputError, match="was answered"):
        one.take([Entry(one.tasks[0], "y", "eve", "2026-01-01T00:00:00Z")])
    assert (tmp_path / "list.csv.answers.jsonl").read_bytes() == journal


def test_media_that_are_too_large_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_sound(tmp_path / "a.wav")
    monkeypatch.setattr(offline, "MAX_MEDIA", 2000)
    path = write_list(tmp_path, media=["a.wav"])
    with (
        list_session(path, classes=["x", "y"], media=Media([tmp_path])) as session,
        pytest.raises(InputError, match="larger than the"),
    ):
        write_offline(session, tmp_path / "list.html", of="", number=1)
    assert not (tmp_path / "list.html").exists()


def test_a_whole_audit_of_files_through_pages(browser: Browser, tmp_path: Path) -> None:
    """By the commands that are printed, with definitions that end up in the certificate."""
    rarevote("simulate", "--tasks", "300", "--imbalance", "4", "--seed", "2", "--out", str(tmp_path / "crowd"))
    labels = next((tmp_path / "crowd").glob("labels*"))
    truth = dict(line.split(",")[:2] for line in (tmp_path / "crowd" / "truth.csv").read_text().splitlines()[1:])
    rare = min(set(truth.values()), key=list(truth.values()).count)
    start = rarevote(
        "audit", "start", str(labels), "--find", f"{rare}=0.8", "--plan", "a.json", "--review-out", "r-1.csv",
        "--question-text", "What is it?", "--define", f"{rare}=a visible break", "--flag-cost", "1",
        folder=tmp_path,
    )  # fmt: skip
    assert "rarevote audit continue a.json --answers r-1.csv --review-out r-2.csv" in start.stderr
    context = browser.new_context()
    said: list[str] = []
    for number in range(1, 30):
        if Audit.load(tmp_path / "a.json").stopped is not None:
            break
        written = rarevote("audit", "review", "a.json", "--offline", f"p{number}.html", folder=tmp_path)
        then = written.stderr.strip().splitlines()[-1].removeprefix("then: rarevote ").split()
        with expert_of(context, tmp_path / f"p{number}.html", said) as page:
            assert "a visible break" in page.locator("#main").inner_text()
            page.keyboard.press("Enter")
            names = page.locator("[data-choice] span").all_inner_texts()[:-1]  # the last is unsure
            keys = {
                name: page.locator(f"[data-choice='{i}']").get_attribute("data-key") for i, name in enumerate(names)
            }
            while page.locator("#main .task").count():
                page.keyboard.press(str(keys[truth[task_of(page)]]))
            save(page, tmp_path / f"p{number}.answers.json")
        rarevote(*then, folder=tmp_path)
    context.close()
    assert said == []
    rarevote("audit", "finish", "a.json", "--out", "result.csv", "--certificate", "c.json", folder=tmp_path)
    assert verify_files(tmp_path / "a.json", tmp_path / "c.json") == ()
    certificate = json.loads((tmp_path / "c.json").read_text())
    assert certificate["instructions"]["question"] == "What is it?"
    assert [text for _, text in certificate["instructions"]["definitions"]] == ["a visible break"]
    forged = {**certificate, "instructions": {**certificate["instructions"], "question": "Something else?"}}
    (tmp_path / "c.json").write_text(json.dumps(forged))
    assert any("definitions" in reason for reason in verify_files(tmp_path / "a.json", tmp_path / "c.json"))
