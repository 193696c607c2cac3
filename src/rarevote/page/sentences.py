"""The sentences of the page, made from records before any markup."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import isfinite

import numpy as np

from rarevote import __version__
from rarevote.crowd.words import count, counted, percent, quoted
from rarevote.decide.expectations import UNKNOWN, Expected
from rarevote.decide.rules import ABSTAINED
from rarevote.diagnose.diagnosis import Diagnosis
from rarevote.diagnose.piles import Pile
from rarevote.diagnose.trade_off import TradeOff
from rarevote.diagnose.workers import lean_words

_MAX_TILES = 6
# From so many grades on, a lean is worth a sentence.
_STRONG_LEAN = 0.5


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
        features: what was made of features, in a sentence.
    """

    source: str
    method: str
    parameters: str = ""
    decision: str = ""
    n_gold: int = 0
    date: str = field(default_factory=lambda: datetime.now(UTC).date().isoformat())
    version: str = __version__
    cautions: tuple[str, ...] = ()
    features: str = ""


@dataclass(frozen=True)
class Tile:
    """A class, or a pile of items, with its counts."""

    name: str
    labelled: str
    share: str
    details: list[str]
    is_rare: bool


def leading_trade_off(found: Diagnosis) -> TradeOff:
    """That of the rare class: by the truth where there is any, else as expected."""
    found = found.head
    return found.true_trade_offs[0] if found.true_trade_offs else found.trade_offs[0]


def headline(found: Diagnosis) -> str:
    """The answer in one sentence; a recall below that of a majority vote is left to the cautions."""
    verb, found = "labelled" if found.of_tail is None else "flagged", found.head
    if found.leading is None:
        return _of_all_classes(found)
    labelled = int(found.classes.n_labelled[found.rare])
    of_all = f"{count(labelled)} of {counted(found.n_items, 'item')}"
    start = f"{of_all} {'is' if labelled == 1 else 'are'} {verb} {quoted(found.rare_name)}"
    best, expected = leading_trade_off(found), found.expected[found.rare].recall
    if len(found.classes.names) < 2 or not isfinite(best.chosen.recall) or recall_warning(found):
        return f"{start}."
    if not best.from_truth and not expected.is_told:
        return f"{start}. How many such items it misses is {UNKNOWN}."
    ours, theirs = percent(best.chosen.recall), percent(best.majority.recall)
    finds = f"by the truth, this finds {ours}"
    if not best.from_truth:
        finds, theirs = f"this is expected to find {in_words(expected)}", in_words(found.majority_recall[found.rare])
    finds = f"{start}: {finds} of all that are"
    if percent(best.chosen.recall) == percent(best.majority.recall):
        return f"{finds}, and so does a majority vote."
    return f"{finds}, where a majority vote finds {theirs}."


def _of_all_classes(found: Diagnosis) -> str:
    """The answer where no class stands out."""
    start = f"{counted(found.n_items, 'item')}, {counted(len(found.classes.names), 'class', 'classes')}"
    if found.truth is not None:
        ours, theirs = found.truth.scores.accuracy, found.truth.majority_scores.accuracy
        return (
            f"{start}: by the truth, {percent(ours)} of the labels are right; of a majority vote's, {percent(theirs)}."
        )
    if not found.expected_accuracy.is_told:
        return f"{start}. What share of the labels is right is {UNKNOWN}."
    return f"{start}: {in_words(found.expected_accuracy)} of the labels are expected to be right."


def recall_warning(found: Diagnosis) -> str | None:
    """That a majority vote finds more of the class that matters, if it does."""
    found = found.head
    best, rare = leading_trade_off(found), quoted(found.rare_name)
    ours, theirs = percent(best.chosen.recall), percent(best.majority.recall)
    if not best.chosen.recall < best.majority.recall or ours == theirs:
        return None
    what = "compare methods (rarevote compare), or decide by what a miss costs (--cost) or by a recall target"
    if best.from_truth:
        return f"By the truth, a majority vote finds more of {rare} ({theirs}) than this result ({ours}): {what}."
    more, less = found.majority_recall[found.rare], found.expected[found.rare].recall
    return (
        f"A majority vote is expected to find more of {rare}, {in_words(more)}, than this result, {in_words(less)}: "
        f"{what}."
    )


