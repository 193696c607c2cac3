"""A review loop: an expert looks at the items whose review pays most, and the answers come back as gold.

How-to: docs/howto/review-loop.md
"""

from __future__ import annotations

import rarevote

COSTS = "0:1=1,1:0=5"


def main() -> None:
    """Three rounds of twenty reviews; the truth plays the expert."""
    people = {"p_good": 0.7, "p_majority": 0.3, "p_minority": 0, "p_bad": 0}
    crowd = rarevote.simulate_crowd(600, imbalance=8, shared_errors="real", random_state=3, **people)
    gold: dict[int, int] = {}
    for number in range(3):
        result = rarevote.fit(crowd.arrays, gold=gold or None).decide(costs=COSTS)
        misses = int(((crowd.truth == 1) & (result.labels == 0)).sum())
        alarms = int(((crowd.truth == 0) & (result.labels == 1)).sum())
        print(f"round {number}: {len(gold)} reviewed, {misses} missed, {alarms} false alarms")
        gold |= {item.task: int(crowd.truth[item.task]) for item in result.review(20).items}


if __name__ == "__main__":
    main()
