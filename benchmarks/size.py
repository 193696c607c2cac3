"""How much source there is: tokens of code by folder, functions, their length and complexity, the largest file.

Tokens are those of Python's tokenizer without comments, docstrings, line ends and indentation (an f-string is one token
in Python 3.11 and several from 3.12 on: compare within one run). The complexity of a function is one more than its
branches: ``if``, loops, handlers, conditions joined by ``and`` and ``or``, comprehensions.

    python -m benchmarks.size       prints and writes docs/evidence/size.csv

The commit that it compares with is the one before issue "A smaller codebase".
"""

from __future__ import annotations

import ast
import io
import subprocess
import tarfile
import tokenize
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import PurePosixPath
from statistics import mean, median
from typing import Any

from benchmarks import evidence, pages

BASELINE = "fd73717"
#: the commit with which "A smaller codebase" ended, before new capabilities came in
SMALLER = "fef37e1"
ALL, WITHOUT_STUDY = "all", "all but study"
_PACKAGE = "src/rarevote"
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_BRANCHES = (
    ast.If, ast.IfExp, ast.For, ast.While, ast.ExceptHandler, ast.BoolOp, ast.comprehension, ast.match_case,
)  # fmt: skip
_LAYOUT = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER,
}  # fmt: skip


def sources(commit: str = "HEAD") -> dict[str, str]:
    """The text of every module of a commit, by its path in the package; of ``HEAD``, as checked out."""
    if commit == "HEAD":
        package = evidence.REPOSITORY / _PACKAGE
        found = sorted(package.rglob("*.py"))
        return {path.relative_to(package).as_posix(): path.read_text(encoding="utf-8") for path in found}
    packed = subprocess.run(
        ["git", "archive", commit, _PACKAGE], cwd=evidence.REPOSITORY, capture_output=True, check=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as files:
        return {
            member.name.removeprefix(f"{_PACKAGE}/"): file.read().decode("utf-8")
            for member in files
            if member.name.endswith(".py") and (file := files.extractfile(member)) is not None
        }


@dataclass(frozen=True)
class Module:
    """What is counted of a module; lengths and complexities have a number for every function."""

    tokens: int
    lines: int
    lengths: list[int]
    complexities: list[int]


def complexity(function: ast.AST) -> int:
    """One more than the branches of a function, those of functions inside it included."""
    return 1 + sum(isinstance(node, _BRANCHES) for node in ast.walk(function))


def counted(text: str) -> Module:
    """The figures of a module."""
    nodes = list(ast.walk(ast.parse(text)))
    docstrings = {
        (node.body[0].lineno, node.body[0].col_offset)
        for node in nodes
        if isinstance(node, (ast.Module, ast.ClassDef, *_FUNCTIONS)) and ast.get_docstring(node) is not None
    }
    functions = [node for node in nodes if isinstance(node, _FUNCTIONS)]
    return Module(
        tokens=sum(
            token.type not in _LAYOUT and token.start not in docstrings
            for token in tokenize.generate_tokens(io.StringIO(text).readline)
        ),
        lines=text.count("\n"),
        lengths=[(node.end_lineno or node.lineno) - node.lineno + 1 for node in functions],
        complexities=[complexity(node) for node in functions],
    )


def summed(modules: Collection[Module]) -> dict[str, Any]:
    """The figures of some modules together."""
    lengths = [length for module in modules for length in module.lengths] or [0]
    complexities = [value for module in modules for value in module.complexities] or [0]
    return {
        "tokens": sum(module.tokens for module in modules),
        "modules": len(modules),
        "lines": sum(module.lines for module in modules),
        "largest_file": max(module.lines for module in modules),
        "functions": sum(len(module.lengths) for module in modules),
        "median_length": median(lengths),
        "mean_length": round(mean(lengths), 2),
        "median_complexity": median(complexities),
        "mean_complexity": round(mean(complexities), 2),
    }


def by_folder(texts: dict[str, str]) -> dict[str, dict[str, Any]]:
    """The figures of every folder of the package, most tokens first, and of all together.

    Args:
        texts: source by path; a module that is in no folder counts as one.
    """
    folders: dict[str, list[Module]] = {}
    for path, text in texts.items():
        folders.setdefault(PurePosixPath(path).parts[0], []).append(counted(text))
    figures = {folder: summed(modules) for folder, modules in folders.items()}
    return {
        **dict(sorted(figures.items(), key=lambda item: (-item[1]["tokens"], item[0]))),
        WITHOUT_STUDY: summed([module for folder, own in folders.items() if folder != "study" for module in own]),
        ALL: summed([module for own in folders.values() for module in own]),
    }


def main() -> None:
    rows = [
        {"state": state, "folder": folder, **figures}
        for state, commit in ((BASELINE, BASELINE), (SMALLER, SMALLER), ("now", "HEAD"))
        for folder, figures in by_folder(sources(commit)).items()
    ]
    print(pages.table(list(rows[0]), [[str(cell) for cell in row.values()] for row in rows]))
    print(evidence.write("size", rows).relative_to(evidence.REPOSITORY))


if __name__ == "__main__":
    main()
