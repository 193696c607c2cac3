"""Every command that a page quotes from a terminal runs, and prints what the page shows.

A block ``console`` is run as it is, in a folder with the files that its page takes for granted (``MADE_FOR``). A block
``text`` with commands quotes a run of the page's own bash blocks. What cannot run here is in ``LEFT_OUT``, with the
reason.
"""

from __future__ import annotations

import csv
import json
import re
import shlex
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from types import SimpleNamespace
from typing import Any

import pytest

from rarevote import example_files, simulate_crowd
from rarevote.audit import opening
from tests.command import rarevote, run_command
from tests.docs.shell import Call, calls_in, in_shell
from tests.docs.test_docs import PAGES, REPOSITORY, blocks, by_name
from tests.io.live.conftest import SKILLS, Site, served_site
from tests.workbench.processes import Process

LEFT_OUT = {
    "pip install": "fetches packages: make wheel-check installs the package",
    "make ": "sets up an environment of its own: .ci/run calls make test, and the demo is run by test_docs.py",
    "ssh ": "needs a second machine",
}
# What each example printed is written by code: tests/docs/test_blocks.py compares it.
GENERATED = {"errors.md"}


class Block:
    """The commands of a block, each with what is shown below it."""

    def __init__(self, code: str) -> None:
        self.shown: dict[str, str] = {}
        for prompted in re.split(r"^\$ ", code, flags=re.MULTILINE)[1:]:
            lines = prompted.split("\n")
            length = next(number for number, line in enumerate(lines, 1) if not line.endswith("\\"))
            self.shown["\n".join(lines[:length])] = "\n".join(lines[length:])
        if not self.shown:  # without a prompt every line is a command
            self.shown = dict.fromkeys(filter(None, code.splitlines()), "")

    @property
    def commands(self) -> list[str]:
        return [one for one in self.shown if not one.startswith(tuple(LEFT_OUT))]

    def compare(self, calls: list[Call]) -> None:
        """Whether ``calls`` have these commands in their order, and printed what is shown."""
        left = iter(calls)
        for command, shown in self.shown.items():
            if command not in self.commands or "rarevote " not in command:
                continue
            words = shlex.split(command.replace("\\\n", ""), comments=True)
            wanted = words[words.index("rarevote") + 1 :]
            printed = next((f"{call.stderr}\n{call.stdout}" for call in left if call.words == wanted), None)
            assert printed is not None, f"did not run: {command}"
            if shown.strip():
                assert re.fullmatch(_pattern(shown), _plain(printed)), f"{command}\n{printed}"


def _plain(text: str) -> str:
    """Without line ends, and without what is different each time: the hour, the port."""
    text = re.sub(r"\b\d\d:\d\d:\d\d\b", "HH:MM:SS", text)
    text = re.sub(r"http://127\.0\.0\.1:\d+", "http://127.0.0.1:PORT", text)
    return " ".join(text.split())


def _pattern(shown: str) -> str:
    """What is printed; ``...`` stands for anything."""
    return ".*".join(re.escape(part.strip()).join((r"\s*", r"\s*")) for part in _plain(shown).split("..."))


# --------------------------------------------------------------------------------------------------------------------
# files that pages take for granted


def rails(folder: Path) -> None:
    """Rails of the example, a fifth of them defects: votes with a picture and a note of each, and the truth."""
    (folder / "photos").mkdir()
    known = _rows(example_files().truth)
    truth = [row for row in known if row[1] == "defect"][:60] + [row for row in known if row[1] == "sound"][:240]
    _write(folder / "truth.csv", ("task", "label"), truth)
    for task, _ in truth:
        (folder / "photos" / task).write_bytes(b"\xff\xd8\xff\xd9")
    chosen = dict(truth)
    rows = [(*row, row[0], f"*{row[0]}*") for row in _rows(example_files().labels) if row[0] in chosen]
    _write(folder / "labels.csv", ("task", "worker", "label", "image", "note"), rows)


def reviewed(folder: Path) -> None:
    """Rails, some of which an expert has reviewed."""
    rails(folder)
    _write(folder / "reviewed.csv", ("task", "label"), _rows(folder / "truth.csv")[:20])


def whole_example(folder: Path) -> None:
    (folder / "labels.csv").write_bytes(example_files().labels.read_bytes())


def started_audit(folder: Path) -> None:
    """Rails, an audit of them and a review list."""
    rails(folder)
    _run(folder, "aggregate labels.csv --max-review 20 --review-out review.csv --out result.csv")
    instructions = next(code for language, code in blocks(HOWTO / "workbench.md") if language == "toml")
    (folder / "audit.toml").write_text(instructions, encoding="utf-8")
    _run(folder, "audit start labels.csv --find defect=0.9 --show image,note --plan audit.json --review-out round.csv")


