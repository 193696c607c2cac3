"""Where the rows of a verb that labels tasks go: a file, or standard output."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from rarevote.errors import InputError

ResultFile = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        help="Result file: .csv, .tsv, .json, .ndjson (also .gz, .zst), .parquet, .xlsx or .arrow. "
        "Without it rows go to stdout.",
    ),
]


def check_result_file(out: Path | None, *, as_json: bool) -> None:
    """Refuse, before any work is done, a place that rows could not go to in the end."""
    from rarevote.io.write.columns import check_output

    if out is not None:
        check_output(out)
    elif as_json:
        raise InputError("--json writes a summary to stdout: say with --out where the rows should go")


def write_result(rows: Mapping[str, Any], out: Path | None, *, spreadsheet_safe: bool) -> None:
    """Rows to the file, or to standard output."""
    from rarevote.io.write.columns import write_columns, write_rows

    if out is None:
        write_rows(rows, sys.stdout, spreadsheet_safe=spreadsheet_safe)
    else:
        write_columns(rows, out, spreadsheet_safe=spreadsheet_safe)
