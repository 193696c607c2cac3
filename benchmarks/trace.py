"""How far one command goes: modules of ours that run, and how often the input is opened.

A module counts as entered when one of its functions runs; being imported is not enough. Openings are those by Python
(``open``, ``io.open``, ``os.open``); DuckDB opens the file besides, once to read it.

    python -m benchmarks.trace              prints and writes docs/evidence/trace.csv
    python -m benchmarks.trace --modules    prints the modules as well
"""

from __future__ import annotations

import argparse
import inspect
import io
import json
import os
import random
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from benchmarks import evidence

# What issue "One spine" asks for: modules entered, openings of the input.
LIMITS = {"aggregate": (40, 3), "report": (55, 4)}


class Trace:
    """Modules entered and openings of one path, while :meth:`watching`."""

    def __init__(self, path: Path) -> None:
        import rarevote

        self.path = path.resolve()
        self.package = Path(rarevote.__file__).resolve().parent
        self.modules: set[str] = set()
        self.openings = 0
        self._seen: dict[int, CodeType] = {}

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Count until the block ends, in threads too."""
        watched = [True]

        def opened(event: str, arguments: tuple[Any, ...]) -> None:
            # A hook cannot be taken away again.
            if watched[0] and event == "open" and isinstance(arguments[0], (str, bytes, os.PathLike)):
                self.openings += Path(os.fsdecode(arguments[0])).resolve() == self.path

        sys.addaudithook(opened)
        threading.setprofile(self._called)
        sys.setprofile(self._called)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
            watched[0] = False

    def _called(self, frame: FrameType, event: str, argument: Any) -> None:
        del argument
        code = frame.f_code
        # By its address, because a code object is compared by its content, and millions of calls come by.
        if event != "call" or id(code) in self._seen:
            return
        self._seen[id(code)] = code
        # The bodies of modules and classes run on import and are no functions; nor are comprehensions at their top.
        is_function = code.co_flags & inspect.CO_OPTIMIZED and (code.co_name == "<lambda>" or code.co_name[0] != "<")
        if is_function:
            path = Path(code.co_filename)
            if path.suffix == ".py" and path.is_relative_to(self.package):
                parts = path.relative_to(self.package).with_suffix("").parts
                self.modules.add(".".join(parts).removesuffix(".__init__"))


def write_votes(path: Path) -> None:
    """A crowd of thirty workers with a rare class, as a table."""
    draw = random.Random(7)
    lines = ["task,worker,label"]
    for task in range(300):
        truth = "defect" if task % 12 == 0 else "fine"
        for worker in draw.sample(range(30), 5):
            wrong = draw.random() < 0.15
            lines.append(f"t{task},w{worker},{('fine' if truth == 'defect' else 'defect') if wrong else truth}")
    path.write_text("\n".join(lines) + "\n")


def write_export(path: Path) -> None:
    """The same as Label Studio exports it."""
    votes = path.with_suffix(".csv")
    write_votes(votes)
    tasks: dict[str, list[dict[str, Any]]] = {}
    for line in votes.read_text().splitlines()[1:]:
        task, worker, label = line.split(",")
        result = {"from_name": "damage", "to_name": "image", "type": "choices", "value": {"choices": [label]}}
        tasks.setdefault(task, []).append({"completed_by": worker, "result": [result]})
    exported = [
        {"id": number, "data": {"image": f"{task}.jpg"}, "annotations": annotations}
        for number, (task, annotations) in enumerate(tasks.items())
    ]
    path.write_text(json.dumps(exported))


CASES: dict[str, tuple[str, Callable[[Path], None], list[str]]] = {
    "aggregate": ("labels.csv", write_votes, ["--min-recall", "defect=0.9", "--out", "result.csv"]),
    "report": ("export.json", write_export, ["--out", "page.html"]),
}


def trace(verb: str) -> Trace:
    """Run a verb of the command line in a folder of its own, and count."""
    from rarevote.__main__ import main

    name, write, options = CASES[verb]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write(Path(name))
        found = Trace(Path(name))
        sys.argv = ["rarevote", verb, name, *options]
        with found.watching(), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as said:
            try:
                main()
            except SystemExit as ended:
                if ended.code:
                    raise RuntimeError(f"rarevote {verb} failed: {said.getvalue()}") from None
        os.chdir(evidence.REPOSITORY)
    return found


def main() -> None:
    """Trace both commands; each in a process of its own, because an import runs only once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--modules", action="store_true", help="name the modules")
    given = parser.parse_args()
    called = list(sys.argv)
    rows = []
    for verb, (max_modules, max_openings) in LIMITS.items():
        process = os.fork()
        if not process:
            found = trace(verb)
            text = json.dumps({"modules": sorted(found.modules), "openings": found.openings})
            (Path(tempfile.gettempdir()) / f"trace-{os.getpid()}.json").write_text(text)
            os._exit(0)
        if os.waitpid(process, 0)[1]:
            raise SystemExit(f"rarevote {verb} could not be traced")
        result = Path(tempfile.gettempdir()) / f"trace-{process}.json"
        counted = json.loads(result.read_text())
        result.unlink()
        own = [name for name in counted["modules"] if name.split(".")[0] == "io"]
        row = {
            "verb": verb,
            "input": CASES[verb][0],
            "modules": len(counted["modules"]),
            "max_modules": max_modules,
            "io_modules": len(own),
            "openings": counted["openings"],
            "max_openings": max_openings,
        }
        rows.append(row)
        print(", ".join(f"{name} {value}" for name, value in row.items()))
        if given.modules:
            print("  " + "\n  ".join(counted["modules"]))
    sys.argv = called
    print(evidence.write("trace", rows))


if __name__ == "__main__":
    main()
