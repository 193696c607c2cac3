"""Run the battery, and write docs/evidence and the pages about it (``make prove-all``).

    python -m proofs [--scale 1] [--minutes 60] [--only fuzz:csv,kills] [--at-once 2] [--work prove-work] [--all]
    python -m proofs --list

A run can be stopped at any moment and resumed with the same command; jobs whose code changed since run again. Rows that
the evidence has whole, with the code of today and without findings, are not run again, unless ``--all`` is given or the
scale is above 1. With ``--minutes`` no job is started after that time; with ``--scale 0.1`` a tenth is tried. The first
part of every row comes before the second of any. The evidence has the counts that ran, and the hash of the code that
they ran with.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from benchmarks import evidence

from proofs.battery import LEDGER, PROOFS, Ledger, faults, run_all, run_child, wanted, write_evidence
from proofs.release import PAGES


def main() -> None:
    if sys.argv[1:2] == ["job"]:
        os.environ["PROVE_WORK"] = sys.argv[3]
        run_child(sys.argv[2])
        return
    parser = argparse.ArgumentParser(
        prog="python -m proofs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", type=float, default=1.0, help="of the counts; 1 is all")
    parser.add_argument("--minutes", type=float, help="no job is started after so many")
    parser.add_argument("--only", default="", help="proofs or rows of them, with commas between: fuzz:csv,kills")
    parser.add_argument("--at-once", type=int, default=os.cpu_count() or 1, help="jobs at the same time")
    parser.add_argument("--work", type=Path, default=Path("prove-work"), help="folder of the ledger and of findings")
    parser.add_argument("--list", action="store_true", help="show the jobs")
    parser.add_argument("--all", action="store_true", help="run rows that the evidence has whole, too")
    parser.add_argument("--dirty", action="store_true", help="run although the tree is not clean; evidence says so")
    options = parser.parse_args()
    jobs = wanted([name for name in options.only.split(",") if name], options.scale)
    if options.list:
        for job in jobs:
            print(*job, sep="\t")
        return
    if evidence.commit().endswith("-dirty") and not options.dirty:
        sys.exit("The tree differs from its commit: evidence is of a commit. Commit first, or use --dirty to try.")
    if options.scale <= 1 and not options.all:
        wrong = {name: faults(name) for name in PROOFS}
        jobs = [job for job in jobs if wrong[job.proof][job.row]]
    options.work.mkdir(parents=True, exist_ok=True)
    ledger = Ledger(options.work / LEDGER)
    try:
        failed = run_all(jobs, ledger, options.work.resolve(), at_once=options.at_once, minutes=options.minutes)
    finally:
        for path in write_evidence(ledger):
            print(path.relative_to(evidence.REPOSITORY))
        subprocess.run([sys.executable, "-m", "cogapp", "-r", *PAGES], cwd=evidence.REPOSITORY, check=True)
    if failed:
        sys.exit(f"{len(failed)} jobs failed: " + ", ".join(f"{job.proof} {job.row} {job.part}" for job in failed))


if __name__ == "__main__":
    main()
