"""``rarevote score``: a result that is there already, against known answers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rarevote.cli.options.common import Columns, Json, Quiet, parse_columns
from rarevote.cli.show import aligned, say, share, tell
from rarevote.errors import InputError, ParameterError

if TYPE_CHECKING:
    from rarevote.io.read.results import ResultFile

EXAMPLES = """Examples:

rarevote score result.csv --truth truth.csv

rarevote score result.parquet --truth truth.csv --rare defect --json

rarevote score other-tool.csv --columns task=image,label=verdict --truth truth.csv"""

_SHOWN_CLASSES = 20


def score(
    result: Annotated[str, typer.Argument(help="The result: task, label and, if there, p:<class>.", metavar="RESULT")],
    truth: Annotated[str, typer.Option(metavar="FILE", help="Known labels to score against (task, label).")],
    rare: Annotated[
        str | None,
        typer.Option(metavar="CLASS", help="The class that matters. Default: the least frequent true class."),
    ] = None,
    columns: Columns = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """A result against known answers: recall of every class, balanced accuracy, macro-F1, log loss, calibration."""
    from rarevote.io.read.results import read_result
    from rarevote.io.read.votes import read_truth_file

    found = read_result(result, columns=parse_columns(columns))
    known = {str(task): str(label) for task, label in read_truth_file(truth).items()}
    summary = _summary(found, known, rare, result)
    if as_json:
        typer.echo(json.dumps(summary, ensure_ascii=False))
        return
    _tell(summary)
    if not quiet:
        _tell_left_out(summary)


def _summary(found: ResultFile, known: dict[str, str], rare: str | None, title: str) -> dict[str, Any]:
    from collections import Counter

    from rarevote.meaning.compare import score_probabilities
    from rarevote.meaning.metrics import score as score_labels

    items = [task for task in found.labels if task in known]
    if not items:
        first, other = next(iter(found.labels)), next(iter(known), None)
        raise InputError(
            f"{title}: the truth names none of its tasks ({first!r} there, {other!r} in the truth): check ids"
        )
    true, labels = [known[task] for task in items], [found.labels[task] for task in items]
    scores = score_labels(true, labels, unanswered="")
    recall, precision = (
        {str(name): value for name, value in part.items()} for part in (scores.recall, scores.precision)
    )
    if rare is not None and rare not in {*recall, *precision}:
        raise ParameterError(
            f"rare: no class is called {rare!r}; there are {', '.join(list({**recall, **precision})[:12])}"
        )
    of_interest = str(scores.minority_class) if rare is None else rare
    n_true, n_given = Counter(true), Counter(labels)
    summary: dict[str, Any] = {
        "n_items": scores.n_items,
        "rare_class": of_interest,
        "rare_recall": recall.get(of_interest),
        "rare_precision": precision.get(of_interest),
        "balanced_accuracy": scores.balanced_accuracy,
        "macro_f1": scores.macro_f1,
        "accuracy": scores.accuracy,
        "recall": recall,
        "precision": precision,
        "n_true": {name: n_true[name] for name in {**recall, **precision}},
        "n_labelled": {name: n_given[name] for name in {**recall, **precision}},
        "n_unanswered": n_given[""],
        "truth_without_result": len(known) - len(items),
        "result_without_truth": len(found.labels) - len(items),
        "probabilities": {},
    }
    place = {task: row for row, task in enumerate(found.labels)}
    rows = [place[task] for task in items]
    for begin, table in found.probabilities.items():
        loss, error = score_probabilities(table[rows], found.classes[begin], true, labels)
        summary["probabilities"][begin.removesuffix(":")] = {
            "log_loss": loss,
            "calibration_error": None if error != error else error,  # JSON knows no NaN
        }
    return summary


def _tell(summary: dict[str, Any]) -> None:
    rare = summary["rare_class"]

    def figure(value: float | None) -> str:
        return "-" if value is None else share(value)

    tell(f"against the truth of {summary['n_items']:,} tasks")
    names = sorted(summary["n_true"], key=lambda name: (name != rare, -summary["n_true"][name]))
    rows = [
        [
            f"{name} (rare)" if name == rare else name,
            f"{summary['n_true'][name]:,}",
            f"{summary['n_labelled'][name]:,}",
            figure(summary["recall"].get(name)),
            figure(summary["precision"].get(name)),
        ]
        for name in names[:_SHOWN_CLASSES]
    ]
    tell(aligned(["class", "true", "labelled", "recall", "precision"], rows))
    if len(names) > _SHOWN_CLASSES:
        tell(f"... {len(names) - _SHOWN_CLASSES:,} more classes (--json has them all)")
    tell()
    figures = [[name, share(summary[key])] for name, key in (
        ("balanced accuracy", "balanced_accuracy"), ("macro-F1", "macro_f1"), ("accuracy", "accuracy"))]  # fmt: skip
    for begin, scores in summary["probabilities"].items():
        whose = "" if begin == "p" else f" of {begin} probabilities"
        figures.append([f"log loss{whose}", share(scores["log_loss"])])
        figures.append([f"calibration error{whose}", figure(scores["calibration_error"])])
    tell(aligned(["figure", "value"], figures))


def _tell_left_out(summary: dict[str, Any]) -> None:
    if summary["n_unanswered"]:
        say(f"{summary['n_unanswered']:,} tasks have no answer: each is a miss of its class and nobody's false alarm")
    if summary["truth_without_result"]:
        say(f"{summary['truth_without_result']:,} tasks of the truth have no result and were not scored")
    if summary["result_without_truth"]:
        say(f"{summary['result_without_truth']:,} tasks of the result have no known answer and were not scored")
    if not summary["probabilities"]:
        say("no log loss or calibration: the result has no columns p:<class>")
