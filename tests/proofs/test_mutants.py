"""Mutants: what is changed, which tests are tried, and that a test which notices is told from one that does not."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest
from benchmarks import evidence
from proofs.mutants import Copies, Mutant, chosen_tests, mutants_of, other_tests, rows_of, sample

from proofs import mutants

SOURCE = '''"""Text."""

@cache
def few(x: int, most: int = 3) -> bool:
    """Whether x < most."""
    if not x and most:
        raise ValueError(f"{x + 1}")
    return x < most


LIMIT = 1.5
'''


def test_what_is_changed() -> None:
    found = {(one.line, one.function, one.change(SOURCE).partition(" → ")[2]) for one in mutants_of(SOURCE)}
    assert found == {
        (4, "few", "def few(x: int, most: int = 4) -> bool:"),
        (6, "few", "if not (not x and most):"),
        (6, "few", "if not x or most:"),
        (6, "few", "if x and most:"),
        (7, "few", "pass"),
        (8, "few", "return x <= most"),
        (11, "", "LIMIT = 2.5"),
    }


@pytest.mark.prove
def test_every_mutant_of_the_package_is_python_and_the_sample_stays() -> None:
    first = sample(300)
    assert first == sample(300)
    assert set(sample(100)) <= set(first)
    assert {layer for layer in mutants.LAYERS for one in first if one.file.startswith(f"{layer}/")} == set(
        mutants.LAYERS
    )
    for one in first:
        source = (mutants.PACKAGE / one.file).read_text(encoding="utf-8")
        changed = one.applied(source)
        assert changed != source
        ast.parse(changed)


def test_fast_tests_of_the_function_come_first() -> None:
    calls = {
        "tests": {"crowd/a.py:Some.few": ["slow", "fast"], "crowd/a.py:other": ["other"]},
        "seconds": {"slow": 50.0, "fast": 0.1, "other": 1.0},
    }
    assert chosen_tests(Mutant("crowd/a.py", 5, "Some.few", 0, 1, ""), calls) == ["fast"]  # both would take too long
    assert chosen_tests(Mutant("crowd/a.py", 1, "", 0, 1, ""), calls) == ["fast", "other"]
    assert chosen_tests(Mutant("crowd/b.py", 5, "few", 0, 1, ""), calls) == []
    layers = {
        "tests": {"io/read/c.py:few": ["tests/a.py", "tests/io/b.py"]},
        "seconds": {"tests/a.py": 1, "tests/io/b.py": 2},
    }
    assert chosen_tests(Mutant("io/read/c.py", 5, "few", 0, 1, ""), layers) == ["tests/io/b.py", "tests/a.py"]


def test_a_survivor_is_tried_with_all_tests_of_its_layer() -> None:
    many = [f"tests/io/{number:03}.py" for number in range(200)]
    calls = {"tests": {"io/c.py:few": [*many, "tests/a.py"]}, "seconds": dict.fromkeys([*many, "tests/a.py"], 0.1)}
    mutant = Mutant("io/c.py", 5, "few", 0, 1, "")
    assert chosen_tests(mutant, calls) == many[:150]
    assert other_tests(mutant, calls) == many[150:]  # not those of other layers


def test_a_test_kills_what_it_notices_and_only_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("def few(x):\n    return x < 3\n")
    monkeypatch.setattr(mutants, "PACKAGE", package)
    test = tmp_path / "test_few.py"
    name = os.path.relpath(test, evidence.REPOSITORY)  # as pytest calls it
    (mutant,) = [one for one in mutants_of((package / "__init__.py").read_text(), "__init__.py") if one.after == "<="]
    copies = Copies(tmp_path, 1)
    for argument, outcome in ((3, "killed"), (2, "survived")):
        test.write_text(f"from rarevote import few\ndef test(): assert few({argument}) == ({argument} < 3)\n")
        found, said = copies.run(mutant, [f"{name}::test"], 1.0)
        assert found == outcome, said
    # One that fails anyway is no witness.
    test.write_text("from rarevote import few\ndef test_a(): assert few(9)\ndef test_b(): assert not few(3)\n")
    assert copies.run(mutant, [f"{name}::test_a"], 1.0) == ("not tested", "")
    assert copies.run(mutant, [f"{name}::test_a", f"{name}::test_b"], 1.0) == ("killed", f"{name}::test_b")
    assert (tmp_path / "copy-0" / "rarevote" / "__init__.py").read_text() == (package / "__init__.py").read_text()


def test_a_survivor_with_a_reason_is_equivalent() -> None:
    results = [
        {"place": "crowd/a.py:5", "change": "a < b → a <= b", "outcome": "survived"},
        {"place": "audit/b.py:6", "change": "1 → 2", "outcome": "killed"},
        {"place": "io/read/c.py:7", "change": "1 → 2", "outcome": "not tested"},
    ]
    rows = rows_of(results, {"crowd/a.py a < b → a <= b": "they are never equal", "audit/b.py 1 → 2": "wrong"})
    assert [(row["layer"], row["outcome"], row["reason"]) for row in rows] == [
        ("crowd", "equivalent", "they are never equal"),
        ("io/read", "not tested", ""),
        ("audit", "killed", ""),
    ]


def test_rows_that_were_settled_with_the_same_code_are_kept_with_their_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence, "EVIDENCE", tmp_path)
    reasons = {"crowd/a.py 3 → 4": "nothing reads it"}
    assert mutants.settled_before("mutants", reasons) == {}
    row = {"place": "crowd/a.py:5", "change": "1 → 2", "code": "c0de", "date": "2026-01-02", "commit": "abc"}
    survivor = {**row, "change": "2 → 3", "outcome": "survived"}
    equivalent = {**row, "change": "3 → 4", "outcome": "equivalent", "reason": "nothing reads it"}
    no_reason_now = {**row, "change": "4 → 5", "outcome": "equivalent", "reason": "it was thought so"}
    evidence.write("mutants", [{**row, "outcome": "killed"}, survivor, equivalent, no_reason_now], command="some")
    before = mutants.settled_before("mutants", reasons)
    assert list(before) == [("crowd/a.py", "c0de", "1 → 2"), ("crowd/a.py", "c0de", "3 → 4")]
    kept = rows_of([*before.values()], reasons)
    assert [(one["outcome"], one["reason"], one["date"], one["commit"]) for one in kept] == [
        ("equivalent", "nothing reads it", "2026-01-02", "abc"),
        ("killed", "", "2026-01-02", "abc"),
    ]


def test_every_reason_is_of_a_line_that_exists() -> None:
    for entry in mutants.known_reasons():
        file, _, change = entry.partition(" ")
        before = change.partition(" → ")[0].split("\n")[0]
        assert before in (mutants.PACKAGE / file).read_text(encoding="utf-8"), entry
