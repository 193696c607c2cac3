"""``rarevote convert``: a labelling platform's export as plain rows, without aggregating."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from rarevote.cli.options.common import (
    FreeText,
    From,
    GoldColumn,
    IncludePredictions,
    Json,
    Multilabel,
    PredictionColumns,
    Question,
    Quiet,
    Show,
    SpreadsheetSafe,
    examples,
    write_result,
)
from rarevote.cli.show import export_summary, say, tell_export, tell_notes, warn
from rarevote.crowd.population import unvoted_note
from rarevote.errors import InputError

EXAMPLES = examples(
    "rarevote convert project-3.json --out labels.csv",
    "rarevote convert Batch_42.csv --from mturk --question sentiment --show text --out labels.csv",
    "rarevote convert export.zip --multilabel --out labels.parquet --json",
)


def convert(
    export: Annotated[Path, typer.Argument(help="The export: a file, a zip, or a folder.", show_default=False)],
    platform: From = None,
    question: Question = None,
    multilabel: Multilabel = False,
    include_predictions: IncludePredictions = False,
    prediction_columns: PredictionColumns = None,
    show: Show = None,
    gold_column: GoldColumn = None,
    free_text: FreeText = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File for the rows, such as labels.csv. Without it: stdout.")
    ] = None,
    gold_out: Annotated[Path | None, typer.Option(help="File for the gold (task, label).")] = None,
    spreadsheet_safe: SpreadsheetSafe = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """A platform's export as rows: task, worker, label. Says what was read, what was left out, and why."""
    from rarevote.io.platforms import read_export
    from rarevote.io.write.columns import check_ending, write_columns

    for path in (out, gold_out):
        if path is not None:
            check_ending(path)
            if not path.parent.is_dir():
                raise InputError(f"{path}: cannot be written (no such folder)")
    if out is None and as_json:
        raise InputError("--json writes a summary to stdout: say with --out where the rows should go")
    found = read_export(
        export,
        platform=platform,
        question=question,
        multilabel=multilabel,
        include_predictions=include_predictions,
        prediction_columns=prediction_columns or (),
        show=show or (),
        gold_column=gold_column,
        free_text=free_text,
    )
    for caution in found.cautions:
        warn(f"{export}: {caution}")
    if gold_out is not None and not found.gold:
        raise InputError(f"{export}: no gold was found, so there is nothing for --gold-out")
    rows = _as_arrays(found.columns())
    write_result(rows, out, spreadsheet_safe=spreadsheet_safe, quiet=quiet, example="labels.csv")
    if gold_out is not None:
        gold = _as_arrays({"task": list(found.gold), "label": list(found.gold.values())})
        write_columns(gold, gold_out, spreadsheet_safe=spreadsheet_safe)
    summary = export_summary(found)
    if as_json:
        typer.echo(json.dumps(summary, ensure_ascii=False))
    elif not quiet:
        tell_export(summary)
        tell_notes([*found.notes, *unvoted_note(summary["n_tasks"], summary["n_unvoted"])])
        for path in (out, gold_out):
            if path is not None:
                say(f"wrote {path}")


def _as_arrays(columns: dict[str, list[str]]) -> dict[str, Any]:
    import numpy as np

    return {name: np.array(values, dtype=object) for name, values in columns.items()}
