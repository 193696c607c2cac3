"""A small Label Studio: its answers are recorded real ones (proofs/live/record.py) with our tasks in them.

It listens on 127.0.0.1. Every request is checked by a schema; what does not fit is kept in ``faults``, which the
fixture asserts to be empty.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jsonschema  # type: ignore[import-untyped]

RECORDED: dict[str, Any] = json.loads((Path(__file__).parent / "recorded.json").read_text(encoding="utf-8"))
PERSONAL = "eyJhbGciOiJIUzI1NiJ9.cGVyc29uYWw.c2VjcmV0LXRva2Vu"  # the head of a JWT, and a body that no server signed
LEGACY = "0123456789abcdef0123456789abcdef01234567"

_TEXT, _NUMBER = {"type": "string"}, {"type": "integer"}
_RESULT = {
    "type": "object",
    "required": ["id", "from_name", "to_name", "type", "value"],
    "properties": {"id": _TEXT, "from_name": _TEXT, "to_name": _TEXT, "type": _TEXT, "value": {"type": "object"}},
    "additionalProperties": False,
}
_FILTER = {
    "type": "object",
    "required": ["filter", "operator", "type", "value"],
    "properties": {
        "filter": {"enum": ["filter:tasks:id", "filter:tasks:updated_at"]},
        "operator": {"const": "greater"},
        "type": {"enum": ["Number", "Datetime"]},
    },
}
SCHEMAS: dict[str, Any] = {
    "refresh": {"type": "object", "required": ["refresh"], "properties": {"refresh": _TEXT}, "maxProperties": 1},
    "predictions": {
        "type": "array",
        "minItems": 1,
        "maxItems": 500,
        "items": {
            "type": "object",
            "required": ["task", "result", "score", "model_version"],
            "properties": {
                "task": _NUMBER,
                "result": {"type": "array", "maxItems": 1, "items": _RESULT},
                "score": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
                "model_version": {"const": "rarevote"},
            },
            "additionalProperties": False,
        },
    },
    "delete": {"const": {"model_version": "rarevote"}},
    "patch": {
        "type": "object",
        "required": ["data", "meta"],
        "properties": {"data": {"type": "object", "required": ["text"]}, "meta": {"type": "object"}},
        "additionalProperties": False,
    },
    "import": {
        "type": "array",
        "minItems": 1,
        "maxItems": 500,
        "items": {
            "type": "object",
            "required": ["data"],
            "properties": {"data": {"type": "object", "required": ["task"]}},
            "additionalProperties": False,
        },
    },
    "query": {
        "type": "object",
        "required": ["ordering", "filters"],
        "properties": {
            "ordering": {"const": ["tasks:id"]},
            "filters": {
                "type": "object",
                "required": ["conjunction", "items"],
                "properties": {"conjunction": {"const": "and"}, "items": {"type": "array", "items": _FILTER}},
            },
        },
    },
}

Answer = tuple[int, Any]
ECHO = "echo"  # a body that says what the header of the request was


@dataclass
class Trouble:
    """What goes wrong with a request: an answer in place of the right one, and whether it was followed all the same."""

    method: str
    path: str
    status: int | None  # None: the connection is cut
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    followed: bool = False
    times: int = 1


class FakeLabelStudio:
    """The state of the server, and what it answers."""

    def __init__(self) -> None:
        self.projects: dict[int, dict[str, Any]] = {}
        self.tasks: dict[int, dict[str, Any]] = {}
        self.people = {1: "lead@example.org"}
        self.keys: set[str] = set()
        self.allows_legacy = False
        self.requests: list[tuple[str, str]] = []
        self.faults: list[str] = []
        self.troubles: list[Trouble] = []
        self._clock = datetime(2026, 11, 18, tzinfo=UTC)
        self._last = 0

    # ----------------------------------------------------------------------------------------------------------------
    # what people do

    def project(self, texts: list[str] | None = None, **settings: Any) -> int:
        number = len(self.projects) + 1
        self.projects[number] = {**deepcopy(RECORDED["project"]["body"]), "id": number, **settings}
        for text in texts or []:
            self.add(number, {"text": text})
        return number

    def add(self, project: int, data: dict[str, Any]) -> int:
        task = deepcopy(RECORDED["tasks"]["body"]["tasks"][0])
        number = self._next()
        stamp = self._now()
        task |= {"id": number, "project": project, "data": data, "meta": {}, "annotations": [], "predictions": [],
                 "created_at": stamp, "updated_at": stamp}  # fmt: skip
        self.tasks[number] = task
        return number

    def annotate(self, task: int, email: str, label: str, *, cancelled: bool = False) -> int:
        who = next((number for number, one in self.people.items() if one == email), None)
        if who is None:
            who = len(self.people) + 1
            self.people[who] = email
        annotation = deepcopy(RECORDED["tasks"]["body"]["tasks"][0]["annotations"][0])
        annotation |= {"id": self._next(), "completed_by": who, "was_cancelled": cancelled, "task": task}
        annotation["result"][0]["value"]["choices"] = [label]
        self.tasks[task]["annotations"].append(annotation)
        self.tasks[task]["updated_at"] = self._now()
        return int(annotation["id"])

    def of(self, project: int) -> list[dict[str, Any]]:
        return [task for _, task in sorted(self.tasks.items()) if task["project"] == project]

    def predictions(self, project: int) -> list[dict[str, Any]]:
        return [one for task in self.of(project) for one in task["predictions"]]

    # ----------------------------------------------------------------------------------------------------------------
    # answers

    def answer(
        self, method: str, address: str, headers: dict[str, str], content: bytes
    ) -> tuple[Answer, Trouble | None]:
        """Status and body, and the trouble that comes in their place."""
        parts = urlsplit(address)
        self.requests.append((method, parts.path))
        for trouble in self.troubles:
            if trouble.times and trouble.method == method and trouble.path == parts.path:
                trouble.times -= 1
                if trouble.followed:
                    self._follow(method, parts.path, parse_qs(parts.query), headers, content)
                body = {"detail": f"what is {headers.get('authorization')}?"} if trouble.body == ECHO else trouble.body
                return (trouble.status or 0, body), trouble
        return self._follow(method, parts.path, parse_qs(parts.query), headers, content), None

    def _follow(
        self, method: str, path: str, query: dict[str, list[str]], headers: dict[str, str], content: bytes
    ) -> Answer:
        body = json.loads(content) if content else None
        if path == "/api/token/refresh/" and method == "POST":
            return self._refresh(body)
        if (refused := self._refused(headers.get("authorization", ""))) is not None:
            return refused
        words = path.strip("/").split("/")
        routes: dict[tuple[str, str], Callable[[], Answer]] = {
            ("GET", "users"): lambda: (200, self._users()),
            ("GET", "tasks"): lambda: self._tasks(words, query),
            ("PATCH", "tasks"): lambda: self._patch(int(words[2]), body),
            ("GET", "projects"): lambda: self._project(words),
            ("DELETE", "projects"): lambda: self._delete(words, body),
            ("POST", "projects"): lambda: self._import(words, body),
        }
        route = routes.get((method, words[1])) if words[0] == "api" and len(words) > 1 else None
        if route is None or not (path.endswith("/") or "/import" in path):
            self.faults.append(f"{method} {path} is no request that we know")
            return 404, {"detail": "Not found."}
        return route()

    def _refresh(self, body: Any) -> Answer:
        self._check("refresh", body)
        if body["refresh"] != PERSONAL:
            return recorded("token refresh refused")
        key = f"access.key.{len(self.keys) + 1:06d}"
        self.keys.add(key)
        return 200, {"access": key}

    def _refused(self, header: str) -> Answer | None:
        kind, _, text = header.partition(" ")
        if kind == "Bearer" and text in self.keys:
            return None
        if kind == "Token" and text == LEGACY and self.allows_legacy:
            return None
        return recorded("legacy token refused" if kind == "Token" else "no token")

    def _users(self) -> list[Any]:
        form = RECORDED["users"]["body"][0]
        return [{**form, "id": number, "email": email} for number, email in self.people.items()]

    def _tasks(self, words: list[str], query: dict[str, list[str]]) -> Answer:
        if len(words) == 3:
            one = self.tasks.get(int(words[2]))
            return recorded("task not found") if one is None else (200, one)
        given = {name: values[0] for name, values in query.items()}
        if (
            not {"project", "page_size", "fields"} <= given.keys()
            or (given["fields"] == "all") == ("include" in given)
            or int(given["page_size"]) > 100
        ):
            self.faults.append(f"tasks with {given}")
        if int(given["project"]) not in self.projects:
            return recorded("project not found")
        found = self.of(int(given["project"]))
        if "query" in given:
            wanted = json.loads(given["query"])
            self._check("query", wanted)
            if given.get("resolve_uri") != "false":
                self.faults.append("addresses in the data would be resolved")
            for item in wanted["filters"]["items"]:
                column, value = item["filter"].rpartition(":")[2], item["value"]
                found = [task for task in found if task[column] > value]
        page = found[: int(given["page_size"])]
        if given["fields"] != "all":
            few = [name for name in RECORDED["tasks only"]["body"]["tasks"][0] if name in given["include"].split(",")]
            page = [{key: task[key] for key in few} for task in page]
        total = sum(not one["was_cancelled"] for task in found for one in task["annotations"])
        return 200, {"total_annotations": total, "total_predictions": 0, "total": len(found), "tasks": page}

    def _patch(self, number: int, body: Any) -> Answer:
        self._check("patch", body)
        self.tasks[number] |= {**body, "updated_at": self._now()}
        return 200, {**RECORDED["patched"]["body"], **body, "id": number}

    def _project(self, words: list[str]) -> Answer:
        number = int(words[2])
        if number not in self.projects:
            return recorded("project not found")
        if len(words) == 3:
            return 200, self.projects[number]
        counts: dict[str, int] = {}
        for one in self.predictions(number):
            counts[one["model_version"]] = counts.get(one["model_version"], 0) + 1
        return 200, counts

    def _delete(self, words: list[str], body: Any) -> Answer:
        self._check("delete", body)
        deleted = 0
        for task in self.of(int(words[2])):
            kept = [one for one in task["predictions"] if one["model_version"] != body["model_version"]]
            deleted += len(task["predictions"]) - len(kept)
            task["predictions"] = kept
        return 200, {"deleted_predictions": deleted}

    def _import(self, words: list[str], body: Any) -> Answer:
        number = int(words[2])
        if words[3:] == ["import"]:
            self._check("import", body)
            shown = {one["value"] for control in self.projects[number]["parsed_label_config"].values()
                     for one in control["inputs"]}  # fmt: skip
            if any(not shown <= set(record["data"]) for record in body):
                return recorded("import refused")
            for record in body:
                self.add(number, record["data"])
            return 201, {**RECORDED["imported"]["body"], "task_count": len(body)}
        self._check("predictions", body)
        if any(self.tasks.get(one["task"], {}).get("project") != number for one in body):
            return recorded("predictions of no task")
        controls = self.projects[number]["parsed_label_config"]
        fitting = [one for one in body if all(entry["from_name"] in controls for entry in one["result"])]
        for one in fitting:
            self.tasks[one["task"]]["predictions"].append(one)
        return 201, {"created": len(fitting)}

    # ----------------------------------------------------------------------------------------------------------------
    # inside

    def _check(self, name: str, value: Any) -> None:
        try:
            jsonschema.validate(value, SCHEMAS[name])
        except jsonschema.ValidationError as error:
            self.faults.append(f"{name}: {error.message}")

    def _now(self) -> str:
        self._clock += timedelta(minutes=5)
        return self._clock.isoformat().replace("+00:00", "Z")

    def _next(self) -> int:
        self._last += 1
        return self._last


def recorded(name: str) -> Answer:
    """A real answer, as it was."""
    return RECORDED[name]["status"], RECORDED[name]["body"]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet: in two, each answer takes 40 ms
    fake: FakeLabelStudio

    def _answer(self) -> None:
        """Answer whatever is asked."""
        content = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        (status, body), trouble = self.fake.answer(self.command, self.path, headers, content)
        if trouble is not None and trouble.status is None:
            self.close_connection = True
            return
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in (trouble.headers if trouble is not None else {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_PATCH = do_DELETE = _answer  # noqa: N815

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing is said."""


class Served:
    """The fake at an address, until it is closed."""

    def __init__(self, fake: FakeLabelStudio) -> None:
        handler = type("Handler", (_Handler,), {"fake": fake})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
