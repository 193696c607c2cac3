"""Does a recall target find the share that it names, and with how many flags? Real crowds, source groups left out.

    RAREVOTE_DATA=... python -m benchmarks.recall_targets [--keep FOLDER]

For the rarest class of every dataset (items with truth only), the default method and targets of 0.8, 0.9 and 0.95, as
many of the most probable items are flagged as bring the median recall over some draws to the target:

* ``shared``: draws of the curve of shared errors, learnt without the dataset's source group;
* ``shipped``: the same with the curve that the package holds, which is what ``--min-recall`` does;
* ``both``: those of ``shared`` and of the vote sampler together, three to one;
* ``independent``: draws of the vote sampler alone, which is what ``--errors independent`` does.

``recall`` is the recall that comes of it, ``oracle`` how many of the most probable items an oracle, which knows the
truth, would flag for the target. Items without a vote for the class are not flagged, so that ``reachable`` is the
largest recall.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import rarevote
from benchmarks import evidence
from benchmarks.datasets import slugs
from benchmarks.expectations import learnt, likelihood, opened, rarest
from rarevote.decide.expectations import DEFAULT, N_BINS, Curve, bin_of, count_drawn, drawn_rates, logit_of
from rarevote.decide.recall_target import fewest_flags, flags_in_draws, flags_needed
from rarevote.study.datasets import find_dataset

TARGETS = (0.8, 0.9, 0.95)
WAYS = ("shared", "shipped", "both", "independent")
Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Crowd:
    """The items of a dataset that have a truth.

    Attributes:
        slug: the dataset.
        p: probability of the rarest class, (n).
        is_rare: whether each item is of it, (n).
        may: whether each item has a vote for it, (n).
        drawn: whether each item is of it in each draw of independent errors, (n_draws, n).
    """

    slug: str
    p: NDArray[np.float64]
    is_rare: NDArray[np.bool_]
    may: NDArray[np.bool_]
    drawn: NDArray[np.bool_]

    @property
    def group(self) -> str:
        return find_dataset(self.slug).source_group

    def flags(self, way: str, curve: Curve, target: float) -> int:
        """How many items are flagged."""
        bins = bin_of(self.p)
        of_all, that_may = (np.bincount(bins[rows], minlength=N_BINS) for rows in (self.p >= 0, self.may))
        if way in ("shared", "shipped"):
            return flags_needed(of_all, that_may, target, curve)
        kinds = [count_drawn(self.drawn & rows, bins, N_BINS) for rows in (self.p >= 0, self.may)]
        if way == "independent":
            found = flags_in_draws(np.stack(kinds, axis=1), that_may, target)
            assert found is not None
            return found
        rate = np.zeros((3 * len(self.drawn), N_BINS))
        used = np.flatnonzero(of_all)
        rate[:, used] = drawn_rates(logit_of(used), of_all[used], curve, np.random.default_rng(4))
        found_in = np.concatenate([rate * that_may, kinds[1]])
        total = np.concatenate([rate @ of_all, kinds[0].sum(axis=1)])
        return fewest_flags(found_in, total, that_may, target)

    def row(self, way: str, curve: Curve, target: float) -> Row:
        """What comes of a target."""
        n = self.flags(way, curve, target)
        of_class = int(self.is_rare.sum())
        # Equal probabilities are flagged together, as the decider does; the oracle breaks ties as they stand.
        threshold = np.sort(self.p[self.may])[::-1][n - 1] if n else np.inf
        flagged = self.may & (self.p >= threshold)
        hits = np.cumsum(self.is_rare[np.argsort(-self.p, kind="stable")])
        return {
            "dataset": self.slug,
            "source_group": self.group,
            "items": len(self.p),
            "of_class": of_class,
            "target": target,
            "way": way,
            "flags": int(flagged.sum()),
            "recall": float((flagged & self.is_rare).sum() / of_class),
            "oracle": int(np.searchsorted(hits, np.ceil(target * of_class - 1e-9)) + 1),
            "reachable": float((self.may & self.is_rare).sum() / of_class),
        }


def crowd_of(slug: str, keep: Path | None) -> Crowd:
    """A dataset, fitted and sampled; kept for another run where a folder is named."""
    path = None if keep is None else keep / f"{slug}.npz"
    if path is None or not path.is_file():
        votes, truth = opened(slug)
        items, rare = np.flatnonzero(truth >= 0), rarest(truth)
        fitted = rarevote.fit(votes)
        kept: dict[str, Any] = {
            "p": fitted.probabilities[items, rare],
            "is_rare": truth[items] == rare,
            "may": votes.votes()[items, rare] > 0,
            "drawn": fitted.independent.of_class(rare)[:, items],
        }
        if path is not None:
            np.savez_compressed(path, **kept)
    else:
        kept = dict(np.load(path))
    return Crowd(slug, **kept)


def rows_of(crowds: list[Crowd]) -> Iterator[Row]:
    """One row a dataset, target and way, the curve learnt without its group; then means."""
    likelihoods = np.stack([likelihood(crowd.p, crowd.is_rare) for crowd in crowds])
    groups = [crowd.group for crowd in crowds]
    rows = []
    for group in dict.fromkeys(groups):
        others = [i for i, name in enumerate(groups) if name != group]
        curve = learnt(likelihoods[others], [groups[i] for i in others])
        for crowd in (crowd for crowd in crowds if crowd.group == group):
            for target in TARGETS:
                rows += [crowd.row(way, DEFAULT if way == "shipped" else curve, target) for way in WAYS]
    yield from rows
    for target in TARGETS:
        for way in WAYS:
            mine = [row for row in rows if (row["target"], row["way"]) == (target, way)]
            yield {
                "dataset": f"mean of {len(mine)}",
                "target": target,
                "way": way,
                "recall": float(np.mean([row["recall"] for row in mine])),
                "off": float(np.mean([abs(row["recall"] - target) for row in mine])),
                "flags_per_true": float(np.median([row["flags"] / row["of_class"] for row in mine])),
                "oracle_per_true": float(np.median([row["oracle"] / row["of_class"] for row in mine])),
                "flags_per_oracle": float(np.median([row["flags"] / row["oracle"] for row in mine])),
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=Path, help="a folder for what is computed, so that a run can go on")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
    crowds = []
    for slug in slugs(match="exact"):
        crowds.append(crowd_of(slug, options.keep))
        print(slug, flush=True)
    rows = list(rows_of(crowds))
    fields = [*rows[0], *(name for name in rows[-1] if name not in rows[0])]
    full = [{name: row.get(name, "") for name in fields} for row in rows]
    rounded = [{name: round(v, 4) if isinstance(v, float) else v for name, v in row.items()} for row in full]
    for row in rounded[-len(TARGETS) * len(WAYS) :]:
        print({name: value for name, value in row.items() if value != ""})
    print(evidence.write("recall_targets", rounded).relative_to(evidence.REPOSITORY))


if __name__ == "__main__":
    main()
