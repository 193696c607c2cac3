"""``python -m proofs.golden``: record a run, or compare one with a record."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from proofs.golden.difference import differences
from proofs.golden.repeatable import REPOSITORY
from proofs.golden.run import SECTIONS, Parts, cases_of, run_section

Record = dict[str, dict[str, Parts]]


def main(words: Sequence[str] | None = None) -> int:
    """Returns the exit code: 1 where something differs that is not allowed."""
    parser = argparse.ArgumentParser(prog="python -m proofs.golden", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in ("record", "compare"):
        one = verbs.add_parser(verb)
        one.add_argument("file", type=Path, help="the record; its parts are in FILE.parts")
        one.add_argument("--only", action="append", choices=SECTIONS, help="a section; repeatable")
        one.add_argument("--case", action="append", metavar="NAME", help="cases whose name contains NAME; repeatable")
        if verb == "compare":
            one.add_argument("--allow", action="append", default=[], metavar="PATTERN",
                             help="lines or places (SECTION/CASE/PART) that may differ; repeatable")  # fmt: skip
            one.add_argument("--with", dest="other", type=Path, help="another record, in place of a new run")
    given = parser.parse_args(words)
    sections = given.only or list(SECTIONS)
    if given.verb == "compare" and not given.file.is_file():
        parser.error(f"{given.file}: no such record")
    if given.verb == "record":
        _write(given.file, {**_read(given.file), **run_all(sections, parts_of(given.file), given.case)})
        return 0
    before = _read(given.file)
    with tempfile.TemporaryDirectory(prefix="golden-parts-") as folder:
        if given.other is not None:
            after, store = _read(given.other), parts_of(given.other)
        else:
            store = Path(folder)
            after = run_all(sections, store, given.case)
        return _report(before, after, sections, (parts_of(given.file), store), given.allow, given.case)


def parts_of(file: Path) -> Path:
    """The folder with the parts of a record."""
    return file.with_name(f"{file.name}.parts")


def run_all(sections: Sequence[str], store: Path, case: Sequence[str] | None = None) -> Record:
    """Run the cases of some sections, those whose names contain one of ``case`` if given."""
    found: Record = {}
    for section in sections:
        begin = time.perf_counter()
        found[section] = run_section(section, store, [name for name in cases_of(section) if _wanted(name, case)])
        print(f"{section}: {len(found[section])} cases, {time.perf_counter() - begin:.0f} s", file=sys.stderr)
    return found


def _wanted(name: str, case: Sequence[str] | None) -> bool:
    return case is None or any(part in name for part in case)


def _read(file: Path) -> Record:
    """The sections of a record; none of a file that is not there yet."""
    found = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return {section: cases for section, cases in found.items() if section in SECTIONS}


def _write(file: Path, record: Record) -> None:
    words = ["git", "-C", str(REPOSITORY), "describe", "--always", "--dirty"]
    commit = subprocess.run(words, capture_output=True, text=True).stdout.strip()
    file.write_text(json.dumps({"commit": commit, **record}, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _report(
    before: Record, after: Record, sections: Sequence[str], stores: tuple[Path, Path], allow: Sequence[str],
    case: Sequence[str] | None,
) -> int:  # fmt: skip
    code = 0
    for section in sections:
        old = {name: parts for name, parts in before.get(section, {}).items() if _wanted(name, case)}
        found = list(differences(section, old, after[section], stores, allow))
        for one in found:
            print(one)
        meant = sum(one.allowed for one in found)
        n_parts = sum(map(len, old.values()))
        print(f"{section}: {len(old)} cases, {n_parts} parts, {len(found) - meant} differ, {meant} differ as allowed")
        code |= len(found) > meant
    print("different" if code else "equal")
    return code


if __name__ == "__main__":
    sys.exit(main())
