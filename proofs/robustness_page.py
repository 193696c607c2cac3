"""Writes docs/robustness.md: what was tried against every door, every method and every verb, and what came of it.

    python -m proofs.robustness_page

From docs/evidence: fuzz.csv (``proofs.fuzz``), contracts.csv (``proofs.contracts``), faults.csv
(``proofs.faults``), kills.csv (``proofs.kills``) and workbench.csv (``proofs.workbench``). Without one of
them there is no page: a table with a part left out would look like one in which nothing was found.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from benchmarks import evidence
from benchmarks.pages import table

PAGE = evidence.REPOSITORY / "docs" / "robustness.md"
Row = Mapping[str, str]
#: Columns that the page needs, by evidence file.
NEEDED: dict[str, tuple[str, ...]] = {
    "fuzz": (
        "door",
        "executions",
        "read",
        "refused",
        "foreign",
        "hangs",
        "crashes",
        "memory findings",
        "largest memory MB",
    ),
    "contracts": ("property", "method", "crowds", "violations"),
    "faults": ("verb", "fault", "tries", "lost", "half-visible", "wrong", "foreign", "left"),
    "kills": ("killed", "holds"),
    "workbench": ("part", "figure", "value", "holds"),
}
_FINDINGS = {
    "fuzz": ("foreign", "hangs", "crashes", "memory findings"),
    "faults": ("lost", "half-visible", "wrong", "foreign", "left"),
}
_STAMP = ("date", "commit", "command")
_CACHE = "compiled loops (cache)"


class EvidenceError(Exception):
    """Evidence is not there, or lacks what the page needs."""


def rows_of(name: str, folder: Path) -> list[dict[str, str]]:
    """The rows of an evidence file.

    Raises:
        EvidenceError: there is no such file, it is empty, or a column is missing or no number where one is needed.
    """
    path = folder / f"{name}.csv"
    again = f"run python -m proofs.{name}"
    if not path.is_file():
        raise EvidenceError(f"{path.name}: there is no such evidence; {again}")
    with path.open(newline="", encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    if not rows:
        raise EvidenceError(f"{path.name}: has no rows; {again}")
    lacking = [column for column in (*NEEDED[name], *_STAMP) if column not in rows[0]]
    if lacking:
        raise EvidenceError(f"{path.name}: has no column {', '.join(lacking)}; {again}")
    for column in ("executions", "crowds", "violations", "tries", *_FINDINGS.get(name, ())):
        if column in rows[0] and not all(row[column].isdigit() for row in rows):
            raise EvidenceError(f"{path.name}: {column} is not a number in every row; {again}")
    return rows


def total(rows: Iterable[Row], *columns: str) -> int:
    """The sum of columns over rows."""
    return sum(int(row[column]) for row in rows for column in columns)


def killed(rows: Iterable[Row]) -> int:
    """Processes that were killed, in the table of faults."""
    return sum(int(row["tries"]) for row in rows if row["fault"].startswith("killed"))


def workbench_kills(rows: Iterable[Row]) -> tuple[int, str]:
    """How often the workbench was killed, and what came of it.

    Raises:
        EvidenceError: the evidence does not say.
    """
    for row in rows:
        found = re.search(r"SIGKILL during (\d+) answers", row["figure"])
        if row["part"] == "kills" and found:
            return int(found[1]), row["value"]
    raise EvidenceError("workbench.csv: does not say how often it was killed; run python -m proofs.workbench")


def page(folder: Path = evidence.EVIDENCE) -> str:
    """The page as the evidence has it.

    Raises:
        EvidenceError: some of it is missing.
    """
    found = {name: rows_of(name, folder) for name in NEEDED}
    fuzz, contracts, faults, kills = (found[name] for name in ("fuzz", "contracts", "faults", "kills"))
    n_workbench, at_workbench = workbench_kills(found["workbench"])
    n_kills = killed(faults) + len(kills) + n_workbench
    not_held = sum(row["holds"] != "yes" for row in (*kills, *found["workbench"]))
    struck = {row["verb"] for row in faults}
    verbs = f"{len(struck - {_CACHE})} verbs" + (", the cache" if _CACHE in struck else "")
    contracts_of = f"{len({row['property'] for row in contracts})} contracts, "
    summary = [
        [
            "files and requests handed in, altered",
            f"{total(fuzz, 'executions'):,}",
            f"{len(fuzz)} doors",
            f"{total(fuzz, 'foreign')} foreign exceptions, {total(fuzz, 'hangs')} hangs, "
            f"{total(fuzz, 'crashes')} crashes, {total(fuzz, 'memory findings')} times more than 1 GB",
        ],
        [
            "crowds that every method must treat alike",
            f"{_n_crowds(contracts):,}",
            f"{contracts_of}{len({row['method'] for row in contracts})} methods",
            f"{total(contracts, 'violations')} violations",
        ],
        [
            "processes killed (SIGKILL)",
            f"{n_kills:,}",
            f"{verbs}, dask, the workbench",
            f"{total(faults, 'lost')} lost, {total(faults, 'half-visible')} half visible, {total(faults, 'wrong')} "
            f"wrong, {total(faults, 'left')} left behind; {not_held} of the dask and workbench runs ended differently",
        ],
        [
            "other faults: no room, no rights, two at once, the clock, damage",
            f"{total(faults, 'tries') - killed(faults):,}",
            verbs,
            f"{total(faults, 'foreign')} foreign exceptions",
        ],
    ]
    whole = sum(row["holds"] == "yes" for row in kills)
    parts = [
        _INTRODUCTION,
        table(["tried", "how often", "on", "findings that are left"], summary),
        _DOORS,
        table(
            ["door", "executions", "read", "refused", "foreign", "hangs", "crashes", "over 1 GB", "most memory, MB"],
            [[row["door"], *(f"{int(row[name]):,}" for name in NEEDED["fuzz"][1:])] for row in fuzz],
        ),
        _CONTRACTS,
        table(["contract", "methods", "crowds", "violations"], _by_contract(contracts)),
        _FAULTS,
        table(["verb", *_GROUPS, "lost, half, wrong, foreign, left"], _by_verb(faults)),
        f"Besides, {len(kills)} workers and drivers of dask fits were killed: {whole} fits ended as if undisturbed.\n"
        f"The workbench was killed {n_workbench} times while somebody answered: {at_workbench}.",
        "## When and how",
        table(["evidence", "date", "commit", "command"], [_stamp(name, rows) for name, rows in found.items()]),
    ]
    return "\n\n".join(parts) + "\n"


_INTRODUCTION = """# How hard it is to break

