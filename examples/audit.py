"""Proving a recall: an expert answers on items that chance has drawn, and a certificate says what that proves.

How-to: docs/howto/audit.md
"""

from __future__ import annotations

import rarevote
from rarevote import verify


def main() -> None:
    """A simulated crowd, whose truth plays the expert."""
    people = {"p_good": 1, "p_bad": 0, "p_majority": 0, "p_minority": 0}
    crowd = rarevote.simulate_crowd(800, imbalance=3, shared_errors="real", random_state=0, **people)
    audit = rarevote.fit(crowd.arrays).audit(1, target=0.8)
    while tasks := audit.round():
        audit.answer({task: int(crowd.truth[task]) for task in tasks}, who="anna")
    flagged = audit.final_list()
    found = sum(int(crowd.truth[task]) for task in flagged) / int(crowd.truth.sum())
    print(f"{audit.n_reviewed} reviews, {len(flagged)} flagged, recall in truth {found:.2f}")
    print("reasons against the certificate:", verify(audit.to_json(), audit.certificate()))


if __name__ == "__main__":
    main()
