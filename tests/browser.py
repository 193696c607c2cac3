"""A real browser for tests and pictures: ``$CHROMIUM``, else one on the PATH.

Without any, the tests that need it are skipped and counted, unless ``RAREVOTE_REQUIRE_BROWSER=1`` says that this is a
failure.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WITHOUT = "no browser: set CHROMIUM, or put Chromium on the PATH, and install playwright"


def find_browser() -> str | None:
    """The browser's program, if there is one."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)


@contextmanager
def started_browser() -> Iterator[Browser | None]:
    """The browser; None if there is none, or nothing to drive it with."""
    program = find_browser()
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        program = None
    if program is None:
        yield None
        return
    with sync_playwright() as playwright:
        # Playwright gives every launch a new, empty profile and removes it afterwards.
        opened = playwright.chromium.launch(executable_path=program, args=list(_OPTIONS))
        yield opened
        opened.close()
