"""Do expected recall, precision and prevalence hold on real crowds, and are promises kept?

    python -m benchmarks.expectations [--samples 300] [--keep FOLDER] [--only intervals,promises] [--datasets a,b]

Writes docs/evidence/expectations.csv: for the rarest true class of every dataset (items with truth only) and the labels
of a method, the true figure and the 90% intervals: of annotators who err independently, of annotators who share errors
as in real crowds, and of both together, which is what is expected. The curve of shared errors is learnt without the
dataset's source group; the last rows give what was learnt on all: one curve for the default method, one for all other
methods together. rarevote/decide/expectations.py holds these, but for the curve of a class of the default method, which
was learnt on 60 other crowds: "as shipped" are the intervals with that one.
Writes docs/evidence/promises.csv: how often a recall of 0.9 that 5% random gold promised (80% confidence) was kept.
`--keep`: what is computed is kept there, and a run that was stopped goes on. Datasets: RAREVOTE_DATA.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

import rarevote
from benchmarks import evidence
from benchmarks.datasets import DATASETS, slugs
from rarevote.crowd.annotations import Annotations
from rarevote.decide.expectations import (
    DEFAULT,
    DEFAULT_LABELS,
    Curve,
    Expected,
    bin_of,
    expectations,
    expected_accuracy,
    logit_of,
    rates,
)
from rarevote.decide.probabilities import Probabilities
from rarevote.decide.sampled import N_DRAWS, SWEEPS, IndependentDraws, sample_crowd
from rarevote.io.read.frames import read_truth
from rarevote.study.datasets import find_dataset

TARGET, GOLD_SHARE = 0.9, 0.05
#: methods whose probabilities are believed alike
METHODS = {
    "default": ("anchored-rasch",),
    "tempered": ("majority-vote", "dawid-skene", "glad", "mace", "cc-rasch"),
}
FIGURES = ("recall", "precision", "prevalence", "accuracy")
WORLDS = ("independent", "shared", "expected")
#: the default method with the curves that the package holds
SHIPPED = "anchored-rasch, as shipped"
Floats = NDArray[np.float64]
Row = dict[str, Any]

# --------------------------------------------------------------------------------------------------------------------
# learning the curve

_FREEDOM = 4.0
_AXES = np.linspace(-3.5, 3.5, 43), np.linspace(-3.0, 1.6, 31)
SHIFTS, LOG_SLOPES = (axis.ravel() for axis in np.meshgrid(*_AXES, indexing="ij"))


def likelihood(probability: Floats, is_true: NDArray[np.bool_]) -> Floats:
    """Likelihood of the truth at every node of the grid of ``(d, log b)``, up to a factor."""
    used, group, size = np.unique(bin_of(probability), return_inverse=True, return_counts=True)
    logit, hits = logit_of(used), np.bincount(group.reshape(-1), is_true, minlength=size.size)
    share = expit(logit) @ size / size.sum()
    rate = np.clip(
        rates(logit, size, expit(np.log(share / (1 - share)) + SHIFTS), np.exp(LOG_SLOPES)), 1e-12, 1 - 1e-12
    )
    logs = np.log(rate) @ hits + np.log1p(-rate) @ (size - hits)
    return np.asarray(np.exp(logs - logs.max()))


def learnt(likelihoods: Floats, groups: Sequence[str], *, slope: bool = True) -> Curve:
    """The curve that makes the truth of all datasets likeliest, every source group with the same weight.

    That the mean comes from few groups ``G`` widens what is expected of another one: the covariance is multiplied by
    ``(G + 1) / G``.
    """
    weight = np.array([1.0 / list(groups).count(group) for group in groups])

    def spread(at: Floats) -> tuple[Floats, Floats]:
        if not slope:
            return np.array([at[0], 0.0]), np.diag([np.exp(at[1]), 1.0])
        return at[:2], np.array([[np.exp(at[2]), 0.0], [at[3], np.exp(at[4])]])

    # Without a slope, only the nodes next to b = 1 count, and only the shift says how probable they are.
    nodes = np.ones(SHIFTS.size, dtype=bool) if slope else np.abs(LOG_SLOPES) == np.abs(LOG_SLOPES).min()
    n_free = 2 if slope else 1

    def loss(at: Floats) -> float:
        mean, root = spread(at)
        away = np.linalg.solve(root, np.stack([SHIFTS[nodes] - mean[0], LOG_SLOPES[nodes] - mean[1]]))[:n_free]
        density = (1.0 + (away**2).sum(axis=0) / _FREEDOM) ** (-(_FREEDOM + n_free) / 2)
        density /= max(density.sum(), 1e-300)
        return -float(weight @ np.log(likelihoods[:, nodes] @ density + 1e-300))

    start = [-0.2, 0.0, -0.7, 0.0, -0.7] if slope else [-0.2, -0.7]
    found = minimize(loss, start, method="Nelder-Mead", options={"maxiter": 3000, "xatol": 2e-3, "fatol": 1e-3})
    mean, root = spread(found.x)
    n_groups = len(set(groups))
    covariance = root @ root.T * (n_groups + 1) / n_groups
    of_b = float(covariance[1, 1]) if slope else 1e-9
    return Curve((float(mean[0]), float(mean[1])), (float(covariance[0, 0]), float(covariance[1, 0]), of_b))


# --------------------------------------------------------------------------------------------------------------------
# real crowds


@dataclass(frozen=True, eq=False)
class Case:
    """The labels of a method on the items of a dataset that have a truth.

    Attributes:
        slug: the dataset.
        method: the method.
        group: its source group.
        found: probabilities of these items.
        codes: the labels.
        truth: the true classes.
        rare: the rarest of them.
    """

    slug: str
    method: str
    group: str
    found: Probabilities
    codes: NDArray[np.int64]
    truth: NDArray[np.int64]
    rare: int

    @property
    def own(self) -> Floats:
        """Probability of every label."""
        return np.asarray(self.found.p[np.arange(len(self.codes)), self.codes])

    def true_figures(self) -> dict[str, float]:
        flagged, is_rare = self.codes == self.rare, self.truth == self.rare
        hits = float((flagged & is_rare).sum())
        return {
            "recall": hits / is_rare.sum(),
            "precision": hits / max(flagged.sum(), 1),
            "prevalence": float(is_rare.mean()),
            "accuracy": float((self.codes == self.truth).mean()),
        }

    def expected(self, curve: Curve, of_labels: Curve) -> dict[str, Expected]:
        one = expectations(self.found, self.codes, self.rare, curve=curve)
        accuracy = expected_accuracy(self.found, self.codes, curve=of_labels)
        return {"recall": one.recall, "precision": one.precision, "prevalence": one.prevalence, "accuracy": accuracy}


def opened(slug: str) -> tuple[Annotations, NDArray[np.int64]]:
    """A dataset's votes and the true class of every task or -1; a class that only the truth names is one."""
    truth = read_truth(str(DATASETS / slug / "truth.csv"))
    names = sorted({str(label) for label in truth.values()})
    crowd = rarevote.read(DATASETS / slug / "labels.csv", classes=names).annotations
    number = {name: k for k, name in enumerate(crowd.classes.tolist())}
    codes = [number[truth[task]] if task in truth else -1 for task in crowd.task_names().tolist()]
    return crowd, np.array(codes)


