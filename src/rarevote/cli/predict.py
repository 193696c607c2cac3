"""``rarevote predict``: new tasks with a model that ``rarevote aggregate --model-out`` kept."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rarevote.cli.options.common import Json, Quiet, SpreadsheetSafe
from rarevote.cli.options.groups import takes
from rarevote.cli.options.read import Reading
from rarevote.cli.result_rows import ResultFile, check_result_file, result_columns, write_result
from rarevote.cli.show import aligned, reading_files, say, share

if TYPE_CHECKING:
    from rarevote.crowd.annotations import Annotations

EXAMPLES = """Examples:

rarevote aggregate labels.csv --model-out crowd.model --out result.csv

rarevote predict crowd.model new-labels.csv --out new-result.csv

rarevote predict crowd.model today-*.parquet --show image --json --out new-result.ndjson"""


@takes(Reading)
def predict(
    reading: Reading,
    model: Annotated[
        Path, typer.Argument(help="The model, as aggregate --model-out wrote it.", metavar="MODEL", show_default=False)
    ],
    out: ResultFile = None,
    spreadsheet_safe: SpreadsheetSafe = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """New tasks of people that a model knows: their votes are weighed as the fit learned, and nothing is fitted."""
    from rarevote.methods.saved import load

    check_result_file(out, as_json=as_json)
    fitted = load(model)
    with reading_files(reading.title, quiet=quiet):
        crowd = reading.read()
    if not quiet:
        crowd.tell()
    found = fitted.label_new(_named_alike(crowd.annotations, fitted.annotations_))
    votes = found.annotations
    write_result(
        result_columns(votes, found.posterior, found.codes, crowd.shown), out, spreadsheet_safe=spreadsheet_safe
    )
    counts = {str(name): int((found.codes == k).sum()) for k, name in enumerate(votes.classes.tolist())}
    summary = {
        "method": fitted.method_name,
        "parameters": fitted.get_params(),
        "n_tasks": votes.n_tasks,
        "n_workers": votes.n_workers,
        "n_unknown_workers": found.n_unseen_workers,
        "n_annotations": votes.n_annotations,
        "classes": counts,
    }
    if as_json:
        typer.echo(json.dumps(summary, ensure_ascii=False, default=str))
    elif not quiet:
        _tell(summary, out)


def _named_alike(crowd: Annotations, fitted: Annotations) -> Annotations:
    """The votes with names of the kind that the model has: text says "7" where Parquet or JSON says 7."""
    from rarevote.crowd.names import as_name_array, in_kind

    workers = in_kind(crowd.workers.tolist(), fitted.workers)
    classes = in_kind(crowd.classes.tolist(), fitted.classes)
    return replace(crowd, workers=as_name_array(workers), classes=as_name_array(classes))


def _tell(summary: dict[str, Any], out: Path | None) -> None:
    total = summary["n_tasks"]
    say()
    say(
        aligned(
            ["class", "tasks", "of tasks"], [[n, f"{c:,}", share(c / total)] for n, c in summary["classes"].items()]
        )
    )
    say()
    strangers = summary["n_unknown_workers"]
    if strangers:
        say(
            f"{strangers:,} of {summary['n_workers']:,} workers are new to the model and count as average: the more of "
            "them, the better it is to fit again"
        )
    else:
        say(f"all {summary['n_workers']:,} workers are known to the model ({summary['method']})")
    if out is not None:
        say(f"wrote {out}")
