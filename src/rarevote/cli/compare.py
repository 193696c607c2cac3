"""``rarevote compare``: methods side by side on the same votes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rarevote.cli.each import begin, below_each_other, tell_records
from rarevote.cli.options.fit import ordered_option
from rarevote.cli.options.output import check_result_file, json_option, quiet_option, spreadsheet_option, verbose_option
from rarevote.cli.options.reading import Reading, with_reading
from rarevote.cli.options.verb import file_option, names_option, verb
from rarevote.cli.progress import fitting
from rarevote.cli.show import aligned, say, share, tell, warn
from rarevote.errors import ParameterError
from rarevote.methods.registry import find_method

if TYPE_CHECKING:
    from rarevote.io.read.crowd import Crowd
    from rarevote.scoring.compare import Comparison

DEFAULT_METHODS = ("majority-vote", "dawid-skene", "cc-rasch", "anchored-rasch")
_SHOWN_ITEMS = 5
_SHOWN_CLASSES = 8


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
@click.option("--rare", metavar="CLASS", help="The class that matters. Default: the one with the fewest votes.")
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
    verbose: bool,
    as_json: bool,
) -> None:
    """Methods side by side: recall, log loss and calibration with truth; agreement and differences without."""
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

    def watched(name: str, number: int) -> Any:
        return fitting(f"fitting {name} ({number} of {len(names)})", verbose=verbose)

    records, tables = {}, {}
    for label, part in parts.items():
        taught = part.gold or None if learned is None else learned[label]
        found = compare_methods(part, names, gold=taught, ordered=ordered, watched=watched)
        for reason in found.refused:
            warn(f"left out: {reason}")
        records[label] = _summary(part, found, rare_of[label])
        if known is not None and (known[label] or not label):
            records[label]["scores"] = {
                name: {
                    **one.figures(rare_of[label]), "log_loss": one.log_loss,
                    "calibration_error": one.calibration_error,
                }
                for name, one in found.score(known[label], taught or {}).items()
            }  # fmt: skip
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
        say(f"wrote {out}: {n_different:,} items on which the methods differ")


def _rare_class(crowd: Crowd, rare: str | None, ordered: str | None) -> str:
    """Name of the class that methods are compared by."""
    from rarevote.crowd.grades import Grades
    from rarevote.crowd.rare import RareClass

    votes = crowd.annotations
    chosen = RareClass.of(votes.classes, votes.class_votes, rare, None if ordered is None else Grades.of(ordered))
    if chosen.is_tail:
        raise ParameterError(
            f"--rare {chosen.name} is a tail of grades, and methods are compared by one class: name one"
        )
    return str(chosen.name)


def _by_label(crowd: Crowd, given: str | None, of_one: Callable[[str], Any]) -> dict[str, dict[Any, Any]] | None:
    """Truth or gold in a file, for each label; that of an ordinary crowd is called ""."""
    if given is None:
        return None
    if not crowd.choices:
        return {"": of_one(given)}
    from rarevote.io.read.labels import known_by_label

    return known_by_label(crowd, given)


# --------------------------------------------------------------------------------------------------------------------
# figures


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
    """One item on which the methods differ: how the votes fell, and what each method makes of them."""
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
    """All items on which the methods differ: the label of each method and its posterior, and what is shown."""
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
# what a person sees


def _tell(summary: dict[str, Any]) -> None:
    rare = summary["rare_class"]
    if "scores" in summary:
        _tell_scores(summary, rare)
    classes = _rare_first(summary["methods"][next(iter(summary["methods"]))]["share_of_tasks"], rare)
    tell(f"share of the {summary['n_tasks']:,} items that each method gives to a class")
    header = ["method", *(f"{name} (rare)" if name == rare else name for name in classes), "iterations", "seconds"]
    rows = [
        [
            name + ("" if entry["converged"] else " (not converged)"),
            *(share(entry["share_of_tasks"][one]) for one in classes),
            str(entry["n_iter"]),
            f"{entry['seconds']:.2f}",
        ]
        for name, entry in summary["methods"].items()
    ]
    tell(aligned(header, rows))
    if summary["agreement"]:
        _tell_agreement(summary)


def _tell_scores(summary: dict[str, Any], rare: str) -> None:
    scores = summary["scores"]
    first = next(iter(scores.values()))

    tell(f"against the truth of {first['n_items']:,} items")
    tell(
        aligned(
            [
                "method", f"recall {rare}", f"precision {rare}", "bal. accuracy", "macro-F1", "accuracy", "log loss",
                "calibration error",
            ],
            [
                [
                    name,
                    share(one["recall"].get(rare)),
                    share(one["precision"].get(rare)),
                    *(share(one[key]) for key in ("balanced_accuracy", "macro_f1", "accuracy", "log_loss")),
                    share(one["calibration_error"]),
                ]
                for name, one in scores.items()
            ],
        )
    )  # fmt: skip
    tell("")
    classes = _rare_first(first["recall"], rare)
    if len(classes) > 1:
        tell("recall of every class")
        rows = [[name, *(share(one["recall"].get(k)) for k in classes)] for name, one in scores.items()]
        tell(aligned(["method", *classes], rows))
        tell("")


def _tell_agreement(summary: dict[str, Any]) -> None:
    tell("\nagreement of methods")
    tell(
        aligned(
            ["methods", "equal", "kappa", "different items"],
            [
                [
                    f"{one['first']} / {one['second']}",
                    share(one["share_equal"]),
                    share(one["kappa"]),
                    f"{one['n_different']:,}",
                ]
                for one in summary["agreement"]
            ],
        )
    )
    tell(f"\nnot all methods agree on {summary['n_different']:,} items")
    for item in summary["different"]:
        votes = ", ".join(f"{name} x{count}" for name, count in item["votes"].items())
        answers = ", ".join(f"{name} {label}" for name, label in item["labels"].items())
        shown = "".join(f" [{text[:60]}]" for text in item["shown"].values() if text)
        tell(f"  {item['task']}{shown}: votes {votes}; {answers}")
    left = summary["n_different"] - len(summary["different"])
    if left > 0:
        tell(f"  ... {left:,} more (--out FILE writes them all)")


def _rare_first(classes: Iterable[str], rare: str) -> list[str]:
    """The classes that fit on a line, the rare one first."""
    return sorted(classes, key=lambda name: name != rare)[:_SHOWN_CLASSES]
