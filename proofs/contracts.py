"""Every property of tests/methods/contracts.py, for every method, on ten thousand generated crowds.

    python -m proofs.contracts                                # 10,000 crowds, about 15 minutes of one core
    python -m proofs.contracts --crowds 2500 --first 10000    # 2,500 others, added to the file

Each crowd goes to one method, which has to keep all properties there; slow methods get fewer and smaller ones. Writes
docs/evidence/contracts.csv: property, method, crowds, violations, the largest difference met and how much is rounding.
"""

from __future__ import annotations

import argparse
import logging
import tempfile
import time
from itertools import chain
from pathlib import Path
from typing import Any

from benchmarks import evidence
from tests.methods.contracts import DASK_TOLERANCE, PROPERTIES, Case, local_is_dask
from tests.tables import METHOD_ROWS, MethodRow

# Crowds for each that a method of the ordinary kind gets.
_SHARES = {"mace": 0.3, "cc-rasch": 0.6, "anchored-rasch": 0.6, "rasch": 0.6}
_MAX_TASKS = {"mace": 12, "crowdfm": 12}
_CROWDS_PER_DASK = 500  # a fit there takes a second

Row = dict[str, Any]


class Count:
    """How often a property was tried, and broken."""

    def __init__(self, tolerance: float) -> None:
        self.tolerance, self.crowds, self.violations, self.largest = tolerance, 0, 0, 0.0

    def add(self, number: int, what: str, found: float | None) -> None:
        if found is None:
            return
        self.crowds += 1
        self.largest = max(self.largest, found)
        if not found <= self.tolerance:
            self.violations += 1
            print(f"{what}, crowd {number}: {found:.3g}", flush=True)

    def row(self, name: str, method: str) -> Row:
        return {
            "property": name,
            "method": method,
            "crowds": self.crowds,
            "violations": self.violations,
            "largest_difference": f"{self.largest:.3g}",
            "tolerance": f"{self.tolerance:g}",
        }


def try_method(row: MethodRow, numbers: range) -> list[Row]:
    """All properties on the crowds of these numbers."""
    counts = {name: Count(entry.tolerance) for name, entry in PROPERTIES.items()}
    begin = time.process_time()
    for number in numbers:
        case = Case.drawn(row, number, most_tasks=_MAX_TASKS.get(row.name, 24))
        for name, entry in PROPERTIES.items():
            try:
                found = entry.check(case)
            except Exception as error:
                print(f"{row.name} {name}, crowd {number}: {error!r}", flush=True)
                found = float("inf")
            counts[name].add(number, f"{row.name} {name}", found)
    print(f"{row.name}: {len(numbers)} crowds, {time.process_time() - begin:.0f} s", flush=True)
    return [count.row(name, row.name) for name, count in counts.items() if count.crowds]


def try_dask(numbers: range) -> list[Row]:
    """The same answer on dask, for the methods that run there."""
    import distributed

    rows = []
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None, silence_logs=logging.CRITICAL
    )
    with cluster, distributed.Client(cluster) as client:
        for method in (row for row in METHOD_ROWS if row.make().capabilities.dask):
            count = Count(DASK_TOLERANCE)
            for number in numbers:
                with tempfile.TemporaryDirectory() as folder:
                    found = local_is_dask(Case.drawn(method, number), client, Path(folder))
                count.add(number, f"{method.name} local_is_dask", found)
            rows.append(count.row("local_is_dask", method.name))
    return rows


def added(rows: list[Row]) -> list[Row]:
    """What the file has already, and these."""
    known = {(row["property"], row["method"]): row for row in evidence.read("contracts")}
    for row in rows:
        old = known.get((row["property"], row["method"]), {})
        row["crowds"] += int(old.get("crowds", 0))
        row["violations"] += int(old.get("violations", 0))
        row["largest_difference"] = max(row["largest_difference"], old.get("largest_difference", "0"), key=float)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--crowds", type=int, default=10_000, help="how many in all")
    parser.add_argument("--first", type=int, default=0, help="number of the first; above 0, the file is added to")
    given = parser.parse_args()
    shares = {row.name: _SHARES.get(row.name, 1.0) for row in METHOD_ROWS}
    first, rows = given.first, []
    for row in METHOD_ROWS:
        size = -int(-given.crowds * shares[row.name] // sum(shares.values()))
        rows.append(try_method(row, range(first, first + size)))
        first += size
    rows.append(try_dask(range(given.first, given.first + -(-given.crowds // _CROWDS_PER_DASK))))
    found = list(chain.from_iterable(rows))
    path = evidence.write("contracts", added(found) if given.first else found)
    broken = sum(row["violations"] for row in found)
    print(f"{first - given.first:,} crowds, {broken} violations: {path}")


if __name__ == "__main__":
    main()
