"""The pages as a client sees them: what they show, what they never show, and whom they refuse."""

from __future__ import annotations

import html
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rarevote.audit.journal import journal_path, read_journal
from rarevote.workbench.media import Media
from tests.page.crowds import BREAKOUT, FORMULA, HOSTILE_CLASS, SCRIPT, SEPARATORS
from tests.workbench.benches import (
    ADDRESS,
    DEFECT,
    SOUND,
    Bench,
    answer_round,
    audit_session,
    fields_of,
    list_session,
    plan_file,
)


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    return plan_file(tmp_path)[0]


@pytest.fixture
def bench(plan: Path) -> Iterator[Bench]:
    with audit_session(plan) as session:
        yield Bench(session)


# --------------------------------------------------------------------------------------------------------------------
# answering


def test_an_answer_is_kept_before_the_next_item_shows(bench: Bench, plan: Path) -> None:
    page = bench.get("/").text
    fields = fields_of(page, "/answer")
    assert (fields["item"], fields["seen"]) == ("1", "")
    sent = bench.post("/answer", **fields, choice=DEFECT)
    assert (sent.status_code, sent.headers["location"]) == (303, "/")
    (entry,) = read_journal(plan)
    assert (entry.label, entry.who) == ("defect", "anna")
    page = bench.get("/").text
    assert fields_of(page, "/answer")["item"] == "2"
    assert fields_of(page, "/undo")["item"] == "1"
    undone = bench.post("/undo", item=1)
    assert undone.headers["location"] == "/item/1"
    assert fields_of(bench.get("/").text, "/answer")["item"] == "1"
    assert "/undo" not in bench.get("/").text


def test_an_item_can_be_looked_at_again_and_changed(bench: Bench, plan: Path) -> None:
    bench.post("/answer", item=1, seen="", choice=DEFECT)
    page = bench.get("/item/1").text
    assert fields_of(page, "/answer")["seen"] == str(DEFECT)
    assert page.count('aria-pressed="true"') == 1
    bench.post("/answer", item=1, seen=DEFECT, choice=SOUND)
    assert [entry.label for entry in read_journal(plan)] == ["defect", "sound"]
    assert bench.get("/item/999").status_code == 404


def test_two_tabs(bench: Bench, plan: Path) -> None:
    """Both show the first item; one answers, the other answers differently without having seen that."""
    one = fields_of(bench.get("/").text, "/answer")
    other = fields_of(bench.get("/").text, "/answer")
    assert bench.post("/answer", **one, choice=DEFECT).status_code == 303
    assert bench.post("/answer", **one, choice=DEFECT).status_code == 303  # a second click
    refused = bench.post("/answer", **other, choice=SOUND)
    assert refused.status_code == 409
    assert "answered in the meantime: “defect”" in refused.text
    assert len(read_journal(plan)) == 1
    # What is shown then is that item, and what is chosen there counts.
    again = fields_of(refused.text, "/answer")
    assert (again["item"], again["seen"]) == ("1", str(DEFECT))
    assert bench.post("/answer", **again, choice=SOUND).status_code == 303
    assert [entry.label for entry in read_journal(plan)] == ["defect", "sound"]


