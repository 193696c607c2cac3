"""A cost matrix: a miss costs twenty false alarms, and every item gets the label whose expected cost is least.

How-to: docs/howto/costs.md
"""

from __future__ import annotations

import rarevote
from rarevote import example_files


def main() -> None:
    """The rails of the demo, by three prices of a miss."""
    fitted = rarevote.fit(example_files().labels, rare="defect")
    for price in (1, 5, 20):
        result = fitted.decide(costs=f"sound:defect=1,defect:sound={price}")
        print(f"a miss at {price}: {(result.labels == 'defect').sum()} of {len(result.tasks)} called defect")


if __name__ == "__main__":
    main()
