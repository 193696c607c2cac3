"""Is a method significantly better? Paired differences to each rival, dataset by dataset.

The benchmark datasets are not independent: some are releases of one collection, some pool others, some share items or
workers. An interval that resamples datasets would count the same evidence several times and be too narrow, so
*source groups* are resampled here, each with all of its datasets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rarevote.methods.registry import method_title
from rarevote.study.datasets import DatasetInfo
from rarevote.study.libraries import library
from rarevote.study.measures import CALIBRATION, CONFIDENCE, MEASURES, RANKING
from rarevote.study.results import Results
from rarevote.study.summaries import BINARY, MULTICLASS, members
from rarevote.study.tables import StudyTable, signed

N_DRAWS = 10_000
SEED = 20_270_101
# Scores are ratios of small whole numbers: smaller differences are rounding.
_TIE = 1e-9

#: the methods that are compared with all others
JUDGED = ("cc-rasch", "anchored-rasch")
_DECIDED = ("minority_recall", "balanced_accuracy", "macro_f1")
_METRICS = (*_DECIDED, "minority_precision", "flags_per_item", *RANKING, *CALIBRATION)


@dataclass(frozen=True)
class Paired:
    """How a method compares with a rival over datasets.

    Attributes:
        method: the method.
        rival: the method that it is compared with.
        sets_of: "binary", "multiclass" or "all".
        metric: name of the metric.
        sets: number of datasets that both have a figure for.
        source_groups: number of groups of related datasets among them.
        mean_difference: mean over datasets of method minus rival.
        low: lower end of the 95% bootstrap interval.
        high: upper end.
        wins: datasets where the method is better (has the smaller value, if smaller or neither is better).
        ties: datasets where both are equal.
        losses: datasets where the rival is better.
    """

    method: str
    rival: str
    sets_of: str
    metric: str
    sets: int
    source_groups: int
    mean_difference: float
    low: float
    high: float
    wins: int
    ties: int
    losses: int


def bootstrap_interval(
    differences: Sequence[float],
    groups: Sequence[str],
    *,
    n_draws: int = N_DRAWS,
    seed: int = SEED,
) -> tuple[float, float]:
    """Percentile interval of the mean difference, resampling whole groups with replacement.

    A draw takes as many groups as there are; its mean is over all datasets in them, so a group is weighted by
    its number of datasets.
    """
    names, group = np.unique(np.asarray(groups), return_inverse=True)
    if len(names) == 1:
        return float(np.mean(differences)), float(np.mean(differences))
    found = library("scipy.stats").bootstrap(
        (np.bincount(group, weights=differences), np.bincount(group)),
        lambda total, size, axis: total.sum(axis) / size.sum(axis),
        paired=True,
        n_resamples=n_draws,
        method="percentile",
        confidence_level=CONFIDENCE,
        rng=seed,
    )
    low, high = found.confidence_interval
    return float(low), float(high)


def paired_differences(
    results: Results, sets: Sequence[DatasetInfo], methods: Sequence[str], *, method: str = "cc-rasch"
) -> list[Paired]:
    """``method`` against each of the others, over binary, multiclass and all datasets of the paper."""
    kinds = {"binary": members(BINARY.regimes[0], sets), "multiclass": members(MULTICLASS.regimes[0], sets)}
    kinds["all"] = kinds["binary"] + kinds["multiclass"]
    compared = (
        _compared(results, counted, (method, rival, kind, metric))
        for rival in methods
        if rival != method
        for kind, counted in kinds.items()
        for metric in _METRICS
    )
    return [one for one in compared if one is not None]


def _compared(results: Results, sets: Sequence[DatasetInfo], place: tuple[str, str, str, str]) -> Paired | None:
    method, rival, _, metric = place
    differences, groups = [], []
    for one in sets:
        pair = [results[one.slug, name].figure(metric) for name in (method, rival) if (one.slug, name) in results]
        if len(pair) == 2 and pair[0] is not None and pair[1] is not None:
            differences.append(pair[0] - pair[1])
            groups.append(one.source_group)
    if not differences:
        return None
    gains = [d if MEASURES[metric].better > 0 else -d for d in differences]
    size, wins, losses = len(gains), sum(gain > _TIE for gain in gains), sum(gain < -_TIE for gain in gains)
    interval = bootstrap_interval(differences, groups)
    counts = (wins, size - wins - losses, losses)
    return Paired(*place, size, len(set(groups)), float(np.mean(differences)), *interval, *counts)


def paired_texts(rows: Sequence[Paired]) -> list[StudyTable]:
    """The tables of the comparisons, one for each method.

    Ranking and calibration are shown over all datasets; over each kind they are in the CSV file.
    """
    judged = dict.fromkeys(one.method for one in rows)
    return [_paired_text(method, [one for one in rows if one.method == method]) for method in judged]


def _paired_text(method: str, rows: Sequence[Paired]) -> StudyTable:
    shown = [one for one in rows if one.metric in _DECIDED or one.sets_of == "all"]
    return StudyTable(
        ("Rival", "Datasets", "Metric", "Sets (groups)", "Mean difference", "95% interval", "Wins/ties/losses"),
        [
            (
                method_title(one.rival),
                one.sets_of,
                MEASURES[one.metric].heading,
                f"{one.sets} ({one.source_groups})",
                signed(one.mean_difference),
                f"{signed(one.low)} to {signed(one.high)}",
                f"{one.wins}/{one.ties}/{one.losses}",
            )
            for one in shown
        ],
        caption=f"{method_title(method)} less each rival",
        notes=(
            f"Bootstrap intervals resample source groups of related datasets, not datasets: {N_DRAWS:,} draws, "
            f"seed {SEED}, percentiles. Arrows say which way is better; flags are per item that has the class.",
        ),
        n_text_columns=3,
    )
