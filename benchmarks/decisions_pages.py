"""What docs/evidence/decisions.csv has measured, in the how-tos on costs, recall targets and reviews.

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


def _titles(imbalance: str, tasks: str) -> list[str]:
    return [imbalance, f"{int(tasks):,}".replace(",", " ")]


def recall_table(found: Figures, crowds: dict[str, int]) -> str:
    """How often the target was met, at which price, and what was promised."""
    rows = []
    for imbalance, tasks in KINDS:
        for gold, title in (("0", "none"), ("0.05", "5%")):

            def of(figure: str, key: tuple[str, str, str] = (imbalance, tasks, gold)) -> float:
                return found["default", *key, f"recall 0.9: {figure}"]

            rows.append(
                [
                    *_titles(imbalance, tasks),
                    title,
                    f"{of('mean realised recall'):.3f}",
                    f"{of('realised recall >= 0.88'):.0f}",
                    f"{of('mean flags over best threshold'):.2f}",
                    f"{of('flags <= 1.5 x best threshold'):.0f}",
                    f"{of('promised'):.0f}",
                    f"{of('promised, recall >= 0.88'):.0f}",
                ]
            )
    head = ["imbalance", "tasks", "random gold", "mean recall", "recall ≥ 0.88", "mean flags / best"]
    head += ["flags ≤ 1.5 × best", "promised", "promised and ≥ 0.88"]
    return pages.table(head, rows)


def real_text(found: Figures, crowds: dict[str, int]) -> str:
    """The same on the real datasets."""
    name = "real binary datasets"

    def of(figure: str) -> float:
        return found[name, "", "", "0", figure]

    return (
        f"On {crowds[name]} real binary datasets without gold the target was promised on "
        f"{of('recall 0.9: promised'):.0f} and met (recall of at least 0.88) on "
        f"{of('recall 0.9: promised, recall >= 0.88'):.0f} of these; over all of them it was met on "
        f"{of('recall 0.9: realised recall >= 0.88'):.0f}. The interval of the class share held the truth on "
        f"{of('prevalence: interval contains the truth'):.0f}. Mean log loss fell from "
        f"{of('mean log loss, CC-Rasch'):.3f} to {of('mean log loss, calibrated'):.3f}. People share misconceptions, "
        "and no model can see that in their votes: before you rely on a promise, check it with a random sample."
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
    "recall-targets.md": {"recall": recall_table, "real crowds": real_text},
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
