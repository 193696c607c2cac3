"""The paper's comparison in docs/benchmarks.md against the files of a study, read and averaged independently."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

import pytest
from benchmarks.study_evidence import reproduction_table, write_evidence

from rarevote.errors import InputError
from rarevote.study.paper import run_paper_study
from tests.study.small_data import read_rows, write_dataset

SETS = {"rte": 2, "product": 2, "cf": 3}
METHODS = ["majority-vote", "dawid-skene", "glad", "cc-rasch", "anchored-rasch"]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    for seed, (slug, n_classes) in enumerate(SETS.items()):
        write_dataset(folder / "data", slug, n_classes=n_classes, seed=seed)
    run_paper_study(folder / "out", data=folder / "data", methods=METHODS, n_jobs=1)
    return folder / "out"


def mean(study: Path, method: str, column: str) -> float:
    rows = [row for row in read_rows(study / "results.csv") if row["method"] == method and row[column]]
    assert len(rows) == len(SETS)
    return fmean(float(row[column]) for row in rows)


def test_sentences_and_table_have_the_numbers_of_the_results(study: Path, tmp_path: Path) -> None:
    text = write_evidence(study, tmp_path, command="rarevote study paper", date="2026-01-31")
    flat = " ".join(text.split())
    assert "3 of its 33 datasets are available" in flat
    assert (tmp_path / "operating_points.svg").stat().st_size > 1000
    assert (tmp_path / "headline.svg").stat().st_size > 1000
    assert f"the recall of its labels is {mean(study, 'cc-rasch', 'minority_recall'):.3f}," in flat
    assert f"log loss {mean(study, 'anchored-rasch', 'log_loss'):.3f} (" in flat
    for method, title in (("cc-rasch", "CC-Rasch"), ("anchored-rasch", "Anchored Rasch"), ("glad", "GLAD")):
        line = next(line for line in text.splitlines() if line.startswith(f"| {title} |") and line.count("|") > 10)
        cells = [cell.strip(" *_") for cell in line.split("|")[2:-1]]
        wanted = ["average_precision", "mean_average_precision", "roc_auc", "recall_at_ds", "r_precision"]
        assert cells[:5] == [f"{mean(study, method, column):.3f}" for column in wanted]
        assert cells[7:9] == [f"{mean(study, method, column):.3f}" for column in ("log_loss", "ece")]
    assert "2026-01-31 by `rarevote study paper`" in text


def test_an_interval_that_includes_zero_is_no_difference(study: Path, tmp_path: Path) -> None:
    text = " ".join(write_evidence(study, tmp_path).split())
    shown = 0
    for row in read_rows(study / "paired.csv"):
        low, high = float(row["low"]), float(row["high"])
        words = f"interval {low:+.3f} to {high:+.3f}"
        if row["sets_of"] == "all" and words in text and "-0.000" not in words:
            shown += 1
            assert (f"{words}, no clear difference" in text) == (low <= 0 <= high)
    assert shown >= 4


def test_equal_rows_are_counted(tmp_path: Path) -> None:
    rows = [
        {"dataset": dataset, "method": "cc-rasch", "difference": difference, "note": note}
        for dataset, differences, note in (
            ("a", ("0.0004", "-0.0005"), ""),
            ("b", ("0.0", "0.009"), ""),
            ("c", ("0.02", "0.0"), ""),
            ("d", ("0.5", "0.5"), "of another release"),
        )
        for difference in differences
    ]
    (line,) = reproduction_table(rows).rows
    assert line == ("CC-Rasch", "1 of 3", "2 of 3", "0.007", "0.003")


def test_without_a_study(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="run rarevote study paper first"):
        write_evidence(tmp_path, tmp_path)
