"""A recall target: find nine defects in ten, and say whether that can be promised.

How-to: docs/howto/recall-targets.md
"""

from __future__ import annotations

import rarevote
from rarevote import example_files


def main() -> None:
    """The rails of the demo; the truth is looked at afterwards."""
    files = example_files()
    fitted = rarevote.fit(files.labels, rare="defect")
    result = fitted.decide(min_recall={"defect": 0.9})
    scores = result.score(files.truth)
    print(f"flagged {(result.labels == 'defect').sum()}; recall in truth {scores['rare_recall']:.2f}")


if __name__ == "__main__":
    main()
