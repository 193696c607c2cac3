"""The string table: every sentence of the package that a person can meet, and what DESIGN calls translated in them.

    python -m proofs.messages                          # all: place, kind, text
    python -m proofs.messages --sample 20 --seed 2026  # twenty sentences drawn at random (docstrings left out)
    python -m proofs.messages --count                  # how often each pattern of PATTERNS occurs
    python -m proofs.messages --found                  # where

Kinds: ``message`` (a text of two words or more in the code: errors, warnings, help, hints, labels), ``docstring`` (of a
name that neither begins with an underscore nor belongs to one that does), ``template`` and ``script`` (the pages).
"""

from __future__ import annotations

import argparse
import ast
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parents[1]
SOURCE = REPOSITORY / "src" / "rarevote"

#: What is not written, and what is written instead.
PATTERNS = {
    r"\b(told|tells?|telling)\b(?!:)": "show, say, report",
    r"(?<!there )\b(is|are|was|were) no (?!(longer|more|less|fewer)\b)\w+": "is not a",
    r"\b(nobody|somebody|anybody)\b": "no annotator, a user, without votes",
    r"\b(whoever|whichever|whosoever)\b": "who, any, each",
    r"\bmay be used\b": "can be used, is reliable enough",
    r"\bcan be had\b": "is available",
    r"(?<!\.)\b(doors?|floors?|houses?|roads?)\b(?![(:])": "formats, layers, minimum, steps",
    r"\b(come|comes|came|coming) back\b": "is returned",
    r"\b(is|are) there already\b": "already exists",
    r"\b(go|goes|going|went|gone) on\b": "continue, resume",
    r"\b(get|gets|getting|got) on\b": "progress, convergence",
    r"\bonly an? \w+ (can know|knows)\b": "unknown without",
    r"\bthe machine refuses\b": "system error",
    r"\bas real ones mostly are\b": "as most real datasets are",
    r"(\b(one|two|three|several|few|\d)|\{\}) (vote|label|answer|row)s? an? (item|task|label|worker)\b": "per item",
    r"\berr(s|ed)? alike\b": "make the same mistakes",
}
#: Where such a word is the plain one: to tell two things apart, and a class that people call "can't tell".
ALLOWED = re.compile(r"can(no|')?t tell|\b(tells?|told) (\w+ ){0,3}(apart|from)\b", re.IGNORECASE)

_SENTENCE = 5  # words; less is a label
_SQL = re.compile(r"^\s*(select|from|where|create|copy|insert|with \w+ as|order by|group by|union|join)\b", re.I)
_TWO_WORDS = re.compile(r"[A-Za-z]{2,}[^A-Za-z]*\s[^A-Za-z]*[A-Za-z]{2,}")
_JINJA = re.compile(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}", re.DOTALL)
_READ_ALOUD = re.compile(r"""\b(?:aria-label|title|alt|placeholder)=("[^"]*"|'[^']*')""")
_JS_TEXT = re.compile(r"""`(?:\\.|[^`\\])*`|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""")


class Text(NamedTuple):
    """A text and its place."""

    path: str
    line: int
    kind: str
    text: str


def texts(folder: Path = SOURCE) -> list[Text]:
    """Every user-facing text below a folder, in the order of files and lines."""
    found = []
    for path in sorted(folder.rglob("*")):
        one_file = {".py": _of_python, ".j2": _of_template, ".js": _of_script}.get(path.suffix)
        if one_file is not None:
            place = path.relative_to(REPOSITORY if path.is_relative_to(REPOSITORY) else folder).as_posix()
            source = path.read_text(encoding="utf-8")
            found += [Text(place, line, kind, " ".join(text.split())) for line, kind, text in sorted(one_file(source))]
    return found


def faults(text: str) -> list[str]:
    """What is said instead of each pattern that a text has."""
    plain = ALLOWED.sub("", text)
    return [instead for pattern, instead in PATTERNS.items() if re.search(pattern, plain, re.IGNORECASE)]