def test_a_full_disk_is_said_and_the_item_stays(bench: Bench, plan: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("rarevote.audit.journal.os.fsync", full)
        answered = bench.post("/answer", item=1, seen="", choice=DEFECT)
    assert answered.status_code == 503
    assert "Not saved" in answered.text
    assert "No space left on device" in answered.text
    assert fields_of(answered.text, "/answer")["item"] == "1"
    assert journal_path(plan).stat().st_size == 0
    assert bench.post("/answer", item=1, seen="", choice=DEFECT).status_code == 303


def test_through_a_round_a_pause_and_the_unsure_ones(tmp_path: Path) -> None:
    path, right = plan_file(tmp_path)
    with audit_session(path) as session:
        bench = Bench(session)
        n = len(session.tasks)
        for number in range(1, n + 1):
            choice: Any = "unsure" if number in (2, 4) else right[session.task_of(number)]
            bench.post("/answer", item=number, seen="", choice=choice)
        page = bench.get("/").text
        assert "2 items are still unsure" in page
        assert bench.post("/go-on").status_code == 409
        assert bench.post("/answer", item=2, seen="unsure", choice=SOUND).headers["location"] == "/item/4"
        assert bench.post("/answer", item=4, seen="unsure", choice=SOUND).headers["location"] == "/"
        assert "This round is answered" in bench.get("/").text
        assert bench.post("/go-on").status_code == 303
        assert fields_of(bench.get("/").text, "/answer")["item"] == str(n + 1)
        # A tab that was left open means an item of the first round.
        assert bench.post("/answer", item=1, seen="", choice=DEFECT).status_code == 409
        while not session.is_over:
            answer_round(session, right)
            bench.post("/go-on")
        page = bench.get("/").text
        assert "All done" in page
        assert "CERTIFIED" in page
        made = bench.post("/make", file="certificate")
        assert made.headers["location"] == "/made/certificate"
        download = bench.get("/made/certificate")
        assert "attachment" in download.headers["content-disposition"]
        assert download.json()["certified"]
        assert bench.post("/make", file="../audit.json").status_code == 400
        assert bench.get("/made/nothing").status_code == 404


def test_nothing_says_what_the_crowd_or_the_method_thinks(tmp_path: Path) -> None:
    """Neither score, stratum nor votes of an item: two plans that differ in nothing else show the same pages."""
    path, _ = plan_file(tmp_path)
    with audit_session(path) as session:
        bench = Bench(session)
        stratum = {task: b for b, tasks in enumerate(session.audit.plan.strata.tasks) for task in tasks}
        numbers = range(1, len(session.tasks) + 1)
        assert len({stratum[task] for task in session.tasks}) > 2
        pages = set()
        for number in numbers[1:]:
            page = bench.get(f"/item/{number}").text
            own = str(session.task_of(number))
            for seen in (f"<b>{own}</b>", f": {own}\"", f">{own}</p>", f'value="{number}"', f"Item {number}",
                         f'href="/item/{number - 1}"'):  # fmt: skip
                assert seen in page
                page = page.replace(seen, "...")
            pages.add(page)
        assert len(pages) == 1
        # The claims are hidden until somebody asks, and are about no item.
        page = bench.get("/").text
        assert "<details" in page
        assert " open" not in page.split("<details")[1].split(">")[0]
        assert "CERTIFIED" not in page
        assert "CERTIFIED" in bench.get("/claims").text or "No “defect” was found" in bench.get("/claims").text


# --------------------------------------------------------------------------------------------------------------------
# closed


PAGES = ["/", "/item/1", "/file/1/0", "/claims", "/end", "/made/certificate"]


@pytest.mark.parametrize("path", PAGES)
def test_nobody_without_the_cookie(plan: Path, path: str) -> None:
    with audit_session(plan) as session:
        stranger = Bench(session, enter=False)
        refused = stranger.get(path)
        assert refused.status_code == 403
        assert "Open the whole address that the command printed" in refused.text
        assert stranger.get(path, headers={"cookie": "rarevote-8123=guess"}).status_code == 403
        assert stranger.get("/", params={"token": "guess"}).status_code == 403
        assert stranger.post("/answer", item=1, seen="", choice=0).status_code == 403


def test_the_token_is_exchanged_for_a_strict_cookie(plan: Path) -> None:
    with audit_session(plan) as session:
        bench = Bench(session, enter=False)
        answer = bench.get("/", params={"token": bench.guard.address_token})
        cookie = answer.headers["set-cookie"].lower()
        assert "samesite=strict" in cookie
        assert "httponly" in cookie
        assert bench.guard.address_token not in answer.text + cookie
        assert bench.guard.page_token not in answer.text + cookie
        assert bench.get("/").status_code == 200


@pytest.mark.parametrize(
    ("headers", "fields"),
    [
        ({"origin": "http://evil.example"}, {}),  # a form on another site
        ({"origin": "null"}, {}),  # a sandboxed frame, a file
        ({"origin": "http://127.0.0.1:9999"}, {}),  # another server on this machine
        ({"origin": "https://127.0.0.1:8123"}, {}),
        ({"origin": ""}, {}),
        ({}, {"token": None}),
        ({}, {"token": "guess"}),
        ({"cookie": "rarevote-8123=guess"}, {}),
    ],
)
@pytest.mark.parametrize("path", ["/answer", "/undo", "/go-on", "/make"])
def test_only_our_own_pages_change_anything(
    bench: Bench, plan: Path, path: str, headers: dict[str, str], fields: dict[str, Any]
) -> None:
    if "cookie" in headers:
        bench.client.cookies.clear()
    sent = bench.post(path, headers, **{"item": 1, "seen": "", "choice": 0, "file": "certificate", **fields})
    assert sent.status_code == 403
    assert journal_path(plan).stat().st_size == 0


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8123", "127.0.0.1.evil.example", "[::1]:8123", ""])
def test_other_names_of_this_machine_are_refused(bench: Bench, plan: Path, host: str) -> None:
    """A name of somebody else that was pointed at 127.0.0.1 (DNS rebinding)."""
    assert bench.get("/", headers={"host": host}).status_code == 400
    origin = {"host": host, "origin": f"http://{host}"}
    assert bench.post("/answer", origin, item=1, seen="", choice=0).status_code == 400
    assert journal_path(plan).stat().st_size == 0


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"x" * 5000, "application/x-www-form-urlencoded", 413),
        (b'{"item": 1}', "application/json", 415),
        (b"item=1", "text/plain", 415),
        (b"item=1&choice=0", "multipart/form-data", 415),
        (b"\xff\xfe", "application/x-www-form-urlencoded", 400),
        (b"&".join(b"a=%d" % i for i in range(50)), "application/x-www-form-urlencoded", 400),
    ],
)
def test_only_short_forms_are_read(bench: Bench, plan: Path, body: bytes, kind: str, status: int) -> None:
    sent = bench.send("POST", "/answer", content=body, headers={"origin": ADDRESS, "content-type": kind})
    assert sent.status_code == status
    assert journal_path(plan).stat().st_size == 0


