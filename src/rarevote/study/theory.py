"""The jury condition against simulation: when a majority vote recovers the rare class, and when it cannot.

Two experiments. *Growing crowds*: three crowds that are equally good at the frequent class and differ on the rare
one. In the first the condition of :mod:`rarevote.meaning.jury` holds; in the second it fails though the mean accuracy
is above 1/2, so the vote still succeeds, since the condition is sufficient and not necessary; in the third the mean
accuracy is below 1/2. The error of the vote per class is simulated and also computed exactly, and so is the share of
the rare class among the answers (the corollary). *Specialists*: every worker knows one class only, and the recall of
both classes is compared between methods that can tell this apart and methods that cannot.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path

import numpy as np

from rarevote.charts.save import save
from rarevote.methods.registry import method_title
from rarevote.study.figures import STYLES, Axis, Point, Reference, line_chart, points_with_intervals
from rarevote.study.intervals import share_interval
from rarevote.study.jury_trials import (
    CLASS_TITLES,
    FREQUENT,
    JURIES,
    RARE,
    RARE_SHARE,
    SIZES,
    SPECIALIST_ACCURACIES,
    SPECIALIST_CROWD,
    SPECIALIST_SHARES,
    GrowthRow,
    GrowthTrial,
    SpecialistRow,
    SpecialistTrial,
    run_growth,
    run_specialists,
)
from rarevote.study.page import Figure, Section, publish
from rarevote.study.pool import Report, run_jobs
from rarevote.study.tables import TextTable, write_csv

#: compared in the crowd of specialists
METHODS = ("majority-vote", "glad", "dawid-skene", "cc-rasch")

_ANSWERED = "rare class among the answers"


def run_theory(
    out: Path,
    methods: Sequence[str],
    *,
    n_seeds: int = 20,
    n_items: int = 4000,
    sizes: Sequence[int] = SIZES,
    shares: Sequence[float] = SPECIALIST_SHARES,
    n_jobs: int | None = None,
    report: Report | None = None,
    command: str = "rarevote study theory",
) -> Section:
    """Run both experiments and write two CSV files, the figures, the summary and the page into ``out``."""
    begin = time.perf_counter()
    growth_trials = [GrowthTrial(jury, size, n_items, 0) for jury in JURIES for size in sizes]
    specialist_trials = [SpecialistTrial(share, seed, tuple(methods)) for share in shares for seed in range(n_seeds)]
    growth = run_jobs(run_growth, growth_trials, n_jobs=n_jobs, report=report)
    already = len(growth_trials)
    specialists = run_jobs(
        run_specialists,
        specialist_trials,
        n_jobs=n_jobs,
        report=None if report is None else (lambda done: report(already + done)),
    )
    out.mkdir(parents=True, exist_ok=True)
    write_csv(out / "theory_growth.csv", [entry.name for entry in fields(GrowthRow)], map(asdict, growth))
    columns = [entry.name for entry in fields(SpecialistRow)]
    write_csv(out / "theory_specialists.csv", columns, map(asdict, specialists))
    section = Section(
        name="theory",
        title="The jury condition against simulation",
        findings=[*_growth_findings(growth), *_specialist_findings(specialists)],
        figures=_figures(out, growth, specialists, n_seeds, n_items),
        tables=[_condition_table(growth)],
        settings=[
            f"Growing crowds: {n_items:,} items of which one in eight is rare; every worker labels every item; sizes "
            f"{', '.join(map(str, sizes))}. Specialists: {SPECIALIST_CROWD['n_tasks']:,} tasks, "
            f"{SPECIALIST_CROWD['n_workers']} workers, imbalance {SPECIALIST_CROWD['imbalance']:g}, about "
            f"{SPECIALIST_CROWD['votes_per_task']:g} votes per task; accuracy on the frequent / rare class "
            + " and ".join(f"{row[0]:g} / {row[1]:g} ({name})" for name, row in SPECIALIST_ACCURACIES.items())
            + "; no hard tasks.",
        ],
        command=command,
        seconds=time.perf_counter() - begin,
    )
    publish(out, section)
    return section


def n_trials(n_seeds: int) -> int:
    """How many jobs :func:`run_theory` reports on."""
    return len(JURIES) * len(SIZES) + len(SPECIALIST_SHARES) * n_seeds


def growth_points(rows: Sequence[GrowthRow], what: str) -> list[Point]:
    """Simulated values with their intervals as marks, exact ones as lines; ``what`` is "error" or "answered_share"."""
    found = []
    for row in rows:
        if what == "answered_share" and row.class_name != CLASS_TITLES[RARE]:
            continue
        total = row.n_items if what == "error" else round(row.n_items / RARE_SHARE)
        interval = share_interval(round(float(getattr(row, what)) * total), total)
        series = row.class_name if what == "error" else _ANSWERED
        found.append(Point(row.jury, series, row.size, *interval, line=float(getattr(row, f"exact_{what}"))))
    return found


def specialist_points(rows: Sequence[SpecialistRow]) -> list[Point]:
    """Mean recall with intervals, a panel per class."""
    return points_with_intervals(
        (f"Recall of the {title}", method_title(row.method), row.majority_specialists, row.recall)
        for title in reversed(CLASS_TITLES)
        for row in rows
        if row.class_name == title
    )


def _figures(
    out: Path,
    growth: Sequence[GrowthRow],
    specialists: Sequence[SpecialistRow],
    n_seeds: int,
    n_items: int,
) -> list[Figure]:
    sizes = sorted({row.size for row in growth})
    shares = sorted({row.majority_specialists for row in specialists})
    x = Axis("workers, all labelling every item", log=True, ticks=sizes, domain=(sizes[0], sizes[-1]))
    # The rare class looks alike in both figures.
    looks = {CLASS_TITLES[RARE]: STYLES["CC-Rasch"], _ANSWERED: STYLES["CC-Rasch"]}
    error = line_chart(
        growth_points(growth, "error"),
        title="Error of majority vote per class as the crowd grows",
        x=x,
        y=Axis("error", domain=(0, 1)),
        styles=looks,
        size=(250, 220),
    )
    save(error, out / "theory_error")
    share = line_chart(
        growth_points(growth, "answered_share"),
        title="Share of the rare class among the answers of majority vote",
        x=x,
        y=Axis("share of items", format=".0%", domain=(0, 0.15)),
        styles=looks,
        reference=Reference(RARE_SHARE, "truth"),
        size=(250, 200),
    )
    save(share, out / "theory_proportion")
    recall = line_chart(
        specialist_points(specialists),
        title="Every worker knows one class only: recall per class",
        x=Axis("share of majority specialists (the others: minority specialists)", format=".0%", ticks=shares),
        y=Axis("", domain=(0, 1)),
        columns=2,
        size=(380, 280),
    )
    save(recall, out / "theory_specialists")
    drawn = f"Lines: exact. Marks: simulated on {n_items:,} items, with 95 % intervals (Wilson)."
    return [
        Figure(
            "theory_error",
            f"Error of majority vote per class as the crowd grows. {drawn} All three crowds have accuracy .85 on the "
            "frequent class. In the second, the condition is too cautious; only the third loses the rare class.",
        ),
        Figure(
            "theory_proportion",
            f"Share of the rare class among the answers of majority vote. {drawn} Where both classes are recovered, "
            "the share becomes the true one (the corollary).",
        ),
        Figure(
            "theory_specialists",
            "Every worker knows one class only. GLAD gives a worker one ability for both classes, so it takes those "
            f"who know only the rare class for bad ones. Mean and 95 % interval (t) over {n_seeds} crowds.",
        ),
    ]


# --------------------------------------------------------------------------------------------------------------------
# what it says


def _largest(rows: Sequence[GrowthRow], class_name: str) -> list[GrowthRow]:
    size = max(row.size for row in rows)
    return [row for row in rows if row.size == size and row.class_name == class_name]


def _growth_findings(rows: Sequence[GrowthRow]) -> list[str]:
    sentences = []
    for row in _largest(rows, CLASS_TITLES[RARE]):
        holds = "holds" if row.left_side > 1 else "fails"
        sentences.append(
            f"Crowd {row.jury.partition(':')[0]} with {row.size} workers: left side {row.left_side:.2f} on the rare "
            f"class (the condition {holds}), mean accuracy {row.mean_accuracy:.3f}; error on the rare class "
            f"{row.error:.3f} simulated, {row.exact_error:.3f} exact; {row.answered_share:.1%} of the answers are "
            f"rare, {RARE_SHARE:.1%} of the items."
        )
    outside = [point for point in growth_points(rows, "error") if not point.low <= (point.line or 0.0) <= point.high]
    n_points = len(rows)
    sentences.append(
        f"The exact error lies outside the simulation's 95 % interval at {len(outside)} of {n_points} points; about "
        f"{0.05 * n_points:.0f} are expected by chance."
    )
    return sentences


def _specialist_findings(rows: Sequence[SpecialistRow]) -> list[str]:
    sentences = []
    shares = sorted({row.majority_specialists for row in rows})
    methods = list(dict.fromkeys(row.method for row in rows))
    for share in (shares[len(shares) // 2], shares[-1]):
        said = []
        for name in methods:
            means = [
                np.nanmean(
                    [
                        row.recall
                        for row in rows
                        if (row.method, row.class_name, row.majority_specialists) == (name, title, share)
                    ]
                )
                for title in CLASS_TITLES
            ]
            said.append(f"{method_title(name)} {means[FREQUENT]:.3f} / {means[RARE]:.3f}")
        sentences.append(
            f"With {share:.0%} majority and {1 - share:.0%} minority specialists, recall of the frequent / rare class: "
            f"{'; '.join(said)}."
        )
    return sentences


def _condition_table(rows: Sequence[GrowthRow]) -> TextTable:
    def missing(value: float) -> str:
        return "none would do" if np.isinf(value) else f"{value:.0f}"

    found = [row for title in CLASS_TITLES for row in _largest(rows, title)]
    found.sort(key=lambda row: row.jury)
    return TextTable(
        ["Crowd", "Class", "Left side", "Holds", "Mean accuracy", "Missing specialists", "Error", "Exact error"],
        [
            (
                row.jury,
                row.class_name,
                f"{row.left_side:.3f}",
                "yes" if row.left_side > 1 else "no",
                f"{row.mean_accuracy:.3f}",
                missing(row.missing_specialists),
                f"{row.error:.4f}",
                f"{row.exact_error:.4f}",
            )
            for row in found
        ],
        caption=f"The three crowds at {max(row.size for row in rows)} workers.",
        notes=["The condition holds where the left side exceeds 1."],
        n_text_columns=2,
    )
