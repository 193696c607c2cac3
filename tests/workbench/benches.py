"""Audits and lists at a workbench, and a client that behaves as one of our pages does."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from rarevote.audit import Audit
from rarevote.audit.instructions import Instructions
from rarevote.audit.journal import writing
from rarevote.io.read.answers import read_review_list
from rarevote.workbench.app import build_app
from rarevote.workbench.audits import AuditSession
from rarevote.workbench.guard import Guard
from rarevote.workbench.lists import ListSession
from rarevote.workbench.media import Media
from rarevote.workbench.session import ReviewSession
from tests.audit.worlds import world

ADDRESS = "http://127.0.0.1:8123"
CLASSES = ["defect", "sound"]
DEFECT, SOUND = 0, 1


def plan_file(folder: Path, n: int = 400, *, rate: float = 0.2, **options: Any) -> tuple[Path, list[int]]:
    """A plan with its first round drawn, and for every task the choice that is right."""
    scores, truth = world(n, rate=rate)
    chosen = {"name": "defect", "target": 0.9, "classes": CLASSES, "flag_cost": 5.0, "seed": 1, **options}
    audit = Audit.start(range(n), scores, **chosen)
    audit.round()
    path = folder / "audit.json"
    audit.save(path)
    return path, [DEFECT if positive else SOUND for positive in truth]


@contextmanager
def audit_session(path: Path, media: Media | None = None, who: str | None = "anna") -> Iterator[AuditSession]:
    with writing(path) as journal:
        yield AuditSession(path, media=media or Media(), journal=journal, who=who)


@contextmanager
def list_session(
    path: Path,
    *,
    media: Media | None = None,
    classes: list[str] | None = None,
    reasons: bool = False,
    show_as: Sequence[str] = (),
    instructions: Instructions | None = None,
) -> Iterator[ListSession]:
    with writing(path) as journal:
        yield ListSession(
            path, read_review_list(path), out=path.with_name("answers.csv"), classes=classes or [], reasons=reasons,
            media=media or Media(), journal=journal, show_as=show_as, instructions=instructions,
        )  # fmt: skip


def answer_round(session: ReviewSession, right: Mapping[Any, int] | list[int]) -> int:
    """Answer everything that is open; returns how many that were."""
    n = 0
    while (number := session.next_open()) is not None:
        session.answer(number, right[session.task_of(number)], seen=None)
        n += 1
    return n


# A browser that a test before has opened leaves its event loop in the main thread, where no second one may run.
_ELSEWHERE = ThreadPoolExecutor(1)


class Bench:
    """A client of the pages about a session."""

    def __init__(self, session: ReviewSession, *, enter: bool = True) -> None:
        self.guard = Guard()
        transport = httpx.ASGITransport(build_app(session, self.guard))
        self.client = httpx.AsyncClient(transport=transport, base_url=ADDRESS)
        if enter:
            assert self.get("/", params={"token": self.guard.address_token}).status_code == 200

    def send(self, method: str, path: str, **options: Any) -> httpx.Response:
        return _ELSEWHERE.submit(asyncio.run, self.client.request(method, path, **options)).result()

    def get(self, path: str = "/", **options: Any) -> httpx.Response:
        return self.send("GET", path, **options)

    def post(self, path: str, headers: Any = None, **fields: Any) -> httpx.Response:
        """Send a form as our pages do; a field of None is left out."""
        form = {"token": self.guard.page_token, **fields}
        kept = {name: str(value) for name, value in form.items() if value is not None}
        return self.send("POST", path, data=kept, headers={"origin": ADDRESS, **(headers or {})})


def fields_of(page: str, action: str) -> dict[str, str]:
    """The hidden fields of a form in a page."""
    form = page.split(f'action="{action}"')[1].split("</form>")[0]
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', form))
