"""The pictures of the workbench in the documentation: a browser answers a simulated audit and looks at itself.

    python -m benchmarks.workbench_pictures               those of the documentation, into docs/workbench
    python -m benchmarks.workbench_pictures --out FOLDER  all, to look at: desk, phone, dark; text, picture, 30 classes

Items are made here: notes, and drawings of rails of which some have a crack. Nothing is anybody's data.
"""

from __future__ import annotations

import argparse
import csv
import random
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import vl_convert
from tests.browser import WITHOUT, started_browser

from benchmarks.evidence import REPOSITORY
from rarevote import simulate_crowd

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

DOCS = REPOSITORY / "docs" / "workbench"
IN_DOCS = {"picture", "claims", "end", "classes"}
DESK, PHONE = {"width": 1180, "height": 740}, {"width": 390, "height": 780}
NOTES = {
    "defect": (
        "Track 4, km {km}. Dark line across the head of the rail, about {mm} mm, visible from the walkway.",
        "Track 1, km {km}. Crack beside the weld, {mm} mm. Photographed twice; the second picture is sharper.",
    ),
    "sound": (
        "Track 2, km {km}. Usual wear, no change since the last visit.",
        "Track 3, km {km}. Fastening loose on the left, the rail itself is clean. Shadow of {mm} mm, not a crack.",
    ),
}
LONG = "\n\n".join(
    f"{i}. The inspector walked from one signal to the next, wrote down what was seen, and came back to it in the "
    "evening: wear on the inner edge, two loose fastenings, a mark that may be a scratch or the beginning of a crack."
    for i in range(1, 25)
)


def draw_rail(path: Path, cracked: bool, seed: int) -> None:
    dice = random.Random(seed)
    stones = "".join(
        f'<circle cx="{dice.randint(0, 900)}" cy="{dice.choice((dice.randint(0, 190), dice.randint(410, 600)))}" '
        f'r="{dice.randint(8, 26)}" fill="#{dice.choice(("6d6860", "7f7a70", "8d887d", "5c5851"))}"/>'
        for _ in range(420)
    )
    x = dice.randint(300, 600)
    points = " ".join(f"{x + dice.randint(-18, 18) + 3 * i},{232 + 17 * i}" for i in range(9))
    crack = f'<polyline points="{points}" fill="none" stroke="#1d1a17" stroke-width="5"/>' if cracked else ""
    drawing = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="900" height="600" viewBox="0 0 900 600">'
        f'<rect width="900" height="600" fill="#77726a"/>{stones}'
        '<rect y="196" width="900" height="212" fill="#4b423b"/><rect y="226" width="900" height="150" fill="#a9adb1"/>'
        f'<rect y="252" width="900" height="62" fill="#cfd3d6"/>{crack}</svg>'
    )
    path.write_bytes(vl_convert.svg_to_png(drawing))


def write_rails(folder: Path) -> dict[str, str]:
    """Votes on 400 rails with notes and pictures; returns the truth."""
    crowd = simulate_crowd(400, imbalance=2.0, votes_per_task=10, p_good=1, p_majority=0, p_minority=0, p_bad=0,
                           random_state=1)  # fmt: skip
    dice = random.Random(0)
    names = ("sound", "defect")
    truth = {f"rail-{i:03d}": names[k] for i, k in enumerate(crowd.truth.tolist())}
    notes = {
        task: dice.choice(NOTES[label]).format(km=f"{dice.uniform(2, 140):.1f}", mm=dice.randint(12, 60))
        for task, label in truth.items()
    }
    for kind in range(8):
        draw_rail(folder / f"defect-{kind}.png", True, kind)
        draw_rail(folder / f"sound-{kind}.png", False, 100 + kind)
    with (folder / "labels.csv").open("w", newline="", encoding="utf-8") as handle:
        table = csv.writer(handle)
        table.writerow(["task", "worker", "label", "picture", "note"])
        for i, worker, k in zip(*(column.tolist() for column in crowd.arrays), strict=True):
            task = f"rail-{i:03d}"
            picture = f"{truth[task]}-{i % 8}.png"
            table.writerow([task, f"worker-{worker}", names[k], picture, notes[task]])
    return truth


def command(*words: str | Path, folder: Path) -> None:
    subprocess.run([sys.executable, "-m", "rarevote", *map(str, words)], cwd=folder, check=True, capture_output=True)


