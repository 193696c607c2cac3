"""Requests to the workbench, handed to its application as the server would hand them on."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from rarevote.errors import InputError
from rarevote.io.read.review_list import read_review_list
from rarevote.io.write.columns import write_columns
from rarevote.meaning.audit import Audit
from rarevote.meaning.audit.journal import writing
from rarevote.workbench.app import build_app
from rarevote.workbench.audits import AuditSitting
from rarevote.workbench.guard import Guard
from rarevote.workbench.lists import ListSitting
from rarevote.workbench.shelf import Pictures

_HOST = "127.0.0.1:8123"
# After so many requests a sitting is begun again: what was answered would fill the disk.
_REQUESTS_PER_SITTING = 200


class Visitor:
    """Sends requests to two workbenches, one of an audit and one of a list.

    Args:
        folder: for plans, lists and journals.
        plan: an audit's plan.
    """

    def __init__(self, folder: Path, plan: bytes) -> None:
        self._folder, self._plan = folder, plan
        self._sent = 0
        self._open = contextlib.ExitStack()
        self._apps: list[tuple[Any, dict[str, str]]] = []
        self._loop = asyncio.new_event_loop()

    def send(self, path: Path) -> None:
        """Send the request in a file; one that is refused raises an error of ours.

        Raises:
            InputError: the answer is that something is wrong with the request.
        """
        if self._sent % _REQUESTS_PER_SITTING == 0:
            self._begin()
        app, secrets = self._apps[self._sent % len(self._apps)]
        self._sent += 1
        text = path.read_bytes().decode("utf-8", "surrogateescape")
        for name, secret in secrets.items():
            text = text.replace(name, secret)
        try:
            request = json.loads(text)
        except (ValueError, RecursionError):
            request = {"path": text, "body": text}
        status, headers = self._loop.run_until_complete(_answered(app, *_as_sent(request)))
        assert {b"content-security-policy", b"x-content-type-options"} <= headers, (status, headers)
        assert status != 500, status
        if status >= 400:
            raise InputError(f"status {status}")

    def _begin(self) -> None:
        self._open.close()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        plan = self._folder / "audit.json"
        audit = Audit.from_json(self._plan.decode())
        audit.round(8)
        audit.save(plan)
        listed = self._folder / "list.csv"
        names = np.array([f"item {i}" for i in range(30)], dtype=object)
        write_columns({"task": names, "decided": np.array(["defect", "sound"] * 15, dtype=object)}, listed)
        sittings = [
            AuditSitting(plan, pictures=Pictures(), journal=self._open.enter_context(writing(plan)), who="anna"),
            ListSitting(
                listed,
                read_review_list(listed),
                out=self._folder / "answers.csv",
                pictures=Pictures(),
                journal=self._open.enter_context(writing(listed)),
            ),
        ]
        self._apps = []
        for sitting in sittings:
            guard = Guard()
            secrets = {"{address}": guard.address_token, "{page}": guard.page_token, "{cookie}": guard._cookie}
            self._apps.append((build_app(sitting, guard), secrets))


def _as_sent(request: Any) -> tuple[str, bytes, list[tuple[bytes, bytes]], list[bytes]]:
    """Method, target, headers and body as a server lets them through: nothing but printable letters in the first."""
    record = request if isinstance(request, dict) else {"body": request}
    method = _line(record.get("method", "GET")).decode("latin-1").split(" ")[0] or "GET"
    target = bytes(letter for letter in _line(record.get("path", "/")) if 0x21 <= letter <= 0x7E)
    given = record.get("headers", {})
    pairs = given.items() if isinstance(given, dict) else [(given, given)]
    headers = [(_line(name).lower().strip() or b"x", _line(value).strip()) for name, value in pairs]
    body = record.get("body", "")
    chunks = body if isinstance(body, list) else [body]
    return method, target, headers, [str(chunk).encode("utf-8", "surrogatepass") for chunk in chunks] or [b""]


def _line(value: Any) -> bytes:
    encoded = str(value).encode("utf-8", "surrogatepass")
    return bytes(letter for letter in encoded if letter >= 0x20 and letter != 0x7F)


async def _answered(
    app: Any, method: str, target: bytes, headers: list[tuple[bytes, bytes]], chunks: list[bytes]
) -> tuple[int, set[bytes]]:
    path, _, query = (target or b"/").partition(b"?")
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http", "method": method,
        "path": unquote(path.decode("ascii")), "raw_path": path, "query_string": query, "root_path": "",
        "headers": headers, "client": ("127.0.0.1", 50000), "server": ("127.0.0.1", 8123),
    }  # fmt: skip
    left = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]
    left[-1]["more_body"] = False
    sent: list[Any] = []

    async def receive() -> Any:
        return left.pop(0) if left else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent[0]["status"], {name.lower() for name, _ in sent[0]["headers"]}


def some_requests() -> list[bytes]:
    """What our pages send, and what others may try."""
    entered = {"host": _HOST, "cookie": "rarevote-8123={cookie}"}
    form = {**entered, "origin": f"http://{_HOST}", "content-type": "application/x-www-form-urlencoded"}
    looks = ["/", "/item/1", "/item/3", "/picture/1/0", "/claims", "/end", "/made/answers", "/style.css", "/script.js"]
    says = {
        "/answer": "token={page}&item=1&choice=0&seen=",
        "/undo": "token={page}&item=1",
        "/go-on": "token={page}&unsure=worst-case",
        "/make": "token={page}&file=answers",
    }
    requests: list[dict[str, Any]] = [{"method": "GET", "path": path, "headers": entered} for path in looks]
    requests.append({"method": "GET", "path": "/?token={address}", "headers": {"host": _HOST}})
    requests += [{"method": "POST", "path": path, "headers": form, "body": body} for path, body in says.items()]
    sent = {**form, "content-type": "application/json"}
    requests.append({"method": "POST", "path": "/answer", "headers": sent, "body": '{"item": 1, "choice": 0}'})
    return [json.dumps(request).encode() for request in requests]