def rarest(truth: NDArray[np.int64]) -> int:
    counts = np.bincount(truth[truth >= 0])
    return int(np.where(counts > 0, counts, counts.max() + 1).argmin())


def cases(slug: str, keep: Path | None) -> dict[str, Case]:
    """The cases of a dataset, by method."""
    group = find_dataset(slug).source_group
    path = None if keep is None else keep / f"{slug}.npz"
    if path is not None and path.is_file():
        kept = dict(np.load(path))
    else:
        crowd, truth = opened(slug)
        rows = np.flatnonzero(truth >= 0)
        kept = {"truth": truth[rows]}
        for name in (name for names in METHODS.values() for name in names):
            fitted = rarevote.fit(crowd, name)
            kept[f"p {name}"], kept[f"codes {name}"] = fitted.probabilities[rows], fitted.decide().codes[rows]
        drawn = sample_crowd(crowd, np.full(crowd.n_tasks, -1), n_sweeps=SWEEPS, n_draws=N_DRAWS)
        kept["draws"] = drawn.classes[:, rows]
        if path is not None:
            np.savez_compressed(path, **kept)
    truth, draws = kept["truth"], IndependentDraws(kept["draws"], np.empty((0, 0)))
    found = {}
    for kind, names in METHODS.items():
        for name in names:
            p, unknown = kept[f"p {name}"], np.full(len(truth), -1)
            of_items = Probabilities(
                np.arange(p.shape[1]), p, p.mean(axis=0), unknown, is_default=kind == "default", draws=lambda: draws
            )
            found[name] = Case(slug, name, group, of_items, kept[f"codes {name}"], truth, rarest(truth))
    return found


