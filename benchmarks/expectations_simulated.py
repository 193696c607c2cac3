"""Do expected recall, precision, prevalence and accuracy hold on simulated crowds, whose truth is known exactly?

    python -m benchmarks.expectations_simulated [--seeds 9]

Writes docs/evidence/expectations_simulated.csv: crowds of 1 000 items with 8 votes each, the rare class one in 4, 8 or
31, with mostly good annotators or noisy ones (a quarter of each type). They err in one of three ways:

- independent: independently of one another;
- shared: they share errors, and the rarer the class, the fewer false votes for it they cast, both as in real crowds;
- shared, as accurate for any class: they share errors, but cast as many false votes for a class that is one item in 31
  as for one that is every fourth. None of the 31 real crowds is like that: at one item in 31 real annotators vote for
  the class on 3% of the other items (the line through all of them, benchmarks/shared_errors.py), these on 20 to 30%.

Of each crowd, the labels of the default method: the true figure and the 90% intervals of annotators who err
independently, of annotators who share errors, and of both together, which is what is expected. ``shift`` and
``log_slope`` are the (d, log b) of the curve of shared errors that fit the truth of the crowd (means over the
likelihood), to compare with real crowds. Then how many intervals hold the truth, and their mean widths; where the
errors are not named, of the first two kinds.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

import rarevote
from benchmarks import evidence
from benchmarks.expectations import FIGURES, LOG_SLOPES, SHIFTS, Row, intervals, likelihood, sums
from rarevote.simulate.crowds import SimulatedCrowd, simulate_crowd

IMBALANCES = (3, 7, 30)
#: shares of the types of annotators
QUALITIES: dict[str, dict[str, Any]] = {
    "good": {"p_good": 0.7, "p_majority": 0.1, "p_minority": 0.1, "p_bad": 0.1},
    "noisy": {"p_good": 0.25, "p_majority": 0.25, "p_minority": 0.25, "p_bad": 0.25},
}
ERRORS: dict[str, dict[str, Any]] = {
    "independent": {},
    "shared": {"shared_errors": "real", "prevalence_effect": "real"},
    "shared, as accurate for any class": {"shared_errors": "real"},
}
#: what the demand on coverage is about
DEMANDED = ("independent", "shared")


def simulated(imbalance: int, quality: str, errors: str, seed: int, n_tasks: int) -> SimulatedCrowd:
    """One crowd."""
    return simulate_crowd(
        n_tasks,
        imbalance=imbalance,
        random_state=seed,
        **QUALITIES[quality],
        **ERRORS[errors],
    )


def true_figures(crowd: SimulatedCrowd, result: rarevote.Result) -> dict[str, float]:
    """What the truth says of the labels."""
    is_rare = crowd.truth[result.tasks.astype(int)] == 1
    flagged = result.labels == 1
    hits = float((flagged & is_rare).sum())
    right = float((result.labels == crowd.truth[result.tasks.astype(int)]).mean())
    shares = hits / is_rare.sum(), hits / max(flagged.sum(), 1), float(is_rare.mean()), right
    return dict(zip(FIGURES, shares, strict=True))


def crowd_rows(imbalance: int, quality: str, errors: str, seed: int, n_tasks: int = 1000) -> Iterator[Row]:
    """A row for each figure of one crowd."""
    crowd = simulated(imbalance, quality, errors, seed, n_tasks)
    result = rarevote.fit(crowd.arrays, rare=1).decide()
    one, truths = result.expect(), true_figures(crowd, result)
    found = dict(zip(FIGURES, (one.recall, one.precision, one.prevalence, result.decision.accuracy), strict=True))
    about = {"imbalance": imbalance, "quality": quality, "errors": errors, "seed": seed}
    about["leans_to"] = result.leaning.world
    believed = likelihood(result.probabilities.p[:, 1], crowd.truth[result.tasks.astype(int)] == 1)
    for name, nodes in (("shift", SHIFTS), ("log_slope", LOG_SLOPES)):
        about[name] = float(believed @ nodes / believed.sum())
    for figure, truth in truths.items():
        yield {**about, "figure": figure, "truth": truth, **intervals(found[figure], truth)}


def all_rows(n_seeds: int) -> Iterator[Row]:
    rows: list[Row] = []
    for imbalance, quality, errors, seed in product(IMBALANCES, QUALITIES, ERRORS, range(n_seeds)):
        rows += crowd_rows(imbalance, quality, errors, seed)
        print(imbalance, quality, errors, seed, flush=True)
    yield from rows
    kinds: list[dict[str, Any]] = [{}, *({name: kind} for name, of in _KINDS.items() for kind in of)]
    kinds += [{"errors": errors, "imbalance": imbalance} for errors, imbalance in product(ERRORS, IMBALANCES)]
    for kind in kinds:
        wanted = {"errors": DEMANDED} | {name: (value,) for name, value in kind.items()}
        mine = [row for row in rows if all(row[name] in values for name, values in wanted.items())]
        for row in sums("", mine, **kind):
            yield {"seed": row.pop("dataset"), **row}


_KINDS: dict[str, Iterable[Any]] = {"errors": ERRORS, "quality": QUALITIES, "imbalance": IMBALANCES}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=9, help="crowds of each kind")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = list(all_rows(options.seeds))
    fields = list(rows[0])
    rounded = [
        {name: round(row[name], 4) if isinstance(row.get(name), float) else row.get(name, "") for name in fields}
        for row in rows
    ]
    print(evidence.write("expectations_simulated", rounded).relative_to(evidence.REPOSITORY))


if __name__ == "__main__":
    main()
