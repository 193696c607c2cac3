"""``rarevote aggregate``: one label per task."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rarevote.cli.decisions import apply_decision
from rarevote.cli.options.common import Json, Quiet, Rare, SpreadsheetSafe, Verbose
from rarevote.cli.options.decide import DecisionArguments
from rarevote.cli.options.engine import (
    CheckpointEvery,
    CheckpointFolder,
    EngineName,
    Scheduler,
    aggregate_on_dask,
    check_engine,
    refuse_on_dask,
)
from rarevote.cli.options.fit import FitOptions
from rarevote.cli.options.groups import takes
from rarevote.cli.options.read import Reading
from rarevote.cli.result_rows import ResultFile, check_result_file, result_columns, write_result
from rarevote.cli.show import aligned, percent, reading_files, say, share
from rarevote.errors import InputError, ParameterError

if TYPE_CHECKING:
    from rarevote.methods.base import Estimator

EXAMPLES = """Examples:

rarevote aggregate labels.csv --out result.csv

rarevote aggregate export.csv --columns task=image,worker=rater,label=verdict --show text --rare defect -o result.xlsx

rarevote aggregate project-3.json --from label-studio --question quality --out result.parquet

rarevote aggregate part-*.csv.gz --truth truth.csv --set prior=estimate > result.csv

