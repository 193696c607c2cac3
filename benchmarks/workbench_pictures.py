"""The pictures of the workbench in the documentation, made by a browser that answers a simulated audit.

    python -m benchmarks.workbench_pictures [--out docs/workbench]

Items are drawn here: rails, of which some have a crack. The browser is $CHROMIUM, else the one on the PATH.
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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.evidence import REPOSITORY
from rarevote import simulate_crowd
from tests.page.conftest import browser_options, find_browser

if TYPE_CHECKING:
    from playwright.sync_api import Page

DESK, PHONE = {"width": 1180, "height": 760}, {"width": 390, "height": 780}
NOTES = (
    "Track 4, km 112.3. Dark line across the head of the rail, about 40 mm, visible from the walkway.",
    "Track 2, km 87.9. Usual wear, no change since the last visit.",
    "Track 1, km 54.0. Shallow dent beside the weld. Photographed twice; the second picture is sharper.",
    "Track 4, km 113.1. Fastening loose on the left, rail itself clean.",
)
LONG = " ".join(
    f"Sentence {i} of a long report: the inspector walked from one signal to the next, wrote down what was seen, and "
    "came back to it in the evening."
    for i in range(1, 41)
)


def rail(path: Path, cracked: bool, seed: int) -> None:
    """A picture of a rail."""
    import vl_convert

    dice = random.Random(seed)
    stones = "".join(
        f'<circle cx="{dice.randint(0, 900)}" cy="{dice.choice((dice.randint(0, 190), dice.randint(410, 600)))}" '
        f'r="{dice.randint(8, 26)}" fill="#{dice.choice(("6d6860", "7f7a70", "8d887d", "5c5851"))}"/>'
        for _ in range(420)
    )
    x = dice.randint(300, 600)
    points = " ".join(f"{x + dice.randint(-18, 18) + 3 * i},{232 + 17 * i}" for i in range(9))
    crack = f'<polyline points="{points}" fill="none" stroke="#1d1a17" stroke-width="5"/>' if cracked else ""
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="900" height="600" viewBox="0 0 900 600">'
        f'<rect width="900" height="600" fill="#77726a"/>{stones}'
        '<rect y="196" width="900" height="212" fill="#4b423b"/><rect y="226" width="900" height="150" fill="#a9adb1"/>'
        f'<rect y="252" width="900" height="62" fill="#cfd3d6"/>{crack}</svg>'
    )
    path.write_bytes(vl_convert.svg_to_png(svg))


def write_crowd(folder: Path, classes: list[str], columns: dict[str, Any]) -> dict[str, str]:
    """Votes with columns to show; returns the truth."""
    crowd = simulate_crowd(400, imbalance=2.0, n_annotators=10, random_state=1) if False else simulate_crowd(400, random_state=1)
    raise NotImplementedError(crowd, columns, classes, folder)


if __name__ == "__main__":
    pass
