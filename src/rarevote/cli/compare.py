"""``rarevote compare``: methods side by side on the same votes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rarevote.cli.each import begin, below_each_other, tell_records
from rarevote.cli.options.fit import ordered_option
from rarevote.cli.options.output import check_result_file, json_option, quiet_option, spreadsheet_option, verbose_option
from rarevote.cli.options.reading import Reading, with_reading
from rarevote.cli.options.verb import file_option, names_option, verb
from rarevote.cli.show import aligned, percent, say, share, tell, told_classes, warn
from rarevote.crowd.steps import within
from rarevote.crowd.words import counted
from rarevote.errors import ParameterError
from rarevote.methods.registry import find_method

if TYPE_CHECKING:
    from rarevote.io.read.crowd import Crowd
    from rarevote.scoring.compare import Comparison

DEFAULT_METHODS = ("majority-vote", "dawid-skene", "cc-rasch", "anchored-rasch")
_SHOWN_ITEMS = 5


@verb(
    "rarevote compare labels.csv",
    "rarevote compare labels.csv --truth truth.csv --methods majority-vote,dawid-skene,cc-rasch",
    "rarevote compare labels.csv --show text --out differences.csv --json",
)
@with_reading
@click.option("--truth", metavar="FILE", help="Truth: labels to score against (task, label).")
@names_option(
    "--methods",
    help=f"Methods (see: rarevote methods). Default: {','.join(DEFAULT_METHODS)}.",
)
@click.option("--rare", metavar="CLASS", help="The class that matters. Default: the class with the fewest votes.")
@ordered_option
@click.option(
    "--gold",
    metavar="FILE",
    help="Gold: labels that methods may learn from; these items are left out of the scores.",
)
@file_option("--out", "-o", help="File for all items on which the methods differ.")
@spreadsheet_option
@quiet_option
@verbose_option
@json_option
def compare(
    reading: Reading,
    *,
    truth: str | None,
    methods: list[str] | None,
    rare: str | None,
    ordered: str | None,
    gold: str | None,
    out: Path | None,
    spreadsheet_safe: bool,
    as_json: bool,
) -> None:
    """Compare methods on the same votes: scores with 95% intervals if truth is given, else where they differ."""
    from rarevote.api import compare as compare_methods
    from rarevote.io.write.columns import write_columns

    names = methods or DEFAULT_METHODS
    for name in names:
        find_method(name).load()
    check_result_file(out)
    crowd = reading.read()
    known = _by_label(crowd, truth, crowd.truth)
    learned = _by_label(crowd, gold, crowd.known)
    parts = crowd.by_label or {"": crowd}
    rare_of = {label: _rare_class(part, rare, ordered) for label, part in parts.items()}
    say()

    records, tables = {}, {}
    for label, part in parts.items():
        taught = part.gold or None if learned is None else learned[label]
        with within(label):
            found = compare_methods(part, names, gold=taught, ordered=ordered)
        for reason in found.refused:
            warn(f"left out: {reason}")
        records[label] = _summary(part, found, rare_of[label])
        if known is not None and (known[label] or not label):
            records[label]["truth"] = found.class_sizes(known[label], taught or {})
            records[label]["scores"] = _scores(found, known[label], taught or {}, rare_of[label])
        tables[label] = _rows(part, found)
    if out is not None:
        write_columns(below_each_other(tables), out, spreadsheet_safe=spreadsheet_safe)
    if as_json:
        tell_records(records)
    for place, (label, summary) in enumerate(() if as_json else records.items()):
        if place:
            tell()
        begin(label)
        _tell(summary)
    if out is not None:
        n_different = sum(one["n_different"] for one in records.values())
        say(f"wrote {out}: {counted(n_different, 'item')} on which the methods differ")


def _rare_class(crowd: Crowd, rare: str | None, ordered: str | None) -> str:
    """Name of the class by which methods are compared."""
    from rarevote.crowd.grades import Grades
    from rarevote.crowd.rare import RareClass

    votes = crowd.annotations
    chosen = RareClass.of(votes.classes, votes.class_votes, rare, None if ordered is None else Grades.of(ordered))
    if chosen.is_tail:
        raise ParameterError(f"--rare {chosen.name} is a tail of grades; compare needs one class")
    return str(chosen.name)


def _by_label(crowd: Crowd, given: str | None, of_one: Callable[[str], Any]) -> dict[str, dict[Any, Any]] | None:
    """Truth or gold in a file, for each label; that of an ordinary crowd has the name ""."""
    if given is None:
        return None
    if not crowd.choices:
        return {"": of_one(given)}
    from rarevote.io.read.labels import known_by_label

    return known_by_label(crowd, given)


# --------------------------------------------------------------------------------------------------------------------
# figures


def _scores(found: Comparison, known: dict[Any, Any], gold: dict[Any, Any], rare: str) -> dict[str, dict[str, Any]]:
    """Scores of every method, their intervals, and those of the differences from the first."""
    intervals = found.intervals(known, gold)
    return {
        name: {
            **one.figures(rare), "log_loss": one.log_loss, "calibration_error": one.calibration_error,
            "intervals": intervals[name].own.figures(rare),
            "difference": None if (less := intervals[name].difference) is None else less.figures(rare),
        }
        for name, one in found.score(known, gold).items()
    }  # fmt: skip


def _summary(crowd: Crowd, found: Comparison, rare: str) -> dict[str, Any]:
    from rarevote.scoring.compare import agreements, proportions

    votes = found.annotations
    shares = proportions(found.labels, [str(name) for name in votes.classes.tolist()])
    return {
        "rare_class": rare,
        "n_tasks": votes.n_tasks,
        "n_annotations": votes.n_annotations,
        "methods": {
            name: {
                "seconds": one.seconds,
                "n_iter": one.n_iter,
                "converged": one.converged,
                "share_of_tasks": shares[name],
            }
            for name, one in found.fits.items()
        },
        "agreement": [asdict(one) for one in agreements(found.labels, votes.n_classes)],
        "n_different": len(found.different),
        "different": [_item(crowd, found, task) for task in found.different[:_SHOWN_ITEMS].tolist()],
    }


def _item(crowd: Crowd, found: Comparison, task: int) -> dict[str, Any]:
    """One item on which the methods differ: the votes, and the result of each method."""
    votes = found.annotations
    given = votes.label[votes.task_ptr[task] : votes.task_ptr[task + 1]]
    counts = {str(name): int((given == k).sum()) for k, name in enumerate(votes.classes.tolist())}
    return {
        "task": votes.tasks[task],
        "votes": {name: count for name, count in counts.items() if count},
        "labels": {name: str(votes.classes[codes[task]]) for name, codes in found.labels.items()},
        "shown": {name: texts[task] for name, texts in crowd.shown.items()},
    }


def _rows(crowd: Crowd, found: Comparison) -> dict[str, Any]:
    """All items on which the methods differ: the label of each method and its posterior, and the columns to show."""
    votes, different = found.annotations, found.different
    rows: dict[str, Any] = {"task": votes.tasks[different]}
    for name, one in found.fits.items():
        chosen = one.labels[different]
        rows[name] = votes.classes[chosen]
        rows[f"p:{name}"] = one.p[different, chosen]
    for name, texts in crowd.shown.items():
        rows[name if name not in rows else f"show:{name}"] = texts[different]
    return rows


# --------------------------------------------------------------------------------------------------------------------
# output


def _tell(summary: dict[str, Any]) -> None:
    rare, methods = summary["rare_class"], summary["methods"]
    if "scores" in summary:
        _tell_scores(summary, rare)
    tell(f"share of the {counted(summary['n_tasks'], 'item')} that each method labels as a class")
    shares = {name: entry["share_of_tasks"] for name, entry in methods.items()}
    told, left_out = told_classes(next(iter(shares.values())), rare)
    rows = [[_class_title(k, rare), *(percent(one[k], fine=True) for one in shares.values())] for k in told]
    rows.append(["iterations", *(str(entry["n_iter"]) for entry in methods.values())])
    rows.append(["seconds", *(f"{entry['seconds']:.2f}" for entry in methods.values())])
    titles = [name + ("" if entry["converged"] else " (not converged)") for name, entry in methods.items()]
    tell(aligned(["class", *titles], rows))
    if left_out:
        tell(left_out)
    if summary["agreement"]:
        _tell_agreement(summary)


def _class_title(name: str, rare: str) -> str:
    return f"{name} (rare)" if name == rare else name


def _tell_scores(summary: dict[str, Any], rare: str) -> None:
    scores = summary["scores"]
    names, first = list(scores), next(iter(scores.values()))
    titles = {
        "rare_recall": f"recall of {rare}",
        "rare_precision": f"precision of {rare}",
        "balanced_accuracy": "balanced accuracy",
        "macro_f1": "macro-F1",
        "accuracy": "accuracy",
        "log_loss": "log loss",
    }
    tell(f"against the truth of {counted(first['n_items'], 'item')}, with 95% intervals (bootstrap over items)")
    rows = [[title, *(_interval(scores[name]["intervals"][key]) for name in names)] for key, title in titles.items()]
    rows.append(["calibration error", *(f"{share(scores[name]['calibration_error'])}" for name in names)])
    tell(aligned(["figure", *names], rows))
    if len(names) > 1:
        tell(f"\ndifference from {names[0]} on the same items, with 95% intervals (--json has those of every class)")
        rows = [
            [title, *(_interval(scores[name]["difference"][key], signed=True) for name in names[1:])]
            for key, title in titles.items()
        ]
        tell(aligned(["figure", *names[1:]], rows))
    tell("")
    if len(first["recall"]) > 1:
        told, left_out = told_classes(summary["truth"], rare)
        tell("recall of every class that occurs in the truth")
        rows = [
            [_class_title(k, rare), f"{summary['truth'][k]:,}"]
            + [_interval(scores[name]["intervals"]["recall"].get(k)) for name in names]
            for k in told
        ]
        tell(aligned(["class", "true items", *names], rows))
        if left_out:
            tell(left_out)
        tell("")


def _interval(one: dict[str, float] | None, *, signed: bool = False) -> str:
    """A figure and its interval; a dash if there is none."""
    if one is None:
        return "-"
    value, low, high = (f"{number:{'+' if signed else ''}.3f}" for number in one.values())
    return f"{value} ({low} to {high})"


def _tell_agreement(summary: dict[str, Any]) -> None:
    tell("\nagreement of methods")
    tell(
        aligned(
            ["methods", "equal", "kappa", "different items"],
            [
                [
                    f"{one['first']} / {one['second']}",
                    percent(one["share_equal"], fine=True),
                    share(one["kappa"]),
                    f"{one['n_different']:,}",
                ]
                for one in summary["agreement"]
            ],
        )
    )
    tell(f"\nthe methods disagree on {counted(summary['n_different'], 'item')}")
    for item in summary["different"]:
        votes = ", ".join(f"{name} x{count}" for name, count in item["votes"].items())
        answers = ", ".join(f"{name} {label}" for name, label in item["labels"].items())
        shown = "".join(f" [{text[:60]}]" for text in item["shown"].values() if text)
        tell(f"  {item['task']}{shown}: votes {votes}; {answers}")
    left = summary["n_different"] - len(summary["different"])
    if left > 0:
        tell(f"  ... {left:,} more (--out FILE writes them all)")
