"""How many items the page asks a person to look at, and whether these are the right ones.

    RAREVOTE_DATA=... python -m benchmarks.piles

Writes docs/evidence/piles.csv: for every dataset the default's own decision, the share of the items in the pile "worth
a look" (`rarevote.diagnose.piles`), and how many of the labels inside and outside that pile are right.
"""

from __future__ import annotations

import warnings

import numpy as np

import rarevote
from benchmarks import evidence
from benchmarks.datasets import slugs
from benchmarks.expectations import opened
from rarevote.diagnose.piles import Pile
from rarevote.errors import RarevoteWarning


def of_dataset(slug: str) -> dict[str, str | float | int]:
    """The pile of one dataset."""
    votes, truth = opened(slug)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RarevoteWarning)
        result = rarevote.fit(votes).decide()
    look = result.fitted.diagnose(result).piles.pile[: len(truth)] == Pile.LOOK
    known, right = truth >= 0, result.codes[: len(truth)] == truth

    def share(some: np.ndarray) -> float | str:
        return round(float(right[some & known].mean()), 4) if (some & known).any() else ""

    return {
        "dataset": slug,
        "items": len(look),
        "classes": votes.n_classes,
        "worth_a_look": round(float(look.mean()), 4),
        "right": share(known),
        "right_inside": share(look),
        "right_outside": share(~look),
    }


def sentence() -> str:
    """What the page on the report says about the size of the pile."""
    rows = evidence.read("piles")
    shares = np.array([float(row["worth_a_look"]) for row in rows])
    both = [row for row in rows if row["right_inside"] and row["right_outside"]]
    better = sum(float(row["right_outside"]) > float(row["right_inside"]) for row in both)
    return (
        f"On {len(rows)} real datasets {shares.min():.0%} to {shares.max():.0%} of the items are worth a look,\n"
        f"{shares.mean():.0%} on average. Labels of the other items are right more often than theirs on "
        f"{better} of {len(both)} datasets."
    )


def main() -> None:
    rows = []
    for slug in slugs():
        rows.append(of_dataset(slug))
        print(*rows[-1].values(), sep=", ", flush=True)
    print(evidence.write("piles", rows).relative_to(evidence.REPOSITORY))


if __name__ == "__main__":
    main()