zcat labels.csv.gz | rarevote aggregate - --wide --json --out result.ndjson"""


@takes(Reading, FitOptions, DecisionArguments)
def aggregate(
    reading: Reading,
    fit_options: FitOptions,
    decisions: DecisionArguments,
    out: ResultFile = None,
    rare: Rare = None,
    truth: Annotated[
        str | None, typer.Option(metavar="FILE", help="Known labels to score against; never used in the fit.")
    ] = None,
    model_out: Annotated[
        Path | None,
        typer.Option("--model-out", metavar="FILE", help="Keep what was learned about people, for: rarevote predict."),
    ] = None,
    back_out: Annotated[
        Path | None,
        typer.Option(
            "--back-out", help="Labels as predictions that Label Studio or Argilla imports, for an export of theirs."
        ),
    ] = None,
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate",
            help="Add calibrated probabilities and class shares.",
            rich_help_panel=DecisionArguments.PANEL,
        ),
    ] = False,
    engine: EngineName = "local",
    scheduler: Scheduler = None,
    checkpoint: CheckpointFolder = None,
    checkpoint_every: CheckpointEvery = 10,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with code 3 if the fit did not converge.")] = False,
    spreadsheet_safe: SpreadsheetSafe = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """One label per task: reads the votes, weighs the annotators, writes task, label, confidence, p:<class>."""
    from rarevote.crowd.rare import rare_class

    check_engine(engine, scheduler)
    gold, method = fit_options.gold, fit_options.method
    options = decisions.parse(calibrate=calibrate, has_gold=gold is not None or fit_options.use_gold, out=out)
    if engine == "dask":
        refuse_on_dask(
            truth=truth,
            rare=rare,
            model_out=model_out,
            back_out=back_out,
            spreadsheet_safe=spreadsheet_safe,
            decisions=options.active,
        )
        aggregate_on_dask(
            reading,
            method,
            fit_options.settings,
            out=out,
            gold=gold,
            scheduler=scheduler,
            checkpoint=checkpoint,
            every=checkpoint_every,
            strict=strict,
            quiet=quiet,
            as_json=as_json,
        )
        return
    estimator = fit_options.make()
    kept = _checkpoint_options(estimator, checkpoint, checkpoint_every)
    check_result_file(out, as_json=as_json)
    if model_out is not None:
        _check_model_file(estimator, model_out, out)
    clock = Clock()
    with reading_files(reading.title, quiet=quiet):
        crowd = reading.read()
        known = None if truth is None else crowd.known(truth)
        learned = fit_options.known(crowd, estimator)
    if back_out is not None:
        crowd.check_way_back(back_out)
    # Before the fit, which takes time: a name that is no class is refused. Gold may renumber the classes later.
    rare_name = crowd.annotations.classes[rare_class(crowd.annotations, rare)]
    if not quiet:
        crowd.tell()
    clock.lap("read")
    fit_options.fit(estimator, crowd, learned, quiet=quiet, verbose=verbose, **kept)
    clock.lap("fit")

    rows = result_columns(estimator.annotations_, estimator.posterior_, estimator.label_codes(), crowd.shown)
    applied = None
    if options.active:
        applied = apply_decision(estimator, options, gold=learned, shown=crowd.shown)
        rows = {**rows, **applied.columns}
        clock.lap("decide")
    write_result(rows, out, spreadsheet_safe=spreadsheet_safe)
    if model_out is not None:
        estimator.save(model_out)
        if not quiet:
            say(f"wrote {model_out}: the model, for rarevote predict")
    if back_out is not None:
        crowd.write_back(rows, back_out, method)
        if not quiet:
            say(f"wrote {back_out}")
    clock.lap("write")
    summary = summarise(estimator, method, str(rare_name), clock.seconds)
    if applied is not None:
        summary["decision"] = applied.summary
    if known is not None:
        summary["scores"] = _scores(rows, known, summary["rare"]["class"])
    if as_json:
        typer.echo(json.dumps(summary, ensure_ascii=False, default=str))
    elif not quiet:
        tell(summary, out, verbose=verbose)
        for line in applied.words if applied is not None else ():
            say(line)
    if strict and not estimator.converged_:
        raise typer.Exit(3)


def _checkpoint_options(estimator: Estimator, folder: Path | None, every: int) -> dict[str, Any]:
    """What ``fit`` has to be told to keep itself in a folder."""
    from rarevote.methods.base import EMEstimator

    if folder is None:
        return {}
    if not isinstance(estimator, EMEstimator):
        raise ParameterError(f"--checkpoint is for methods that iterate; {estimator.method_name} is done in one pass")
    return {"checkpoint": folder, "checkpoint_every": every}


def _check_model_file(estimator: Estimator, path: Path, out: Path | None) -> None:
    """Refuse, before the fit, a model that there cannot be or that could not be written."""
    from rarevote.io.write.columns import check_place
    from rarevote.methods.new_tasks import PredictsNewTasks

    if not isinstance(estimator, PredictsNewTasks):
        raise ParameterError(f"--model-out: {estimator.method_name} cannot label new tasks; cc-rasch and others can")
    if out is not None and out.resolve() == path.resolve():
        raise ParameterError(f"--out and --model-out are the same file, {out}")
    check_place(path)


class Clock:
    """Seconds of each part of the work."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        """The part of this name ends here."""
        now = time.perf_counter()
        self.seconds[name], self._last = now - self._last, now


# --------------------------------------------------------------------------------------------------------------------
# what came out


def summarise(estimator: Estimator, method: str, rare: str, seconds: dict[str, float]) -> dict[str, Any]:
    """The result in figures; ``rare`` is the class that matters."""
    import numpy as np

    crowd = estimator.annotations_
    counts = np.bincount(estimator.label_codes(), minlength=crowd.n_classes)
    votes = np.bincount(crowd.label, minlength=crowd.n_classes)
    classes = {
        str(name): {
            "tasks": int(count),
            "share_of_tasks": count / crowd.n_tasks,
            "share_of_votes": float(part / crowd.n_annotations),
        }
        for name, count, part in zip(crowd.classes.tolist(), counts, votes, strict=True)
    }
    return {
        "rare": {"class": rare, **classes[rare]},
        "method": method,
        "parameters": estimator.get_params(),
        "n_tasks": crowd.n_tasks,
        "n_workers": crowd.n_workers,
        "n_annotations": crowd.n_annotations,
        "classes": classes,
        "n_iter": estimator.n_iter_,
        "converged": estimator.converged_,
        "status": estimator.status_,
        "seconds": seconds,
    }


def _scores(rows: dict[str, Any], known: dict[Any, Any], rare: str) -> dict[str, Any]:
    from rarevote.crowd.stored_names import positions_of
    from rarevote.meaning.metrics import score

    place = positions_of(rows["task"], list(known))
    if not (place >= 0).any():
        raise InputError("the truth names none of the tasks: check ids")
    true = [label for label, number in zip(known.values(), place.tolist(), strict=True) if number >= 0]
    found = score(true, rows["label"][place[place >= 0]].tolist(), unanswered="")
    recall = {str(name): value for name, value in found.recall.items()}
    precision = {str(name): value for name, value in found.precision.items()}
    return {
        "n_items": found.n_items,
        "rare_class": rare,
        "rare_recall": recall.get(rare),
        "rare_precision": precision.get(rare),
        "minority_class": found.minority_class,
        "minority_recall": found.minority_recall,
        "balanced_accuracy": found.balanced_accuracy,
        "macro_f1": found.macro_f1,
        "accuracy": found.accuracy,
        "recall": recall,
        "precision": precision,
        "truth_without_labels": len(known) - len(true),
    }


def tell(summary: dict[str, Any], out: Path | None, *, verbose: bool = False) -> None:
    """The summary for a person, on stderr; the rare class comes first."""
    rare = summary["rare"]
    say()
    say(
        f"{rare['class']} (the rare class): {rare['tasks']:,} of {summary['n_tasks']:,} tasks "
        f"({percent(rare['share_of_tasks'])}), with {percent(rare['share_of_votes'])} of the votes"
    )
    if "scores" in summary:
        _tell_scores(summary["scores"])
    say()
    ordered = sorted(summary["classes"].items(), key=lambda entry: entry[0] != rare["class"])
    say(
        aligned(
            ["class", "tasks", "of tasks", "of votes"],
            [
                [name, f"{entry['tasks']:,}", share(entry["share_of_tasks"]), share(entry["share_of_votes"])]
                for name, entry in ordered
            ],
        )
    )
    say()
    seconds = ", ".join(f"{part} {value:.2f} s" for part, value in summary["seconds"].items())
    say(f"{summary['method']}: {summary['n_iter']} iterations, {summary['status']}; {seconds}")
    if verbose:
        parameters = ", ".join(f"{name}={value!r}" for name, value in summary["parameters"].items())
        say(f"parameters: {parameters or 'none'}")
    if out is not None:
        say(f"wrote {out}")


def _tell_scores(scores: dict[str, Any]) -> None:
    parts = [
        f"{what} of {scores['rare_class']} {value:.3f}"
        for what, value in (("recall", scores["rare_recall"]), ("precision", scores["rare_precision"]))
        if value is not None
    ]
    parts += [
        f"balanced accuracy {scores['balanced_accuracy']:.3f}",
        f"macro-F1 {scores['macro_f1']:.3f}",
        f"accuracy {scores['accuracy']:.3f}",
    ]
    say(f"against the truth of {scores['n_items']:,} tasks: {', '.join(parts)}")
    if scores["truth_without_labels"]:
        say(f"{scores['truth_without_labels']:,} tasks of the truth have no annotations and were not scored")
