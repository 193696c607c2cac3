"""Grades on the page and in the check: in their order, with leans, agreement on grades, and a tail as the headline."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path

import numpy as np
import pytest

import rarevote
from rarevote.diagnose.diagnosis import Diagnosis
from rarevote.diagnose.ordered_agreement import ordered_agreement
from rarevote.page import charts, sentences, tables

# Few votes are outside the scale, which is said.
pytestmark = pytest.mark.filterwarnings("ignore:almost all votes for broken")

SCALE = ["none", "mild", "severe", "critical"]
LEANS = {"a": 0.0, "b": 0.0, "c": 0.0, "d": 0.9, "e": 0.0, "f": 0.0, "g": -0.9}
N_ITEMS = 150


def crowd() -> tuple[list[tuple[str, str, str]], dict[str, str]]:
    """Ratings by seven people, of whom d rates high and g low; some votes are outside the scale."""
    rng = np.random.default_rng(0)
    truth = rng.choice(4, N_ITEMS, p=[0.55, 0.25, 0.13, 0.07])
    votes = []
    for i in range(N_ITEMS):
        for worker, lean in LEANS.items():
            place = int(np.clip(np.rint(truth[i] + lean + rng.normal(0, 0.5)), 0, 3))
            votes.append((f"i{i:03d}", worker, "broken" if rng.random() < 0.03 else SCALE[place]))
    return votes, {f"i{i:03d}": SCALE[truth[i]] for i in range(N_ITEMS)}


@pytest.fixture(scope="module")
def found() -> Diagnosis:
    return rarevote.fit(crowd()[0], ordered=SCALE).diagnose()


@pytest.fixture(scope="module")
def result() -> rarevote.Result:
    return rarevote.fit(crowd()[0], ordered=SCALE, rare=">=severe").decide()


def text_of(page: Path) -> str:
    words = re.sub(r"<(svg|script|style).*?</\1>", " ", page.read_text(encoding="utf-8"), flags=re.S)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", words)).split())


def test_grades_stand_in_their_order(found: Diagnosis) -> None:
    order = [*SCALE, "broken"]
    assert [tile.name for tile in sentences.tiles(found)] == order
    proportions = tables.proportion_table(found)
    assert proportions is not None
    assert [row[0] for row in proportions.rows] == order
    spec = json.loads(charts.grade_counts(found).spec.to_json())
    assert spec["layer"][0]["encoding"]["x"]["sort"] == order
    rows = next(iter(spec["datasets"].values()))
    labels = found.items.label.tolist()
    for name in order:
        code = found.classes.names.tolist().index(name)
        shown = next(row["share"] for row in rows if (row["grade"], row["source"]) == (name, "this result"))
        assert shown == pytest.approx(labels.count(code) / N_ITEMS)


def test_leans_are_relative_to_the_median_of_the_crowd(found: Diagnosis) -> None:
    assert found.leans is not None
    assert np.median(found.leans) == pytest.approx(0.0)
    by_name = dict(zip(found.workers.names.tolist(), found.leans.tolist(), strict=True))
    assert max(by_name, key=lambda name: by_name[name]) == "d"
    assert min(by_name, key=lambda name: by_name[name]) == "g"
    assert by_name["d"] > 0.5
    (said,) = sentences.leans(found)
    n_strong = sum(abs(lean) >= 0.5 for lean in by_name.values())
    assert said.startswith(f"{n_strong} annotator")
    assert f"d rates {by_name['d']:.1f} grades high" in said
    listed = tables.worker_list(found)
    column = [head["title"] for head in listed.columns].index("Rates")
    words = {row[0]: row[column] for row in listed.rows}
    assert words["d"].endswith("grades high")
    assert words["g"].endswith("grades low")
    other = rarevote.fit(crowd()[0], "majority-vote", ordered=SCALE).diagnose()
    assert other.leans is None
    assert sentences.leans(other) == []


def test_agreement_on_grades_is_in_check_and_page(found: Diagnosis) -> None:
    fitted = rarevote.fit(crowd()[0], ordered=SCALE)
    assert fitted.grades is not None
    expected = ordered_agreement(fitted.annotations, fitted.grades)
    check = fitted.check()
    figures = check.figures()["agreement_on_grades"]
    assert figures["alpha"] == pytest.approx(expected.alpha)
    assert {"ac2", "quadratic_kappa"} <= set(figures)
    (said,) = [one.description for one in check.answers("crowd") if one.description.startswith("On grades")]
    assert f"quadratic kappa {expected.quadratic_kappa:.2f}" in said
    rows = {row[0]: row[1] for row in tables.agreement_table(found).rows}
    assert rows["Gwet's AC2, quadratic"] == f"{expected.ac2:.2f}"
    assert rows["Krippendorff's alpha, ordinal"] == f"{expected.alpha:.2f}"
    assert rows["quadratic kappa"] == f"{expected.quadratic_kappa:.2f}"


def test_a_tail_is_the_headline(result: rarevote.Result, tmp_path: Path) -> None:
    truth = crowd()[1]
    n_flagged = int(result.flagged.sum())
    report = result.report(tmp_path / "page.html")
    assert report.headline.startswith(f"{N_ITEMS} items: {n_flagged} are flagged as “>=severe”")
    shown = text_of(tmp_path / "page.html")
    assert "take as >=severe" in shown
    assert "1 annotator rates" in shown or "annotators rate" in shown
    # By the truth: counted here, item by item.
    report = result.report(tmp_path / "true.html", truth=truth)
    severe = np.array([truth[task] in ("severe", "critical") for task in result.tasks.tolist()])
    recall = (severe & result.flagged).sum() / severe.sum()
    assert report.headline == (f"{N_ITEMS} items: {n_flagged} are flagged as “>=severe”; the truth has {severe.sum()}.")
    shown = text_of(tmp_path / "true.html")
    assert f" and {round(100 * recall)}% of all “>=severe” are found" in shown


def test_a_tail_in_the_check(result: rarevote.Result) -> None:
    check = result.fitted.check(result)
    assert check.figures()["expected"]["class"] == ">=severe"
    assert str(check.expected) == str(result.expect())
    (said,) = [one.description for one in check.answers("trust") if "flagged >=severe" in one.description]
    assert said.startswith(f"{int(result.flagged.sum())} items are flagged >=severe")


def test_a_tail_is_described_as_two_classes(result: rarevote.Result) -> None:
    """The view of a tail is the diagnosis of the same votes, merged by hand."""
    found = result.fitted.diagnose(result)
    view = found.of_tail
    assert view is not None
    merged = [(task, worker, label in ("severe", "critical")) for task, worker, label in crowd()[0]]
    by_task: dict[str, list[bool]] = {}
    for task, _, is_tail in merged:
        by_task.setdefault(task, []).append(is_tail)
    expected = [[sum(said), len(said) - sum(said)] for _, said in sorted(by_task.items())]
    assert view.items.votes.tolist() == expected
    classes = found.classes.names.tolist()
    mine = found.items.probabilities[:, [classes.index("severe"), classes.index("critical")]].sum(axis=1)
    np.testing.assert_allclose(view.items.probabilities[:, 0], mine)
    assert (view.items.label == 0).tolist() == result.flagged.tolist()
    assert str(view.expected[0]) == str(result.expect())
    assert "P(>=severe)" in [column["title"] for column in tables.item_list(found, {}).columns]
