"""``rarevote aggregate --question all``: every choice question of an export, a folder with a result for each."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from rarevote.cli.show import aligned, reading_files, say, share
from rarevote.crowd.words import counted
from rarevote.errors import InputError, ParameterError

if TYPE_CHECKING:
    from rarevote.cli.options.common import Reading
    from rarevote.cli.options.fit import FitOptions

_ENDING = ".csv"


def aggregate_all(
    reading: Reading,
    fit_options: FitOptions,
    options: dict[str, Any],
    *,
    out: Path | None,
    with_posterior: bool = False,
    spreadsheet_safe: bool = False,
    quiet: bool = False,
    as_json: bool = False,
    **single: Any,
) -> bool:
    """Aggregate the answers to every question; returns whether all fits converged and all crowds can answer.

    Args:
        **single: options that are about one question; whichever is given is refused.
    """
    from rarevote.io.read.crowd import read_each
    from rarevote.io.write.atomic import appearing

    folder = _checked(out, single)
    with reading_files(reading.title, quiet=quiet):
        crowds = read_each(list(reading.labels), reading.options())
    summaries: dict[str, dict[str, Any]] = {}
    sound = True
    with appearing(folder) as made:
        names = _file_names(list(crowds))
        for question, crowd in crowds.items():
            fitted = fit_options.fit(crowd, fit_options.make(), quiet=quiet)
            result = fitted.decide(**options)
            result.write(made / names[question], with_posterior=with_posterior, spreadsheet_safe=spreadsheet_safe)
            summaries[question] = {**result.summary(expected=as_json), "file": str(folder / names[question])}
            sound &= fitted.method.converged_ and not result.cannot_answer
    if as_json:
        typer.echo(json.dumps(summaries, ensure_ascii=False, default=str))
    elif not quiet:
        _tell(reading.title, summaries, {name: crowd.notes for name, crowd in crowds.items()})
        say(f"wrote {folder}: {counted(len(summaries), 'result')}")
    return sound


def _checked(out: Path | None, single: dict[str, Any]) -> Path:
    if out is None:
        raise ParameterError("--question all writes a folder with a result for each question: say which with --out")
    if out.suffix or out.is_file():
        raise ParameterError(f"--question all writes a folder, and --out {out} looks like a file")
    if out.is_dir() and any(out.iterdir()):
        raise InputError(f"{out}: the folder is not empty; name a new one")
    for name, value in single.items():
        if value:
            raise ParameterError(
                f"--{name.replace('_', '-')} is about one question: name it in place of --question all"
            )
    return out


def _file_names(questions: list[str]) -> dict[str, str]:
    """A file for each question, called as it is, as far as every system takes such a name."""
    names: dict[str, str] = {}
    for question in questions:
        plain = re.sub(r"[^\w.-]+", "_", question).strip("._")[:60] or "question"
        taken = {name.casefold() for name in names.values()}
        number, free = 1, f"{plain}{_ENDING}"
        while free.casefold() in taken:
            number += 1
            free = f"{plain}-{number}{_ENDING}"
        names[question] = free
    return names


def _tell(title: str, summaries: dict[str, dict[str, Any]], notes: dict[str, tuple[str, ...]]) -> None:
    found = counted(len(summaries), "question that looks like a choice", "questions that look like a choice")
    say(f"{title}: {found}")
    for name, said in notes.items():
        for note in said:
            say(f"rarevote: note: {name}: {note}")
    rows = [
        [
            question,
            f"{one['n_annotations']:,}",
            f"{one['n_tasks']:,}",
            f"{len(one['classes'])}",
            one["rare"]["class"],
            share(one["rare"]["share_of_tasks"]),
        ]
        for question, one in summaries.items()
    ]
    say(aligned(["question", "votes", "tasks", "classes", "rare class", "of tasks"], rows))
