"""``rarevote aggregate`` on several problems in one crowd: the labels of check boxes, or all questions of an export."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rarevote.cli.options.output import check_result_columns, write_result
from rarevote.cli.show import aligned, decision_words, is_quiet, percent, say, score_words, tell, tell_json
from rarevote.crowd.words import counted
from rarevote.errors import InputError, ParameterError

if TYPE_CHECKING:
    from rarevote.cli.options.decisions import DecisionArguments
    from rarevote.cli.options.fit import FitOptions
    from rarevote.cli.options.reading import Reading
    from rarevote.each import ResultEach
    from rarevote.io.read.crowd import Crowd
    from rarevote.methods.base import Estimator


@dataclass(frozen=True)
class Outputs:
    """The files of the results.

    Attributes:
        out: the rows of all labels, or a folder with a file for each question.
        sheet_out: one row per item, one column per problem.
        back_out: labels for the platform.
        soft_out: probabilities to train on.
        written: as for :meth:`rarevote.Result.columns`.
        spreadsheet_safe: whether to prevent text from being a formula.
    """

    out: Path | None
    sheet_out: Path | None
    back_out: Path | None
    soft_out: Path | None
    written: dict[str, bool]
    spreadsheet_safe: bool


def read_questions(reading: Reading) -> dict[str, Crowd]:
    """Read the crowd of every question, and print notes about each."""
    from rarevote.io.read.crowd import read_each

    crowds = read_each(reading.labels, **reading.options)
    found = counted(len(crowds), "question with choices", "questions with choices")
    say(f"{reading.title}: {found}")
    for name, crowd in crowds.items():
        for note in crowd.notes:
            say(f"rarevote: note: {name}: {note}")
    return crowds


def aggregate_each(
    data: Crowd | Mapping[str, Crowd],
    fit_options: FitOptions,
    estimator: Estimator,
    deciding: dict[str, Any],
    decisions: DecisionArguments,
    outputs: Outputs,
    *,
    truth: dict[str, dict[Any, Any]] | None,
    calibrate: bool,
    as_json: bool,
) -> list[dict[str, Any]]:
    """Aggregate the answers to every problem; returns the summaries.

    Args:
        data: a crowd with several labels, or the crowds of questions.
        deciding: as for :meth:`rarevote.Fitted.decide`.
        truth: the truth by label.
    """
    _check_columns(data, fit_options, outputs)
    fitted = fit_options.fit_each(data, estimator)
    result = fitted.decide(**deciding)
    plans = None if decisions.max_review is None else result.review(
        decisions.max_review, decisions.review_out, form=decisions.review_as
    )  # fmt: skip
    files = _write(result, outputs)
    summaries = result.summary(expected=as_json)
    for name, file in files.items():
        summaries[name]["file"] = str(file)
    for name, scores in ({} if truth is None else result.score(truth)).items():
        summaries[name]["scores"] = scores
    for name, plan in (plans or {}).items():
        if as_json:
            figures = {"tasks": len(plan.items), "expected_cost": plan.expected_cost, "saved": plan.saved}
            summaries[name]["decision"]["review"] = figures
    if as_json:
        tell_json(summaries)
    elif not is_quiet():
        say()
        say(overview(result))
        for name, one in summaries.items():
            _tell(name, one, result, details=decisions.active or calibrate)
        if plans is not None:
            listed = sum(len(plan.items) for plan in plans.values())
            say(f"wrote {counted(listed, 'task')} to review to {decisions.review_out}, for each {fitted.by}")
        for path in (outputs.out, outputs.sheet_out, outputs.back_out, outputs.soft_out):
            if path is not None:
                say(f"wrote {path}" + (f": {counted(len(files), 'result')}" if path == outputs.out and files else ""))
    return list(summaries.values())


def _check_columns(data: Crowd | Mapping[str, Crowd], fit_options: FitOptions, outputs: Outputs) -> None:
    """Refuse, before the fit, files that cannot have columns for these problems, classes, or for what is shown."""
    from rarevote.decide.columns import result_names
    from rarevote.io.read.labels import CHOICE, ITEM
    from rarevote.io.write.columns import check_columns

    crowds = data if isinstance(data, Mapping) else data.by_label
    for name, crowd in crowds.items():
        names = result_names(fit_options.all_classes(crowd), crowd.shown)
        if isinstance(data, Mapping):
            check_columns(names, f"{outputs.out}/{name}.csv", otherwise="name one question and write .xlsx or .arrow")
        else:
            check_result_columns([ITEM, CHOICE, *names], outputs.out)
    if outputs.sheet_out is not None:
        shown = [column for crowd in crowds.values() for column in crowd.shown]
        check_columns(["task", *crowds, *(f"p:{name}" for name in crowds), *shown], outputs.sheet_out)


def _write(result: ResultEach, outputs: Outputs) -> dict[str, Path]:
    """Write all files; returns those of a folder by the name of the problem."""
    files: dict[str, Path] = {}
    if result.fitted.crowd is None:
        assert outputs.out is not None  # check_folder
        files = result.write_folder(outputs.out, spreadsheet_safe=outputs.spreadsheet_safe, **outputs.written)
    else:
        write_result(result.columns(**outputs.written), outputs.out, spreadsheet_safe=outputs.spreadsheet_safe)
    if outputs.sheet_out is not None:
        result.write_sheet(outputs.sheet_out, spreadsheet_safe=outputs.spreadsheet_safe)
    if outputs.back_out is not None:
        result.write_back(outputs.back_out)
    if outputs.soft_out is not None:
        result.soft_labels().write(outputs.soft_out)
    return files


def overview(result: ResultEach) -> str:
    """One line for each problem: its votes and items, its main class, and how many items have it."""
    rows = []
    for name, one in result.parts.items():
        summary, about = one.summary(expected=False), str(result.fitted.positive(name))
        figures = summary["classes"][about]
        rows.append(
            [
                name,
                f"{summary['n_annotations']:,}",
                f"{summary['n_tasks']:,}",
                about,
                percent(figures["share_of_votes"], fine=True),
                f"{figures['tasks']:,}",
                percent(figures["share_of_tasks"], fine=True),
            ]
        )
    return aligned([result.fitted.by, "votes", "items", "class", "of votes", "flagged", "of items"], rows)


def _tell(name: str, summary: dict[str, Any], result: ResultEach, *, details: bool) -> None:
    if "scores" in summary:
        for line in score_words(summary["scores"]):
            say(f"{name}: {line}")
    if details:
        say()
        say(name)
        for line in decision_words(result[name]):
            say(line)


def begin(name: str) -> None:
    """Print the heading for one of several problems; nothing if there is only one."""
    if name:
        tell(f"{name}\n{'=' * len(name)}")


def below_each_other(tables: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The rows of all problems with their names in the first column; unchanged for a single problem."""
    import numpy as np

    from rarevote.io.read.labels import CHOICE
    from rarevote.io.write.columns import joined

    if list(tables) == [""]:
        return dict(tables[""])
    sizes = {name: len(next(iter(table.values()))) for name, table in tables.items()}
    return joined([{CHOICE: np.full(sizes[name], name, dtype=object), **table} for name, table in tables.items()])


def tell_records(records: Mapping[str, Any]) -> None:
    """Print JSON: the record of the only problem, or the records of several by name."""
    tell_json(records[""] if list(records) == [""] else records)


def check_folder(out: Path | None) -> Path:
    """The folder of the results; refused if it cannot be created."""
    if out is None:
        raise ParameterError("--question all writes a folder with a result for each question: name it with --out")
    if out.suffix or out.is_file():
        raise ParameterError(f"--question all writes a folder, but --out {out} looks like a file")
    if out.is_dir() and any(out.iterdir()):
        raise InputError(f"{out}: the folder is not empty; name a new one")
    return out
