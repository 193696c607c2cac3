"""Who is good at what, and why an item got its label.

How-to: docs/howto/annotators.md
"""

from __future__ import annotations

import rarevote
from rarevote import example_files


def main() -> None:
    """The inspectors of the demo, and one item vote by vote."""
    fitted = rarevote.fit(example_files().labels, "cc-rasch", rare="defect")
    workers = fitted.diagnose().workers
    best = workers.low[:, fitted.rare.code].argsort()[::-1][:3]
    for row in best.tolist():
        name = fitted.annotations.workers[row]
        print(name, f"recognises {workers.accuracy[row, fitted.rare.code]:.0%} of the defects")
    item = fitted.explain(fitted.annotations.tasks[0])
    print(item.task, fitted.annotations.classes[item.label])


if __name__ == "__main__":
    main()
