"""``rarevote score``: an existing result against the truth."""

from __future__ import annotations

from typing import Any

import click

from rarevote.cli.each import begin
from rarevote.cli.options.output import talk_options
from rarevote.cli.options.reading import columns_option
from rarevote.cli.options.verb import argument, verb
from rarevote.cli.show import aligned, say, share, tell, tell_json, told_classes, unanswered_words
from rarevote.crowd.words import counted


@verb(
    "rarevote score result.csv --truth truth.csv",
    "rarevote score result.parquet --truth truth.csv --rare defect --json",
    "rarevote score other-tool.csv --columns task=image,label=verdict --truth truth.csv",
)
@argument("result", metavar="RESULT", help="The result: task, label and, optionally, p:<class>.")
@click.option("--truth", metavar="FILE", required=True, help="Truth: labels to score against (task, label).")
@click.option("--rare", metavar="CLASS", help="The class that matters. Default: the least frequent true class.")
@columns_option
@talk_options
def score(result: str, truth: str, rare: str | None, columns: dict[str, str] | None, as_json: bool) -> None:
    """Score a result against the truth: recall of every class, balanced accuracy, macro-F1, log loss, calibration."""
    from rarevote.scoring.compare import score_result

    summary = score_result(result, truth, rare=rare, columns=columns)
    if as_json:
        tell_json(summary)
        return
    for name, one in ({"": summary} if "n_items" in summary else summary).items():
        begin(name)
        _tell(one)
        _tell_left_out(one)


def _tell(summary: dict[str, Any]) -> None:
    rare = summary["rare_class"]

    tell(f"against the truth of {counted(summary['n_items'], 'task')}")
    names, left_out = told_classes(summary["n_true"], rare)
    rows = [
        [
            f"{name} (rare)" if name == rare else name,
            f"{summary['n_true'][name]:,}",
            f"{summary['n_labelled'][name]:,}",
            share(summary["recall"].get(name)),
            share(summary["precision"].get(name)),
        ]
        for name in names
    ]
    tell(aligned(["class", "true", "labelled", "recall", "precision"], rows))
    if left_out:
        tell(left_out)
    tell()
    figures = [[name, share(summary[key])] for name, key in (
        ("balanced accuracy", "balanced_accuracy"), ("macro-F1", "macro_f1"), ("accuracy", "accuracy"))]  # fmt: skip
    for start, scores in summary["probabilities"].items():
        whose = "" if start == "p" else f" of {start} probabilities"
        figures.append([f"log loss{whose}", share(scores["log_loss"])])
        figures.append([f"calibration error{whose}", share(scores["calibration_error"])])
    tell(aligned(["figure", "value"], figures))


def _tell_left_out(summary: dict[str, Any]) -> None:
    if summary["n_unanswered"]:
        say(unanswered_words(summary["n_unanswered"]))
    if summary["truth_without_result"]:
        say(f"not scored: {counted(summary['truth_without_result'], 'task')} of the truth without a result")
    if summary["result_without_truth"]:
        say(f"not scored: {counted(summary['result_without_truth'], 'task')} of the result without a truth")
    if not summary["probabilities"]:
        say("no log loss or calibration: the result has no columns p:<class>")
