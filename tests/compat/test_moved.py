"""Import paths that the documentation of version 0.2 shows: all still work, and those that moved warn."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from rarevote.compat.moved import MOVED
from rarevote.decide.expectations import Expected

# Every dotted name below the package in an import or in the API reference of the documentation of 0.2.0.
SHOWN = Path(__file__).with_name("documented_in_0_2.txt").read_text(encoding="utf-8").split()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", SHOWN)
def test_documented_names_of_0_2_can_be_imported(name: str) -> None:
    module, _, last = name.rpartition(".")
    assert getattr(import_module(module), last) is not None


def test_only_documented_modules_are_forwarded() -> None:
    parents = {name[:end] for name in SHOWN for end, sign in enumerate(name) if sign == "."}
    assert set(MOVED) <= parents


def test_a_moved_module_warns_where_it_is_imported() -> None:
    code = "".join(f"import {old}\n" for old in sorted(MOVED))
    shown = subprocess.run(
        [sys.executable, "-W", "always", "-c", code], capture_output=True, text=True, check=True
    ).stderr.splitlines()
    said = [
        f"<string>:{line}: DeprecationWarning: {old} is deprecated and will be removed in version 0.4: "
        f"its names are in {MOVED[old]}"
        for line, old in enumerate(sorted(MOVED), 1)
    ]
    assert shown == said


def test_unknown_paths_stay_unknown() -> None:
    with pytest.raises(ModuleNotFoundError):
        import_module("rarevote.meaning.nonsense")


def test_words_are_descriptions_now() -> None:
    with pytest.warns(DeprecationWarning, match=r"Expected.words is deprecated .* use description"):
        assert Expected(0.9, 0.8, 0.95).words == "90% (80% to 95%)"
