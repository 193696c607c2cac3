"""The sentences of the page, made from records before any markup."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import numpy as np

from rarevote.crowd.words import count, counted, percent, quoted
from rarevote.meaning.decide import ABSTAINED
from rarevote.meaning.diagnose import Diagnosis, TradeOff

_MAX_TILES = 6


@dataclass(frozen=True)
class About:
    """Where a page comes from.

    Attributes:
        source: name of the data, without its folder.
        method: the method as people write it.
        parameters: those that differ from their defaults, in words.
        decision: how labels were decided on, in a sentence.
        n_gold: gold labels that the fit was given.
        date: the day on which the page was made.
        version: of this package.
        cautions: what to know before relying on the page beside what the records say themselves.
    """

    source: str
    method: str
    parameters: str
    decision: str
    n_gold: int
    date: str
    version: str
    cautions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tile:
    """A class at the head of the page."""

    name: str
    labelled: str
    share: str
    details: list[str]
    is_rare: bool


def leading_trade_off(found: Diagnosis) -> TradeOff:
    """That of the rare class: by the truth where there is any, else as expected."""
    return found.true_trade_offs[0] if found.true_trade_offs else found.trade_offs[0]


def headline(found: Diagnosis) -> str:
    """The answer in one sentence."""
    rare, total = quoted(found.classes.names[found.rare]), len(found.items.label)
    labelled = int(found.classes.n_labelled[found.rare])
    start = f"{count(labelled)} of {counted(total, 'item')} {'is' if labelled == 1 else 'are'} labelled {rare}"
    best = leading_trade_off(found)
    if len(found.classes.names) < 2 or not isfinite(best.chosen.recall):
        return f"{start}."
    about = "" if best.from_truth else "about "
    finds = f"{start}: this finds {about}{percent(best.chosen.recall)} of all that are"
    ours, theirs = percent(best.chosen.recall), percent(best.majority.recall)
    return (
        f"{finds}, and so does a majority vote."
        if ours == theirs
        else f"{finds}, where a majority vote finds {theirs}."
    )


def lead(found: Diagnosis) -> str:
    """What the answer costs: one sentence below the headline."""
    best = leading_trade_off(found)
    if not isfinite(best.chosen.precision):
        return ""
    right = best.chosen.precision * best.chosen.n_flagged
    false = best.chosen.n_flagged - right
    precision = f"(precision {percent(best.chosen.precision)})"
    alarms = counted(false, "false alarm")
    if not best.from_truth:
        return f"By the model, about {count(right)} of these labels are right and {alarms} {precision}."
    assert found.truth is not None
    checked = counted(len(found.truth.items), "item")
    return f"By the truth of {checked}, {count(right)} of these labels are right and {alarms} {precision}."


def tiles(found: Diagnosis) -> list[Tile]:
    """The classes with their counts, the rare one first, then the largest."""
    classes, total = found.classes, len(found.items.label)
    others = [int(k) for k in np.argsort(-classes.n_labelled, kind="stable") if k != found.rare]
    made = []
    for k in [found.rare, *others[: _MAX_TILES - 1]]:
        expected = f"about {count(classes.n_expected[k])} truly are"
        if classes.expected_low[k] < classes.expected_high[k]:
            expected += f" ({count(classes.expected_low[k])} to {count(classes.expected_high[k])})"
        made.append(
            Tile(
                name=str(classes.names[k]),
                labelled=count(classes.n_labelled[k]),
                share=percent(classes.n_labelled[k] / total),
                details=[expected, f"{count(classes.n_majority[k])} by majority vote"],
                is_rare=k == found.rare,
            )
        )
    return made


def cautions(found: Diagnosis) -> list[str]:
    """What to know before relying on the page; empty if there is nothing."""
    said = []
    votes = found.crowd.n_annotations / found.crowd.n_tasks
    n_classes = len(found.classes.names)
    if not found.converged:
        said.append(f"The fit did not settle ({found.status}): allow more iterations with --set n_iter=1000.")
    if n_classes >= 5 and votes < 3:
        said.append(
            f"{votes:.1f} votes per item over {n_classes:,} classes are few: the difficulty of an item can absorb all "
            "disagreement. Compare with a majority vote."
        )
    precision = leading_trade_off(found).chosen.precision
    if precision < 0.5:
        said.append(
            f"{percent(1 - precision)} of the items labelled {quoted(found.classes.names[found.rare])} are false "
            "alarms: this decision would rather look twice than miss one. Have these items reviewed, or choose "
            "another point under “What finding more would cost”."
        )
    if n_classes > 1 and found.workers.accuracy.mean() < 1 / n_classes:
        said.append(
            "The average annotator does worse than guessing: such votes can as well be explained the other way round. "
            "Gold (--gold) settles it."
        )
    return said


def losses(found: Diagnosis) -> list[str]:
    """What a majority vote would have lost, in sentences."""
    moved = found.overruled
    if not moved.items.size:
        return ["A majority vote gives every item the same label."]
    rare = quoted(found.classes.names[found.rare])
    to_rare = moved.label == found.rare
    gained, expected = int(moved.count[to_rare].sum()), float(moved.expected[to_rare].sum())
    share = percent(moved.items.size / len(found.items.label))
    said = [f"A majority vote would label {counted(moved.items.size, 'item')} differently ({share} of all)."]
    if gained:
        which = "All" if gained == moved.items.size else count(gained)
        said.append(
            f"{which} of them are labelled {rare} here, against the majority of their votes. About {count(expected)} "
            "of these are expected to be right: those a majority vote loses."
        )
    if found.truth is not None:
        best = leading_trade_off(found)
        name = found.classes.names[found.rare]
        true_items = int((found.truth.truth == found.truth.classes.index(name)).sum())
        if true_items:
            theirs, ours = (count(point.recall * true_items) for point in (best.majority, best.chosen))
            said.append(
                f"By the truth, of {counted(true_items, f'true {rare} item')} a majority vote finds {theirs} and "
                f"this result {ours}."
            )
    return said


def facts(found: Diagnosis, about: About) -> list[tuple[str, str]]:
    """Data and method, as pairs of a name and a value."""
    crowd = found.crowd
    pairs = [
        ("Data", about.source),
        ("Votes", f"{crowd.n_annotations:,} on {crowd.n_tasks:,} items by {crowd.n_workers:,} annotators "
                  f"({crowd.n_annotations / crowd.n_tasks:.1f} per item)"),
        ("Method", about.method + (f" with {about.parameters}" if about.parameters else "")),
        ("Labels", about.decision),
        ("Probabilities", f"calibrated; class shares {found.shares_from}"),
        ("Fit", f"{counted(found.n_iter, 'iteration')}, {found.status}"),
    ]  # fmt: skip
    n_silent = int((found.items.label == ABSTAINED).sum())
    if n_silent:
        pairs.append(("No answer", f"{counted(n_silent, 'item')} of which no class is probable enough"))
    if about.n_gold:
        pairs.append(("Gold", f"{counted(about.n_gold, 'label')} given to the fit"))
    if crowd.abstentions:
        pairs.append(("Abstentions", count(sum(crowd.abstentions.values()))))
    if len(crowd.unanswered):
        pairs.append(("Unanswered", f"{counted(len(crowd.unanswered), 'item')} with abstentions only"))
    if crowd.n_dropped:
        pairs.append(("Left out", f"{counted(crowd.n_dropped, 'row')} (missing values or repeated pairs)"))
    if found.truth is not None and found.truth.n_given:
        pairs.append(
            ("Check", f"{counted(found.truth.n_given, 'true label')} not counted: the fit was given them as gold")
        )
    pairs.append(("Made", f"{about.date} by rarevote {about.version}"))
    return pairs
