"""The page in a real browser: it runs without a word, obeys, and nothing that it shows can act."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from rarevote import MajorityVote
from tests.page.conftest import Watched
from tests.page.crowds import FORMULA, HOSTILE_CLASS, HOSTILE_TASKS, HOSTILE_WORKER, SCRIPT, decided

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page


def part(page: Page, name: str, which: str) -> Locator:
    return page.locator(f"#{name} [data-part={which}]")


def column(page: Page, name: str, title: str) -> list[str]:
    """What the visible cells of one column say."""
    cells = page.locator(f"#{name} tbody td[data-title='{title}'] > span")
    return [text.strip() for text in cells.all_inner_texts()]


def shares(page: Page, name: str, title: str) -> list[float]:
    return [float(text.rstrip("%")) for text in column(page, name, title)]


def header(page: Page, name: str, title: str) -> Locator:
    return page.locator(f"#{name} thead th").filter(has_text=title)


def test_it_opens_without_a_word_and_asks_for_nothing(opened: Watched) -> None:
    opened.page.wait_for_timeout(200)
    opened.assert_quiet()
    policy = opened.page.locator("meta[http-equiv=Content-Security-Policy]").get_attribute("content")
    assert policy is not None
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data:"
    for name in ("style-src", "script-src"):
        assert rules[name].startswith("'sha256-")
        assert "unsafe" not in rules[name]


def test_all_charts_are_there_and_have_size(opened: Watched) -> None:
    charts = opened.page.locator("figure.chart > svg")
    names = [
        name.removeprefix("chart-")
        for name in opened.page.locator("figure.chart").evaluate_all("a => a.map(e => e.id)")
    ]
    assert {"rescued", "ability-map", "class-counts", "calibration", "convergence"} <= set(names)
    assert sum(name.startswith("trade-off-") for name in names) == 2
    for i in range(charts.count()):
        box = charts.nth(i).bounding_box()
        assert box is not None
        assert box["width"] > 200
        assert box["height"] > 100
        assert charts.nth(i).get_attribute("aria-label")
        assert charts.nth(i).locator("path").count() > 0
    marks = opened.page.locator("#chart-ability-map title")
    assert HOSTILE_WORKER in " ".join(marks.all_text_contents())


def test_names_are_text_and_run_nothing(opened: Watched) -> None:
    page = opened.page
    for name in HOSTILE_TASKS:
        part(page, "items", "search").fill(name)
        found = column(page, "items", "Item")
        assert [" ".join(text.split()) for text in found] == [" ".join(name.split())]
    part(page, "items", "search").fill(SCRIPT)
    assert page.locator("#items tbody td").nth(1).inner_text() == f"what {SCRIPT} shows"
    part(page, "workers", "search").fill("onload")
    assert column(page, "workers", "Annotator") == [HOSTILE_WORKER]
    assert HOSTILE_CLASS in page.locator("h1").inner_text()
    assert "<b>labels</b>.csv" in page.locator(".eyebrow").inner_text()
    # Nothing became an element: two scripts are ours, and no name made a picture, a bold word or a drawing.
    assert page.locator("script").count() == 2
    assert page.locator("img, b, iframe, object, embed, body a[href^='http']").count() == 0
    assert page.locator("[onerror], [onload]").count() == 0
    opened.assert_quiet()


def test_the_policy_stops_scripts_pictures_and_connections(opened: Watched) -> None:
    page = opened.page
    page.evaluate(
        """() => {
            const script = document.createElement("script");
            script.textContent = "window.ran = true";
            const image = new Image();
            image.src = "http://example.invalid/x.png";
            const markup = document.createElement("div");
            markup.innerHTML = "<img src=x onerror='window.ran = true'>";
            document.body.append(script, image, markup);
        }"""
    )
    answer = page.evaluate("fetch('http://example.invalid/').then(() => 'reached', () => 'refused')")
    page.wait_for_timeout(200)
    assert answer == "refused"
    assert page.evaluate("window.ran") is None
    assert any("Content Security Policy" in line for line in opened.said)


def test_sorting_by_the_headers(opened: Watched) -> None:
    page = opened.page
    part(page, "items", "size").select_option("100")
    for title in ("Split", "Ease"):
        cell = header(page, "items", title)
        assert cell.get_attribute("aria-sort") is None
        cell.get_by_role("button").click()
        assert cell.get_attribute("aria-sort") == "descending"
        down = shares(page, "items", title)
        assert len(down) == 80
        assert down == sorted(down, reverse=True)
        cell.get_by_role("button").click()
        assert cell.get_attribute("aria-sort") == "ascending"
        assert shares(page, "items", title) == sorted(down)
    assert header(page, "items", "Split").get_attribute("aria-sort") is None
    label = header(page, "items", "Label")
    label.get_by_role("button").click()
    names = column(page, "items", "Label")
    assert names == sorted(names)
    assert len(set(names)) == 2
    header(page, "workers", "Votes").get_by_role("button").click()
    votes = [int(text) for text in column(page, "workers", "Votes")]
    assert votes == sorted(votes, reverse=True)
    header(page, "items", "Votes").get_by_role("button").click()
    opened.assert_quiet()


def test_filtering(opened: Watched) -> None:
    page = opened.page
    part(page, "items", "size").select_option("100")
    part(page, "items", "choice").select_option(label="Label differs from majority vote")
    pairs = list(zip(column(page, "items", "Label"), column(page, "items", "Majority"), strict=True))
    assert pairs
    assert all(label != majority for label, majority in pairs)
    part(page, "items", "choice").select_option(label="Label wrong")
    pairs = list(zip(column(page, "items", "Label"), column(page, "items", "Truth"), strict=True))
    assert pairs
    assert all(label != truth for label, truth in pairs)
    part(page, "items", "choice").select_option(label="Gold, given to the fit")
    assert len(column(page, "items", "Item")) == 3
    part(page, "items", "choice").select_option(label="All items")
    part(page, "items", "group").select_option(label=HOSTILE_CLASS)
    assert set(column(page, "items", "Label")) == {HOSTILE_CLASS}
    part(page, "items", "search").fill("no item is called so")
    assert page.locator("#items tbody").inner_text() == "No items fit these choices."
    assert part(page, "items", "status").inner_text() == "0 items"
    part(page, "workers", "group").select_option(index=1)
    assert len(set(column(page, "workers", "Profile"))) == 1
    opened.assert_quiet()


def test_paging(opened: Watched) -> None:
    page = opened.page
    assert part(page, "items", "status").inner_text() == "1–25 of 80 items"
    first = column(page, "items", "Item")
    assert part(page, "items", "previous").is_disabled()
    part(page, "items", "next").click()
    assert part(page, "items", "status").inner_text() == "26–50 of 80 items"
    assert not set(first) & set(column(page, "items", "Item"))
    part(page, "items", "next").click()
    part(page, "items", "next").click()
    assert part(page, "items", "status").inner_text() == "76–80 of 80 items"
    assert part(page, "items", "next").is_disabled()
    part(page, "items", "previous").click()
    assert part(page, "items", "status").inner_text() == "51–75 of 80 items"


def test_by_keyboard_alone(opened: Watched) -> None:
    page = opened.page

    def focused() -> str:
        return str(page.evaluate("document.activeElement.textContent.trim() || document.activeElement.dataset.part"))

    page.keyboard.press("Tab")
    assert focused() == "Skip to the content"
    box = page.locator(".skip").bounding_box()
    assert box is not None
    assert box["x"] >= 0, "the link shows itself when it has the focus"
    reached = []
    for _ in range(80):
        page.keyboard.press("Tab")
        reached.append(focused())
        if reached[-1] == "Split":
            break
    assert {"Copy", "Annotators", "search", "Item"} <= set(reached)
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    assert header(page, "items", "Split").get_attribute("aria-sort") == "descending"
    assert focused() == "Split", "sorting does not lose the focus"
    page.keyboard.press("Space")
    assert header(page, "items", "Split").get_attribute("aria-sort") == "ascending"
    names = page.locator("button, input, select").evaluate_all(
        "all => all.filter(e => !e.closest('[hidden]')).map(e => (e.labels?.[0] ?? e).textContent.trim())"
    )
    assert all(names), "every control has a name"


def downloaded(page: Page, button: Locator) -> tuple[str, list[list[str]]]:
    """Name and cells of what a button of a table downloads."""
    with page.expect_download() as begun:
        button.click()
    text = Path(begun.value.path()).read_bytes().decode("utf-8-sig")
    return begun.value.suggested_filename, list(csv.reader(io.StringIO(text, newline="")))


def without_apostrophe(cell: str) -> str:
    """What a spreadsheet shows of a cell that is marked as text."""
    return cell[1:] if cell[:1] == "'" and cell[1:2] in "=+-@" else cell


def test_every_small_table_downloads_as_it_is_shown(opened: Watched) -> None:
    page = opened.page
    tables = page.locator("table.small")
    assert tables.count() >= 6
    names = set()
    for i in range(tables.count()):
        table = tables.nth(i)
        name, cells = downloaded(page, table.get_by_role("button", name="Download as CSV"))
        shown = table.evaluate(
            "t => [...t.rows].map(r => [...r.cells].map(c => c.innerText.trim().replace(/\\s+/g, ' ')))"
        )
        assert [[without_apostrophe(cell) for cell in row] for row in cells] == shown
        assert name.endswith(".csv")
        names.add(name)
    assert "recall-and-precision.csv" in names
    opened.assert_quiet()


def test_a_list_downloads_all_rows_that_fit_in_their_order(opened: Watched) -> None:
    page = opened.page
    part(page, "items", "size").select_option("100")
    header(page, "items", "Split").get_by_role("button").click()
    part(page, "items", "choice").select_option(label="Annotators disagree")
    button = page.locator("#items").get_by_role("button", name="Download as CSV")
    shown = page.locator("#items tbody tr").evaluate_all(
        "rows => rows.map(r => [...r.cells].map(c => c.textContent.trim()))"
    )
    part(page, "items", "size").select_option("10")
    name, cells = downloaded(page, button)
    assert name == "items.csv"
    assert len(cells) - 1 == len(shown) > 10, "those of all pages"
    titles = page.locator("#items thead th").all_inner_texts()
    assert cells[0] == [title.strip() for title in titles]
    assert [[without_apostrophe(cell).strip() for cell in row] for row in cells[1:]] == shown
    _, people = downloaded(page, page.locator("#workers").get_by_role("button", name="Download as CSV"))
    assert len(people) == 1 + 12
    opened.assert_quiet()


def test_no_cell_of_a_download_is_a_formula(opened: Watched) -> None:
    page = opened.page
    part(page, "items", "search").fill("HYPERLINK")
    _, cells = downloaded(page, page.locator("#items").get_by_role("button", name="Download as CSV"))
    assert cells[1][0] == f"'{FORMULA}"
    assert not [cell for row in cells for cell in row if cell[:1] in "=+@\t\r" and cell]


def test_screenshots_in_light_dark_print_and_on_a_phone(browser: Browser, hostile_page: Path, tmp_path: Path) -> None:
    grounds, inks = {}, {}
    for name, scheme, width, media in (
        ("desktop", "light", 1280, "screen"),
        ("dark", "dark", 1280, "screen"),
        ("phone", "light", 375, "screen"),
        ("print", "dark", 800, "print"),
    ):
        page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)  # type: ignore[arg-type]
        page.emulate_media(media=media)  # type: ignore[arg-type]
        watched = Watched(page, hostile_page)
        page.screenshot(path=tmp_path / f"{name}.png", full_page=True)
        assert (tmp_path / f"{name}.png").stat().st_size > 50_000
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), f"{name} runs over"
        grounds[name] = page.evaluate("getComputedStyle(document.body).backgroundColor")
        inks[name] = page.locator("#chart-ability-map svg text").last.evaluate("e => getComputedStyle(e).fill")
        watched.assert_quiet()
        page.close()
    assert grounds["desktop"] == grounds["phone"] == grounds["print"] != grounds["dark"]
    assert inks["desktop"] == inks["print"] != inks["dark"], "charts follow the page"


def test_a_phone_shows_cards_and_can_sort_them(browser: Browser, hostile_page: Path) -> None:
    page = browser.new_page(viewport={"width": 375, "height": 800})
    watched = Watched(page, hostile_page)
    assert part(page, "items", "status").inner_text() == "1–10 of 80 items"
    part(page, "items", "sort").select_option(label="Split, largest first")
    found = shares(page, "items", "Split")
    assert found == sorted(found, reverse=True)
    cell = page.locator("#items tbody td").first
    assert cell.evaluate("e => getComputedStyle(e, '::before').content") == '"Item"'
    watched.assert_quiet()
    page.close()


def test_it_prints(browser: Browser, hostile_page: Path, tmp_path: Path) -> None:
    page = browser.new_page()
    page.goto(hostile_page.as_uri())
    page.pdf(path=tmp_path / "report.pdf", format="A4")
    assert (tmp_path / "report.pdf").read_bytes()[:5] == b"%PDF-"
    page.emulate_media(media="print")
    assert not page.locator(".controls").first.is_visible()
    page.close()


def test_without_scripts_all_but_the_lists_is_there(browser: Browser, hostile_page: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(hostile_page.as_uri())
    assert page.locator("h1").is_visible()
    assert page.locator("figure.chart > svg").count() >= 7
    assert "needs JavaScript" in page.locator("noscript").first.inner_text()
    context.close()


@pytest.fixture(scope="module")
def large_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    draw = np.random.default_rng(0)
    task = np.repeat(np.arange(100_000), 3)
    label = np.where(draw.random(task.size) < 0.1, "rare", "common")
    path = tmp_path_factory.mktemp("large") / "report.html"
    model = MajorityVote().fit((task, draw.integers(0, 6_000, task.size), label))
    decided(model).report(path)
    return path


@pytest.mark.prove
def test_a_hundred_thousand_items(browser: Browser, large_page: Path) -> None:
    assert large_page.stat().st_size < 3_000_000
    page = browser.new_page()
    watched = Watched(page, large_page)
    assert part(page, "items", "status").inner_text() == "1–25 of 5,000 items"
    assert "This page has the 5,000 items that are most worth a look, of 100,000" in page.locator("#look").inner_text()
    assert "the 5,000 annotators with the most votes, of 6,000" in page.locator("#annotators").inner_text()
    milliseconds = page.evaluate(
        """() => {
            const begin = performance.now();
            document.querySelector("#items thead button").click();
            return performance.now() - begin;
        }"""
    )
    assert milliseconds < 2_000
    watched.assert_quiet()
    page.close()
