"""The three lines on top of the page: what you have, how sure it is, what to do next.

Every number comes from the result or the diagnosis; the verdict is that of a check, from the same function.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from math import isfinite

import numpy as np

from rarevote.crowd.words import SECONDS_A_LOOK, capital, count, counted, listed, minutes, percent, quoted
from rarevote.decide.expectations import UNKNOWN
from rarevote.decide.floor import SMALL_POPULATION, floor_reviews
from rarevote.decide.rules import ABSTAINED
from rarevote.diagnose.diagnosis import Diagnosis
from rarevote.diagnose.verdict import VERDICTS, Weight, weight_of, why_weight
from rarevote.errors import how
from rarevote.page.sentences import Action, Basis, in_words, leading_trade_off

# An hour at the stated pace: no action asks for more reviews at a time.
MAX_LOOKS = 360
# Number of items for a second annotator, to show whether the first can be trusted.
_SECOND_OPINION = 200
_MAX_NAMED = 5
# The target recall of a proposed audit.
_TARGET = 0.9
_REVIEW = "look.csv"
_ANSWERS = "look.answers.csv"


@dataclass(frozen=True)
class ThreeLines:
    """The three lines, and the text under the second.

    Attributes:
        have: the result, in one sentence.
        sure: how sure it is, in one sentence.
        next: what to do next.
        worlds: what to expect with independent and with shared errors of annotators.
        weight: the weight of the verdict, as in a check.
        leads_with_sure: whether this must be the headline: the crowd cannot answer.
    """

    have: str
    sure: str
    next: Action
    worlds: list[str]
    weight: Weight
    leads_with_sure: bool

    @property
    def headline(self) -> str:
        """The line at the top."""
        return self.sure if self.leads_with_sure else self.have


def three_lines(found: Diagnosis, basis: Basis) -> ThreeLines:
    """The three lines of a result."""
    weight: Weight = "stop" if basis.cannot_answer else weight_of(
        found.expected_accuracy, is_unproved_jury=basis.is_unproved_jury
    )  # fmt: skip
    return ThreeLines(
        have=have_line(found),
        sure=sure_line(found, basis, weight),
        next=next_action(found, basis),
        worlds=[f"{capital(words)}." for words in found.worlds],
        weight=weight,
        leads_with_sure=bool(basis.cannot_answer),
    )


def have_line(found: Diagnosis) -> str:
    """The items, how many are flagged, and how many are expected to be of the class."""
    head = found.head
    silent = int((found.items.label == ABSTAINED).sum()) + found.n_items - found.crowd.n_tasks
    without = f"; {counted(silent, 'item has', 'items have')} no label" if silent else ""
    items = counted(found.n_items, "item")
    if head.leading is None:
        labelled, names = found.classes.n_labelled, found.classes.names
        most = [f"{count(labelled[k])} {quoted(names[k])}" for k in found.classes_by_weight if labelled[k]]
        classes = counted(len(names), "class", "classes")
        return f"{items} in {classes}: {listed(most, _MAX_NAMED)}{without}."
    rare, name = head.rare, quoted(head.rare_name)
    n_flagged = int(head.classes.n_labelled[rare])
    flagged = f"{items}: {count(n_flagged)} {'is' if n_flagged == 1 else 'are'} flagged as {name}"
    if found.truth is not None and found.truth.n_checked == found.n_items and head.truth is not None:
        n_true = head.truth.n_true_by_name[head.classes.names[rare]]
        return f"{flagged}; the truth has {count(n_true)}{without}."
    if not head.expected[rare].prevalence.is_told:
        return f"{flagged}; how many are is {UNKNOWN}{without}."
    low, high = head.classes.expected_low[rare], head.classes.expected_high[rare]
    expected = (
        f"about {count(head.classes.n_expected[rare])} are expected (90% interval: {count(low)} to {count(high)})"
    )
    return f"{flagged}; {expected}{without}."


def sure_line(found: Diagnosis, basis: Basis, weight: Weight) -> str:
    """How far the labels can be trusted: by the truth if there is any, else the verdict of a check."""
    if basis.cannot_answer:
        return f"These votes cannot show which labels are right: {basis.cannot_answer}."
    head = found.head
    name = quoted(head.rare_name)
    if found.truth is not None:
        ours, theirs = found.truth.scores, found.truth.majority_scores
        checked = counted(found.truth.n_checked, "item")
        said = f"By the truth of {checked}, {percent(ours.accuracy)} of the labels are right"
        vote = percent(theirs.accuracy)
        best = leading_trade_off(found)
        if head.leading is not None and isfinite(best.chosen.recall):
            said += f" and {percent(best.chosen.recall)} of all {name} are found"
            vote += f" and {percent(best.majority.recall)}"
        return f"{said}." if found.method == "majority-vote" else f"{said}; with a majority vote {vote}."
    why = why_weight(found.expected_accuracy, is_unproved_jury=basis.is_unproved_jury)
    said = f"{capital(VERDICTS[weight])}: {why}"
    recall = head.expected[head.rare].recall
    if head.leading is None or not isfinite(recall.value):
        return f"{said}."
    if recall.is_unknown:
        return f"{said}; what share of all {name} is flagged is {UNKNOWN}."
    return f"{said}; {in_words(recall)} of all {name} are expected to be among the flagged."


def next_action(found: Diagnosis, basis: Basis) -> Action:
    """The one thing to do next: the number of items, the time at the stated pace, and what to type."""
    if basis.audit_action is not None:
        return basis.audit_action
    head, piles = found.head, found.piles
    n_open = int((piles.worth > 0).sum())
    if basis.cannot_answer and n_open:
        n = min(n_open, _SECOND_OPINION)
        return look_action(basis, n, f"Have another person answer {counted(n, 'item')}")
    if found.n_items < SMALL_POPULATION and n_open:
        which = "all" if n_open == found.n_items else "the"
        return look_action(basis, n_open, f"Look at {which} {counted(n_open, 'item')}")
    is_unknown = head.leading is not None and found.truth is None and head.expected[head.rare].recall.is_unknown
    if piles.n_look and not (is_unknown and piles.n_look > MAX_LOOKS):
        n = min(piles.n_look, MAX_LOOKS)
        rest = f", of {count(piles.n_look)} worth a look" if n < piles.n_look else ""
        first = "this item" if n == 1 else f"these {counted(n, 'item')}"
        return look_action(basis, n, f"Look at {first} first{rest}")
    if head.leading is not None and found.truth is None:
        return _audit(found, basis)
    out = how('result.write("result.csv")', f"rarevote aggregate {basis.aggregate} --out result.csv")
    return Action(f"Use the labels: of {counted(found.n_items, 'item')} none is worth a look.", (out,))


def look_action(basis: Basis, n: int, start: str, *, n_looks: int | None = None, result: str = "result") -> Action:
    """The action to review the first items of a review list.

    Args:
        basis: the command-line arguments for the votes.
        n: number of items on the list (of each result, if there are several).
        start: a sentence on what to do.
        n_looks: number of reviews, if not one for each item.
        result: the name of the result in Python code.
    """
    then = "use the answers in place of the labels"
    if basis.takes_gold:
        then = f"run this again with {_ANSWERS} as gold"
    command = how(
        f'{result}.review({n}, "{_REVIEW}")',
        f"rarevote aggregate {basis.aggregate} --max-review {n} --review-out {_REVIEW} --out result.csv",
    )
    looks = n if n_looks is None else n_looks
    return Action(f"{start} ({pace(looks)}), then {then}.", (command, f"rarevote review {_REVIEW}"))


def _audit(found: Diagnosis, basis: Basis) -> Action:
    """The action to prove the recall of the class that matters, with the smallest possible number of reviews."""
    head = found.head
    n_flagged = int(head.classes.n_labelled[head.rare])
    n = max(floor_reviews(n_flagged, found.n_items - n_flagged, target=_TARGET), 1)
    command = how(
        f"audit = result.fitted.audit({head.classes.names[head.rare]!r}, target={_TARGET})",
        f"rarevote audit start {basis.audit_arguments} --find {shlex.quote(f'{head.rare_name}={_TARGET}')} "
        "--plan audit.json --review-out round-1.csv",
    )
    return Action(
        f"Have an expert audit the result, to prove that {percent(_TARGET)} of all {quoted(head.rare_name)} are found: "
        f"at least {counted(n, 'item')} drawn at random ({pace(n)}).",
        (command,),
    )


def pace(n: int) -> str:
    """How long this many reviews take.

    >>> pace(30)
    '5 minutes at 10 seconds per item'
    """
    return f"{minutes(n * SECONDS_A_LOOK)} at {SECONDS_A_LOOK} seconds per item"


def pile_sentences(found: Diagnosis, basis: Basis) -> list[str]:
    """The rule of the piles, and why a pile is large; or, instead of piles, that nothing can be decided."""
    piles = found.piles
    if basis.cannot_answer:
        return ["No label can be taken without a look: these votes cannot show which are right."]
    if not piles.n_sure:
        return ["No label can be taken without a look: none has a probability of 90% or more."]
    said = [
        "An item is worth a look if a look is expected to save more than one at an item picked at random, and to "
        "change at least one label in ten"
        + (" (with costs: to save a tenth of the cheapest mistake)." if basis.has_costs else ".")
        + " The list below has the same order as a review list."
    ]
    if 2 * piles.n_look > found.n_items:
        votes = np.diff(found.crowd.task_ptr)
        single, split = float((votes == 1).mean()), float((found.items.disputed > 0).mean())
        why = f"{percent(single)} of the items have a single vote" if single > split else ""
        why = why or f"annotators disagree on {percent(split)} of the items"
        said.append(f"More than half of the items are worth a look, because {why}.")
    return said
