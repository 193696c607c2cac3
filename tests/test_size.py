"""The script that counts the source counts a small one right; no script is too long."""

from __future__ import annotations

import pytest
from benchmarks.evidence import REPOSITORY
from benchmarks.size import ALL, WITHOUT_STUDY, by_folder, counted, sources

SOURCE = '''"""What the module is."""

LIMIT = 3  # why three


def small(values):
    """What it returns.

    More.
    """
    "not a docstring"
    if values and LIMIT:
        return [value for value in values]

    return None
'''


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("# nothing\n", 0),
        ('"""Only words."""\n', 0),
        ("a = 1\n", 3),
        ("a = (\n    1,  # one\n)\n", 6),
        ('class A:\n    """Words."""\n\n    b: str = "text"\n', 8),
        # LIMIT = 3; def small(values):; a string; if values and LIMIT:; return [...]; return None
        (SOURCE, 3 + 6 + 1 + 5 + 8 + 2),
    ],
)
def test_comments_docstrings_and_layout_are_not_code(text: str, count: int) -> None:
    assert counted(text).tokens == count


def test_figures_of_folders() -> None:
    found = by_folder({"a/b.py": SOURCE, "a/c/d.py": SOURCE, "study/e.py": SOURCE, "f.py": "a = 1\n"})
    assert list(found) == ["a", "study", "f.py", WITHOUT_STUDY, ALL]
    assert [one["tokens"] for one in found.values()] == [50, 25, 3, 53, 78]
    # A condition joined by and, the if, the comprehension; from def to the last return.
    assert found["study"] == {
        "tokens": 25, "modules": 1, "lines": 15, "largest_file": 15, "functions": 1, "median_length": 10,
        "mean_length": 10, "median_complexity": 4, "mean_complexity": 4,
    }  # fmt: skip
    assert (found["f.py"]["functions"], found["f.py"]["mean_length"]) == (0, 0)


def test_the_package_is_read_whole() -> None:
    package = REPOSITORY / "src" / "rarevote"
    found = sources()
    assert len(found) == len(list(package.rglob("*.py")))
    assert found["cli/__init__.py"] == (package / "cli" / "__init__.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("folder", ["benchmarks", "proofs"])
def test_no_script_is_too_long(folder: str) -> None:
    lines = {path.name: path.read_text(encoding="utf-8").count("\n") for path in (REPOSITORY / folder).rglob("*.py")}
    assert max(lines.values()) <= 550, lines
