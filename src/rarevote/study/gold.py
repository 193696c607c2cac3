"""Is gold needed? Methods that learn from gold compared with CC-Rasch without gold (Figure 2 of the paper).

The truth of a share of the items is revealed. Gold majority vote and gold Dawid–Skene learn about the workers from
these items alone and then label the rest. CC-Rasch is fitted twice: without gold, only on the rest, as in the paper;
and on everything with the same gold clamped, which is not in the paper. Majority vote on the rest is the reference. All
are scored on the same other items.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rarevote.charts.svg import Chart
from rarevote.crowd.annotations import Annotations
from rarevote.crowd.words import percent
from rarevote.errors import InputError, ParameterError
from rarevote.scoring.metrics import minority_class, score
from rarevote.study.datasets import (
    DatasetInfo,
    datasets_of_folder,
    find_dataset,
    list_datasets,
    load_annotations,
    locate,
)
from rarevote.study.experiment import METRICS, Account, Experiment, fit_quietly
from rarevote.study.figures import Axis, Mark, line_chart, look, marks_with_intervals
from rarevote.study.measures import MeanInterval, mean_interval
from rarevote.study.tables import StudyTable, ranked

SHARES = (0.01, 0.02, 0.05, 0.10, 0.20, 0.50)
BALANCED, IMBALANCED = 1.3, 3.0
PER_SIDE = 4
# Below this, the rest has too few rare items for a meaningful recall.
MIN_ITEMS = 200


@dataclass(frozen=True)
class Contender:
    """A method and whether it gets the gold."""

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
_KEYS = [
    look(one.title, colour)
    for one, colour in zip(CONTENDERS, ("black", "orange", "blue", "vermillion", "purple"), strict=True)
]
_CC_RASCH_ALONE = "CC-Rasch without gold"


@dataclass(frozen=True)
class GoldRow:
    """The scores of one contender on the items whose truth it did not get."""

    dataset: str
    share: float
    seed: int
    contender: str
    n_gold: int
    n_scored: int
    minority_recall: float
    balanced_accuracy: float
    accuracy: float


@dataclass(frozen=True, eq=False)
class NumberedCrowd:
    """A dataset as integers: task, worker and label of every vote, and the class of every task, or -1."""

    task: NDArray[np.int64]
    worker: NDArray[np.int64]
    label: NDArray[np.int64]
    truth: NDArray[np.int64]
    n_classes: int
    rare: int


def number(crowd: Annotations, truth: dict[Any, Any]) -> NumberedCrowd:
    """Replace names by numbers, which are fastest to split and refit."""
    # A class that only the truth names also counts in the scores.
    classes = [*crowd.classes.tolist(), *sorted(set(truth.values()) - set(crowd.classes.tolist()))]
    code = {name: place for place, name in enumerate(classes)}
    known = np.array([code[truth[task]] if task in truth else -1 for task in crowd.tasks.tolist()], dtype=np.int64)
    votes = (crowd.task_of_annotation(), crowd.worker, crowd.label)
    task, worker, label = (column.astype(np.int64) for column in votes)
    return NumberedCrowd(task, worker, label, known, len(classes), code[minority_class(list(truth.values()))])


@cache
def _load(dataset: str, data: str | None) -> NumberedCrowd:
    with warnings.catch_warnings():
        # The study warns about the data once, not once per process.
        warnings.simplefilter("ignore")
        return number(*load_annotations(dataset, data=data))


@dataclass(frozen=True)
class GoldTrial:
    """One draw of gold items."""

    dataset: str
    data: str | None
    share: float
    seed: int
    contenders: tuple[Contender, ...]

    def run(self) -> list[GoldRow]:
        """Reveal a share of the truth and score every contender on the rest."""
        crowd = _load(self.dataset, self.data)
        known = np.flatnonzero(crowd.truth >= 0)
        # The gold of a smaller share is part of the gold of a larger one: this lowers the noise between points of a
        # line.
        order = np.random.default_rng(self.seed).permutation(known)
        n_gold = max(1, int(self.share * len(known)))
        scored = order[n_gold:]
        rows = []
        for contender in self.contenders:
            answer = _answers(crowd, contender, order[:n_gold], self.seed)
            found = score(crowd.truth[scored], answer[scored])
            # Rare in the whole dataset: in a balanced one, the rarest class of the rest can differ between draws.
            scores = (found.recall.get(crowd.rare, float("nan")), found.balanced_accuracy, found.accuracy)
            place = (self.dataset, self.share, self.seed, contender.title)
            rows.append(GoldRow(*place, n_gold, len(scored), *scores))
        return rows


def _answers(crowd: NumberedCrowd, contender: Contender, gold: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """The class that a contender gives each task, or -1: with the gold, or from the votes on the rest alone."""
    classes = list(range(crowd.n_classes))
    votes = (crowd.task, crowd.worker, crowd.label)
    if contender.gold:
        given = {int(task): int(crowd.truth[task]) for task in gold}
        fitted = fit_quietly(contender.method, seed, votes, true_labels=given, classes=classes)
    else:
        of_rest = ~np.isin(crowd.task, gold)
        fitted = fit_quietly(contender.method, seed, tuple(column[of_rest] for column in votes), classes=classes)
    answer = np.full(len(crowd.truth), -1, dtype=np.int64)
    answer[fitted.annotations_.task_names().astype(np.int64)] = fitted.label_codes()
    return answer


def choose_datasets(data: Path | None = None, names: Sequence[str] | None = None) -> list[DatasetInfo]:
    """The datasets to use: those named, or the largest available balanced and imbalanced ones, one per source.

    A folder without datasets of the paper gives all of its datasets that are large enough.

    Datasets of one source share items or workers and would count the same evidence twice.

    Raises:
        InputError: none is available, or a named one is not.
    """
    if names is not None:
        chosen = [find_dataset(name, data=data) for name in names]
        for info in chosen:
            if locate(info, data=data) is None:
                raise InputError(f"dataset {info.slug} was not found: give its folder with --data, or fetch it first")
        return chosen
    at_hand = [info for info in list_datasets() if (info.n_items_truth or 0) >= MIN_ITEMS]
    at_hand = [info for info in at_hand if info.paper_name and locate(info, data=data) is not None]
    if not at_hand:
        own = [info for info in datasets_of_folder(data) if (info.n_items_truth or 0) >= MIN_ITEMS]
        if own:
            return own
        raise InputError(
            "no benchmark dataset was found: give their folder with --data or RAREVOTE_DATA, or fetch some"
        )
    at_hand.sort(key=lambda info: (-(info.n_items_truth or 0), -(info.n_annotations or 0)))
    chosen = []
    for side in (
        [info for info in at_hand if info.imbalance < BALANCED],
        [info for info in at_hand if info.imbalance > IMBALANCED],
    ):
        first_of_source = {info.source_group: info for info in reversed(side)}
        chosen += [info for info in side if first_of_source[info.source_group] is info][:PER_SIDE]
    return chosen


@dataclass(frozen=True)
class GoldStudy(Experiment):
    """The comparison.

    Attributes:
        datasets: the datasets to use.
        data: folder of datasets, see :mod:`rarevote.study.datasets`.
        methods: only contenders of these methods; all if None.
        n_seeds: number of draws of gold at every share.
        shares: shares of items with gold.

    Raises:
        ParameterError: no contender is of these methods.
    """

    name = "gold"
    title = "With and without gold (Figure 2)"
    unit = "draws of gold"
    kinds: ClassVar = {"gold": GoldRow}

    datasets: Sequence[DatasetInfo]
    data: Path | None = None
    methods: Sequence[str] | None = None
    n_seeds: int = 20
    shares: Sequence[float] = SHARES

    def __post_init__(self) -> None:
        if not self.contenders:
            raise ParameterError(f"this study compares {', '.join(dict.fromkeys(one.method for one in CONTENDERS))}")

    @property
    def contenders(self) -> tuple[Contender, ...]:
        """The contenders that take part."""
        return tuple(one for one in CONTENDERS if self.methods is None or one.method in self.methods)

    def trials(self) -> list[GoldTrial]:
        """Every draw of every share; the largest datasets first, so that none is left for a single core at the end."""
        folder = None if self.data is None else str(self.data)
        return [
            GoldTrial(info.slug, folder, share, seed, self.contenders)
            for info in sorted(self.datasets, key=lambda info: -(info.n_annotations or 0))
            for share in self.shares
            for seed in range(self.n_seeds)
        ]

    def rows(self, n_jobs: int | None = None, report: Any = None) -> list[GoldRow]:
        """The rows in the order of the datasets."""
        place = {info.slug: number for number, info in enumerate(self.datasets)}
        return sorted(super().rows(n_jobs, report), key=lambda row: place[row.dataset])

    def account(self, rows: Sequence[GoldRow]) -> Account:
        """A chart and a table per metric."""
        caption = (
            f"Mean and 95% interval (t) over {self.n_seeds} draws of the gold items; every panel has its own vertical "
            "scale. The rare class is that of the whole dataset."
        )
        return Account(
            findings=findings(rows, self.datasets),
            charts=[_chart(marks(rows, self.datasets, name), name, caption) for name in METRICS],
            tables=[_table(rows, self.datasets, metric) for metric in METRICS],
            settings=[
                f"Datasets: {', '.join(map(_panel, self.datasets))}. Chosen without names: the {PER_SIDE} with most "
                f"known items on either side (Imb < {BALANCED:g}, Imb > {IMBALANCED:g}), one per source, at least "
                f"{MIN_ITEMS} known items.",
                "Majority vote and CC-Rasch without gold see only the items that are not gold; the others see all "
                "votes. The gold of a smaller share is part of that of a larger one.",
                *_oddities(self.datasets, self.data),
            ],
        )


def _oddities(datasets: Sequence[DatasetInfo], data: Path | None) -> list[str]:
    """Warnings from loading the datasets, such as truth of tasks without votes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for info in datasets:
            load_annotations(info, data=data)
    return [str(warning.message) for warning in caught]


