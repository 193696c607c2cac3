"""The shipped example: it is what its description says, and its script makes it again."""

from __future__ import annotations

import runpy
from pathlib import Path

import pandas as pd
import pytest

from rarevote.simulate.files import example_files

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "make_rails.py"


def test_the_script_makes_the_shipped_files_byte_for_byte(tmp_path: Path) -> None:
    runpy.run_path(str(SCRIPT))["make_rails"](tmp_path)
    shipped = example_files()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["labels.csv", "truth.csv"]
    assert (tmp_path / "labels.csv").read_bytes() == shipped.labels.read_bytes()
    assert (tmp_path / "truth.csv").read_bytes() == shipped.truth.read_bytes()


def test_the_example_is_as_described() -> None:
    files = example_files()
    labels, truth = pd.read_csv(files.labels), pd.read_csv(files.truth)
    assert files.labels.stat().st_size < 700_000
    assert list(labels.columns) == ["task", "worker", "label"]
    assert list(truth.columns) == ["task", "label"]
    assert truth["task"].tolist() == [f"rail-{number:04d}.jpg" for number in range(1, 3001)]
    assert truth["label"].value_counts().to_dict() == {"sound": 2880, "defect": 120}
    assert set(labels["task"]) == set(truth["task"])
    assert set(labels["worker"]) == {f"inspector-{number:02d}" for number in range(1, 41)}
    assert set(labels["label"]) == {"sound", "defect"}
    assert len(labels) / 3000 == pytest.approx(5.5, abs=0.2)
    assert not labels.duplicated(["task", "worker"]).any()


def test_a_majority_vote_loses_many_defects() -> None:
    files = example_files()
    truth = pd.read_csv(files.truth).set_index("task")["label"]
    share = (pd.read_csv(files.labels).set_index("task")["label"] == "defect").groupby("task").mean()
    # Ties are answered with "defect", the first class in sorted order.
    found = (share >= 0.5)[truth == "defect"]
    assert 0.5 <= found.mean() <= 0.65
    assert (share > 0)[truth == "defect"].mean() > 0.95  # although somebody saw nearly every one