def rankings(folder: Path) -> None:
    """Tables with a score, an export of ASReview with a ranking, and a project of Label Studio."""
    rails(folder)
    crowd = simulate_crowd(1500, imbalance=2, random_state=0)
    votes = [(task, worker, ("sound", "defect")[label]) for task, worker, label in zip(*crowd.arrays, strict=True)]
    _write(folder / "votes.csv", ("task", "worker", "label"), votes)
    _run(folder, "aggregate votes.csv --out result.csv")
    scores = [(f"paper-{n}", f"On bees, part {n}", f"{0.98 if n < 300 else 0.02}") for n in range(2000)]
    _write(folder / "scores.csv", ("task", "title", "p"), scores)
    screened = [(n, f"On ants, part {n}", int(n < 60) if n < 400 else "", n + 1) for n in range(2000)]
    _write(folder / "export.csv", ("record_id", "title", "asreview_label", "asreview_ranking"), screened)
    given: dict[str, list[tuple[str, str]]] = {}
    for task, worker, label, *_ in _rows(folder / "labels.csv"):
        given.setdefault(task, []).append((worker, label))
    exported = [_task(number, {"image": task}, cast) for number, (task, cast) in enumerate(given.items(), 1)]
    (folder / "project-3.json").write_text(json.dumps(exported), encoding="utf-8")


def page_blocks(page: str, *languages: str, having: str = "") -> Callable[[Path], None]:
    """Run the page's own blocks of these languages, those with the text ``having``."""

    def make(folder: Path) -> None:
        namespace: dict[str, object] = {}
        for number, (language, code) in enumerate(blocks(HOWTO / page)):
            if language in languages and having in code:
                if language == "python":
                    exec(compile(code, page, "exec"), namespace)
                else:
                    (scratch := folder / f".calls-{number}").mkdir()
                    assert in_shell(code, scratch).returncode == 0

    return make


def nothing(folder: Path) -> None:
    """All that the page needs is made by its commands."""


HOWTO = REPOSITORY / "docs" / "howto"
MADE_FOR: dict[str, Callable[[Path], None]] = {
    "docs/howto/audit.md": rankings,
    "docs/howto/features.md": page_blocks("features.md", "python"),
    "docs/howto/language-models-as-judges.md": page_blocks("language-models-as-judges.md", "python", having="csv"),
    "docs/howto/live.md": nothing,
    "docs/howto/platforms.md": page_blocks("platforms.md", "bash", having="> project.json"),
    "docs/howto/reading-the-page.md": rails,
    "docs/howto/recall-targets.md": whole_example,
    "docs/howto/review-loop.md": reviewed,
    "docs/howto/workbench.md": started_audit,
}


def _run(folder: Path, words: str) -> None:
    rarevote(*words.split(), folder=folder)


def _rows(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))[1:]


