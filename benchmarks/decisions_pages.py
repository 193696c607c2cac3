"""What docs/evidence has measured (decisions, expectations, promises), in the how-tos on costs, recall and reviews.

python -m benchmarks.decisions_pages
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

from benchmarks import pages
from benchmarks.evidence import EVIDENCE, REPOSITORY

HOWTO = REPOSITORY / "docs" / "howto"
KINDS = [("7", "3000"), ("30", "6000"), ("30", "12000")]  # imbalance and tasks
BUDGETS = ("0.01", "0.02", "0.05", "0.1")

Figures = dict[tuple[str, str, str, str, str], float]  # by crowd, imbalance, tasks, gold, figure


def figures(path: Path) -> tuple[Figures, dict[str, int]]:
    """All figures, and how many real crowds there are among them."""
    with path.open(newline="", encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    keys = ("crowd", "imbalance", "tasks", "gold", "figure")
    crowds = {row["crowd"]: int(row["crowds"]) for row in rows}
    return {tuple(row[key] for key in keys): float(row["value"]) for row in rows}, crowds  # type: ignore[misc]


def _evidence(name: str) -> list[dict[str, str]]:
    with (EVIDENCE / f"{name}.csv").open(newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def _titles(imbalance: str, tasks: str) -> list[str]:
    return [imbalance, f"{int(tasks):,}".replace(",", " ")]


def interval_table(found: Figures, crowds: dict[str, int]) -> str:
    """On how many datasets the intervals of what to expect held the truth, before and after."""
    rows = []
    for row in _evidence("expectations"):
        if row["dataset"].startswith("sum of"):
            of = row["dataset"].removeprefix("sum of ")
            counts = [f"{row[name]} of {of}" for name in ("before_covers", "after_covers", "told")]
            rows.append([f"`{row['method']}`", row["figure"], *counts])
    head = ["labels of", "figure", "independent errors", "shared errors", "told"]
    return pages.table(head, rows)


def promise_text(found: Figures, crowds: dict[str, int]) -> str:
    """How often random gold promised, and kept it."""
    rows = _evidence("promises")
    made = [row for row in rows if int(row["promised"])]
    often = [row for row in made if int(row["promised"]) >= 100]
    kept = {row["dataset"]: int(row["kept_on_all_items"]) / int(row["promised"]) for row in often}
    worst = min(kept, key=kept.__getitem__)
    total, good = (sum(int(row[name]) for row in made) for name in ("promised", "kept_on_all_items"))
    return (
        f"{rows[0]['samples']} random samples of 5% from each of {len(rows)} real datasets: a recall of 0.9 with 80% "
        f"confidence was promised {total:,} times, on {len(made)} datasets (on the others the samples hold too few of "
        f"the class), and kept {good:,} times, {good / total:.0%}; on the worst of the {len(often)} with at least 100 "
        f"promises, {worst}, {kept[worst]:.0%}."
    )


def cost_table(found: Figures, crowds: dict[str, int]) -> str:
    """Realised cost of the method's labels and of the decisions."""
    rows = []
    for imbalance, tasks in KINDS:
        key = ("default", imbalance, tasks, "0")
        argmax, decided = (found[*key, f"cost 1:20: mean realised cost, {name}"] for name in ("argmax", "costs"))
        better = found[*key, "cost 1:20: least expected cost below the method's labels"]
        rows.append(
            [*_titles(imbalance, tasks), f"{argmax:.0f}", f"{decided:.0f}", f"{decided / argmax:.2f}", f"{better:.0f}"]
        )
    return pages.table(["imbalance", "tasks", "method's labels", "decisions", "ratio", "lower in (of 100)"], rows)


def review_table(found: Figures, crowds: dict[str, int]) -> str:
    """Realised cost after a review, by how the items were chosen."""
    rows = []
    for imbalance, tasks in KINDS:
        for budget in BUDGETS:
            key = ("default", imbalance, tasks, "0")
            costs = [
                f"{found[*key, f'cost 1:20: mean realised cost, review_{order}_{budget}']:.0f}"
                for order in ("gain", "lowest_confidence", "random")
            ]
            rows.append([*_titles(imbalance, tasks), f"{float(budget):.0%}", *costs])
    head = ["imbalance", "tasks", "reviewed", "`--max-review`", "lowest confidence", "at random"]
    return pages.table(head, rows)


Render = Callable[[Figures, dict[str, int]], str]
BLOCKS: dict[str, dict[str, Render]] = {
    "recall-targets.md": {"intervals": interval_table, "promises": promise_text},
    "costs.md": {"costs": cost_table},
    "review-loop.md": {"review": review_table},
}


def filled(page: str) -> str:
    """A how-to with its figures as the evidence has them."""
    found = figures(EVIDENCE / "decisions.csv")
    text = (HOWTO / page).read_text(encoding="utf-8")
    return pages.filled(text, {name: render(*found) for name, render in BLOCKS[page].items()}, page)


def main() -> None:
    for page in BLOCKS:
        (HOWTO / page).write_text(filled(page), encoding="utf-8")
        print(f"docs/howto/{page}")


if __name__ == "__main__":
    main()