Files from anybody, machines that lose their power, disks that fill up: what was tried, and what is left to be found.
Everything that was found on the way is mended and has a test. What may be hostile, what listens and what is never
executed is promised in `SECURITY.md`; what an error means is in [Errors and warnings](errors.md)."""
_DOORS = """## Doors

A door is a way in for what others wrote: a reader, a platform's export, a model, a plan, a request. Whole files of ours
are altered by bytes and by what formats are made of, and handed in. What comes out must be an answer or an error of
ours, within ten seconds of the processor and with a gigabyte at most beside the file."""
_CONTRACTS = """## Contracts

What every method owes every crowd, on generated crowds. A crowd is one method's, and is tried by all contracts of that
method; the numbers are of all methods together."""
_FAULTS = """## Faults

Each try begins with the result of an earlier run. Afterwards every visible file is that of the earlier or that of an
undisturbed run, and the same command, run again, gives the undisturbed result. Files that are read together (a
simulated crowd and its truth; the files of a dask run, whose `summary.json` comes last) are never of two runs: the old
ones go before the first new one comes. What a kill leaves is hidden, is read by nobody, and goes with the next run a
day later; openpyxl and dask may leave files of their own in the temporary folder. The cache of compiled loops is
shared, filled up, locked, and damaged before a run and while it goes on; the result must be that of a run without."""


def _n_crowds(rows: list[dict[str, str]]) -> int:
    """How many crowds there were: each is one method's, and is tried by all of its contracts."""
    most: dict[str, int] = {}
    for row in rows:
        most[row["method"]] = max(most.get(row["method"], 0), int(row["crowds"]))
    return sum(most.values())


def _by_contract(rows: list[dict[str, str]]) -> list[list[str]]:
    found = []
    for name in dict.fromkeys(row["property"] for row in rows):
        own = [row for row in rows if row["property"] == name]
        methods = len({row["method"] for row in own})
        found.append([name, str(methods), f"{total(own, 'crowds'):,}", str(total(own, "violations"))])
    return found


#: Columns of the table of faults: how the faults begin that they count.
_GROUPS: dict[str, tuple[str, ...]] = {
    "killed": ("killed",),
    "no room": ("a file cannot grow", "disk full"),
    "no rights": ("no right",),
    "two at once": ("two at once",),
    "clock set back": ("clock",),
    "damaged": ("damaged",),
}


def _by_verb(rows: list[dict[str, str]]) -> list[list[str]]:
    found = []
    for verb in dict.fromkeys(row["verb"] for row in rows):
        own = [row for row in rows if row["verb"] == verb]
        tries = [total((row for row in own if row["fault"].startswith(group)), "tries") for group in _GROUPS.values()]
        findings = ", ".join(str(total(own, column)) for column in _FINDINGS["faults"])
        found.append([verb, *map(str, tries), findings])
    return found


def _stamp(name: str, rows: list[dict[str, str]]) -> list[str]:
    last = max(rows, key=lambda row: row["date"])
    return [f"[{name}.csv](evidence/{name}.csv)", last["date"], last["commit"], f"`{last['command']}`"]


def main() -> None:
    try:
        PAGE.write_text(page(), encoding="utf-8")
    except EvidenceError as error:
        sys.exit(f"docs/robustness.md is not written: {error}")
    print(PAGE.relative_to(evidence.REPOSITORY))


if __name__ == "__main__":
    main()
