"""Do prevalence intervals cover, do costs and reviews pay? Simulated and real crowds.

    python -m benchmarks.decisions [--seeds 100] [--variant-seeds 30] [--chart]

Writes docs/evidence/decisions.csv, one row per kind of crowd and figure, and the chart decisions_review.svg beside it
(`--chart`: only the chart, from the figures that are there). The crowds are those of `simulate_crowd` with
its defaults unless the row says otherwise; the last class is rare. A missed task of the rare class costs 20, a false
alarm 1. Real datasets are looked for in RAREVOTE_DATA and left out if absent. Expected recall, precision and prevalence
on real crowds, and recall targets, are measured by benchmarks/expectations.py.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rarevote.meaning.calibrate import CalibratedPosterior, calibrated
from rarevote.meaning.decide import Decision, decide

from benchmarks import evidence
from benchmarks.peers import DATASETS
from rarevote.crowd.annotations import Annotations
from rarevote.meaning.review import review_gains
from rarevote.methods.cc_rasch.estimator import CCRasch
from rarevote.simulate.crowds import SimulatedCrowd, simulate_cc_rasch, simulate_crowd

GOLD_SHARE = 0.05
COSTS = np.array([[0.0, 1.0], [20.0, 0.0]])
BUDGETS = (0.01, 0.02, 0.05, 0.1)
MOST_REAL_ANNOTATIONS = 60_000

Floats = NDArray[np.float64]
Row = dict[str, Any]


class Kind(NamedTuple):
    """A kind of crowd."""

    name: str
    imbalance: int
    n_tasks: int
    draw: Callable[..., SimulatedCrowd]
    options: dict[str, Any]


MAIN = [
    Kind("default", 7, 3000, simulate_crowd, {}),
    Kind("default", 30, 6000, simulate_crowd, {}),
    Kind("default", 30, 12_000, simulate_crowd, {}),
]
VARIANTS = [
    Kind("no hard tasks", 7, 3000, simulate_crowd, {"hard_share": 0.0}),
    Kind("5 votes a task", 7, 3000, simulate_crowd, {"votes_per_task": 5.0}),
    Kind("40 % majority specialists", 7, 3000, simulate_crowd, {"p_majority": 0.4, "p_minority": 0.1}),
    Kind("40 % minority specialists", 30, 6000, simulate_crowd, {"p_majority": 0.1, "p_minority": 0.4}),
    Kind(
        "from the CC-Rasch model",
        7,
        3000,
        simulate_cc_rasch,
        {"mu_alpha": [1.15, 0.7], "mu_beta": 0.0, "sigma_alpha": 1.0},
    ),
    Kind("3 classes", 7, 3000, simulate_crowd, {"n_classes": 3}),
]


def drawn(kind: Kind, seed: int) -> tuple[SimulatedCrowd, Annotations]:
    crowd = kind.draw(kind.n_tasks, imbalance=kind.imbalance, random_state=seed, **kind.options)
    return crowd, Annotations.from_arrays(*crowd.arrays, classes=list(range(crowd.n_classes)))


def random_gold(truth: NDArray[np.int32], seed: int) -> NDArray[np.int32]:
    gold = np.full(len(truth), -1, dtype=np.int32)
    chosen = np.random.default_rng([seed, 2]).choice(len(truth), int(GOLD_SHARE * len(truth)), replace=False)
    gold[chosen] = truth[chosen]
    return gold


def realised(decision: Decision, truth: NDArray[np.int32]) -> float:
    return float(COSTS[truth, decision.codes].sum())


def review_figures(found: CalibratedPosterior, truth: NDArray[np.int32], seed: int) -> Row:
    """Realised cost of the method's labels, of least expected cost, and of the latter after reviews."""
    decision = decide(found, costs=COSTS)
    paid = COSTS[truth, decision.codes]
    row = {"argmax": realised(decide(found), truth), "costs": float(paid.sum())}
    orders = {
        "gain": np.argsort(-review_gains(found, decision.codes, COSTS), kind="stable"),
        "lowest_confidence": np.argsort(found.posterior.max(axis=1), kind="stable"),
        "random": np.random.default_rng([seed, 3]).permutation(len(truth)),
    }
    for budget in BUDGETS:
        for name, order in orders.items():
            row[f"review_{name}_{budget:g}"] = float(paid[order[int(budget * len(truth)) :]].sum())
    return row


