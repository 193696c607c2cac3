"""Do the tests notice a change? A seeded sample of mutants: one operator, number, condition or statement changed each.

    python -m proofs.mutants [--mutants 400] [--seed 1] [--minutes 120] [--at-once 2] [--work prove-work/mutants]

Over audit, decide, io/read, crowd and methods, compiled kernels apart (they are compared with plain NumPy passes).
First the tests run once, to note which functions each test calls (:mod:`proofs.tests_by_function`). A mutant is then
tried with the tests that call its function, at most 150, those of its layer first, until one fails; a survivor is tried
with all other tests of its layer that call it. It runs in a copy of the package, so that the tree stays as it is.

Resumable: outcomes are in ``results.jsonl`` of the work folder, and a mutant whose file did not change is not run
again, unless it survived and ``--again`` is given. A mutant that the evidence calls killed or equivalent, with the same
code of its file, is not run again either, and keeps the date and commit of its row; with ``--all`` it is.

Writes docs/evidence/mutants.csv, a row a mutant: *killed* (a test failed, or did not end), *survived* (no test failed)
or *not tested* (no test calls the function). ``proofs/mutants_equivalent.csv`` lists survivors that change no
behaviour, with the reason; these are *equivalent*. Decided mutants are all others. A row has a hash of the code of its
file; ``make release-check`` compares it.

Tests are added for survivors, so a sample says less about other changes once it was used. Another ``--seed`` draws
mutants that no test was written for; its evidence is a file of its own (``mutants-2.csv``).
"""

from __future__ import annotations

import argparse
import ast
import csv
import hashlib
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from benchmarks import evidence

from proofs.sources import code_of, digest

SOURCE = evidence.REPOSITORY / "src"
PACKAGE = SOURCE / "rarevote"
LAYERS = ("audit", "decide", "io/read", "crowd", "methods")
# What drives a browser or builds the site takes long, and is about other layers.
NOT_TRIED = ("docs", "workbench", "study", "charts", "proofs", "page", "watch", "simulate", "test_imports.py",
             "test_size.py", "test_doctests.py", "test_project.py")  # fmt: skip
EQUIVALENT = evidence.REPOSITORY / "proofs" / "mutants_equivalent.csv"
# Recorded seconds of the tests that a mutant is tried with.
_SECONDS_OF_TESTS, _MAX_TESTS = 40.0, 150
_START, _TIMES_SLOWER = 40, 4

_SWAPPED: dict[type[ast.AST], str] = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==", ast.Is: "is not",
    ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in", ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*",
    ast.FloorDiv: "/", ast.Mod: "*", ast.Pow: "*", ast.And: "or", ast.Or: "and", ast.BitAnd: "|", ast.BitOr: "&",
}  # fmt: skip
_CALLS = {"min": "max", "max": "min", "any": "all", "all": "any", "first": "last", "sorted": "list"}


@dataclass(frozen=True)
class Mutant:
    """One change of a file.

    Attributes:
        file: below the package.
        line: of the change, from 1.
        function: name of the outermost function around it, with its class; "" outside of functions.
        start: offset of the first letter that changes.
        stop: offset after the last one.
        after: the new text.
    """

    file: str
    line: int
    function: str
    start: int
    stop: int
    after: str

    def change(self, source: str) -> str:
        """The line before and after."""
        first, last = source.rfind("\n", 0, self.start) + 1, source.find("\n", self.stop)
        before = source[first:last].strip()
        changed = self.applied(source)[first : last + len(self.after) - (self.stop - self.start)].strip()
        return f"{before} → {changed}"

    def applied(self, source: str) -> str:
        """The source with the change."""
        return source[: self.start] + self.after + source[self.stop :]

    def key(self, source: str) -> str:
        """A name that stays the same while the code of the file does."""
        told = f"{self.file} {hashlib.sha256(code_of(source).encode()).hexdigest()} {self.change(source)} {self.after}"
        return hashlib.sha256(told.encode()).hexdigest()[:16]


