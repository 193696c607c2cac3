"""How much source there is: lines, functions, their median length and complexity, the largest file.

Of the commits that issue "One spine" compares with, and of what is checked out. The complexity of a function is one
more than its branches: ``if``, loops, handlers, conditions joined by ``and`` and ``or``, comprehensions.

    python -m benchmarks.size       prints and writes docs/evidence/size.csv
"""

from __future__ import annotations

import ast
import io
import subprocess
import tarfile
from collections.abc import Iterator
from statistics import mean, median
from typing import Any

from benchmarks import evidence

#: what is compared with: as the issue found it, and before its last figures were worked on
BASELINES = {"issue": "bea7e02", "before": "22a7142"}
_BRANCHES = (
    ast.If, ast.IfExp, ast.For, ast.While, ast.ExceptHandler, ast.BoolOp, ast.comprehension, ast.match_case,
)  # fmt: skip


def sources(commit: str | None) -> Iterator[str]:
    """The text of every module, of a commit or as checked out."""
    if commit is None:
        for path in sorted((evidence.REPOSITORY / "src").rglob("*.py")):
            yield path.read_text(encoding="utf-8")
        return
    packed = subprocess.run(
        ["git", "archive", commit, "src"], cwd=evidence.REPOSITORY, capture_output=True, check=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as files:
        for member in files:
            if member.name.endswith(".py") and (file := files.extractfile(member)) is not None:
                yield file.read().decode("utf-8")


def complexity(function: ast.AST) -> int:
    """One more than the branches of a function, those of functions inside it included."""
    return 1 + sum(isinstance(node, _BRANCHES) for node in ast.walk(function))


def measure(commit: str | None = None) -> dict[str, Any]:
    """The figures of a commit, or of what is checked out."""
    texts = list(sources(commit))
    functions = [
        node
        for text in texts
        for node in ast.walk(ast.parse(text))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    lengths = [(node.end_lineno or node.lineno) - node.lineno + 1 for node in functions]
    branches = [complexity(node) for node in functions]
    lines = [text.count("\n") for text in texts]
    return {
        "modules": len(texts),
        "lines": sum(lines),
        "largest_file": max(lines),
        "functions": len(functions),
        "median_length": median(lengths),
        "mean_length": round(mean(lengths), 2),
        "median_complexity": median(branches),
        "mean_complexity": round(mean(branches), 2),
    }


def main() -> None:
    rows = []
    for name, commit in [*BASELINES.items(), ("now", None)]:
        rows.append({"state": name, "of": commit or "", **measure(commit)})
        print(", ".join(f"{key} {value}" for key, value in rows[-1].items()))
    print(evidence.write("size", rows))


if __name__ == "__main__":
    main()
