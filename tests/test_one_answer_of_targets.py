"""One answer about recall targets and costs: terminal, JSON, page and Python say the same numbers.

A sibling of tests/test_one_answer.py, whose crowds it takes.
"""

from __future__ import annotations

import html
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import rarevote as rv
from tests.command import rarevote
from tests.test_one_answer import KINDS

pytestmark = pytest.mark.filterwarnings("ignore::rarevote.errors.RarevoteWarning")


@dataclass(frozen=True)
class Said:
    """What one decision says in the four places."""

    terminal: str
    figures: dict[str, Any]
    page: str


def said(folder: Path, kind: str, *options: str) -> Said:
    files, words = KINDS[kind].write(folder), KINDS[kind].words(folder)
    verb = [*map(str, files), *words, *options, "-o"]
    terminal = rarevote("aggregate", *verb, folder / "r.csv").stderr
    figures = json.loads(rarevote("report", *verb, folder / "page.html", "--json").stdout)["decision"]
    return Said(terminal, figures, html.unescape((folder / "page.html").read_text(encoding="utf-8")))


def decided(folder: Path, kind: str, **given: Any) -> Any:
    """The same decision in Python."""
    items = folder / "items.txt" if kind == "items without votes" else None
    gold = folder / "gold.csv" if kind == "gold" else None
    return rv.fit(rv.read(folder / "labels.csv", items=items), gold=gold).decide(**given)


@pytest.mark.parametrize(
    ("kind", "errors"),
    [
        pytest.param("two classes", "shared", marks=pytest.mark.prove),
        ("gold", "independent"),
        pytest.param("items without votes", "independent", marks=pytest.mark.prove),
    ],
)
def test_a_recall_target(kind: str, errors: Any, tmp_path: Path) -> None:
    name = "c2" if kind == "gold" else "c1"
    there = said(tmp_path, kind, "--min-recall", f"{name}=0.8", "--errors", errors)
    result = decided(tmp_path, kind, min_recall={name: 0.8}, errors=errors)
    target = result.target
    assert target is not None
    assert there.figures["recall_target"] == json.loads(json.dumps(target.figures()))
    assert target.description in there.terminal
    assert target.description[0].upper() + target.description[1:] in there.page
    numbers = re.search(r"Flag ([\d,]+) items? if annotators err independently, ([\d,]+) if they share", there.terminal)
    assert numbers is not None
    few, many = (int(one.replace(",", "")) for one in numbers.groups())
    assert (few, many) == (target.flags["independent"], target.flags["shared"])
    assert {"independent": few, "shared": many}[errors] == target.n_flagged == (result.labels == name).sum()
    expected = there.figures["classes"][name]
    assert expected["expected_recall"] == there.figures["recall_target"]["expected_recall"] == target.recall.value
    own = decided(tmp_path, kind)
    assert there.figures["recall_target"]["without_target"]["n_flagged"] == (own.labels == name).sum()
    assert there.figures["recall_target"]["without_target"]["expected_recall"] == own.expect(name).recall.value


@pytest.mark.parametrize("kind", ["two classes", pytest.param("gold", marks=pytest.mark.prove)])
def test_costs(kind: str, tmp_path: Path) -> None:
    names = ["c0", "c1", "c2"] if kind == "gold" else ["c0", "c1"]
    prices = {(a, b): 30.0 if a == names[-1] else 1.0 for a in names for b in names if a != b}
    text = ",".join(f"{a}:{b}={cost:g}" for (a, b), cost in prices.items())
    there = said(tmp_path, kind, "--cost", text, "--rare", names[-1])
    result = decided(tmp_path, kind, costs=prices)
    p, gold = result.probabilities.p, result.probabilities.gold

    def cost(label: int | None) -> float:
        """What it is expected to cost to label all items that are not known so, or as decided, by hand."""
        codes = [
            int(code) if label is None or known >= 0 else label for code, known in zip(result.codes, gold, strict=True)
        ]
        return sum(
            float(p[i, k]) * prices[names[k], names[code]]
            for i, code in enumerate(codes)
            for k in range(len(names))
            if k != code
        )

    rare, others = len(names) - 1, range(len(names) - 1)
    expected = {
        "expected_cost": cost(None),
        "cost_of_flagging_all": cost(rare),
        "cost_of_flagging_none": min(cost(k) for k in others),
    }
    for name, value in expected.items():
        assert there.figures[name] == pytest.approx(value, rel=1e-9)
    sentence = (
        f"expected cost of these decisions: {expected['expected_cost']:,.1f}; of labelling every item {names[-1]}: "
        f"{expected['cost_of_flagging_all']:,.1f}; of labelling no item {names[-1]}: "
        f"{expected['cost_of_flagging_none']:,.1f}"
    )
    assert sentence in there.terminal
    assert sentence in there.page
    assert "Labelling every item c" in there.page or min(list(expected.values())[1:]) >= expected["expected_cost"]
