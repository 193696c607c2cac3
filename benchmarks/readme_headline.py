"""Put figures, tables and sentences of a finished study into docs/benchmarks.md, and its results into docs/evidence.

rarevote study paper --data DATASETS --out STUDY
python -m benchmarks.readme_headline STUDY
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

from benchmarks import evidence
from benchmarks.evidence import REPOSITORY
from benchmarks.study_evidence import write_evidence

BEGIN = "<!-- headline: written by python -m benchmarks.readme_headline STUDY_FOLDER -->\n"
END = "<!-- end of headline -->\n"


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    command = "rarevote study paper --out STUDY"
    with (Path(sys.argv[1]) / "results.csv").open(newline="", encoding="utf-8") as handle:
        # Seconds say something about one machine only.
        rows = [{name: value for name, value in row.items() if name != "seconds"} for row in csv.DictReader(handle)]
    evidence.write("study_paper", (row for row in rows if row["minority_recall"]))
    section = write_evidence(Path(sys.argv[1]), REPOSITORY / "docs", command=command)
    page = REPOSITORY / "docs" / "benchmarks.md"
    text = page.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    page.write_text(f"{before}{BEGIN}\n{section}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
