"""Is gold needed? Methods that learn from known labels against CC-Rasch without any (Figure 2 of the paper).

A share of the items has its truth revealed. Gold majority vote and gold Dawid–Skene learn about the workers from
these items alone and then label the rest. CC-Rasch is fitted twice: without gold, on the rest only, as in the paper;
and on everything with the same gold clamped, which the paper has not. Majority vote on the rest is the reference. All
are marked on the same rest.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.charts.save import save
from rarevote.crowd.annotations import Annotations
from rarevote.errors import InputError, ParameterError
from rarevote.meaning.metrics import minority_class, score
from rarevote.study.cells import Variant
from rarevote.study.datasets import DatasetInfo, find_dataset, list_datasets, load_annotations, locate
from rarevote.study.figures import Axis, Point, Style, line_chart, points_with_intervals
from rarevote.study.intervals import Interval, mean_interval
from rarevote.study.page import Figure, Section, publish
from rarevote.study.pool import Report, run_jobs
from rarevote.study.tables import TextTable, ranked, write_csv

SHARES = (0.01, 0.02, 0.05, 0.10, 0.20, 0.50)
BALANCED, IMBALANCED = 1.3, 3.0
PER_SIDE = 4
# Below this the rest has too few rare items for a recall that means anything.
SMALLEST = 200

METRICS = {"minority_recall": "Minority recall", "balanced_accuracy": "Balanced accuracy"}


@dataclass(frozen=True)
class Contender:
    """A method and whether it is shown the gold."""

    title: str
    method: str
    gold: bool


CONTENDERS = (
    Contender("Majority vote (no gold)", "majority-vote", False),
    Contender("Gold majority vote", "gold-majority-vote", True),
    Contender("Gold Dawid–Skene", "gold-dawid-skene", True),
    Contender("CC-Rasch without gold", "cc-rasch", False),
    Contender("CC-Rasch with gold", "cc-rasch", True),
)
_STYLES = {
    "Majority vote (no gold)": Style("#000000", "square", (2, 2)),
    "Gold majority vote": Style("#E69F00", "triangle-down", (3, 3)),
    "Gold Dawid–Skene": Style("#0072B2", "triangle-up", (8, 3)),
    "CC-Rasch without gold": Style("#D55E00", "circle", (1, 0)),
    "CC-Rasch with gold": Style("#CC79A7", "diamond", (8, 2, 2, 2)),
}


@dataclass(frozen=True)
class GoldRow:
    """How one contender did on the items whose truth it was not told."""

    dataset: str
    share: float
    seed: int
    contender: str
    n_gold: int
    n_scored: int
    minority_recall: float
    balanced_accuracy: float
    accuracy: float


@dataclass(frozen=True)
class Trial:
    """One draw of gold items."""

    dataset: str
    data: str | None
    share: float
    seed: int
    contenders: tuple[Contender, ...]


@dataclass(frozen=True, eq=False)
class NumberedCrowd:
    """A dataset as integers: task, worker and label of every vote, and the class of every task or -1."""

    task: NDArray[np.int64]
    worker: NDArray[np.int64]
    label: NDArray[np.int64]
    truth: NDArray[np.int64]
    n_classes: int
    rare: int


def number(crowd: Annotations, truth: dict[Any, Any]) -> NumberedCrowd:
    """Names as numbers, which cut and refit fastest."""
    # A class that only the truth names is a class too: it counts in the scores.
    classes = [*crowd.classes.tolist(), *sorted(set(truth.values()) - set(crowd.classes.tolist()))]
    code = {name: place for place, name in enumerate(classes)}
    known = np.array([code[truth[task]] if task in truth else -1 for task in crowd.tasks.tolist()], dtype=np.int64)
    rare = code[minority_class(list(truth.values()))]
    return NumberedCrowd(
        crowd.task_of_annotation().astype(np.int64),
        crowd.worker.astype(np.int64),
        crowd.label.astype(np.int64),
        known,
        len(classes),
        rare,
    )


@cache
def _load(dataset: str, data: str | None) -> NumberedCrowd:
    with warnings.catch_warnings():
        # What is odd about the data, the study says once and not once per process.
        warnings.simplefilter("ignore")
        return number(*load_annotations(dataset, data=data))


def run_trial(trial: Trial) -> list[GoldRow]:
    """Reveal a share of the truth and mark every contender on the rest."""
    crowd = _load(trial.dataset, trial.data)
    known = np.flatnonzero(crowd.truth >= 0)
    # The gold of a smaller share is part of that of a larger one: less chance between the points of a line.
    order = np.random.default_rng(trial.seed).permutation(known)
    n_gold = max(1, int(trial.share * len(known)))
    gold, scored = order[:n_gold], order[n_gold:]
    is_gold = np.zeros(len(crowd.truth), dtype=bool)
    is_gold[gold] = True
    of_rest = ~is_gold[crowd.task]
    rows = []
    for contender in trial.contenders:
        estimator = Variant(contender.method).estimator(trial.seed)
        classes = list(range(crowd.n_classes))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if contender.gold:
                told = {int(task): int(crowd.truth[task]) for task in gold}
                estimator.fit((crowd.task, crowd.worker, crowd.label), true_labels=told, classes=classes)
            else:
                rest = (crowd.task[of_rest], crowd.worker[of_rest], crowd.label[of_rest])
                estimator.fit(rest, classes=classes)
        answer = np.full(len(crowd.truth), -1, dtype=np.int64)
        answer[estimator.annotations_.task_names().astype(np.int64)] = estimator.label_codes()
        found = score(crowd.truth[scored], answer[scored])
        # Rare in the whole dataset: in a balanced one the rest may tip to another class from draw to draw.
        recall = found.recall.get(crowd.rare, float("nan"))
        rows.append(
            GoldRow(
                trial.dataset,
                trial.share,
                trial.seed,
                contender.title,
                n_gold,
                len(scored),
                recall,
                found.balanced_accuracy,
                found.accuracy,
            )
        )
    return rows


def choose_datasets(data: Path | None = None, names: Sequence[str] | None = None) -> list[DatasetInfo]:
    """The datasets to use: those named, or the largest at hand on both sides, one per source.

    Datasets of one source share items or workers and would say the same twice.

    Raises:
        InputError: none is at hand, or one that was named is not.
    """
    if names is not None:
        chosen = [find_dataset(name) for name in names]
        for info in chosen:
            if locate(info, data=data) is None:
                raise InputError(f"dataset {info.slug} is not here: give its folder with --data, or fetch it first")
        return chosen
    at_hand = [info for info in list_datasets() if (info.n_items_truth or 0) >= SMALLEST]
    at_hand = [info for info in at_hand if info.paper_name and locate(info, data=data) is not None]
    if not at_hand:
        raise InputError("no benchmark dataset is here: give their folder with --data or RAREVOTE_DATA, or fetch some")
    at_hand.sort(key=lambda info: (-(info.n_items_truth or 0), -(info.n_annotations or 0)))
    chosen = []
    for side in (
        [info for info in at_hand if info.imbalance < BALANCED],
        [info for info in at_hand if info.imbalance > IMBALANCED],
    ):
        first_of_source = {info.source_group: info for info in reversed(side)}
        chosen += [info for info in side if first_of_source[info.source_group] is info][:PER_SIDE]
    return chosen


def run_gold(
    out: Path,
    datasets: Sequence[DatasetInfo],
    *,
    data: Path | None = None,
    methods: Sequence[str] | None = None,
    n_seeds: int = 20,
    shares: Sequence[float] = SHARES,
    n_jobs: int | None = None,
    report: Report | None = None,
    command: str = "rarevote study gold",
) -> Section:
    """Run the comparison and write ``gold.csv``, the figures, the summary and the page into ``out``."""
    begin = time.perf_counter()
    contenders = tuple(one for one in CONTENDERS if methods is None or one.method in methods)
    if not contenders:
        raise ParameterError(f"this study compares {', '.join(dict.fromkeys(one.method for one in CONTENDERS))}")
    folder = None if data is None else str(data)
    notes = _oddities(datasets, folder)
    # The longest first, so that no core is left alone with one at the end.
    largest_first = sorted(datasets, key=lambda info: -(info.n_annotations or 0))
    trials = [
        Trial(info.slug, folder, share, seed, contenders)
        for info in largest_first
        for share in shares
        for seed in range(n_seeds)
    ]
    rows = run_jobs(run_trial, trials, n_jobs=n_jobs, report=report)
    place = {info.slug: number for number, info in enumerate(datasets)}
    rows.sort(key=lambda row: place[row.dataset])
    out.mkdir(parents=True, exist_ok=True)
    write_csv(out / "gold.csv", [entry.name for entry in fields(GoldRow)], map(asdict, rows))
    figures = []
    for metric, title in METRICS.items():
        stem = f"gold_{metric}"
        save(_chart(points(rows, datasets, metric), title), out / stem)
        figures.append(
            Figure(
                stem,
                f"{title} on the items without gold. Mean and 95 % interval (t) over {n_seeds} draws of the gold "
                "items; every panel has its own vertical scale. The rare class is that of the whole dataset.",
            )
        )
    section = Section(
        name="gold",
        title="With and without gold (Figure 2)",
        findings=findings(rows, datasets),
        figures=figures,
        tables=[_table(rows, datasets, metric, title) for metric, title in METRICS.items()],
        settings=[
            f"Datasets: {', '.join(f'{info.slug} (Imb {info.imbalance:g})' for info in datasets)}. Chosen without "
            f"names: the {PER_SIDE} with most known items on either side (Imb < {BALANCED:g}, Imb > {IMBALANCED:g}), "
            f"one per source, at least {SMALLEST} known items.",
            "Majority vote and CC-Rasch without gold see only the items that are not gold; the others see all votes. "
            "The gold of a smaller share is part of that of a larger one.",
            *notes,
        ],
        command=command,
        seconds=time.perf_counter() - begin,
    )
    publish(out, section)
    return section


def _oddities(datasets: Sequence[DatasetInfo], data: str | None) -> list[str]:
    """What loading the datasets has to say, such as truth of tasks that nobody voted on."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for info in datasets:
            load_annotations(info, data=data)
    return [str(warning.message) for warning in told]


