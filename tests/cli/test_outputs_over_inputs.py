"""No output over an input or another output: every output of every verb against all others, from the command tree.

What is an input and what an output is written down here a second time, by hand: a new option that takes a file fails
until somebody says which it is, and a verb whose command line does not refuse the pair fails for each of them.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import click
import pytest

from rarevote import example_files
from tests.cli.test_cli_help import COMMANDS
from tests.command import rarevote, run_command

READING = {"labels", "items"}
FEATURES = {"features", "features_ids", "pred_probs"}
FIT = {*READING, *FEATURES, "gold", "settings"}

# Verb: its inputs and its outputs, by the name of the parameter.
FILES: dict[str, tuple[set[str], set[str]]] = {
    "aggregate": (
        {*FIT, "truth", "cost"},
        {"out", "sheet_out", "model_out", "back_out", "soft_out", "review_out", "checkpoint"},
    ),
    "convert": ({"export"}, {"out", "gold_out"}),
    "compare": ({*READING, "gold", "truth"}, {"out"}),
    "report": ({*FIT, "truth", "cost", "audit"}, {"out", "review_out", "charts"}),
    "review": ({"listed", "instructions", "answers"}, {"out", "offline"}),
    "annotators": (FIT, {"out"}),
    "check": (FIT, set()),
    "explain": (FIT, set()),
    "plan": ({*FIT, "cost"}, {"out"}),
    "predict": ({*READING, *FEATURES, "model"}, {"out"}),
    "score": ({"truth", "result"}, set()),
    "simulate": (set(), {"out"}),
    "methods": (set(), set()),
    "help": (set(), set()),
    "demo": (set(), {"report"}),
    "audit review": ({"plan"}, {"offline"}),
    "audit start": ({*FIT, "instructions"}, {"plan", "review_out"}),
    "audit continue": ({"plan", "answers"}, {"review_out"}),
    "audit status": ({"plan"}, set()),
    "audit finish": ({"plan"}, {"out", "certificate", "page"}),
    "audit repeat": ({"plan", "answers"}, {"review_out"}),
    "audit verify": ({"plan", "certificate", "labels"}, set()),
    "pull label-studio": (set(), {"out"}),
    "push label-studio": ({"result", "export"}, set()),
    "watch": ({*FIT, "cost"}, {"out", "review_out"}),
    "datasets": ({"data"}, set()),
    "datasets list": ({"data"}, set()),
    "datasets show": (set(), set()),
    "datasets fetch": (set(), {"cache"}),
    "datasets import": ({"file", "truth"}, {"cache"}),
    "study paper": ({"data"}, {"out"}),
    "study synthetic": (set(), {"out"}),
    "study gold": ({"data"}, {"out"}),
    "study features": ({"data"}, {"out"}),
    "study theory": (set(), {"out"}),
    "study speed": (set(), {"out"}),
}
# Folders of pictures, which are shown: a result never has the name of one, and may be kept beside them.
PICTURES = {"media"}
# What a verb insists on beside the two files in question.
NEEDS = {
    "plan": ["--budget", "9"],
    "audit start": ["--find", "yes=0.9"],
    "datasets import": ["cifar10h"],
}
# Outputs that have a default beside another file: that file, and its name for the output to be votes.csv.
DEFAULTS = {
    ("audit finish", "page"): ("certificate", "votes.json", "votes.html"),
    ("review", "out"): ("listed", "votes.csv", "votes.answers.csv"),
}
# Inputs and outputs with a file of answers beside them.
WITH_ANSWERS = {"plan", "audit", "listed"}
NAMES_OF_FILES = re.compile(r"FILE|FOLDER|DIR\b|PLAN|LABELS|LIST|MODEL|RESULT|PATH")
NOT_FILES = {"LABEL"}  # metavars


def verbs() -> dict[str, Any]:
    leaves = {" ".join(path): command for path, command in COMMANDS.items() if path and command.callback is not None}
    only_have_verbs = ("audit", "study", "pull", "push")
    return {name: command for name, command in leaves.items() if name not in only_have_verbs}


VERBS = verbs()
PAIRS = [
    (verb, given, written) for verb, (inputs, outputs) in FILES.items() for given in sorted(inputs)
    for written in sorted(outputs)
]  # fmt: skip


# Standard output counts as an output of every verb.
OUTPUT_PAIRS = [(verb, *pair) for verb, (_, outputs) in FILES.items() for pair in combinations(sorted(outputs), 2)]
BESIDE = [
    (verb, main, written) for verb, (inputs, outputs) in FILES.items()
    for main in sorted((inputs | outputs) & WITH_ANSWERS) for written in sorted(outputs - {main})
]  # fmt: skip


def takes_a_file(option: click.Parameter) -> bool:
    shown = option.metavar or ""
    return isinstance(option.type, click.Path) or (shown not in NOT_FILES and bool(NAMES_OF_FILES.search(shown)))


def test_every_verb_is_in_the_table() -> None:
    assert set(VERBS) == set(FILES)


@pytest.mark.parametrize("verb", FILES)
def test_every_option_that_takes_a_file_is_in_the_table(verb: str) -> None:
    inputs, outputs = FILES[verb]
    found = {option.name for option in VERBS[verb].params if takes_a_file(option)} - PICTURES
    assert found | {"settings", "result"} & inputs == inputs | outputs


# --------------------------------------------------------------------------------------------------------------------
# the command line of a pair


def words(verb: str, values: dict[str, str]) -> list[str]:
    """The verb with these values, and whatever else it insists on."""
    arguments, options = [], []
    for param in VERBS[verb].params:
        value = values.get(param.name)
        if value is None and param.required and not any(opt in NEEDS.get(verb, ()) for opt in param.opts):
            value = f"some-{param.name}.csv" if param.name != "name" else None
        if value is None:
            continue
        if param.param_type_name == "argument":
            arguments.append(value)
        else:
            options += [max(param.opts, key=len), value]
    return [*verb.split(), *NEEDS.get(verb, ()), *arguments, *options]


def spelled(name: str, text: str) -> str:
    return f"weights={text}" if name == "settings" else text


TEXT = b"task,worker,label\na,ann,yes\na,bob,no\nb,ann,no\n"


def same(folder: Path) -> tuple[str, str]:
    return str(folder / "votes.csv"), str(folder / "votes.csv")


def other_spelling(folder: Path) -> tuple[str, str]:
    return "votes.csv", str(folder / "below" / ".." / "votes.csv")


def symlink_out(folder: Path) -> tuple[str, str]:
    (folder / "link.csv").symlink_to("votes.csv")
    return "votes.csv", "link.csv"


def symlink_in(folder: Path) -> tuple[str, str]:
    (folder / "link.csv").symlink_to("votes.csv")
    return "link.csv", "votes.csv"


def linked_folder(folder: Path) -> tuple[str, str]:
    (folder / "way").symlink_to(folder, target_is_directory=True)
    return "votes.csv", "way/votes.csv"


def hard_link(folder: Path) -> tuple[str, str]:
    os.link(folder / "votes.csv", folder / "again.csv")
    return "votes.csv", "again.csv"


WAYS: list[Callable[[Path], tuple[str, str]]] = [
    same, other_spelling, symlink_out, symlink_in, linked_folder, hard_link
]  # fmt: skip


def refused(verb: str, given: tuple[str, str], written: tuple[str, str], folder: Path) -> str:
    """What the command says that has these two options; checked to be refused as wrong usage and to change nothing."""
    return refused_with(verb, {given[0]: spelled(*given), written[0]: written[1]}, folder)


def refused_with(verb: str, values: dict[str, str], folder: Path) -> str:
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    done = run_command(words(verb, values), folder=folder)
    assert done.returncode == 2, (done.args, done.stdout + done.stderr)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert "rarevote: error: " in done.stderr
    return done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "votes.csv").write_bytes(TEXT)
    (tmp_path / "below").mkdir()
    return tmp_path


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize(("verb", "given", "written"), PAIRS, ids=lambda part: part)
def test_no_output_over_an_input(
    verb: str, given: str, written: str, way: Callable[[Path], tuple[str, str]], folder: Path
) -> None:
    if written == "cache":  # the folder of one dataset in it is replaced
        (folder / "c" / "datasets" / "cifar10h").mkdir(parents=True)
        place = folder / "c" / "datasets" / "cifar10h" / "votes.csv"
        (folder / "votes.csv").rename(place)
        assert "is in this folder" in refused(verb, (given, str(place)), ("cache", "c"), folder)
        return
    source, target = way(folder)
    assert "is the input" in refused(verb, (given, source), (written, target), folder)


@pytest.mark.parametrize(("verb", "written"), DEFAULTS, ids=lambda part: part)
def test_no_default_output_over_an_input(verb: str, written: str, folder: Path) -> None:
    beside, name, made = DEFAULTS[verb, written]
    (folder / made).write_bytes(TEXT)
    (folder / "plan.json").write_text(json.dumps({"source": {"labels": [made]}}))
    for given in sorted(FILES[verb][0] - {beside}):
        source = {"plan": "plan.json"}.get(given, made)
        assert f"{made}: is the input" in refused_with(verb, {beside: name, given: source}, folder)
    for other in sorted(FILES[verb][1] - {beside, written}):
        said = refused_with(verb, {beside: name, other: made}, folder)
        assert "are the same file" in said
        assert f"--{other} " in said


def test_every_default_is_in_the_table() -> None:
    made = {(verb, option.name) for verb, command in VERBS.items() for option in command.params
            if takes_a_file(option) and option.callback is not None}  # fmt: skip
    assert made == set(DEFAULTS)


def both(folder: Path) -> tuple[str, str]:
    return "new.csv", "new.csv"


def both_spelled(folder: Path) -> tuple[str, str]:
    return "new.csv", str(folder / "below" / ".." / "new.csv")


def both_linked(folder: Path) -> tuple[str, str]:
    (folder / "link.csv").symlink_to("new.csv")
    return "new.csv", "link.csv"


def both_in_a_linked_folder(folder: Path) -> tuple[str, str]:
    (folder / "way").symlink_to(folder, target_is_directory=True)
    return "new.csv", "way/new.csv"


def both_hard_linked(folder: Path) -> tuple[str, str]:
    (folder / "new.csv").write_text("old")
    os.link(folder / "new.csv", folder / "again.csv")
    return "new.csv", "again.csv"


@pytest.mark.parametrize(
    "way", [both, both_spelled, both_linked, both_in_a_linked_folder, both_hard_linked], ids=lambda way: way.__name__
)
@pytest.mark.parametrize(("verb", "one", "other"), OUTPUT_PAIRS, ids=lambda part: part)
def test_no_two_outputs_in_one_file(
    verb: str, one: str, other: str, way: Callable[[Path], tuple[str, str]], folder: Path
) -> None:
    said = refused_with(verb, dict(zip((one, other), way(folder), strict=True)), folder)
    for name in (one, other):
        (option,) = (option for option in VERBS[verb].params if option.name == name)
        assert f"{option.opts[0]} " in said
    assert "are the same file" in said


@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.parametrize("ending", [".answers.jsonl", "lock"])
@pytest.mark.parametrize(("verb", "main", "written"), BESIDE, ids=lambda part: part)
def test_no_output_over_the_files_beside_a_plan(
    verb: str, main: str, written: str, ending: str, exists: bool, folder: Path
) -> None:
    is_read = main in FILES[verb][0]
    (folder / "plan.json").write_text("{}") if is_read else None
    target = ".plan.json.rarevote-lock" if ending == "lock" else f"plan.json{ending}"
    if exists:
        (folder / target).write_text("")
    said = refused_with(verb, {main: "plan.json", written: target}, folder)
    assert "are the same file" in said or (exists and is_read and "is the input" in said)


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("aggregate votes.csv --question all --out new --review-out new/list.csv --max-review 1", "--review-out"),
        ("aggregate votes.csv --checkpoint kept --out kept/r.csv", "--out"),
        ("aggregate votes.csv --engine dask --out new --checkpoint new/tasks", "--checkpoint"),
        ("watch votes.csv --out new --review-out new/result.csv --max-review 1", "--review-out"),
    ],
)
def test_no_output_in_a_folder_that_another_replaces(command: str, named: str, folder: Path) -> None:
    assert f"{named} " in (said := rarevote(*command.split(), folder=folder, code=2).stderr)
    assert "where it would be replaced" in said
    assert not (folder / "new").exists()


def test_outputs_that_do_not_meet(folder: Path) -> None:
    for name in ("figures", "w"):
        (folder / name).mkdir()
    for command in (
        "aggregate votes.csv -m dawid-skene --checkpoint kept --out r.csv --soft-out r.npz --model-out r",
        "report votes.csv -m majority-vote --charts figures --out figures/page.html",
        "watch votes.csv -m majority-vote --out w --review-out w/list.csv --max-review 1 --every 1s --rounds 1",
    ):
        rarevote(*command.split(), "-q", folder=folder)
    assert {"r", "r.csv", "r.npz"} <= {path.name for path in folder.iterdir()}
    assert {"result.csv", "changes.csv", "list.csv"} <= {path.name for path in (folder / "w").iterdir()}


def test_a_file_system_that_ignores_case(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["aggregate", "votes.csv", "-m", "majority-vote", "--soft-out", "R.npz", "--model-out", "r.npz"]
    rarevote(*words[:4], "--soft-out", "A.parquet", "--out", "a.parquet", folder=folder)
    lower = os.lstat
    monkeypatch.setattr(Path, "lstat", lambda path: lower(str(path).replace(path.name, folder.name)))
    assert "--model-out and --soft-out" in rarevote(*words, folder=folder, code=2).stderr


@pytest.mark.parametrize("way", ["in the folder", "in a folder below", "pattern", "linked from the folder"])
@pytest.mark.parametrize(
    ("verb", "written"), [(verb, written) for verb, given, written in PAIRS if given == "labels" and written != "cache"]
)
def test_no_output_among_inputs(verb: str, written: str, way: str, folder: Path) -> None:
    (folder / "votes").mkdir()
    (folder / "votes" / "below").mkdir()
    (folder / "votes.csv").rename(folder / "votes" / "votes.csv")
    given = "votes/v*.csv" if way == "pattern" else "votes"
    target = {"in the folder": "votes/very.csv", "in a folder below": "votes/below/new.csv",
              "pattern": "votes/very.csv", "linked from the folder": "again.csv"}[way]  # fmt: skip
    if way == "linked from the folder":
        os.link(folder / "votes" / "votes.csv", folder / "again.csv")
    refused(verb, ("labels", given), (written, target), folder)


@pytest.mark.parametrize(
    "options",
    [
        ["--question", "all", "--out", "."],
        ["--engine", "dask", "--out", "."],
        ["--engine", "dask", "--out", "out", "--checkpoint", "."],
        ["--checkpoint", "."],
    ],
)
def test_an_output_folder_has_no_input_in_it(options: list[str], folder: Path) -> None:
    (folder / "data").mkdir()
    (folder / "votes.csv").rename(folder / "data" / "votes.csv")  # which `--checkpoint .` on dask would remove
    done = rarevote("aggregate", "data/votes.csv", *options, folder=folder, code=2)
    assert "the input data/votes.csv is in this folder" in done.stderr
    assert (folder / "data" / "votes.csv").read_bytes() == TEXT


def test_what_is_no_input_is_written(tmp_path: Path) -> None:
    labels = example_files().labels
    votes = tmp_path / "votes"
    votes.mkdir()
    (votes / "labels.csv").write_bytes(Path(labels).read_bytes())
    rarevote("aggregate", "votes", "-m", "majority-vote", "-o", "result.csv", "-q", folder=tmp_path)
    rarevote("aggregate", "votes", "-m", "majority-vote", "-o", "result.csv", "-q", folder=tmp_path)  # over itself
    # A page and charts are not data that the next run would read.
    rarevote("report", ".", "-m", "majority-vote", "-q", "--out", "page.html", folder=votes)
    rarevote("report", "labels.csv", "-m", "majority-vote", "-q", "--charts", ".", folder=votes)
    assert (votes / "labels.csv").read_bytes() == Path(labels).read_bytes()


@pytest.mark.parametrize("verb", ["finish", "continue", "repeat"])
def test_labels_items_and_answers_behind_a_plan_are_inputs(verb: str, tmp_path: Path) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_bytes(Path(example_files().labels).read_bytes())
    (tmp_path / "plans").mkdir()
    tasks = dict.fromkeys(line.split(",")[0] for line in labels.read_text().splitlines()[1:])
    (tmp_path / "items.csv").write_text("\n".join(["task", *tasks]))
    rarevote("audit", "start", "labels.csv", "-m", "majority-vote", "--find", "defect=0.9", "-q", "--items",
             "items.csv", "--plan", "plans/a.json", "--review-out", "round.csv", folder=tmp_path)  # fmt: skip
    journal = tmp_path / "plans" / "a.json.answers.jsonl"
    journal.write_bytes(b"")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for target in ("labels.csv", "items.csv", str(journal)):
        options = {"finish": ["--certificate", "c.json", "--out", target]}.get(verb, ["--review-out", target])
        assert "is the input" in rarevote("audit", verb, "plans/a.json", *options, folder=tmp_path, code=2).stderr
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.skipif(os.name == "nt", reason="descriptors are no files there")
def test_redirected_streams_are_files_too(folder: Path) -> None:
    command = [sys.executable, "-m", "rarevote", "aggregate"]
    with (folder / "votes.csv").open("rb") as votes:
        done = subprocess.run(
            [*command, "-", "--out", "votes.csv"], cwd=folder, stdin=votes, capture_output=True, check=False
        )
    assert done.returncode == 2
    assert b"is the input standard input" in done.stderr
    with (folder / "votes.csv").open("ab") as rows:  # as a shell does for >>
        done = subprocess.run(
            [*command, "votes.csv", "-q"], cwd=folder, stdout=rows, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 2
    assert b"standard output: is the input votes.csv" in done.stderr
    assert (folder / "votes.csv").read_bytes() == TEXT
    with (folder / "rows.csv").open("wb") as rows:
        done = subprocess.run(
            [*command, "votes.csv", "--json", "--out", "rows.csv"],
            cwd=folder, stdout=rows, stderr=subprocess.PIPE, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert b"--out and standard output are the same file" in done.stderr


def test_json_of_a_verb_says_nothing_of_it(folder: Path) -> None:
    done = rarevote("aggregate", "votes.csv", "--json", "--out", "r.csv", "-q", folder=folder)
    assert json.loads(done.stdout)["n_tasks"] == 2
