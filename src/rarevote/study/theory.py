"""The jury condition and simulations: when a majority vote recovers the rare class, and when it cannot.

Two experiments. *Growing crowds*: three crowds that are equally good at the frequent class and differ on the rare
one. In the first the condition of :mod:`rarevote.diagnose.jury` holds; in the second it fails although the mean
accuracy is above 1/2, so the vote still succeeds, since the condition is sufficient but not necessary; in the third the
mean accuracy is below 1/2. The error of the vote per class is simulated and also computed exactly, and so is the share
of the rare class among the answers (the corollary). *Specialists*: every worker knows one class only, and the recall of
both classes is compared between methods that can distinguish the two and methods that cannot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rarevote.charts.svg import Chart
from rarevote.crowd.words import percent
from rarevote.diagnose.jury import jury_condition
from rarevote.methods.registry import method_title
from rarevote.simulate.crowds import simulate_crowd
from rarevote.study.experiment import Account, Experiment, fit_quietly, fit_simulated
from rarevote.study.figures import Axis, Mark, Reference, line_chart, look, marks_with_intervals
from rarevote.study.libraries import library
from rarevote.study.measures import share_interval
from rarevote.study.tables import StudyTable

FREQUENT, RARE = 0, 1
CLASS_TITLES = ("frequent class", "rare class")
RARE_SHARE = 1 / 8
# Odd, so that a vote between two classes has no ties, and a multiple of ten plus one, so that shares round alike.
SIZES = (11, 21, 31, 51, 81, 131, 211, 401)


@dataclass(frozen=True)
class Jury:
    """A kind of crowd, of any size.

    Attributes:
        title: what is special about it.
        parts: share of the crowd, accuracy on the frequent class, accuracy on the rare class.
    """

    title: str
    parts: tuple[tuple[float, float, float], ...]

    def accuracies(self, size: int) -> NDArray[np.float64]:
        """The accuracies of a crowd of this size, shape ``(size, 2)``; shares are rounded with their sum kept."""
        ends = np.floor(np.cumsum([share for share, *_ in self.parts]) * size + 0.5).astype(int)
        counts = np.diff(ends, prepend=0)
        return np.repeat([part[1:] for part in self.parts], counts, axis=0)


JURIES = (
    Jury("1: the condition holds", ((0.70, 0.85, 0.75), (0.30, 0.85, 0.30))),
    Jury("2: it fails, mean accuracy above ½", ((0.50, 0.85, 0.75), (0.40, 0.85, 0.45), (0.10, 0.85, 0.05))),
    Jury("3: it fails, mean accuracy below ½", ((0.35, 0.85, 0.75), (0.65, 0.85, 0.30))),
)


def vote_error(accuracies: NDArray[np.float64]) -> float:
    """Exact probability that a majority of an odd number of independent voters is wrong on a two-class question.

    The number of right votes has a Poisson binomial distribution.

    Example:
        >>> round(vote_error(np.array([0.8, 0.8, 0.8])), 6)     # 0.2^3 + 3 0.2^2 0.8
        0.104
    """
    return float(library("scipy.stats").poisson_binom.cdf(len(accuracies) // 2, accuracies))


@dataclass(frozen=True)
class GrowthRow:
    """A crowd of some kind and size: the condition, and the result of the majority vote."""

    jury: str
    size: int
    class_name: str
    left_side: float
    mean_accuracy: float
    missing_specialists: float
    n_items: int
    error: float
    exact_error: float
    answered_share: float
    exact_answered_share: float


@dataclass(frozen=True)
class GrowthTrial:
    """A crowd to simulate."""

    jury: Jury
    size: int
    n_items: int
    seed: int

    def run(self) -> list[GrowthRow]:
        """Let every worker label every item, vote, and compare with the exact error."""
        accuracy = self.jury.accuracies(self.size)
        n_rare = round(RARE_SHARE * self.n_items)
        truth = (np.arange(self.n_items) < n_rare).astype(np.int64)
        right = np.random.default_rng([self.seed, self.size]).random((self.n_items, self.size)) < accuracy[:, truth].T
        labels = np.where(right, truth[:, None], 1 - truth[:, None])
        task, worker = np.divmod(np.arange(labels.size), self.size)
        votes = (task, worker, labels.ravel())
        answers = fit_quietly("majority-vote", self.seed, votes, classes=[FREQUENT, RARE]).label_codes()
        exact = [vote_error(accuracy[:, k]) for k in (FREQUENT, RARE)]
        answered_rare = RARE_SHARE * (1 - exact[RARE]) + (1 - RARE_SHARE) * exact[FREQUENT]
        jury = jury_condition(accuracy)
        return [
            GrowthRow(
                jury=self.jury.title,
                size=self.size,
                class_name=CLASS_TITLES[k],
                left_side=float(jury.left_side[k]),
                mean_accuracy=float(jury.mean_margin[k]) + 0.5,
                missing_specialists=float(jury.missing_specialists[k]),
                n_items=int((truth == k).sum()),
                error=float((answers[truth == k] != k).mean()),
                exact_error=exact[k],
                answered_share=float((answers == k).mean()),
                exact_answered_share=answered_rare if k == RARE else 1 - answered_rare,
            )
            for k in (FREQUENT, RARE)
        ]


# --------------------------------------------------------------------------------------------------------------------
# specialists of one class

SPECIALIST_ACCURACIES: Mapping[str, tuple[float, float]] = MappingProxyType(
    {"majority": (0.95, 0.35), "minority": (0.35, 0.95)}
)
SPECIALIST_SHARES = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
SPECIALIST_CROWD = {"n_tasks": 2000, "n_workers": 60, "imbalance": 7.0, "votes_per_task": 8.0}


@dataclass(frozen=True)
class SpecialistRow:
    """Recall of one class under one method in a crowd of specialists."""

    majority_specialists: float
    seed: int
    method: str
    class_name: str
    recall: float


@dataclass(frozen=True)
class SpecialistTrial:
    """A crowd in which every worker knows one class."""

    share: float
    seed: int
    methods: tuple[str, ...]

    def run(self) -> list[SpecialistRow]:
        """Draw the crowd and compute the recall of both classes for every method."""
        crowd = simulate_crowd(
            **SPECIALIST_CROWD,  # type: ignore[arg-type]
            p_good=0.0,
            p_bad=0.0,
            p_majority=self.share,
            p_minority=1 - self.share,
            accuracies=SPECIALIST_ACCURACIES,
            hard_share=0.0,
            random_state=self.seed,
        )
        rows = []
        for name in self.methods:
            _, found = fit_simulated(name, self.seed, crowd, [FREQUENT, RARE])
            rows += [
                SpecialistRow(self.share, self.seed, name, CLASS_TITLES[k], found.recall.get(k, float("nan")))
                for k in (FREQUENT, RARE)
            ]
        return rows


#: the methods that are compared in the crowd of specialists
METHODS = ("majority-vote", "glad", "dawid-skene", "cc-rasch")

_ANSWERED = "rare class among the answers"
# The rare class has the same style in both figures.
_KEYS = [look(title, "vermillion") for title in (CLASS_TITLES[RARE], _ANSWERED)]


@dataclass(frozen=True)
class TheoryStudy(Experiment):
    """Both experiments.

    Attributes:
        methods: methods that are compared in the crowd of specialists.
        n_seeds: number of crowds of specialists at every share.
        n_items: number of items that a growing crowd labels.
        sizes: sizes of the growing crowds.
        shares: shares of majority specialists.
    """

    name = "theory"
    title = "The jury condition against simulation"
    unit = "simulated crowds"
    kinds: ClassVar = {"theory_growth": GrowthRow, "theory_specialists": SpecialistRow}

    methods: Sequence[str] = METHODS
    n_seeds: int = 20
    n_items: int = 4000
    sizes: Sequence[int] = SIZES
    shares: Sequence[float] = SPECIALIST_SHARES

    def trials(self) -> list[GrowthTrial | SpecialistTrial]:
        """Every kind of crowd at every size, then every crowd of specialists."""
        methods = tuple(self.methods)
        return [
            *(GrowthTrial(jury, size, self.n_items, 0) for jury in JURIES for size in self.sizes),
            *(SpecialistTrial(share, seed, methods) for share in self.shares for seed in range(self.n_seeds)),
        ]

    def account(self, rows: Sequence[GrowthRow | SpecialistRow]) -> Account:
        """Charts of error, answers and recall, and a table of the three crowds."""
        growth = [row for row in rows if isinstance(row, GrowthRow)]
        specialists = [row for row in rows if isinstance(row, SpecialistRow)]
        crowd = SPECIALIST_CROWD
        accuracies = " and ".join(f"{row[0]:g} / {row[1]:g} ({name})" for name, row in SPECIALIST_ACCURACIES.items())
        return Account(
            findings=[*_growth_findings(growth), *_specialist_findings(specialists)],
            charts=[*_growth_charts(growth, self.n_items), _specialist_chart(specialists, self.n_seeds)],
            tables=[_condition_table(growth)],
            settings=[
                f"Growing crowds: {self.n_items:,} items of which one in eight is rare; every worker labels every "
                f"item; sizes {', '.join(map(str, self.sizes))}. Specialists: {crowd['n_tasks']:,} tasks, "
                f"{crowd['n_workers']} workers, imbalance {crowd['imbalance']:g}, about {crowd['votes_per_task']:g} "
                f"votes per task; accuracy on the frequent / rare class {accuracies}; no hard tasks.",
            ],
        )


def growth_marks(rows: Sequence[GrowthRow], what: str) -> list[Mark]:
    """Simulated values with their intervals as marks, exact ones as lines; ``what`` is "error" or "answered_share"."""
    found = []
    for row in rows:
        if what == "answered_share" and row.class_name != CLASS_TITLES[RARE]:
            continue
        total = row.n_items if what == "error" else round(row.n_items / RARE_SHARE)
        interval = share_interval(round(float(getattr(row, what)) * total), total)
        series = row.class_name if what == "error" else _ANSWERED
        found.append(Mark(row.jury, series, row.size, *interval, line=float(getattr(row, f"exact_{what}"))))
    return found


def specialist_marks(rows: Sequence[SpecialistRow]) -> list[Mark]:
    """Mean recall with intervals, a panel per class."""
    return marks_with_intervals(
        (f"Recall of the {title}", method_title(row.method), row.majority_specialists, row.recall)
        for title in reversed(CLASS_TITLES)
        for row in rows
        if row.class_name == title
    )


def _growth_charts(rows: Sequence[GrowthRow], n_items: int) -> list[Chart]:
    sizes = sorted({row.size for row in rows})
    x = Axis("workers, all labelling every item", log=True, ticks=sizes, domain=(sizes[0], sizes[-1]))
    drawn = f"Lines: exact. Marks: simulated on {n_items:,} items, with 95% intervals (Wilson)."
    title = "Error of majority vote per class as the crowd grows"
    error, y = growth_marks(rows, "error"), Axis("error", domain=(0, 1))
    in_error = Chart(
        "theory_error",
        title,
        f"{drawn} All three crowds have accuracy .85 on the frequent class. In the second, the condition is too "
        "cautious; only the third loses the rare class.",
        (),
        line_chart(error, title=title, x=x, y=y, keys=_KEYS, size=(250, 220)),
    )
    title = "Share of the rare class among the answers of majority vote"
    share, y = growth_marks(rows, "answered_share"), Axis("share of items", format=".0%", domain=(0, 0.15))
    truth = Reference(RARE_SHARE, "truth")
    in_share = Chart(
        "theory_proportion",
        title,
        f"{drawn} Where both classes are recovered, the share becomes the true one (the corollary).",
        (),
        line_chart(share, title=title, x=x, y=y, keys=_KEYS, reference=truth, size=(250, 200)),
    )
    return [in_error, in_share]


def _specialist_chart(rows: Sequence[SpecialistRow], n_seeds: int) -> Chart:
    shares = sorted({row.majority_specialists for row in rows})
    x = Axis("share of majority specialists (the others: minority specialists)", format=".0%", ticks=shares)
    title = "Every worker knows one class only"
    return Chart(
        "theory_specialists",
        title,
        "GLAD gives a worker one ability for both classes, so it takes those who know only the rare class for bad "
        f"ones. Mean and 95% interval (t) over {n_seeds} crowds.",
        (),
        line_chart(
            specialist_marks(rows),
            title=f"{title}: recall per class",
            x=x,
            y=Axis("", domain=(0, 1)),
            columns=2,
            size=(380, 280),
        ),
    )


# --------------------------------------------------------------------------------------------------------------------
# results


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
            f"{row.error:.3f} simulated, {row.exact_error:.3f} exact; {row.answered_share:.3f} of the answers "
            f"are rare, {RARE_SHARE:.3f} of the items."
        )
    outside = [mark for mark in growth_marks(rows, "error") if not mark.low <= (mark.line or 0.0) <= mark.high]
    n_points = len(rows)
    sentences.append(
        f"The exact error lies outside the simulation's 95% interval at {len(outside)} of {n_points} points; about "
        f"{0.05 * n_points:.0f} are expected by chance."
    )
    return sentences


def _specialist_findings(rows: Sequence[SpecialistRow]) -> list[str]:
    recalls: dict[tuple[float, str], dict[str, list[float]]] = {}
    for row in rows:
        of_class = recalls.setdefault((row.majority_specialists, row.method), {title: [] for title in CLASS_TITLES})
        of_class[row.class_name].append(row.recall)
    shares = sorted({row.majority_specialists for row in rows})
    sentences = []
    for share in (shares[len(shares) // 2], shares[-1]):
        said = [
            f"{method_title(name)} {' / '.join(f'{np.nanmean(values):.3f}' for values in of_class.values())}"
            for (at, name), of_class in recalls.items()
            if at == share
        ]
        sentences.append(
            f"With {percent(share)} majority and {percent(1 - share)} minority specialists, recall of the frequent / "
            f"rare class: {'; '.join(said)}."
        )
    return sentences


def _condition_table(rows: Sequence[GrowthRow]) -> StudyTable:
    def missing(value: float) -> str:
        return "none would do" if np.isinf(value) else f"{value:.0f}"

    found = [row for title in CLASS_TITLES for row in _largest(rows, title)]
    found.sort(key=lambda row: row.jury)
    return StudyTable(
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
