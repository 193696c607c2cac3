from __future__ import annotations

import pytest

from rarevote.study.datasets import list_datasets
from rarevote.study.deviation import deviations, mean_deviations
from rarevote.study.results import ResultRow, Results
from rarevote.study.summaries import (
    BINARY,
    LARGE_SCALE,
    MULTICLASS,
    PAPER_METHODS,
    SUMMARY_TABLES,
    SummaryTable,
    members,
    printed_results,
    printed_summaries,
    regime_mean,
    summary_records,
    summary_rows,
    summary_text,
)

SETS = list_datasets()
ABSENT = ["jigsaw", "cifar10h"]
# The paper prints three decimals, and its summaries were made from longer ones.
PRINTED = 1.1e-3


def printed_as_results(*, without: list[str] | None = None) -> Results:
    """The paper's per-dataset rows, as if we had found them."""
    found: Results = {}
    for one in SETS:
        for method in PAPER_METHODS:
            row = printed_results().get((one.paper_name, method))
            if one.slug in (without or []):
                found[one.slug, method] = ResultRow(one.slug, method, "absent")
            elif row is None:
                found[one.slug, method] = ResultRow(one.slug, method, "not applicable")
            else:
                found[one.slug, method] = ResultRow(
                    one.slug, method, "done", minority_recall=row.minority_recall, macro_f1=row.macro_f1
                )
    return found


@pytest.mark.parametrize(
    ("table", "counts", "at_hand"),
    [
        (BINARY, [22, 8, 13, 4], [21, 7, 12, 4]),
        (MULTICLASS, [11, 3, 4, 3], [10, 3, 3, 3]),
        (LARGE_SCALE, [8, 4], [7, 3]),
    ],
)
def test_membership(table: SummaryTable, counts: list[int], at_hand: list[int]) -> None:
    groups = [members(regime, SETS) for regime in table.regimes]
    assert [len(group) for group in groups] == counts
    assert [sum(one.slug not in ABSENT for one in group) for group in groups] == at_hand


def test_variants_of_datasets_are_never_counted() -> None:
    counted = {one.slug for table in SUMMARY_TABLES for regime in table.regimes for one in members(regime, SETS)}
    assert not {slug for slug in counted if slug.endswith("-full") or slug == "bird-108"}
    assert len(counted) == 33


def test_the_papers_rows_give_the_papers_tables() -> None:
    results = printed_as_results()
    checked = 0
    for table in SUMMARY_TABLES:
        for regime in table.regimes:
            for (key, regime_key, method, metric), printed in printed_summaries().items():
                if (key, regime_key) != (table.key, regime.key) or metric == "balanced_accuracy":
                    continue
                ours = regime_mean(results, regime, SETS, method, metric)
                if method == "plat" and ours is None:
                    continue  # its row on wvscm is not printed
                assert ours is not None
                assert ours.mean == pytest.approx(printed.mean, abs=PRINTED), (key, regime_key, method, metric)
                assert ours.sd == pytest.approx(printed.sd, abs=PRINTED), (key, regime_key, method, metric)
                checked += 1
    assert checked >= 60


def test_means_of_the_papers_rows_over_the_sets_at_hand() -> None:
    means = {
        one.method: one
        for one in mean_deviations(printed_as_results(without=ABSENT), SETS, list(PAPER_METHODS))
        if (one.table, one.regime, one.metric, one.against) == ("binary", "all", "minority_recall", "rows")
    }
    expected = {"majority-vote": (0.722, 21), "dawid-skene": (0.804, 21), "plat": (0.858, 20), "cc-rasch": (0.854, 21)}
    for method, (mean, n_sets) in expected.items():
        assert round(means[method].paper, 3) == mean
        assert means[method].sets == n_sets
        assert means[method].difference == 0


def test_no_row_deviates_from_itself() -> None:
    found = deviations(printed_as_results(without=ABSENT), SETS)
    assert {one.difference for one in found} == {0.0}
    assert {one.dataset for one in found}.isdisjoint(ABSENT)
    assert [(one.dataset, one.method) for one in found if one.note] == [("bird-107", "plat")] * 2
    crowdfm = next(
        one for one in found if (one.dataset, one.method, one.metric) == ("cf", "crowdfm", "minority_recall")
    )
    assert crowdfm.printed_sd == 0.106


def test_a_method_that_lacks_a_dataset_has_no_mean_and_may_have_no_row() -> None:
    results = printed_as_results(without=ABSENT)
    assert [row.method for row in summary_rows(MULTICLASS, results, SETS, list(PAPER_METHODS))].count("plat") == 0
    binary = {row.method: row for row in summary_rows(BINARY, results, SETS, list(PAPER_METHODS))}
    assert binary["plat"].means["all", "minority_recall"] is None
    assert binary["plat"].means["imb3", "minority_recall"] is not None


def test_tables_name_what_is_absent() -> None:
    results = printed_as_results(without=ABSENT)
    rows = summary_rows(BINARY, results, SETS, list(PAPER_METHODS))
    text = summary_text(BINARY, rows, SETS, ABSENT)
    assert "All: 21 of 22" in text.notes[0]
    assert text.notes[1] == "Absent, and in none of these figures: Jigsaw."
    assert len(text.columns) == 1 + sum(width for _, width in text.groups) == 9
    columns, records = summary_records(BINARY, rows)
    assert columns[:6] == ["method", "all_recall", "all_recall_sd", "all_balacc", "all_balacc_sd", "all_sets"]
    assert all(set(record) == set(columns) for record in records)