@contextmanager
def workbench(*words: str | Path, folder: Path) -> Iterator[str]:
    """The address of a workbench that runs as long as the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", "rarevote", *map(str, words), "--no-browser", "--quiet"],
        cwd=folder, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.search(r"http://\S+", line)
        assert found, line + process.stderr.read()
        yield found[0]
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()


def look(browser: Browser, address: str, size: Any, scheme: Any = "light", *, start: bool = True) -> Page:
    phone = size is PHONE
    context = browser.new_context(
        viewport=size, color_scheme=scheme, device_scale_factor=1.5, has_touch=phone, is_mobile=phone
    )
    page = context.new_page()
    page.goto(address)
    page.wait_for_url(lambda url: "token" not in url)  # and its script has run
    if start:
        press(page, "Enter")
    return page


def press(page: Page, key: str) -> None:
    """Press a key and wait until the page has done what it means."""
    page.evaluate("document.getElementById('bench').dataset.old = 'yes'")
    page.keyboard.press(key)
    page.wait_for_selector("#bench:not([data-old])")


def answer(page: Page, truth: dict[str, str], keys: dict[str, str], n: int, seconds: float = 0.0) -> None:
    for _ in range(n):
        if not page.locator(".answers").count():
            return
        page.wait_for_timeout(1000 * seconds)
        press(page, keys[truth[page.locator(".task b").inner_text()]])


def shoot(page: Page, path: Path) -> None:
    if path.parent == DOCS and path.stem not in IN_DOCS:
        return
    page.wait_for_timeout(150)
    page.screenshot(path=path)
    print(path.name, flush=True)


def audit_pictures(browser: Browser, folder: Path, out: Path) -> None:
    truth = write_rails(folder)
    keys = {"defect": "1", "sound": "2"}
    for name, show in (("notes", "note"), ("pictures", "picture,note")):
        (folder / name).mkdir()
        command("audit", "start", "labels.csv", "--find", "defect=0.9", "--show", show,
                "--plan", f"{name}/audit.json", "--review-out", f"{name}/round-1.csv", folder=folder)  # fmt: skip
    with workbench("audit", "review", "notes/audit.json", "--who", "anna", folder=folder) as address:
        shoot(look(browser, address, DESK, start=False), out / "start.png")
        shoot(look(browser, address, PHONE, "dark", start=False), out / "start-phone-dark.png")
        page = look(browser, address, DESK)
        answer(page, truth, keys, 12, seconds=3)
        shoot(page, out / "text.png")
        shoot(look(browser, address, DESK, "dark"), out / "text-dark.png")
        shoot(look(browser, address, PHONE), out / "text-phone.png")
        answer(page, truth, keys, 1_000)
        shoot(page, out / "pause.png")
        while page.locator("h1").inner_text() != "All done, thank you":
            press(page, "Enter")
            answer(page, truth, keys, 1_000)
        shoot(page, out / "end.png")
    with workbench("audit", "review", "pictures/audit.json", "--media", ".", folder=folder) as address:
        page = look(browser, address, DESK)
        for _ in range(2):
            answer(page, truth, keys, 1_000)
            press(page, "Enter")
        answer(page, truth, keys, 11, seconds=3)
        press(page, "u")
        shoot(page, out / "picture.png")
        page.keyboard.press("p")
        page.wait_for_selector(".sheet .claim, .sheet p")
        shoot(page, out / "claims.png")
        shoot(look(browser, address, DESK, "dark"), out / "picture-dark.png")
        shoot(look(browser, address, PHONE), out / "picture-phone.png")
        shoot(look(browser, address, PHONE, "dark"), out / "picture-phone-dark.png")


def list_pictures(browser: Browser, folder: Path, out: Path) -> None:
    kinds = [
        "apple", "beetle", "bridge", "candle", "cloud", "desert", "door", "feather", "ferry", "glacier", "harbour",
        "island", "jetty", "kettle", "ladder", "lighthouse", "meadow", "mill", "oak", "orchard", "pebble", "quarry",
        "reed bed", "sand bank or spit of land", "tower", "tunnel", "valley", "vineyard", "waterfall", "willow",
    ]  # fmt: skip
    with (folder / "list.csv").open("w", newline="", encoding="utf-8") as handle:
        csv.writer(handle).writerows([["task", "text"], ["walk-17", LONG], ["walk-18", "A short one."]])
    classes = [word for kind in kinds for word in ("--class", kind)]
    with workbench("review", "list.csv", *classes, folder=folder) as address:
        shoot(look(browser, address, DESK), out / "classes.png")
        shoot(look(browser, address, PHONE), out / "classes-phone.png")
    with workbench("review", "list.csv", "--class", "yes", "--class", "no", folder=folder) as address:
        shoot(look(browser, address, DESK), out / "long.png")
        shoot(look(browser, address, PHONE, "dark"), out / "long-phone-dark.png")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=DOCS)
    out = parser.parse_args(arguments).out
    out.mkdir(parents=True, exist_ok=True)
    with started_browser() as browser, tempfile.TemporaryDirectory(prefix="rarevote-") as name:
        if browser is None:
            sys.exit(WITHOUT)
        audit_pictures(browser, Path(name), out)
        list_pictures(browser, Path(name), out)


if __name__ == "__main__":
    main()
