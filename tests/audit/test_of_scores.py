"""Any ranking can be proved: from a table of items and scores to a certificate that verifies."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rarevote.audit import Audit, verify_files
from rarevote.audit.of_scores import audit_of_scores, base_rates
from rarevote.errors import ColumnsError, InputError
from rarevote.io.read.scores import read_scores
from tests.audit.worlds import world
from tests.command import rarevote


def write_scores(folder: Path, n: int = 300, **columns: list[Any]) -> tuple[Path, dict[str, bool]]:
    scores, truth = world(n, rate=0.15)
    ids = [f"r{i:03d}" for i in range(n)]
    path = folder / "scores.csv"
    with path.open("w", newline="", encoding="utf-8") as handle:
        named = {"id": ids, "title": [f"Paper {i}" for i in range(n)], "p": list(scores), **columns}
        csv.writer(handle).writerows([list(named), *zip(*named.values(), strict=True)])
    return path, dict(zip(ids, map(bool, truth), strict=True))


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def answer(path: Path, truth: dict[str, bool], name: str) -> None:
    rows = rows_of(path)
    with path.open("w", newline="", encoding="utf-8") as handle:
        table = csv.writer(handle)
        table.writerow(["task", "label"])
        table.writerows([row["task"], name if truth[row["task"]] else f"not {name}"] for row in rows)


def test_from_a_table_to_a_certificate(tmp_path: Path) -> None:
    write_scores(tmp_path)
    _, truth = write_scores(tmp_path)
    known = [task for task in truth if task.endswith("7")]
    (tmp_path / "known.csv").write_text(
        "task,label\n" + "".join(f"{task},{'relevant' if truth[task] else 'no'}\n" for task in known)
    )
    started = rarevote("audit", "start", "scores.csv", "--score", "p", "--find", "relevant=0.9", "--flag-cost", "5",
                       "--gold", "known.csv",
                       "--show", "title", "--plan", "a.json", "--review-out", "r-1.csv", folder=tmp_path)  # fmt: skip
    assert "300 items with the score 'p'" in started.stderr
    assert (tmp_path / "r-1.csv").read_text().splitlines()[0] == "task,title,label"
    for number in range(1, 40):
        if not (tmp_path / f"r-{number}.csv").exists():
            break
        answer(tmp_path / f"r-{number}.csv", truth, "relevant")
        rarevote("audit", "continue", "a.json", "--answers", f"r-{number}.csv", "--review-out", f"r-{number + 1}.csv",
                 folder=tmp_path)  # fmt: skip
    said = rarevote("audit", "finish", "a.json", "--out", "result.csv", "--certificate", "c.json", folder=tmp_path)
    n_known = sum(truth[task] for task in known)
    assert f"does not include the {n_known} gold item" in said.stderr
    assert verify_files(tmp_path / "a.json", tmp_path / "c.json") == ()
    certificate = json.loads((tmp_path / "c.json").read_text())
    assert certificate["certified"]
    rows = rows_of(tmp_path / "result.csv")
    assert {row["decision"] for row in rows} <= {"gold", "expert", "audit", "score"}
    found = sum(truth[row["task"]] for row in rows if row["label"] == "relevant")
    assert found >= 0.9 * sum(truth.values())
    # Another table is not what was audited.
    write_scores(tmp_path, title=["x"] * 300)
    assert verify_files(tmp_path / "a.json", tmp_path / "c.json") != ()


def test_a_result_of_ours_and_a_ranking_from_one(tmp_path: Path) -> None:
    rarevote("simulate", "--tasks", "300", "--seed", "3", "--out", "crowd", folder=tmp_path)
    rarevote("aggregate", "crowd/labels.csv", "--out", "result.csv", folder=tmp_path)
    column = next(name for name in (tmp_path / "result.csv").read_text().splitlines()[0].split(",") if name[:2] == "p:")
    name = column.removeprefix("p:")
    rarevote("audit", "start", "result.csv", "--score", column, "--find", f"{name}=0.8", "--plan", "a.json",
             "--review-out", "r.csv", folder=tmp_path)  # fmt: skip
    scores = {row["task"]: float(row[column]) for row in rows_of(tmp_path / "result.csv")}
    plan = Audit.load(tmp_path / "a.json").plan
    means = [np.mean([scores[str(task)] for task in group]) for group in plan.strata.tasks]
    assert means == sorted(means, reverse=True)


def test_ranks_become_rates_in_the_same_order() -> None:
    ranks = np.array([3.0, 1.0, 2.0, 2.0, np.nan])
    rates = base_rates(ranks, ascending=True)
    assert rates[1] > rates[2] == rates[3] > rates[0]
    assert np.isnan(rates[4])
    logits = np.log(rates[:4] / (1 - rates[:4]))
    assert np.allclose(logits[1] - logits[2], logits[2] - logits[0])  # evenly spaced over the ranks
    assert (base_rates(np.array([0.2, 1.0, 0.0])) == [0.2, 1.0, 0.0]).all()
    assert base_rates(np.array([-4.0, 7.5]))[1] == pytest.approx(0.9)
    # The odds fall from 9 to 1/99 in equal steps: 9, 1 / sqrt(11), 1/99.
    middle = 1 / (1 + 11**0.5)
    assert base_rates(np.array([3.0, 1.0, 2.0])).tolist() == pytest.approx([0.9, 0.01, middle])


def test_the_largest_score_ranks_first_unless_it_is_said_otherwise(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("id,p\na,1\nb,9\nc,5\n")
    items = read_scores([str(tmp_path / "s.csv")], "p")
    largest = audit_of_scores(items, "x", 0.9, seed=1)
    smallest = audit_of_scores(items, "x", 0.9, seed=1, ascending=True)
    for audit, ranked in ((largest, ["b", "c", "a"]), (smallest, ["a", "c", "b"])):
        assert [task for group in audit.plan.strata.tasks for task in group] == ranked


@pytest.mark.parametrize(
    ("text", "score", "said"),
    [
        ("id,p\n1,x\n", "p", "not a number"),
        ("id,p\n1,inf\n", "p", "not a number"),
        ("id,p\n", "p", "no rows"),
        ("id,p\n1,0.5\n1,0.6\n", "p", "task '1' occurs twice"),
        ("id,p\n1,0.5\n", "q", "no column 'q'; it has 'id', 'p'"),
        ("name,p\n1,0.5\n", "p", "no column for task"),
    ],
)
def test_tables_that_cannot_be(tmp_path: Path, text: str, score: str, said: str) -> None:
    (tmp_path / "s.csv").write_text(text)
    with pytest.raises((InputError, ColumnsError), match=said):
        read_scores([str(tmp_path / "s.csv")], score)


def test_null_and_absent_fields_of_json_are_blank(tmp_path: Path) -> None:
    items = [{"id": "a", "p": 0.5, "truth": "yes"}, {"id": "b", "p": None, "truth": None}, {"id": "c", "truth": "no"}]
    (tmp_path / "s.json").write_text(json.dumps(items))
    found = read_scores([str(tmp_path / "s.json")], "p", gold_column="truth")
    np.testing.assert_array_equal(found.scores, [0.5, np.nan, np.nan])
    assert found.crowd.gold == {"a": "yes", "c": "no"}
    assert found.crowd.population.tolist() == ["a", "b", "c"]
    assert found.crowd.annotations.n_tasks == 0


def test_no_scores_at_all(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("id,p\n1,\n2,\n")
    items = read_scores([str(tmp_path / "s.csv")], "p")
    with pytest.raises(InputError, match="no item has a score"):
        audit_of_scores(items, "x", 0.9)


@pytest.mark.parametrize("options", [["--ascending"], ["--score", "p", "--ordered", "1..3"]])
def test_options_that_do_not_go_together(tmp_path: Path, options: list[str]) -> None:
    write_scores(tmp_path)
    rarevote("audit", "start", "scores.csv", "--find", "x=0.9", "--plan", "a.json", "--review-out", "r.csv", *options,
             folder=tmp_path, code=2)  # fmt: skip
    assert not (tmp_path / "a.json").exists()
