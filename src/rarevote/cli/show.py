"""Output for people: lines, plain tables, warnings; messages go to stderr, so that stdout is only data."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from rarevote.crowd.words import aligned as aligned
from rarevote.crowd.words import counted
from rarevote.crowd.words import percent as percent
from rarevote.crowd.words import printable as printable
from rarevote.crowd.words import share as share
from rarevote.progress import hide

if TYPE_CHECKING:
    from rarevote.api import Result
    from rarevote.decide.expectations import Expected
    from rarevote.decide.review import ReviewPlan
    from rarevote.io.platforms import Export
    from rarevote.io.read.crowd import Crowd

# With more classes, a table shows the largest and the rarest.
_MAX_CLASSES, _LARGEST, _RAREST = 15, 10, 3
# In a table, for a figure that votes cannot show.
_UNTOLD = "?"
# The key in click's context for quiet output.
_QUIET = "rarevote.quiet"
# The key in click's context for verbose output.
_VERBOSE = "rarevote.verbose"
# The key in click's context for the command line.
_WORDS = "rarevote.words"


def _lines(text: str) -> str:
    return "\n".join(map(printable, text.split("\n")))


def command(*words: object) -> str:
    """A command to copy, quoted for a shell.

    >>> command("rarevote", "report", "my labels.csv")
    "rarevote report 'my labels.csv'"
    """
    return shlex.join(map(str, words))


def remember_words(context: click.Context, words: Sequence[str]) -> None:
    """Store the words after ``rarevote`` for :func:`same_command`."""
    context.meta[_WORDS] = list(words)


def same_command(*more: object) -> str:
    """The current command with more options, to copy."""
    return command("rarevote", *click.get_current_context().meta.get(_WORDS, ()), *more)


def keep_quiet(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    """The callback of ``--quiet``: switches messages off."""
    context.meta[_QUIET] = wanted


def is_quiet() -> bool:
    """Whether only data and errors are shown."""
    context = click.get_current_context(silent=True)
    return context is not None and context.meta.get(_QUIET, False)


def be_verbose(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    """The callback of ``--verbose``: shows a line for every step."""
    context.meta[_VERBOSE] = wanted


def is_verbose() -> bool:
    """Whether every step is shown."""
    context = click.get_current_context(silent=True)
    return context is not None and context.meta.get(_VERBOSE, False)


def say(text: str = "") -> None:
    """Print a message on stderr, unless ``--quiet`` is given; control characters in names are escaped."""
    if not is_quiet():
        _print(_lines(text), sys.stderr)


def tell(text: str = "") -> None:
    """Print a requested line on stdout; control characters in names are escaped."""
    _print(_lines(text), sys.stdout)


def tell_json(figures: Any) -> None:
    """Print requested figures as JSON on stdout."""
    _print(json.dumps(figures, ensure_ascii=False, default=str), sys.stdout)


def warn(message: object) -> None:
    """Print a warning on stderr."""
    _print(f"{_coloured('rarevote: warning:', 33)} {_lines(str(message))}", sys.stderr)


def complain(message: object) -> None:
    """Print an error on stderr."""
    _print(f"{_coloured('rarevote: error:', 31)} {_lines(str(message))}", sys.stderr)


def _print(text: str, where: TextIO) -> None:
    """Print a line, after removing the bar if there is one."""
    hide()
    print(text, file=where)


def _coloured(text: str, colour: int) -> str:
    """The text in colour on a terminal, unless colours are off (NO_COLOR, a terminal without colours)."""
    wanted = sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return f"\x1b[{colour}m{text}\x1b[0m" if wanted else text


def tell_rest(n: int, *, has_file: bool) -> None:
    """Print how many rows a table does not show, and how to see them."""
    if n > 0:
        tell(f"... {n:,} more" + ("" if has_file else " (--top N shows more, --out FILE writes them all)"))


def told_classes(sizes: Mapping[str, float], rare: str | None = None) -> tuple[list[str], str]:
    """Which classes a table shows: all if they are few, else the rare ones and the ten largest; and what is left out.

    Args:
        rare: the class that matters, which comes first.
    """
    largest = sorted(sizes, key=lambda name: -sizes[name])
    told = [name for name in sizes if name == rare]
    if len(sizes) <= _MAX_CLASSES:
        return [*told, *(name for name in sizes if name != rare)], ""
    told += [name for name in (*largest[:_LARGEST], *largest[-_RAREST:]) if name != rare]
    more = counted(len(sizes) - len(told), "more class", "more classes")
    return told, f"... {more} between the largest and the rarest (--json has all)"


def tell_classes(
    classes: Mapping[str, Mapping[str, Any]], n_tasks: int, rare: str | None = None, ordered: Sequence[Any] = ()
) -> None:
    """Print the classes of a result with their figures, and why shares do not add up, if they do not.

    Args:
        n_tasks: number of tasks, including those without a label.
        rare: the class that matters, which comes first.
        ordered: grades, which come in order instead, before classes outside the scale.
    """
    from rarevote.crowd.names import spelling

    grades = [name for name in map(spelling, ordered) if name in classes]
    if grades:
        classes = {name: classes[name] for name in (*grades, *(other for other in classes if other not in grades))}
        rare = None
    told, left_out = told_classes({name: one["share_of_votes"] for name, one in classes.items()}, rare)
    rows = [
        [
            name,
            f"{one['tasks']:,}",
            percent(one["share_of_tasks"], fine=True),
            percent(one["share_of_votes"], fine=True),
        ]
        for name, one in ((name, classes[name]) for name in told)
    ]
    say(aligned(["class", "tasks", "of tasks", "of votes"], rows))
    if left_out:
        say(left_out)
    if n_unlabelled := n_tasks - sum(one["tasks"] for one in classes.values()):
        together = percent(1.0 - n_unlabelled / n_tasks, fine=True)
        without = counted(n_unlabelled, "task has", "tasks have")
        say(f"{without} no label: the shares of tasks add up to {together}")
    say()


def decision_words(result: Result) -> list[str]:
    """The lines about the decision."""
    import numpy as np

    from rarevote.decide.expectations import UNKNOWN

    decision, found = result.decision, result.probabilities
    counts = np.bincount(decision.codes[decision.codes >= 0], minlength=len(found.classes))
    header = ["class", "share", "decided", "recall", "precision"]
    names = [str(one.name) for one in decision.expected]
    shares = dict(zip(names, found.mean.tolist(), strict=True))
    grades = result.fitted.grades
    if grades is not None:
        inside = [names[k] for k in grades.codes(found.classes)]
        shares = {name: shares[name] for name in (*inside, *(other for other in names if other not in inside))}
    told, left_out = told_classes(shares, str(result.fitted.rare.name) if grades is None else None)
    rows = []
    if result.fitted.rare.is_tail:
        of_tail = decision.of_rare
        flagged = f"{int(result.flagged.sum()):,}"
        rows.append(
            [str(of_tail.name), _cell(of_tail.prevalence, fine=True), flagged, _cell(of_tail.recall),
             _cell(of_tail.precision)]
        )  # fmt: skip
    for k in map(names.index, told):
        one = decision.expected[k]
        figures = [_cell(one.prevalence, fine=True), f"{counts[k]:,}", _cell(one.recall), _cell(one.precision)]
        rows.append([names[k], *figures])
    words = [f"decided by: {decision.rule}; class shares {found.how}", *aligned(header, rows).split("\n")]
    if left_out:
        words.append(left_out)
    whole = sum(one.prevalence.value for one in decision.expected)
    if abs(whole - 1.0) > 0.005:
        words.append(f"each share is the median for its class, so the shares add up to {percent(whole, fine=True)}")
    if decision.n_abstained:
        words.append(f"{counted(decision.n_abstained, 'task has', 'tasks have')} no answer")
    if result.rule.name == "cost":
        words.append(decision.cost_description)
    if decision.target is not None:
        words.append(f"{'promise' if decision.target.promised else 'warning'}: {decision.target.description}")
    words.append(f"accuracy of the labels: {decision.accuracy.description}")
    words.append(f"expected values with 90% intervals, {decision.how.partition(';')[0]}; not a guarantee")
    words += result.worlds
    if any(_UNTOLD in row for row in rows):
        words.append(f"{_UNTOLD}: {UNKNOWN} (rarevote audit)")
    return words


def score_words(scores: Mapping[str, Any]) -> list[str]:
    """The lines about the scores of a result."""
    parts = [
        f"{what} of {scores['rare_class']} {percent(value, fine=True)}"
        for what, value in (("recall", scores["rare_recall"]), ("precision", scores["rare_precision"]))
        if value is not None
    ]
    parts += [
        f"balanced accuracy {percent(scores['balanced_accuracy'], fine=True)}",
        f"accuracy {percent(scores['accuracy'], fine=True)}",
        f"macro-F1 {scores['macro_f1']:.3f}",
    ]
    words = [f"against the truth of {counted(scores['n_items'], 'task')}: {', '.join(parts)}"]
    if scores["n_unanswered"]:
        words.append(unanswered_words(scores["n_unanswered"]))
    if scores["truth_without_labels"]:
        words.append(f"not scored: {counted(scores['truth_without_labels'], 'task')} of the truth without annotations")
    return words


def unanswered_words(n: int) -> str:
    """A sentence on how a score counts items with truth but without a label."""
    return f"{counted(n, 'task has', 'tasks have')} no label: a miss of the true class, and not a false alarm"


def review_words(plan: ReviewPlan, path: Path | None) -> str:
    """A sentence on what a review would save."""
    return f"wrote {counted(len(plan.items), 'task')} to review to {path}; {plan.saving}"


def _cell(found: Expected, *, fine: bool = False) -> str:
    if found.value != found.value:
        return "-"
    if not found.is_told:
        return _UNTOLD
    return f"{percent(found.value, fine=fine)} ({percent(found.low, fine=fine)} to {percent(found.high, fine=fine)})"


def export_summary(export: Export) -> dict[str, Any]:
    """The figures of an export: what was read, and what was left out and why."""
    from collections import Counter

    from rarevote.io.platforms import PLATFORMS

    return {
        "file": str(export.path),
        "platform": export.platform,
        "platform_title": PLATFORMS[export.platform].title,
        "question": export.question,
        "questions": list(export.questions),
        "n_records": export.n_records,
        "n_rows": len(export),
        "n_tasks": len(set(export.task)),
        **({"n_items": len({*export.shown["item"], *export.shown_unanswered["item"]})} if export.multilabel else {}),
        "n_unvoted": len(export.unanswered),
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
    """Print notes on how something was read."""
    for note in notes:
        say(f"rarevote: note: {note}")


def tell_export(summary: dict[str, Any]) -> None:
    """Print what was read from an export, with a table of its labels, on stderr."""
    _tell_source(summary)
    say(
        f"{counted(summary['n_records'], 'record')}: {counted(summary['n_rows'], 'row')}, "
        f"{_tasks(summary)}, {counted(summary['n_workers'], 'worker')}" + _gold_words(summary)
    )
    _tell_left_out(summary)
    say()
    total = max(summary["n_rows"], 1)
    labels = summary["labels"]
    told, left_out = told_classes(labels)
    rows = [[name, f"{labels[name]:,}", percent(labels[name] / total, fine=True)] for name in told]
    say(aligned(["label", "rows", "of rows"], rows))
    if left_out:
        say(left_out)


def _tell_source(summary: dict[str, Any]) -> None:
    """Print the file of an export, its platform and its question."""
    others = [name for name in summary["questions"] if name != summary["question"]]
    beside = f" (also asked: {', '.join(others[:8])}{', ...' if len(others) > 8 else ''})" if others else ""
    say(f"{summary['file']}: {summary['platform_title']}, question {summary['question']}{beside}")


def _gold_words(summary: dict[str, Any]) -> str:
    return f", {counted(summary['n_gold'], 'gold label')}" if summary["n_gold"] else ""


def _tell_left_out(summary: dict[str, Any]) -> None:
    """Print the answers of an export that are not votes, and those that repeat a pair."""
    if summary["multilabel"]:
        choices = summary["choices"]
        say(f"one yes/no problem for each of {counted(len(choices), 'choice')}: {', '.join(choices[:12])}")
    if summary["n_repeated"]:
        say(f"{counted(summary['n_repeated'], 'row repeats', 'rows repeat')} a (task, worker) pair; "
            "aggregate --keep last keeps the last")  # fmt: skip
    for why, number in summary["left_out"].items():
        say(f"left out: {counted(number, 'answer')} ({why})")


def _tasks(summary: dict[str, Any]) -> str:
    """The number of tasks of an export; with several labels, the number of items."""
    return counted(summary["n_items"], "item") if summary["multilabel"] else counted(summary["n_tasks"], "task")


def tell_crowd(crowd: Crowd) -> None:
    """Print what was read: one line about the file, one about its size, and notes."""
    votes = crowd.annotations
    what = (
        f"{counted(crowd.n_items, 'item')} with {counted(len(crowd.choices), 'label')}"
        if crowd.choices
        else counted(votes.n_tasks, "task")
    )
    size = (
        f"{counted(votes.n_annotations, 'annotation')}, {what}, "
        f"{counted(votes.n_workers, 'worker')}, {counted(votes.n_classes, 'class', 'classes')} "
        f"({votes.n_annotations / votes.n_tasks:.1f} votes per {'label of an item' if crowd.choices else 'task'})"
    )
    if crowd.export is None:
        say(f"{crowd.title}: {size}")
    else:
        summary = export_summary(crowd.export)
        _tell_source(summary)
        say(size + _gold_words(summary))
        _tell_left_out(summary)
    tell_notes(crowd.notes)
    if votes.n_dropped:
        say(f"{counted(votes.n_dropped, 'row')} left out (missing values or repeated pairs)")
    if votes.abstentions:
        say(f"{counted(sum(votes.abstentions.values()), 'abstention')} by {counted(len(votes.abstentions), 'worker')}")
