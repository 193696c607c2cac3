"""Simulated crowds with known truth: how the rare class fares as its specialists vanish (Figure 1 of the paper).

Three sweeps over the crowd of :func:`rarevote.simulate.crowds.simulate_crowd`, one parameter at a time.
*Specialists* is from the paper: a quarter of the workers is good at both classes, a quarter at neither, and the rest
changes from specialists of the rare class to specialists of the frequent one. *Imbalance* and *votes* are ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import floor
from typing import ClassVar

from rarevote.charts.svg import Chart
from rarevote.crowd.words import percent
from rarevote.methods.registry import method_title
from rarevote.simulate.crowds import DEFAULT_ACCURACIES, simulate_crowd
from rarevote.study.experiment import METRICS, Account, Experiment, fit_simulated
from rarevote.study.figures import Axis, Mark, line_chart, marks_with_intervals
from rarevote.study.libraries import library
from rarevote.study.measures import MeanInterval, mean_interval
from rarevote.study.tables import StudyTable

RARE, FREQUENT = 1, 0
#: methods whose recall the paper says falls more steeply than that of CC-Rasch
RIVALS = ("majority-vote", "dawid-skene", "glad")


@dataclass(frozen=True)
class CrowdSettings:
    """The crowd of all sweeps, except for what a sweep changes. The paper states neither accuracies nor crowd size."""

    n_tasks: int = 3000
    n_workers: int = 60
    imbalance: float = 7.0
    votes_per_task: float = 8.0
    p_good: float = 0.25
    p_majority: float = 0.25
    p_minority: float = 0.25
    p_bad: float = 0.25
    hard_share: float = 0.3
    hard_penalty: float = 0.15
    accuracies: Mapping[str, Sequence[float]] = field(default_factory=lambda: dict(DEFAULT_ACCURACIES))

    def in_words(self) -> str:
        """The settings as a sentence for the caption of a figure."""
        accuracies = "; ".join(f"{name} {row[FREQUENT]:g} / {row[RARE]:g}" for name, row in self.accuracies.items())
        return (
            f"{self.n_tasks:,} tasks, {self.n_workers} workers, imbalance {self.imbalance:g}, "
            f"1 + Poisson({self.votes_per_task - 1:g}) votes per task; workers {percent(self.p_good)} good, "
            f"{percent(self.p_majority)} majority specialists, {percent(self.p_minority)} minority specialists, "
            f"{percent(self.p_bad)} bad, unless the figure says otherwise. Accuracy on easy tasks of the frequent / "
            f"rare class: {accuracies}. {percent(self.hard_share)} of the tasks are hard, which takes "
            f"{self.hard_penalty:g} off."
        )


@dataclass(frozen=True)
class Sweep:
    """A sweep over one parameter of the crowd.

    Attributes:
        name: name of the sweep and of its figure.
        title: title of the figure.
        axis: title of the axis.
        values: the values of the parameter.
    """

    name: str
    title: str
    axis: Axis
    values: tuple[float, ...]

    def settings_at(self, x: float) -> dict[str, float]:
        """The parameters of the crowd that differ at ``x``."""
        if self.name == "specialists":
            return {"p_majority": x, "p_minority": 0.5 - x, "p_good": 0.25, "p_bad": 0.25}
        return {"imbalance": x} if self.name == "imbalance" else {"votes_per_task": x}

    def in_words(self, x: float) -> str:
        """A description of the crowd at ``x``."""
        if self.name == "specialists":
            return f"{percent(x)} majority specialists and no minority specialists"
        return f"an imbalance of {x:g}" if self.name == "imbalance" else f"{x:g} votes per task"


def _log_axis(title: str, values: Sequence[float]) -> Axis:
    return Axis(title, log=True, ticks=values, domain=(values[0], values[-1]))


_SHARES = tuple(step / 20 for step in range(11))
_RATIOS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
_VOTES = (2.0, 3.0, 5.0, 8.0, 12.0, 20.0, 30.0)
SWEEPS = (
    Sweep(
        "specialists",
        "As minority specialists give way to majority specialists",
        Axis("share of majority specialists (rest of 50%: minority specialists)", format=".0%"),
        _SHARES,
    ),
    Sweep("imbalance", "As the rare class gets rarer", _log_axis("largest class / smallest class", _RATIOS), _RATIOS),
    Sweep("votes", "As tasks get more votes", _log_axis("mean votes per task", _VOTES), _VOTES),
)


@dataclass(frozen=True)
class SyntheticRow:
    """The scores of one method on one crowd."""

    sweep: str
    x: float
    seed: int
    method: str
    minority_recall: float
    balanced_accuracy: float
    macro_f1: float
    accuracy: float
    converged: bool


@dataclass(frozen=True)
class SweepTrial:
    """One crowd to draw, and the methods to run on it."""

    sweep: Sweep
    x: float
    seed: int
    methods: tuple[str, ...]
    crowd: CrowdSettings

    def run(self) -> list[SyntheticRow]:
        """Draw the crowd and score every method on it."""
        settings = {**vars(self.crowd), **self.sweep.settings_at(self.x)}
        crowd = simulate_crowd(**settings, random_state=self.seed)
        rows = []
        for name in self.methods:
            model, found = fit_simulated(name, self.seed, crowd, [FREQUENT, RARE])
            # The recall of the rare class by name: in a balanced crowd, either class can be the rarer one.
            scores = (found.recall.get(RARE, float("nan")), found.balanced_accuracy, found.macro_f1, found.accuracy)
            rows.append(SyntheticRow(self.sweep.name, self.x, self.seed, name, *scores, bool(model.converged_)))
        return rows


@dataclass(frozen=True)
class SyntheticStudy(Experiment):
    """The sweeps.

    Attributes:
        methods: the methods to compare.
        n_seeds: crowds at every value.
        sweeps: the sweeps to run.
        crowd: the settings that the sweeps do not change.
    """

    name = "synthetic"
    title = "Synthetic crowds (Figure 1, and two sweeps more)"
    unit = "simulated crowds"
    kinds: ClassVar = {"synthetic": SyntheticRow}

    methods: Sequence[str]
    n_seeds: int = 20
    sweeps: Sequence[Sweep] = SWEEPS
    crowd: CrowdSettings = field(default_factory=CrowdSettings)

    def trials(self) -> list[SweepTrial]:
        """Every seed at every value of every sweep."""
        return [
            SweepTrial(sweep, x, seed, tuple(self.methods), self.crowd)
            for sweep in self.sweeps
            for x in sweep.values
            for seed in range(self.n_seeds)
        ]

    def account(self, rows: Sequence[SyntheticRow]) -> Account:
        """A chart per sweep, and how much the recall of the methods changes with the specialists."""
        caption = f"Mean and 95% interval (t) over {self.n_seeds} crowds. {self.crowd.in_words()}"
        has_specialists = any(sweep.name == "specialists" for sweep in self.sweeps)
        return Account(
            findings=findings(rows, self.methods, self.sweeps),
            charts=[_chart(sweep, marks(rows, sweep.name), caption) for sweep in self.sweeps],
            tables=[_flatness_table(rows, self.methods)] if has_specialists else [],
            settings=["Seeds are shared by all methods, so that differences between methods are paired."],
        )


def marks(rows: Sequence[SyntheticRow], sweep: str) -> list[Mark]:
    """Means and intervals of a sweep, minority recall and balanced accuracy as panels."""
    return marks_with_intervals(
        (title, method_title(row.method), row.x, float(getattr(row, metric)))
        for metric, title in METRICS.items()
        for row in rows
        if row.sweep == sweep
    )


def _chart(sweep: Sweep, found: Sequence[Mark], caption: str) -> Chart:
    y = Axis("", domain=(floor(10 * min(mark.low for mark in found)) / 10, 1.0))
    spec = line_chart(found, title=sweep.title, x=sweep.axis, y=y, columns=2, size=(380, 300))
    return Chart(f"synthetic_{sweep.name}", sweep.title, caption, (), spec)


# --------------------------------------------------------------------------------------------------------------------
# results of the sweep over specialists


@dataclass(frozen=True)
class Flatness:
    """How much a method's minority recall changes as majority specialists replace minority specialists.

    Attributes:
        method: its name.
        first: mean recall with minority specialists only.
        last: mean recall with majority specialists only.
        spread: largest minus smallest mean recall.
        slope: change of recall per unit of share, with its interval over seeds.
        slopes: the slope of every seed.
    """

    method: str
    first: float
    last: float
    spread: float
    slope: MeanInterval
    slopes: tuple[float, ...]


def flatness(rows: Sequence[SyntheticRow], method: str) -> Flatness:
    """How a method's recall changes over the sweep of specialists."""
    by_seed: dict[int, dict[float, float]] = {}
    for row in rows:
        if row.sweep == "specialists" and row.method == method:
            by_seed.setdefault(row.seed, {})[row.x] = row.minority_recall
    shares = sorted(next(iter(by_seed.values())))
    means = [mean_interval([recalls[x] for recalls in by_seed.values()]).mean for x in shares]
    linregress = library("scipy.stats").linregress
    slopes = tuple(
        float(linregress(shares, [recalls[x] for x in shares]).slope) for _, recalls in sorted(by_seed.items())
    )
    return Flatness(method, means[0], means[-1], max(means) - min(means), mean_interval(slopes), slopes)


