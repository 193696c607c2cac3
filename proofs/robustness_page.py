"""Tables of docs/robustness.md: what was tried against every input, every method and every verb, and what came of it.

From docs/evidence: one file for each proof of the battery (:mod:`proofs.battery`), and mutants.csv.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from benchmarks import evidence
from benchmarks.evidence import read
from benchmarks.pages import table

from proofs.battery import PROOFS, faults

Row = Mapping[str, str]
_COUNTS = ("executions", "read", "refused", "wrong", "foreign", "hangs", "crashes", "memory findings")
_FINDINGS = ("lost", "half-visible", "wrong", "foreign", "left")
_CACHE = "compiled loops (cache)"
_MAX_NAMED = 12
_OUTCOMES = ("killed", "survived", "not tested", "equivalent")
KINDS = ("small", "blocks", "large", "whole", "dask")


def total(rows: Iterable[Row], *columns: str) -> int:
    """The sum of columns over rows; a column that older evidence lacks is 0."""
    return sum(int(row.get(column) or 0) for row in rows for column in columns)


def killed(rows: Iterable[Row]) -> int:
    """Processes that were killed, in the table of faults."""
    return sum(int(row["tries"]) for row in rows if row["fault"].startswith("killed"))


def workbench_kills() -> tuple[int, str]:
    """How often the workbench was killed, and what came of it."""
    row = next(row for row in read("workbench") if row["part"] == "kills")
    return int(row["figure"].split()[2]), row["value"]


def crowds_by_method() -> dict[str, dict[str, int]]:
    """How many crowds of each kind a method was tried with: every crowd is tried with all properties of its kind."""
    most: dict[str, dict[str, int]] = {}
    for row in read("contracts"):
        kinds = most.setdefault(row["method"], dict.fromkeys(KINDS, 0))
        kind = row.get("kind") or ("dask" if row["property"] == "local_is_dask" else "small")
        kinds[kind] = max(kinds[kind], int(row["crowds"]))
    return most


def summary_table() -> str:
    """Everything that was tried, a line each."""
    fuzz, contracts, faults, kills, plans, audits = map(
        read, ("fuzz", "contracts", "faults", "kills", "plan_fuzz", "audit_boundary")
    )
    n_kills = killed(faults) + len(kills) + workbench_kills()[0]
    not_held = sum(row["holds"] != "yes" for row in (*kills, *read("workbench")))
    struck = {row["verb"] for row in faults}
    verbs = f"{len(struck - {_CACHE})} verbs" + (", the cache" if _CACHE in struck else "")
    by_method = [sum(kinds.values()) for kinds in crowds_by_method().values()]
    rows = [
        [
            "altered files, frames and requests",
            f"{_range(int(row['executions']) for row in fuzz)} per input",
            f"{len(fuzz)} inputs",
            f"{total(fuzz, 'wrong')} wrong answers, {total(fuzz, 'foreign')} foreign exceptions, "
            f"{total(fuzz, 'hangs')} hangs, {total(fuzz, 'crashes')} crashes, "
            f"{total(fuzz, 'memory findings')} times more than 1 GB",
        ],
        [
            "generated crowds",
            f"{_range(by_method)} per method",
            f"{len(by_method)} methods, {len({row['property'] for row in contracts})} properties",
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
            "other faults: disk full, no permission, two at once, clock, damage",
            f"{total(faults, 'tries') - killed(faults):,}",
            verbs,
            f"{total(faults, 'foreign')} foreign exceptions",
        ],
        [
            "altered audit plans with a matching certificate",
            f"{total(plans, 'executions'):,}",
            f"{len(plans)} alterations",
            f"{total(plans, 'certify_more')} accepted plans certify more than an honest audit",
        ],
        [
            "audits built to fail",
            f"{_range(int(row['audits']) for row in audits)} per case",
            f"{len(audits)} cases",
            f"false in {100 * max(float(row['false']) for row in audits):.1f}% at most; 5% are allowed, and "
            f"{100 * min(float(row['allowed']) for row in audits):.1f}% with the error of counting",
        ],
    ]
    return table(["tried", "how often", "on", "findings"], rows)


def _mutants(name: str = "mutants") -> list[dict[str, str]]:
    """The mutants that were tried; none before the first run."""
    return read(name) if (evidence.EVIDENCE / f"{name}.csv").exists() else []


def second_sample_text() -> str:
    """How many mutants of a sample were killed for which no test was written."""
    decided = [row["outcome"] == "killed" for row in _mutants("mutants-2") if row["outcome"] != "equivalent"]
    if not decided:
        return "A second sample was not tried yet."
    return (
        f"Of {len(decided)} mutants of a second sample, drawn afterwards with another seed, they noticed "
        f"{sum(decided)} ({100 * sum(decided) / len(decided):.0f}%)."
    )


def mutants_table() -> str:
    """What became of mutants, by layer."""
    rows = _mutants()
    found = []
    for layer in [*dict.fromkeys(row["layer"] for row in sorted(rows, key=lambda row: row["layer"])), ""]:
        own = [row for row in rows if layer in ("", row["layer"])]
        counts = [sum(row["outcome"] == outcome for row in own) for outcome in _OUTCOMES]
        decided = len(own) - counts[-1]
        share = f"{100 * counts[0] // decided}%" if decided else ""  # never rounded up to 100%
        found.append([f"`{layer}`" if layer else "all", str(len(own)), *map(str, counts), share])
    return table(["layer", "mutants", *_OUTCOMES, "killed of those not equivalent"], found)


def survivors_table() -> str:
    """Mutants that no test noticed, with the reason where they change no behaviour."""
    rows = [row for row in _mutants() if row["outcome"] != "killed"]
    return table(
        ["place", "change", "why it survives"],
        [
            [f"`{row['place']}`", f"`{' '.join(row['change'].split())}`".replace("|", "\\|"), _why(row)]
            for row in sorted(rows, key=lambda row: (row["outcome"], row["place"]))
        ],
    )


def _why(row: Row) -> str:
    return (
        row["reason"]
        or {"survived": "none of the tests tried noticed it", "not tested": "no test calls the function"}[
            row["outcome"]
        ]
    )


def _range(counts: Iterable[int]) -> str:
    values = sorted(counts)
    return f"{values[0]:,}" if values[0] == values[-1] else f"{values[0]:,} to {values[-1]:,}"


def inputs_table() -> str:
    """What came of altered files and requests, by input."""
    head = ["input", "executions", "read", "refused", "wrong", "foreign", "hangs", "crashes", "over 1 GB"]
    return table(
        [*head, "most memory, MB"],
        [
            [row["door"], *(f"{total([row], name):,}" for name in _COUNTS), row["largest memory MB"]]
            for row in read("fuzz")
        ],
    )


def contracts_table() -> str:
    """Violations of every property."""
    rows, found = read("contracts"), []
    for name in dict.fromkeys(row["property"] for row in rows):
        own = [row for row in rows if row["property"] == name]
        methods = len({row["method"] for row in own})
        found.append([name, str(methods), f"{total(own, 'crowds'):,}", str(total(own, "violations"))])
    return table(["property", "methods", "crowds", "violations"], found)


def methods_table() -> str:
    """Crowds of each kind, and violations, by method."""
    rows = read("contracts")
    return table(
        ["method", *KINDS, "violations"],
        [
            [
                method,
                *(f"{kinds[kind]:,}" for kind in KINDS),
                str(total((row for row in rows if row["method"] == method), "violations")),
            ]
            for method, kinds in crowds_by_method().items()
        ],
    )


#: Columns of the table of faults: how the faults begin that they count.
_GROUPS: dict[str, tuple[str, ...]] = {
    "killed": ("killed",),
    "disk full": ("a file cannot grow", "disk full"),
    "no permission": ("no right",),
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
        f"In addition, {len(kills)} workers and drivers of dask fits were killed; "
        f"{whole} fits ended as if undisturbed.\n"
        f"The workbench was killed {n_workbench} times while an expert answered: {at_workbench}."
    )


def plans_table() -> str:
    """What became of altered plans."""
    head = ["altered first", "plans", "refused", "accepted", "certify more"]
    columns = ("executions", "refused", "accepted", "certify_more")
    return table(
        head, [[row["altered"], *(f"{int(row[column]):,}" for column in columns)] for row in read("plan_fuzz")]
    )


def _named(rows: list[str], n_rows: int) -> str:
    """Rows by name, or how many they are."""
    if len(rows) == n_rows:
        return f"all {n_rows} rows" if n_rows > 1 else "the only row"
    return ", ".join(rows) if len(rows) <= _MAX_NAMED else f"{len(rows)} of {n_rows} rows"


def state_table() -> str:
    """When and how the evidence was made, and of which rows the code changed since."""
    found = []
    for name in PROOFS:
        last = max(read(name), key=lambda row: row["date"])
        now = faults(name)
        changes = [
            f"{words} {_named([row for row, wrong in now.items() if state in wrong], len(now))}"
            for state, words in (("changed", "in"), ("not run", "not run:"))
            if any(state in wrong for wrong in now.values())
        ]
        since = "; ".join(changes) or "no"
        found.append(
            [f"[{name}.csv](evidence/{name}.csv)", last["date"], last["commit"], f"`{last['command']}`", since]
        )
    return table(["evidence", "date", "commit", "command", "code changed since"], found)
