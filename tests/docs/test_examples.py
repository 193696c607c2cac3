"""Every how-to has a script, and every script runs and says something."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from tests.conftest import shortened_chains

REPOSITORY = Path(__file__).resolve().parents[2]
SCRIPTS = sorted(path for path in (REPOSITORY / "examples").glob("*.py") if path.name != "make_rails.py")
HOWTOS = sorted((REPOSITORY / "docs" / "howto").glob("*.md"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_the_script_runs(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with shortened_chains():
        runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out
    assert not list(tmp_path.iterdir()), "a script cleans up"


@pytest.mark.parametrize("howto", HOWTOS, ids=lambda path: path.stem)
def test_every_how_to_has_one(howto: Path) -> None:
    named = f"How-to: docs/howto/{howto.name}"
    assert [script.name for script in SCRIPTS if named in script.read_text(encoding="utf-8")], f"none says {named!r}"
