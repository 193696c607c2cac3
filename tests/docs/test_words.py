"""One word for one thing: what the glossary replaced stays replaced, in code, help, messages and docs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

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
