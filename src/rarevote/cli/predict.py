"""``rarevote predict``: new tasks with a model that ``rarevote aggregate --model-out`` saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rarevote.cli.options.fit import with_new_features
from rarevote.cli.options.output import (
    check_result_columns,
    check_result_file,
    result_option,
    spreadsheet_option,
    talk_options,
    write_result,
)
from rarevote.cli.options.reading import Reading, with_optional_reading
from rarevote.cli.options.verb import PATH, argument, verb
from rarevote.cli.show import aligned, percent, say, tell_json, told_classes
from rarevote.crowd.words import counted, part_of
from rarevote.errors import ParameterError


@verb(
    "rarevote aggregate labels.csv --model-out crowd.model --out result.csv",
    "rarevote predict crowd.model new-labels.csv --out new-result.csv",
    "rarevote predict crowd.model today-*.parquet --show image --json --out new-result.ndjson",
    "rarevote predict crowd.model --features new-embeddings.parquet --out new-result.csv",
)
@argument("model", type=PATH, help="The model that aggregate --model-out wrote.")
@with_optional_reading
@with_new_features
@result_option
@spreadsheet_option
@talk_options
def predict(
    reading: Reading,
    given: dict[str, Any],
    *,
    model: Path,
    out: Path | None,
    spreadsheet_safe: bool,
    as_json: bool,
) -> None:
    """Label new tasks with a saved model: annotators keep the weights of the fit, and nothing is fitted."""
    from rarevote.decide.columns import result_names
    from rarevote.features.source import FeatureSource
    from rarevote.methods.new_tasks import load
    from rarevote.methods.new_tasks import predict as predict_new
    from rarevote.methods.unvoted import predict_from_features

    source = FeatureSource(**given)
    if source.is_given == bool(reading.labels):
        raise ParameterError("predict needs either LABELS, or --features or --pred-probs of items without votes")
    check_result_file(out, as_json=as_json)
    fitted = load(model)
    known = fitted.annotations_.classes.tolist()
    if source.is_given:
        check_result_columns(result_names(known, ()), out)
        rows = predict_from_features(fitted, source)
        write_result(rows, out, spreadsheet_safe=spreadsheet_safe)
        labels = rows["label"].tolist()
        summary: dict[str, Any] = {
            "method": fitted.method_name,
            "parameters": fitted.get_params(),
            "n_tasks": len(labels),
            "n_workers": 0,
            "n_unknown_workers": 0,
            "n_annotations": 0,
            "classes": {str(name): labels.count(name) for name in known},
        }
        return tell_json(summary) if as_json else _tell(summary, out)
    crowd = reading.read()
    check_result_columns(result_names([*known, *crowd.annotations.classes.tolist()], crowd.shown), out)
    found, rows = predict_new(fitted, crowd)
    write_result(rows, out, spreadsheet_safe=spreadsheet_safe)
    votes = found.annotations
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
    return tell_json(summary) if as_json else _tell(summary, out)


def _tell(summary: dict[str, Any], out: Path | None) -> None:
    total = summary["n_tasks"]
    say()
    counts = summary["classes"]
    told, left_out = told_classes(counts)
    rows = [[name, f"{counts[name]:,}", percent(counts[name] / total, fine=True)] for name in told]
    say(aligned(["class", "tasks", "of tasks"], rows))
    say(left_out)
    unseen = summary["n_unknown_workers"]
    if not summary["n_annotations"]:
        say("the tasks have no votes: the labels come from features alone")
    elif unseen:
        say(
            f"{part_of(unseen, summary['n_workers'], 'worker', 'is', 'are')} new to the model and weighted as average: "
            "if there are many, fit again"
        )
    else:
        say(f"the model ({summary['method']}) knows all {counted(summary['n_workers'], 'worker')}")
    if out is not None:
        say(f"wrote {out}")
