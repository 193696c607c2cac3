"""The decider: the only place where probabilities become labels.

It combines rule, guards, gold, rare class and recall target. A label is a class with a vote on the item, unless the
item is known; if the votes cannot show who is right, the majority vote is the label; an item without votes has no
label. It needs only sums over other items, so the items can be on other machines: :meth:`Deciding.look` sums up some
items, :meth:`Deciding.decider` fixes the rule for labels, :meth:`Decider.codes` labels some items, and
:meth:`Deciding.outcome` gives the result. :func:`decide_crowd` does all of it for a crowd in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.numerics import FloatArray, IntArray, added, picked
from rarevote.crowd.rare import RareClass
from rarevote.crowd.steps import doing
from rarevote.crowd.words import counted
from rarevote.decide.expectations import (
    N_BINS,
    Belief,
    ClassCounts,
    bin_of,
    count_class,
    count_drawn,
    expectations_from,
)
from rarevote.decide.guards import (
    CrowdSize,
    VoteSurvey,
    doubts,
    explained_away_notes,
    features_answer_note,
    no_answer_note,
    rare_note,
    silence_note,
    single_vote_note,
    tail_notes,
    why_no_answer,
)
from rarevote.decide.probabilities import Probabilities
from rarevote.decide.recall_target import (
    Flags,
    RecallTarget,
    flags_in_draws,
    flags_needed,
    gold_threshold,
    target_reached,
)
from rarevote.decide.rules import ABSTAINED, FlagAbove, ItemBatch, MinRecall, OwnLabels, Rule, TheVotes
from rarevote.decide.sampled import DrawsLater, IndependentDraws
from rarevote.decide.tail import tail_flags
from rarevote.errors import ParameterError, how

# Cells per part: the work arrays stay in the cache, whatever the number of items.
_CELLS = 1 << 16


class Note(NamedTuple):
    """A caution about labels.

    Attributes:
        kind: its subject: the votes cannot show who is right ("no answer"), a recall target ("target"), items with a
            single vote ("single"), the method's labels ("doubt"), a class whose votes count as errors ("explained
            away"), the rare class ("rare"), a tail of grades ("tail"), names ("silence").
        description: a sentence.
    """

    kind: Literal["no answer", "target", "single", "doubt", "explained away", "rare", "tail", "silence"]
    description: str


class Decided(NamedTuple):
    """The result of a decision.

    Attributes:
        codes: class number of each item, -1 for no answer, (n).
        description: how it was decided.
        target: the outcome of a recall target.
        n_guarded: number of items whose label would have been a class without a vote on them.
        notes: cautions about the labels.
        cannot_answer: whether the labels are only the majority vote.
        flagged: items of the rare class by the decision, (n): those labelled so, or flagged for a tail.
    """

    codes: IntArray
    description: str
    target: RecallTarget | None
    n_guarded: int
    notes: tuple[Note, ...]
    cannot_answer: bool
    flagged: NDArray[np.bool_]


class CrowdSums(NamedTuple):
    """The sums over some items that the decider needs; sums of two parts add up, entry by entry.

    Attributes:
        survey: the sums for the guards.
        of_target: items whose class is not known, by probability of the class that has a recall target: all, and
            those that can be flagged, (2, N_BINS).
        drawn: the same for items of the class in every draw of independent errors, (n_draws, 2, N_BINS).
    """

    survey: VoteSurvey
    of_target: IntArray
    drawn: IntArray

    def plus(self, other: CrowdSums) -> CrowdSums:
        """The sums over the items of both."""
        return added(self, other)


class Labelled(NamedTuple):
    """The results for some items; results of two parts add up, entry by entry.

    Attributes:
        labels: number of items with each label, (K).
        n_guarded: number of items whose label would have been a class without a vote on them.
        n_rare: number of items without gold labelled as the rare class, or flagged for a tail.
        n_rare_unvoted: number of these without a vote in the tail.
        n_unvoted: number of items flagged for a guaranteed recall without a vote for the class.
        open: items whose class is not known, by probability of the class with a recall target and whether they are
            flagged, (N_BINS, 2).
        known: known items of that class, likewise, (2).
        drawn: items of that class in every draw of independent errors, likewise, (n_draws, 2).
        n_without: number of items that the method's own rule flags, without the target.
        without: the counts of the class by that rule.
    """

    labels: IntArray
    n_guarded: int
    n_rare: int
    n_rare_unvoted: int
    n_unvoted: int
    open: IntArray
    known: IntArray
    drawn: IntArray
    n_without: int
    without: ClassCounts

    def plus(self, other: Labelled) -> Labelled:
        """The sums over the items of both."""
        return added(self, other)


@dataclass(frozen=True, eq=False)
class Decider:
    """A rule for labels, with everything that depends on the whole crowd fixed.

    Attributes:
        rule: the rule, ready to choose.
        shares: mean probability of every class over all items, (K).
        only_voted: whether a label needs a vote on its item.
    """

    rule: Rule
    shares: FloatArray
    only_voted: bool = True

    def codes(self, part: ItemBatch) -> tuple[IntArray, int]:
        """Class number of each item, -1 for no answer; and the number of items whose first choice had no vote."""
        n, n_classes = part.p.shape
        codes = np.empty(n, dtype=np.int64)
        n_guarded = 0
        step = max(_CELLS // max(n_classes, 1), 1)
        for begin in range(0, n, step):
            rows = slice(begin, begin + step)
            codes[rows], guarded = self._some(part.rows(rows))
            n_guarded += guarded
        return codes, n_guarded

    def _some(self, part: ItemBatch) -> tuple[IntArray, int]:
        known, permitted = part.gold >= 0, self.rule.permitted(part.votes)
        has_votes = permitted.any(axis=1)
        codes = self.rule.choose(part, self.shares)
        bound = part.bound
        refused = (codes >= 0) & ~picked(permitted, codes) & ~known & has_votes & bound
        if isinstance(self.rule, FlagAbove) and self.rule.promised:
            # No item is left out: otherwise only lucky samples would give a guarantee.
            refused &= ~self.rule.rare.holds(codes)
        n_guarded = 0
        if self.only_voted and refused.any():
            some = part.rows(refused)
            n_guarded = int((self.rule.answered(some, codes[refused]) >= 0).sum())
            codes[refused] = self.rule.choose(some, self.shares, permitted[refused])
        codes = self.rule.answered(part, codes)
        codes[~has_votes & bound] = ABSTAINED
        return np.where(known, part.gold, codes), n_guarded


@dataclass(frozen=True, eq=False)
class Deciding:
    """A decision to make, with its context.

    Attributes:
        rule: how to decide.
        own: the method's own rule.
        crowd: names and sizes for the messages of the guards.
        rare: the class that matters.
        shares: mean probability of every class, (K).
        n_items: number of all items, including those without votes.
        belief: how far the probabilities are trusted.
        given: share of every class, if given, (K).
        only_voted: whether a label needs a vote on its item.
        vouching: scores of a random sample of known items of the class with a recall target, which can guarantee it.
        has_features: whether features are used besides the votes: then labels are never the votes alone.
        why_not: why independent errors are not drawn, as text.
    """

    rule: Rule
    own: Rule
    crowd: CrowdSize
    rare: RareClass
    shares: FloatArray
    n_items: int
    belief: Belief
    given: FloatArray | None = None
    only_voted: bool = True
    vouching: FloatArray | None = None
    has_features: bool = False
    why_not: str = "the votes are not in memory"

    @cached_property
    def wanted(self) -> tuple[RareClass, float] | None:
        """The class, or the tail of grades, with a recall target, and the target."""
        return self.rule.target(self.crowd.classes) if isinstance(self.rule, MinRecall) else None

    def with_own(self, part: ItemBatch) -> ItemBatch:
        """The items with the method's own labels, if these follow from the probabilities."""
        if self.own == OwnLabels():
            return part
        return part._replace(own=Decider(self.own.ready(self.crowd.classes), self.shares).codes(part)[0])

    def look(
        self, part: ItemBatch, task_ptr: NDArray[np.int64], worker: NDArray[Any], draws: DrawsLater | None = None
    ) -> CrowdSums:
        """The sums over these items (see :meth:`VoteSurvey.of`); ``draws`` are those of independent errors."""
        permitted = self.own.ready(self.crowd.classes).permitted(part.votes)
        survey = VoteSurvey.of(part, task_ptr, worker, self.rare, permitted)
        return CrowdSums(survey, *self._may_be_flagged(part, draws))

    def _may_be_flagged(self, part: ItemBatch, draws: DrawsLater | None) -> tuple[IntArray, IntArray]:
        """Items by probability of the class with a target, all and those that can be flagged; and by draw."""
        if self.wanted is None:
            return np.zeros((2, N_BINS), dtype=np.int64), np.zeros((0, 2, N_BINS), dtype=np.int64)
        rare, open_items = self.wanted[0], part.gold < 0
        bins, kinds = bin_of(rare.mass(part.p)), (open_items, open_items & self.may(part))
        drawn = np.empty((0, len(bins)), dtype=bool) if draws is None else rare.holds(draws().classes)
        return (
            np.stack([np.bincount(bins[rows], minlength=N_BINS) for rows in kinds]),
            np.stack([count_drawn(drawn & rows, bins, N_BINS) for rows in kinds], axis=1),
        )

    def may(self, part: ItemBatch) -> NDArray[np.bool_]:
        """Which items can be flagged for a recall target, (n)."""
        assert self.wanted is not None
        votes = self.wanted[0].mass(part.votes) if self.only_voted else part.votes.sum(axis=1)
        return np.asarray((votes > 0) | ~part.bound)

    def reason(self, survey: VoteSurvey) -> str | None:
        """Why the votes cannot show who is right, as text."""
        return why_no_answer(self.crowd.workers, survey.n_several, survey.n_voted)

    def decider(self, sums: CrowdSums, kth_largest: Callable[[RareClass, int], float]) -> Decider:
        """The rule for labels.

        Args:
            sums: sums over all items.
            kth_largest: the k-th largest probability of a class or a tail among items that can be flagged and are not
                known.
        """
        unanswerable = self.reason(sums.survey) is not None and not self.has_features
        rule = TheVotes() if unanswerable else self._ready(sums, kth_largest)
        return Decider(rule, self.shares, self.only_voted)

    def _ready(self, sums: CrowdSums, kth_largest: Callable[[RareClass, int], float]) -> Rule:
        if self.wanted is None or not isinstance(self.rule, MinRecall):
            return self.rule.ready(self.crowd.classes)
        rare, target = self.wanted
        bound = None
        if self.vouching is not None and target < 1.0:
            bound = gold_threshold(self.vouching, target, self.rule.confidence)
        if bound is not None:
            return FlagAbove(rare, bound, promised=True)
        of_all, that_may = sums.of_target
        flags = Flags(
            flags_needed(of_all, that_may, target, self.belief.of_class, self._given(rare)),
            flags_in_draws(sums.drawn, that_may, target),
            self.rule.errors,
        )
        if flags.errors == "independent" and flags.independent is None:
            raise ParameterError(
                f"{how('errors', '--errors')} independent needs draws of independent errors, and there are none: "
                f"{self.why_not}. Leave it out: then annotators share errors as real crowds do"
            )
        return FlagAbove(rare, kth_largest(rare, flags.used) if flags.used else float("inf"), needed=flags)

    def _given(self, rare: RareClass) -> float | None:
        return None if self.given is None else float(rare.mass(self.given))

    def flagged(self, decider: Decider, part: ItemBatch, codes: IntArray) -> NDArray[np.bool_]:
        """Which items are of the rare class by the decision, (n): those labelled so, or flagged for a tail."""
        if not self.rare.is_tail or isinstance(decider.rule, (TheVotes, FlagAbove)):
            return self.rare.holds(codes)
        flagged = tail_flags(self.rare, part.p, self.shares)
        return np.asarray(flagged & ((part.votes > 0).any(axis=1) | (part.gold >= 0) | ~part.bound))

    def _flagged_without(self, part: ItemBatch, rare: RareClass) -> NDArray[np.bool_]:
        """Which items the method's own decision flags as the class or the tail that has a recall target, (n)."""
        decider = Decider(self.own.ready(self.crowd.classes), self.shares, self.only_voted)
        codes = decider.codes(part)[0]
        return self.flagged(decider, part, codes) if rare.codes == self.rare.codes else rare.holds(codes)

    def labelled(
        self, decider: Decider, part: ItemBatch, codes: IntArray, n_guarded: int, draws: DrawsLater | None = None
    ) -> Labelled:
        """The results for these items; ``draws`` are those of independent errors."""
        K = len(self.crowd.classes)
        counted = without = ClassCounts(*(np.zeros(shape, dtype=np.int64) for shape in ((N_BINS, 2), 2, (0, 2))))
        n_unvoted = n_without = 0
        if self.wanted is not None:
            rare, _ = self.wanted
            some = Probabilities(self.crowd.classes, part.p, self.shares, part.gold, draws=draws)
            of_rare = some.against_the_rest(rare)
            counted = count_class(of_rare, 0, rare.holds(codes))
            own = self._flagged_without(part, rare)
            without, n_without = count_class(of_rare, 0, own), int(own.sum())
            unvoted = rare.holds(codes) & (rare.mass(part.votes) == 0) & (part.gold < 0)
            n_unvoted = int(unvoted.sum()) if isinstance(decider.rule, FlagAbove) and decider.rule.promised else 0
        flagged = self.flagged(decider, part, codes) & (part.gold < 0)
        return Labelled(
            np.bincount(codes[codes >= 0], minlength=K),
            n_guarded,
            int(flagged.sum()),
            int((flagged & (self.rare.mass(part.votes) == 0)).sum()) if self.rare.is_tail else 0,
            n_unvoted,
            *counted,
            n_without,
            without,
        )

    def outcome(self, decider: Decider, survey: VoteSurvey, found: Labelled) -> Decided:
        """The result of the decision, without the labels."""
        reason = self.reason(survey)
        notes: list[Note] = []
        if reason is not None and self.has_features:
            notes.append(Note("doubt", features_answer_note(reason)))
            reason = None
        target = None
        if reason is not None:
            notes.append(Note("no answer", no_answer_note(reason)))
        else:
            target = self._target(decider, found)
            if found.n_unvoted and target is not None:
                unvoted = f"{found.n_unvoted:,} of the items flagged for the recall of {target.name}"
                notes.append(Note("target", f"{unvoted} have no vote for it: the promise needs them"))
            if target is not None and target.promised and self.n_items > survey.n_voted:
                without = counted(self.n_items - survey.n_voted, "item without votes is", "items without votes are")
                notes.append(Note("target", f"{without} not flagged: the promise covers only items with votes"))
            single = None if self.has_features else single_vote_note(survey.n_single, survey.n_voted)
            if (words := single) is not None:
                notes.append(Note("single", words))
            notes += [Note("doubt", words) for words in doubts(survey, self.crowd)]
            if self.given is None:
                notes += [Note("explained away", words) for words in explained_away_notes(self.shares, self.crowd)]
            if (words := rare_note(survey, self.crowd, self.rare, found.n_rare)) is not None:
                notes.append(Note("rare", words))
            if self.rare.is_tail:
                notes += [Note("tail", words) for words in tail_notes(self.rare, self.shares, found.n_rare_unvoted)]
        if (words := silence_note(self.crowd.classes)) is not None:
            notes.append(Note("silence", words))
        decided_by = TheVotes().description if reason is not None else self.rule.description
        nothing = np.empty(0, dtype=np.int64)
        nobody = np.empty(0, dtype=bool)
        return Decided(nothing, decided_by, target, found.n_guarded, tuple(notes), reason is not None, nobody)

    def _target(self, decider: Decider, found: Labelled) -> RecallTarget | None:
        if self.wanted is None or not isinstance(self.rule, MinRecall) or not isinstance(decider.rule, FlagAbove):
            return None
        rare, target = self.wanted
        n_flagged = int(rare.mass(found.labels))
        with_target = n_flagged, ClassCounts(found.open, found.known, found.drawn)
        expected, without = (
            expectations_from(rare.name, counts, n, self.n_items, self.belief.of_class, self._given(rare))
            for n, counts in (with_target, (found.n_without, found.without))
        )
        return target_reached(
            expected,
            target=target,
            confidence=self.rule.confidence,
            threshold=decider.rule.threshold,
            promised=decider.rule.promised,
            n_flagged=n_flagged,
            n_items=self.n_items,
            n_gold=0 if self.vouching is None else len(self.vouching),
            share=float(rare.mass(self.shares)),
            flags=decider.rule.needed,
            n_known=int(found.known.sum()),
            n_flagged_without=found.n_without,
            recall_without=without.recall,
            why_not=self.why_not,
        )


