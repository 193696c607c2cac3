"""The paper's comparison in docs/benchmarks.md, written from the files of a finished ``rarevote study paper``.

Every number in it is read from these files. A difference whose interval includes zero is called no clear difference.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from textwrap import fill
from typing import Any, Literal

from rarevote.charts.svg import to_svg
from rarevote.errors import InputError
from rarevote.io.json_text import parse_json
from rarevote.methods.registry import method_title
from rarevote.study.datasets import list_datasets
from rarevote.study.experiment import as_code, today
from rarevote.study.measures import CALIBRATION, MEASURES, RANKING
from rarevote.study.operating_points import OperatingPoint, operating_chart
from rarevote.study.paper_page import HEADLINE, headline_chart, headline_table
from rarevote.study.results import ResultRow, Results
from rarevote.study.summaries import PAPER_METHODS, n_at_hand, summary_rows
from rarevote.study.tables import (
    ABSENT,
    StudyTable,
    TableCell,
    escape_markdown,
    ranked,
    signed,
    to_markdown,
    write_text,
)

# The paper prints three decimals; a hair more than half of the last one counts as equal.
_PRINTED = 6e-4

Row = dict[str, str]

_RANKED = (*RANKING, *CALIBRATION)
_DECIDED = {
    "recall": "Own labels: recall",
    "precision": "precision",
    "balacc": "bal. accuracy",
    "flags_per_item": "flags per true item",
}


def write_evidence(study: Path, figures: Path, *, command: str | None = None, date: str | None = None) -> str:
    """Write the figures into a folder and return the section as Markdown.

    Args:
        study: output folder of ``rarevote study paper``.
        figures: folder for ``headline.svg`` and ``operating_points.svg``.
        command: how the study was run; by default what the study itself recorded.
        date: when, likewise.

    Raises:
        InputError: a file of the study is not there.
    """
    paired, ablation = _read(study / "paired.csv"), _read(study / "ablation.csv")
    means = {row["method"]: row for row in _read(study / "table_ranking.csv")}
    results = _read(study / "results.csv")
    # Datasets, and whether there are figures for them.
    sets = {row["dataset"]: False for row in results} | {row["dataset"]: True for row in results if int(row["seeds"])}
    points = [_point(row) for row in _read(study / "operating_points.csv")]
    write_text(figures / "operating_points.svg", to_svg(operating_chart(points).spec))
    headline = write_headline(study, figures / "headline.svg", command=command, date=date)
    return "\n".join(
        [
            _paragraph(
                "`rarevote study paper --out study` reruns the paper's comparison and prints our figures next to the",
                f"published ones. {sum(sets.values())} of its {len(sets)} datasets are available; figures are means",
                "over these, with the defaults.",
            ),
            to_markdown(reproduction_table(_read(study / "deviation.csv"))),
            "### Ranking and deciding\n",
            _paragraph(
                "A method ranks the items and then decides how many of them to flag. Labels mix the two. This table",
                "shows the ranking alone, the quality of the probabilities, and the decision:",
            ),
            to_markdown(ranking_table(means)),
            "![Recall against flags per true item: the curve and the decision of each method](operating_points.svg)\n",
            _paragraph(*_strengths(means, paired)),
            _paragraph(*_limits(means, paired, ablation)),
            _paragraph(*_anchored(means, paired)),
            _paragraph(
                "Differences are means over datasets; 95% intervals by bootstrap over source groups of related",
                "datasets.",
            ),
            "### The paper's own table\n",
            "![Minority recall and balanced accuracy of each method](headline.svg)\n",
            headline,
        ]
    )


def read_results(path: Path) -> Results:
    """The results of a study from its ``results.csv``.

    The file has no status: a dataset without figures of any method is absent, and a method that alone lacks a figure
    does not apply.

    Raises:
        InputError: the file is not there or is no such file.
    """
    try:
        with path.open(newline="", encoding="utf-8") as handle:
            rows = list(csv.DictReader(handle))
        has_figures = {row["dataset"] for row in rows if row["minority_recall"]}
        return {(row["dataset"], row["method"]): _result(row, has_figures) for row in rows}
    except (OSError, KeyError, ValueError) as error:
        raise InputError(f"{path}: is no results.csv of a study ({error}); run rarevote study paper first") from None


def _result(row: dict[str, str], has_figures: set[str]) -> ResultRow:
    if not row["minority_recall"]:
        status: Any = "not applicable" if row["dataset"] in has_figures else "absent"
        return ResultRow(row["dataset"], row["method"], status)
    return ResultRow(
        row["dataset"],
        row["method"],
        "done",
        seeds=int(row["seeds"]),
        minority_recall=float(row["minority_recall"]),
        balanced_accuracy=float(row["balanced_accuracy"]),
    )


def write_headline(study: Path, svg: Path, *, command: str | None = None, date: str | None = None) -> str:
    """Write the figure to ``svg`` and return the table as Markdown, with the date and the command below it.

    Args:
        study: output folder of ``rarevote study paper``.
        svg: where the figure goes.
        command: how the study was run; by default what the study itself recorded.
        date: when, likewise.
    """
    results = read_results(study / "results.csv")
    recorded = _recorded(study / "paper.section.json")
    sets = [info for info in list_datasets() if any(slug == info.slug for slug, _ in results)]
    methods = list(dict.fromkeys(method for _, method in results))
    rows = summary_rows(HEADLINE, results, sets, methods)
    if not rows:
        raise InputError(f"{study / 'results.csv'}: has no method with figures for all binary datasets at hand")
    present = {slug for (slug, _), result in results.items() if result.status != "absent"}
    absent = {one.slug for one in sets} - present
    counts = {regime.key: n_at_hand(regime, sets, absent) for regime in HEADLINE.regimes}
    write_text(svg, to_svg(headline_chart(rows, counts)))
    when, how = date or recorded.get("date") or today(), command or recorded.get("command") or "rarevote study paper"
    return f"{to_markdown(headline_table(rows, counts))}\nMade on {escape_markdown(when)} by {as_code(how)}.\n"


def _recorded(path: Path) -> dict[str, str]:
    try:
        kept = parse_json(path.read_text(encoding="utf-8"))
        return {name: str(kept[name]) for name in ("date", "command")}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _read(path: Path) -> list[Row]:
    try:
        with path.open(newline="", encoding="utf-8") as handle:
            return list(csv.DictReader(handle))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; run rarevote study paper first") from None


def _point(row: Row) -> OperatingPoint:
    kind: Literal["own", "ranking"] = "own" if row["kind"] == "own" else "ranking"
    place = (row["sets_of"], int(row["sets"]), row["method"])
    return OperatingPoint(*place, kind, float(row["flags_per_item"]), float(row["recall"]))


def reproduction_table(rows: list[Row]) -> StudyTable:
    """How many of the paper's rows come out as it prints them."""
    found: dict[str, dict[str, list[float]]] = {}
    doubtful = {f"{method_title(row['method'])} on {row['dataset']}: {row['note']}." for row in rows if row["note"]}
    for row in rows:
        if not row["note"]:
            by_set = found.setdefault(row["method"], {})
            by_set.setdefault(row["dataset"], []).append(float(row["difference"]))
    cells = []
    for method in (name for name in PAPER_METHODS if name in found):
        sets = list(found[method].values())
        equal = sum(all(abs(difference) <= _PRINTED for difference in one) for one in sets)
        near = sum(all(abs(difference) <= 0.01 for difference in one) for one in sets)
        apart = [fmean(abs(one[place]) for one in sets) for place in (0, 1)]
        counts = (f"{n} of {len(sets)}" for n in (equal, near))
        cells.append((method_title(method), *counts, *(f"{mean:.3f}" for mean in apart)))
    return StudyTable(
        ("Method", "Equal to the published value", "Within 0.01", "Mean distance in recall", "in F1"),
        cells,
        notes=[
            "Rows of the paper's table for each dataset: recall of the rarest class and macro-F1, both to three "
            "decimals.",
            *(f"Left out: {words}" for words in sorted(doubtful)),
        ],
    )


