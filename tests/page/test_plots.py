"""The charts of the page by name: altair objects with the page's numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import altair as alt
import numpy as np
import pytest

import rarevote
from rarevote.charts.svg import to_svg
from rarevote.errors import InputError, ParameterError

VOTES = [
    (f"t{i:02}", worker, "defect" if i < 6 and (i + place) % 3 else "ok")
    for i in range(40)
    for place, worker in enumerate(("ann", "bob", "cy", "dee"))
]
TRUTH = {f"t{i:02}": "defect" if i < 6 else "ok" for i in range(40)}


@pytest.fixture(scope="module")
def result() -> rarevote.Result:
    return rarevote.fit(VOTES, "dawid-skene", rare="defect").decide()


DRAWN: dict[str, Callable[[rarevote.Plots], Any]] = {
    "trade_off": lambda plot: plot.trade_off(TRUTH),
    "annotators": lambda plot: plot.annotators(),
    "votes": lambda plot: plot.votes(),
    "classes": lambda plot: plot.classes(),
    "calibration": lambda plot: plot.calibration(TRUTH),
    "convergence": lambda plot: plot.convergence(),
}


@pytest.mark.parametrize("name", DRAWN)
def test_every_chart_is_an_altair_chart_with_a_title(name: str, result: rarevote.Result) -> None:
    chart = DRAWN[name](result.plot)
    assert isinstance(chart, alt.TopLevelMixin)
    assert chart.to_dict()["title"]["text"]
    assert "</svg>" in to_svg(chart)


def test_the_table_names_every_chart(result: rarevote.Result) -> None:
    assert repr(result.plot) == f"Plots({', '.join(DRAWN)})"


def test_votes_count_the_items_that_are_labelled_rare(result: rarevote.Result) -> None:
    (rows,) = result.plot.votes().to_dict()["datasets"].values()
    assert sum(row["items"] for row in rows) == np.count_nonzero(result.labels == "defect")


def test_the_truth_gives_the_recall_of_the_result(result: rarevote.Result) -> None:
    drawn = result.plot.trade_off(TRUTH).to_dict()["datasets"].values()
    (point,) = (row for rows in drawn for row in rows if row.get("who") == "this result")
    labels = dict(zip(result.tasks.tolist(), result.labels.tolist(), strict=True))
    found = sum(labels[task] == "defect" for task, true in TRUTH.items() if true == "defect")
    assert point["recall"] == pytest.approx(found / 6)


def test_annotators_are_all_drawn_of_a_fit(result: rarevote.Result) -> None:
    text = str(result.fitted.plot.annotators().to_dict())
    assert all(f"{name}: recognises" in text for name in ("ann", "bob", "cy", "dee"))


def test_nothing_to_draw_says_why(result: rarevote.Result) -> None:
    with pytest.raises(ParameterError, match="missing a required argument: 'truth'"):
        result.plot.calibration()  # type: ignore[call-arg]
    with pytest.raises(InputError, match="does not iterate"):
        rarevote.fit(VOTES, "majority-vote").plot.convergence()


def test_short_in_a_notebook(result: rarevote.Result) -> None:
    flagged = np.count_nonzero(result.labels == "defect")
    assert repr(result).startswith(f"Result(40 items, {flagged} labelled defect, by dawid-skene")
    assert repr(result.fitted) == (
        "Fitted(dawid-skene of Annotations(40 tasks, 4 workers, 2 classes, 160 annotations), rare class defect)"
    )


def test_a_notebook_shows_the_top_of_the_page(result: rarevote.Result, tmp_path: Any) -> None:
    page = result.report(tmp_path / "page.html")
    shown = result._repr_html_()
    assert f"<h1>{page.headline}</h1>" in shown
    assert "<script" not in shown
    assert f"<h1>{page.headline}</h1>" in result.fitted._repr_html_()
