from __future__ import annotations

from dataclasses import replace
from itertools import product
from statistics import fmean

import numpy as np
import pytest

from rarevote.study.datasets import list_datasets
from rarevote.study.paired import bootstrap_interval, paired_differences, paired_texts
from rarevote.study.results import ResultRow, Results


def test_the_interval_is_that_of_all_possible_draws() -> None:
    differences, groups = [0.3, -0.1, 0.2, 0.05, 0.4, -0.2], list("aabccd")
    by_group = {name: [d for d, g in zip(differences, groups, strict=True) if g == name] for name in "abcd"}
    # Every draw of four groups out of four is as likely as any other.
    means = [
        fmean([difference for name in draw for difference in by_group[name]]) for draw in product("abcd", repeat=4)
    ]
    expected = np.quantile(means, [0.025, 0.975])
    assert bootstrap_interval(differences, groups, n_draws=200_000) == pytest.approx(expected.tolist(), abs=0.01)


def test_the_seed_is_fixed() -> None:
    sample = ([0.1, 0.2, -0.3], ["a", "b", "c"])
    assert bootstrap_interval(*sample) == bootstrap_interval(*sample)


def test_related_datasets_do_not_count_as_several() -> None:
    gaps = [0.0, 0.0, 0.0, 0.0, 0.3, 0.3, 0.3, 0.3]
    alone = bootstrap_interval(gaps, list("abcdefgh"))
    related = bootstrap_interval(gaps, list("aabbccdd"))
    assert related[1] - related[0] > alone[1] - alone[0]


def test_one_group_has_no_spread() -> None:
    assert bootstrap_interval([0.1, 0.3], ["a", "a"]) == pytest.approx((0.2, 0.2))


def test_wins_ties_and_losses() -> None:
    recalls = {"rte": (0.9, 0.8), "sp": (0.7, 0.7 + 1e-12), "trec": (0.5, 0.6), "cf": (0.4, None)}
    results: Results = {}
    for slug, (ours, rival) in recalls.items():
        for method, value in (("cc-rasch", ours), ("plat", rival)):
            figures = dict.fromkeys(("minority_recall", "balanced_accuracy", "macro_f1"), value)
            results[slug, method] = replace(ResultRow(slug, method, "done" if value else "not applicable"), **figures)
    found = {
        (one.sets_of, one.metric): one for one in paired_differences(results, list_datasets(), ["plat", "cc-rasch"])
    }
    one = found["all", "minority_recall"]
    assert (one.wins, one.ties, one.losses) == (1, 1, 1)
    assert (one.sets, one.source_groups) == (3, 3)
    assert one.mean_difference == pytest.approx(0.0, abs=1e-9)
    assert one.low <= one.mean_difference <= one.high
    assert ("multiclass", "minority_recall") not in found
    (text,) = paired_texts(list(found.values()))
    assert len(text.rows) == 6


def test_less_is_better_where_the_measure_says_so() -> None:
    losses = {"rte": (0.2, 0.5), "sp": (0.3, 0.4), "trec": (0.5, 0.1)}
    results: Results = {}
    for slug, pair in losses.items():
        for method, value in zip(("anchored-rasch", "cc-rasch"), pair, strict=True):
            counts = {"flags_90": 100 * value, "minority_items": 50}
            results[slug, method] = ResultRow(slug, method, "done", log_loss=value, **counts)  # type: ignore[arg-type]
    methods = ["cc-rasch", "anchored-rasch"]
    found = paired_differences(results, list_datasets(), methods, method="anchored-rasch")
    one = next(one for one in found if (one.sets_of, one.metric) == ("all", "log_loss"))
    assert (one.wins, one.ties, one.losses) == (2, 0, 1)
    assert one.mean_difference == pytest.approx((-0.3 - 0.1 + 0.4) / 3)
    flags = next(one for one in found if (one.sets_of, one.metric) == ("all", "flags_90_per_item"))
    assert flags.mean_difference == pytest.approx(2 * one.mean_difference)
    assert (flags.wins, flags.losses) == (2, 1)
