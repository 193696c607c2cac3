"""Which source files a proof exercises, and a hash of them that says whether they changed since.

A proof declares patterns for each row of its evidence: files and folders, relative to the repository. A comment, a
docstring or an empty line is not code: to change one leaves the hash as it is.
"""

from __future__ import annotations

import ast
import hashlib
import io
import tokenize
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from benchmarks.evidence import REPOSITORY

#: Length of a hash in evidence.
DIGITS = 12
_NOT_CODE = ("__pycache__", ".pyc", ".nbi", ".nbc")

# Layers, as the rows of evidence declare them; a test compares with the functions that rows call.
CROWD = tuple(f"src/rarevote/{name}" for name in ("errors.py", "crowd", "compat/moved.py"))
READING = (
    *CROWD,
    *(f"src/rarevote/io/{name}" for name in ("*.py", "read", "write", "platforms")),
    *(f"src/rarevote/kernels/{name}.py" for name in ("encode", "plain")),
)
SPINE = tuple(f"src/rarevote/{name}.py" for name in ("api", "progress", "result"))
FITTING = (
    *READING,
    *SPINE,
    *(f"src/rarevote/{name}" for name in ("kernels", "em", "features", "decide", "methods/*.py", "diagnose/*order.py")),
)
AUDIT = (*CROWD, *(f"src/rarevote/{name}" for name in ("audit", "decide/floor.py", "io/write", "io/json_text.py")))


def files_of(patterns: Iterable[str], root: Path = REPOSITORY) -> list[Path]:
    """The files that patterns stand for; a folder stands for everything in it.

    Raises:
        FileNotFoundError: a pattern stands for nothing: a file was moved, and what it proved is not exercised any more.
    """
    found: set[Path] = set()
    for pattern in patterns:
        there = sorted(root.glob(pattern))
        inside = [file for path in there for file in (path.rglob("*") if path.is_dir() else [path]) if file.is_file()]
        own = [file for file in inside if not any(mark in str(file.relative_to(root)) for mark in _NOT_CODE)]
        if not own:
            raise FileNotFoundError(f"no source file is named {pattern}: change the patterns of the proof")
        found.update(own)
    return sorted(found)


def digest(patterns: Iterable[str], root: Path = REPOSITORY) -> str:
    """A hash of the code in the files that patterns stand for, and of their names."""
    total = hashlib.sha256()
    for path in files_of(patterns, root):
        stat = path.stat()
        total.update(f"{path.relative_to(root).as_posix()} {_of_file(path, stat.st_mtime_ns, stat.st_size)}\n".encode())
    return total.hexdigest()[:DIGITS]


@cache
def _of_file(path: Path, changed: int, size: int) -> str:
    del changed, size  # part of the key: a file that is written anew is read anew
    content = path.read_bytes()
    return hashlib.sha256(code_of(content.decode()).encode() if path.suffix == ".py" else content).hexdigest()


def code_of(source: str) -> str:
    """Python source without comments, docstrings and empty lines."""
    gone: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if ast.get_docstring(node, clean=False) is not None:
                gone.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    lines = source.split("\n")
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    kept = (line.rstrip() for number, line in enumerate(lines, 1) if number not in gone)
    return "\n".join(line for line in kept if line)
