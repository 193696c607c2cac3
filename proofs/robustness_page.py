"""Tables of docs/robustness.md: what was tried against every door, every method and every verb, and what came of it.

From docs/evidence: fuzz.csv (``proofs.fuzz``), contracts.csv (``proofs.contracts``), faults.csv (``proofs.faults``),
kills.csv (``proofs.kills``) and workbench.csv (``proofs.workbench``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from benchmarks.evidence import read
from benchmarks.pages import table

Row = Mapping[str, str]
_COUNTS = ("executions", "read", "refused", "foreign", "hangs", "crashes", "memory findings", "largest memory MB")
_FINDINGS = ("lost", "half-visible", "wrong", "foreign", "left")
_CACHE = "compiled loops (cache)"


def total(rows: Iterable[Row], *columns: str) -> int:
    """The sum of columns over rows."""
    return sum(int(row[column]) for row in rows for column in columns)


def killed(rows: Iterable[Row]) -> int:
    """Processes that were killed, in the table of faults."""
    return sum(int(row["tries"]) for row in rows if row["fault"].startswith("killed"))


def workbench_kills() -> tuple[int, str]:
    """How often the workbench was killed, and what came of it."""
    row = next(row for row in read("workbench") if row["part"] == "kills")
    return int(row["figure"].split()[2]), row["value"]


def summary_table() -> str:
    """Everything that was tried, in four lines."""
    fuzz, contracts, faults, kills = (read(name) for name in ("fuzz", "contracts", "faults", "kills"))
    n_kills = killed(faults) + len(kills) + workbench_kills()[0]
    not_held = sum(row["holds"] != "yes" for row in (*kills, *read("workbench")))
    struck = {row["verb"] for row in faults}
    verbs = f"{len(struck - {_CACHE})} verbs" + (", the cache" if _CACHE in struck else "")
    contracts_of = f"{len({row['property'] for row in contracts})} contracts, "
    rows = [
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
    return table(["tried", "how often", "on", "findings that are left"], rows)


def doors_table() -> str:
    """What came of altered files and requests, by the door they were handed in at."""
    return table(
        ["door", "executions", "read", "refused", "foreign", "hangs", "crashes", "over 1 GB", "most memory, MB"],
        [[row["door"], *(f"{int(row[name]):,}" for name in _COUNTS)] for row in read("fuzz")],
    )


def _n_crowds(rows: list[dict[str, str]]) -> int:
    """How many crowds there were: each is one method's, and is tried by all of its contracts."""
    most: dict[str, int] = {}
    for row in rows:
        most[row["method"]] = max(most.get(row["method"], 0), int(row["crowds"]))
    return sum(most.values())


def contracts_table() -> str:
    """Violations of every contract."""
    rows, found = read("contracts"), []
    for name in dict.fromkeys(row["property"] for row in rows):
        own = [row for row in rows if row["property"] == name]
        methods = len({row["method"] for row in own})
        found.append([name, str(methods), f"{total(own, 'crowds'):,}", str(total(own, "violations"))])
    return table(["contract", "methods", "crowds", "violations"], found)


#: Columns of the table of faults: how the faults begin that they count.
_GROUPS: dict[str, tuple[str, ...]] = {
    "killed": ("killed",),
    "no room": ("a file cannot grow", "disk full"),
    "no rights": ("no right",),
    "two at once": ("two at once",),
    "clock set back": ("clock",),
    "damaged": ("damaged",),
}


def faults_table() -> str:
    """How often every verb was struck, and what was found."""
    rows, found = read("faults"), []
    for verb in dict.fromkeys(row["verb"] for row in rows):
        own = [row for row in rows if row["verb"] == verb]
        tries = [total((row for row in own if row["fault"].startswith(group)), "tries") for group in _GROUPS.values()]
        findings = ", ".join(str(total(own, column)) for column in _FINDINGS)
        found.append([verb, *map(str, tries), findings])
    return table(["verb", *_GROUPS, "lost, half, wrong, foreign, left"], found)


def kills_text() -> str:
    """What came of kills of dask fits and of the workbench."""
    kills, (n_workbench, at_workbench) = read("kills"), workbench_kills()
    whole = sum(row["holds"] == "yes" for row in kills)
    return (
        f"Besides, {len(kills)} workers and drivers of dask fits were killed: {whole} fits ended as if undisturbed.\n"
        f"The workbench was killed {n_workbench} times while somebody answered: {at_workbench}."
    )


def stamps_table() -> str:
    """When and how the evidence was made."""
    found = []
    for name in ("fuzz", "contracts", "faults", "kills", "workbench"):
        last = max(read(name), key=lambda row: row["date"])
        found.append([f"[{name}.csv](evidence/{name}.csv)", last["date"], last["commit"], f"`{last['command']}`"])
    return table(["evidence", "date", "commit", "command"], found)
