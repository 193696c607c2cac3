"""``rarevote aggregate``: one label per task, here or on a cluster (``--engine dask``)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rarevote.cli.each import Outputs, aggregate_each, check_folder, read_questions
from rarevote.cli.options.decisions import DecisionArguments, calibrate_option, with_decisions
from rarevote.cli.options.fit import EngineOptions, FitOptions, with_engine, with_fit_and_find
from rarevote.cli.options.output import (
    check_result_columns,
    check_result_file,
    json_option,
    quiet_option,
    result_option,
    spreadsheet_option,
    strict_option,
    verbose_option,
    write_result,
)
from rarevote.cli.options.reading import Reading, with_reading
from rarevote.cli.options.verb import file_option, flag, verb
from rarevote.cli.show import (
    decision_words,
    is_quiet,
    is_verbose,
    review_words,
    same_command,
    say,
    score_words,
    tell_classes,
    tell_json,
)
from rarevote.crowd.words import counted, listed, percent
from rarevote.errors import ParameterError
from rarevote.io.platforms import PLATFORMS
from rarevote.io.platforms.base import ALL
from rarevote.methods.registry import require_capability, which_methods
from rarevote.progress import fit_steps

if TYPE_CHECKING:
    from rarevote.io.read.crowd import Crowd
    from rarevote.methods.base import Estimator

_TAKE_LABELS = [platform.title for platform in PLATFORMS.values() if platform.takes_labels]
# The options of reading that the dask engine supports; others are refused.
_READ_ON_DASK = ("columns", "classes", "abstain", "keep", "missing")


@verb(
    "rarevote aggregate labels.csv --out result.csv",
    "rarevote aggregate export.csv --columns task=image,worker=rater,label=verdict --show text --rare "
    "defect -o result.xlsx",
    "rarevote aggregate project-3.json --from label-studio --question quality --out result.parquet",
    "rarevote aggregate Batch_42_results.csv --question all --out results/",
    "rarevote aggregate part-*.csv.gz --truth truth.csv --set prior=estimate > result.csv",
    "zcat labels.csv.gz | rarevote aggregate - --wide --json --out result.ndjson",
)
@with_reading
@with_fit_and_find
@with_decisions
@with_engine
@result_option
@click.option("--truth", metavar="FILE", help="Truth: labels to score against; never used in the fit.")
@file_option("--sheet-out", help="With --multilabel: one row per item, one column per choice.")
@file_option(
    "--model-out",
    help=f"Save the fitted model for rarevote predict. With {which_methods('predict')}.",
)
@file_option(
    "--back-out",
    help=f"Write the labels as a file that the platform of the export imports: "
    f"{listed(_TAKE_LABELS, len(_TAKE_LABELS))}.",
)
@file_option(
    "--soft-out",
    help="Write the probabilities of all classes for training: .npz (NumPy) or .parquet.",
)
@flag("--with-posterior", help="Add posterior:<class>, as the method's authors publish it.")
@flag("--with-prior", help="Add prior:<class>, the probability from --features or --pred-probs alone.")
@calibrate_option
@strict_option
@spreadsheet_option
@quiet_option
@verbose_option
@json_option
def aggregate(
    reading: Reading,
    fit_options: FitOptions,
    decisions: DecisionArguments,
    engine: EngineOptions,
    *,
    out: Path | None,
    sheet_out: Path | None,
    truth: str | None,
    model_out: Path | None,
    back_out: Path | None,
    soft_out: Path | None,
    with_posterior: bool,
    with_prior: bool,
    calibrate: bool,
    strict: bool,
    spreadsheet_safe: bool,
    as_json: bool,
) -> None:
    """Read the votes, weight the annotators, and write one label per task with its confidence."""
    deciding = decisions.options(has_gold=fit_options.may_have_gold, grades=fit_options.grades)
    estimator = fit_options.make()
    if with_prior and not fit_options.has_features:
        raise ParameterError("--with-prior needs --features or --pred-probs")
    of_one = {
        "truth": truth,
        "model_out": model_out,
        "back_out": back_out,
        "soft_out": soft_out,
        "max_review": decisions.max_review,
    }
    if engine.engine == "dask":
        require_capability(estimator, "dask", "--engine dask")
        of_one |= {
            "spreadsheet_safe": spreadsheet_safe,
            "gold_is_random": deciding.pop("random_gold"),
        }
        _refuse(of_one, "does not work with --engine dask")
        _refuse(fit_options.of_features, "does not work with --engine dask: omit one of them")
        deciding |= {"rare": fit_options.rare, "with_posterior": with_posterior, "ordered": fit_options.ordered}
        summary = _on_dask(reading, fit_options, estimator, engine, deciding, out, as_json=as_json)
        return _end(strict, summary)
    if engine.checkpoint is not None:
        require_capability(estimator, "checkpoint", "--checkpoint")
    written = {"with_posterior": with_posterior, "with_prior": with_prior}
    outputs = Outputs(out, sheet_out, back_out, soft_out, written, spreadsheet_safe)
    several = partial(
        aggregate_each,
        fit_options=fit_options,
        estimator=estimator,
        deciding=deciding,
        decisions=decisions,
        outputs=outputs,
        calibrate=calibrate,
        as_json=as_json,
    )
    if reading.options["question"] == ALL:
        check_folder(out)
        of_one |= {"rare": fit_options.rare, "gold": fit_options.gold, "checkpoint": engine.checkpoint}
        _refuse(of_one, "is for one question: name it instead of --question all")
        return _end(strict, *several(read_questions(reading), truth=None))
    check_result_file(out, as_json=as_json)
    _check_further_files(estimator, model_out=model_out, soft_out=soft_out)
    clock = Clock()
    crowd = reading.read()
    if back_out is not None:
        crowd.check_way_back(back_out)
    if crowd.choices:
        from rarevote.io.read.labels import known_by_label

        _refuse({"model_out": model_out, "checkpoint": engine.checkpoint}, "is for one choice: name it with --choice")
        return _end(strict, *several(crowd, truth=None if truth is None else known_by_label(crowd, truth)))
    if sheet_out is not None:
        raise ParameterError("--sheet-out writes a column for each choice: it needs --multilabel")
    known = None if truth is None else crowd.truth(truth)
    clock.lap("read")
    fitted = fit_options.fit(
        crowd,
        estimator,
        check=partial(_check_columns, crowd, decisions, out=out, soft_out=soft_out),
        checkpoint=engine.checkpoint,
        checkpoint_every=engine.checkpoint_every,
    )
    clock.lap("fit")
    result = fitted.decide(**deciding)
    plan = decisions.review(result)
    clock.lap("decide")
    write_result(
        result.columns(with_posterior=with_posterior, with_prior=with_prior), out, spreadsheet_safe=spreadsheet_safe
    )
    soft = result.soft_labels()
    for path, write in ((model_out, fitted.save), (back_out, result.write_back), (soft_out, soft.write)):
        if path is not None:
            write(path)
    clock.lap("write")
    summary = {**result.summary(expected=as_json), "seconds": clock.seconds}
    if as_json and plan is not None:
        figures = {"tasks": len(plan.items), "expected_cost": plan.expected_cost, "saved": plan.saved}
        summary["decision"] = {**summary["decision"], "review": figures}
    if (hint := fitted.order_hint()) is not None:
        again = "" if hint.grades is None else f": {same_command('--ordered', hint.grades.text)}"
        summary["order_hint"] = f"{hint.description}{again}"
    if known is not None:
        summary["scores"] = result.score(known)
    if as_json:
        tell_json(summary)
    elif not is_quiet():
        _tell(summary, out)
        for line in decision_words(result) if decisions.active or calibrate else ():
            say(line)
        if plan is not None:
            say(review_words(plan, decisions.review_out))
        back = _back_words(crowd, out)
        for path, what in (
            (model_out, ": the model, which predict uses for new tasks"),
            (back_out, back),
            (soft_out, ""),
        ):
            if path is not None:
                say(f"wrote {path}{what}")
    return _end(strict, summary)


def _back_words(crowd: Crowd, out: Path | None) -> str:
    """Cautions about a file of labels before it is imported."""
    if crowd.export is None or crowd.export.platform != "label-studio":
        return ""
    return (
        ": for a new project; in the same project it would duplicate the tasks. To add predictions there: "
        f"rarevote push label-studio {out or 'result.csv'} --export {crowd.export.path} --url URL --project NUMBER"
    )


def _refuse(options: Mapping[str, Any], why: str) -> None:
    """Refuse options that were given but do not apply."""
    for name, value in options.items():
        if value:
            raise ParameterError(f"--{name.replace('_', '-')} {why}")


def _end(strict: bool, *summaries: dict[str, Any]) -> None:
    if strict and not all(one["converged"] and not one["cannot_answer"] for one in summaries):
        raise click.exceptions.Exit(3)


def _check_further_files(estimator: Estimator, *, model_out: Path | None, soft_out: Path | None) -> None:
    """Refuse, before the fit, a model that cannot be saved, and files that cannot be written."""
    from rarevote.io.write.columns import check_place
    from rarevote.io.write.soft_labels import check_soft_file

    if soft_out is not None:
        check_soft_file(soft_out)
    if model_out is not None:
        require_capability(estimator, "predict", "--model-out")
        check_place(model_out)


def _check_columns(
    crowd: Crowd, decisions: DecisionArguments, classes: list[Any], *, out: Path | None, soft_out: Path | None
) -> None:
    """Refuse, before the fit, files that cannot have columns for these classes, or for what is shown."""
    from rarevote.decide.columns import result_names
    from rarevote.io.write.soft_labels import check_soft_classes

    check_result_columns(result_names(classes, crowd.shown), out)
    if soft_out is not None:
        check_soft_classes(classes, soft_out)
    decisions.check_columns(crowd)


class Clock:
    """Measures the seconds of each part of the work."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        """End the part with this name."""
        now = time.perf_counter()
        self.seconds[name], self._last = now - self._last, now


# --------------------------------------------------------------------------------------------------------------------
# output


def _tell(summary: dict[str, Any], out: Path | None) -> None:
    """Print the summary on stderr; the rare class comes first."""
    rare = summary["rare"]
    say()
    called = "the rare class" if rare["is_rare"] else "the class that matters"
    flagged = " flagged" if rare.get("is_tail") else ""
    say(
        f"{rare['class']} ({called}): {rare['tasks']:,} of {summary['n_tasks']:,} tasks{flagged} "
        f"({percent(rare['share_of_tasks'], fine=True)}), with {percent(rare['share_of_votes'], fine=True)} "
        "of the votes"
    )
    for line in score_words(summary["scores"]) if "scores" in summary else ():
        say(line)
    say()
    tell_classes(summary["classes"], summary["n_tasks"], rare["class"], summary.get("ordered", ()))
    seconds = ", ".join(f"{part} {value:.2f} s" for part, value in summary["seconds"].items())
    say(f"{summary['method']}: {summary['n_iter']} iterations, {summary['status']}; {seconds}")
    say(f"decided by {summary['decided_by']}")
    if summary["n_guarded"]:
        say(f"{counted(summary['n_guarded'], 'task')}: {summary['guard']} (--allow-unvoted allows such labels)")
    if "nearness" in summary:
        say(f"nearness of the grades {summary['nearness']:.2f} (near 0, the order adds nothing)")
    if "order_hint" in summary:
        say(summary["order_hint"])
    if unvoted := summary.get("features", {}).get("labels_without_a_vote"):
        say(
            f"{counted(unvoted, 'task')}: the label has no votes and comes from the features "
            "(--no-allow-unvoted requires a vote)"
        )
    if is_verbose():
        parameters = ", ".join(f"{name}={value!r}" for name, value in summary["parameters"].items())
        say(f"parameters: {parameters or 'none'}")
    if out is not None:
        say(f"wrote {out}")


# --------------------------------------------------------------------------------------------------------------------
# on a cluster


def _on_dask(
    reading: Reading,
    fit_options: FitOptions,
    estimator: Estimator,
    engine: EngineOptions,
    deciding: dict[str, Any],
    out: Path | None,
    *,
    as_json: bool,
) -> dict[str, Any]:
    """Aggregate on dask; returns the summary."""
    from rarevote.cluster import Dask

    if out is None:
        raise ParameterError("--engine dask writes its results to a folder: name it with --out")
    if out.suffix or out.is_file():
        raise ParameterError(f"--engine dask writes its results to a folder, but --out {out} looks like a file")
    _refuse_unread(reading.options)
    followed = {name: reading.options[name] for name in _READ_ON_DASK}
    cluster = Dask(out, scheduler=engine.scheduler, checkpoint=engine.checkpoint, every=engine.checkpoint_every)
    callback = fit_steps(f"fitting {estimator.method_name}")
    found = cluster.fit(estimator, reading.labels, fit_options.gold, callback=callback, **followed, **deciding)
    if as_json:
        tell_json(found.summary)
    else:
        _tell_dask(found.summary, out)
    return found.summary


def _refuse_unread(options: dict[str, Any]) -> None:
    from rarevote.io.read.options import ReadOptions

    # This engine assumes that every answer is one choice.
    unread = ReadOptions(**{**options, "multilabel": options["multilabel"] or None}).given(
        *(name for name in options if name not in _READ_ON_DASK)
    )
    if unread is not None:
        option = next(one for one in click.get_current_context().command.params if one.name == unread)
        named = (options[unread] is False and option.secondary_opts) or option.opts
        raise ParameterError(
            f"{named[0]} is for a single machine: the dask engine reads Parquet and CSV files with a header (rarevote "
            "convert makes such files)"
        )


def _tell_dask(summary: dict[str, Any], out: Path) -> None:
    say(
        f"{counted(summary['n_annotations'], 'annotation')}, {counted(summary['n_tasks'], 'task')}, "
        f"{counted(summary['n_workers'], 'worker')}, {counted(len(summary['classes']), 'class', 'classes')} in "
        f"{counted(summary['n_shards'], 'shard')}"
    )
    say()
    tell_classes(summary["classes"], summary["n_tasks"], ordered=summary.get("ordered", ()))
    seconds = summary["seconds"]
    say(
        f"{summary['method']}: {summary['n_iter']} iterations, {summary['status']}; "
        f"encode {seconds['encode']:.1f} s, fit {seconds['fit']:.1f} s, decide {seconds['decide']:.1f} s"
    )
    say(f"decided by {summary['decided_by']}")
    say(f"wrote {out}/tasks (one row per task), {out}/summary.json and tables of the workers")