@pytest.mark.parametrize(
    "fields",
    [
        {"item": "", "choice": 0},
        {"item": "-1", "choice": 0},
        {"item": "1e3", "choice": 0},
        {"item": "٣", "choice": 0},
        {"item": 1, "choice": 2},
        {"item": 1, "choice": "-2"},
        {"item": 1, "choice": ""},
        {"item": 1, "choice": "defect"},
    ],
)
def test_nonsense_in_a_form_is_refused(bench: Bench, plan: Path, fields: dict[str, Any]) -> None:
    assert bench.post("/answer", seen="", **fields).status_code == 400
    assert journal_path(plan).stat().st_size == 0


def test_headers_of_every_answer(bench: Bench) -> None:
    for path in (*PAGES, "/style.css", "/script.js", "/nothing", "/answer"):
        headers = bench.get(path).headers
        rules = dict(rule.split(" ", 1) for rule in headers["content-security-policy"].split("; "))
        assert rules["default-src"] == "'none'"
        assert rules["script-src"] == rules["style-src"] == rules["form-action"] == "'self'"
        assert rules["img-src"] == "'self' data:"
        assert rules["frame-ancestors"] == "'none'"
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize("path", ["/../audit.json", "/made/..%2faudit.json", "/file/1/..%2f..", "/style.css/../../x"])
def test_no_path_leads_to_a_file(bench: Bench, path: str) -> None:
    assert bench.get(path).status_code in (403, 404)


# --------------------------------------------------------------------------------------------------------------------
# hostile names


def test_hostile_texts_ids_and_classes_are_text(tmp_path: Path) -> None:
    import csv

    names = [SCRIPT, FORMULA, BREAKOUT, SEPARATORS, "{{ 7 * 7 }}", "'\"><svg onload=alert(1)>", "\x1b[2J\x00end"]
    with (tmp_path / "list.csv").open("w", newline="", encoding="utf-8") as handle:
        table = csv.writer(handle)
        table.writerow(["task", "text & <i>more</i>", "two"])
        table.writerows([[name, f"what {name} shows", "x"] for name in names])
    with list_session(tmp_path / "list.csv", classes=[HOSTILE_CLASS, SCRIPT]) as session:
        bench = Bench(session)
        for number, name in enumerate(names, 1):
            page = bench.get(f"/item/{number}").text
            assert (
                html.escape(f"what {name} shows", quote=True).replace("&#x27;", "&#39;").replace("&quot;", "&#34;")
                in page
            )
            body = page.split("<body")[1]
            assert "<script" not in body
            assert "<svg" not in body
            assert "<img" not in body
            assert "<b>fect" not in body
            assert "49" not in body
        bench.post("/answer", item=1, seen="", choice=1)
        assert "&lt;script&gt;" in bench.get("/").text  # as the last answer


def test_keys_and_thirty_classes(tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text("task\na\n")
    classes = [f"class {i}" for i in range(30)]
    with list_session(tmp_path / "list.csv", classes=classes) as session:
        page = Bench(session).get("/").text
    keys = [part.split('"')[0] for part in page.split('data-key="')[1:]]
    assert len(keys) == len(set(keys)) == 32  # with those of unsure and help


def test_pictures_of_named_hosts_are_in_the_policy(tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text(
        "task,image\na,https://img.example.org/a.png\nb,https://other.example.org/b.png\nc,http://img.example.org/c.png\n"
        "d,https://img.example.org@evil.example/d.png\ne,https://img.example.org\\@evil.example/e.png\n"
    )
    media = Media(hosts=["img.example.org"])
    with list_session(tmp_path / "list.csv", classes=["x", "y"], media=media) as session:
        bench = Bench(session)
        pages = [bench.get(f"/item/{number}") for number in range(1, 6)]
    assert '<img src="https://img.example.org/a.png"' in pages[0].text
    assert all("<img" not in page.text for page in pages[1:])
    assert "img-src 'self' data: https://img.example.org;" in pages[0].headers["content-security-policy"]


def test_pace_and_time_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "list.csv").write_text("task\n" + "\n".join(f"t{i}" for i in range(40)) + "\n")
    clock = [100.0]
    monkeypatch.setattr("rarevote.workbench.session.monotonic", lambda: clock[0])
    with list_session(tmp_path / "list.csv", classes=["x", "y"]) as session:
        bench = Bench(session)
        for number in range(1, 11):
            clock[0] += 3000.0 if number == 5 else 12.0  # a cup of tea is no pace
            bench.post("/answer", item=number, seen="", choice=0)
        page = bench.get("/").text
    assert "12 s per item" in page
    assert "about 6 minutes left" in page
    assert "10 of 40" in page