def mutants_of(source: str, file: str = "") -> Iterator[Mutant]:
    """All mutants of a file."""
    tree = ast.parse(source)
    starts = [0]
    for text in source.split("\n"):
        starts.append(starts[-1] + len(text) + 1)
    lines = source.split("\n")

    def offset(row: int, column: int) -> int:
        return starts[row - 1] + len(lines[row - 1].encode()[:column].decode())

    def span(node: Any) -> tuple[int, int]:
        return offset(node.lineno, node.col_offset), offset(node.end_lineno, node.end_col_offset)

    def walk(node: ast.AST, function: str, scope: str) -> Iterator[Mutant]:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            return
        if isinstance(node, ast.JoinedStr):
            return  # Python 3.11 does not say where its parts are
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            function = function or scope + node.name
        if isinstance(node, ast.ClassDef):
            scope += f"{node.name}."
        for start, stop, after in _changes(node, source, span):
            line = source.count("\n", 0, start) + 1
            yield Mutant(file, line, function, start, stop, after)
        if isinstance(node, ast.keyword) and node.arg == "strict":
            return  # zip(strict=True) never matters but for faults elsewhere
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_params"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from walk(child, function, scope)

    yield from walk(tree, "", "")


def _changes(node: Any, source: str, span: Any) -> Iterator[tuple[int, int, str]]:
    """Where a node is changed, and into what."""
    if isinstance(node, ast.Compare):
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            yield _operator(source, span(left)[1], span(right)[0], _SWAPPED[type(operator)])
            left = right
    elif isinstance(node, ast.BinOp) and type(node.op) in _SWAPPED:
        yield _operator(source, span(node.left)[1], span(node.right)[0], _SWAPPED[type(node.op)])
    elif isinstance(node, ast.BoolOp):
        yield _operator(source, span(node.values[0])[1], span(node.values[1])[0], _SWAPPED[type(node.op)])
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        start = span(node)[0]
        yield start, start + (len("not ") if isinstance(node.op, ast.Not) else 1), ""
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        if isinstance(node.value, bool):
            yield *span(node), str(not node.value)
        else:
            yield *span(node), str(node.value + 1)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _CALLS:
        yield *span(node.func), _CALLS[node.func.id]
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        start, stop = span(node.test)
        yield start, stop, f"not ({source[start:stop]})"
    elif isinstance(node, ast.Break | ast.Continue):
        yield *span(node), "continue" if isinstance(node, ast.Break) else "break"
    elif isinstance(node, ast.Raise | ast.AugAssign) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    ):
        yield *span(node), "pass"


def _operator(source: str, start: int, stop: int, after: str) -> tuple[int, int, str]:
    """The text between two operands, parentheses and line breaks kept, with another operator."""
    between = source[start:stop]
    words = between.strip("() \n\\\t")
    at = start + between.index(words)
    return at, at + len(words), after


def sample(number: int, layers: Sequence[str] = LAYERS, seed: int = 1) -> list[Mutant]:
    """So many mutants, one a line; while a line stays as it is, so does its place in the sample."""
    ranked = []
    for layer in layers:
        for path in sorted((PACKAGE / layer).rglob("*.py")):
            if path.name.endswith("kernel.py"):
                continue
            file, source = path.relative_to(PACKAGE).as_posix(), path.read_text(encoding="utf-8")
            by_line: dict[int, list[Mutant]] = {}
            for one in mutants_of(source, file):
                by_line.setdefault(one.line, []).append(one)
            lines = source.split("\n")
            for line, changes in by_line.items():
                chance = random.Random(f"{seed} {file} {lines[line - 1].strip()}")
                ranked.append((chance.random(), file, line, chance.choice(changes)))
    return [mutant for *_, mutant in sorted(ranked, key=lambda entry: entry[:3])[:number]]


def chosen_tests(mutant: Mutant, calls: Mapping[str, Any]) -> list[str]:
    """Tests that call the function of a mutant, or any of its file where it is in none.

    Those of its own layer come first, fast ones before slow ones.
    """
    seconds: Mapping[str, float] = calls["seconds"]
    chosen: list[str] = []
    total = 0.0
    for test in _tests_of(mutant, calls):
        total += seconds[test]
        if chosen and (total > _SECONDS_OF_TESTS or len(chosen) >= _MAX_TESTS):
            break
        chosen.append(test)
    return chosen


def other_tests(mutant: Mutant, calls: Mapping[str, Any]) -> list[str]:
    """Tests of the mutant's own layer that call its function and are not among the chosen ones."""
    chosen = set(chosen_tests(mutant, calls))
    return [test for test in _tests_of(mutant, calls) if test not in chosen and _is_of_layer(test, mutant)]


def _tests_of(mutant: Mutant, calls: Mapping[str, Any]) -> list[str]:
    places = [f"{mutant.file}:{mutant.function}"] if mutant.function else [
        place for place in calls["tests"] if place.startswith(f"{mutant.file}:")
    ]  # fmt: skip
    tests = {test for place in places for test in calls["tests"].get(place, ())}
    seconds: Mapping[str, float] = calls["seconds"]
    return sorted(tests, key=lambda test: (not _is_of_layer(test, mutant), seconds[test], test))


