"""Made-up crowds with known truth: what happens to the rare class as its specialists vanish (Figure 1 of the paper).

Three sweeps over the crowd of :func:`rarevote.simulate.crowds.simulate_crowd`, one parameter moving at a time.
*Specialists* is the paper's: a quarter of the workers is good at both classes, a quarter at none, and the other half
moves from specialists of the rare class to specialists of the frequent one. *Imbalance* and *votes* are ours.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from math import floor
from pathlib import Path
from typing import Any

from rarevote.charts.save import save
from rarevote.meaning.metrics import score
from rarevote.methods.registry import method_title
from rarevote.simulate.crowds import DEFAULT_ACCURACIES, simulate_crowd
from rarevote.study.cells import Variant
from rarevote.study.figures import Axis, Point, line_chart, points_with_intervals
from rarevote.study.intervals import Interval, mean_interval, slope
from rarevote.study.page import Figure, Section, publish
from rarevote.study.pool import Report, run_jobs
from rarevote.study.tables import TextTable, write_csv

RARE, FREQUENT = 1, 0
METRICS = {"minority_recall": "Minority recall", "balanced_accuracy": "Balanced accuracy"}
#: methods whose recall the paper says falls more steeply than that of CC-Rasch
RIVALS = ("majority-vote", "dawid-skene", "glad")


@dataclass(frozen=True)
class CrowdSettings:
    """The crowd of all sweeps, except for what a sweep changes. The paper prints neither accuracies nor crowd size."""

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
        """The settings as a sentence to stand under a figure."""
        accuracies = "; ".join(f"{name} {row[FREQUENT]:g} / {row[RARE]:g}" for name, row in self.accuracies.items())
        return (
            f"{self.n_tasks:,} tasks, {self.n_workers} workers, imbalance {self.imbalance:g}, "
            f"1 + Poisson({self.votes_per_task - 1:g}) votes per task; workers {self.p_good:.0%} good, "
            f"{self.p_majority:.0%} majority specialists, {self.p_minority:.0%} minority specialists, "
            f"{self.p_bad:.0%} bad, unless the figure says otherwise. Accuracy on easy tasks of the frequent / rare "
            f"class: {accuracies}. {self.hard_share:.0%} of the tasks are hard, which takes {self.hard_penalty:g} off."
        )


@dataclass(frozen=True)
class Sweep:
    """A parameter of the crowd that moves.

    Attributes:
        name: of the sweep and its figure.
        title: of the figure.
        axis: the parameter in words.
        values: where it stops.
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


def _log_axis(title: str, values: Sequence[float]) -> Axis:
    return Axis(title, log=True, ticks=values, domain=(values[0], values[-1]))


_SHARES = tuple(step / 20 for step in range(11))
_RATIOS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
_VOTES = (2.0, 3.0, 5.0, 8.0, 12.0, 20.0, 30.0)
SWEEPS = (
    Sweep(
        "specialists",
        "As minority specialists give way to majority specialists",
        Axis("share of majority specialists (the rest of 50 %: minority specialists)", format=".0%"),
        _SHARES,
    ),
    Sweep("imbalance", "As the rare class gets rarer", _log_axis("largest class / smallest class", _RATIOS), _RATIOS),
    Sweep("votes", "As tasks get more votes", _log_axis("mean votes per task", _VOTES), _VOTES),
)


@dataclass(frozen=True)
class Trial:
    """One crowd to draw, and the methods to run on it."""

    sweep: Sweep
    x: float
    seed: int
    methods: tuple[str, ...]
    crowd: CrowdSettings


@dataclass(frozen=True)
class SyntheticRow:
    """How one method did on one crowd."""

    sweep: str
    x: float
    seed: int
    method: str
    minority_recall: float
    balanced_accuracy: float
    macro_f1: float
    accuracy: float
    converged: bool


def run_trial(trial: Trial) -> list[SyntheticRow]:
    """Draw the crowd and mark every method on it."""
    crowd = simulate_crowd(
        **{**vars(trial.crowd), **trial.sweep.settings_at(trial.x)},
        random_state=trial.seed,
    )
    rows = []
    for name in trial.methods:
        with warnings.catch_warnings():
            # Whether a fit converged is a column of the results.
            warnings.simplefilter("ignore")
            model = Variant(name).estimator(trial.seed).fit(crowd.arrays, classes=[FREQUENT, RARE])
        found = score(crowd.truth[model.annotations_.tasks], model.annotations_.classes[model.label_codes()])
        # The recall of the rare class by name: in a balanced crowd chance decides which class is rarer.
        recall = found.recall.get(RARE, float("nan"))
        rows.append(
            SyntheticRow(
                trial.sweep.name,
                trial.x,
                trial.seed,
                name,
                recall,
                found.balanced_accuracy,
                found.macro_f1,
                found.accuracy,
                bool(model.converged_),
            )
        )
    return rows