def decide_crowd(
    crowd: Annotations,
    probabilities: Probabilities,
    rule: Rule,
    *,
    own: Rule,
    own_codes: IntArray | None,
    rare: RareClass,
    method: str,
    default_method: str,
    allow_unvoted: bool | None = None,
) -> Decided:
    """Decide on all items of a crowd in memory.

    Args:
        crowd: the votes.
        probabilities: probabilities of all items: those with votes, in the order of ``crowd``, then those without.
        rule: how to decide.
        own: the method's own rule.
        own_codes: the method's own labels, (n_tasks); None if its rule derives them from the probabilities.
        rare: the class that matters.
        method: name of the method.
        default_method: name of the method to compare it with.
        allow_unvoted: whether a label can be a class without a vote on the item; by default, only if features are used.
    """
    doing("deciding")
    n, n_tasks = len(probabilities), crowd.n_tasks
    votes = crowd.votes()
    if n > n_tasks:
        votes = np.concatenate([votes, np.zeros((n - n_tasks, crowd.n_classes))])
    own_labels: IntArray = np.broadcast_to(np.int64(ABSTAINED), n)
    if own_codes is not None:
        own_labels = own_labels.copy()
        own_labels[:n_tasks] = own_codes
    deciding = Deciding(
        rule,
        own,
        CrowdSize(crowd.workers, crowd.classes, crowd.class_votes, method, default_method),
        rare,
        probabilities.mean,
        n,
        Belief.in_probabilities(probabilities),
        probabilities.mean if probabilities.is_given else None,
        not allow_unvoted,
        _vouching(rule, probabilities),
        probabilities.has_features,
    )
    if deciding.wanted is not None:
        deciding = replace(deciding, why_not=probabilities.independent.why_not)

    def draws() -> IndependentDraws:
        return probabilities.independent

    free = probabilities.free
    if free is not None and allow_unvoted is False:
        free = free & (np.arange(n) >= n_tasks)
    part = ItemBatch(probabilities.p, votes, own_labels, probabilities.gold, probabilities.ranking, free)
    part = deciding.with_own(part)
    sums = deciding.look(part, crowd.task_ptr, crowd.worker, draws)

    def kth_largest(wanted: RareClass, k: int) -> float:
        scores = wanted.mass(part.p[deciding.may(part) & (part.gold < 0)])
        return float(np.partition(scores, scores.size - k)[scores.size - k])

    decider = deciding.decider(sums, kth_largest)
    codes, n_guarded = decider.codes(part)
    found = deciding.labelled(decider, part, codes, n_guarded, draws)
    flagged = deciding.flagged(decider, part, codes)
    return deciding.outcome(decider, sums.survey, found)._replace(codes=codes, flagged=flagged)


def _vouching(rule: Rule, probabilities: Probabilities) -> FloatArray | None:
    """Scores of the random sample of known items of the class with a recall target."""
    if not isinstance(rule, MinRecall) or not rule.random_gold:
        return None
    wanted, _ = rule.target(probabilities.classes)
    return wanted.mass(probabilities.ranking[wanted.holds(probabilities.gold)])
