"""The paper's study on real data: every method on every dataset, in the layout of the paper's tables."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rarevote.errors import InputError, ParameterError
from rarevote.methods.registry import METHODS, find_method, method_title
from rarevote.study.ablation import (
    ABLATION_COLUMNS,
    AblationRows,
    ablation_records,
    ablation_rows,
    ablation_text,
    choose_ablations,
)
from rarevote.study.cells import Outcomes, Problem, Report, Variant, run_cells, unavailable
from rarevote.study.datasets import (
    HOW_TO_GET,
    DatasetInfo,
    datasets_of_folder,
    find_dataset,
    list_datasets,
    load_annotations,
    locate,
)
from rarevote.study.deviation import ROW_METRICS, Deviation, MeanDeviation, deviation_texts, deviations, mean_deviations
from rarevote.study.experiment import make_folder
from rarevote.study.operating_points import OperatingPoint, operating_points
from rarevote.study.paired import JUDGED, Paired, paired_differences, paired_texts
from rarevote.study.results import RESULT_COLUMNS, ResultRow, Results, put_together
from rarevote.study.summaries import (
    PAPER_METHODS,
    RANKING_TABLE,
    SUMMARY_TABLES,
    dataset_title,
    ranking_texts,
    summary_records,
    summary_rows,
    summary_text,
)
from rarevote.study.tables import (
    ABSENT,
    StudyTable,
    TableCell,
    mean_and_sd,
    ranked,
    to_latex,
    to_markdown,
    write_csv,
    write_records,
    write_text,
)

N_SEEDS = 4

# CrowdFM itself averages over the draws of its option vectors; the paper scores each draw and averages the scores.
_AS_IN_THE_PAPER: dict[str, tuple[tuple[str, Any], ...]] = {"crowdfm": (("n_seeds", 1),)}

# The method whose number of flags is used for ``recall_at_ds`` of all methods.
_YARDSTICK = "dawid-skene"

# Our method beside those of the paper, if it is registered.
_BESIDE = ("anchored-rasch",)

_PER_DATASET_COLUMNS = (
    *("dataset", "paper_name", "method", "status", "imbalance", "annotations_per_item"),
    *(f"{metric}{ending}" for metric in ROW_METRICS for ending in ("", "_sd")),
)


@dataclass(frozen=True)
class PaperStudy:
    """The results of the study.

    Attributes:
        sets: the datasets, including absent ones, in the paper's order.
        methods: the methods that were run, in the order of the paper's tables.
        results: figures by dataset and method.
        ablation: means of the ablation, empty if none of its methods was requested.
        absent: datasets that are not available (by slug), and how to get them.
        not_run: methods that cannot run here, and why.
        failures: fits that ended with an error: dataset, method and message.
        notes: warnings about the data.
    """

    sets: list[DatasetInfo]
    methods: list[str]
    results: Results
    ablation: AblationRows
    absent: dict[str, str]
    not_run: dict[str, str]
    failures: list[str]
    notes: list[str]

    def means(self) -> list[MeanDeviation]:
        """Means over datasets compared with the paper's."""
        return mean_deviations(self.results, self.sets, self.methods)

    def paired(self) -> list[Paired]:
        """CC-Rasch, then Anchored Rasch, compared with each of the others."""
        judged = [name for name in JUDGED if name in self.methods]
        return [
            one for name in judged for one in paired_differences(self.results, self.sets, self.methods, method=name)
        ]

    def operating_points(self) -> list[OperatingPoint]:
        """Recall against flags per true item: the curve of each method, and the point of its own labels."""
        return operating_points(self.results, self.sets, self.methods)

    def texts(self) -> dict[str, list[StudyTable]]:
        """All tables as text, by the name of their file, in the order of the page."""
        texts = {}
        for table in SUMMARY_TABLES:
            rows = summary_rows(table, self.results, self.sets, self.methods)
            texts[table.file_name] = [summary_text(table, rows, self.sets, self.absent)]
        texts[RANKING_TABLE.file_name] = ranking_texts(self.results, self.sets, self.methods)
        texts["paired"] = paired_texts(self.paired())
        if self.ablation:
            texts["ablation"] = [ablation_text(self.ablation)]
        texts["deviation"] = deviation_texts(deviations(self.results, self.sets), self.means(), self.sets)
        texts["per_dataset"] = [per_dataset_text(self)]
        return texts


