"""The command in a process of its own, spoken to as a browser would."""

from __future__ import annotations

import contextlib
import random
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx


class Process:
    """``rarevote words --no-browser``, and a client that has opened the address it printed."""

    def __init__(self, *words: str | Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "rarevote", *map(str, words), "--no-browser"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stderr is not None
        self.said = self.process.stderr.readline()
        found = re.search(r"http://\S+", self.said)
        self.address = found[0] if found else ""
        self.client = httpx.Client(timeout=60)
        self.out, self.ended = "", False
        if found:
            origin = self.address.split("/?")[0]
            self.client.base_url = httpx.URL(origin)
            self.client.headers["origin"] = origin
            assert self.client.get(self.address).status_code == 200

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.end()

    def end(self) -> tuple[int, str]:
        """Wait for the end: the exit code and all that was said."""
        if not self.ended:
            self.client.close()
            assert self.process.stdout is not None
            assert self.process.stderr is not None
            # Not communicate(), which loses what was buffered when the first line was read.
            self.said += self.process.stderr.read()
            self.out = self.process.stdout.read()
            self.process.wait()
            self.process.stderr.close()
            self.process.stdout.close()
            self.ended = True
        return self.process.returncode, self.said

    def item(self) -> tuple[dict[str, str], str] | None:
        """The fields of the item that is shown and its name; None if none is."""
        page = self.client.get("/").text
        if 'action="/answer"' not in page:
            return None
        form = page.split('action="/answer"')[1].split("</form>")[0]
        task = re.search(r'class="task">.*?<b>(.*?)</b>', page)
        assert task
        return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', form)), task[1]

    def answer(self, right: Mapping[Any, int] | list[int]) -> tuple[int, int] | None:
        """Answer the item that is shown; its task and choice once the server has said that they are kept."""
        shown = self.item()
        if shown is None:
            return None
        fields, name = shown
        task = int(name)
        sent = self.client.post("/answer", data={**fields, "choice": str(right[task])})
        assert sent.status_code == 303, sent.text
        return task, right[task]

    def resume(self) -> bool:
        """Ask for the next round; False if there is none."""
        page = self.client.get("/").text
        if 'action="/go-on"' not in page:
            return False
        token = re.search(r'name="token" value="([^"]*)"', page)
        assert token
        assert self.client.post("/go-on", data={"token": token[1]}).status_code == 303
        return True


def answers_until_killed(
    path: Path, right: list[int], kept: dict[int, int], dice: random.Random, *, most: int
) -> tuple[int, bool]:
    """Start the workbench, answer, and kill it (SIGKILL) at a random moment of a random answer.

    Args:
        path: the plan.
        right: the right choice of every task.
        kept: gets what the server said it has kept; must not be asked again.
        dice: the random moment.
        most: the kill comes during one of so many answers.

    Returns:
        Answers that were kept in this run, and whether the audit was over before.
    """
    with Process("audit", "review", path) as one:
        n = 0
        for n in range(dice.randint(0, most - 1)):
            while (said := one.answer(right)) is None:
                if not one.resume():
                    return n, True
            assert said[0] not in kept, "asked again"
            kept[said[0]] = said[1]
        killer = threading.Timer(dice.uniform(0.0, 0.03), one.process.send_signal, [signal.SIGKILL])
        killer.start()
        with contextlib.suppress(httpx.TransportError):
            while True:
                said = one.answer(right)
                if said is None:
                    if not one.resume():
                        break
                    continue
                assert said[0] not in kept, "asked again"
                kept[said[0]] = said[1]
                n += 1
        killer.join()
        return n, False