def _of_python(source: str) -> Iterator[tuple[int, str, str]]:
    tree = ast.parse(source)
    docstrings = {id(node) for node in _docstring_nodes(tree)}
    yield from _public_docstrings(tree)
    yield from _messages(tree, docstrings)


def _docstring_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """All texts that stand alone, as docstrings do."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


def _public_docstrings(node: ast.Module | ast.ClassDef | ast.FunctionDef) -> Iterator[tuple[int, str, str]]:
    text = ast.get_docstring(node)
    if text:
        yield node.body[0].lineno, "docstring", text
    for child in node.body:
        if isinstance(child, ast.ClassDef | ast.FunctionDef) and not child.name.startswith("_"):
            yield from _public_docstrings(child)


def _messages(node: ast.AST, docstrings: set[int]) -> Iterator[tuple[int, str, str]]:
    if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("re."):
        return
    if isinstance(node, ast.JoinedStr):
        text = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        if _is_said(text):
            yield node.lineno, "message", text
        inner = [part for part in node.values if isinstance(part, ast.FormattedValue)]
        for part in inner:
            yield from _messages(part.value, docstrings)
        return
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
        if _is_said(node.value):
            yield node.lineno, "message", node.value
        return
    for child in ast.iter_child_nodes(node):
        yield from _messages(child, docstrings)


def _is_said(text: str) -> bool:
    return bool(_TWO_WORDS.search(text)) and not _SQL.match(text)


def _of_template(source: str) -> Iterator[tuple[int, str, str]]:
    for found in _JINJA.finditer(source):
        for text in re.findall(r"'([^']*)'", found[0]):
            if _TWO_WORDS.search(text):
                yield source.count("\n", 0, found.start()) + 1, "template", text
    source = _JINJA.sub(lambda found: "\n" * found[0].count("\n") or "{}", source)
    source = re.sub(r"<(script|style)\b.*?</\1>", lambda found: "\n" * found[0].count("\n"), source, flags=re.DOTALL)
    for found in _READ_ALOUD.finditer(source):
        if re.search("[A-Za-z]{2,}", found[1]):
            yield source.count("\n", 0, found.start()) + 1, "template", found[1][1:-1]
    # A sentence may hold marks of one word, such as code; it ends with the element around it.
    whole = re.sub(r"</?(b|code|kbd|span|a|em|strong|i|small)\b[^>]*>", "", source)
    line = 1
    for part in re.split(r"(<[^>]*>)", whole):
        if not part.startswith("<") and re.search("[A-Za-z]{2,}", part):
            blank = part[: len(part) - len(part.lstrip())]
            yield line + blank.count("\n"), "template", part
        line += part.count("\n")


def _of_script(source: str) -> Iterator[tuple[int, str, str]]:
    source = re.sub(r"^\s*//.*$", "", source, flags=re.MULTILINE)
    for found in _JS_TEXT.finditer(source):
        text = re.sub(r"\$\{[^}]*\}", "{}", found[0][1:-1])
        if _TWO_WORDS.search(text) and not re.search(r"[#\[\]=>]", text):
            yield source.count("\n", 0, found.start()) + 1, "script", text


def main() -> None:
    """Show the table, a sample of it, or the patterns in it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=SOURCE)
    parser.add_argument("--sample", type=int, metavar="N", help="N sentences drawn at random")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", action="store_true", help="how often each pattern occurs")
    parser.add_argument("--found", action="store_true", help="texts that have a pattern")
    given = parser.parse_args()
    table = texts(given.folder.resolve())
    if given.count:
        for pattern, instead in PATTERNS.items():
            n = sum(len(re.findall(pattern, ALLOWED.sub("", one.text), re.IGNORECASE)) for one in table)
            print(f"{n:5d}  {pattern}  ->  {instead}")
        print(f"{len(table):5d}  texts")
        return
    if given.found:
        table = [one for one in table if faults(one.text)]
    if given.sample is not None:
        said = [one for one in table if one.kind != "docstring" and len(one.text.split()) >= _SENTENCE]
        table = random.Random(given.seed).sample(said, given.sample)
    for one in table:
        print(f"{one.path}:{one.line}\t{one.kind}\t{one.text}")


if __name__ == "__main__":
    main()
