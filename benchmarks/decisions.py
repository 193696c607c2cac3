"""Do decisions by cost pay, and reviews? Real and simulated crowds.

    python -m benchmarks.decisions [--seeds 100] [--chart]

Writes docs/evidence/decisions.csv, a row per real dataset with two classes and per kind of simulated crowd, and the
chart decisions_review.svg beside it (`--chart`: only the chart, from the figures that are there). A missed item of the
rarest class costs 20, a false alarm 1. `own` is the realised cost of the labels of the default method, `least_cost`
that of decisions by cost, `shares_given` that of the same where the true class shares are given; of several crowds
these are means, and `lower` says in how many the decision costs less than the labels. `review_ORDER_SHARE` is the part
of `least_cost` that is left once this share of the items is known, chosen by expected gain, as the least certain or at
random. Recall targets and what is expected of labels are measured by benchmarks/expectations.py. The datasets are
looked for in RAREVOTE_DATA.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import rarevote
from benchmarks import evidence
from benchmarks.datasets import slugs
from benchmarks.expectations import opened, rarest
from rarevote.crowd.annotations import Annotations
from rarevote.decide.review import review_gains
from rarevote.simulate.crowds import simulate_crowd

KINDS = [(7, 3000), (30, 6000), (30, 12_000)]  # imbalance and tasks
BUDGETS = (0.01, 0.02, 0.05, 0.1)
ORDERS = {"gain": "--max-review", "least_certain": "the least certain", "random": "at random"}

Codes = NDArray[np.int64]
Row = dict[str, Any]


def one_crowd(votes: Annotations, truth: Codes, seed: int = 0) -> Row:
    """Realised costs on the items with truth (a class number, else -1)."""
    items, rare = np.flatnonzero(truth >= 0), rarest(truth)
    costs = np.ones((2, 2)) - np.eye(2)
    costs[rare, 1 - rare] = 20.0
    fitted = rarevote.fit(votes, use_gold=False)
    shares = dict(zip(votes.classes.tolist(), np.bincount(truth[items], minlength=2) / len(items), strict=True))
    decided = fitted.decide(costs=costs)
    paid = costs[truth[items], decided.codes[items]]
    row: Row = {
        "own": float(costs[truth[items], fitted.decide().codes[items]].sum()),
        "least_cost": float(paid.sum()),
        "shares_given": float(costs[truth[items], fitted.decide(costs=costs, prevalence=shares).codes[items]].sum()),
    }
    p = decided.probabilities.p
    orders = {
        "gain": np.argsort(-review_gains(p, decided.codes, costs)[items], kind="stable"),
        "least_certain": np.argsort(p.max(axis=1)[items], kind="stable"),
        "random": np.random.default_rng([seed, 3]).permutation(len(items)),
    }
    for budget in BUDGETS:
        for name, order in orders.items():
            left = paid[order[int(budget * len(items)) :]].sum()
            row[f"review_{name}_{budget:g}"] = float(left / paid.sum()) if paid.any() else 0.0
    return row


def summarised(crowd: str, n_items: int, rows: list[Row]) -> Row:
    """One row of the evidence."""
    means = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
    lower = {f"lower_{name}": sum(row[name] < row["own"] for row in rows) for name in ("least_cost", "shares_given")}
    shown = {name: round(value, 4 if name.startswith("review") else 1) for name, value in means.items()}
    return {"crowd": crowd, "items": n_items, "crowds": len(rows), **lower, **shown}


def real_rows() -> Iterator[Row]:
    for slug in slugs(match="exact"):
        votes, truth = opened(slug)
        if votes.n_classes == 2:
            yield summarised(slug, int((truth >= 0).sum()), [one_crowd(votes, truth)])


def simulated_rows(n_seeds: int) -> Iterator[Row]:
    for imbalance, n_tasks in KINDS:
        rows = []
        for seed in range(n_seeds):
            crowd = simulate_crowd(n_tasks, imbalance=imbalance, random_state=seed)
            votes = Annotations.from_arrays(*crowd.arrays, classes=[0, 1])
            rows.append(one_crowd(votes, crowd.truth.astype(np.int64), seed))
        yield summarised(f"simulated, imbalance {imbalance}", n_tasks, rows)


def kinds(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Rows of the evidence by what a table or a panel is about: all real datasets, each kind of simulated crowd."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        simulated = str(row["crowd"]).startswith("simulated")
        name = f"{row['crowd']}, {int(row['items']):,} items" if simulated else "real, two classes"
        found.setdefault(name, []).append(row)
    return found


def left(rows: Iterable[Mapping[str, Any]], order: str, budget: float) -> float:
    """Mean part of the cost that a review leaves."""
    return float(np.mean([float(row[f"review_{order}_{budget:g}"]) for row in rows]))


def draw_chart(rows: Iterable[Mapping[str, Any]]) -> Path:
    """The cost that is left by share of items reviewed, one panel per kind of crowd."""
    from rarevote.charts.svg import to_svg
    from rarevote.study.figures import Axis, Mark, line_chart

    points = []
    for panel, own in kinds(rows).items():
        for order, title in ORDERS.items():
            for budget in (0.0, *BUDGETS):
                part = 100 * left(own, order, budget) if budget else 100.0
                points.append(Mark(panel, title, 100 * budget, part, part, part))
    chart = line_chart(
        points,
        title="Cost that is left after a review (a miss costs 20, a false alarm 1)",
        x=Axis("items reviewed, %"),
        y=Axis("cost left, %"),
        same_y=False,
    )
    path = evidence.EVIDENCE / "decisions_review.svg"
    path.write_text(to_svg(chart), encoding="utf-8")
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=100, help="crowds of each simulated kind")
    parser.add_argument("--chart", action="store_true", help="only draw the chart, from the figures that are there")
    options = parser.parse_args()
    if options.chart:
        print(draw_chart(evidence.read("decisions")).relative_to(evidence.REPOSITORY))
        return
    warnings.simplefilter("ignore")
    done: list[Row] = []
    for row in (*real_rows(), *simulated_rows(options.seeds)):
        done.append(row)
        print(*row.values(), sep=", ", flush=True)
    print(evidence.write("decisions", done).relative_to(evidence.REPOSITORY))
    print(draw_chart(done).relative_to(evidence.REPOSITORY))


if __name__ == "__main__":
    main()
