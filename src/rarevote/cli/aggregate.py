"""``rarevote aggregate``: one label per task, here or on a cluster (``--engine dask``)."""

from __future__ import annotations

import json
import time
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rarevote.cli.options.common import (
    Json,
    Quiet,
    Rare,
    Reading,
    ResultFile,
    SpreadsheetSafe,
    Strict,
    Verbose,
    check_result_file,
    examples,
    takes,
    write_result,
)
from rarevote.cli.options.fit import (
    CheckpointEvery,
    CheckpointFolder,
    DecisionArguments,
    EngineName,
    FitOptions,
    Scheduler,
    check_engine,
)
from rarevote.cli.show import aligned, decision_words, fitting, review_words, say, share, told_classes, unanswered_words
from rarevote.crowd.words import counted, listed, percent
from rarevote.errors import ParameterError
from rarevote.io.platforms import PLATFORMS
from rarevote.io.platforms.base import ALL
from rarevote.methods.registry import require_capability, which_methods

if TYPE_CHECKING:
    from rarevote.io.read.options import ReadOptions
    from rarevote.methods.base import Estimator


EXAMPLES = examples(
    "rarevote aggregate labels.csv --out result.csv",
    "rarevote aggregate export.csv --columns task=image,worker=rater,label=verdict --show text --rare "
    "defect -o result.xlsx",
    "rarevote aggregate project-3.json --from label-studio --question quality --out result.parquet",
    "rarevote aggregate Batch_42_results.csv --question all --out results/",
    "rarevote aggregate part-*.csv.gz --truth truth.csv --set prior=estimate > result.csv",
    "zcat labels.csv.gz | rarevote aggregate - --wide --json --out result.ndjson",
)


_TAKE_LABELS = [platform.title for platform in PLATFORMS.values() if platform.takes_labels]


