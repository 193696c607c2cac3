"""A recall target with random gold, as much of it as an audit reviewed: what is promised, and what is kept?

    python -m benchmarks.audit_min_recall [--runs 20] [--sets medical-treat,...] [--work FOLDER]

Writes docs/evidence/audit_min_recall.csv, a row per crowd: `--min-recall CLASS=0.9 --gold-is-random` with the default
method. `gold` random items are known, as many as the audits of docs/evidence/audit.csv reviewed on average. `promised`
is the share of runs in which the target is promised, `kept` the share of these in which the labels have that recall,
`kept_of_all` that of all runs; `flags_left` the items flagged that are not known. Such a promise is made with 80 %
confidence, a certificate with 95 %.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import rarevote
from benchmarks import evidence
from benchmarks.audit import TARGET, Row
from benchmarks.audit_sets import rarest, real_sets, real_votes


def run(slug: str, n_gold: int, seed: int) -> Row:
    """One random gold sample."""
    votes, truth = real_votes(slug)
    rare = rarest(votes, truth)
    tasks = [task for task in votes.tasks.tolist() if task in truth]
    known = np.random.default_rng([seed, 5]).choice(len(tasks), n_gold, replace=False)
    gold = {tasks[i]: truth[tasks[i]] for i in known}
    result = rarevote.fit(votes, gold=gold).decide(min_recall={rare: float(TARGET)}, random_gold=True)
    flagged = {task for task, label in zip(result.tasks.tolist(), result.labels.tolist(), strict=True) if label == rare}
    positives = {task for task in tasks if truth[task] == rare}
    assert result.target is not None
    return {
        "promised": result.target.promised,
        "kept": len(flagged & positives) >= float(TARGET) * len(positives),
        "flags_left": len(flagged - gold.keys()),
    }


def rows_of(reviews: dict[str, int], n_runs: int, work: Path) -> Iterator[Row]:
    for slug, n_gold in reviews.items():
        path = work / f"{slug}.{n_gold}.min_recall.jsonl"
        done = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
        with path.open("a", encoding="utf-8") as handle:
            for seed in range(len(done), n_runs):
                done.append(run(slug, n_gold, seed))
                handle.write(json.dumps(done[-1]) + "\n")
                handle.flush()
        promised = [row for row in done[:n_runs] if row["promised"]]
        yield {
            "crowd": slug,
            "gold": n_gold,
            "runs": n_runs,
            "promised": round(len(promised) / n_runs, 3),
            "kept": round(float(np.mean([row["kept"] for row in promised])), 3) if promised else "",
            "kept_of_all": round(float(np.mean([row["kept"] for row in done[:n_runs]])), 3),
            "flags_left": round(float(np.mean([row["flags_left"] for row in done[:n_runs]])), 1),
        }


def audited() -> dict[str, int]:
    """How many reviews the audits of each real crowd took on average."""
    with (evidence.EVIDENCE / "audit.csv").open(newline="", encoding="utf-8") as handle:
        found = {
            row["crowd"]: round(float(row["reviews"])) for row in csv.DictReader(handle) if row["score"] == "sampled"
        }
    return {slug: found[slug] for slug in real_sets() if slug in found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20, help="random gold samples per crowd")
    parser.add_argument("--sets", default="", help="only these crowds, with commas between")
    parser.add_argument("--work", type=Path, default=Path("audit-work"), help="runs are kept here")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    wanted = [name for name in options.sets.split(",") if name]
    reviews = {slug: n for slug, n in audited().items() if not wanted or slug in wanted}
    done = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for row in rows_of(reviews, options.runs, options.work):
            done.append(row)
            print(*row.values(), sep="\t", file=sys.stderr, flush=True)
    print(evidence.write("audit_min_recall", done))


if __name__ == "__main__":
    main()
