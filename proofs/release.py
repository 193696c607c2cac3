"""Is the evidence of this commit? (``make release-check``)

    python -m proofs.release

Prints what is wrong, and ends with 1 if anything is:

- the tree differs from its commit;
- a row of any file in docs/evidence was measured on a tree that differed from its commit;
- a row of the battery was measured with other code than that of today, with fewer tries than ``make prove-all`` makes,
  is missing, or has findings;
- fewer than 400 mutants were tried, fewer than 92% of those that are not equivalent were killed, or the code of a file
  changed since;
- a block of the pages that show this evidence is not what it says.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Mapping

from benchmarks import evidence

from proofs.battery import FAULTS, PROOFS, faults
from proofs.sources import digest

Row = Mapping[str, str]
#: The pages that show the evidence of the battery.
PAGES = ("docs/robustness.md", "docs/benchmarks.md", "docs/howto/workbench.md")
MUTANTS, LEAST_KILLED = 400, 0.92


def unstated(rows: Iterable[Row]) -> list[str]:
    """The commits of rows that do not say what was measured."""
    return sorted({row["commit"] for row in rows if row["commit"].endswith("-dirty") or row["commit"] == "unknown"})


def problems() -> list[str]:
    """What keeps this commit from being released."""
    found = []
    if evidence.commit().endswith("-dirty"):
        found.append("the tree differs from its commit")
    for path in sorted(evidence.EVIDENCE.glob("*.csv")):
        rows = evidence.read(path.stem)
        if rows and "commit" in rows[0] and (commits := unstated(rows)):
            found.append(f"{path.stem}.csv: {FAULTS['unclean']}: {', '.join(commits)}")
    for name in PROOFS:
        wrong = faults(name)
        for fault, words in FAULTS.items():
            if fault != "unclean" and (rows_of := [row for row, of_row in wrong.items() if fault in of_row]):
                found.append(f"{name}.csv: {words}: {', '.join(rows_of)}")
    return found + _mutants()


def _mutants() -> list[str]:
    """Whether enough mutants were tried, and enough of them noticed by a test."""
    rows = evidence.read("mutants") if (evidence.EVIDENCE / "mutants.csv").exists() else []
    decided = [row["outcome"] == "killed" for row in rows if row["outcome"] != "equivalent"]
    if len(rows) < MUTANTS:
        return [f"mutants.csv: {len(rows)} of {MUTANTS} mutants tried"]
    if sum(decided) < LEAST_KILLED * len(decided):
        return [f"mutants.csv: {sum(decided)} of {len(decided)} mutants killed, {LEAST_KILLED:.0%} are wanted"]
    code = {row["place"].partition(":")[0]: row["code"] for row in rows}
    changed = [file for file, then in sorted(code.items()) if digest([f"src/rarevote/{file}"]) != then]
    return [f"mutants.csv: {FAULTS['changed']}: {', '.join(changed)}"] if changed else []


def main() -> None:
    found = problems()
    for page in PAGES:
        cog = [sys.executable, "-m", "cogapp", "--check", page]
        if subprocess.run(cog, cwd=evidence.REPOSITORY, capture_output=True).returncode:
            found.append(f"{page} is not what the evidence says: make docs-blocks")
    print("\n".join(found) or "The evidence is of this commit's code.")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
