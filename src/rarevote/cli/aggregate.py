"""``rarevote aggregate``: one label per task."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rarevote.cli.options import (
    Abstain,
    Classes,
    Columns,
    Json,
    Keep,
    LabelsFile,
    MethodName,
    Missing,
    Quiet,
    Settings,
    make_method,
    parse_columns,
)
from rarevote.cli.show import aligned, fitting, say, share
from rarevote.errors import InputError

if TYPE_CHECKING:
    from rarevote.annotations import Annotations
    from rarevote.estimator import Estimator

EXAMPLES = """Examples:

rarevote aggregate labels.csv --out result.csv

rarevote aggregate export.csv --columns task=image,worker=rater,label=verdict --truth truth.csv --out result.parquet

rarevote aggregate labels.csv --set prior=estimate --set sigma_alpha=0.7 > result.csv"""


def aggregate(
    labels: LabelsFile,
    method: MethodName = "cc-rasch",
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Result file: .csv, .tsv or .parquet. Without it rows go to stdout."),
    ] = None,
    gold: Annotated[
        Path | None, typer.Option(help="Known labels that the method may learn from (task, label).")
    ] = None,
    truth: Annotated[Path | None, typer.Option(help="Known labels to score against; never used in the fit.")] = None,
    settings: Settings = None,
    columns: Columns = None,
    keep: Keep = "all",
    missing: Missing = "error",
    abstain: Abstain = None,
    classes: Classes = None,
    strict: Annotated[bool, typer.Option(help="Exit with code 3 if the fit did not converge.")] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """One label per task: reads the votes, weighs the annotators, writes task, label, confidence, p:<class>."""
    from rarevote.io.frames import read_annotations, read_truth
    from rarevote.io.write import check_ending, write_columns, write_rows

    estimator = make_method(method, settings)
    if out is not None:
        check_ending(out)
    elif as_json:
        raise InputError("--json writes a summary to stdout: say with --out where the rows should go")
    known = None if truth is None else read_truth(truth)
    begin = time.perf_counter()
    crowd, _ = read_annotations(
        labels,
        columns=parse_columns(columns),
        classes=classes,
        abstain=abstain or (),
        keep=keep,  # type: ignore[arg-type]
        missing=missing,  # type: ignore[arg-type]
    )
    if not crowd.n_annotations:
        raise InputError(f"{labels}: no annotations")
    if not quiet:
        _describe(crowd, labels)
    warn_where_weak(method, crowd)
    read_seconds = time.perf_counter() - begin
    begin = time.perf_counter()
    with fitting(f"fitting {method}", quiet=quiet) as callback:
        estimator.fit(crowd, None if gold is None else read_truth(gold), callback=callback)
    fit_seconds = time.perf_counter() - begin

    rows = result_columns(estimator)
    if out is None:
        write_rows(rows, sys.stdout)
    else:
        write_columns(rows, out)
    summary = _summary(estimator, method, read_seconds, fit_seconds)
    if known is not None:
        summary["scores"] = _scores(rows, known)
    if as_json:
        typer.echo(json.dumps(summary, ensure_ascii=False, default=str))
    elif not quiet:
        _tell(summary, out)
    if strict and not estimator.converged_:
        raise typer.Exit(3)


def result_columns(estimator: Estimator) -> dict[str, Any]:
    """One row per task: task, label, confidence, then the probability of every class."""
    crowd, posterior = estimator.annotations_, estimator.posterior_
    chosen = estimator.label_codes()
    rows: dict[str, Any] = {
        "task": crowd.tasks,
        "label": crowd.classes[chosen],
        "confidence": posterior[range(len(chosen)), chosen],
    }
    for k, name in enumerate(crowd.classes.tolist()):
        rows[f"p:{name}"] = posterior[:, k]
    return rows


def warn_where_weak(method: str, crowd: Annotations) -> None:
    """Say so where CC-Rasch is known to be weak: few votes a task over many classes."""
    votes = crowd.n_annotations / crowd.n_tasks
    if method == "cc-rasch" and crowd.n_classes >= 5 and votes < 3:
        say(
            f"rarevote: warning: {votes:.1f} votes per task over {crowd.n_classes} classes is very sparse: item "
            "difficulty can absorb all disagreement. Compare with --method majority-vote, or switch difficulty off: "
            "--set difficulty=None"
        )


def _describe(crowd: Annotations, labels: Path) -> None:
    say(
        f"{labels}: {crowd.n_annotations:,} annotations, {crowd.n_tasks:,} tasks, {crowd.n_workers:,} workers, "
        f"{crowd.n_classes} classes ({crowd.n_annotations / crowd.n_tasks:.1f} votes per task)"
    )
    if crowd.n_dropped:
        say(f"{crowd.n_dropped:,} rows left out (missing values or repeated pairs)")
    if crowd.abstentions:
        say(f"{sum(crowd.abstentions.values()):,} abstentions by {len(crowd.abstentions):,} workers")
    if len(crowd.unanswered):
        say(f"{len(crowd.unanswered):,} tasks got abstentions only and have no result (first: {crowd.unanswered[0]})")


def _summary(estimator: Estimator, method: str, read_seconds: float, fit_seconds: float) -> dict[str, Any]:
    import numpy as np

    crowd = estimator.annotations_
    counts = np.bincount(estimator.label_codes(), minlength=crowd.n_classes)
    votes = np.bincount(crowd.label, minlength=crowd.n_classes) / crowd.n_annotations
    return {
        "method": method,
        "parameters": estimator.get_params(),
        "n_tasks": crowd.n_tasks,
        "n_workers": crowd.n_workers,
        "n_annotations": crowd.n_annotations,
        "classes": {
            str(name): {"tasks": int(count), "share_of_tasks": count / crowd.n_tasks, "share_of_votes": float(part)}
            for name, count, part in zip(crowd.classes.tolist(), counts, votes, strict=True)
        },
        "n_iter": estimator.n_iter_,
        "converged": estimator.converged_,
        "status": estimator.status_,
        "seconds": {"read": read_seconds, "fit": fit_seconds},
    }


def _scores(rows: dict[str, Any], known: dict[Any, Any]) -> dict[str, Any]:
    from rarevote.metrics import score

    result = dict(zip(rows["task"].tolist(), rows["label"].tolist(), strict=True))
    items = [task for task in known if task in result]
    if not items:
        raise InputError("the truth names none of the tasks: check ids")
    found = score([known[task] for task in items], [result[task] for task in items])
    return {
        "n_items": found.n_items,
        "minority_class": found.minority_class,
        "minority_recall": found.minority_recall,
        "balanced_accuracy": found.balanced_accuracy,
        "macro_f1": found.macro_f1,
        "accuracy": found.accuracy,
        "recall": {str(name): value for name, value in found.recall.items()},
        "precision": {str(name): value for name, value in found.precision.items()},
        "truth_without_labels": len(known) - len(items),
    }


def _tell(summary: dict[str, Any], out: Path | None) -> None:
    rows = [
        [name, f"{entry['tasks']:,}", share(entry["share_of_tasks"]), share(entry["share_of_votes"])]
        for name, entry in summary["classes"].items()
    ]
    say()
    say(aligned(["class", "tasks", "of tasks", "of votes"], rows))
    say()
    seconds = summary["seconds"]
    say(
        f"{summary['method']}: {summary['n_iter']} iterations, {summary['status']}; "
        f"read {seconds['read']:.2f} s, fit {seconds['fit']:.2f} s"
    )
    if "scores" in summary:
        scores = summary["scores"]
        say(
            f"against the truth of {scores['n_items']:,} tasks: recall of {scores['minority_class']} "
            f"{scores['minority_recall']:.3f}, balanced accuracy {scores['balanced_accuracy']:.3f}, "
            f"macro-F1 {scores['macro_f1']:.3f}, accuracy {scores['accuracy']:.3f}"
        )
        if scores["truth_without_labels"]:
            say(f"{scores['truth_without_labels']:,} tasks of the truth have no annotations and were not scored")
    if out is not None:
        say(f"wrote {out}")
