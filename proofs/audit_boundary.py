"""Cases built against the audit: one set is just bad, and the auditor never gives up.

    python -m proofs.audit_boundary [--audits 2000] [--cases deep-right,next-wrong,...] [--work FOLDER]

Writes docs/evidence/audit_boundary.csv, a row per case. A single positive less in the tail would make the recall of the
bad set the target or more. The auditor does not stop when nothing pays but draws 100 items at a time until that set is
certified or everything was reviewed. `false` is the share of audits that ever certify a bad set; it may be 5% at most,
up to three standard errors of counting (`allowed`). Audits are kept in the work folder, so a stopped run goes on.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from benchmarks import evidence
from benchmarks.audit import TARGET, Row
from benchmarks.audit_sets import Ranked

from rarevote.audit.audit import Audit
from rarevote.audit.strata import cuts
from rarevote.decide.floor import positives_that_break


class Case(NamedTuple):
    """A boundary case: where the missed positives are, and what the scores say."""

    misses: str
    model: str


N_BOUNDARY, FOUND_BOUNDARY = 400, 80
CASES = [Case(misses, model) for misses in ("deep", "next", "spread") for model in ("right", "wrong", "useless")]


def boundary(case: Case, seed: int, n: int = N_BOUNDARY, found: int = FOUND_BOUNDARY) -> tuple[Ranked, int]:
    """A population with a set that is just bad, and the largest set that is bad."""
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
    # Deep misses leave all sets between just as bad: to claim the largest of them is false already.
    recall = np.cumsum(truth)[np.array(ends[:-1]) - 1] / truth.sum()
    return Ranked(scores, truth), int(np.flatnonzero(recall < float(TARGET)).max())


def ever_false(ranked: Ranked, j: int, seed: int) -> bool:
    """Whether an auditor who never gives up certifies the largest bad set ``j``."""
    audit = Audit.start(range(len(ranked.truth)), ranked.scores, name="rare", target=TARGET, seed=seed)
    while audit.certified > j and (review := audit.round(100)):
        audit.answer({task: bool(ranked.truth[task]) for task in review})
    return audit.certified <= j


def false_of(case: Case, n_audits: int, work: Path) -> int:
    """How many audits certify the bad set; one digit is kept for each."""
    path = work / f"boundary.{case.misses}.{case.model}.txt"
    done = path.read_text(encoding="ascii") if path.exists() else ""
    with path.open("a", encoding="ascii") as handle:
        for seed in range(len(done), n_audits):
            false = "1" if ever_false(*boundary(case, seed), seed) else "0"
            handle.write(false)
            handle.flush()
            done += false
    return done[:n_audits].count("1")


def rows_of(cases: Sequence[Case], n_audits: int, work: Path) -> Iterator[Row]:
    for case in cases:
        false = false_of(case, n_audits, work) / n_audits
        allowed = 0.05 + 3 * float(np.sqrt(0.05 * 0.95 / n_audits))
        yield {
            **case._asdict(),
            "audits": n_audits,
            "false": round(false, 4),
            "allowed": round(allowed, 4),
            "holds": false <= allowed,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--audits", type=int, default=2000, help="audits per case")
    parser.add_argument("--cases", default="", help="only these, with commas between")
    parser.add_argument("--work", type=Path, default=Path("audit-work"), help="audits are kept here")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    done = []
    wanted = [name for name in options.cases.split(",") if name]
    cases = [case for case in CASES if not wanted or "-".join(case) in wanted]
    for row in rows_of(cases, options.audits, options.work):
        done.append(row)
        print(*row.values(), sep="\t", file=sys.stderr, flush=True)
    print(evidence.write("audit_boundary", done))


if __name__ == "__main__":
    main()