def run_paper_study(
    out: Path,
    *,
    data: str | Path | None = None,
    cache: str | Path | None = None,
    methods: Sequence[str] | None = None,
    datasets: Sequence[str] | None = None,
    n_seeds: int = N_SEEDS,
    n_jobs: int | None = None,
    ablation: bool = True,
    report: Report | None = None,
) -> PaperStudy:
    """Run the study, or what remains of it, and write its files into ``out``.

    Args:
        out: folder for the tables; its subfolder ``cells`` holds finished cells.
        data: folder of datasets; see :mod:`rarevote.study.datasets` for the default.
        cache: the folder for downloaded datasets.
        methods: names of methods; None for the methods of the paper that exist here.
        datasets: names of datasets; None for all of the paper's and others in the folder ``data`` (only for these
            if it has none of the paper's). Datasets named here must be available.
        n_seeds: seeds for methods that are random.
        n_jobs: processes; None for all cores.
        ablation: whether to run the ablation too, for its methods that are in ``methods``.
        report: called with the progress.

    Raises:
        ParameterError: a name is unknown or a number is out of range.
        InputError: a named dataset is not available, or files are not valid.
    """
    if n_seeds < 1:
        raise ParameterError(f"the number of seeds must be at least 1, got {n_seeds}")
    chosen, sets = choose_methods(methods), choose_datasets(datasets, data)
    make_folder(out)
    problems, absent, notes = load_problems(sets, data, cache, required=datasets is not None)
    reasons = unavailable([study_variant(name) for name in chosen])
    not_run = {variant.method: reason for variant, reason in reasons.items()}
    runnable = [name for name in chosen if name not in not_run]
    if not runnable:
        raise InputError(f"none of the methods can run here: {'; '.join(not_run.values())}")
    plain = [study_variant(name) for name in runnable]
    ablations = choose_ablations(plain) if ablation else []

    variants = [*plain, *(one.variant for one in ablations)]
    outcomes = run_cells(problems, variants, out / "cells", n_seeds=n_seeds, n_jobs=n_jobs, report=report)
    results = {
        (one.slug, name): ResultRow(one.slug, name, "absent", absent[one.slug])
        if one.slug in absent
        else put_together(
            one.slug,
            name,
            outcomes[one.slug, study_variant(name)],
            outcomes.get((one.slug, study_variant(_YARDSTICK)), ()),
        )
        for one in sets
        for name in runnable
    }
    rows = ablation_rows(outcomes, ablations, sets)
    study = PaperStudy(sets, runnable, results, rows, absent, not_run, _failures(outcomes), notes)
    write_paper_study(study, out)
    return study


def study_variant(name: str) -> Variant:
    """A method with the settings of the study."""
    return Variant(name, _AS_IN_THE_PAPER.get(name, ()))


def choose_methods(names: Sequence[str] | None) -> list[str]:
    """The methods with these names, first the paper's in its order, then ours; None for all that exist."""
    wanted = list(names or ())
    for name in wanted:
        find_method(name)
    order = dict.fromkeys((*PAPER_METHODS, *_BESIDE, *wanted))
    return [name for name in order if name in (METHODS if names is None else names)]


def choose_datasets(names: Sequence[str] | None, data: str | Path | None = None) -> list[DatasetInfo]:
    """The datasets with these names, first the paper's in its order.

    None means all datasets of the paper and those in the folder ``data``; if the folder has none of the paper's, only
    its own.
    """
    if names is not None:
        found = {one.slug: one for one in (find_dataset(name, data=data) for name in names)}
        known = [one.slug for one in list_datasets() if one.slug in found]
        return [found[slug] for slug in dict.fromkeys((*known, *found))]
    of_paper, own = [one for one in list_datasets() if one.paper_name], datasets_of_folder(data)
    if own and all(locate(one, data=data) is None for one in of_paper):
        return own
    return of_paper + own


def load_problems(
    sets: Sequence[DatasetInfo], data: str | Path | None, cache: str | Path | None, *, required: bool
) -> tuple[list[Problem], dict[str, str], list[str]]:
    """The available datasets, the absent ones with how to get them, and the warnings of loading.

    Raises:
        InputError: files are not valid, a dataset is absent although ``required``, or none is available.
    """
    problems, absent, notes = [], {}, []
    for one in sets:
        is_here = locate(one, data=data, cache=cache) is not None
        if not is_here and not required and (data is not None or one.access != "download"):
            absent[one.slug] = HOW_TO_GET[one.access].format(one.slug)
            continue
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            crowd, truth = load_annotations(one, data=data, cache=cache)
        notes += [str(warning.message) for warning in caught]
        problems.append(Problem(one.slug, crowd, truth))
    if not problems:
        raise InputError(f"none of the datasets was found: {', '.join(absent)}. Name their folder with --data")
    return problems, absent, notes


