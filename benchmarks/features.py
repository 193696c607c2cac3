"""Votes and features on seven real sets: what features are worth, and that useless ones change nothing.

    python -m benchmarks.features [check all thinned permuted pool order] [--draws 8] [--runs 210]

Writes docs/evidence/features.csv, one part at a time (all parts if none is named); `benchmarks.features_size` adds the
cost for a million items. The sets are in a folder `features` beside the benchmark datasets, each with `labels.csv`,
`truth.csv` and `features.parquet`. Scores are the average precision (AP) of the rarest class of the truth and the log
loss. What is wanted comes from an independent implementation of the same method.

- check: the small example of 300 items in the folder `check`, made by a formula.
- all: every vote, votes alone and with features; flags for each true item at 90% recall.
- thinned: one and three random votes an item, the mean of some draws.
- permuted: every item has the features of a random other one; how often the answer is that of the votes, to the bit.
- pool: half of the items have no votes; AP among them.
- order: rows of both files in random order; the same labels, and by how much probabilities differ.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import rarevote
from benchmarks.feature_sets import FOLDER, INFORMATIVE, SETS, FeatureSet, load, row, write_rows
from rarevote.scoring.ranking import flags_needed

# AP and log loss, votes alone and with features, with 1, 3 and all votes.
EXPECTED = {
    "product": {
        "1": (0.474, 0.834, 0.323, 0.195),
        "3": (0.732, 0.874, 0.221, 0.153),
        "all": (0.732, 0.874, 0.221, 0.153),
    },
    "appendicitis": {
        "1": (0.496, 0.751, 0.336, 0.252),
        "3": (0.693, 0.775, 0.287, 0.254),
        "all": (0.743, 0.790, 0.266, 0.254),
    },
    "music": {
        "1": (0.494, 0.800, 1.723, 1.047),
        "3": (0.863, 0.888, 0.964, 0.701),
        "all": (0.876, 0.903, 0.829, 0.640),
    },
    "medical-cause": {
        "1": (0.581, 0.710, 0.456, 0.389),
        "3": (0.799, 0.833, 0.323, 0.295),
        "all": (0.940, 0.940, 0.222, 0.215),
    },
    "amazon-sentiment-negative": {
        "1": (0.604, 0.662, 0.235, 0.194),
        "3": (0.842, 0.850, 0.122, 0.117),
        "all": (0.895, 0.886, 0.112, 0.108),
    },
    "movie-reviews-4class": {
        "1": (0.493, 0.594, 1.160, 1.048),
        "3": (0.744, 0.768, 0.733, 0.688),
        "all": (0.843, 0.847, 0.674, 0.635),
    },
}
# Reported probability of class 1.
CHECK = {
    "votes alone": {"t0": 0.060484, "t1": 0.080133, "t2": 0.081541},
    "features": {"t0": 0.021209, "t1": 0.027038, "t2": 0.023014, "t250": 0.166458},
}
MEASURES = ("AP", "log loss")
ALL_WITHIN, CELL_WITHIN, MUSIC_WITHIN, MEAN_WITHIN = 0.002, 0.03, 0.06, 0.01
FLAGS = {"product": 1.3, "appendicitis": 2.1}
IDENTICAL = 0.98
POOL = {"product": 0.75, "appendicitis": 0.6, "medical-cause": 0.53, "music": 0.6, "amazon-sentiment-negative": 0.34}
ORDER_WITHIN = 1e-6
MEAN = "mean of six"

Rows = Iterator[list[dict[str, Any]]]


def pair(one: FeatureSet, votes: Any) -> tuple[rarevote.Fitted, rarevote.Fitted]:
    """Fits to the votes alone and with features."""
    return rarevote.fit(votes), rarevote.fit(votes, features=one.features)


def check() -> Rows:
    """The check example, as far as an estimator with its default stop shows it."""
    votes, features = FOLDER / "check" / "votes.csv", FOLDER / "check" / "features.csv"
    for kind, given in (("votes alone", None), ("features", features)):
        fitted = rarevote.fit(votes, features=given)
        place = {task: number for number, task in enumerate(fitted.crowd.population.tolist())}
        expected = {task: p for task, p in CHECK[kind].items() if task in place}
        apart = max(abs(fitted.probabilities[place[task], 1] - p) for task, p in expected.items())
        measure = f"largest difference of {len(expected)} reported probabilities: {kind}"
        yield [
            row(
                "1 check values", "check", "2", measure, runs=1, with_features=f"{apart:.1e}", wanted="at most 0.0001",
                holds=apart <= 1e-4,
            )
        ]  # fmt: skip
    record = fitted.features_
    assert record is not None
    for measure, found, wanted in (("gain", record.gain, 39.6254), ("its standard error", record.se, 6.0220)):
        assert found is not None
        yield [
            row(
                "1 check values", "check", "2", measure, runs=1, with_features=f"{found:.4f}",
                wanted=f"{wanted:.4f}, within 0.001", holds=abs(found - wanted) <= 1e-3,
            )
        ]  # fmt: skip


def all_votes() -> Rows:
    """Every vote."""
    for name in SETS:
        one = load(name)
        fits = pair(one, one.votes)
        found = np.array([one.scores(fitted) for fitted in fits])  # (2 fits, 2 measures)
        rows = []
        for k, measure in enumerate(MEASURES):
            wanted, holds = "the same: features left out", _is_same(*fits)
            if name in EXPECTED:
                of_page = np.array(EXPECTED[name]["all"][2 * k : 2 * k + 2])
                wanted = f"{of_page[0]:.3f} and {of_page[1]:.3f}, within {ALL_WITHIN:g}"
                holds = bool((np.abs(found[:, k] - of_page) <= ALL_WITHIN).all())
            rows.append(_two("2 all votes", name, "all", measure, 1, found[:, k], wanted, holds))
        flags = [_flags(one, fitted) for fitted in fits]
        limit = FLAGS.get(name)
        rows.append(
            _two(
                "2 all votes", name, "all", "flags for each true item at 90% recall", 1, flags,
                "" if limit is None else f"at most {limit:g} with features",
                None if limit is None else flags[1] <= limit,
            )
        )  # fmt: skip
        yield rows


def _is_same(alone: rarevote.Fitted, both: rarevote.Fitted) -> bool:
    """Whether features changed no bit of a probability and no label."""
    n = alone.annotations.n_tasks
    is_same = np.array_equal(alone.probabilities, both.probabilities[:n])
    return is_same and np.array_equal(alone.decide().codes, both.decide().codes[:n])


def _flags(one: FeatureSet, fitted: rarevote.Fitted) -> float:
    rows, true = one.known(fitted)
    is_rare = np.array([label == one.rarest for label in true])
    score = fitted.probabilities[rows, fitted.annotations.classes.tolist().index(one.rarest)]
    return flags_needed(score, is_rare, [0.9])[0] / int(is_rare.sum())


def thinned(draws: int) -> Rows:
    """One and three votes an item."""
    for n_votes in (1, 3):
        cells: dict[str, Any] = {}
        for name in SETS:
            one, found, n_same = load(name), [], 0
            for seed in range(draws):
                fits = pair(one, one.thinned(n_votes, np.random.default_rng(seed)))
                found.append([one.scores(fitted) for fitted in fits])
                n_same += _is_same(*fits)
            mean = np.mean(found, axis=0)
            within = MUSIC_WITHIN if name == "music" else CELL_WITHIN
            rows = []
            for k, measure in enumerate(MEASURES):
                wanted, holds = f"the same in all {draws} draws: features left out", n_same == draws
                if name in EXPECTED:
                    of_page = np.array(EXPECTED[name][str(n_votes)][2 * k : 2 * k + 2])
                    wanted = f"{of_page[0]:.3f} and {of_page[1]:.3f}, within {within:g}"
                    holds = bool((np.abs(mean[:, k] - of_page) <= within).all())
                    cells.setdefault(measure, []).append((mean[:, k], of_page))
                rows.append(_two("2 thinned", name, str(n_votes), measure, draws, mean[:, k], wanted, holds))
            yield rows
        for measure, both in cells.items():
            ours, theirs = (np.mean([pair_[side] for pair_ in both], axis=0) for side in (0, 1))
            wanted = f"{theirs[0]:.3f} and {theirs[1]:.3f}, within {MEAN_WITHIN:g}"
            holds = bool((np.abs(ours - theirs) <= MEAN_WITHIN).all())
            yield [_two("2 thinned", MEAN, str(n_votes), measure, draws, ours, wanted, holds)]


def permuted(runs: int) -> Rows:
    """Features of other items: with one, three and all votes in turn."""
    each = -(-runs // len(SETS))
    n_same, n_runs = 0, 0
    for name in SETS:
        one, same = load(name), 0
        for number in range(each):
            rng = np.random.default_rng([number, 1])
            votes = one.thinned((1, 3, None)[number % 3], rng)
            alone = rarevote.fit(votes)
            again = rarevote.fit(votes, features=one.shuffled_features(rng))
            same += _is_same(alone, again)
        n_same, n_runs = n_same + same, n_runs + each
        yield [
            row(
                "3 permuted", name, "1, 3, all", "runs with the answer of the votes", runs=each, with_features=f"{same}"
            )
        ]
    wanted, holds = f"at least {IDENTICAL:.0%} of the runs", n_same >= IDENTICAL * n_runs
    yield [{**_permuted("all sets", n_runs, n_same), "wanted": wanted, "holds": "yes" if holds else "no"}]


def _permuted(name: str, runs: int, n_same: int) -> dict[str, Any]:
    measure = "runs with the answer of the votes"
    return row("3 permuted", name, "1, 3, all", measure, runs=runs, with_features=f"{n_same}")


def pool(draws: int) -> Rows:
    """Half of the items without votes."""
    for name in INFORMATIVE:
        one, found = load(name), []
        tasks = np.unique(one.votes["task"])
        for seed in range(draws):
            voted = np.random.default_rng(seed).permutation(tasks)[: len(tasks) // 2]
            fitted = rarevote.fit(one.votes[one.votes["task"].isin(voted)], features=one.features)
            found.append(one.scores(fitted, pool=True)[0])
        rare = [label == one.rarest for task, label in one.truth.items() if task in set(tasks)]
        least = POOL.get(name)
        yield [
            row(
                "5 pool", name, "none, the other half all", "AP among items without votes", runs=draws,
                votes_only=f"{np.mean(rare):.3f} (chance)", with_features=f"{np.mean(found):.3f}",
                wanted="" if least is None else f"at least {least:g}",
                holds=None if least is None else bool(np.mean(found) >= least),
            )
        ]  # fmt: skip


def order() -> Rows:
    """Rows in another order."""
    for name in SETS:
        one, rng = load(name), np.random.default_rng(0)
        first = rarevote.fit(one.votes, features=one.features)
        same = rarevote.fit(one.votes, features=one.features)
        votes, features = (frame.iloc[rng.permutation(len(frame))] for frame in (one.votes, one.features))
        other = rarevote.fit(votes, features=features)
        place = {task: number for number, task in enumerate(other.crowd.population.tolist())}
        rows = [place[task] for task in first.crowd.population.tolist()]
        columns = [other.annotations.classes.tolist().index(name) for name in first.annotations.classes.tolist()]
        apart = float(np.abs(first.probabilities - other.probabilities[np.ix_(rows, columns)]).max())
        n_labels = int((first.decide().labels != other.decide().labels[rows]).sum())
        bits = np.array_equal(first.probabilities, same.probabilities)
        yield [
            row(
                "7 order", name, "all", "largest difference of a probability", runs=1, with_features=f"{apart:.1e}",
                wanted=f"at most {ORDER_WITHIN:g}", holds=apart <= ORDER_WITHIN,
            ),
            row(
                "7 order", name, "all", "labels that differ; bits where the order is the same", runs=1,
                with_features=f"{n_labels}; {'the same' if bits else 'others'}", wanted="0; the same",
                holds=n_labels == 0 and bits,
            ),
        ]  # fmt: skip


def _two(
    point: str, name: str, votes: str, measure: str, runs: int, found: Any, wanted: str, holds: bool | None
) -> dict[str, Any]:
    """A row of votes alone and with features."""
    alone, both = (f"{value:.3f}" for value in found)
    return row(point, name, votes, measure, runs=runs, votes_only=alone, with_features=both, wanted=wanted, holds=holds)


def main() -> None:
    """Measure, and write the evidence."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--runs", type=int, default=210)
    given = parser.parse_args()
    parts: dict[str, Callable[[], Rows]] = {
        "check": check,
        "all": all_votes,
        "thinned": lambda: thinned(given.draws),
        "permuted": lambda: permuted(given.runs),
        "pool": lambda: pool(given.draws),
        "order": order,
    }
    if unknown := set(given.parts) - set(parts):
        parser.error(f"not a part: {', '.join(unknown)}")
    warnings.simplefilter("ignore")
    for part in given.parts or parts:
        for rows in parts[part]():
            for one in rows:
                print(*one.values(), sep=", ", flush=True)
            print(write_rows(rows))  # a long run that is stopped leaves what it has


if __name__ == "__main__":
    main()
