"""The benchmark datasets: where they are, and their names."""

from __future__ import annotations

import csv
import os
from pathlib import Path

from benchmarks.evidence import REPOSITORY

DATASETS = Path(os.environ.get("RAREVOTE_DATA", REPOSITORY.parent / "shared" / "datasets"))


def slugs(**wanted: str) -> list[str]:
    """Names of the datasets whose columns of the index are as wanted, such as ``match="exact"``."""
    with (DATASETS / "index.csv").open(newline="", encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    return [row["slug"] for row in rows if all(row[column] == value for column, value in wanted.items())]