def _is_of_layer(test: str, mutant: Mutant) -> bool:
    return test.startswith(f"tests/{mutant.file.partition('/')[0]}/")


class Copies:
    """Copies of the package, one for each mutant that runs at the same time.

    Args:
        folder: where they are.
        number: of copies.
    """

    def __init__(self, folder: Path, number: int) -> None:
        self.free: SimpleQueue[Path] = SimpleQueue()
        self._passes: dict[str, bool] = {}
        for name in range(number):
            copy = folder / f"copy-{name}"
            shutil.rmtree(copy / "rarevote", ignore_errors=True)
            shutil.copytree(PACKAGE, copy / "rarevote", ignore=shutil.ignore_patterns("*.pyc", "*.nb?"))
            self.free.put(copy)

    def run(self, mutant: Mutant, tests: list[str], seconds: float) -> tuple[str, str]:
        """Run tests on a mutant: killed or survived, and the test that failed.

        A test that fails without the mutant, too, says nothing about it: the others are tried without that one.
        """
        copy = self.free.get()
        path = copy / "rarevote" / mutant.file
        source = (PACKAGE / mutant.file).read_text(encoding="utf-8")
        tests = [test for test in tests if self._passes.get(test, True)]
        try:
            while tests:
                _write(path, mutant.applied(source))
                outcome, failed = _run_tests(tests, copy, seconds)
                _write(path, source)
                if failed not in tests:
                    return outcome, failed
                if failed not in self._passes:
                    self._passes[failed] = _run_tests([failed], copy, seconds)[0] == "survived"
                if self._passes[failed]:
                    return outcome, failed
                tests.remove(failed)
            return "not tested", ""
        finally:
            _write(path, source)
            self.free.put(copy)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    # Two versions of a second and a size would be one to Python.
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()


