"""Requests to the workbench, handed to its application as the server would hand them on."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlencode

import numpy as np

from rarevote.audit import Audit
from rarevote.audit.journal import writing
from rarevote.errors import InputError
from rarevote.io.read.answers import read_review_list
from rarevote.io.write.columns import write_columns
from rarevote.workbench.app import build_app
from rarevote.workbench.audits import AuditSession
from rarevote.workbench.guard import Guard
from rarevote.workbench.lists import ListSession
from rarevote.workbench.media import Media

_HOST = "127.0.0.1:8123"
# What stands for the secrets of a run.
_ADDRESS, _PAGE, _COOKIE = "ADDRESS-TOKEN", "PAGE-TOKEN", "COOKIE"
_TRUSTED = {"host": _HOST, "cookie": f"rarevote-8123={_COOKIE}", "origin": f"http://{_HOST}"}
_FORM = {"content-type": "application/x-www-form-urlencoded"}
# After so many requests a session is begun again: what was answered would fill the disk.
_REQUESTS_PER_SESSION = 200


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
        # In a thread of its own: a browser that tests drive keeps a loop running in theirs.
        self._thread = ThreadPoolExecutor(1)

    def send(self, path: Path) -> None:
        """Send the request in a file; one that is refused raises an error of ours.

        Raises:
            InputError: the answer is that something is wrong with the request.
        """
        if self._sent % _REQUESTS_PER_SESSION == 0:
            self._begin()
        app, secrets = self._apps[self._sent % len(self._apps)]
        self._sent += 1
        text = path.read_bytes().decode("utf-8", "surrogateescape")
        try:
            request = json.loads(text)
        except (ValueError, RecursionError):
            request = {"path": text, "body": text}
        answering = _answered(app, *_as_sent(request, secrets))
        status, headers = self._thread.submit(self._loop.run_until_complete, answering).result()
        assert {b"content-security-policy", b"x-content-type-options"} <= headers, (status, headers)
        assert status != 500, status
        if status >= 400:
            raise InputError(f"status {status}")

    def close(self) -> None:
        """End the sessions."""
        self._open.close()
        self._thread.shutdown()
        self._loop.close()

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
        sessions = [
            AuditSession(plan, media=Media(), journal=self._open.enter_context(writing(plan)), who="anna"),
            ListSession(
                listed,
                read_review_list(listed),
                out=self._folder / "answers.csv",
                media=Media(),
                journal=self._open.enter_context(writing(listed)),
            ),
        ]
        self._apps = []
        for session in sessions:
            guard = Guard()
            secrets = {_ADDRESS: guard.address_token, _PAGE: guard.page_token, _COOKIE: guard._cookie}
            self._apps.append((build_app(session, guard), secrets))


def _as_sent(request: Any, secrets: dict[str, str]) -> tuple[str, bytes, list[tuple[bytes, bytes]], list[bytes]]:
    """Method, target, headers and body as a server lets them through: nothing but printable letters in the first."""
    record = request if isinstance(request, dict) else {"body": request}
    # Every second request is one that the guard lets through, whatever else is wrong with it.
    trusted = _TRUSTED if zlib.crc32(repr(record).encode("utf-8", "replace")) % 2 else {}
    method = _line(record.get("method", "GET")).decode("latin-1").split(" ")[0] or "GET"
    target = bytes(letter for letter in _line(record.get("path", "/")) if 0x21 <= letter <= 0x7E)
    given = record.get("headers", {})
    pairs = {**(given if isinstance(given, dict) else {str(given): given}), **trusted}.items()
    headers = [(_line(name).lower().strip() or b"x", _line(value).strip()) for name, value in pairs]
    body = record.get("body", "")
    if isinstance(body, dict):  # a form
        body = urlencode({**body, **({"token": _PAGE} if trusted else {})}, errors="replace")
    chunks = body if isinstance(body, list) else [body]
    sent = [str(chunk).encode("utf-8", "surrogatepass") for chunk in chunks] or [b""]

    def told(text: bytes) -> bytes:
        for name, secret in secrets.items():
            text = text.replace(name.encode(), secret.encode())
        return text

    return method, told(target), [(name, told(value)) for name, value in headers], [told(chunk) for chunk in sent]


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
    form = {**_TRUSTED, **_FORM}
    looks = ["/", "/item/1", "/item/3", "/file/1/0", "/claims", "/end", "/made/answers", "/style.css", "/script.js"]
    says = {
        "/answer": {"token": _PAGE, "item": "1", "choice": "0", "seen": ""},
        "/undo": {"token": _PAGE, "item": "1"},
        "/go-on": {"token": _PAGE, "unsure": "worst-case"},
        "/make": {"token": _PAGE, "file": "answers"},
    }
    requests: list[dict[str, Any]] = [{"method": "GET", "path": path, "headers": _TRUSTED} for path in looks]
    requests.append({"method": "GET", "path": f"/?token={_ADDRESS}", "headers": {"host": _HOST}})
    for host in ("localhost:8123", "127.0.0.1:99999999", "127.0.0.1:x", "127.0.0.1:", "[::1]:8123", "127.0.0.1]"):
        requests.append({"method": "GET", "path": "/", "headers": {**_TRUSTED, "host": host}})
    for number in range(1, 9):
        body = {**says["/answer"], "item": str(number), "choice": str(number % 2)}
        requests.append({"method": "POST", "path": "/answer", "headers": form, "body": body})
    requests += [{"method": "POST", "path": path, "headers": form, "body": body} for path, body in says.items()]
    sent = {**form, "content-type": "application/json"}
    requests.append({"method": "POST", "path": "/answer", "headers": sent, "body": '{"item": 1, "choice": 0}'})
    return [json.dumps(request).encode() for request in requests]