def n_trials(datasets: Sequence[DatasetInfo], n_seeds: int, shares: Sequence[float] = SHARES) -> int:
    """How many draws of gold :func:`run_gold` makes and reports on."""
    return len(datasets) * len(shares) * n_seeds


def points(rows: Sequence[GoldRow], datasets: Sequence[DatasetInfo], metric: str) -> list[Point]:
    """Means and intervals over seeds, a panel per dataset."""
    panel = {info.slug: f"{info.slug} (Imb {info.imbalance:g})" for info in datasets}
    return points_with_intervals(
        (panel[row.dataset], row.contender, row.share, float(getattr(row, metric))) for row in rows
    )


def _chart(found: Sequence[Point], title: str) -> Any:
    shares = sorted({point.x for point in found})
    return line_chart(
        found,
        title=f"{title}, with and without gold",
        x=Axis("share of items with gold", log=True, ticks=shares, format=".0%", domain=(shares[0], shares[-1])),
        y=Axis(""),
        styles=_STYLES,
        columns=4,
        size=(215, 180),
        same_y=False,
    )


# --------------------------------------------------------------------------------------------------------------------
# what it says


def _means(rows: Sequence[GoldRow], metric: str) -> dict[tuple[str, float, str], float]:
    """Mean over seeds by dataset, share and contender."""
    groups: dict[tuple[str, float, str], list[float]] = {}
    for row in rows:
        groups.setdefault((row.dataset, row.share, row.contender), []).append(float(getattr(row, metric)))
    return {place: float(np.nanmean(values)) for place, values in groups.items()}


