"""The result of verbs that label tasks: one row per task, to a file or to standard output."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rarevote.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rarevote.crowd.annotations import Annotations

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


def result_columns(
    crowd: Annotations, posterior: NDArray[Any], codes: NDArray[Any], shown: Mapping[str, NDArray[Any]]
) -> dict[str, Any]:
    """One row per task: task, label, confidence, the probability of every class, then what is shown."""
    import numpy as np

    rows: dict[str, Any] = {
        "task": crowd.tasks,
        "label": crowd.classes[codes],
        "confidence": np.take_along_axis(posterior, codes[:, None], axis=1)[:, 0],
    }
    for k, name in enumerate(crowd.classes.tolist()):
        rows[f"p:{name}"] = posterior[:, k]
    for name, texts in shown.items():
        rows[name if name not in rows else f"show:{name}"] = texts
    return rows


def write_result(rows: Mapping[str, Any], out: Path | None, *, spreadsheet_safe: bool) -> None:
    """Rows to the file, or to standard output."""
    from rarevote.io.write.columns import write_columns, write_rows

    if out is None:
        write_rows(rows, sys.stdout, spreadsheet_safe=spreadsheet_safe)
    else:
        write_columns(rows, out, spreadsheet_safe=spreadsheet_safe)
