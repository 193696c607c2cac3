"""A recall target with random gold, as much of it as an audit reviewed: what is promised, and what is kept?

    python -m benchmarks.audit_min_recall [--runs 200] [--sets medical-treat,...]

Writes docs/evidence/audit_min_recall.csv, a row per crowd: a target of 0.9 as `--min-recall --gold-is-random` has it.
`gold` random items are known, as many as the audits of docs/evidence/audit.csv reviewed on average; they vouch for the
probabilities of a fit without them. `promised` is the share of runs in which the target is promised,
`kept` the share of these in which the labels have that recall, `kept_of_all` that of all runs; `flags_left` the items
flagged that are not known. Such a promise is made with 80% confidence, a certificate with 95%.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

import rarevote
from benchmarks import evidence
from benchmarks.audit import TARGET, Row
from benchmarks.audit_sets import rarest, real_sets, real_votes
from rarevote.decide.decider import decide_crowd
from rarevote.decide.probabilities import certain
from rarevote.decide.rules import OwnLabels
from rarevote.decide.selection import rule_of


def runs(slug: str, n_gold: int, n_runs: int) -> list[Row]:
    """Random gold samples of one crowd, on items with truth."""
    votes, truth = real_votes(slug)
    classes = votes.classes.tolist()
    rare = classes.index(rarest(votes, truth))
    codes = np.array([classes.index(truth[task]) if task in truth else -1 for task in votes.tasks.tolist()], np.int32)
    known, positive = np.flatnonzero(codes >= 0), codes == rare
    fitted = rarevote.fit(votes, rarevote.CCRasch(n_jobs=1))
    blind, rule = fitted.reported, rule_of(min_recall={classes[rare]: float(TARGET)}, random_gold=True)
    found = []
    for seed in range(n_runs):
        gold = np.full(len(codes), -1, dtype=np.int64)
        chosen = np.random.default_rng([seed, 5]).choice(known, n_gold, replace=False)
        gold[chosen] = codes[chosen]
        decision = decide_crowd(
            votes,
            replace(blind, p=certain(blind.p, gold), gold=gold, blind=blind.p),
            rule,
            own=OwnLabels(),
            own_codes=fitted.method.label_codes(),
            rare=fitted.rare,
            method="cc-rasch",
            default_method="anchored-rasch",
        )
        assert decision.target is not None
        flagged = decision.codes == rare
        found.append(
            {
                "promised": decision.target.promised,
                "kept": bool((flagged & positive).sum() >= float(TARGET) * positive.sum()),
                "flags_left": int((flagged & (gold < 0)).sum()),
            }
        )
    return found


def rows_of(reviews: dict[str, int], n_runs: int) -> Iterator[Row]:
    for slug, n_gold in reviews.items():
        done = runs(slug, n_gold, n_runs)
        promised = [row for row in done if row["promised"]]
        yield {
            "crowd": slug,
            "gold": n_gold,
            "runs": n_runs,
            "promised": round(len(promised) / n_runs, 3),
            "kept": round(float(np.mean([row["kept"] for row in promised])), 3) if promised else "",
            "kept_of_all": round(float(np.mean([row["kept"] for row in done])), 3),
            "flags_left": round(float(np.mean([row["flags_left"] for row in done])), 1),
        }


def audited() -> dict[str, int]:
    """How many reviews the audits of each real crowd took on average."""
    found = {row["crowd"]: round(float(row["reviews"])) for row in evidence.read("audit") if row["score"] == "sampled"}
    return {slug: found[slug] for slug in real_sets() if slug in found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200, help="random gold samples per crowd")
    parser.add_argument("--sets", default="", help="only these crowds, with commas between")
    options = parser.parse_args()
    wanted = [name for name in options.sets.split(",") if name]
    reviews = {slug: n for slug, n in audited().items() if not wanted or slug in wanted}
    done = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for row in rows_of(reviews, options.runs):
            done.append(row)
            print(*row.values(), sep="\t", file=sys.stderr, flush=True)
    print(evidence.write("audit_min_recall", done))


if __name__ == "__main__":
    main()