def interval_rows(datasets: Sequence[str], keep: Path | None) -> Iterator[Row]:
    """One row a method, dataset and figure; then sums; then what was learnt on all."""
    by_slug = {}
    for slug in datasets:
        by_slug[slug] = cases(slug, keep)
        print(slug, flush=True)
    learnt_rows = []
    for kind, names in METHODS.items():
        chosen = [found[name] for name in names for found in by_slug.values()]
        of_class = np.stack([likelihood(case.found.p[:, case.rare], case.truth == case.rare) for case in chosen])
        of_labels = np.stack([likelihood(case.own, case.codes == case.truth) for case in chosen])
        groups = [case.group for case in chosen]
        rows: list[Row] = []
        for group in dict.fromkeys(groups):
            others = [i for i, name in enumerate(groups) if name != group]
            named = [groups[i] for i in others]
            curves = learnt(of_class[others], named), learnt(of_labels[others], named, slope=False)
            for case in chosen:
                if case.group == group:
                    rows += case_rows(case.method, case, *curves)
        yield from rows
        for name in names:
            yield from sums(name, [row for row in rows if row["method"] == name])
        if kind == "default":
            shipped = [row for case in chosen for row in case_rows(SHIPPED, case, DEFAULT, DEFAULT_LABELS)]
            yield from sums(SHIPPED, shipped)
        for what, kept, slope in (("of a class", of_class, True), ("of labels", of_labels, False)):
            curve = learnt(kept, groups, slope=slope)
            print(kind, what, curve, flush=True)
            named_values = zip(("shift", "log slope"), curve.mean, strict=True)
            pairs = zip(("variance of shift", "covariance", "variance of log slope"), curve.covariance, strict=True)
            for name, value in (*named_values, *pairs):
                learnt_rows.append({"method": kind, "dataset": f"learnt {what}", "figure": name, "expected": value})
    yield from learnt_rows


def case_rows(method: str, case: Case, curve: Curve, of_labels: Curve) -> Iterator[Row]:
    found = case.expected(curve, of_labels)
    for figure, truth in case.true_figures().items():
        about = {"method": method, "dataset": case.slug, "source_group": case.group, "figure": figure, "truth": truth}
        yield about | intervals(found[figure], truth)


def intervals(found: Expected, truth: float) -> Row:
    """The interval of each world and of both, whether they hold the truth, how wide they are."""
    row: Row = {}
    named: list[tuple[str, Expected]] = [*found.worlds.items(), ("expected", found)]
    for name, one in named:
        row |= {name: one.value, f"{name}_low": one.low, f"{name}_high": one.high}
        row |= {f"{name}_covers": int(one.low <= truth <= one.high), f"{name}_width": one.high - one.low}
    return {**row, "told": int(found.is_told)}