def _failures(outcomes: Outcomes) -> list[str]:
    failures = []
    for (dataset, variant), seeds in outcomes.items():
        settings = "".join(f" {name}={value}" for name, value in variant.settings)
        # Seeds mostly fail for the same reason: each reason is shown once.
        reasons = dict.fromkeys(outcome.reason for outcome in seeds if outcome.status == "failed")
        failures += [f"{dataset}, {variant.method}{settings}: {reason}" for reason in reasons]
    return failures


# --------------------------------------------------------------------------------------------------------------------
# writing


def write_paper_study(study: PaperStudy, out: Path) -> None:
    """Write results.csv, the paper's four tables, the ranking, deviations, paired differences and the ablation."""
    results, sets = study.results, study.sets
    write_csv(out / "results.csv", RESULT_COLUMNS, map(vars, results.values()))
    write_csv(out / "per_dataset.csv", _PER_DATASET_COLUMNS, _per_dataset_records(study))
    for table in (*SUMMARY_TABLES, RANKING_TABLE):
        rows = summary_rows(table, results, sets, study.methods)
        write_csv(out / f"{table.file_name}.csv", *summary_records(table, rows))
    write_records(out / "deviation.csv", Deviation, deviations(results, sets))
    write_records(out / "deviation_summary.csv", MeanDeviation, study.means())
    write_records(out / "paired.csv", Paired, study.paired())
    write_records(out / "operating_points.csv", OperatingPoint, study.operating_points())
    if study.ablation:
        write_csv(out / "ablation.csv", ABLATION_COLUMNS, ablation_records(study.ablation))
    for name, texts in study.texts().items():
        parts = [(f"## {text.caption}\n\n" if len(texts) > 1 else "") + to_markdown(text) for text in texts]
        write_text(out / f"{name}.md", "\n".join(parts))
        if name == "per_dataset" or name.startswith("table_"):
            label, is_long = name.replace("_", "-"), name == "per_dataset"
            latex = (to_latex(text, label=label, long=is_long) for text in texts)
            write_text(out / f"{name}.tex", "\n".join(latex))


def _rows_of(study: PaperStudy, one: DatasetInfo) -> list[ResultRow]:
    """The results of a dataset in the order of the paper's per-dataset table, in which PLAT comes last."""
    return [study.results[one.slug, name] for name in sorted(study.methods, key=lambda name: name == "plat")]


def _per_dataset_records(study: PaperStudy) -> list[dict[str, object]]:
    return [
        {**vars(row), "paper_name": one.paper_name, "imbalance": imbalance, "annotations_per_item": per_item}
        for one in study.sets
        for imbalance, per_item in [_facts(one)]
        for row in _rows_of(study, one)
    ]


def _facts(one: DatasetInfo) -> tuple[str, str]:
    return f"{one.imbalance:.2f}", f"{one.annotations_per_item:.2f}"


def per_dataset_text(study: PaperStudy) -> StudyTable:
    """The per-dataset table in the paper's layout; an absent dataset has a single row that says so."""
    rows: list[tuple[str | TableCell, ...]] = []
    breaks = []
    for one in study.sets:
        breaks.append(len(rows))
        title, facts = dataset_title(one), _facts(one)
        if one.slug in study.absent:
            rows.append((title, "absent", *facts, ABSENT, ABSENT))
            continue
        results = [row for row in _rows_of(study, one) if row.status != "not applicable"]
        columns = [
            ranked(
                [row.figure(metric) for row in results],
                [mean_and_sd(row.figure(metric), row.figure(f"{metric}_sd")) for row in results],
                second=False,
            )
            for metric in ROW_METRICS
        ]
        for place, row in enumerate(results):
            name = method_title(row.method) + (" (failed)" if row.status == "failed" else "")
            rows.append((title if place == 0 else "", name, *facts, *(column[place] for column in columns)))
    return StudyTable(
        ("Dataset", "Method", "Imb.", "Ann./item", "Min. Recall ↑", "Macro F1 ↑"),
        rows,
        caption="Every dataset. Mean ± standard deviation over seeds.",
        n_text_columns=2,
        breaks=breaks[1:],
    )
