"""``rarevote aggregate --question all``: every choice question of an export, a folder with a result for each."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rarevote.cli.progress import reading_files
from rarevote.cli.show import aligned, say, share, tell_json
from rarevote.crowd.words import counted
from rarevote.errors import InputError, ParameterError

if TYPE_CHECKING:
    from rarevote.cli.options.fit import FitOptions
    from rarevote.cli.options.reading import Reading

_ENDING = ".csv"


def aggregate_all(
    reading: Reading,
    fit_options: FitOptions,
    deciding: dict[str, Any],
    folder: Path,
    written: dict[str, bool],
    *,
    as_json: bool,
) -> Iterable[dict[str, Any]]:
    """Aggregate the answers to every question; returns the summaries.

    Args:
        deciding: as for :meth:`rarevote.Fitted.decide`.
        folder: where the results go.
        written: as for :meth:`rarevote.Result.write`.
    """
    from rarevote.io.read.crowd import read_each
    from rarevote.io.write.atomic import appearing

    with reading_files(reading.title):
        crowds = read_each(reading.labels, **reading.options)
    summaries: dict[str, dict[str, Any]] = {}
    with appearing(folder) as made:
        names = _file_names(list(crowds))
        for question, crowd in crowds.items():
            result = fit_options.fit(crowd, fit_options.make()).decide(**deciding)
            result.write(made / names[question], **written)
            summaries[question] = {**result.summary(expected=as_json), "file": str(folder / names[question])}
    if as_json:
        tell_json(summaries)
    else:
        _tell(reading.title, summaries, {name: crowd.notes for name, crowd in crowds.items()})
        say(f"wrote {folder}: {counted(len(summaries), 'result')}")
    return summaries.values()


def check_folder(out: Path | None) -> Path:
    """The folder of the results; one that cannot be made is refused."""
    if out is None:
        raise ParameterError("--question all writes a folder with a result for each question: say which with --out")
    if out.suffix or out.is_file():
        raise ParameterError(f"--question all writes a folder, and --out {out} looks like a file")
    if out.is_dir() and any(out.iterdir()):
        raise InputError(f"{out}: the folder is not empty; name a new one")
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