def steepness_gap(flat: Flatness, rival: Flatness) -> MeanInterval:
    """How much steeper the rival is, ``|slope| - |slope|``, paired by seed."""
    return mean_interval([abs(b) - abs(a) for a, b in zip(flat.slopes, rival.slopes, strict=True)])


def findings(rows: Sequence[SyntheticRow], methods: Sequence[str], sweeps: Sequence[Sweep]) -> list[str]:
    """The results of the sweeps, as sentences with the figures."""
    sentences = []
    for sweep in sweeps:
        if sweep.name == "specialists" and "cc-rasch" in methods:
            sentences += _on_flatness(rows, [name for name in RIVALS if name in methods])
        end = sweep.values[-1]
        found = sorted((mark for mark in marks(rows, sweep.name) if mark.x == end), key=lambda mark: -mark.y)
        parts = [
            f"{title.lower()} " + ", ".join(f"{mark.series} {mark.y:.3f}" for mark in found if mark.panel == title)
            for title in METRICS.values()
        ]
        sentences.append(f"With {sweep.in_words(end)}: {'; '.join(parts)}.")
    return sentences


def _on_flatness(rows: Sequence[SyntheticRow], rivals: Sequence[str]) -> list[str]:
    ours = flatness(rows, "cc-rasch")
    verdicts: dict[str, list[str]] = {"flatter than": [], "steeper than": [], "no different, within chance, from": []}
    for name in rivals:
        rival = flatness(rows, name)
        gap = steepness_gap(ours, rival)
        verdict = (
            "flatter than" if gap.low > 0 else "steeper than" if gap.high < 0 else "no different, within chance, from"
        )
        verdicts[verdict].append(f"{method_title(name)} ({rival.slope.mean / 10:+.3f})")
    said = "; ".join(f"{verdict} {', '.join(names)}" for verdict, names in verdicts.items() if names)
    if not said:
        return []
    return [
        f"As minority specialists vanish, CC-Rasch's minority recall moves from {ours.first:.3f} to {ours.last:.3f}, "
        f"{ours.slope.mean / 10:+.3f} per ten points of share; its slope is {said}."
    ]


def _flatness_table(rows: Sequence[SyntheticRow], methods: Sequence[str]) -> StudyTable:
    lines = []
    for one in (flatness(rows, name) for name in methods):
        mean, low, high = (f"{value / 10:+.3f}" for value in one.slope)
        recalls = (f"{value:.3f}" for value in (one.first, one.last, one.spread))
        lines.append((method_title(one.method), *recalls, mean, f"{low} to {high}"))
    return StudyTable(
        ["Method", "No majority spec.", "No minority spec.", "Range of means", "Slope per 10 points", "95% interval"],
        lines,
        caption="Minority recall as minority specialists give way to majority specialists.",
        notes=["Slope of the least-squares line over the sweep, per seed; mean and t interval over seeds."],
    )
