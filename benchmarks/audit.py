"""What does a certified recall cost, is it true, and do the supported estimates hold? Real and simulated crowds.

    python -m benchmarks.audit [--audits 400] [--crowds 20] [--sets medical-treat,product,...] [--boundary 2000]

Writes docs/evidence/audit.csv, a row per crowd, and docs/evidence/audit_boundary.csv, a row per case built against the
audit. Target 0.9, confidence 95 %, a flag costs a review. The ranking is CC-Rasch's calibrated score of the rarest
class without gold, on items with truth only; the expert is the truth. Simulated crowds are those of `simulate_crowd`
with its defaults, the audits spread over `--crowds` of them. Real datasets are looked for in RAREVOTE_DATA and left out
if absent.

`reviews` are all until the audit stops, `flags_left` the items of the certified set that nobody looked at, `certified`
the share of audits that certify less than everything, `true` the share of these whose certified set has the recall it
claims, found positives below it counted as missed. `supported_*` are about audits that aim at the estimate and stop
after their first 20 to 100 reviews: how often the supported list reaches the target, how many items it flags for each
that the best threshold would, and how often the 95 % intervals of its prevalence, precision and recall cover the truth.

In the boundary cases one set is just bad: a single positive less in the tail would make its recall the target or more.
The auditor does not stop when nothing pays but goes on until that set is certified or everything was reviewed. `false`
is the share of audits that ever certify it or a smaller one; it may be 5 % at most, up to the error of counting.
"""

from __future__ import annotations

import argparse
import csv
import sys
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import evidence
from benchmarks.peers import DATASETS
from rarevote.crowd.annotations import Annotations
from rarevote.meaning.audit.audit import Audit
from rarevote.meaning.audit.floor import exact_share, positives_that_break
from rarevote.meaning.audit.planning import estimate_phase
from rarevote.meaning.audit.strata import cuts
from rarevote.meaning.calibrate import calibrated
from rarevote.methods.cc_rasch.estimator import CCRasch
from rarevote.simulate.crowds import simulate_crowd

TARGET = exact_share(0.9, "target")
SIMULATED = [(7, 3000), (30, 6000), (100, 12_000)]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Row = dict[str, Any]


class Ranked(NamedTuple):
    """A score and a truth for every item."""

    scores: Floats
    truth: Bools


class Case(NamedTuple):
    """A boundary case: where the missed positives are, and what the scores say."""

    misses: str
    model: str


# --------------------------------------------------------------------------------------------------------------------
# crowds


def real_sets(wanted: list[str]) -> list[str]:
    """Binary datasets, those asked for or all."""
    if not (DATASETS / "index.csv").is_file():
        return []
    with (DATASETS / "index.csv").open(newline="", encoding="utf-8") as handle:
        found = [row["slug"] for row in csv.DictReader(handle) if row["n_classes"] == "2" and row["match"] == "exact"]
    return [slug for slug in found if not wanted or slug in wanted]


def real(slug: str) -> Ranked:
    """The calibrated score of the rarest class on items with truth."""
    with (DATASETS / slug / "labels.csv").open(newline="", encoding="utf-8") as handle:
        rows = [(row["task"], row["worker"], row["label"]) for row in csv.DictReader(handle)]
    with (DATASETS / slug / "truth.csv").open(newline="", encoding="utf-8") as handle:
        truth = {row["task"]: row["label"] for row in csv.DictReader(handle)}
    votes = Annotations.from_arrays(*(list(column) for column in zip(*rows, strict=True)))
    known = [i for i, task in enumerate(votes.tasks.tolist()) if task in truth]
    labels = [truth[votes.tasks[i]] for i in known]
    rare = min(votes.classes.tolist(), key=labels.count)
    column = votes.classes.tolist().index(rare)
    found = calibrated(CCRasch(n_jobs=1).fit(votes).posterior_, annotations=votes)
    return Ranked(found.posterior[known, column], np.array([label == rare for label in labels]))