def run_synthetic(
    out: Path,
    methods: Sequence[str],
    *,
    n_seeds: int = 20,
    sweeps: Sequence[Sweep] = SWEEPS,
    crowd: CrowdSettings | None = None,
    n_jobs: int | None = None,
    report: Report | None = None,
    command: str = "rarevote study synthetic",
) -> Section:
    """Run the sweeps and write ``synthetic.csv``, the figures, the summary and the page into ``out``."""
    begin = time.perf_counter()
    crowd = crowd or CrowdSettings()
    trials = [
        Trial(sweep, x, seed, tuple(methods), crowd)
        for sweep in sweeps
        for x in sweep.values
        for seed in range(n_seeds)
    ]
    rows = run_jobs(run_trial, trials, n_jobs=n_jobs, report=report)
    out.mkdir(parents=True, exist_ok=True)
    write_csv(out / "synthetic.csv", [entry.name for entry in fields(SyntheticRow)], map(asdict, rows))
    figures = []
    for sweep in sweeps:
        stem = f"synthetic_{sweep.name}"
        save(_chart(sweep, points(rows, sweep.name)), out / stem)
        figures.append(
            Figure(stem, f"{sweep.title}. Mean and 95 % interval (t) over {n_seeds} crowds. {crowd.in_words()}")
        )
    section = Section(
        name="synthetic",
        title="Synthetic crowds (Figure 1, and two sweeps more)",
        findings=findings(rows, methods, sweeps),
        figures=figures,
        tables=[_flatness_table(rows, methods)] if any(sweep.name == "specialists" for sweep in sweeps) else [],
        settings=["Seeds are shared by all methods, so that differences between methods are paired."],
        command=command,
        seconds=time.perf_counter() - begin,
    )
    publish(out, section)
    return section


def n_trials(n_seeds: int, sweeps: Sequence[Sweep] = SWEEPS) -> int:
    """How many crowds :func:`run_synthetic` draws and reports on."""
    return n_seeds * sum(len(sweep.values) for sweep in sweeps)


def points(rows: Sequence[SyntheticRow], sweep: str) -> list[Point]:
    """Means and intervals of a sweep, minority recall and balanced accuracy as panels."""
    return points_with_intervals(
        (title, method_title(row.method), row.x, float(getattr(row, metric)))
        for metric, title in METRICS.items()
        for row in rows
        if row.sweep == sweep
    )


def _chart(sweep: Sweep, found: Sequence[Point]) -> Any:
    lowest = min(point.low for point in found)
    y = Axis("", domain=(floor(10 * lowest) / 10, 1.0))
    return line_chart(found, title=sweep.title, x=sweep.axis, y=y, columns=2, size=(380, 300))


# --------------------------------------------------------------------------------------------------------------------
# what the sweep over specialists says


@dataclass(frozen=True)
class Flatness:
    """How much a method's minority recall moves as minority specialists give way to majority specialists.

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
    slope: Interval
    slopes: tuple[float, ...]


def flatness(rows: Sequence[SyntheticRow], method: str) -> Flatness:
    """The movement of a method's recall over the sweep of specialists."""
    by_seed: dict[int, dict[float, float]] = {}
    for row in rows:
        if row.sweep == "specialists" and row.method == method:
            by_seed.setdefault(row.seed, {})[row.x] = row.minority_recall
    shares = sorted(next(iter(by_seed.values())))
    means = [mean_interval([recalls[x] for recalls in by_seed.values()]).mean for x in shares]
    slopes = tuple(slope(shares, [recalls[x] for x in shares]) for _, recalls in sorted(by_seed.items()))
    return Flatness(method, means[0], means[-1], max(means) - min(means), mean_interval(slopes), slopes)


def steepness_gap(flat: Flatness, rival: Flatness) -> Interval:
    """How much steeper the rival is, ``|slope| - |slope|``, paired by seed."""
    return mean_interval([abs(b) - abs(a) for a, b in zip(flat.slopes, rival.slopes, strict=True)])


def findings(rows: Sequence[SyntheticRow], methods: Sequence[str], sweeps: Sequence[Sweep]) -> list[str]:
    """What the sweeps show, in sentences made from the numbers."""
    sentences = []
    for sweep in sweeps:
        if sweep.name == "specialists" and "cc-rasch" in methods:
            sentences += _on_flatness(rows, [name for name in RIVALS if name in methods])
        end = sweep.values[-1]
        found = [point for point in points(rows, sweep.name) if point.x == end]
        parts = []
        for title in METRICS.values():
            order = sorted((point for point in found if point.panel == title), key=lambda point: -point.y)
            parts.append(f"{title.lower()} " + ", ".join(f"{point.series} {point.y:.3f}" for point in order))
        where = (
            f"{end:.0%} majority specialists and no minority specialists"
            if sweep.name == "specialists"
            else (f"an imbalance of {end:g}" if sweep.name == "imbalance" else f"{end:g} votes per task")
        )
        sentences.append(f"With {where}: {'; '.join(parts)}.")
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


def _flatness_table(rows: Sequence[SyntheticRow], methods: Sequence[str]) -> TextTable:
    found = [flatness(rows, name) for name in methods]
    return TextTable(
        ["Method", "No majority spec.", "No minority spec.", "Range of means", "Slope per 10 points", "95 % interval"],
        [
            (
                method_title(one.method),
                f"{one.first:.3f}",
                f"{one.last:.3f}",
                f"{one.spread:.3f}",
                f"{one.slope.mean / 10:+.3f}",
                f"{one.slope.low / 10:+.3f} to {one.slope.high / 10:+.3f}",
            )
            for one in found
        ],
        caption="Minority recall as minority specialists give way to majority specialists.",
        notes=["Slope of the least-squares line over the sweep, per seed; mean and t interval over seeds."],
    )
