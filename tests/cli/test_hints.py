"""Every next step that a command prints is a whole command, and works as it is printed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.command import rarevote
from tests.io.platforms.exports import label_studio

# A command is the rest of its line; a sentence may end behind it.
COMMAND = re.compile(r"rarevote (?:aggregate|report|check|annotators|explain|plan|predict|score|compare|convert|review|"
                     r"audit|simulate|datasets|study|methods|push|pull|watch)\b[^\n]*")  # fmt: skip


def hints(text: str) -> list[list[str]]:
    found = []
    for line in text.splitlines():
        if line.startswith(("Usage", "rarevote: error")) or "--help" in line:
            continue
        found += [shlex.split(one.rstrip(" .").strip("`"))[1:] for one in COMMAND.findall(line)]
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rarevote("simulate", "--tasks", "300", "--workers", "20", "--imbalance", "6", "--seed", "4", "--out", "crowd",
             folder=tmp_path)  # fmt: skip
    table = (tmp_path / "crowd" / "labels.csv").read_text()
    (tmp_path / "crowd").joinpath("my votes.csv").write_text(table.replace("task,worker", "picture,who", 1))
    return tmp_path


def run_hints(folder: Path, text: str) -> list[list[str]]:
    """Run every hint but those that open a browser and wait for a person."""
    found = hints(text)
    for words in found:
        if words[:2] == ["audit", "review"] or words[0] in ("review", "watch"):
            rarevote(*words, "--offline", "page.html", folder=folder)
        else:
            rarevote(*words, folder=folder)
    return found


def test_an_audit_can_be_followed_by_its_hints_alone(folder: Path) -> None:
    votes = "crowd/my votes.csv"
    checked = rarevote("check", votes, "--columns", "task=picture,worker=who", "--set", "n_iter=200", folder=folder)
    (start,) = hints(checked.stdout)
    assert start[:3] == ["audit", "start", votes]
    assert "task=picture,worker=who" in start
    said = rarevote(*start, "--confidence", "0.8", "--flag-cost", "5", folder=folder)
    found = hints(said.stderr)
    assert [words[:2] for words in found] == [["audit", "review"], ["audit", "continue"]]
    truth = dict(line.split(",")[:2] for line in (folder / "crowd" / "truth.csv").read_text().splitlines()[1:])
    for _ in range(40):
        page, then = found
        rarevote(*page, "--offline", "page.html", folder=folder)
        filled = folder / then[then.index("--answers") + 1]
        tasks = [line.split(",")[0] for line in filled.read_text().splitlines()[1:]]
        filled.write_text("task,label\n" + "".join(f"{task},{truth[task]}\n" for task in tasks))
        said = rarevote(*then, folder=folder)
        found = hints(said.stderr)
        if len(found) == 1:
            break
    (finish,) = found
    assert finish[:2] == ["audit", "finish"]
    ended = rarevote(*finish, folder=folder)
    verify, repeat = hints(ended.stderr)
    assert verify[:2] == ["audit", "verify"]
    rarevote(*verify, folder=folder)
    again = rarevote(*repeat, folder=folder)
    ((*_, answers),) = hints(again.stderr)
    tasks = [line.split(",")[0] for line in (folder / answers).read_text().splitlines()[1:]]
    (folder / answers).write_text("task,label\n" + "".join(f"{task},{truth[task]}\n" for task in tasks))
    rarevote(*hints(again.stderr)[0], folder=folder)


@pytest.mark.parametrize(
    "words",
    [
        ["aggregate", "crowd/labels.csv", "--out", "result.csv"],
        ["aggregate", "crowd/labels.csv", "--out", "result.csv", "--model-out", "model.json", "--min-recall", "1=0.9"],
        ["aggregate", "crowd/labels.csv", "--out", "result.csv", "--review-out", "review.csv", "--max-review", "10"],
        ["report", "crowd/labels.csv", "--out", "page.html"],
        ["annotators", "crowd/labels.csv"],
        ["compare", "crowd/labels.csv"],
        ["plan", "crowd/labels.csv", "--budget", "20", "--out", "next.csv"],
        ["explain", "crowd/labels.csv", "--task", "task-000000000000"],
        ["simulate", "--tasks", "50", "--out", "other"],
        ["score", "result.csv", "--truth", "crowd/truth.csv"],
        ["convert", "x.json", "--out", "rows.csv"],
        ["check", "x.json"],
        ["datasets"],
        ["demo"],
    ],
)
def test_hints_of_a_verb(folder: Path, words: list[str]) -> None:
    if words[0] == "score":
        rarevote("aggregate", "crowd/labels.csv", "--out", "result.csv", folder=folder)
    (folder / "labels.csv").write_text((folder / "crowd" / "labels.csv").read_text())  # "your own data"
    label_studio(folder, [f"item {i}" for i in range(30)], [])
    done = rarevote(*words, folder=folder)
    run_hints(folder, done.stdout + done.stderr)
