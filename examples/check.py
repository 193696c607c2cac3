"""May these labels be used: can the crowd answer, does the model fit, and when not to trust it.

How-to: docs/howto/check.md
"""

from __future__ import annotations

import rarevote
from rarevote import example_files


def main() -> None:
    """The inspectors of the demo: the verdict, and what speaks against relying on the labels."""
    found = rarevote.fit(example_files().labels, rare="defect").check()
    print(found.verdict)
    for finding in found.findings:
        if finding.weight != "note":
            print(finding.description)


if __name__ == "__main__":
    main()
