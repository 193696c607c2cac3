"""Plain English, as DESIGN has it ("Words"): in every text of the package that a person can meet, the README and docs.

What the glossary replaced stays replaced; patterns that sound translated do not occur; every page is easy to read. The
texts of the package are the string table of ``proofs/messages.py``, where the patterns are too.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import rarevote
from proofs import messages, reading_ease

REPOSITORY = Path(__file__).resolve().parents[2]
# What is not said any more, and what is said instead.
OLD_WORDS = {
    r"\bknown (answer|label)s?\b": "gold (the fit learns from it) or truth (it is scored with it)",
    r"\banew\b": "again, recreated",
    r"\blengthened\b": "extrapolated (SQUAREM)",
    r"\bstrangers?\b": "unseen workers",
    r"\bgone on with\b": "resumed",
    r"\b_(MOST|FEWEST)_": "_MAX_, _MIN_",
    r"\d %(?![0-9a-z(])": "95%, without a space",
}
FILES = [
    *sorted((REPOSITORY / "src").rglob("*.py")),
    *sorted((REPOSITORY / "src").rglob("*.j2")),
    *sorted((REPOSITORY / "docs").rglob("*.md")),
    *(REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
]
PAGES = [path.relative_to(REPOSITORY).as_posix() for path in reading_ease.pages()]
# 60 is where Flesch's plain English begins. The pages that people read first reach more.
EASE = 60.0
EASIER = {"README.md": 62.0, "docs/tutorial.md": 70.0, "docs/howto/audit.md": 70.0, "docs/howto/workbench.md": 70.0}
WORDS_PER_SENTENCE = 24.0
FEW_WORDS = 100  # of prose: says nothing about a page


@pytest.mark.parametrize("old", OLD_WORDS)
def test_old_words_are_gone(old: str) -> None:
    pattern = re.compile(old, re.IGNORECASE)
    found = [
        f"{path.relative_to(REPOSITORY)}:{number}: {line.strip()[:80]}"
        for path in FILES
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        # In templates and code the sign is an operator, too.
        if pattern.search(line) and not (r"\d %" in old and ("{%" in line or re.search(r"\w % \w", line)))
    ]
    assert not found, f"say {OLD_WORDS[old]}:\n" + "\n".join(found)


def test_texts_of_the_package_are_plain() -> None:
    found = [
        f"{one.path}:{one.line}: say {', '.join(faults)}: {one.text[:200]}"
        for one in messages.texts()
        if (faults := messages.faults(one.text))
    ]
    assert not found, "\n".join(found)


def test_texts_name_no_class_of_the_code_that_is_not_public() -> None:
    # Renaming a class once renamed a word of a caption.
    classes = {
        node.name
        for path in (REPOSITORY / "src").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and not hasattr(rarevote, node.name)
    }
    hump = re.compile(r"\b[A-Z][a-z]+[A-Z]\w*\b(?![(\[])")  # Name(...) and Name[...] are code on purpose
    found = [
        f"{one.path}:{one.line}: {one.text[:200]}"
        for one in messages.texts()
        if one.kind != "docstring" and classes.intersection(hump.findall(one.text))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("page", PAGES)
def test_pages_are_plain_and_easy_to_read(page: str) -> None:
    sentences = reading_ease.prose((REPOSITORY / page).read_text(encoding="utf-8"))
    found = [f"say {', '.join(faults)}: {one}" for one in sentences if (faults := messages.faults(one))]
    assert not found, "\n".join(found)
    n_words = sum(len(one.split()) for one in sentences)
    if n_words >= FEW_WORDS:
        assert reading_ease.reading_ease(sentences) >= EASIER.get(page, EASE)
        assert n_words / len(sentences) <= WORDS_PER_SENTENCE


@pytest.mark.parametrize(
    ("source", "kind", "text"),
    [
        ('raise ValueError(f"{name} is no class")', "message", "{} is no class"),
        ('def shown():\n    """Tell it."""', "docstring", "Tell it."),
        ('def f(x):\n    return "one or" " two" if x else f"{x!r} three {\'or four\'}"', "message", "or four"),
    ],
)
def test_texts_in_code_are_found(tmp_path: Path, source: str, kind: str, text: str) -> None:
    (tmp_path / "module.py").write_text(source, encoding="utf-8")
    assert (kind, text) in [(one.kind, one.text) for one in messages.texts(tmp_path)]


def test_texts_that_no_person_meets_are_not_found(tmp_path: Path) -> None:
    source = 'import re\ndef _f():\n    """Tell nobody."""\n    re.compile("is no class")\n    return "SELECT a FROM b"'
    (tmp_path / "module.py").write_text(source, encoding="utf-8")
    assert messages.texts(tmp_path) == []


def test_texts_of_pages_are_found(tmp_path: Path) -> None:
    page = "<p title=\"Go on\">{{ 'Not yet' if x }} <b>All</b> done</p>{% if y %}<script>no text</script>{% endif %}"
    (tmp_path / "page.html.j2").write_text(page, encoding="utf-8")
    (tmp_path / "page.js").write_text("// tell nobody\nshow(`${n} of ${m} left`);\n", encoding="utf-8")
    assert {one.text for one in messages.texts(tmp_path)} == {"Go on", "Not yet", "{} All done", "{} of {} left"}


@pytest.mark.parametrize(
    ("text", "n_faults"),
    [
        ("votes come back, and nobody is told", 3),
        ("'x' is no class", 1),
        ("there is no such file, and it is no longer open", 0),
        ("which tells one annotator from another", 0),
        ("the floor of the recall", 1),
        ("floor(A / 2)", 0),
    ],
)
def test_patterns(text: str, n_faults: int) -> None:
    assert len(messages.faults(text)) == n_faults


def test_reading_ease_by_hand() -> None:
    # 9 words with 13 syllables in 2 sentences.
    sentences = reading_ease.prose(
        "# Not this\n\nEvery *vote* counts. A [label](x.md) is\nnot a table\n\n| nor | this |\n"
    )
    assert sentences == ["Every vote counts.", "A label is not a table"]
    assert reading_ease.reading_ease(sentences) == pytest.approx(206.835 - 1.015 * 9 / 2 - 84.6 * 13 / 9)
