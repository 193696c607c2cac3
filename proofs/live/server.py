"""A Label Studio server of our own: installed, started on 127.0.0.1 with a fresh folder, stopped by its process id."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

PASSWORD = "correct-horse-9"
CONTROL = {"from_name": "quality", "to_name": "text", "type": "choices"}
INTERFACE = (
    '<View><Text name="text" value="$text"/><Choices name="quality" toName="text">'
    '<Choice value="sound"/><Choice value="defect"/></Choices></View>'
)
# Nothing is sent anywhere, and no newer version is asked for.
OFF = {
    "LABEL_STUDIO_COLLECT_ANALYTICS": "false",
    "LABEL_STUDIO_LATEST_VERSION_CHECK": "false",
    "LABEL_STUDIO_FEATURE_FLAGS_OFFLINE": "true",
    "SENTRY_DSN": "",
    "FRONTEND_SENTRY_DSN": "",
    "DJANGO_DB": "sqlite",
}


def install(environment: Path) -> None:
    """Label Studio from the package index, in an environment of its own; one that is there is used."""
    if (environment / "bin" / "label-studio").exists():
        return
    venv.create(environment, with_pip=True)
    subprocess.run([environment / "bin" / "python", "-m", "pip", "install", "--quiet", "label-studio"], check=True)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def listens_on(port: int) -> set[str]:
    """The addresses that a port of this machine is open at, as Linux lists them."""
    found = set()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        place, state = line.split()[1], line.split()[3]
        address, _, number = place.partition(":")
        if state == "0A" and int(number, 16) == port:
            found.add(socket.inet_ntoa(bytes.fromhex(address)[::-1]))
    return found


@contextmanager
def running(environment: Path, *, patience: float = 600.0) -> Iterator[str]:
    """The address of a new server, which is gone afterwards, with all that it kept."""
    with tempfile.TemporaryDirectory(prefix="label-studio-") as name:
        folder, port = Path(name), free_port()
        url = f"http://127.0.0.1:{port}"
        words = [environment / "bin" / "label-studio", "start", "--internal-host", "127.0.0.1", "--port", str(port),
                 "--data-dir", folder, "--no-browser"]  # fmt: skip
        variables = {**os.environ, **OFF, "LABEL_STUDIO_BASE_DATA_DIR": name}
        variables.pop("LABEL_STUDIO_API_KEY", None)
        with (folder / "server.log").open("wb") as log:
            process = subprocess.Popen(list(map(str, words)), env=variables, cwd=folder, stdout=log, stderr=log)
        try:
            _wait(url, process, folder / "server.log", patience)
            yield url
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait(url: str, process: subprocess.Popen[bytes], log: Path, patience: float) -> None:
    until = time.monotonic() + patience
    while time.monotonic() < until:
        if process.poll() is not None:
            sys.exit(f"Label Studio ended:\n{log.read_text(errors='replace')[-2000:]}")
        try:
            if httpx.get(f"{url}/api/version", timeout=5).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(1)
    sys.exit("Label Studio did not start in time")


@dataclass
class Person:
    """Somebody who has signed up."""

    email: str
    token: str
    browser: httpx.Client

    def annotate(self, task: int, label: str) -> None:
        """Submit an annotation."""
        result = [{**CONTROL, "value": {"choices": [label]}}]
        self.post(f"/api/tasks/{task}/annotations/", {"result": result, "lead_time": 2.5})

    def post(self, path: str, body: Any) -> Any:
        """What the server answers to a request with the person's session."""
        answer = self.browser.post(path, json=body)
        answer.raise_for_status()
        return answer.json()

    def project(self, title: str, tasks: Sequence[Mapping[str, Any]] = (), interface: str = INTERFACE) -> int:
        """A new project with tasks; returns its number."""
        number = int(self.post("/api/projects/", {"title": title, "label_config": interface})["id"])
        if tasks:
            self.post(f"/api/projects/{number}/import", list(tasks))
        return number

    def tasks(self, project: int, **query: Any) -> list[dict[str, Any]]:
        """The tasks of a project with everything, as its own pages ask for them."""
        params: dict[str, str | int] = {
            "project": project,
            "page_size": 10_000,
            "fields": "all",
            "query": json.dumps(query),
        }
        answer = self.browser.get("/api/tasks/", params=params)
        answer.raise_for_status()
        return list(answer.json()["tasks"])


def sign_up(url: str, email: str) -> Person:
    """Sign up as a person does, in the form, and make a personal access token."""
    browser = httpx.Client(base_url=url, timeout=300)
    page = browser.get("/user/signup/").text
    mark = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
    assert mark is not None, page[:500]
    form = {"csrfmiddlewaretoken": mark[1], "email": email, "password": PASSWORD, "allow_newsletters": "false"}
    done = browser.post("/user/signup/", data=form, headers={"Referer": f"{url}/user/signup/"})
    assert done.status_code == 302, done.text[:500]
    browser.headers.update({"X-CSRFToken": str(browser.cookies.get("csrftoken")), "Referer": url})
    made = browser.post("/api/token/")
    made.raise_for_status()
    return Person(email, str(made.json()["token"]), browser)
