"""The documentation builds as a site that holds every page and loads nothing from elsewhere."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest

import rarevote
from rarevote import errors

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.prove

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = sorted(page.relative_to(REPOSITORY / "docs") for page in (REPOSITORY / "docs").rglob("*.md"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
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
    menu = (REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    assert f" {page.as_posix()}\n" in menu, "add the page to nav in mkdocs.yml"


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.findall(r'<(?:script|img|iframe)[^>]+src="(?:https?:)?//', text)
        assert not re.findall(r'<link[^>]+rel="(?:stylesheet|preconnect)"[^>]+href="(?:https?:)?//', text)


def test_every_link_and_anchor_resolves(site: Path) -> None:
    found = {page: page.read_text(encoding="utf-8") for page in site.rglob("*.html") if page.name != "404.html"}
    ids = {page: set(re.findall(r'\bid="([^"]+)"', text)) for page, text in found.items()}
    for page, text in found.items():
        for link in re.findall(r'<a\b[^>]*\bhref="([^"]+)"', text):
            target, _, anchor = unquote(html.unescape(link)).partition("#")
            if ":" in target:
                continue
            aim = (page.parent / target).resolve() if target else page
            assert aim.exists(), f"{page.relative_to(site)}: {link}"
            if anchor and aim in ids:
                assert anchor in ids[aim] or anchor == "__skip", f"{page.relative_to(site)}: {link}"


def test_every_public_name_has_a_place(site: Path) -> None:
    pages = [page.read_text(encoding="utf-8") for page in (site / "reference").glob("*.html")]
    ids = {name for text in pages for name in re.findall(r'id="([^"]+)"', text)}
    assert {f"rarevote.{name}" for name in rarevote.__all__ if name != "__version__"} <= ids
    assert {f"rarevote.errors.{name}" for name in vars(errors) if name.endswith(("Error", "Warning"))} <= ids
    assert "rarevote.Fitted.decide" in ids


@pytest.mark.parametrize("start", ["index.html", "howto/costs.html"])
def test_search_answers_from_the_disk(site: Path, browser: Browser, start: str) -> None:
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((site / start).as_uri())
    page.locator("[data-md-component=search-query]").click()
    page.keyboard.type("jury condition")
    page.locator(".md-search-result__item").first.wait_for(state="attached", timeout=20_000)
    assert "annotators.html" in page.locator(".md-search-result__list").inner_html()
    assert all(url.startswith(("file:", "data:", "blob:", "about:")) for url in asked), asked
    page.close()