def one_crowd(kind: Kind, seed: int, *, with_gold: bool) -> Row:
    crowd, votes = drawn(kind, seed)
    rare = crowd.n_classes - 1
    is_rare = crowd.truth == rare
    share = float(is_rare.mean())
    gold = random_gold(crowd.truth, seed) if with_gold else None
    fit = CCRasch(n_jobs=1).fit(votes)
    found = calibrated(fit.posterior_, gold=gold, annotations=votes, random_state=seed)
    row: Row = {
        "covered": bool(found.low[rare] <= share <= found.high[rare]),
        "share": float(found.prevalence[rare]) / share,
        "width": float(found.high[rare] - found.low[rare]) / share,
    }
    if not with_gold:
        held = calibrated(fit.posterior_, gold=gold)
        row["held_covered"] = bool(held.low[rare] <= share <= held.high[rare])
        row["held_share"] = float(held.prevalence[rare]) / share
        row["uniform_share"] = float(fit.posterior_[:, rare].mean()) / share
        if crowd.n_classes == 2:
            row |= review_figures(found, crowd.truth, seed)
    return row


def summarised(kind: Kind, rows: list[Row], *, with_gold: bool) -> Iterable[Row]:
    """One row per figure."""
    column = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    figures: dict[str, float] = {
        "prevalence: interval contains the truth": column["covered"].sum(),
        "prevalence: mean estimate over truth": column["share"].mean(),
        "prevalence: mean width of the interval over truth": column["width"].mean(),
    }
    if not with_gold:
        figures["prevalence with abilities held: interval contains the truth"] = column["held_covered"].sum()
        figures["prevalence with abilities held: mean estimate over truth"] = column["held_share"].mean()
        figures["mean posterior of CC-Rasch over truth"] = column["uniform_share"].mean()
    if "costs" in column:
        figures["cost 1:20: least expected cost below the method's labels"] = (column["costs"] < column["argmax"]).sum()
        for name in ("argmax", "costs", *(name for name in column if name.startswith("review_"))):
            figures[f"cost 1:20: mean realised cost, {name}"] = column[name].mean()
        for other in ("random", "lowest_confidence"):
            for budget in BUDGETS:
                better = column[f"review_gain_{budget:g}"] <= column[f"review_{other}_{budget:g}"]
                figures[f"review of {budget:.0%}: by gain costs no more than by {other}"] = better.sum()
    for figure, value in figures.items():
        yield {
            "crowd": kind.name,
            "imbalance": kind.imbalance,
            "tasks": kind.n_tasks,
            "gold": GOLD_SHARE if with_gold else 0,
            "crowds": len(rows),
            "figure": figure,
            "value": round(float(value), 4),
        }


def real_rows() -> list[Row]:
    """Coverage and log loss on the real binary datasets, whose annotators need not err independently."""
    from tests.benchmark_data import datasets, load

    shared = DATASETS.resolve().parent
    results = []
    for entry in datasets(shared):
        task, worker, label, truth = load(shared, entry.slug)
        votes = Annotations.from_arrays(task, worker, label)
        if votes.n_classes != 2 or votes.n_annotations > MOST_REAL_ANNOTATIONS:
            continue
        code = {str(name): k for k, name in enumerate(votes.classes.tolist())}
        answers = {str(name): code[str(value)] for name, value in truth.items() if str(value) in code}
        rows = [i for i, name in enumerate(votes.tasks.tolist()) if str(name) in answers]
        true = np.array([answers[str(votes.tasks[i])] for i in rows])
        fit = CCRasch(n_jobs=1).fit(votes)
        found = calibrated(fit.posterior_, annotations=votes)
        shares = np.bincount(true, minlength=2) / len(true)
        rare = int(shares.argmin())
        results.append(
            {
                "covered": bool(found.low[rare] <= shares[rare] <= found.high[rare]),
                "loss": _log_loss(found.posterior[rows], true),
                "method_loss": _log_loss(fit.posterior_[rows], true),
            }
        )
        print(entry.slug, results[-1], flush=True)
    column = {name: np.array([row[name] for row in results]) for name in results[0]}
    figures = {
        "prevalence: interval contains the truth": column["covered"].sum(),
        "mean log loss, calibrated": column["loss"].mean(),
        "mean log loss, CC-Rasch": column["method_loss"].mean(),
        "log loss of calibrated below CC-Rasch": (column["loss"] < column["method_loss"]).sum(),
    }
    crowds = {"crowd": "real binary datasets", "imbalance": "", "tasks": "", "gold": 0, "crowds": len(results)}
    return [{**crowds, "figure": name, "value": round(float(value), 4)} for name, value in figures.items()]


