"""The files that options name: before a verb does anything, none of its outputs can be one of its inputs.

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
from rarevote.io.write.overwrite import refuse_overwriting

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
# A text input, part of which can be a file: `--set weights=FILE`.
_SETTINGS = "settings"
_FILES = re.compile(r"\b(FILE|FOLDER|LABELS)\b")
# Rows are written there unless a file is named, and a shell may have redirected it to one.
_STANDARD_OUTPUT = "/dev/stdout"


def keep_inputs(context: click.Context) -> None:
    """Refuse outputs of a verb that are inputs; this counts as wrong usage."""
    verb, given = context.command_path.partition(" ")[2], context.params
    options = {str(one.name): one for one in context.command.params}
    inputs = [one for name, option in options.items() for one in _inputs(verb, option, given.get(name))]
    outputs = {name: _written(verb, name, given) for name in options if _is_output(verb, name)}
    try:
        refuse_overwriting(_STANDARD_OUTPUT, inputs, named="standard output")
        for name, path in outputs.items():
            if path is not None:
                named = f"{options[name].opts[0]} {path}"
                refuse_overwriting(path, inputs, named=named, replaced=_replaced(verb, name, given))
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
        if name in ("plan", "audit", "listed"):
            from rarevote.audit.source import files_behind

            yield from (str(file) for one in values if Path(one).is_file() for file in files_behind(Path(one)))


def _written(verb: str, name: str, given: Mapping[str, Any]) -> Path | None:
    """The files of an output option, given or default."""
    if verb == "datasets import":
        from rarevote.study.datasets import cache_folder

        return cache_folder(given[name]) / str(given["name"])  # only this part of the cache is replaced
    return None if given[name] is None else Path(given[name])


def _replaced(verb: str, name: str, given: Mapping[str, Any]) -> tuple[str, ...]:
    """Endings of what is written or removed in an output that is a folder."""
    if name == "charts":
        return (".svg", ".png")
    if verb == "watch" and name == "out":
        return (".csv", ".json", ".html")
    whole = name in ("checkpoint", "cache") or given.get("engine") == "dask" or given.get("question") == ALL
    return ("",) if whole else ()