def simulated(imbalance: int, n_tasks: int, seed: int) -> Ranked:
    crowd = simulate_crowd(n_tasks, imbalance=imbalance, random_state=seed)
    votes = Annotations.from_arrays(*crowd.arrays, classes=[0, 1])
    found = calibrated(CCRasch(n_jobs=1).fit(votes).posterior_, annotations=votes, random_state=seed)
    return Ranked(found.posterior[:, 1], crowd.truth[np.array(votes.tasks.tolist())] == 1)


# --------------------------------------------------------------------------------------------------------------------
# audits


def run(ranked: Ranked, seed: int, **options: Any) -> Audit:
    """An audit to its end, with an expert who knows the truth."""
    audit = Audit.start(range(len(ranked.truth)), ranked.scores, name="rare", target=TARGET, seed=seed, **options)
    while review := audit.round():
        audit.answer({task: bool(ranked.truth[task]) for task in review})
    return audit


def set_recall(audit: Audit, truth: Bools, j: int) -> float:
    """Recall of a set as the certificate counts it: strata 0 to j."""
    flagged = [task for tasks in audit.plan.strata.tasks[: j + 1] for task in tasks]
    return float(truth[flagged].sum() / truth.sum())


def certificate_figures(ranked: Ranked, seed: int) -> Row:
    audit = run(ranked, seed)
    return {
        "positives": int(ranked.truth.sum()),
        "reviews": audit.n_reviewed,
        "flags_left": audit.wealth.unreviewed(audit.certified),
        "certified": audit.is_certified,
        "true": set_recall(audit, ranked.truth, audit.certified) >= float(TARGET),
    }


def supported_figures(ranked: Ranked, seed: int) -> Row:
    audit = run(ranked, seed, aim="estimate", budget=estimate_phase(len(ranked.truth)))
    chosen = audit.supported
    flagged, estimate = audit.final_list(chosen), audit.estimate_of(chosen)
    hits = np.cumsum(ranked.truth[np.argsort(-ranked.scores, kind="stable")])
    best = int(np.searchsorted(hits, np.ceil(float(TARGET) * hits[-1]))) + 1
    found = int(ranked.truth[flagged].sum())
    recall, precision = found / ranked.truth.sum(), found / len(flagged)
    return {
        "supported_reached": recall >= float(TARGET),
        "supported_excess": len(flagged) / best,
        "cover_prevalence": estimate.prevalence.low <= ranked.truth.mean() <= estimate.prevalence.high,
        "cover_precision": estimate.precision.low <= precision <= estimate.precision.high,
        "cover_recall": estimate.recall.low <= recall <= estimate.recall.high,
    }


def summary(name: str, n_items: int, found: list[Row]) -> Row:
    kept = [row for row in found if row["certified"]]
    means = {key: float(np.mean([row[key] for row in found])) for key in found[0]}
    return {
        "crowd": name,
        "items": n_items,
        "positives": round(means["positives"]),
        "audits": len(found),
        "reviews": round(means["reviews"], 1),
        "reviews_q90": round(float(np.quantile([row["reviews"] for row in found], 0.9)), 1),
        "flags_left": round(means["flags_left"], 1),
        "certified": round(means["certified"], 4),
        "true": round(float(np.mean([row["true"] for row in kept])), 4) if kept else "",
        "supported_reached": round(means["supported_reached"], 4),
        "supported_excess": round(means["supported_excess"], 3),
        **{key: round(means[key], 4) for key in ("cover_prevalence", "cover_precision", "cover_recall")},
    }


