"""Is a certificate true whatever the ranking, and what does a bad ranking cost? Audits of scores on real crowds.

    RAREVOTE_DATA=... python -m benchmarks.audit_scores [--audits 13]

Writes docs/evidence/audit-scores.csv, a row per dataset and score. "votes" is the posterior of the default method, read
as any score would be; "shuffled" is the same with items and scores paired at random, anew in every audit. Target 0.9,
confidence 95%, a flag costs a review; the expert is the truth, and answers with the class or not the class. `reviews`
are all until the audit stops, `flags_left` the certified items that were not reviewed, `claimed` the audits that
certify less than everything, `kept` those of them whose certified set has the recall that it claims. `uniform_*` are
about a uniform sample of as many items (:mod:`benchmarks.audit`).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks import evidence
from benchmarks.audit import certificate_figures, uniform_figures
from benchmarks.audit_sets import Ranked, real_ranked, real_sets
from rarevote.audit.of_scores import base_rates


def rankings(ranked: Ranked, score: str, n_audits: int) -> Iterator[Ranked]:
    """The ranking of each audit, with rates to plan with as an audit of a table of scores has them."""
    for seed in range(n_audits):
        scores = ranked.scores if score == "votes" else np.random.default_rng(seed).permutation(ranked.scores)
        yield Ranked(base_rates(scores), ranked.truth)


def row_of(name: str, score: str, ranked: Ranked, n_audits: int) -> dict[str, Any]:
    """The audits of one dataset and score."""
    cases = list(rankings(ranked, score, n_audits))
    found = [certificate_figures(case, seed) for seed, case in enumerate(cases, 1)]
    n_reviews = round(float(np.mean([one["reviews"] for one in found])))
    uniform = [uniform_figures(case, n_reviews, seed) for seed, case in enumerate(cases, 1)]
    claimed = [one for one in found if one["certified"]]
    return {
        "dataset": name,
        "score": score,
        "items": len(ranked.truth),
        "positives": int(ranked.truth.sum()),
        "audits": n_audits,
        "claimed": len(claimed),
        "kept": sum(one["true"] for one in claimed),
        "reviews": n_reviews,
        "flags_left": round(float(np.mean([one["flags_left"] for one in found]))),
        "uniform_flags": round(float(np.mean([one["uniform_flags"] for one in uniform]))),
        "uniform_claimed": sum(one["uniform_certified"] for one in uniform),
    }


def table() -> str:
    """The table of the page on audits."""
    rows = evidence.read("audit-scores")
    head = ("score", "audits", "certified a list", "of these true", "items reviewed", "items left to flag",
            "left by a uniform sample of as many")  # fmt: skip
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    for score, title in (("votes", "the votes' posterior"), ("shuffled", "the same, shuffled")):
        own = [row for row in rows if row["score"] == score]
        total = {name: sum(int(row[name]) for row in own) for name in ("audits", "claimed", "kept")}

        def share(name: str, own: list[dict[str, str]] = own) -> str:
            return f"{100 * float(np.mean([int(row[name]) / int(row['items']) for row in own])):.0f}%"

        lines.append(
            f"| {title} | {total['audits']} on {len(own)} datasets | {total['claimed']} | {total['kept']} | "
            f"{share('reviews')} | {share('flags_left')} | {share('uniform_flags')} |"
        )
    return "\n".join(lines)


def main(words: list[str]) -> None:
    """Run the audits."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--audits", type=int, default=13)
    n_audits = parser.parse_args(words).audits
    for name in real_sets():
        ranked = real_ranked(name, "posterior")
        rows = [row_of(name, score, ranked, n_audits) for score in ("votes", "shuffled")]
        evidence.write("audit-scores", rows, by=("dataset", "score"))
        print(name, rows[0]["reviews"], rows[1]["reviews"], flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
