"""What features add to votes: our fit with and without features, and rival methods, by votes per item.

Votes are thinned at random to one, two and three per item, the same draws for all contenders, and all are scored
against the truth. A run is stored in its own file (:mod:`rarevote.study.kept`), so that the study can resume. Means
are over datasets with equal weights; differences are paired by dataset, and their intervals resample groups of
related datasets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from math import inf
from pathlib import Path
from statistics import fmean, median
from typing import Any, ClassVar

import altair as alt
import numpy as np

from rarevote import __version__
from rarevote.charts.svg import Chart, colours, drawn_from, light, themed
from rarevote.crowd.words import counted
from rarevote.errors import InputError, ParameterError
from rarevote.study.experiment import Account, Experiment
from rarevote.study.feature_contenders import CONTENDERS, TITLES, FeatureContender, marks_of, timed_answers
from rarevote.study.feature_sets import FeaturedCrowd, FeatureSetInfo, load_feature_set
from rarevote.study.figures import Axis, line_chart, look, marks_with_intervals
from rarevote.study.kept import as_key, file_name, read_kept, write_kept
from rarevote.study.measures import Measure
from rarevote.study.paired import bootstrap_interval
from rarevote.study.pool import Report
from rarevote.study.tables import ABSENT, StudyTable, TableCell, ranked, signed

ALL = "all"
LEVELS = ("1", "2", "3", ALL)
BASE, OURS = "votes", "features"
MEAN_OF_SETS = "mean of sets"
COST = "cpu_ratio"
MARKS = {
    "average_precision": Measure("Average precision"),
    "log_loss": Measure("Log loss", -1),
    "balanced_accuracy": Measure("Balanced accuracy"),
    "balanced_accuracy_same_rule": Measure("Balanced accuracy, one rule for all"),
    "flags_90_per_item": Measure("Flags for 90% recall, per true item", -1),
}
_KEYS = [
    look(TITLES[name], colour)
    for name, colour in {
        "votes": "black", "features": "vermillion", "pred-probs": "orange", "raykar": "blue", "crowdlab": "green",
        "ccgpfl": "purple", "ccgpfl-votes": "sky",
    }.items()
]  # fmt: skip


def check_levels(levels: Sequence[str]) -> list[str]:
    """The numbers of votes, sorted.

    Raises:
        ParameterError: one is neither a whole number of at least 1 nor "all".
    """
    wrong = [text for text in levels if text != ALL and not (text.isdecimal() and int(text) > 0)]
    if wrong:
        raise ParameterError(f"votes per item must be whole numbers of at least 1, or {ALL}: got {wrong[0]!r}")
    return sorted(set(levels), key=_place)


def _place(votes: str) -> float:
    return inf if votes == ALL else float(votes)


@dataclass(frozen=True)
class FeatureRow:
    """One run of one contender; without figures if it has no answer; ``reason`` says why."""

    dataset: str
    source_group: str
    votes: str
    seed: int
    contender: str
    average_precision: float | None = None
    log_loss: float | None = None
    balanced_accuracy: float | None = None
    balanced_accuracy_same_rule: float | None = None
    flags_90_per_item: float | None = None
    used: bool | None = None
    cpu_seconds: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class FeatureMean:
    """The mean of a figure over the runs on a dataset, or over datasets.

    Attributes:
        dataset: its name, or :data:`MEAN_OF_SETS`.
        votes: votes per item.
        contender: name of the contender.
        figure: name of the figure.
        sets: number of datasets.
        runs: number of runs.
        mean: the mean.
        difference: difference from votes only, on the same datasets.
        low: lower end of the 95% interval of the difference; only for means over datasets.
        high: upper end.
    """

    dataset: str
    votes: str
    contender: str
    figure: str
    sets: int
    runs: int
    mean: float
    difference: float | None
    low: float | None = None
    high: float | None = None


@cache
def _load(info: FeatureSetInfo) -> FeaturedCrowd:
    return load_feature_set(info)


@dataclass(frozen=True)
class FeatureTrial:
    """One contender on one draw of the votes of one dataset.

    Attributes:
        info: the dataset.
        votes: votes per item, a number or "all".
        seed: seed of the draw, and of a contender that uses random numbers.
        contender: its name.
        folder: the folder for finished runs.
    """

    info: FeatureSetInfo
    votes: str
    seed: int
    contender: str
    folder: Path

    def run(self) -> list[FeatureRow]:
        """Its rows, from an earlier run or computed now."""
        crowd = _load(self.info)
        key = as_key(
            {
                "dataset": self.info.slug, "votes": self.votes, "seed": self.seed, "contender": self.contender,
                "settings": CONTENDERS[self.contender].settings(), "version": __version__, "data": crowd.digest,
            }
        )  # fmt: skip
        path = self.folder / file_name(f"{self.info.slug}.{self.votes}.{self.contender}.{self.seed}", key)
        kept = read_kept(path, key)
        try:
            return [FeatureRow(**row) for row in (kept or {})["rows"]]
        except (KeyError, TypeError):
            pass  # absent, or changed by hand: run again
        rows = self._rows(crowd)
        self.folder.mkdir(parents=True, exist_ok=True)
        write_kept(path, key, {"rows": [asdict(row) for row in rows]})
        return rows

    def _rows(self, crowd: FeaturedCrowd) -> list[FeatureRow]:
        contender = CONTENDERS[self.contender]
        place = (self.info.slug, self.info.source_group, self.votes, self.seed)
        thinned = crowd if self.votes == ALL else crowd.thinned(int(self.votes), self.seed)
        try:
            answers, seconds = timed_answers(contender, thinned, self.seed)
        except InputError as error:
            return [FeatureRow(*place, name, reason=str(error)) for name in contender.titles]
        return [
            FeatureRow(*place, name, **marks_of(answer, crowd), used=answer.used, cpu_seconds=seconds)
            for name, answer in answers.items()
        ]


@dataclass(frozen=True)
class FeatureStudy(Experiment):
    """The comparison.

    Attributes:
        datasets: the datasets to use.
        contenders: the contenders to compare.
        folder: the folder for finished runs.
        n_seeds: draws of the votes at each number of votes.
        n_random_seeds: likewise for contenders that use random numbers, which are slow; also with all votes.
        levels: votes per item.
        random_levels: likewise for contenders that use random numbers; all of ``levels`` if None.
        notes: notes to show beside the results.
    """

    name = "features"
    title = "Votes and features"
    unit = "runs"
    kinds: ClassVar = {"features": FeatureRow, "features_means": FeatureMean}

    datasets: Sequence[FeatureSetInfo]
    contenders: Sequence[FeatureContender]
    folder: Path
    n_seeds: int = 5
    n_random_seeds: int = 1
    levels: Sequence[str] = LEVELS
    random_levels: Sequence[str] | None = None
    notes: Sequence[str] = ()

    def trials(self) -> list[FeatureTrial]:
        """Every contender on every draw; the slowest come last."""
        return [
            FeatureTrial(info, votes, seed, contender.name, self.folder)
            for contender in self.contenders
            for info in self.datasets
            for votes in _distinct(self._levels(contender), info)
            for seed in range(self._seeds(contender, votes))
        ]

    def _levels(self, contender: FeatureContender) -> Sequence[str]:
        return self.random_levels if contender.is_random and self.random_levels is not None else self.levels

    def _seeds(self, contender: FeatureContender, votes: str) -> int:
        if contender.is_random:
            return self.n_random_seeds
        return 1 if votes == ALL else self.n_seeds

    def rows(self, n_jobs: int | None = None, report: Report | None = None) -> list[Any]:
        """The rows of all runs, and their means."""
        found: list[FeatureRow] = super().rows(n_jobs, report)
        # If no item has more votes than this number, it means all votes.
        levels = {name: self._levels(one) for one in self.contenders for name in one.titles}
        absent = {
            (info.slug, name): [votes for votes in of_name if votes not in _distinct(of_name, info)]
            for info in self.datasets
            for name, of_name in levels.items()
        }
        copies = [
            replace(row, votes=votes)
            for row in found
            if row.votes == ALL
            for votes in absent[row.dataset, row.contender]
        ]
        runs = [row for row in [*found, *copies] if row.votes in levels[row.contender]]
        return [*runs, *means_of(runs)]

    def account(self, rows: Sequence[Any]) -> Account:
        """A chart of all figures, the chart of the README, and a table per figure."""
        runs = [row for row in rows if isinstance(row, FeatureRow)]
        means = [row for row in rows if isinstance(row, FeatureMean)]
        reasons = dict.fromkeys(
            f"{TITLES[row.contender]}, {_heading(row.votes)}: {row.reason}" for row in runs if row.reason
        )
        slow = [one for one in self.contenders if one.is_random]
        said = [
            f"{TITLES[name]}: {counted(self.n_random_seeds, 'seed')}, {', '.join(self._levels(one))} votes per item."
            for one in slow
            for name in one.titles
        ]
        caption = f"Means over {counted(len(self.datasets), 'dataset')}, with 95% intervals (t) over them."
        return Account(
            findings=findings(means),
            charts=[*([worth_chart(means)] if _shows_worth(means) else []), _marks_chart(means, caption)],
            tables=[_table(means, figure, self.levels) for figure in MARKS],
            settings=[
                f"Datasets: {', '.join(info.slug for info in self.datasets)}. The rarest true class of each.",
                f"Votes thinned at random to that many per item, {counted(self.n_seeds, 'draw')}, the same for all "
                "contenders; contenders without random numbers are run once with all votes.",
                *said,
                "pred_probs and CROWDLAB have the same probabilities: a logistic regression on shares of votes, in "
                "five folds. CCGPFL sees 20 principal components. Labels are each contender's own: ours by its "
                "balanced rule, the most probable class of the others.",
                *self.notes,
                *reasons,
            ],
        )


def _distinct(levels: Sequence[str], info: FeatureSetInfo) -> list[str]:
    """The numbers of votes that are fewer than all votes of a dataset, and "all" if it is among them."""
    most = _load(info).most_votes()
    fewer = [votes for votes in levels if votes != ALL and int(votes) < most]
    return fewer if len(fewer) == len(levels) else [*fewer, ALL]


# --------------------------------------------------------------------------------------------------------------------
# means


def means_of(runs: Sequence[FeatureRow]) -> list[FeatureMean]:
    """Means of every figure by dataset and over datasets, in the order of the runs; then the costs."""
    values: dict[tuple[str, str, str], dict[str, list[float]]] = {}
    group = {row.dataset: row.source_group for row in runs}
    for figure in MARKS:
        for row in runs:
            if (value := getattr(row, figure)) is not None:
                values.setdefault((figure, row.votes, row.contender), {}).setdefault(row.dataset, []).append(value)
    found = []
    for (figure, votes, contender), by_set in values.items():
        own = {name: fmean(numbers) for name, numbers in by_set.items()}
        base = {name: fmean(numbers) for name, numbers in values.get((figure, votes, BASE), {}).items()}
        runs_of = {name: len(numbers) for name, numbers in by_set.items()}
        place = (votes, contender, figure)
        for name, value in own.items():
            difference = value - base[name] if name in base else None
            found.append(FeatureMean(name, *place, 1, runs_of[name], value, difference))
        both = [name for name in own if name in base]
        gaps = [own[name] - base[name] for name in both]
        groups = [group[name] for name in both]
        interval = bootstrap_interval(gaps, groups) if len(set(groups)) > 1 else (None, None)
        mean = fmean(gaps) if gaps else None
        found.append(
            FeatureMean(MEAN_OF_SETS, *place, len(own), sum(runs_of.values()), fmean(own.values()), mean, *interval)
        )
    return [*found, *_costs(runs)]


def _costs(runs: Sequence[FeatureRow]) -> Iterator[FeatureMean]:
    """Processor time of each contender relative to our fit with features, by dataset; including compilation."""
    seconds: dict[tuple[str, str], dict[str, list[float]]] = {}
    for row in runs:
        if row.cpu_seconds is not None:
            seconds.setdefault((row.dataset, row.votes), {}).setdefault(row.contender, []).append(row.cpu_seconds)
    for (dataset, votes), by_name in seconds.items():
        for name, times in by_name.items():
            if OURS in by_name:
                ratio = fmean(times) / fmean(by_name[OURS])
                yield FeatureMean(dataset, votes, name, COST, 1, len(times), ratio, None)


def over_sets(means: Sequence[FeatureMean], figure: str) -> dict[tuple[str, str], FeatureMean]:
    """The means of a figure over datasets, by contender and votes."""
    return {(one.contender, one.votes): one for one in means if (one.dataset, one.figure) == (MEAN_OF_SETS, figure)}


def worth_in_votes(means: Sequence[FeatureMean], votes: int = 1) -> float | None:
    """How many votes without features rank as well as ``votes`` with features; None if beyond the levels run."""
    found = over_sets(means, "average_precision")
    known = {int(level): one.mean for (name, level), one in found.items() if name == BASE and level != ALL}
    ours = found.get((OURS, str(votes)))
    numbers = sorted(known)
    if ours is None or len(numbers) < 2 or not known[numbers[0]] <= ours.mean <= known[numbers[-1]]:
        return None
    return float(np.interp(ours.mean, [known[number] for number in numbers], numbers))


def findings(means: Sequence[FeatureMean]) -> list[str]:
    """What features add, what they are worth in votes, and what a rival costs, as sentences with the figures."""
    found = over_sets(means, "average_precision")
    sentences = []
    for (name, votes), one in found.items():
        if name == OURS and one.difference is not None:
            sentences.append(
                f"{_heading(votes)}: average precision {one.mean - one.difference:.3f} with votes only, {one.mean:.3f} "
                f"with features; {_interval(one)}, {counted(one.sets, 'dataset')}."
            )
    worth = worth_in_votes(means)
    if worth is not None:
        sentences.append(f"One vote per item with features ranks the rare class as well as {worth:.1f} votes without.")
    ratios = [one.mean for one in means if (one.contender, one.figure) == ("ccgpfl", COST) and one.sets == 1]
    if ratios:
        sentences.append(
            f"CCGPFL takes {median(ratios):,.0f} times the processor time of our fit with features "
            f"({min(ratios):,.0f} to {max(ratios):,.0f})."
        )
    return sentences


# --------------------------------------------------------------------------------------------------------------------
# tables and charts


def _table(means: Sequence[FeatureMean], figure: str, levels: Sequence[str]) -> StudyTable:
    found = over_sets(means, figure)
    names = [name for name in TITLES if any(one == name for one, _ in found)]
    columns: list[list[TableCell]] = []
    for votes in levels:
        of_level = [found.get((name, votes)) for name in names]
        columns.append(ranked([None if one is None else one.mean for one in of_level], better=MARKS[figure].better))
        columns.append([TableCell(_interval(one)) for one in of_level])
    sets = max((one.sets for one in found.values()), default=0)
    fewer = [f"{TITLES[name]} at {votes}: {one.sets}" for (name, votes), one in found.items() if one.sets < sets]
    return StudyTable(
        ["Contender", *(heading for votes in levels for heading in (_heading(votes), "less votes only"))],
        list(zip((TITLES[name] for name in names), *columns, strict=True)),
        caption=f"{MARKS[figure].heading}, mean over {counted(sets, 'dataset')}, by votes per item.",
        notes=(f"Datasets, where fewer: {'; '.join(fewer)}.",) if fewer else (),
    )


def _interval(one: FeatureMean | None) -> str:
    if one is None or one.difference is None or one.contender == BASE:
        return ABSENT
    # A single group has no standard deviation.
    ends = "" if one.low is None or one.high is None else f" ({signed(one.low)} to {signed(one.high)})"
    return f"{signed(one.difference)}{ends}"


def _heading(votes: str) -> str:
    return "All votes" if votes == ALL else counted(int(votes), "vote")


def _levels_in(means: Sequence[FeatureMean]) -> list[str]:
    return sorted({one.votes for one in means}, key=_place)


def _marks_chart(means: Sequence[FeatureMean], caption: str) -> Chart:
    numbers = [int(votes) for votes in _levels_in(means) if votes != ALL]
    x = {ALL: max(numbers, default=0) + 1, **{str(number): number for number in numbers}}
    marks = marks_with_intervals(
        (MARKS[one.figure].title, TITLES[one.contender], float(x[one.votes]), one.mean)
        for one in means
        if one.dataset != MEAN_OF_SETS and one.figure in ("average_precision", "balanced_accuracy")
    )
    words = f"votes per item ({x[ALL]}: all)"
    title = f"Votes and features, by {words}"
    spec = line_chart(
        marks, title=title, x=Axis(words, ticks=sorted(x.values())), y=Axis(""), keys=_KEYS, columns=2,
        size=(330, 250), same_y=False,
    )  # fmt: skip
    return Chart("features_marks", title, caption, (), spec)


#: series of the README's figure, the label of its line and its colour
_WORTH = {"features": ("votes and features", "rare"), "votes": ("votes only", "vote")}


def _shows_worth(means: Sequence[FeatureMean]) -> bool:
    return set(_WORTH) <= {one.contender for one in means}


def worth_chart(means: Sequence[FeatureMean]) -> Chart:
    """What features are worth in votes: average precision with and without features, by votes per item."""
    found = over_sets(means, "average_precision")
    rows: list[dict[str, Any]] = [
        {"series": words, "votes": votes, "ap": found[name, votes].mean, "text": f"{found[name, votes].mean:.2f}"}
        for name, (words, _) in _WORTH.items()
        for votes in _levels_in(means)
        if (name, votes) in found
    ]
    lowest = min(row["ap"] for row in rows)
    base = drawn_from(
        rows,
        x=alt.X("votes:O", title="votes per item", sort=_levels_in(means), axis=alt.Axis(labelAngle=0, grid=False)),
        y=alt.Y(
            "ap:Q",
            title="average precision of the rare class",
            scale=alt.Scale(domain=[np.floor(10 * lowest) / 10, 1.0]),
            axis=alt.Axis(tickCount=5, format=".1f"),
        ),
    )
    keys = [look(words, "black") for words, _ in _WORTH.values()]
    palette = [replace(key, colour=colour) for key, (_, colour) in zip(keys, _WORTH.values(), strict=True)]
    colour = colours("series", palette).legend(columnPadding=28)
    line = base.mark_line(strokeWidth=2.5).encode(color=colour)
    dots = base.mark_point(filled=True, size=70, opacity=1).encode(color=colour)
    figures = [
        base.transform_filter(alt.FieldEqualPredicate(words, "series"))
        .mark_text(dy=-14 if name == OURS else 18, fontSize=13, color=light("ink"))
        .encode(text="text:N")
        for name, (words, _) in _WORTH.items()
    ]
    sets = max((one.sets for one in found.values()), default=0)
    return Chart(
        "features_worth",
        "What a feature is worth in votes",
        f"Average precision of the rarest class, mean over {counted(sets, 'dataset')}, by votes per item.",
        (),
        themed(alt.layer(line, dots, *figures).properties(width=520, height=260, background=light("paper"))),
    )
