"""``--columns`` is about gold and truth too, where these have such columns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import rarevote as package
from tests.command import rarevote

VOTES = "frame,rater,verdict,label\n" + "".join(
    f"f{i},r{j},{'bad' if i % 4 == 0 and j else 'good'},x\n" for i in range(16) for j in range(4)
)
TRUTH = {f"f{i}": "bad" if i % 4 == 0 else "good" for i in range(16)}
COLUMNS = "task=frame,worker=rater,label=verdict"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "votes.csv").write_text(VOTES)
    named = "".join(f"{task},other,{label}\n" for task, label in TRUTH.items())
    (tmp_path / "named.csv").write_text("frame,label,verdict\n" + named)
    plain = "".join(f"{task},{label}\n" for task, label in TRUTH.items())
    (tmp_path / "plain.csv").write_text("task,label\n" + plain)
    (tmp_path / "result.csv").write_text("frame,verdict\n" + plain)
    return tmp_path


@pytest.mark.parametrize("truth", ["named.csv", "plain.csv"])
def test_truth(folder: Path, truth: str) -> None:
    told = rarevote(
        "aggregate", "votes.csv", "--columns", COLUMNS, "--truth", truth, "-o", "r.csv", "--json", folder=folder
    )
    assert json.loads(told.stdout)["scores"]["n_items"] == 16
    told = rarevote(
        "compare", "votes.csv", "--columns", COLUMNS, "--truth", truth, "--methods", "majority-vote", "--json",
        folder=folder,
    )  # fmt: skip
    assert json.loads(told.stdout)["scores"]["majority-vote"]["recall"] == {"bad": 1.0, "good": 1.0}
    told = rarevote("score", "result.csv", "--columns", "task=frame,label=verdict", "--truth", truth, "--json",
                    folder=folder)  # fmt: skip
    assert json.loads(told.stdout)["accuracy"] == 1


@pytest.mark.parametrize("gold", ["named.csv", "plain.csv"])
def test_gold(folder: Path, gold: str) -> None:
    rarevote("aggregate", "votes.csv", "--columns", COLUMNS, "--gold", gold, "-m", "cc-rasch", "-o", "r.csv",
             folder=folder)  # fmt: skip
    rows = (folder / "r.csv").read_text().splitlines()
    header = rows[0].split(",")
    got = {row.split(",")[header.index("task")]: row.split(",")[header.index("label")] for row in rows[1:]}
    assert got == TRUTH


def test_python(folder: Path) -> None:
    columns = dict(pair.split("=") for pair in COLUMNS.split(","))
    crowd = package.read(folder / "votes.csv", columns=columns)
    assert crowd.truth(folder / "named.csv") == TRUTH
