"""What decisions by cost really cost on real crowds, beside the default's labels and beside deciding nothing.

    RAREVOTE_DATA=... python -m benchmarks.costs

A missed item of the rarest class costs 1, 3, 5, 10, 20 or 50, any other mistake 1. ``rule`` is the realised cost, on
the items with a truth, of labels by least expected cost (``--cost``), ``own`` that of the default's own labels, ``all``
that of labelling every item as the rarest class, and ``none`` that of labelling every item as the other class that is
expected to cost least. ``expected_...`` is what was expected of each: as much as the command line prints beside the
decision. Nothing here is learnt on any dataset.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

import rarevote
from benchmarks import evidence
from benchmarks.datasets import slugs
from benchmarks.expectations import opened, rarest
from rarevote.decide.decision import expected_costs
from rarevote.study.datasets import find_dataset

MISSES = (1, 3, 5, 10, 20, 50)
Row = dict[str, Any]


def rows_of(slug: str) -> Iterator[Row]:
    """One row per price of a miss."""
    votes, truth = opened(slug)
    items, rare, K = np.flatnonzero(truth >= 0), rarest(truth), votes.n_classes
    fitted = rarevote.fit(votes, rare=votes.classes[rare])
    p, own = fitted.probabilities[items], fitted.decide().codes[items]
    for miss in MISSES:
        costs = 1.0 - np.eye(K)
        costs[rare, np.arange(K) != rare] = miss
        constant = (p @ costs).sum(axis=0)
        other = min((k for k in range(K) if k != rare), key=lambda k: constant[k])
        labels = {
            "rule": fitted.decide(costs=costs).codes[items],
            "own": own,
            "all": np.full(len(items), rare),
            "none": np.full(len(items), other),
        }
        row: Row = {
            "dataset": slug,
            "source_group": find_dataset(slug).source_group,
            "items": len(items),
            "of_class": int((truth == rare).sum()),
            "miss": miss,
            "flagged": int((labels["rule"] == rare).sum()),
        }
        row |= {name: float(costs[truth[items], codes].sum()) for name, codes in labels.items()}
        row |= {f"expected_{name}": float(expected_costs(p, codes, costs).sum()) for name, codes in labels.items()}
        yield {name: round(value, 1) if isinstance(value, float) else value for name, value in row.items()}


def main() -> None:
    warnings.simplefilter("ignore")
    rows: list[Row] = []
    for slug in slugs(match="exact"):
        rows += rows_of(slug)
        print(*rows[-1].values(), sep=", ", flush=True)
    print(evidence.write("costs", rows).relative_to(evidence.REPOSITORY))


if __name__ == "__main__":
    main()
