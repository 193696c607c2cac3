"""Pages without names: annotators are called A1, A2, ..., and no number changes."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path

import pytest

import rarevote as rv
from rarevote.errors import RarevoteWarning
from tests.command import rarevote

NAMES = ("Wilhelmina", "Bartholomew", "Xanthippe", "Ulysses", "Ingeborg")


def votes() -> list[tuple[str, str, str]]:
    """Five people, Xanthippe the busiest, two of whom make the same mistakes."""
    rows = []
    for i in range(80):
        true = "yes" if i % 6 == 0 else "no"
        wrong = "no" if true == "yes" else "yes"
        for place, name in enumerate(NAMES):
            if name == "Xanthippe" or (i + place) % 5:
                copied = name in ("Ulysses", "Ingeborg") and i % 4 == 0
                rows.append((f"item-{i:03d}", name, wrong if copied or (i * 7 + place * 3) % 11 == 0 else true))
    return rows


def shown(path: Path) -> str:
    return unescape(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def labels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("names") / "labels.csv"
    path.write_text("task,worker,label\n" + "".join(f"{','.join(row)}\n" for row in votes()))
    return path


def test_no_name_is_left_and_no_number_changes(labels: Path, tmp_path: Path) -> None:
    """Of the page and of the lists that its buttons save as CSV."""
    for name, option in (("named", ()), ("anonymous", ("--anonymous",))):
        rarevote("report", labels, "-q", "-o", tmp_path / f"{name}.html", "--rare", "yes", *option)
    named, anonymous = (shown(tmp_path / f"{name}.html") for name in ("named", "anonymous"))
    assert all(name in named for name in NAMES)
    assert not any(name in anonymous for name in NAMES)
    n_votes = {name: sum(worker == name for _, worker, _ in votes()) for name in NAMES}
    order = sorted(sorted(NAMES), key=lambda name: -n_votes[name])
    assert order[0] == "Xanthippe"
    aliases = {name: f"A{place}" for place, name in enumerate(order, 1)}
    data = re.search(r'id="data">(.*?)</script>', anonymous, re.S)
    assert data is not None
    rows = {row[0]: row[1] for row in json.loads(data[1])["lists"]["workers"]["rows"]}
    assert rows == {aliases[name]: n_votes[name] for name in NAMES}
    for name, alias in aliases.items():
        named = named.replace(name, alias)
    # The time of the making may differ; everything else is the same page.
    assert named == anonymous


def test_one_annotator_is_not_named_in_the_headline(tmp_path: Path) -> None:
    result = rv.fit([(f"t{i}", "Wilhelmina", "ab"[i % 7 == 0]) for i in range(60)])
    with pytest.warns(RarevoteWarning, match="Wilhelmina"):
        made = result.decide()
    report = made.report(tmp_path / "page.html", anonymous=True)
    assert report.headline.endswith("all votes are by one annotator (A1).")
    assert "Wilhelmina" not in shown(report.page)
    assert "Wilhelmina" in made.fitted.annotations.workers, "the result itself keeps the names"


def test_a_page_of_several_labels_calls_a_person_the_same_everywhere(tmp_path: Path) -> None:
    def ticked(i: int, w: int) -> str:
        return "|".join(name for k, name in enumerate(("crack", "rust")) if (i + k) % (3 + k) == 0 or w == i % 9)

    rows = [[f"i{i}", NAMES[w], ticked(i, w)] for i in range(30) for w in range(4) if (i + w) % 4]
    path = tmp_path / "boxes.csv"
    path.write_text("item,annotator,label\n" + "".join(f"{','.join(row)}\n" for row in rows))
    each = rv.fit_each(path, multilabel=True).decide()
    page = shown(each.report(tmp_path / "page.html", anonymous=True).page)
    assert not any(name in page for name in NAMES)
    data = re.search(r'id="data">(.*?)</script>', page, re.S)
    assert data is not None
    lists = json.loads(data[1])["lists"]
    people = [{row[0] for row in made["rows"]} for name, made in lists.items() if name.endswith("workers")]
    assert people == [{"A1", "A2", "A3", "A4"}] * 2
