"""A visitor of the workbench: starts the command, reads its pages and answers some items as a browser would."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx


def visit(words: list[str], n_answers: int, folder: Path) -> dict[str, str | bytes]:
    """What ``rarevote words`` serves before each of some answers and after the last, and what it says.

    Every item gets the first choice that its page offers.
    """
    command = [sys.executable, "-m", "rarevote", *words, "--no-browser"]
    with tempfile.NamedTemporaryFile("w") as said:
        served = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=said, text=True)
        while not (found := re.search(r"http://\S+", _read(said.name))) and served.poll() is None:
            time.sleep(0.05)
        pages = _pages(found[0], n_answers) if found else {}
        served.send_signal(signal.SIGINT)
        out, _ = served.communicate()
        # What duckdb's bindings say of themselves at the end of a process has addresses in it.
        spoken = _read(said.name).partition("nanobind: ")[0]
    return {**pages, "stdout": out, "stderr": spoken, "exit": f"exit code {served.returncode}\n"}


def _read(name: str) -> str:
    return Path(name).read_text(encoding="utf-8")


def _pages(address: str, n_answers: int) -> dict[str, str | bytes]:
    origin = address.split("/?")[0]
    pages: dict[str, str | bytes] = {}
    with httpx.Client(timeout=60, base_url=origin, headers={"origin": origin}) as client:
        client.get(address)
        for number in range(n_answers + 1):
            page = client.get("/").text
            pages[f"page {number}"] = page
            if number < n_answers and 'action="/answer"' in page:
                client.post("/answer", data=_first_choice(page))
    return pages


def _first_choice(page: str) -> dict[str, str]:
    form = page.split('action="/answer"')[1].split("</form>")[0]
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', form))
    choice = re.search(r'name="choice" value="([^"]*)"', form)
    return {**fields, "choice": choice[1] if choice else ""}
