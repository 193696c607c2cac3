"""The documentation builds as a site that holds every page and loads nothing from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.prove

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = sorted(page.relative_to(REPOSITORY / "docs") for page in (REPOSITORY / "docs").rglob("*.md"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=REPOSITORY,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_page_is_in_the_site_and_its_menu(site: Path, page: Path) -> None:
    assert (site / page.with_suffix(".html")).exists()
    menu = (REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8").partition("nav:")[2]
    assert f"- {page.as_posix()}\n" in menu, "add the page to nav in mkdocs.yml"


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.findall(r'<(?:script|img|iframe)[^>]+src="(?:https?:)?//', text)
        assert not re.findall(r'<link[^>]+rel="stylesheet"[^>]+href="(?:https?:)?//', text)
