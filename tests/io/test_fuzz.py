"""A few thousand damaged files at every door: an answer or an error of ours, never anything else."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from proofs.fuzz import campaign, frames, oracles
from proofs.fuzz.campaign import batch
from proofs.fuzz.doors import Door, House, Seed
from proofs.fuzz.run import outcome, outcomes

import rarevote

# A number, not seconds: a faster machine must not try what a slower one did not.
EXECUTIONS = 80
#: Files that once were findings: ``door--what.ending``.
SEEDS = Path(__file__).parent / "fuzz_seeds"


@pytest.fixture(autouse=True)
def quiet() -> None:
    warnings.simplefilter("ignore")


@pytest.mark.prove
def test_no_door_lets_a_foreign_error_through(tmp_path: Path) -> None:
    counts: dict[str, Counter[str]] = {}
    with House(tmp_path) as house:
        for name in house.names:
            tried = outcomes(house.door(name), 2, range(EXECUTIONS), tmp_path, tmp_path)
            counts[name] = Counter(kind for _, kind in tried)
    wanted = {"read", "refused"}
    assert {name: found for name, found in counts.items() if set(found) - wanted} == {}
    # A mutation that never or always breaks a file would test nothing.
    assert {name for name, found in counts.items() if set(found) != wanted} <= {"certificate"}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with House(tmp_path_factory.mktemp("house")) as house:
        yield house


@pytest.mark.parametrize("path", sorted(SEEDS.glob("*--*")), ids=lambda path: path.name)
def test_what_was_found_once_stays_mended(path: Path, house: House, tmp_path: Path) -> None:
    copy = tmp_path / f"copy{path.suffix}"
    copy.write_bytes(path.read_bytes())
    assert outcome(house.door(path.name.partition("--")[0]), copy, tmp_path) in ("read", "refused")
    assert path.stat().st_size < 2_048


def test_the_number_of_an_execution_determines_its_file(house: House, tmp_path: Path) -> None:
    seen: list[bytes] = []
    for first in (0, 3):
        door = Door("json", lambda path: seen.append(path.read_bytes()), house.door("json").seeds)
        list(outcomes(door, 5, range(first, 6), tmp_path, tmp_path))
    assert seen[3:6] == seen[6:9]
    assert len(set(seen)) == 6


def test_findings_are_seen_and_kept(tmp_path: Path) -> None:
    def broken(path: Path) -> None:
        raise RecursionError(path.name)

    door = Door("broken", broken, [Seed(".csv", b"task,label\n")])
    assert {kind for _, kind in outcomes(door, 2, range(5), tmp_path, tmp_path)} == {"foreign"}
    assert (tmp_path / "foreign-broken-RecursionError-3.csv").is_file()
    assert "broken.csv" in (tmp_path / "foreign-broken-RecursionError-3.txt").read_text()


def test_an_endless_loop_is_a_hang(tmp_path: Path) -> None:
    code = f"""
from pathlib import Path
from proofs.fuzz import run
from proofs.fuzz.doors import Door, Seed
run.SECONDS_PER_FILE = 0.2
def endless(path):
    while True:
        pass