def ranking_table(means: dict[str, Row]) -> StudyTable:
    """Ranking, calibration and own decision of the methods that have a figure for every dataset."""
    rows = [row for row in means.values() if row["all_average_precision"]]

    def column(name: str, better: int) -> list[TableCell]:
        values = [float(row[f"all_{name}"]) if row[f"all_{name}"] else None for row in rows]
        return ranked(values, [ABSENT if value is None else f"{value:.3f}" for value in values], better=better)

    columns = [column(name, MEASURES[name].better) for name in _RANKED]
    columns += [column(name, 0 if name == "flags_per_item" else 1) for name in _DECIDED]
    return StudyTable(
        ["Method", *(MEASURES[name].heading for name in _RANKED), *_DECIDED.values()],
        [(method_title(row["method"]), *(one[place] for one in columns)) for place, row in enumerate(rows)],
        notes=[
            "Rarest class of each dataset. AP: area under precision against recall; mAP: its mean over classes. "
            "Recall @DS: share of the class among as many of the highest-ranked items as Dawid–Skene flags. Flags for "
            "90%: how many items must be reviewed to find 90% of the class, per item of the class. PLAT, which handles "
            "two classes only, is in the study's tables of binary datasets.",
        ],
    )


# --------------------------------------------------------------------------------------------------------------------
# sentences


def _paragraph(*parts: str) -> str:
    return fill(" ".join(parts), 120, break_long_words=False, break_on_hyphens=False) + "\n"


def _mean(means: dict[str, Row], method: str, name: str) -> str:
    return f"{float(means[method][f'all_{name}']):.3f}" if means.get(method, {}).get(f"all_{name}") else ABSENT