def _log_loss(posterior: Floats, true: NDArray[np.int64]) -> float:
    return float(-np.log(np.clip(posterior[np.arange(len(true)), true], 1e-6, 1.0)).mean())


def draw_chart(rows: Iterable[Mapping[str, Any]]) -> Path:
    """Realised cost by share of tasks reviewed, one panel per kind of crowd."""
    from rarevote.charts.svg import to_svg
    from rarevote.study.figures import Axis, Mark, line_chart

    orders = {"gain": "--max-review", "lowest_confidence": "lowest confidence", "random": "random"}
    prefix = "cost 1:20: mean realised cost, "
    costs = {
        (int(row["imbalance"]), int(row["tasks"]), str(row["figure"]).removeprefix(prefix)): float(row["value"])
        for row in rows
        if row["crowd"] == "default" and str(row["figure"]).startswith(prefix)
    }
    points = []
    for imbalance, n_tasks in dict.fromkeys((kind.imbalance, kind.n_tasks) for kind in MAIN):
        panel = f"imbalance {imbalance}, {n_tasks:,} tasks"
        for order, title in orders.items():
            for budget in (0.0, *BUDGETS):
                name = f"review_{order}_{budget:g}" if budget else "costs"
                cost = costs[imbalance, n_tasks, name]
                points.append(Mark(panel, title, 100 * budget, cost, cost, cost))
    chart = line_chart(
        points,
        title="Realised cost after a review (a miss costs 20, a false alarm 1; mean of 100 simulated crowds)",
        x=Axis("tasks reviewed, %"),
        y=Axis("realised cost"),
        same_y=False,
    )
    path = evidence.EVIDENCE / "decisions_review.svg"
    path.write_text(to_svg(chart), encoding="utf-8")
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=100, help="crowds of each main kind")
    parser.add_argument("--variant-seeds", type=int, default=30, help="crowds of each variant")
    parser.add_argument("--chart", action="store_true", help="only draw the chart, from the figures that are there")
    options = parser.parse_args()
    if options.chart:
        with (evidence.EVIDENCE / "decisions.csv").open(newline="", encoding="utf-8") as handle:
            print(draw_chart(csv.DictReader(handle)).relative_to(evidence.REPOSITORY))
        return
    warnings.simplefilter("ignore")  # CC-Rasch may reach its iteration limit at imbalance 30
    results: list[Row] = []
    plan = [(kind, gold, options.seeds) for kind in MAIN for gold in (False, True)]
    plan += [(kind, False, options.variant_seeds) for kind in VARIANTS]
    for kind, with_gold, n_crowds in plan:
        rows = [one_crowd(kind, seed, with_gold=with_gold) for seed in range(n_crowds)]
        for figure in summarised(kind, rows, with_gold=with_gold):
            results.append(figure)
            print(*figure.values(), sep=", ", flush=True)
    if (DATASETS / "index.csv").is_file():
        results += real_rows()
    print(evidence.write("decisions", results).relative_to(evidence.REPOSITORY))
    print(draw_chart(results).relative_to(evidence.REPOSITORY))


if __name__ == "__main__":
    main()
