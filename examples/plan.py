"""Which items to label again, and by whom: a hundred further votes where they are worth most.

How-to: docs/howto/plan.md
"""

from __future__ import annotations

import rarevote
from rarevote import example_files


def main() -> None:
    """The first items of the plan for the demo, and how the work is shared."""
    plan = rarevote.fit(example_files().labels, rare="defect").decide().plan(100)
    for item in plan.items[:3]:
        print(item.task, f"decided {item.decided}, may be {item.doubt}: ask {item.annotators[0]}")
    for name, number in plan.load.items():
        print(name, number)


if __name__ == "__main__":
    main()