@takes(Reading, FitOptions, DecisionArguments)
def aggregate(
    reading: Reading,
    fit_options: FitOptions,
    decisions: DecisionArguments,
    out: ResultFile = None,
    rare: Rare = None,
    truth: Annotated[
        str | None, typer.Option(metavar="FILE", help="Truth: labels to score against; never used in the fit.")
    ] = None,
    model_out: Annotated[
        Path | None,
        typer.Option(
            "--model-out",
            metavar="FILE",
            help=f"Keep what was learned about people, for: rarevote predict. With {which_methods('predict')}.",
        ),
    ] = None,
    back_out: Annotated[
        Path | None,
        typer.Option(
            "--back-out",
            metavar="FILE",
            help=f"Labels for the platform of the export to import again: {listed(_TAKE_LABELS, len(_TAKE_LABELS))}.",
        ),
    ] = None,
    soft_out: Annotated[
        Path | None,
        typer.Option(
            "--soft-out", metavar="FILE", help="Probabilities of all classes to train on: .npz (NumPy) or .parquet."
        ),
    ] = None,
    with_posterior: Annotated[
        bool,
        typer.Option("--with-posterior", help="Add posterior:<class>, as the method's authors publish it."),
    ] = False,
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate",
            help="Show class shares, and the recall and precision to expect, with intervals.",
            rich_help_panel=DecisionArguments.PANEL,
        ),
    ] = False,
    engine: EngineName = "local",
    scheduler: Scheduler = None,
    checkpoint: CheckpointFolder = None,
    checkpoint_every: CheckpointEvery = 10,
    strict: Strict = False,
    spreadsheet_safe: SpreadsheetSafe = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """One label per task: reads the votes, weighs the annotators, writes task, label, confidence, p:<class>."""
    check_engine(engine, scheduler)
    options = decisions.options(has_gold=fit_options.may_have_gold, out=out)
    estimator = fit_options.make()
    if engine == "dask":
        refuse_on_dask(
            truth=truth,
            model_out=model_out,
            back_out=back_out,
            soft_out=soft_out,
            spreadsheet_safe=spreadsheet_safe,
            max_review=decisions.max_review,
            gold_is_random=options.pop("random_gold"),
        )
        code = aggregate_on_dask(
            reading,
            estimator,
            out=out,
            gold=fit_options.gold,
            scheduler=scheduler,
            checkpoint=checkpoint,
            every=checkpoint_every,
            quiet=quiet,
            as_json=as_json,
            rare=rare,
            with_posterior=with_posterior,
            **options,
        )
        if strict and code:
            raise typer.Exit(code)
        return
    if checkpoint is not None:
        require_capability(estimator, "checkpoint", "--checkpoint")
    if reading.question == ALL:
        from rarevote.cli.all_questions import aggregate_all

        sound = aggregate_all(
            reading,
            fit_options,
            options,
            out=out,
            with_posterior=with_posterior,
            spreadsheet_safe=spreadsheet_safe,
            quiet=quiet,
            as_json=as_json,
            rare=rare,
            truth=truth,
            gold=fit_options.gold,
            model_out=model_out,
            back_out=back_out,
            soft_out=soft_out,
            checkpoint=checkpoint,
            max_review=decisions.max_review,
        )
        if strict and not sound:
            raise typer.Exit(3)
        return
    check_result_file(out, as_json=as_json)
    _check_further_files(estimator, out=out, model_out=model_out, soft_out=soft_out)
    clock = Clock()
    crowd = reading.read(quiet=quiet)
    if back_out is not None:
        crowd.check_way_back(back_out)
    known = None if truth is None else crowd.truth(truth)
    clock.lap("read")
    fitted = fit_options.fit(
        crowd,
        estimator,
        rare=rare,
        quiet=quiet,
        verbose=verbose,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
    )
    clock.lap("fit")
    result = fitted.decide(**options)
    plan = None
    if decisions.max_review is not None:
        plan = result.review(decisions.max_review, decisions.review_out, form=decisions.review_as)
    clock.lap("decide")
    write_result(result.columns(with_posterior=with_posterior), out, spreadsheet_safe=spreadsheet_safe, quiet=quiet)
    soft = result.soft_labels()
    for path, write in ((model_out, fitted.save), (back_out, result.write_back), (soft_out, soft.write)):
        if path is not None:
            write(path)
    clock.lap("write")
    summary = {**result.summary(expected=as_json), "seconds": clock.seconds}
    if as_json and plan is not None:
        figures = {"tasks": len(plan.items), "expected_cost": plan.expected_cost, "saved": plan.saved}
        summary["decision"] = {**summary["decision"], "review": figures}
    if known is not None:
        summary["scores"] = result.score(known)
    if as_json:
        typer.echo(json.dumps(summary, ensure_ascii=False, default=str))
    elif not quiet:
        tell(summary, out, verbose=verbose)
        for line in decision_words(result) if decisions.active or calibrate else ():
            say(line)
        if plan is not None:
            say(review_words(plan, decisions.review_out))
        for path, what in ((model_out, ": the model, for rarevote predict"), (back_out, ""), (soft_out, "")):
            if path is not None:
                say(f"wrote {path}{what}")
    if strict and not (estimator.converged_ and not result.cannot_answer):
        raise typer.Exit(3)


def _check_further_files(
    estimator: Estimator, *, out: Path | None, model_out: Path | None, soft_out: Path | None
) -> None:
    """Refuse, before the fit, a model that there cannot be, and files that could not be written."""
    from rarevote.io.write.columns import check_place
    from rarevote.meaning.soft_labels import check_soft_file

    for option, path in (("--model-out", model_out), ("--soft-out", soft_out)):
        if path is not None and out is not None and out.resolve() == path.resolve():
            raise ParameterError(f"--out and {option} are the same file, {out}")
    if soft_out is not None:
        check_soft_file(soft_out)
    if model_out is not None:
        require_capability(estimator, "predict", "--model-out")
        check_place(model_out)


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


def tell(summary: dict[str, Any], out: Path | None, *, verbose: bool = False) -> None:
    """The summary for a person, on stderr; the rare class comes first."""
    rare = summary["rare"]
    say()
    called = "the rare class" if rare["is_rare"] else "the class that matters"
    say(
        f"{rare['class']} ({called}): {rare['tasks']:,} of {summary['n_tasks']:,} tasks "
        f"({percent(rare['share_of_tasks'], fine=True)}), with {percent(rare['share_of_votes'], fine=True)} "
        "of the votes"
    )
    if "scores" in summary:
        _tell_scores(summary["scores"])
    say()
    classes = summary["classes"]
    told, left_out = told_classes({name: one["share_of_votes"] for name, one in classes.items()}, rare["class"])
    rows = [
        [name, f"{one['tasks']:,}", share(one["share_of_tasks"]), share(one["share_of_votes"])]
        for name, one in ((name, classes[name]) for name in told)
    ]
    say(aligned(["class", "tasks", "of tasks", "of votes"], rows))
    say(left_out)
    if left_out:
        say()
    seconds = ", ".join(f"{part} {value:.2f} s" for part, value in summary["seconds"].items())
    say(f"{summary['method']}: {summary['n_iter']} iterations, {summary['status']}; {seconds}")
    say(f"decided by {summary['decided_by']}")
    if summary["n_guarded"]:
        say(
            f"{counted(summary['n_guarded'], 'task')}: the top label had no votes, so the best voted label was used "
            "(--allow-unvoted lifts that)"
        )
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
    if scores["n_unanswered"]:
        say(unanswered_words(scores["n_unanswered"]))
    if scores["truth_without_labels"]:
        say(f"{scores['truth_without_labels']:,} tasks of the truth have no annotations and were not scored")