def lead(found: Diagnosis) -> str:
    """What the answer costs: one sentence below the headline."""
    found = found.head
    best, expected = leading_trade_off(found), found.expected[found.rare].precision
    if found.leading is None or not isfinite(best.chosen.precision):
        return ""
    if not best.from_truth and not expected.is_told:
        return f"How many of these labels are right is {UNKNOWN} (rarevote audit)."
    right = best.chosen.precision * best.chosen.n_flagged
    alarms = counted(best.chosen.n_flagged - right, "false alarm")
    precision = percent(best.chosen.precision)
    if not best.from_truth:
        return (
            f"About {count(right)} of these labels are expected to be right and {alarms} (precision {precision}, "
            f"{expected.percent_range})."
        )
    assert found.truth is not None
    checked = counted(found.truth.n_checked, "item")
    return f"By the truth of {checked}, {count(right)} of these labels are right and {alarms} (precision {precision})."


def in_words(expected: Expected) -> str:
    """A share that is expected, with its 90% interval; or who alone could know."""
    if not isfinite(expected.value):
        return "none"
    return f"{percent(expected.value)} ({expected.percent_range})" if expected.is_told else UNKNOWN


def tiles(found: Diagnosis) -> list[Tile]:
    """The classes with their counts, the one that leads first, then the largest."""
    classes, total = found.classes, found.n_items
    # Of two classes, the tail and the rest, the second says nothing new.
    made = [] if found.of_tail is None else tiles(found.of_tail)[:1]
    for k in found.classes_by_weight[:_MAX_TILES]:
        expected, n_labelled = found.expected.get(k), classes.n_labelled[k]
        details = []
        if expected and not expected.prevalence.is_told:
            details.append(f"how many truly are is {UNKNOWN}")
        elif expected:
            ends = f"{count(classes.expected_low[k])} to {count(classes.expected_high[k])}"
            details.append(f"about {count(classes.n_expected[k])} expected ({ends})")
        details.append(f"{count(classes.n_majority[k])} by majority vote")
        name, is_rare = str(classes.names[k]), k == found.leading and found.of_tail is None
        made.append(Tile(name, count(n_labelled), percent(n_labelled / total), details, is_rare))
    return made


def piles(found: Diagnosis) -> list[Tile]:
    """The three piles of the rare class, with how many of it are in each."""
    found = found.head
    name, total = found.rare_name, len(found.items.label)
    words = {Pile.SURELY: f"surely {name}", Pile.LOOK: "look at these", Pile.SURELY_NOT: f"surely not {name}"}
    is_rare = np.zeros(total)
    known = np.zeros(total, dtype=bool)
    if found.truth is not None:
        known[found.truth.items] = True
        is_rare[found.truth.items] = found.truth.truth == found.truth.classes.index(found.classes.names[found.rare])
    made = []
    for pile, title in words.items():
        inside = found.piles.pile == pile
        n_items = found.piles.n_items[pile]
        details = [f"about {count(found.piles.expected[pile])} expected to be {name}"]
        if found.truth is not None:
            details.append(f"{count(is_rare[inside].sum())} of {count((inside & known).sum())} are, by the truth")
        made.append(Tile(title, count(n_items), percent(n_items / total), details, is_rare=pile == Pile.SURELY))
    return made


