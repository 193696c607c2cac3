"""The sentences of the page, made from records, without markup."""

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
# From this many grades, a lean is worth a sentence.
_STRONG_LEAN = 0.5


@dataclass(frozen=True)
class Action:
    """Something to do: a sentence, and the commands to copy."""

    sentence: str
    commands: tuple[str, ...] = ()


@dataclass(frozen=True)
class TargetStep:
    """What a recall target would flag, as ``decide(min_recall=)`` does.

    Attributes:
        wanted: the target recall.
        n_flagged: number of items that it would flag.
        recall: their expected recall.
        precision: their expected precision.
    """

    wanted: float
    n_flagged: int
    recall: Expected
    precision: Expected


@dataclass(frozen=True)
class Basis:
    """What the three lines at the top of a page need besides the records.

    Attributes:
        cannot_answer: why the votes cannot show which labels are right; empty if they can.
        is_unproved_jury: whether models cast most of the votes, and no gold shows how accurate they are.
        takes_gold: whether the method learns from gold.
        has_costs: whether the labels were decided by costs of mistakes.
        aggregate: command-line arguments for votes, fit and decision, for a command that lists items to review.
        audit_arguments: command-line arguments for votes and fit, for a command that starts an audit.
        audit_action: the next step of an audit of these labels, if there is one.
        targets: what some recall targets would flag; none if the recall is unknown.
    """

    cannot_answer: str = ""
    is_unproved_jury: bool = False
    takes_gold: bool = True
    has_costs: bool = False
    aggregate: str = "LABELS"
    audit_arguments: str = "LABELS"
    audit_action: Action | None = None
    targets: tuple[TargetStep, ...] = ()


