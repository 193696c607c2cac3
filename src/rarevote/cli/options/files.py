"""The files that options name: before a verb does anything, none of its outputs can be an input or another output.

The check is automatic: every verb gets it, and an option with a path is an input unless it is known as
an output, by its name (``out``, ``..._out``) or by the tables below. An input that would block the verb forever
is also refused here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from rarevote.errors import InputError, ParameterError
from rarevote.io.platforms.base import ALL
from rarevote.io.read.detect import refuse_endless
from rarevote.io.write.overwrite import Output, refuse_colliding, refuse_overwriting

# Outputs of a verb whose names do not show it.
_OUTPUTS = {
    "aggregate": ("checkpoint",),
    "report": ("charts",),
    "demo": ("report",),
    "audit start": ("plan",),
    "audit review": ("offline",),
    "review": ("offline",),
    "audit finish": ("certificate", "page"),
    "datasets fetch": ("cache",),
    "datasets import": ("cache",),
}
# Folders of media: results never have their names, and answers are often stored beside them.
_NEVER_REPLACED = ("media",)
# Inputs or outputs with files beside them: answers, a lock.
_WITH_ANSWERS = ("plan", "audit", "listed")
# A text input, part of which can be a file: `--set weights=FILE`.
_SETTINGS = "settings"
_FILES = re.compile(r"\b(FILE|FOLDER|LABELS)\b")
# Rows are written there unless a file is named, and a shell may have redirected it to one.
_STANDARD_OUTPUT = "/dev/stdout"


def keep_files(context: click.Context) -> None:
    """Refuse outputs of a verb that are inputs or other outputs; this counts as wrong usage."""
    verb, given = context.command_path.partition(" ")[2], context.params
    options = {str(one.name): one for one in context.command.params}
    inputs = [one for name, option in options.items() for one in _inputs(verb, option, given.get(name))]
    outputs = {name: _written(verb, name, given) for name in options if _is_output(verb, name)}
    every = []
    try:
        refuse_overwriting(_STANDARD_OUTPUT, inputs, named="standard output")
        for name, path in outputs.items():
            if path is not None:
                option = options[name].opts[0]
                refuse_overwriting(path, inputs, named=f"{option} {path}", replaced=_replaced(verb, name, given))
                every.append(Output(option, path, _names_in(verb, name, given)))
        refuse_colliding([*every, Output("standard output", Path(_STANDARD_OUTPUT)), *_side_files(given)])
    except InputError as error:
        raise ParameterError(str(error)) from None


def _is_output(verb: str, name: str) -> bool:
    return name == "out" or name.endswith("_out") or name in _OUTPUTS.get(verb, ())


def _inputs(verb: str, option: click.Parameter, value: Any) -> Iterator[str]:
    """The files that a value names, and those that belong to them."""
    name = str(option.name)
    if value is None or _is_output(verb, name) or name in _NEVER_REPLACED:
        return
    values = [str(one) for one in (value if isinstance(value, (list, tuple)) else (value,))]
    if name == _SETTINGS:
        texts = (one.partition("=")[2] for one in values)
        yield from (text for text in texts if Path(text).is_file())
    elif isinstance(option.type, click.Path) or _FILES.search(option.metavar or ""):
        for one in values:
            refuse_endless(Path(one))
        yield from values
        if name in _WITH_ANSWERS:
            from rarevote.audit.source import files_behind

            yield from (str(file) for one in values if Path(one).is_file() for file in files_behind(Path(one)))


def _side_files(given: Mapping[str, Any]) -> Iterator[Output]:
    """What is written beside a plan or a list, now or later."""
    for name in _WITH_ANSWERS:
        if given.get(name) is not None:
            from rarevote.audit.source import side_files

            for what, path in side_files(Path(given[name])).items():
                yield Output(f"{what} of {given[name]}", path)


def _written(verb: str, name: str, given: Mapping[str, Any]) -> Path | None:
    """The file or folder of an output option."""
    if verb == "datasets import":
        from rarevote.study.datasets import cache_folder

        return cache_folder(given[name]) / str(given["name"])  # only this part of the cache is replaced
    return None if given[name] is None else Path(given[name])


def _names_in(verb: str, name: str, given: Mapping[str, Any]) -> tuple[str, ...]:
    """Patterns of the names that are written or removed in an output that is a folder."""
    if name == "checkpoint":  # on one machine, the folder is removed when the fit is done
        return ("data", "round-*") if given["engine"] == "dask" else ("*",)
    if verb == "watch" and name == "out":
        from rarevote.watch import NAMES

        return NAMES
    if name == "out" and given.get("engine") == "dask":
        return ("tasks", "summary.json", "*.parquet")
    return ("*",) if name == "out" and given.get("question") == ALL else ()


def _replaced(verb: str, name: str, given: Mapping[str, Any]) -> tuple[str, ...]:
    """Endings of what is written or removed in an output that is a folder."""
    if name == "charts":
        return (".svg", ".png")
    if verb == "watch" and name == "out":
        return (".csv", ".json", ".html")
    whole = name in ("checkpoint", "cache") or given.get("engine") == "dask" or given.get("question") == ALL
    return ("",) if whole else ()
