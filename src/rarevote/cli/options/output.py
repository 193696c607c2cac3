"""The output of a command: where rows are written, and how much is printed."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from rarevote.cli.options.verb import Function, file_option, flag
from rarevote.cli.show import be_verbose, is_quiet, keep_quiet, say
from rarevote.errors import InputError
from rarevote.progress import hide

quiet_option = flag(
    "--quiet",
    "-q",
    expose_value=False,
    callback=keep_quiet,
    help="Print only data and errors.",
)
verbose_option = flag(
    "--verbose",
    "-v",
    expose_value=False,
    callback=be_verbose,
    help="Show parameters, iterations and timings.",
)
json_option = flag("--json", "as_json", help="Print a summary as JSON to stdout.")


def talk_options(function: Function) -> Function:
    """Decorator of a command with the options for quiet output and JSON."""
    return quiet_option(json_option(function))


strict_option = flag("--strict", help="Exit with code 3 if the fit did not converge or the crowd cannot answer.")
spreadsheet_option = flag(
    "--spreadsheet-safe",
    help="In CSV, put an apostrophe before text that a spreadsheet would run as a formula.",
)
top_option = click.option("--top", metavar="N", type=click.IntRange(min=1), default=20, help="Number of rows to show.")
result_option = file_option(
    "--out",
    "-o",
    help="Result file: .csv, .tsv, .json, .ndjson (also .gz, .zst), .parquet, .xlsx or .arrow. "
    "Default: rows go to stdout, unless that is a terminal.",
)


def check_result_file(out: Path | None, *, as_json: bool = False) -> None:
    """Refuse a file that rows cannot be written to, before any work is done."""
    from rarevote.io.write.columns import check_output

    if out is not None:
        check_output(out)
    elif as_json:
        raise InputError("--json prints a summary to stdout: name a file for the rows with --out")


def check_result_columns(names: Iterable[str], out: Path | None) -> None:
    """Refuse columns that the file, or standard output, cannot have, before any work is done."""
    from rarevote.io.write.columns import STANDARD_OUTPUT, check_columns

    if out is not None or not _is_terminal():
        check_columns(names, out or STANDARD_OUTPUT)


def _is_terminal() -> bool:
    """Whether rows for standard output would fill a terminal, so that they are not printed."""
    return sys.stdout.isatty() and not is_quiet()


def write_result(
    rows: Mapping[str, Any], out: Path | None, *, spreadsheet_safe: bool, example: str = "result.csv"
) -> None:
    """Write rows to the file or to standard output; on a terminal, only say how to get them."""
    from rarevote.io.write.columns import write_columns, write_rows

    if out is not None:
        write_columns(rows, out, spreadsheet_safe=spreadsheet_safe)
    elif _is_terminal():
        say(f"rows are not printed to a terminal: write them with --out {example}, or pipe them to less")
    else:
        hide()
        write_rows(rows, sys.stdout, spreadsheet_safe=spreadsheet_safe)