def sums(method: str, rows: Sequence[Mapping[str, Any]], **about: Any) -> Iterator[Row]:
    """How many of the crowds each interval covers, the mean widths, and on how many something is told."""
    for figure in FIGURES:
        mine = [row for row in rows if row["figure"] == figure]
        row = {"method": method, "dataset": f"sum of {len(mine)}", **about, "figure": figure}
        for world in WORLDS:
            row[f"{world}_covers"] = sum(int(one[f"{world}_covers"]) for one in mine)
            row[f"{world}_width"] = float(np.nanmean([one[f"{world}_width"] for one in mine]))
        row["told"] = sum(int(one["told"]) for one in mine)
        print({name: round(value, 3) if isinstance(value, float) else value for name, value in row.items()}, flush=True)
        yield row


# --------------------------------------------------------------------------------------------------------------------
# promises


def promises(slug: str, n_samples: int) -> Row:
    """How often 5% random gold promised, and how often that was kept on the items that were not gold, and on all."""
    crowd, truth = opened(slug)
    rows, rare = np.flatnonzero(truth >= 0), rarest(truth)
    tasks, classes = crowd.task_names().tolist(), crowd.classes.tolist()
    is_rare = truth == rare
    n_gold, n_promised, n_kept, n_kept_all, flags = round(GOLD_SHARE * rows.size), 0, 0, 0, []
    for seed in range(n_samples):
        chosen = np.random.default_rng([seed, 5]).choice(rows, n_gold, replace=False)
        # Fewer than 16 of the class cannot promise 0.9 with 80%: nothing needs to be fitted to know that.
        if is_rare[chosen].sum() < 16:
            continue
        gold = {tasks[i]: classes[truth[i]] for i in chosen.tolist()}
        result = rarevote.fit(crowd, gold=gold).decide(min_recall={classes[rare]: TARGET}, random_gold=True)
        assert result.target is not None
        flagged = result.codes == rare
        new = is_rare.copy()
        new[chosen] = False
        n_promised += result.target.promised
        n_kept += bool(result.target.promised and (flagged & new).sum() >= TARGET * new.sum())
        n_kept_all += bool(result.target.promised and (flagged & is_rare).sum() >= TARGET * is_rare.sum())
        flags.append(float(flagged.mean()))
    return {
        "dataset": slug,
        "source_group": find_dataset(slug).source_group,
        "items": int(rows.size),
        "of_class": int(is_rare.sum()),
        "samples": n_samples,
        "gold": n_gold,
        "promised": n_promised,
        "kept_on_other_items": n_kept,
        "kept_on_all_items": n_kept_all,
        "mean_share_flagged": round(float(np.mean(flags)), 4) if flags else "",
    }


def promise_rows(datasets: Sequence[str], n_samples: int, keep: Path | None) -> Iterator[Row]:
    for slug in datasets:
        path = None if keep is None else keep / f"{slug}-{n_samples}.json"
        if path is not None and path.is_file():
            row = json.loads(path.read_text(encoding="utf-8"))
        else:
            row = promises(slug, n_samples)
            if path is not None:
                path.write_text(json.dumps(row), encoding="utf-8")
        print(*row.values(), sep=", ", flush=True)
        yield row


def _rounded(row: Mapping[str, Any], names: Sequence[str]) -> Row:
    values = {name: row.get(name, "") for name in names}
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in values.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=300, help="gold samples of each dataset")
    parser.add_argument("--keep", type=Path, help="a folder for what is computed, so that a run can go on")
    parser.add_argument("--only", default="intervals,promises")
    parser.add_argument("--datasets", help="only these; nothing is written to docs/evidence")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
    datasets = options.datasets.split(",") if options.datasets else slugs(match="exact")
    parts = {
        "intervals": ("expectations", partial(interval_rows, datasets, options.keep)),
        "promises": ("promises", partial(promise_rows, datasets, options.samples, options.keep)),
    }
    for part in options.only.split(","):
        name, rows_of = parts[part]
        rows = list(rows_of())
        if not options.datasets:
            fields = list(rows[0])
            print(evidence.write(name, [_rounded(row, fields) for row in rows]).relative_to(evidence.REPOSITORY))


if __name__ == "__main__":
    main()