def _run_tests(tests: list[str], source: Path, seconds: float) -> tuple[str, str]:
    """Run tests until one fails: "survived" if none does, and the one that failed, or what else ended the run."""
    limit = int(_START + _TIMES_SLOWER * seconds)
    words = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", *tests]
    environment = {
        **os.environ,
        "COLUMNS": "400",
        "PYTHONPATH": str(source),
        "HYPOTHESIS_STORAGE_DIRECTORY": str(source / "hypothesis"),
    }
    try:
        done = subprocess.run(
            words, cwd=evidence.REPOSITORY, env=environment, capture_output=True, text=True, timeout=6 * limit,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit)),
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "killed", "did not end"
    if done.returncode == 0:
        return "survived", ""
    # A test that fails, or one whose fixtures do.
    lines = [line.partition(" ")[2] for line in done.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    names = [test for test in tests for line in lines if line == test or line.startswith(f"{test} - ")]
    return "killed", names[0] if names else (lines or [f"exit code {done.returncode}"])[0][:200]


def recorded_calls(work: Path, n_workers: int) -> dict[str, Any]:
    """Which tests call which functions; recorded once, and again with ``--record``."""
    path = work / "calls.json"
    if not path.exists():
        print("recording which functions each test calls ...", flush=True)
        words = [sys.executable, "-m", "pytest", "-q", "-m", "not prove", "-p", "proofs.tests_by_function"]
        at_once = ["-n", str(n_workers), "--dist", "loadfile"]
        left_out = [f"--ignore=tests/{name}" for name in NOT_TRIED]
        parts = work / "calls"
        shutil.rmtree(parts, ignore_errors=True)
        parts.mkdir()
        # A test that fails is a test all the same.
        subprocess.run(
            [*words, *at_once, *left_out],
            cwd=evidence.REPOSITORY,
            env={**os.environ, "CALLS_OUT": str(parts.resolve())},
        )
        whole: dict[str, Any] = {"tests": {}, "seconds": {}}
        for part in sorted(parts.iterdir()):
            read = json.loads(part.read_text(encoding="utf-8"))
            whole["seconds"].update(read["seconds"])
            for place, tests in read["tests"].items():
                whole["tests"].setdefault(place, []).extend(tests)
        path.write_text(json.dumps(whole), encoding="utf-8")
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def rows_of(results: list[dict[str, Any]], reasons: Mapping[str, str]) -> list[dict[str, Any]]:
    """Rows of evidence; a survivor that has a reason is equivalent."""
    rows = []
    for one in results:
        named = f"{one['place'].partition(':')[0]} {one['change']}"
        reason = reasons.get(named, "") if one["outcome"] != "killed" else ""
        outcome = "equivalent" if reason else one["outcome"]
        layer = next(layer for layer in LAYERS if one["place"].startswith(f"{layer}/"))
        stamp = {name: one[name] for name in ("date", "commit") if name in one}
        rows.append(
            {"layer": layer, "place": one["place"], "change": one["change"], "outcome": outcome, "reason": reason}
            | stamp
        )
    return sorted(rows, key=lambda row: (row["outcome"] == "killed", row["place"]))


def settled_before(name: str, reasons: Mapping[str, str]) -> dict[tuple[str, str, str], dict[str, str]]:
    """Rows of evidence that were killed, or that have a reason still, by file, code of the file and change."""
    rows = evidence.read(name) if (evidence.EVIDENCE / f"{name}.csv").exists() else []
    found = {}
    for row in rows:
        file = row["place"].partition(":")[0]
        if row["outcome"] == "killed" or (row["outcome"] == "equivalent" and f"{file} {row['change']}" in reasons):
            found[file, row["code"], row["change"]] = row
    return found


def known_reasons() -> dict[str, str]:
    """Reasons for equivalent mutants, by file and change; a line's number would change with the lines above it."""
    if not EQUIVALENT.exists():
        return {}
    with EQUIVALENT.open(newline="", encoding="utf-8") as handle:
        return {f"{row['file']} {row['change']}": row["reason"] for row in csv.DictReader(handle)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutants", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--minutes", type=float, help="none is started after so many")
    parser.add_argument("--at-once", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--work", type=Path, default=Path("prove-work") / "mutants")
    parser.add_argument("--layers", default=",".join(LAYERS), help="of these, with commas between")
    parser.add_argument("--record", action="store_true", help="record again which functions each test calls")
    parser.add_argument("--again", action="store_true", help="run those that survived again: tests were added")
    parser.add_argument("--all", action="store_true", help="run those, too, that the evidence calls settled")
    parser.add_argument("--dry", action="store_true", help="write no evidence")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    if options.record:
        (options.work / "calls.json").unlink(missing_ok=True)
    calls, lock = recorded_calls(options.work, options.at_once), threading.Lock()
    path = options.work / "results.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    known = {one["key"]: one for one in map(json.loads, lines)}
    if options.again:
        known = {key: one for key, one in known.items() if one["outcome"] == "killed"}
    name = "mutants" if options.seed == 1 else f"mutants-{options.seed}"
    before = {} if options.all else settled_before(name, known_reasons())
    chosen = sample(options.mutants, options.layers.split(","), options.seed)
    copies = Copies(options.work.resolve(), options.at_once)
    end = time.monotonic() + 60 * options.minutes if options.minutes else float("inf")
    results: list[dict[str, Any]] = []

    def decide(mutant: Mutant) -> None:
        source = (PACKAGE / mutant.file).read_text(encoding="utf-8")
        key = mutant.key(source)
        begin = time.monotonic()
        found, place = known.get(key), f"{mutant.file}:{mutant.line}"
        if found is None:
            found = before.get((mutant.file, digest([f"src/rarevote/{mutant.file}"]), mutant.change(source)))
        is_new = found is None
        if found is None:
            if begin >= end:
                return
            outcome, said = "not tested", ""
            for tests in (chosen_tests(mutant, calls), other_tests(mutant, calls)):
                if tests and outcome != "killed":
                    outcome, said = copies.run(mutant, tests, sum(calls["seconds"][test] for test in tests))
            found = {"key": key, "place": place, "change": mutant.change(source), "outcome": outcome, "said": said}
            found["seconds"] = round(time.monotonic() - begin, 1)
        with lock:
            if is_new:
                with path.open("a", encoding="utf-8") as handle:
                    handle.write(json.dumps(found) + "\n")
                print(
                    f"{len(results) + 1}/{len(chosen)} {found['outcome']}: {found['place']} {found['change']}",
                    flush=True,
                )
            results.append({**found, "place": place})  # the line may have moved since

    with ThreadPoolExecutor(options.at_once) as pool:
        list(pool.map(decide, chosen))
    rows = rows_of(results, known_reasons())
    for row in rows:
        row["code"] = digest([f"src/rarevote/{row['place'].partition(':')[0]}"])
    killed, equivalent = (sum(row["outcome"] == name for row in rows) for name in ("killed", "equivalent"))
    print(f"{killed} of {len(rows) - equivalent} decided mutants killed, {equivalent} equivalent")
    if not options.dry and rows:
        command = "make prove-mutants" if options.seed == 1 else None
        print(evidence.write(name, rows, command=command).relative_to(evidence.REPOSITORY))


if __name__ == "__main__":
    main()
