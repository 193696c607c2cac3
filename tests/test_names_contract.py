"""Whatever is named by hand means the same in every format and type of the data, and what matches nothing is told.

The crowd is made here: 12 tasks, three workers, a few abstentions. Text in a CSV file is what all else is held against.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, NamedTuple

import numpy as np
import pytest

from rarevote.io.write.columns import write_columns
from tests.command import rarevote, rows, run_command

FORMATS = ("csv", "json", "ndjson", "parquet", "xlsx", "arrow")


class Kind(NamedTuple):
    """How one crowd spells its labels: those of the class that matters, of the other one, and one more."""

    rare: Any
    other: Any
    # A third answer: a class without votes for `--class`, an answer that is no vote for `--abstain`. Truth values have
    # no third one.
    third: Any = None

    def typed(self, name: str) -> str:
        """A name as a person types it."""
        value = getattr(self, name)
        return str(value).lower() if isinstance(value, bool) else str(value)

    def untyped(self, text: str) -> str:
        """Which name a text of a result means, whatever case a format has for truth values."""
        meant = {str(getattr(self, name)).casefold(): name for name in ("rare", "other", "third")}
        return meant[text.casefold()]


# Everywhere the rare class is the first in order, so that a sampler draws alike.
KINDS = {"text": Kind("defect", "sound", "unsure"), "integer": Kind(3, 7, 9), "boolean": Kind(False, True)}
CASES = list(itertools.product(FORMATS, KINDS))
WITH_THIRD = [case for case in CASES if KINDS[case[1]].third is not None]

# Votes of three workers per task: r is rare, o is other, t is the third answer. The tasks are numbers.
PATTERN = ["rro", "ooo", "oor", "rrr", "ooo", "oro", "ooo", "rrt", "oot", "ooo", "ror", "ooo"]
TASKS = list(range(101, 113))
WITHOUT_THIRD = str.maketrans("t", "o")
KNOWN = {101: "rare", 102: "other", 106: "rare"}


class Crowds(NamedTuple):
    """Files of one crowd in every format and type."""

    folder: Path

    def votes(self, ending: str, kind: str, third: bool = False) -> Path:
        return self.folder / f"{kind}-{'three' if third else 'two'}.{ending}"

    def known(self, ending: str, kind: str) -> Path:
        return self.folder / f"known-{kind}.{ending}"


def column(values: Sequence[Any]) -> np.ndarray[Any, Any]:
    return np.array(values, dtype=object if isinstance(values[0], str) else None)


@pytest.fixture(scope="module")
def crowds(tmp_path_factory: pytest.TempPathFactory) -> Crowds:
    made = Crowds(tmp_path_factory.mktemp("crowds"))
    for kind, names in KINDS.items():
        # Text is text all through: the ids of its tasks, too.
        ids = [str(task) for task in TASKS] if kind == "text" else TASKS
        for third in (False, True) if names.third is not None else (False,):
            letters = [cell if third else cell.translate(WITHOUT_THIRD) for cell in PATTERN]
            answer = {"r": names.rare, "o": names.other, "t": names.third}
            table = {
                "task": column([task for task in ids for _ in range(3)]),
                "worker": column(["ann", "bob", "cy"] * len(ids)),
                "label": column([answer[letter] for cell in letters for letter in cell]),
            }
            for ending in FORMATS:
                write_columns(table, made.votes(ending, kind, third))
        known = {
            "task": column([str(task) if kind == "text" else task for task in KNOWN]),
            "label": column([getattr(names, name) for name in KNOWN.values()]),
        }
        for ending in FORMATS:
            write_columns(known, made.known(ending, kind))
    return made


@pytest.fixture
def few_sweeps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rarevote.decide.sampler._MAX_SWEEPS", 50)


def aggregate(path: Path, *words: str | Path, method: str = "majority-vote", code: int = 0) -> CompletedProcess[str]:
    return rarevote("aggregate", path, "-m", method, *words, code=code)


def summary(path: Path, *words: str | Path) -> dict[str, Any]:
    return dict(json.loads(aggregate(path, *words, "--json", "-q", "-o", path.parent / "result.csv").stdout))


def answers(path: Path, kind: str, *words: str | Path, method: str = "majority-vote") -> dict[str, str]:
    """Label per task, in words that all types share; no option may be told of, as each one means something here."""
    done = aggregate(path, *words, method=method)
    assert "(--class)" not in done.stderr
    assert "no answer is" not in done.stderr
    return {row["task"]: KINDS[kind].untyped(row["label"]) for row in rows(done.stdout)}


def expected(third: bool = False) -> dict[str, str]:
    """The majority, counted by hand: `third` counts as a class, or not at all."""
    name = {"r": "rare", "o": "other", "t": "third"}
    found = {}
    for task, cell in zip(TASKS, PATTERN, strict=True):
        letters = cell if third else cell.translate(WITHOUT_THIRD)
        found[str(task)] = name[max("ort", key=letters.count)]
    return found


# --------------------------------------------------------------------------------------------------------------------
# what is named is found


@pytest.mark.parametrize(("ending", "kind"), CASES)
def test_class(crowds: Crowds, ending: str, kind: str) -> None:
    names = KINDS[kind]
    words = ["--class", names.typed("other"), "--class", names.typed("rare")]
    assert answers(crowds.votes(ending, kind), kind, *words) == expected()


@pytest.mark.parametrize(("ending", "kind"), WITH_THIRD)
def test_abstain(crowds: Crowds, ending: str, kind: str) -> None:
    path, third = crowds.votes(ending, kind, third=True), KINDS[kind].typed("third")
    told = summary(path, "--abstain", third)
    assert told["n_annotations"] == sum(letter != "t" for cell in PATTERN for letter in cell)
    assert third not in told["classes"]
    assert answers(path, kind, "--abstain", third) == expected()


@pytest.mark.parametrize(("ending", "kind"), CASES)
@pytest.mark.parametrize("name", ["rare", "other"])
def test_rare(crowds: Crowds, ending: str, kind: str, name: str) -> None:
    found = summary(crowds.votes(ending, kind), "--rare", KINDS[kind].typed(name))["rare"]
    assert KINDS[kind].untyped(found["class"]) == name
    assert found["tasks"] == sum(label == name for label in expected().values())


@pytest.mark.usefixtures("few_sweeps")
@pytest.mark.parametrize(("ending", "kind"), CASES)
def test_cost(crowds: Crowds, ending: str, kind: str) -> None:
    rare, other = KINDS[kind].typed("rare"), KINDS[kind].typed("other")
    # A miss that costs so much makes every task with a vote for the rare class one of it.
    words = ["--cost", f"{other}:{rare}=1,{rare}:{other}=1000000"]
    found = answers(crowds.votes(ending, kind), kind, *words)
    assert found == {str(task): "rare" if "r" in cell else "other" for task, cell in zip(TASKS, PATTERN, strict=True)}


@pytest.mark.usefixtures("few_sweeps")
@pytest.mark.parametrize("options", [["--min-recall", "{rare}=0.9"], ["--prevalence", "{rare}=0.25,{other}=0.75"]])
def test_recall_and_prevalence(crowds: Crowds, options: list[str]) -> None:
    first: tuple[list[str], list[float]] | None = None
    for ending, kind in CASES:
        names = {"rare": KINDS[kind].typed("rare"), "other": KINDS[kind].typed("other")}
        done = aggregate(crowds.votes(ending, kind), *(word.format(**names) for word in options))
        table = rows(done.stdout)
        chance = next(name for name in table[0] if name.casefold() == f"p:{names['rare']}")
        found = [KINDS[kind].untyped(row["label"]) for row in table], [float(row[chance]) for row in table]
        first = first or found
        assert found[0] == first[0], (ending, kind)
        assert found[1] == pytest.approx(first[1], abs=1e-9), (ending, kind)


@pytest.mark.parametrize(("ending", "kind"), CASES)
def test_task_of_explain(crowds: Crowds, ending: str, kind: str) -> None:
    words = ["-m", "majority-vote", "--json", "-q", "--task", "108", "--task", "101"]
    found = json.loads(rarevote("explain", crowds.votes(ending, kind), *words).stdout)
    assert [str(one["task"]) for one in found] == ["108", "101"]
    assert [len(one["votes"]) for one in found] == [3, 3]


@pytest.mark.parametrize(("ending", "kind"), CASES)
def test_gold_of_any_format_and_type_of_task(crowds: Crowds, ending: str, kind: str) -> None:
    # The votes are in one format, what is known in each: a table of text knows no numbers.
    text = answers(crowds.votes("csv", "text"), "text", "--gold", crowds.known("csv", "text"), method="dawid-skene")
    for votes in {"csv", ending}:
        gold = crowds.known(ending, kind)
        found = answers(crowds.votes(votes, kind), kind, "--gold", gold, method="dawid-skene")
        assert found["106"] == "rare"  # as known; the votes are 2 to 1 against it
        assert found == text


@pytest.mark.parametrize(("ending", "kind"), CASES)
def test_truth_of_any_format_and_type_of_task(crowds: Crowds, ending: str, kind: str) -> None:
    majority = expected()
    right = sum(majority[str(task)] == name for task, name in KNOWN.items())
    for votes, truth in {("csv", ending), (ending, "csv"), (ending, ending)}:
        scores = summary(crowds.votes(votes, kind), "--truth", crowds.known(truth, kind))["scores"]
        assert scores["n_items"] == len(KNOWN)
        assert scores["accuracy"] == pytest.approx(right / len(KNOWN))


# --------------------------------------------------------------------------------------------------------------------
# what is named and matches nothing is told


@pytest.mark.parametrize(("ending", "kind"), CASES)
@pytest.mark.parametrize("option", ["--class", "--abstain"])
def test_a_class_or_an_abstention_of_nobody_is_a_warning(crowds: Crowds, ending: str, kind: str, option: str) -> None:
    done = aggregate(crowds.votes(ending, kind), option, "77", "-q")
    assert "warning" in done.stderr.casefold()
    assert "77" in done.stderr


@pytest.mark.parametrize(("ending", "kind"), CASES)
@pytest.mark.parametrize(
    "words",
    [
        ["--rare", "77"],
        ["--cost", "crack:{other}=1,{other}:crack=2"],
        ["--min-recall", "crack=0.9"],
        ["--prevalence", "crack=0.1,{other}=0.9"],
    ],
)
def test_a_decision_on_a_class_that_is_none_is_refused(
    crowds: Crowds, ending: str, kind: str, words: list[str]
) -> None:
    named = [word.format(other=KINDS[kind].typed("other")) for word in words]
    done = aggregate(crowds.votes(ending, kind), *named, code=2)
    assert ("crack" if "crack" in words[1] else "77") in done.stderr


@pytest.mark.parametrize(("ending", "kind"), CASES)
def test_a_task_that_is_none_is_refused(crowds: Crowds, ending: str, kind: str) -> None:
    for name in ("999", "nothing"):
        words = ["-m", "majority-vote", "--task", name]
        assert name in rarevote("explain", crowds.votes(ending, kind), *words, code=1).stderr


@pytest.mark.parametrize(("ending", "kind"), CASES)
def test_known_labels_of_no_task_are_told(crowds: Crowds, tmp_path: Path, ending: str, kind: str) -> None:
    path = tmp_path / f"known.{ending}"
    write_columns({"task": column([998, 999]), "label": column([KINDS[kind].rare] * 2)}, path)
    for option, method in (("--gold", "dawid-skene"), ("--truth", "majority-vote")):
        done = run_any("aggregate", crowds.votes(ending, kind), "-m", method, option, path)
        assert done.returncode or "warning" in done.stderr.casefold(), option


@pytest.mark.parametrize(("ending", "kind"), CASES)
def test_known_labels_of_no_class_are_told(crowds: Crowds, tmp_path: Path, ending: str, kind: str) -> None:
    path = tmp_path / f"known.{ending}"
    write_columns({"task": column(TASKS[:2]), "label": column(["crack"] * 2)}, path)
    for option, method in (("--gold", "dawid-skene"), ("--truth", "majority-vote")):
        done = run_any("aggregate", crowds.votes(ending, kind), "-m", method, option, path)
        assert done.returncode or "crack" in done.stderr, option


def run_any(*words: str | Path) -> CompletedProcess[str]:
    done = run_command(list(map(str, words)))
    assert "Traceback" not in done.stderr
    return done