def _panel(info: DatasetInfo) -> str:
    return f"{info.slug} (Imb {info.imbalance:g})"


def marks(rows: Sequence[GoldRow], datasets: Sequence[DatasetInfo], metric: str) -> list[Mark]:
    """Means and intervals over seeds, a panel per dataset."""
    panel = {info.slug: _panel(info) for info in datasets}
    return marks_with_intervals(
        (panel[row.dataset], row.contender, row.share, float(getattr(row, metric))) for row in rows
    )


def _chart(found: Sequence[Mark], metric: str, caption: str) -> Chart:
    shares = sorted({mark.x for mark in found})
    spec = line_chart(
        found,
        title=f"{METRICS[metric]}, with and without gold",
        x=Axis("share of items with gold", log=True, ticks=shares, format=".0%", domain=(shares[0], shares[-1])),
        y=Axis(""),
        keys=_KEYS,
        columns=4,
        size=(215, 180),
        same_y=False,
    )
    return Chart(f"gold_{metric}", f"{METRICS[metric]} on the items without gold", caption, (), spec)


# --------------------------------------------------------------------------------------------------------------------
# results


def _sides(datasets: Sequence[DatasetInfo]) -> dict[str, list[DatasetInfo]]:
    sides = {
        f"Imb < {BALANCED:g}": [info for info in datasets if info.imbalance < BALANCED],
        f"Imb > {IMBALANCED:g}": [info for info in datasets if info.imbalance > IMBALANCED],
        "in between": [info for info in datasets if BALANCED <= info.imbalance <= IMBALANCED],
    }
    return {title: members for title, members in sides.items() if members}


