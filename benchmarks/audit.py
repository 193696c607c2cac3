"""What does a certified recall cost, is it true, and do the supported estimates hold? Real and simulated crowds.

    python -m benchmarks.audit [--audits 400] [--crowds 20] [--sets medical-treat,simulated-7,...]
                               [--scores sampled,...] [--work FOLDER]

Writes docs/evidence/audit.csv, a row per crowd and score (:mod:`benchmarks.audit_sets`). Target 0.9, confidence 95%, a
flag costs a review; the expert is the truth. The audits of a simulated kind are spread over `--crowds` crowds. Scores
and audits are kept in the work folder: what is there is not computed again, so a run that was stopped goes on.

`reviews` are all until the audit stops, `flags_left` the items of the certified set that nobody looked at, `certified`
the share of audits that certify less than everything, `true` the share of these whose certified set has the recall it
claims, found positives below it counted as missed.

`supported_*` are about audits that aim at the estimate and stop after their first 20 to 100 reviews: how often the
supported list reaches the target, how many items it flags for each that the best threshold would, and how often the
95% intervals of its prevalence, precision and recall cover the truth.

`uniform_*` are about as many uniform samples, each of as many items as the audits reviewed on average, as if somebody
had known that number beforehand: the same sets are tested from everything inwards, a set passing if so few of the
sample's positives outside of it have at most 5% under a binomial distribution with a miss rate of 1 - target.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom

from benchmarks import evidence
from benchmarks.audit_sets import SCORES, SIMULATED, Bools, Ranked, Score, crowds_of, real_sets
from rarevote.audit.audit import Audit
from rarevote.audit.planning import estimate_phase
from rarevote.audit.strata import cuts
from rarevote.decide.floor import exact_share

TARGET, ALPHA = exact_share(0.9, "target"), 0.05
Row = dict[str, Any]


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


def uniform_figures(ranked: Ranked, n_reviews: int, seed: int) -> Row:
    """What a uniform sample proves about the same sets, tested from everything inwards."""
    truth, n = ranked.truth[np.argsort(-ranked.scores, kind="stable")], len(ranked.truth)
    ends = np.array(cuts(n, float(ranked.scores.sum())))
    sample = np.zeros(n, dtype=bool)
    sample[np.random.default_rng([seed, 3]).choice(n, n_reviews, replace=False)] = True
    found = np.cumsum(truth & sample)[ends - 1]
    passed = binom.cdf(found[-1] - found[:-1], found[-1], float(1 - TARGET)) <= ALPHA
    j = len(ends) - 1
    while j and passed[j - 1]:
        j -= 1
    return {
        "uniform_flags": int((~sample[: ends[j]]).sum()),
        "uniform_certified": j < len(ends) - 1,
        "uniform_true": bool(truth[: ends[j]].sum() >= float(TARGET) * truth.sum()),
    }


def supported_figures(ranked: Ranked, seed: int) -> Row:
    audit = run(ranked, seed, aim="estimate", budget=estimate_phase(len(ranked.truth)))
    chosen = audit.supported
    flagged, estimate = audit.final_list(chosen), audit.estimate_of(chosen)
    hits = np.cumsum(ranked.truth[np.argsort(-ranked.scores, kind="stable")])
    best = int(np.searchsorted(hits, np.ceil(float(TARGET) * hits[-1]))) + 1
    found = int(ranked.truth[flagged].sum())
    recall, precision = found / ranked.truth.sum(), found / len(flagged)
    covered = {"prevalence": ranked.truth.mean(), "precision": precision, "recall": recall}
    return {
        "supported_reached": bool(recall >= float(TARGET)),
        "supported_excess": len(flagged) / best,
        **{
            f"cover_{name}": bool(getattr(estimate, name).low <= value <= getattr(estimate, name).high)
            for name, value in covered.items()
        },
    }


def audits_of(name: str, score: Score, n_audits: int, n_crowds: int, work: Path) -> tuple[int, list[Row]]:
    """Number of items, and a row for every audit and uniform sample; audits that are kept are not run again."""
    path = work / f"{name}.{score}.jsonl"
    crowds = crowds_of(name, score, n_crowds, work)
    done = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
    with path.open("a", encoding="utf-8") as handle:
        for seed in range(len(done) + 1, n_audits + 1):
            ranked = crowds[seed % len(crowds)]
            row = {**certificate_figures(ranked, seed), **supported_figures(ranked, seed)}
            handle.write(json.dumps(row) + "\n")
            handle.flush()
            done.append(row)
    n_reviews = round(float(np.mean([row["reviews"] for row in done[:n_audits]])))
    found = [
        {**row, **uniform_figures(crowds[seed % len(crowds)], n_reviews, seed)}
        for seed, row in enumerate(done[:n_audits], 1)
    ]
    return len(crowds[0].truth), found


def summary(name: str, score: Score, n_items: int, found: list[Row]) -> Row:
    """The row of one crowd and score."""
    means = {key: float(np.mean([row[key] for row in found])) for key in found[0]}
    kept = {key: [row for row in found if row[f"{key}certified"]] for key in ("", "uniform_")}
    true = {
        key: round(float(np.mean([row[f"{key}true"] for row in rows])), 4) if rows else "" for key, rows in kept.items()
    }
    return {
        "crowd": name,
        "score": score,
        "items": n_items,
        "positives": round(means["positives"]),
        "audits": len(found),
        "reviews": round(means["reviews"], 1),
        "reviews_q90": round(float(np.quantile([row["reviews"] for row in found], 0.9)), 1),
        "flags_left": round(means["flags_left"], 1),
        "certified": round(means["certified"], 4),
        "true": true[""],
        "supported_reached": round(means["supported_reached"], 4),
        "supported_excess": round(means["supported_excess"], 3),
        **{key: round(means[key], 4) for key in ("cover_prevalence", "cover_precision", "cover_recall")},
        "uniform_flags": round(means["uniform_flags"], 1),
        "uniform_certified": round(means["uniform_certified"], 4),
        "uniform_true": true["uniform_"],
    }


def rows_of(names: list[str], scores: Sequence[Score], n_audits: int, n_crowds: int, work: Path) -> Iterator[Row]:
    for name in names:
        for score in scores:
            yield summary(name, score, *audits_of(name, score, n_audits, n_crowds, work))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--audits", type=int, default=400, help="audits per crowd and score")
    parser.add_argument("--crowds", type=int, default=20, help="simulated crowds of each kind")
    parser.add_argument("--sets", default="", help="only these crowds, with commas between")
    parser.add_argument("--scores", default=",".join(SCORES), help="what to rank by, with commas between")
    parser.add_argument("--work", type=Path, default=Path("audit-work"), help="scores and audits are kept here")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    names = [name for name in options.sets.split(",") if name] or [*real_sets(), *SIMULATED]
    done = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores = [score for score in SCORES if score in options.scores.split(",")]
        for row in rows_of(names, scores, options.audits, options.crowds, options.work):
            done.append(row)
            print(*row.values(), sep="\t", file=sys.stderr, flush=True)
    print(evidence.write("audit", done))


if __name__ == "__main__":
    main()