def crowds_rows(sets: list[str], n_audits: int, n_crowds: int) -> Iterator[Row]:
    for slug in real_sets(sets):
        ranked = real(slug)
        found = [
            {**certificate_figures(ranked, seed), **supported_figures(ranked, seed)} for seed in range(1, n_audits + 1)
        ]
        yield summary(slug, len(ranked.truth), found)
    for imbalance, n_tasks in SIMULATED:
        name = f"simulated-{imbalance}"
        if sets and name not in sets:
            continue
        found = []
        for crowd in range(n_crowds):
            ranked = simulated(imbalance, n_tasks, crowd)
            seeds = range(1 + crowd, n_audits + 1, n_crowds)
            found += [{**certificate_figures(ranked, seed), **supported_figures(ranked, seed)} for seed in seeds]
        yield summary(name, n_tasks, found)


# --------------------------------------------------------------------------------------------------------------------
# cases built against the audit

N_BOUNDARY, FOUND_BOUNDARY = 600, 120
CASES = [Case(misses, model) for misses in ("deep", "next", "spread") for model in ("right", "wrong", "useless")]


def boundary(case: Case, seed: int, n: int = N_BOUNDARY, found: int = FOUND_BOUNDARY) -> tuple[Ranked, int]:
    """A population whose set ``j`` is just bad, and ``j``."""
    generator = np.random.default_rng([seed, 9])
    position = np.arange(n)
    scores = {
        "right": np.clip(np.exp(-position / (0.35 * n)) * 0.6, 1e-4, 0.99),
        "wrong": np.where(position < 0.25 * n, 0.95, 1e-3),
        "useless": np.full(n, found / n),
    }[case.model]
    # Different scores everywhere, so that the ranking is the one meant here.
    scores = scores * (1 - 1e-6 * position / n)
    ends = cuts(n, float(scores.sum()))
    j = int(np.argmin(np.abs(np.array(ends[:-1]) - 0.45 * n)))
    cut, missed = ends[j], positives_that_break(found, TARGET)
    truth = np.zeros(n, dtype=bool)
    chance = scores[:cut] / scores[:cut].sum()
    truth[generator.choice(cut, found, replace=False, p=chance)] = True
    truth[
        {
            "deep": np.arange(n - missed, n),
            "next": np.arange(cut, cut + missed),
            "spread": cut + generator.choice(n - cut, missed, replace=False),
        }[case.misses]
    ] = True
    return Ranked(scores, truth), j


def ever_false(ranked: Ranked, j: int, seed: int) -> bool:
    """Whether an auditor who never gives up certifies the bad set ``j``."""
    audit = Audit.start(range(len(ranked.truth)), ranked.scores, name="rare", target=TARGET, seed=seed)
    while audit.certified > j and (review := audit.round() or audit.round(25)):
        audit.answer({task: bool(ranked.truth[task]) for task in review})
    return audit.certified <= j


def boundary_rows(n_audits: int) -> Iterator[Row]:
    for case in CASES:
        false = sum(ever_false(*boundary(case, seed), seed) for seed in range(n_audits))
        error = float(np.sqrt(0.05 * 0.95 / n_audits))
        yield {
            **case._asdict(),
            "audits": n_audits,
            "false": round(false / n_audits, 4),
            "allowed": round(0.05 + 3 * error, 4),
            "holds": false / n_audits <= 0.05 + 3 * error,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--audits", type=int, default=400, help="audits per crowd; 0 leaves them out")
    parser.add_argument("--crowds", type=int, default=20, help="simulated crowds of each kind")
    parser.add_argument("--sets", default="", help="only these crowds, with commas between")
    parser.add_argument("--boundary", type=int, default=2000, help="audits per boundary case; 0 leaves them out")
    options = parser.parse_args()
    wanted = [name for name in options.sets.split(",") if name]
    jobs = {
        "audit": crowds_rows(wanted, options.audits, options.crowds) if options.audits else iter(()),
        "audit_boundary": boundary_rows(options.boundary) if options.boundary else iter(()),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, rows in jobs.items():
            done = []
            for row in rows:
                done.append(row)
                print(*row.values(), sep="\t", file=sys.stderr, flush=True)
            if done:
                print(evidence.write(name, done))


if __name__ == "__main__":
    main()