door = Door("endless", endless, [Seed(".csv", b"task")])
list(run.outcomes(door, 1, range(3), Path({str(tmp_path)!r}), Path({str(tmp_path)!r})))
"""
    ended = subprocess.run(
        [sys.executable, "-c", code], check=False, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
    assert ended.returncode == -signal.SIGPROF


@pytest.mark.prove
def test_a_batch_in_a_process_of_its_own(tmp_path: Path) -> None:
    line = batch("costs", 1, range(200), tmp_path)
    assert (line["stop"], line["foreign"], line["memory findings"]) == (200, 0, 0)
    assert line["read"] + line["refused"] == 200
    crashed = batch("no such door", 1, range(7, 200), tmp_path)
    assert (crashed["stop"], crashed["crashes"]) == (8, 1)
    (costs,), (missing,) = campaign.rows("costs", [line, line]), campaign.rows("no such door", [crashed])
    assert (costs["executions"], campaign.PROOF.findings(costs)) == (400, 0)
    assert campaign.PROOF.findings(missing) == missing["crashes"] == 1


VOTES = {"task": ["t1", "t1", "t2"], "worker": ["a", "b", "a"], "label": ["yes", "no", "no"]}


@pytest.mark.parametrize(
    ("ending", "text"),
    [
        (".csv", "task;worker;label\nt1;a;yes\nt1;b;no\n\nt2;a;no\n"),
        (".tsv", "label\ttask\tworker\r\nyes\tt1\ta\r\nno\tt1\tb\r\nno\tt2\ta\r\n"),
        (".json", json.dumps([dict(zip(VOTES, row, strict=True)) for row in zip(*VOTES.values(), strict=True)])),
    ],
)
def test_an_answer_that_is_not_what_the_file_says_is_a_finding(
    ending: str, text: str, house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"votes{ending}"
    path.write_text(text, newline="")
    door = house.door(ending[1:])
    assert outcome(door, path, tmp_path) == "read"
    other = rarevote.read((["t1", "t1", "t2"], ["a", "b", "a"], ["yes", "no", "yes"]))
    monkeypatch.setattr(rarevote, "read", lambda _: other)
    assert outcome(door, path, tmp_path) == "wrong"


@pytest.mark.parametrize("kind", frames.KINDS)
def test_columns_in_another_order_are_taken_by_place_without_names_and_by_name_with_them(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "KINDS", {kind: frames.KINDS[kind]})
    path = tmp_path / "votes.columns"
    path.write_text(json.dumps({name: VOTES[name] for name in ("task", "label", "worker")}))
    frames.enter(path)


@pytest.mark.parametrize("kind", frames.KINDS)
def test_every_kind_of_frame_is_compared_with_its_columns(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = frames.expected_votes(VOTES)
    frame = frames.KINDS[kind](VOTES)
    oracles.check_votes(rarevote.read(frame).annotations, expected, kind)
    with pytest.raises(oracles.WrongAnswerError, match=kind):
        oracles.check_votes(
            rarevote.read(frame).annotations, frames.expected_votes({**VOTES, "label": ["no"] * 3}), kind
        )


@pytest.mark.parametrize(
    "text",
    [
        "task,worker,label\nt1,a,yes\nt1;x,b,no\n",  # a cell with another mark is beyond doubt
        "task,worker,label\nt1,a,\n",  # a missing label
        "task,worker,label\nt1,'a,b',yes\n",  # other quotes
        "task,worker,label,weight\nt1,a,yes,2\n",  # a column that may mean something
        "task,worker\nt1,a\n",
    ],
)
def test_nothing_is_expected_of_a_table_that_can_be_read_in_several_ways(text: str, tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text(text)
    expected = {("t1", "a", "yes"): 1, ("t1;x", "b", "no"): 1} if ";x" in text else None
    assert oracles.plain_votes(path) == expected


def test_the_tables_of_findings_and_properties_name_what_there_is(house: House) -> None:
    repository = Path(__file__).parents[2]
    with (repository / "proofs" / "fuzz" / "findings.csv").open(encoding="utf-8") as handle:
        findings = list(csv.DictReader(handle))
    assert {row["door"] for row in findings} <= set(house.names)
    assert all((repository / row["test"]).is_file() for row in findings)
    with (repository / "proofs" / "fuzz" / "properties.csv").open(encoding="utf-8") as handle:
        tried = [one for row in csv.DictReader(handle) for one in row["tried by"].split("; ")]
    for one in tried:
        path, _, test = one.partition("::")
        if one.startswith("door "):
            assert one.removeprefix("door ") in house.names
        else:
            assert f"def {test}(" in (repository / path).read_text(encoding="utf-8"), one
