"""Every property of tests/methods/contracts.py, for every method, on ten thousand generated crowds, and of whole fits.

Each crowd goes to one method, which has to keep all properties there. Crowds are of four kinds:

- *small*: up to 24 items; slow methods get fewer and smaller ones;
- *blocks*: 200 items or more and at least 6 classes, so that more than one block of a compiled loop is filled;
- *large*: more than 100,000 votes, few of them, a property of each sort;
- *whole*: fits with every default, reported and decided (:mod:`proofs.whole_fits`).

*dask* compares fits there with local ones. A row of the evidence has a property, a method and a kind: crowds,
violations, the largest difference met and how much is rounding.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.methods.contracts import DASK_TOLERANCE, PROPERTIES, Case, Size, local_is_dask
from tests.tables import METHOD_ROWS, MethodRow

from proofs import sources, whole_fits
from proofs.battery import Job, Proof, Row, parts
from rarevote.methods.registry import METHODS

# Small crowds of a method, in all and in a job.
_SMALL, _PER_JOB = 700, 350
# For each crowd that a method of the ordinary kind gets.
_SHARES = {"mace": 0.3, "cc-rasch": 0.6, "anchored-rasch": 0.6, "rasch": 0.6}
_MAX_TASKS = {"mace": 12, "crowdfm": 12}
_SIZES = {
    "small": Size(),
    "blocks": Size(tasks=(200, 420), workers=(6, 40), classes=(6, 8)),
    # At most 40 votes an item, a sixth of them at least: see draw_crowd.
    "large": Size(tasks=(20_000, 22_000), workers=(40, 60), classes=(2, 6)),
}
# Two of these crowds take as long as hundreds of small ones.
_OF_LARGE = ("finite", "sums_to_one", "tasks_permuted", "rows_shuffled", "same_seed_same_bits", "gold_respected")
_NOT_LARGE = ("crowdfm",)  # a network of a vector per vote
_OTHERS = {"blocks": 40, "large": 2, "whole": 40}
_DASK = 20

Check = Callable[[Any], float | None]


def _methods() -> dict[str, MethodRow]:
    return {row.name: row for row in METHOD_ROWS}


def jobs(scale: float) -> Iterator[Job]:
    """Crowds of every kind for every method."""
    for row in METHOD_ROWS:
        yield from parts("contracts", f"{row.name}/small", _SMALL * _SHARES.get(row.name, 1.0) * scale, _PER_JOB)
        for kind, total in _OTHERS.items():
            if kind != "large" or row.name not in _NOT_LARGE:
                yield Job("contracts", f"{row.name}/{kind}", 0, max(1, round(total * scale)))
        if row.make().capabilities.dask:
            yield Job("contracts", f"{row.name}/dask", 0, max(1, round(_DASK * scale)))


def cases(row: MethodRow, kind: str, numbers: range) -> Iterator[tuple[int, Any]]:
    """A method and the crowd of each number."""
    for number in numbers:
        if kind == "whole":
            yield number, whole_fits.WholeCase(row, number)
            continue
        size = _SIZES[kind]
        if kind == "small" and row.name in _MAX_TASKS:
            size = size._replace(tasks=(1, _MAX_TASKS[row.name]))
        yield number, Case.drawn(row, number, size=size)


def properties(kind: str) -> dict[str, tuple[Check, float]]:
    """The properties that crowds of a kind are tried with, and how much is rounding."""
    if kind == "whole":
        return dict(whole_fits.PROPERTIES)
    chosen = _OF_LARGE if kind == "large" else tuple(PROPERTIES)
    return {name: (PROPERTIES[name].check, PROPERTIES[name].tolerance) for name in chosen}


def run(job: Job) -> dict[str, Row]:
    """Counts by property."""
    name, kind = job.row.split("/")
    row = _methods()[name]
    begin = job.part * _PER_JOB + list(_methods()).index(name) * 10_000
    numbers = range(begin, begin + job.size)
    counts: dict[str, Row] = {}
    if kind == "dask":
        with _client() as client:
            for number in numbers:
                with tempfile.TemporaryDirectory() as folder:
                    found = _tried(lambda case: local_is_dask(case, client, Path(folder)), Case.drawn(row, number))
                _count(counts, "local_is_dask", DASK_TOLERANCE, found, number)
        return counts
    for number, case in cases(row, kind, numbers):
        for title, (check, tolerance) in properties(kind).items():
            _count(counts, title, tolerance, _tried(check, case), number)
    return counts


def _tried(check: Check, case: Any) -> float | None:
    try:
        return check(case)
    except Exception as error:
        print(repr(error), flush=True)
        return float("inf")


def _count(counts: dict[str, Row], title: str, tolerance: float, found: float | None, number: int) -> None:
    if found is None:
        return
    count = counts.setdefault(
        title, {"crowds": 0, "violations": 0, "largest": 0.0, "tolerance": tolerance, "which": []}
    )
    count["crowds"] += 1
    count["largest"] = max(count["largest"], found)
    if not found <= tolerance:
        count["violations"] += 1
        count["which"].append(number)


def _client() -> Any:
    import distributed

    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None, silence_logs=logging.CRITICAL
    )
    return distributed.Client(cluster)


def rows(name: str, results: list[dict[str, Row]]) -> list[Row]:
    """A row a property."""
    method, kind = name.split("/")
    found = []
    for title in dict.fromkeys(title for result in results for title in result):
        own = [result[title] for result in results if title in result]
        found.append(
            {
                "property": title, "method": method, "kind": kind,
                "crowds": sum(one["crowds"] for one in own),
                "violations": sum(one["violations"] for one in own),
                "largest_difference": f"{max(one['largest'] for one in own):.3g}",
                "tolerance": f"{own[0]['tolerance']:g}",
                "which": " ".join(str(number) for one in own for number in one["which"][:5]),
            }
        )  # fmt: skip
    return found


def sources_of(row: str) -> tuple[str, ...]:
    """Patterns of the files that a method's fits exercise."""
    method, kind = row.split("/")
    module = METHODS[method].module
    own = (
        f"src/rarevote/methods/{module}*",
        *(["src/rarevote/methods/anchored_rasch"] if "anchored" in method else []),
    )
    exercised = {"dask": ("src/rarevote/cluster",), "whole": ("src/rarevote/diagnose", "proofs/whole_fits.py")}
    return (
        *sources.FITTING, *own, *exercised.get(kind, ()), "tests/methods/contracts.py", "tests/tables.py",
        "proofs/contracts.py",
    )  # fmt: skip


PROOF = Proof(
    "contracts",
    jobs=jobs,
    sources=sources_of,
    run=run,
    rows=rows,
    findings=lambda row: int(row["violations"]),
    row_of=lambda row: f"{row['method']}/{row.get('kind', '')}",
)
