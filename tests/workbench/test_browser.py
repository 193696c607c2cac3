"""The workbench in a real browser, by keys alone: to a certificate, with nothing said and nothing moving."""

from __future__ import annotations

import csv
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from rarevote.audit import Audit, verify_files
from rarevote.audit.journal import read_journal
from rarevote.workbench.guard import Guard
from rarevote.workbench.serve import forwarding_page, listen, make_server
from rarevote.workbench.session import ReviewSession
from tests.page.crowds import BREAKOUT, HOSTILE_CLASS, SCRIPT
from tests.workbench.benches import CLASSES, audit_session, list_session, plan_file

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Page

LONG = "A long text. " * 800
PLACES = """() => Object.fromEntries(["header", ".progress", ".card", ".answers", ".tools", ".undo button"].map(
    name => { const box = document.querySelector(name).getBoundingClientRect();
              return [name, [box.x, box.y, box.width, box.height].map(Math.round).join()]; }))"""


@contextmanager
def serving(session: ReviewSession) -> Iterator[str]:
    """The address of a server in a thread of this process."""
    guard, opened = Guard(), listen(0)
    server = make_server(session, guard)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [opened]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{opened.getsockname()[1]}/?token={guard.address_token}"
    finally:
        server.should_exit = True
        thread.join()
        opened.close()


