"""The table of rankings in docs/benchmarks.md and the figures of the README against docs/evidence."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

import pytest
from benchmarks import decisions_pages, study_features
from benchmarks.evidence import read

from rarevote.methods.registry import method_title

ROOT = Path(__file__).parents[2]
COLUMNS = ("average_precision", "mean_average_precision", "roc_auc", "recall_at_ds", "r_precision")
LATER = ("log_loss", "ece", "minority_recall", "minority_precision", "balanced_accuracy")


def test_every_number_of_the_table_is_a_mean_of_the_evidence() -> None:
    rows = read("study_paper")
    text = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    lines = text[text.index("| Method | AP") :].split("\n\n")[0].splitlines()[2:]
    shown = {
        cells[1].strip(): [cell.strip(" *_") for cell in cells[2:-1]] for cells in (line.split("|") for line in lines)
    }
    assert len(shown) == 6
    for method in ("majority-vote", "dawid-skene", "glad", "crowdfm", "cc-rasch", "anchored-rasch"):
        own = [row for row in rows if row["method"] == method]
        assert len(own) == 31
        cells = shown[method_title(method)]
        means = [fmean(float(row[name]) for row in own) for name in (*COLUMNS, *LATER)]
        assert [float(cell) for cell in [*cells[:5], *cells[7:12]]] == pytest.approx(means, abs=6e-4)


def test_the_figures_of_the_specification() -> None:
    """Mean average precision and log loss, known from an independent implementation."""
    rows = read("study_paper")
    for method, precision, loss in (("anchored-rasch", 0.7544, 0.477), ("cc-rasch", 0.7256, 1.23)):
        own = [row for row in rows if row["method"] == method]
        assert fmean(float(row["average_precision"]) for row in own) == pytest.approx(precision, abs=3e-4)
        assert fmean(float(row["log_loss"]) for row in own) == pytest.approx(loss, abs=6e-3)


def test_the_figures_of_the_readme_are_those_of_the_evidence() -> None:
    rows = read("study_paper")
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())

    def means(column: str) -> list[str]:
        methods = ("anchored-rasch", "majority-vote", "dawid-skene")
        return [f"{fmean(float(row[column]) for row in rows if row['method'] == one):.3f}" for one in methods]

    default, votes, dawid_skene = means("average_precision")
    assert f"average precision {default} (majority vote {votes}, Dawid–Skene {dawid_skene})" in text
    assert "log loss {} ({}, {})".format(*means("log_loss")) in text
    rivals = [row for row in read("rivals") if (row["rival"], row["unit"]) == ("crowd-kit", "CPU")]
    faster = sorted(float(row["ratio"]) for row in rivals if row["measure"].startswith("Dawid–Skene"))
    assert f"crowd-kit's in 1/{faster[0]:.0f} to 1/{faster[1]:.0f} of the CPU time" in text


def test_what_the_readme_says_of_plans_and_features_is_on_their_pages() -> None:
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    plan = decisions_pages.plan_table()
    saved = next(line for line in plan.splitlines() if "votes needed to reach uniform with 5" in line).split("|")
    assert f"{saved[3].strip()} votes per item reach what uniform assignment reaches [with 5]" in text
    datasets = {row["dataset"] for row in read("plan_replay") if not row["dataset"].startswith(("mean", "votes"))}
    assert f"on {len(datasets)} real datasets" in text
    rows = [line.split("|") for line in study_features.rivals_table().splitlines() if "Average precision" in line]
    without, with_features = (
        next(row for row in rows if row[2].strip() == name) for name in ("Votes only", "Votes and features")
    )
    one, two, same = (float(cell.split()[0]) for cell in (without[3], without[4], with_features[3]))
    assert f"[{1 + (same - one) / (two - one):.1f} votes without]" in text
