"""``rarevote convert``: a labelling platform's export as plain rows, without aggregating."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rarevote.cli.options.common import Json, Quiet, Show, SpreadsheetSafe, one_of, write_result
from rarevote.cli.show import aligned, say, share, told_classes, warn
from rarevote.crowd.words import counted
from rarevote.errors import InputError
from rarevote.io.platforms.registry import PLATFORMS

if TYPE_CHECKING:
    from rarevote.io.platforms import Export

EXAMPLES = """Examples:

rarevote convert project-3.json --out labels.csv

rarevote convert Batch_42.csv --from mturk --question sentiment --show text --out labels.csv

rarevote convert export.zip --multilabel --out labels.parquet --json"""

From = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="NAME",
        help=f"The platform: {', '.join(PLATFORMS)}. Detected if not given.",
        autocompletion=one_of(*PLATFORMS),
    ),
]
Question = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Which question, if several were asked; with aggregate, all answers every one of them."
    ),
]
FreeText = Annotated[
    bool, typer.Option("--free-text", help="Take a question although its answers are free text, each a class.")
]
Multilabel = Annotated[
    bool, typer.Option("--multilabel", help="Several choices per answer: make one yes/no problem per choice.")
]
IncludePredictions = Annotated[
    bool,
    typer.Option("--include-predictions", help="Take models' predictions in as further workers (model:<version>)."),
]
PredictionColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--prediction-column",
        metavar="COLUMN",
        help="A column that holds what a model says, such as an LLM judge: a further worker of an export, marked as a "
        "model in a wide table. Repeatable.",
    ),
]
GoldColumn = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="The column with gold, where the format names none.")
]


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
        show=[name for names in show or () for name in names.split(",")],
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
        tell_notes(found.notes)
        for path in (out, gold_out):
            if path is not None:
                say(f"wrote {path}")


def _as_arrays(columns: dict[str, list[str]]) -> dict[str, Any]:
    import numpy as np

    return {name: np.array(values, dtype=object) for name, values in columns.items()}


def export_summary(export: Export) -> dict[str, Any]:
    """What was read from an export, and what was left out and why."""
    from collections import Counter

    return {
        "file": str(export.path),
        "platform": export.platform,
        "platform_title": PLATFORMS[export.platform].title,
        "question": export.question,
        "questions": list(export.questions),
        "n_records": export.n_records,
        "n_rows": len(export),
        "n_tasks": len(set(export.task)),
        "n_workers": len(set(export.worker)),
        "n_repeated": export.n_repeated,
        "n_gold": len(export.gold),
        "labels": dict(Counter(export.label).most_common()),
        "multilabel": export.multilabel,
        "choices": list(export.choices),
        "left_out": export.left_out,
        "notes": [*export.cautions, *export.notes],
    }


def tell_notes(notes: Iterable[str]) -> None:
    """What a person should know about how something was read."""
    for note in notes:
        say(f"rarevote: note: {note}")


def tell_export(summary: dict[str, Any]) -> None:
    """The summary for a person, on stderr."""
    others = [name for name in summary["questions"] if name != summary["question"]]
    beside = f" (also asked: {', '.join(others[:8])}{', ...' if len(others) > 8 else ''})" if others else ""
    say(f"{summary['file']}: {summary['platform_title']}, question {summary['question']}{beside}")
    say(
        f"{counted(summary['n_records'], 'record')}: {counted(summary['n_rows'], 'row')}, "
        f"{counted(summary['n_tasks'], 'task')}, {counted(summary['n_workers'], 'worker')}"
        + (f", {counted(summary['n_gold'], 'gold label')}" if summary["n_gold"] else "")
    )
    if summary["multilabel"]:
        say(f"one yes/no problem for each of {len(summary['choices'])} choices: {', '.join(summary['choices'][:12])}")
    if summary["n_repeated"]:
        say(f"{summary['n_repeated']:,} rows repeat a (task, worker) pair; aggregate --keep last keeps the last")
    if summary["left_out"]:
        say()
        say(aligned(["left out", "answers"], [[why, f"{count:,}"] for why, count in summary["left_out"].items()]))
    say()
    total = max(summary["n_rows"], 1)
    labels = summary["labels"]
    told, left_out = told_classes(labels)
    say(
        aligned(
            ["label", "rows", "of rows"], [[name, f"{labels[name]:,}", share(labels[name] / total)] for name in told]
        )
    )
    if left_out:
        say(left_out)