def _write(path: Path, head: tuple[str, ...], rows: list[Any]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([head, *rows])


def _task(number: int, data: dict[str, str], votes: list[tuple[str, str]]) -> dict[str, Any]:
    """A task of a Label Studio export."""
    annotations = [
        {"completed_by": {"email": f"{worker}@example.org"}, "was_cancelled": False, "result": [
            {"from_name": "damage", "to_name": "image", "type": "choices", "value": {"choices": [label]}}]}
        for worker, label in votes
    ]  # fmt: skip
    return {"id": number, "data": data, "predictions": [], "annotations": annotations}


# --------------------------------------------------------------------------------------------------------------------
# people and servers


class People:
    """Those who answer, press Ctrl-C and look at the workbench, while a block runs."""

    def __init__(self, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
        self.site = site
        self.pauses = 0
        # Watching waits for people: here they answer at once.
        waiting = SimpleNamespace(sleep=self._pause, strftime=lambda form: "14:05:10")
        monkeypatch.setattr("rarevote.cli.watch.time", waiting)

    def run(self, words: list[str], *, folder: Path, **given: Any) -> CompletedProcess[str]:
        """Answer a call of ``rarevote``."""
        if "review" in words[:2] and not {"--offline", "--answers"} & set(words):
            return self._workbench(words)
        if "--answers" in words and not (answers := folder / words[words.index("--answers") + 1]).exists():
            self._export_answers(folder / "tasks.json", answers)
        self.pauses = 0
        done = run_command(words, folder=folder, **given)
        is_stopped = words[0] == "watch" and done.returncode == 130
        said = done.stderr.replace(self.site.url, "https://labels.example.org")
        said = said.replace("rarevote: error: interrupted\n", "") if is_stopped else said
        return CompletedProcess(words, 0 if is_stopped else done.returncode, done.stdout, said)

    def _pause(self, seconds: float) -> None:
        """The expert answers what is open in a project for reviews; Ctrl-C if nothing is, or no audit needs more."""
        open_tasks = [task for number in (8, 9) for task in self.site.fake.of(number) if not task["annotations"]]
        self.pauses += 1
        if not open_tasks or (self.pauses > 1 and not self.site.fake.of(9)):
            raise KeyboardInterrupt
        for task in open_tasks:
            self.site.fake.annotate(task["id"], "zoe@example.org", self.site.truth(task["data"]["text"]))

    def _workbench(self, words: list[str]) -> CompletedProcess[str]:
        """Open it without a browser, answer an item, and press Ctrl-C."""
        if "--port" in words:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                words = [str(free.getsockname()[1]) if word == "8080" else word for word in words]
        with Process(*words) as opened:
            shown = opened.item()
            assert shown is not None
            sent = opened.client.post("/answer", data={**shown[0], "choice": "0"})
            assert sent.status_code == 303
            opened.process.send_signal(signal.SIGINT)
            code, said = opened.end()
        return CompletedProcess(words, code, opened.out, said)

    @staticmethod
    def _export_answers(asked: Path, answers: Path) -> None:
        """The tasks that were imported into a project for reviews, as its export has them."""
        truth = {task: label for task, label, *_ in _rows(asked.with_name("truth.csv"))}
        tasks = json.loads(asked.read_text(encoding="utf-8"))
        numbered = [
            _task(number, one["data"], [("zoe", truth[one["data"]["image"]])]) for number, one in enumerate(tasks, 1)
        ]
        answers.write_text(json.dumps(numbered), encoding="utf-8")


@pytest.fixture
def people(monkeypatch: pytest.MonkeyPatch) -> Iterator[People]:
    """With a server that has the projects of the page: 7 with votes, 8 and 9 for reviews."""
    monkeypatch.setattr(opening, "secrets", SimpleNamespace(randbits=lambda bits: 0))
    with served_site(monkeypatch, n_empty=6, n_tasks=300, skills={**SKILLS, "dee": 0.4}) as site:
        for _ in range(2):
            site.fake.project()
        yield People(site, monkeypatch)


def of(page: Path, language: str) -> list[Block]:
    return [Block(code) for kind, code in blocks(page) if kind == language and (kind != "text" or code[:2] == "$ ")]


CONSOLES = [
    pytest.param(page, number, id=f"{by_name(page)}-{number}")
    for page in PAGES
    for number, block in enumerate(of(page, "console"), 1)
    if block.commands
]


@pytest.mark.parametrize(("page", "number"), CONSOLES)
def test_a_console_runs(
    page: Path, number: int, people: People, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    block = of(page, "console")[number - 1]
    folder, calls = tmp_path / "page", tmp_path / "calls"
    folder.mkdir()
    calls.mkdir()
    monkeypatch.chdir(folder)
    MADE_FOR[by_name(page)](folder)
    for plan in re.findall(r"audit start .*?--plan (\S+)", " ".join(block.commands), re.DOTALL):
        (folder / plan).unlink(missing_ok=True)  # a plan that the block starts is not there yet
    done = in_shell("\n".join(block.commands), calls, people.run)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    block.compare(calls_in(calls))


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name not in GENERATED and of(page, "text")], ids=by_name
)
def test_a_quoted_run_is_that_of_the_commands_above(
    page: Path, people: People, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (block,) = of(page, "text")
    (tmp_path / "calls").mkdir()
    monkeypatch.chdir(tmp_path)
    code = "\n".join(code for language, code in blocks(page) if language == "bash")
    done = in_shell(code, tmp_path / "calls", people.run)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    block.compare(calls_in(tmp_path / "calls"))


@pytest.mark.parametrize("command", LEFT_OUT)
def test_what_is_left_out_is_on_a_page(command: str) -> None:
    assert any(one.startswith(command) for page in PAGES for block in of(page, "console") for one in block.shown)


@pytest.mark.parametrize(
    ("shown", "is_same"), [("wrote a", False), ("wrote a\n...", True), ("... b\nc\n", True), ("wrote x ... c", False)]
)
def test_what_is_shown_is_compared(shown: str, is_same: bool) -> None:
    block = Block(f"$ rarevote x --out a   # why\n{shown}\n")
    calls = [Call(["y"], "other", ""), Call(["x", "--out", "a"], "  c\n", "wrote a\nand b\n")]
    if is_same:
        block.compare(calls)
        return
    with pytest.raises(AssertionError, match="rarevote x"):
        block.compare(calls)