@dataclass(frozen=True)
class About:
    """The origin of a page.

    Attributes:
        source: name of the data, without its folder.
        method: the method as written in prose.
        parameters: parameters that differ from their defaults, as text.
        decision: a sentence on how labels were decided.
        n_gold: number of gold labels of the fit.
        date: the day on which the page was made.
        version: version of this package.
        cautions: cautions besides those in the records.
        features: a sentence on how features were used.
        basis: what the three lines at the top need besides the records.
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
    basis: Basis = field(default_factory=Basis)


@dataclass(frozen=True)
class Tile:
    """A class, or a pile of items, with its counts."""

    name: str
    labelled: str
    share: str
    details: list[str]
    is_rare: bool


def leading_trade_off(found: Diagnosis) -> TradeOff:
    """The trade-off of the main class: by the truth if there is any, else as expected."""
    found = found.head
    return found.true_trade_offs[0] if found.true_trade_offs else found.trade_offs[0]


def recall_warning(found: Diagnosis) -> str | None:
    """A warning if a majority vote finds more of the class that matters."""
    found = found.head
    best, rare = leading_trade_off(found), quoted(found.rare_name)
    ours, theirs = percent(best.chosen.recall), percent(best.majority.recall)
    if found.leading is None or not best.chosen.recall < best.majority.recall or ours == theirs:
        return None
    what = "Compare methods (rarevote compare), or decide by what a miss costs (--cost) or by a recall (--min-recall)."
    if best.from_truth:
        return f"By the truth, a majority vote finds more of {rare} ({theirs}) than this result ({ours}). {what}"
    more, less = found.majority_recall[found.rare], found.expected[found.rare].recall
    return (
        f"A majority vote is expected to find more of {rare}, {in_words(more)}, than this result, {in_words(less)}. "
        f"{what}"
    )


def in_words(expected: Expected) -> str:
    """An expected share with its 90% interval; if that is too wide, a note that an audit is needed."""
    if not isfinite(expected.value):
        return "none"
    return f"{percent(expected.value)} ({expected.percent_range})" if expected.is_told else UNKNOWN


def tiles(found: Diagnosis) -> list[Tile]:
    """The classes with their counts, the main class first, then the largest."""
    classes, total = found.classes, found.n_items
    # With two classes, the tail and the rest, the second adds nothing.
    made = [] if found.of_tail is None else tiles(found.of_tail)[:1]
    for k in found.classes_by_weight[:_MAX_TILES]:
        expected, n_labelled = found.expected.get(k), classes.n_labelled[k]
        details = []
        if expected and not expected.prevalence.is_told:
            details.append(f"true number {UNKNOWN}")
        elif expected:
            ends = f"{count(classes.expected_low[k])} to {count(classes.expected_high[k])}"
            details.append(f"about {count(classes.n_expected[k])} expected ({ends})")
        details.append(f"{count(classes.n_majority[k])} by majority vote")
        name, is_rare = str(classes.names[k]), k == found.leading and found.of_tail is None
        made.append(Tile(name, count(n_labelled), percent(n_labelled / total), details, is_rare))
    return made


def piles(found: Diagnosis) -> list[Tile]:
    """The piles with the probabilities of their labels; two if there is no main class."""
    head, sorted_items, total = found.head, found.piles, found.n_items
    names = {Pile.LOOK: "worth a look"}
    if head.leading is None:
        names[Pile.NOT_FLAGGED] = "take as labelled"
    else:
        names = {Pile.FLAGGED: f"take as {head.rare_name}", **names, Pile.NOT_FLAGGED: f"take as not {head.rare_name}"}
    made = []
    for pile, title in names.items():
        members = [pile] if head.leading is not None or pile == Pile.LOOK else [Pile.FLAGGED, Pile.NOT_FLAGGED]
        n_items = int(sorted_items.n_items[members].sum())
        details = []
        if n_items:
            least, most = np.nanmin(sorted_items.least[members]), np.nanmax(sorted_items.most[members])
            details.append(f"probability of their labels: {percent(least)} to {percent(most)}")
        if found.truth is not None:
            inside = np.isin(sorted_items.pile[found.truth.items], members)
            right = (found.truth.truth == found.truth.label)[inside]
            details.append(f"{count(right.sum())} of {counted(right.size, 'label')} right, by the truth")
        made.append(Tile(title, count(n_items), percent(n_items / total), details, is_rare=pile == Pile.FLAGGED))
    return made


def cautions(found: Diagnosis) -> list[str]:
    """Cautions about the page; empty if there are none."""
    said = []
    votes = found.crowd.n_annotations / found.crowd.n_tasks
    n_classes = len(found.classes.names)
    if not found.converged:
        said.append(f"The fit did not converge ({found.status}): allow more iterations with --set n_iter=1000.")
    if n_classes > 1 and (warning := recall_warning(found)):
        said.append(warning)
    if n_classes >= 5 and votes < 3:
        said.append(
            f"There are only {votes:.1f} votes per item for {n_classes:,} classes: the model can explain any "
            "disagreement by hard items."
            + ("" if found.method == "majority-vote" else " Compare with a majority vote.")
        )
    best, head = leading_trade_off(found), found.head
    is_known = best.from_truth or head.expected[head.rare].precision.is_told
    if head.leading is not None and best.chosen.precision < 0.5 and is_known:
        how = "By the truth" if best.from_truth else "As expected"
        said.append(
            f"{how}, {percent(1 - best.chosen.precision)} of the items flagged as {quoted(head.rare_name)} are false "
            "alarms: this decision prefers a false alarm to a miss. Review these items, or choose another point under "
            "“What finding more would cost”."
        )
    if n_classes > 1 and found.workers.accuracy.mean() < 1 / n_classes:
        said.append(
            "The average annotator does worse than guessing, so the same votes also fit the opposite labels. Gold "
            "(--gold) shows which is right."
        )
    return said


def losses(found: Diagnosis) -> list[str]:
    """Sentences on what a majority vote would label differently."""
    found = found.head
    moved = found.overruled
    if not moved.items.size:
        return ["A majority vote gives every item the same label."]
    rare = quoted(found.rare_name)
    to_rare = moved.label == found.rare
    gained = int(moved.count[to_rare].sum())
    share = percent(moved.items.size / len(found.items.label))
    said = [f"A majority vote would label {counted(moved.items.size, 'item')} differently ({share} of the items)."]
    if found.leading is None:
        return said
    if gained:
        which = "All" if gained == moved.items.size else count(gained)
        said.append(f"{which} of them are flagged as {rare} here, against the majority of their votes.")
    if found.truth is None:
        ours, theirs = found.expected[found.rare].recall, found.majority_recall[found.rare]
        if ours.is_told and theirs.is_told:
            said.append(
                f"Of all {rare}, this result is expected to find {in_words(ours)}, a majority vote {in_words(theirs)}."
            )
        return said
    best = leading_trade_off(found)
    true_items = found.truth.n_true_by_name[found.classes.names[found.rare]]
    if true_items:
        by_vote, by_result = (count(point.recall * true_items) for point in (best.majority, best.chosen))
        said.append(
            f"By the truth, a majority vote finds {by_vote} of {counted(true_items, f'true {rare} item')}, this result "
            f"{by_result}."
        )
    return said


def leans(found: Diagnosis) -> list[str]:
    """Sentences on who rates high and who low; none if the method does not use grades."""
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
        ("Decision", about.decision),
        ("Probabilities", f"calibrated, the same as in the result file; class shares {found.shares_from}"),
        ("Fit", f"{counted(found.n_iter, 'iteration')}, {found.status}"),
    ]  # fmt: skip
    n_silent = int((found.items.label == ABSTAINED).sum())
    if n_silent:
        pairs.append(("No answer", f"{counted(n_silent, 'item')}: no class is probable enough"))
    if about.n_gold:
        pairs.append(("Gold", f"{counted(about.n_gold, 'label')} given to the fit"))
    if crowd.abstentions:
        pairs.append(("Abstentions", count(sum(crowd.abstentions.values()))))
    if found.n_items > crowd.n_tasks:
        without = counted(found.n_items - crowd.n_tasks, "item has", "items have")
        pairs.append(("Without votes", f"{without} no votes"))
    if crowd.n_dropped:
        pairs.append(("Left out", f"{counted(crowd.n_dropped, 'row')} (missing values or repeated pairs)"))
    if found.truth is not None and found.truth.n_given:
        pairs.append(
            ("Check", f"{counted(found.truth.n_given, 'true label')} not counted: the fit was given them as gold")
        )
    if about.features:
        pairs.append(("Features", about.features))
    pairs.append(("Made", f"{about.date} by rarevote {about.version}"))
    return pairs
