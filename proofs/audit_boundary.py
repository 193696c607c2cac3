"""Cases built against the audit: one set is just bad, and the auditor never gives up.

A single positive less in the tail would make the recall of the
bad set the target or more. The auditor does not stop when nothing pays but draws 100 items at a time until that set is
certified or everything was reviewed. `false` is the share of audits that ever certify a bad set; it may be 5% at most,
up to three standard errors of counting (`allowed`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from benchmarks.audit import TARGET
from benchmarks.audit_sets import Ranked

from proofs import sources
from proofs.battery import Job, Proof, Row, parts
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


_PER_JOB = 500


def run(job: Job) -> dict[str, int]:
    """Audits of a case, each with a seed of its own."""
    (case,) = [case for case in CASES if "-".join(case) == job.row]
    begin = job.part * _PER_JOB
    seeds = range(begin, begin + job.size)
    return {"audits": job.size, "false": sum(ever_false(*boundary(case, seed), seed) for seed in seeds)}


def rows(name: str, results: list[dict[str, int]]) -> list[Row]:
    """The row of a case."""
    misses, model = name.split("-")
    audits = sum(result["audits"] for result in results)
    false = sum(result["false"] for result in results) / audits
    allowed = 0.05 + 3 * float(np.sqrt(0.05 * 0.95 / audits))
    figures = {"audits": audits, "false": round(false, 4), "allowed": round(allowed, 4), "holds": false <= allowed}
    return [{"misses": misses, "model": model, **figures}]


def jobs(scale: float) -> Iterator[Job]:
    """Two thousand audits of every case."""
    for case in CASES:
        yield from parts("audit_boundary", "-".join(case), 2000 * scale, _PER_JOB)


PROOF = Proof(
    "audit_boundary",
    jobs=jobs,
    sources=lambda _: (*sources.AUDIT, "proofs/audit_boundary.py"),
    run=run,
    rows=rows,
    findings=lambda row: str(row["holds"]) != "True",
    row_of=lambda row: f"{row['misses']}-{row['model']}",
)