class Expert:
    """A page that is used by keys, with all that it said and asked for."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.said: list[str] = []
        self.asked: set[str] = set()
        page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        page.on("dialog", self._refuse)
        page.on("request", lambda request: self.asked.add(urlsplit(request.url).netloc))
        page.goto(address)
        page.wait_for_url(lambda url: url.endswith("/start"))
        self.press("Enter")
        page.wait_for_load_state("load")  # by then the script of the new page listens to keys

    def _refuse(self, dialog: Dialog) -> None:
        self.said.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def press(self, key: str) -> None:
        """Press a key and wait until the page has done what it means."""
        self.page.evaluate("document.getElementById('bench').dataset.old = 'yes'")
        self.page.keyboard.press(key)
        self.page.wait_for_selector("#bench:not([data-old])")

    @property
    def task(self) -> str:
        return self.page.locator(".task b").inner_text()

    @property
    def heading(self) -> str:
        found = self.page.locator("h1")
        return found.inner_text() if found.count() else ""


@contextmanager
def expert_at(browser: Browser, address: str, width: int = 1180, scheme: str = "light") -> Iterator[Expert]:
    context = browser.new_context(viewport={"width": width, "height": 760}, color_scheme=scheme)  # type: ignore[arg-type]
    yield Expert(context.new_page(), address)
    context.close()


def test_by_keys_to_a_certificate(browser: Browser, tmp_path: Path) -> None:
    """About 400 items of which a third are positive: the same answers and the same proof as in the terminal."""
    path, right = plan_file(tmp_path, 400, rate=1 / 3, flag_cost=1.0)
    terminal = Audit.load(path)
    while review := terminal.round():
        terminal.answer({task: CLASSES[right[task]] for task in review})
    with audit_session(path) as session, serving(session) as address, expert_at(browser, address) as expert:
        slips = 0
        while expert.heading != "All done, thank you":
            if expert.heading:
                expert.press("Enter")
                continue
            task = int(expert.task)
            if task % 7 == 0 and slips < 3:
                # A slip, undone; and one that is looked at again, with the arrow keys.
                expert.press(str(2 - right[task]))
                expert.press("z")
                assert int(expert.task) == task
                slips += 1
            expert.press(str(right[task] + 1))
        assert slips
        with expert.page.expect_download() as download:
            expert.page.locator("button[value=certificate]").click()
        assert json.loads(Path(download.value.path()).read_text(encoding="utf-8"))["certified"]
        expert.page.locator("button[value=page]").click()
        expert.page.locator("#proved, h1").first.wait_for()
        assert "defect" in expert.heading
        assert expert.said == []
        assert expert.asked - {""} == {urlsplit(address).netloc}  # the empty icon is no request on any network
    assert verify_files(path, tmp_path / "audit.certificate.json") == ()
    here = Audit.from_json(path.read_text(encoding="utf-8"))
    assert [one.tasks for one in here.plan.rounds] == [one.tasks for one in terminal.plan.rounds]
    assert here.answers == terminal.answers
    assert here.final_list() == terminal.final_list()


def test_a_file_leads_to_the_address(browser: Browser, tmp_path: Path) -> None:
    path, _ = plan_file(tmp_path)
    with audit_session(path) as session, serving(session) as address, forwarding_page(address) as way:
        page = browser.new_page()
        page.goto(way.as_uri())
        page.wait_for_url(lambda url: url.endswith("/start"))
        # The token is exchanged, and no longer in the address.
        assert page.url == f"{address.split('?')[0]}start"
        page.close()


def test_looking_back_unsure_and_the_panel(browser: Browser, tmp_path: Path) -> None:
    path, _ = plan_file(tmp_path)
    with audit_session(path) as session, serving(session) as address, expert_at(browser, address) as expert:
        first = expert.task
        expert.press("1")
        expert.press("u")
        expert.press("ArrowLeft")
        expert.press("ArrowLeft")
        assert expert.task == first
        assert expert.page.locator("[aria-pressed=true]").inner_text().split() == ["1", "defect"]
        expert.press("2")
        assert expert.page.locator(".progress").inner_text().startswith("1 of")
        panel = expert.page.locator(".sheet")
        assert not panel.is_visible()
        expert.page.keyboard.press("p")
        panel.get_by_text("After 1 review (0 “defect”).").wait_for()
        expert.press("1")
        assert panel.is_visible()  # until it is closed
        expert.page.keyboard.press("p")
        assert not panel.is_visible()
        # A key that is held down is one answer.
        expert.page.evaluate(
            """() => { for (let i = 0; i < 5; i++) document.dispatchEvent(
                new KeyboardEvent("keydown", {key: "1", code: "Digit1", repeat: true, bubbles: true})) }"""
        )
        expert.page.wait_for_timeout(100)
        assert expert.said == []
    assert [entry.label for entry in read_journal(path)] == ["defect", None, "sound", "defect"]


def test_a_server_that_is_gone_is_said_and_nothing_is_forgotten(browser: Browser, tmp_path: Path) -> None:
    path, _ = plan_file(tmp_path)
    with audit_session(path) as session, serving(session) as address, expert_at(browser, address) as expert:
        expert.press("1")
        task = expert.task
        expert.page.route("**/answer", lambda route: route.abort())
        expert.page.keyboard.press("1")
        expert.page.locator(".trouble").wait_for()
        assert "To resume, run this command" in expert.page.locator(".trouble").inner_text()
        assert expert.task == task
        expert.page.unroute("**/answer")
        expert.press("1")
        assert not expert.page.locator(".trouble").is_visible()
    assert len(read_journal(path)) == 2


def test_a_form_on_another_site_changes_nothing(browser: Browser, tmp_path: Path) -> None:
    """In the very browser that has the cookie."""
    path, _ = plan_file(tmp_path)
    with audit_session(path) as session, serving(session) as address, expert_at(browser, address) as expert:
        ours = address.split("/?")[0]
        form = (
            f'<form method="post" action="{ours}/answer"><input name="item" value="1"><input name="seen" value="">'
            '<input name="choice" value="0"><button>Win</button></form>'
        )
        evil = expert.page.context.new_page()
        evil.route("http://evil.example/**", lambda route: route.fulfill(body=form, content_type="text/html"))
        evil.goto("http://evil.example/")
        read = f"fetch('{ours}/', {{credentials: 'include'}}).then(() => 'read', () => 'refused')"
        assert evil.evaluate(read) == "refused"
        with evil.expect_response(f"{ours}/answer") as refused:
            evil.get_by_role("button").click()
        assert refused.value.status == 403
        expert.press("1")  # while the workbench goes on
    assert len(read_journal(path)) == 1


@pytest.mark.parametrize(("width", "scheme"), [(1180, "light"), (390, "dark")])
def test_nothing_moves_between_items(browser: Browser, tmp_path: Path, width: int, scheme: str) -> None:
    """Short, long, hostile and picture: the buttons stay where the finger is."""
    import vl_convert

    drawn = vl_convert.svg_to_png('<svg xmlns="http://www.w3.org/2000/svg" width="900" height="300"><rect/></svg>')
    (tmp_path / "wide.png").write_bytes(drawn)
    texts = ["short", LONG, f"{SCRIPT}{BREAKOUT}", "wide.png", "", "a\nb\nc", "x" * 500, "end"]
    with (tmp_path / "list.csv").open("w", newline="", encoding="utf-8") as handle:
        csv.writer(handle).writerows([["task", "text"], *([f"t{i}", text] for i, text in enumerate(texts))])
    from rarevote.workbench.media import Media

    classes = [HOSTILE_CLASS, *(f"class {i}" for i in range(29))]
    seen = set()
    with (
        list_session(tmp_path / "list.csv", classes=classes, media=Media([tmp_path])) as session,
        serving(session) as address,
        expert_at(browser, address, width, scheme) as expert,
    ):
        assert HOSTILE_CLASS in expert.page.locator(".answers").inner_text()
        for i in range(len(texts)):
            seen.add(json.dumps(expert.page.evaluate(PLACES)))
            assert expert.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
            assert expert.page.evaluate("document.documentElement.scrollHeight <= window.innerHeight")
            if texts[i] == "wide.png":
                arrived = "async image => { await image.decode(); return image.naturalWidth }"
                assert expert.page.locator(".picture img").evaluate(arrived) == 900
            expert.press("1" if i % 2 else "a")
        assert expert.heading == "All done, thank you"
        assert expert.said == []
    assert len(seen) == 1


def test_names_for_those_who_hear_the_page(browser: Browser, tmp_path: Path) -> None:
    path, _ = plan_file(tmp_path)
    with audit_session(path) as session, serving(session) as address, expert_at(browser, address) as expert:
        page = expert.page
        total = len(session.tasks)
        assert page.get_by_role("main", name=f"Item 1 of {total}").count() == 1
        assert page.get_by_role("group", name="Which class is it?").count() == 1
        assert page.get_by_role("button", name="defect", exact=True).get_attribute("aria-keyshortcuts") == "1"
        assert page.get_by_role("progressbar", name="Answered in this round").count() == 1
        expert.press("1")
        # Whoever hears the page hears the next item.
        assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith(f"Item 2 of {total}")
        reached = set()
        for _ in range(12):
            page.keyboard.press("Tab")
            reached.add(page.evaluate("document.activeElement.textContent.trim()"))
        assert {"1 defect", "2 sound", "u unsure", "Finish"} <= {" ".join(text.split()) for text in reached}
