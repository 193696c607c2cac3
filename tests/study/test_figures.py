"""Intervals against SciPy, charts as well-formed SVG with every mark, the page without anything that could run."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from benchmarks.study_evidence import read_results, write_headline
from scipy import stats

from rarevote.charts.svg import light, save, to_svg
from rarevote.errors import InputError
from rarevote.study import figures, measures
from rarevote.study.experiment import PAGE, Figure, StudySection, build_page, publish
from rarevote.study.figures import (
    Axis,
    Dot,
    Mark,
    Reference,
    dot_chart,
    line_chart,
    marks_with_intervals,
)
from rarevote.study.paper import run_paper_study
from rarevote.study.paper_page import publish_paper
from rarevote.study.tables import StudyTable, TableCell
from tests.study.small_data import write_dataset

# ---- intervals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "expected"), [(2, 12.706), (3, 4.303), (5, 2.776), (20, 2.093), (100, 1.984)])
def test_mean_interval_has_the_quantiles_of_printed_tables(n: int, expected: float) -> None:
    values = np.random.default_rng(n).normal(size=n)
    mean, low, high = measures.mean_interval(list(values / stats.sem(values)))
    assert (high - mean, mean - low) == pytest.approx((expected, expected), abs=5e-4)


def test_mean_interval_is_that_of_scipy_and_leaves_out_what_is_no_number() -> None:
    values = np.random.default_rng(0).normal(0.7, 0.1, 20)
    low, high = stats.t.interval(0.95, 19, loc=values.mean(), scale=stats.sem(values))
    assert measures.mean_interval([*values, float("nan")]) == pytest.approx((values.mean(), low, high))
    assert measures.mean_interval([0.5]) == (0.5, 0.5, 0.5)
    assert np.isnan(measures.mean_interval([float("nan")]).mean)


@pytest.mark.parametrize(("hits", "total"), [(0, 50), (3, 10), (50, 50), (412, 500)])
def test_share_interval_is_wilsons(hits: int, total: int) -> None:
    expected = stats.binomtest(hits, total).proportion_ci(method="wilson")
    assert measures.share_interval(hits, total) == pytest.approx((hits / total, expected.low, expected.high), abs=1e-12)


# ---- charts ---------------------------------------------------------------------------------------------------------


def example_points() -> list[Mark]:
    return [
        Mark(panel, series, x, 0.5 + x / 10, 0.4 + x / 10, 0.6 + x / 10)
        for panel in ("first", "second <script>alert(1)</script>")
        for series in ("Majority Vote", "CC-Rasch", "another")
        for x in (1.0, 2.0, 3.0)
    ]


def marks(svg: str, kind: str) -> int:
    """How many symbols of a kind an SVG shows, legends not counted."""
    root = ElementTree.fromstring(svg)
    return sum(element.get("aria-roledescription") == kind for element in root.iter())


def test_line_chart_shows_every_point_and_bar_and_escapes_names(tmp_path: Path) -> None:
    points = example_points()
    chart = line_chart(points, title="T", x=Axis("x"), y=Axis("y"), reference=Reference(0.5, "half"), columns=2)
    save(chart, tmp_path / "figure")
    svg = (tmp_path / "figure.svg").read_text(encoding="utf-8")
    assert marks(svg, "point") == len(points)
    # An error bar per point; the level of reference is a rule without data of its own.
    assert marks(svg, "rule mark") == len(points)
    assert "<script" not in svg
    texts = "".join(ElementTree.fromstring(svg).itertext())
    assert "half" in texts
    assert "CC-Rasch" in texts
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG\r\n")


def test_bare_lines_and_a_single_panel() -> None:
    points = [point for point in example_points() if point.panel == "first"]
    svg = to_svg(line_chart(points, title="T", x=Axis("x", log=True), y=Axis("y"), without_marks=["Majority Vote"]))
    assert marks(svg, "point") == 6
    # One path for each of the three lines.
    assert svg.count('aria-roledescription="line mark"') == 3


def test_points_without_a_value_are_left_out() -> None:
    nothing = Mark("p", "s", 2.0, float("nan"), float("nan"), float("nan"))
    svg = to_svg(line_chart([Mark("p", "s", 1.0, 0.5, 0.4, 0.6), nothing], title="", x=Axis("x"), y=Axis("y")))
    assert marks(svg, "point") == 1


def test_marks_with_intervals_group_and_stay_between_0_and_1() -> None:
    values = [0.9, 1.0, 0.95, 1.0]
    first, second = marks_with_intervals([("p", "s", 1.0, value) for value in values] + [("p", "t", 1.0, 0.2)])
    low, _ = stats.t.interval(0.95, 3, loc=np.mean(values), scale=stats.sem(values))
    assert (first.y, first.low, first.high) == pytest.approx((np.mean(values), low, 1.0))
    assert (second.series, second.low, second.high) == ("t", 0.2, 0.2)


def test_series_differ_in_colour_mark_and_dashes() -> None:
    keys = figures.keys_for([*figures.METHOD_KEYS, "another", "one more"])
    for part in ("description", "colour", "shape", "dash"):
        assert len({getattr(key, part) for key in keys}) == len(keys)
    assert len({light(key.colour) for key in keys}) == len(keys)


def test_dot_chart_shows_every_value() -> None:
    dots = [Dot(panel, row, measure, 0.5) for panel in "ab" for row in "cde" for measure in ("m", "n")]
    assert marks(to_svg(dot_chart(dots, title="T", x=Axis("x"))), "point") == len(dots)


# ---- the page -------------------------------------------------------------------------------------------------------

NASTY = '<script>alert("x")</script>'


def section(name: str, *stems: str) -> StudySection:
    return StudySection(
        name=name,
        title=f"About {name} {NASTY}",
        findings=[f"found {NASTY}"],
        figures=[Figure(stem, f"caption {NASTY}. More") for stem in stems],
        tables=[StudyTable(["Method", NASTY], [(NASTY, TableCell("0.9", "best"))], caption=NASTY, notes=[NASTY])],
        settings=[NASTY],
        command=f"rarevote study {name} {NASTY}",
        seconds=1.5,
    )


def test_page_gathers_sections_and_escapes_everything(tmp_path: Path) -> None:
    chart = line_chart(example_points(), title=NASTY, x=Axis("x"), y=Axis("y"))
    for stem in ("one", "two"):
        save(chart, tmp_path / stem)
    publish(tmp_path, section("speed", "one"))
    page = publish(tmp_path, section("gold", "two")).read_text(encoding="utf-8")
    assert page.index('<section id="gold">') < page.index('<section id="speed">')
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert page.count("<svg ") == 2
    assert '<td class="best">0.9</td>' in page
    # Nothing is loaded from anywhere: the only addresses are names of XML vocabularies.
    assert set(re.findall(r"https?://[^\"' <]+", page)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    assert re.search(r"\d{4}-\d\d-\d\d, 2 s: <code>rarevote study gold", page)
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_markdown_summary(tmp_path: Path) -> None:
    save(line_chart(example_points(), title="T", x=Axis("x"), y=Axis("y")), tmp_path / "one")
    publish(tmp_path, section("gold", "one"))
    text = (tmp_path / "gold.md").read_text(encoding="utf-8")
    assert "(one.png)" in text
    assert "**0.9**" in text
    assert "<script" not in text.replace(f"`rarevote study gold {NASTY}`", "")


def test_a_section_survives_the_file_it_is_kept_in(tmp_path: Path) -> None:
    publish(tmp_path, section("gold"))
    first = (tmp_path / PAGE).read_text(encoding="utf-8")
    assert build_page(tmp_path).read_text(encoding="utf-8") == first


@pytest.mark.parametrize(
    "inside",
    [
        "<script>1</script>",
        '<rect x="1" transform="scale(1)" onclick="1"/>',
        '<a href="http://example.org"/>',
        '<clipPath id="c1"/><g clip-path="url(#c1)"><use href="#c1"/></g>',
    ],
)
def test_what_could_act_in_a_figure_does_not_reach_the_page(tmp_path: Path, inside: str) -> None:
    """Identifiers would not be unique among the figures of a page, so they stay behind too."""
    text = f'<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" width="9" height="9">{inside}</svg>'
    (tmp_path / "one.svg").write_text(text, encoding="utf-8")
    page = publish(tmp_path, section("gold", "one")).read_text(encoding="utf-8")
    figure = page[page.index('<div class="plate">') : page.index("<figcaption>")]
    assert not re.search(r"script>|onclick|href|url|id=|example", figure.partition("aria-label")[0])
    assert '<svg viewBox="0 0 9 9"' in figure


@pytest.mark.parametrize("content", ["<svg", '<svg xmlns="http://www.w3.org/2000/svg"><g fill="#123456"/></svg>'])
def test_figures_that_are_not_ours_are_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "one.svg"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=re.escape(str(path))):
        publish(tmp_path, section("gold", "one"))


def test_broken_sections_and_absent_figures_are_named(tmp_path: Path) -> None:
    for content in ("{}", "[" * 100_000):
        (tmp_path / "gold.section.json").write_text(content, encoding="utf-8")
        with pytest.raises(InputError, match=r"gold\.section\.json: is not a section of a study"):
            build_page(tmp_path)
    (tmp_path / "gold.section.json").unlink()
    with pytest.raises(InputError, match=r"absent\.svg"):
        publish(tmp_path, section("gold", "absent"))


# ---- the headline ---------------------------------------------------------------------------------------------------


@pytest.fixture
def results_folder(tmp_path: Path) -> Path:
    header = "dataset,method,seeds,minority_recall,minority_recall_sd,balanced_accuracy,macro_f1,accuracy,seconds"
    rows = [
        "rte,majority-vote,1,0.6,0,0.7,0,0,0",
        "rte,cc-rasch,1,0.9,0,0.8,0,0,0",
        "product,majority-vote,1,0.5,0,0.6,0,0,0",
        "product,cc-rasch,1,0.8,0,0.9,0,0,0",
        "jigsaw,majority-vote,0,,,,,,",
        "jigsaw,cc-rasch,0,,,,,,",
        "cf,majority-vote,1,0.1,0,0.1,0,0,0",
    ]
    (tmp_path / "results.csv").write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return tmp_path


def test_headline_means_of_binary_and_imbalanced_datasets(results_folder: Path) -> None:
    svg = results_folder / "headline.svg"
    text = write_headline(results_folder, svg, command="rarevote study paper --out x", date="2026-01-31")
    # rte and product are binary, product alone has imbalance >= 3; cf has five classes; jigsaw is absent.
    assert "All 2 binary datasets" in text
    assert "| CC-Rasch | **0.850** | **0.850** | **0.800** | **0.900** |" in text
    assert "| Majority Vote | _0.550_ | _0.650_ | _0.500_ | _0.600_ |" in text
    assert "2026-01-31 by `rarevote study paper --out x`" in text
    assert marks(svg.read_text(encoding="utf-8"), "point") == 8


def test_headline_takes_date_and_command_from_the_study(results_folder: Path) -> None:
    kept = {"date": "2025-12-24", "command": "rarevote study paper --seeds 4"}
    (results_folder / "paper.section.json").write_text(json.dumps(kept), encoding="utf-8")
    text = write_headline(results_folder, results_folder / "headline.svg")
    assert "2025-12-24 by `rarevote study paper --seeds 4`" in text


@pytest.mark.parametrize("content", ["[]", "[" * 100_000])
def test_headline_of_a_study_whose_section_is_broken(results_folder: Path, content: str) -> None:
    (results_folder / "paper.section.json").write_text(content, encoding="utf-8")
    text = write_headline(results_folder, results_folder / "headline.svg", date="2026-01-31")
    assert "2026-01-31 by `rarevote study paper`" in text


def test_headline_needs_results(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"results\.csv"):
        read_results(tmp_path / "results.csv")


def test_a_paper_study_joins_the_page(tmp_path: Path) -> None:
    for slug in ("rte", "product"):
        write_dataset(tmp_path / "data", slug)
    out = tmp_path / "out"
    study = run_paper_study(out, data=tmp_path / "data", methods=["majority-vote", "cc-rasch"], n_jobs=1)
    publish_paper(study, out, command="rarevote study paper", begin=time.perf_counter())
    page = (out / PAGE).read_text(encoding="utf-8")
    assert "Performance on binary datasets" in page
    assert page.count("<svg ") == 2
    assert "Ranking, calibration and decision: all datasets" in page
    # The same means in the page, the headline and results.csv.
    recall = np.mean(
        [
            row.minority_recall
            for row in read_results(out / "results.csv").values()
            if row.method == "cc-rasch" and row.minority_recall is not None
        ]
    )
    assert f"| CC-Rasch | **{recall:.3f}**" in write_headline(out, out / "headline.svg").replace("_", "**")
    assert f"CC-Rasch {recall:.3f}" in page
    assert "Absent: jigsaw" in page