def cautions(found: Diagnosis) -> list[str]:
    """What to know before relying on the page; empty if there is nothing."""
    said = []
    votes = found.crowd.n_annotations / found.crowd.n_tasks
    n_classes = len(found.classes.names)
    if not found.converged:
        said.append(f"The fit did not settle ({found.status}): allow more iterations with --set n_iter=1000.")
    if n_classes > 1 and (warning := recall_warning(found)):
        said.append(warning)
    if n_classes >= 5 and votes < 3:
        said.append(
            f"{votes:.1f} votes per item over {n_classes:,} classes are few: the difficulty of an item can absorb all "
            "disagreement." + ("" if found.method == "majority-vote" else " Compare with a majority vote.")
        )
    best, head = leading_trade_off(found), found.head
    if best.chosen.precision < 0.5 and (best.from_truth or head.expected[head.rare].precision.is_told):
        how = "By the truth" if best.from_truth else "As expected"
        said.append(
            f"{how}, {percent(1 - best.chosen.precision)} of the items labelled "
            f"{quoted(head.rare_name)} are false alarms: this decision would rather look twice than "
            "miss one. Have these items reviewed, or choose another point under “What finding more would cost”."
        )
    if n_classes > 1 and found.workers.accuracy.mean() < 1 / n_classes:
        said.append(
            "The average annotator does worse than guessing: such votes can as well be explained the other way round. "
            "Gold (--gold) settles it."
        )
    return said


def losses(found: Diagnosis) -> list[str]:
    """What a majority vote would have lost, in sentences."""
    found = found.head
    moved = found.overruled
    if not moved.items.size:
        return ["A majority vote gives every item the same label."]
    rare = quoted(found.rare_name)
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
        true_items = found.truth.n_true_by_name[found.classes.names[found.rare]]
        if true_items:
            theirs, ours = (count(point.recall * true_items) for point in (best.majority, best.chosen))
            said.append(
                f"By the truth, of {counted(true_items, f'true {rare} item')} a majority vote finds {theirs} and "
                f"this result {ours}."
            )
    return said


def leans(found: Diagnosis) -> list[str]:
    """Who rates high and who low, in sentences; nothing where the method knows of no grades."""
    if found.leans is None or not found.leans.size:
        return []
    high, low = int(found.leans.argmax()), int(found.leans.argmin())
    strong = int((np.abs(found.leans) >= _STRONG_LEAN).sum())
    if not strong:
        return [f"No annotator rates {_STRONG_LEAN:g} grades or more above or below the crowd's median."]
    names = found.workers.names
    said = [
        f"{names[k]} rates {lean_words(float(found.leans[k]))}"
        for k in (high, low)
        if abs(found.leans[k]) >= _STRONG_LEAN
    ]
    people = counted(strong, "annotator rates", "annotators rate")
    return [f"{people} {_STRONG_LEAN:g} grades or more above or below the crowd's median: {', '.join(said)}."]


def facts(found: Diagnosis, about: About) -> list[tuple[str, str]]:
    """Data and method, as pairs of a name and a value."""
    crowd = found.crowd
    pairs = [
        ("Data", about.source),
        ("Votes", f"{crowd.n_annotations:,} on {crowd.n_tasks:,} items by {crowd.n_workers:,} annotators "
                  f"({crowd.n_annotations / crowd.n_tasks:.1f} per item)"),
        ("Method", about.method + (f" with {about.parameters}" if about.parameters else "")),
        ("Labels", about.decision),
        ("Probabilities", f"calibrated, the same as in the result; class shares {found.shares_from}"),
        ("Fit", f"{counted(found.n_iter, 'iteration')}, {found.status}"),
    ]  # fmt: skip
    n_silent = int((found.items.label == ABSTAINED).sum())
    if n_silent:
        pairs.append(("No answer", f"{counted(n_silent, 'item')} of which no class is probable enough"))
    if about.n_gold:
        pairs.append(("Gold", f"{counted(about.n_gold, 'label')} given to the fit"))
    if crowd.abstentions:
        pairs.append(("Abstentions", count(sum(crowd.abstentions.values()))))
    if found.n_items > crowd.n_tasks:
        without = counted(found.n_items - crowd.n_tasks, "item has", "items have")
        pairs.append(("Without votes", f"{without} no votes and no label"))
    if crowd.n_dropped:
        pairs.append(("Left out", f"{counted(crowd.n_dropped, 'row')} (missing values or repeated pairs)"))
    if found.truth is not None and found.truth.n_given:
        pairs.append(
            ("Check", f"{counted(found.truth.n_given, 'true label')} not counted: the fit was given them as gold")
        )
    pairs.append(("Made", f"{about.date} by rarevote {about.version}"))
    return pairs
