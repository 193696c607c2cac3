"""Every code block of the README and the docs runs: Python blocks in one namespace a page, bash blocks as commands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[tuple[str, str]]:
    return BLOCK.findall(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_code_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for language, code in blocks(page):
        assert language in ("python", "bash", "console", "text", "json"), f"unknown kind of block {language!r}"
        if language == "python":
            exec(compile(code, str(page), "exec"), namespace)
        elif language == "bash":
            done = subprocess.run(["bash", "-euc", code], env=environment, capture_output=True, text=True)
            assert done.returncode == 0, f"{code}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("page", [*PAGES, REPOSITORY / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_the_readme_shows_what_the_demo_prints() -> None:
    shown = subprocess.run([sys.executable, "-m", "rarevote", "demo"], capture_output=True, text=True, check=True)
    text = next(code for language, code in blocks(REPOSITORY / "README.md") if language == "text")
    assert text.strip() in shown.stdout


def test_contributing_is_short() -> None:
    assert len((REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines()) <= 100
