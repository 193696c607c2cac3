"""What was measured of the workbench, into its how-to.

python -m benchmarks.workbench_pages
"""

from __future__ import annotations

import csv

from benchmarks import pages
from benchmarks.evidence import EVIDENCE, REPOSITORY

PAGE = REPOSITORY / "docs" / "howto" / "workbench.md"


def filled() -> str:
    """The page as the evidence has it."""
    with (EVIDENCE / "workbench.csv").open(newline="", encoding="utf-8") as handle:
        rows = [[row["figure"], row["value"]] for row in csv.DictReader(handle)]
    text = PAGE.read_text(encoding="utf-8")
    return pages.filled(text, {"workbench": pages.table(["measured", ""], rows)}, PAGE.name)


if __name__ == "__main__":
    PAGE.write_text(filled(), encoding="utf-8")
