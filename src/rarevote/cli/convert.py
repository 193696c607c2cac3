"""``rarevote convert``: a labelling platform's export as plain rows, without aggregating."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rarevote.cli.options.output import check_result_file, spreadsheet_option, talk_options, write_result
from rarevote.cli.options.reading import with_export
from rarevote.cli.options.verb import PATH, argument, file_option, verb
from rarevote.cli.show import export_summary, say, tell_export, tell_json, tell_notes, warn
from rarevote.crowd.population import unvoted_note
from rarevote.errors import InputError


@verb(
    "rarevote convert project-3.json --out labels.csv",
    "rarevote convert Batch_42.csv --from mturk --question sentiment --show text --out labels.csv",
    "rarevote convert export.zip --multilabel --out labels.parquet --json",
)
@with_export
@argument("export", type=PATH, help="The export: a file, a zip, or a folder.")
@file_option("--out", "-o", help="File for the rows, such as labels.csv. Default: stdout.")
@file_option("--gold-out", help="File for the gold (task, label).")
@spreadsheet_option
@talk_options
def convert(
    options: dict[str, Any],
    *,
    export: Path,
    out: Path | None,
    gold_out: Path | None,
    spreadsheet_safe: bool,
    as_json: bool,
) -> None:
    """Convert a platform's export to rows of task, worker and label; show what was left out and why."""
    from rarevote.io.platforms import read_export
    from rarevote.io.write.columns import write_columns

    check_result_file(out, as_json=as_json)
    check_result_file(gold_out)
    options["show"] = [name for names in options["show"] for name in names.split(",")]
    found = read_export(export, **options)
    for caution in found.cautions:
        warn(f"{export}: {caution}")
    if gold_out is not None and not found.gold:
        raise InputError(f"{export}: no gold found, so --gold-out has nothing to write")
    rows = _as_arrays(found.columns())
    write_result(rows, out, spreadsheet_safe=spreadsheet_safe, example="labels.csv")
    if gold_out is not None:
        gold = _as_arrays({"task": list(found.gold), "label": list(found.gold.values())})
        write_columns(gold, gold_out, spreadsheet_safe=spreadsheet_safe)
    summary = export_summary(found)
    if as_json:
        tell_json(summary)
    else:
        tell_export(summary)
        tell_notes([*found.notes, *unvoted_note(summary["n_tasks"], summary["n_unvoted"])])
        for path in (out, gold_out):
            if path is not None:
                say(f"wrote {path}")


def _as_arrays(columns: dict[str, list[str]]) -> dict[str, Any]:
    import numpy as np

    return {name: np.array(values, dtype=object) for name, values in columns.items()}
