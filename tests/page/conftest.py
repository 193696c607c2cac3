"""The page that the tests look at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from rarevote import CCRasch
from tests.page.crowds import HOSTILE_CLASS, decided, hostile_crowd

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Page


@pytest.fixture(scope="session")
def hostile_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page whose data try to be markup, with truth, gold, and texts to show."""
    crowd, truth, texts = hostile_crowd()
    gold = {task: truth[task] for task in crowd.tasks[-3:].tolist()}
    path = tmp_path_factory.mktemp("page") / "report.html"
    shown = {"text & <i>more</i>": np.array(texts, dtype=object)}
    result = decided(CCRasch().fit(crowd, gold), HOSTILE_CLASS)
    fitted = replace(result.fitted, crowd=replace(result.fitted.crowd, shown=shown))
    replace(result, fitted=fitted).report(path, source="<b>labels</b>.csv", truth=truth)
    return path


class Watched:
    """A page in the browser with everything that it said and asked for."""

    def __init__(self, page: Page, path: Path) -> None:
        self.page, self.path = page, path
        self.said: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        page.on("dialog", self._refuse)
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(path.as_uri())

    def _refuse(self, dialog: Dialog) -> None:
        self.said.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def assert_quiet(self) -> None:
        """Nothing was logged, no box popped up, and only the page itself was loaded."""
        assert self.said == []
        # The empty icon of the page is a data address, which is no request on any network.
        assert [url for url in self.requests if not url.startswith("data:")] == [self.path.as_uri()]


@pytest.fixture
def opened(browser: Browser, hostile_page: Path) -> Iterator[Watched]:
    """The hostile page on a desk."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    yield Watched(context.new_page(), hostile_page)
    context.close()