def _sides(datasets: Sequence[DatasetInfo]) -> dict[str, list[DatasetInfo]]:
    sides = {
        f"Imb < {BALANCED:g}": [info for info in datasets if info.imbalance < BALANCED],
        f"Imb > {IMBALANCED:g}": [info for info in datasets if info.imbalance > IMBALANCED],
        "in between": [info for info in datasets if BALANCED <= info.imbalance <= IMBALANCED],
    }
    return {title: members for title, members in sides.items() if members}


def lead(
    rows: Sequence[GoldRow], members: Sequence[DatasetInfo], metric: str, share: float, rival: str, base: str
) -> Interval:
    """How far ``rival`` is ahead of ``base`` in the mean over datasets, paired by draw, with its interval."""
    slugs = {info.slug for info in members}
    by_seed: dict[int, list[float]] = {}
    for row in rows:
        if row.dataset in slugs and row.share == share and row.contender in (rival, base):
            value = float(getattr(row, metric)) * (1 if row.contender == rival else -1)
            by_seed.setdefault(row.seed, []).append(value)
    return mean_interval([sum(values) / len(slugs) for values in by_seed.values()])


def findings(rows: Sequence[GoldRow], datasets: Sequence[DatasetInfo]) -> list[str]:
    """From which share on gold beats CC-Rasch without gold, and what clamping adds; in sentences from the numbers."""
    shown = {row.contender for row in rows}
    base = "CC-Rasch without gold"
    rivals = [title for title in ("Gold majority vote", "Gold Dawid–Skene", "CC-Rasch with gold") if title in shown]
    if base not in shown or not rivals:
        return []
    sentences: list[str] = []
    shares = sorted({row.share for row in rows})
    for metric, metric_title in METRICS.items():
        for side, members in _sides(datasets).items():
            said = []
            for rival in rivals:
                leads = {share: lead(rows, members, metric, share, rival, base) for share in shares}
                # The share from which the rival stays ahead.
                lasting = [x for x in shares if all(leads[later].low > 0 for later in shares if later >= x)]
                where = f"from {lasting[0]:.0%} gold on" if lasting else "at no share tried"
                said.append(f"{rival} {where} ({leads[shares[-1]].mean:+.3f} at {shares[-1]:.0%})")
            sentences.append(
                f"{metric_title}, mean over the {len(members)} datasets with {side}: CC-Rasch without gold is beaten, "
                f"beyond chance, by {'; by '.join(said)}."
            )
    return sentences


def _table(rows: Sequence[GoldRow], datasets: Sequence[DatasetInfo], metric: str, title: str) -> TextTable:
    means = _means(rows, metric)
    shares = sorted({row.share for row in rows})
    contenders = list(dict.fromkeys(row.contender for row in rows))
    sides = _sides(datasets)
    columns = []
    for members in sides.values():
        for share in shares:
            values: list[float | None] = [
                float(np.mean([means[info.slug, share, name] for info in members])) for name in contenders
            ]
            columns.append(ranked(values, [f"{value:.3f}" for value in values]))
    return TextTable(
        ["Method", *(f"{share:.0%}" for _ in sides for share in shares)],
        [(name, *(column[place] for column in columns)) for place, name in enumerate(contenders)],
        caption=f"{title} by share of gold, mean over datasets.",
        groups=[(f"{side} ({len(members)} datasets)", len(shares)) for side, members in sides.items()],
    )
