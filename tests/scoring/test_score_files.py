"""A result file against the truth, in columns: the figures of plain loops over the rows."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rarevote.io.read.results import read_result
from rarevote.scoring.compare import score_result

CLASSES = ["a", "b", "c"]


def made(seed: int) -> tuple[list[dict[str, Any]], list[tuple[int, str]]]:
    """Rows of a result with numbers as ids, some without an answer, and a truth in another order with a class more."""
    rng = np.random.default_rng(seed)
    rows = []
    for task in rng.permutation(60).tolist():
        p = rng.dirichlet(np.ones(3)).round(6)
        label = "" if rng.random() < 0.1 else CLASSES[int(rng.integers(3))]
        rows.append(
            {"task": task, "label": label, **{f"p:{name}": float(x) for name, x in zip(CLASSES, p, strict=True)}}
        )
    truth = [(task, str(rng.choice([*CLASSES, "d"]))) for task in rng.permutation(70)[:50].tolist()]
    return rows, truth


def by_loops(rows: list[dict[str, Any]], truth: list[tuple[int, str]]) -> dict[str, Any]:
    known = dict(truth)
    scored = [row for row in rows if row["task"] in known]
    recall = {}
    for name in sorted({known[row["task"]] for row in scored}):
        own = [row for row in scored if known[row["task"]] == name]
        recall[name] = sum(row["label"] == name for row in own) / len(own)
    loss = 0.0
    bins: dict[int, list[float]] = {}
    for row in scored:
        total = sum(row[f"p:{name}"] for name in CLASSES)
        loss -= math.log(max(row.get(f"p:{known[row['task']]}", 0.0) / total, 1e-6))
        if row["label"]:
            sure = row[f"p:{row['label']}"] / total
            bins.setdefault(min(int(sure * 10), 9), []).append((row["label"] == known[row["task"]]) - sure)
    n_answered = sum(map(len, bins.values()))
    return {
        "n_items": len(scored),
        "recall": recall,
        "accuracy": sum(row["label"] == known[row["task"]] for row in scored) / len(scored),
        "n_unanswered": sum(not row["label"] for row in scored),
        "truth_without_result": len(known) - len(scored),
        "result_without_truth": len(rows) - len(scored),
        "log_loss": loss / len(scored),
        "calibration_error": sum(abs(sum(gaps)) for gaps in bins.values()) / n_answered,
    }


def as_csv(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("\n".join([",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]) + "\n")
    return path


def as_json(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text(json.dumps(rows))
    return path


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("write", [as_csv, as_json])
def test_the_figures_are_those_of_loops_over_the_rows(seed: int, write: Any, tmp_path: Path) -> None:
    rows, truth = made(seed)
    expected = by_loops(rows, truth)
    listed = [{"task": task, "label": label} for task, label in truth]
    for known in (as_csv(tmp_path / "truth.csv", listed), as_json(tmp_path / "truth.json", listed), dict(truth)):
        found = score_result(write(tmp_path / f"result.{write.__name__[3:]}", rows), known)
        probabilities = found["probabilities"]["p"]
        for name, value in expected.items():
            assert {**found, **probabilities}[name] == pytest.approx(value, abs=1e-12), name


def test_a_truth_in_the_order_of_the_result_gives_the_same_figures(tmp_path: Path) -> None:
    rows, truth = made(2)
    known = dict(truth)
    both = [row for row in rows if row["task"] in known]
    listed = [{"task": row["task"], "label": known[row["task"]]} for row in both]
    result = as_csv(tmp_path / "result.csv", both)
    one = score_result(result, as_csv(tmp_path / "truth.csv", listed))
    assert one == score_result(result, as_csv(tmp_path / "turned.csv", listed[::-1]))


def test_a_task_that_the_truth_names_twice(tmp_path: Path) -> None:
    result = as_csv(tmp_path / "result.csv", [{"task": 1, "label": "a"}, {"task": 2, "label": "b"}])
    rows = [{"task": 2, "label": "b"}, {"task": 1, "label": "b"}, {"task": 2, "label": "b"}]
    assert score_result(result, as_csv(tmp_path / "truth.csv", rows))["accuracy"] == 0.5
    with pytest.raises(ValueError, match="two labels"):
        score_result(result, as_csv(tmp_path / "truth.csv", [*rows, {"task": 2, "label": "a"}]))


def test_a_result_of_several_labels_is_known_by_its_columns(tmp_path: Path) -> None:
    rows = [{"task": f"p:{name}", "item": "p", "choice": name, "label": "yes"} for name in ("dent", "rust")]
    assert read_result(as_csv(tmp_path / "result.csv", rows)).choices == ["dent", "rust"]
    rows[0]["task"] = "p"
    assert read_result(as_csv(tmp_path / "result.csv", rows)).choices == []