# What the dask engine follows of how to read; anything else is refused.
_READ_ON_DASK = ("columns", "classes", "abstain", "keep", "missing")


def refuse_on_dask(**options: Any) -> None:
    """Refuse options of ``aggregate`` that only a single machine follows."""
    for name, value in options.items():
        if value:
            raise ParameterError(f"--{name.replace('_', '-')} is for a single machine, not for --engine dask")


def aggregate_on_dask(
    reading: Reading,
    estimator: Estimator,
    *,
    out: Path | None,
    gold: str | None = None,
    scheduler: str | None = None,
    checkpoint: Path | None = None,
    every: int = 10,
    quiet: bool = False,
    as_json: bool = False,
    **deciding: Any,
) -> int:
    """Aggregate on dask; returns 3 if the fit did not converge or the crowd cannot answer.

    Args:
        **deciding: how to decide, as for :meth:`rarevote.cluster.Dask.fit`.
    """
    from rarevote.cluster import Dask

    if out is None:
        raise ParameterError("--engine dask writes its results to a folder: say which with --out")
    if out.suffix or out.is_file():
        raise ParameterError(f"--engine dask writes its results to a folder, and --out {out} looks like a file")
    options = reading.options()
    _refuse_unread(options)
    engine = Dask(out, scheduler=scheduler, checkpoint=checkpoint, every=every)
    with fitting(f"fitting {estimator.method_name}", quiet=quiet) as callback:
        followed = {name: getattr(options, name) for name in _READ_ON_DASK}
        result = engine.fit(estimator, list(reading.labels), gold, callback=callback, **followed, **deciding)
    if as_json:
        typer.echo(json.dumps(result.summary, ensure_ascii=False, default=str))
    elif not quiet:
        _tell(result.summary, out)
    return 0 if result.summary["converged"] and not result.summary["cannot_answer"] else 3


def _refuse_unread(options: ReadOptions) -> None:
    unread = options.given(*(one.name for one in fields(options) if one.name not in _READ_ON_DASK))
    if unread is not None:
        names = {"file_format": "format", "has_header": "no_header", "platform": "from"}
        option = names.get(unread, unread.replace("_columns", "_column")).replace("_", "-")
        raise ParameterError(
            f"--{option} is for a single machine: the dask engine reads Parquet and CSV files with a header "
            "(rarevote convert makes such files)"
        )


def _tell(summary: dict[str, Any], out: Path) -> None:
    say(
        f"{summary['n_annotations']:,} annotations, {summary['n_tasks']:,} tasks, {summary['n_workers']:,} workers, "
        f"{len(summary['classes'])} classes in {summary['n_shards']:,} shards"
    )
    say()
    classes = summary["classes"]
    told, left_out = told_classes({name: one["share_of_votes"] for name, one in classes.items()})
    rows = [
        [name, f"{one['tasks']:,}", share(one["share_of_tasks"]), share(one["share_of_votes"])]
        for name, one in ((name, classes[name]) for name in told)
    ]
    say(aligned(["class", "tasks", "of tasks", "of votes"], rows))
    say(left_out)
    seconds = summary["seconds"]
    say(
        f"{summary['method']}: {summary['n_iter']} iterations, {summary['status']}; "
        f"encode {seconds['encode']:.1f} s, fit {seconds['fit']:.1f} s, decide {seconds['decide']:.1f} s"
    )
    say(f"decided by {summary['decided_by']}")
    say(f"wrote {out}/tasks (one row per task), {out}/summary.json and tables of the workers")