def _against(paired: list[Row], method: str, rival: str, metric: str) -> str:
    """A difference with its interval, in words."""
    wanted = (method, rival, "all", metric)
    for row in paired:
        if (row["method"], row["rival"], row["sets_of"], row["metric"]) == wanted:
            low, high = float(row["low"]), float(row["high"])
            unclear = ", no clear difference" if low <= 0 <= high else ""
            return f"{signed(float(row['mean_difference']))}, interval {signed(low)} to {signed(high)}{unclear}"
    return "not compared"


def _strengths(means: dict[str, Row], paired: list[Row]) -> list[str]:
    mean, against = _of(means), _less(paired, "cc-rasch")
    return [
        "**What CC-Rasch does well.** It finds the rare class: the recall of its labels is "
        f"{mean('cc-rasch', 'recall')},",
        f"Dawid–Skene {mean('dawid-skene', 'recall')} ({against('dawid-skene', 'minority_recall')}), majority vote "
        f"{mean('majority-vote', 'recall')}",
        f"({against('majority-vote', 'minority_recall')}). As a ranking, compare it with a "
        "majority vote first: average precision",
        f"{mean('cc-rasch', 'average_precision')} against {mean('majority-vote', 'average_precision')} "
        f"({against('majority-vote', 'average_precision')}), ROC-AUC {mean('cc-rasch', 'roc_auc')} against "
        f"{mean('majority-vote', 'roc_auc')} ({against('majority-vote', 'roc_auc')}),",
        f"{mean('cc-rasch', 'flags_90_per_item')} flags per true item for 90% of the class against "
        f"{mean('majority-vote', 'flags_90_per_item')}",
        f"({against('majority-vote', 'flags_90_per_item')}).",
    ]


def _limits(means: dict[str, Row], paired: list[Row], ablation: list[Row]) -> list[str]:
    mean, against = _of(means), _less(paired, "cc-rasch")
    return [
        "**Its limits.** Much of that recall comes from flagging more: "
        f"{mean('cc-rasch', 'flags_per_item')} items for each item of the rare class, Dawid–Skene",
        f"{mean('dawid-skene', 'flags_per_item')}, at precision {mean('cc-rasch', 'precision')} and "
        f"{mean('dawid-skene', 'precision')}. With as many flags as Dawid–Skene it finds "
        f"{mean('cc-rasch', 'recall_at_ds')}",
        f"({against('dawid-skene', 'recall_at_ds')}); the average precision of GLAD is "
        f"{mean('glad', 'average_precision')}",
        f"({against('glad', 'average_precision')}). With one balanced rule for all methods, balanced accuracy is",
        f"{_with_one_rule(ablation)}.",
        f"Its posterior is overconfident: log loss {mean('cc-rasch', 'log_loss')}, calibration error "
        f"{mean('cc-rasch', 'ece')}. Results show a calibrated probability instead, for this and every method",
        "([one probability](how-it-works.md#one-probability)).",
    ]


def _with_one_rule(ablation: list[Row]) -> str:
    """Balanced accuracy under the balanced rule, over all datasets, of the models as they are."""
    found: dict[str, list[tuple[float, int]]] = {}
    for row in ablation:
        if row["decision"] == "balanced" and not row["change"] and row["balanced_accuracy"]:
            prior = f", {'estimated' if row['prior'] == 'estimate' else row['prior']} prior" if row["prior"] else ""
            found.setdefault(row["model"] + prior, []).append((float(row["balanced_accuracy"]), int(row["sets"])))
    kinds = max((len(one) for one in found.values()), default=0)
    whole = {name: one for name, one in found.items() if len(one) == kinds}
    mean = {
        name: sum(value * sets for value, sets in one) / sum(sets for _, sets in one) for name, one in whole.items()
    }
    ordered = sorted(mean.items(), key=lambda pair: -pair[1])
    return "; ".join(f"{name} {value:.3f}" for name, value in ordered)


def _anchored(means: dict[str, Row], paired: list[Row]) -> list[str]:
    mean, against = _of(means), _less(paired, "anchored-rasch")
    return [
        "**Anchored Rasch**, the default, against CC-Rasch: average precision "
        f"{mean('anchored-rasch', 'average_precision')} ({against('cc-rasch', 'average_precision')}),",
        f"log loss {mean('anchored-rasch', 'log_loss')} ({against('cc-rasch', 'log_loss')}), balanced accuracy "
        f"{mean('anchored-rasch', 'balacc')}",
        f"({against('cc-rasch', 'balanced_accuracy')}), recall {mean('anchored-rasch', 'recall')} "
        f"({against('cc-rasch', 'minority_recall')})",
        f"with {mean('anchored-rasch', 'flags_per_item')} flags per item of the class. Its constants were chosen with "
        "these datasets in view.",
    ]


def _of(means: dict[str, Row]) -> Callable[[str, str], str]:
    return lambda method, name: _mean(means, method, name)


def _less(paired: list[Row], method: str) -> Callable[[str, str], str]:
    return lambda rival, metric: _against(paired, method, rival, metric)