def lead(
    rows: Sequence[GoldRow], members: Sequence[DatasetInfo], metric: str, share: float, rival: str, base: str
) -> MeanInterval:
    """How far ``rival`` is ahead of ``base`` on average over datasets, paired by draw, with its interval."""
    slugs = {info.slug for info in members}
    by_seed: dict[int, list[float]] = {}
    for row in rows:
        if row.dataset in slugs and row.share == share and row.contender in (rival, base):
            value = float(getattr(row, metric)) * (1 if row.contender == rival else -1)
            by_seed.setdefault(row.seed, []).append(value)
    return mean_interval([sum(values) / len(slugs) for values in by_seed.values()])


def findings(rows: Sequence[GoldRow], datasets: Sequence[DatasetInfo]) -> list[str]:
    """From which share gold beats CC-Rasch without gold, and what clamping adds, as sentences with the figures."""
    shown = {row.contender for row in rows}
    rivals = [one.title for one in CONTENDERS if one.gold and one.title in shown]
    if _CC_RASCH_ALONE not in shown or not rivals:
        return []
    sentences: list[str] = []
    shares = sorted({row.share for row in rows})
    for metric, metric_title in METRICS.items():
        for side, members in _sides(datasets).items():
            said = []
            for rival in rivals:
                leads = {share: lead(rows, members, metric, share, rival, _CC_RASCH_ALONE) for share in shares}
                # The share from which the rival stays ahead.
                lasting = [x for x in shares if all(leads[later].low > 0 for later in shares if later >= x)]
                where = f"from {percent(lasting[0])} gold on" if lasting else "at no share tried"
                said.append(f"{rival} {where} ({leads[shares[-1]].mean:+.3f} at {percent(shares[-1])})")
            sentences.append(
                f"{metric_title}, mean over the {len(members)} datasets with {side}: CC-Rasch without gold is beaten, "
                f"beyond chance, by {'; by '.join(said)}."
            )
    return sentences


def _table(rows: Sequence[GoldRow], datasets: Sequence[DatasetInfo], metric: str) -> StudyTable:
    groups: dict[tuple[str, float, str], list[float]] = {}
    for row in rows:
        groups.setdefault((row.dataset, row.share, row.contender), []).append(float(getattr(row, metric)))
    means = {place: float(np.nanmean(values)) for place, values in groups.items()}
    shares = sorted({row.share for row in rows})
    contenders = list(dict.fromkeys(row.contender for row in rows))
    sides = _sides(datasets)
    columns = [
        ranked([float(np.mean([means[info.slug, share, name] for info in members])) for name in contenders])
        for members in sides.values()
        for share in shares
    ]
    return StudyTable(
        ["Method", *(percent(share) for _ in sides for share in shares)],
        list(zip(contenders, *columns, strict=True)),
        caption=f"{METRICS[metric]} by share of gold, mean over datasets.",
        groups=[(f"{side} ({len(members)} datasets)", len(shares)) for side, members in sides.items()],
    )
