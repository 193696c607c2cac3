"""Does a certificate follow from its plan? For third parties: only the two files are needed.

Draws are regenerated from the seed, every round is planned again from the answers before it
(:mod:`rarevote.audit.replanning`), the bets are replayed from the answers, and the certificate is
compared with the result. If the labels are available, their items must be those of the plan.

Verification cannot show whether the answers are true, or whether the same items were audited elsewhere with
another seed, another ranking or other round sizes until one attempt certified. The plan's SHA-256 in a certificate
shows that nothing has changed since it was issued.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf, isclose
from pathlib import Path
from typing import Any

from rarevote.audit.answers import ExpertWords
from rarevote.audit.audit import Audit
from rarevote.audit.certificate import FORMAT, VERSION
from rarevote.audit.plan_file import Plan, read_text
from rarevote.audit.planning import FLAG_COST
from rarevote.audit.replanning import UnplannedSize, replan
from rarevote.audit.source import LabelsAtHand, labels_at_hand
from rarevote.audit.words import certified_words, earlier_claim_words, population_words
from rarevote.crowd.annotations import Annotations
from rarevote.crowd.names import some_names, spellings_of_one
from rarevote.crowd.words import counted
from rarevote.errors import InputError, shown
from rarevote.io.json_text import parse_json

# Logarithms differ in the last place between machines.
_TOLERANCE = 1e-9
# Estimates are quantiles of draws that depend on such logarithms.
_ESTIMATE_TOLERANCE = 1e-6
# Fields that must match exactly.
_OTHERWISE = ("format", "version", "log_wealth", "estimates")

_SAYS = {
    "class": "the class",
    "tail": "the grades of the tail",
    "target": "the target",
    "confidence": "the confidence",
    "certified": "whether anything is certified",
    "certified_set": "the certified set",
    "items": "the number of items",
    "population": "the population",
    "voted": "the number of items with votes",
    "unvoted": "the number of items without votes",
    "left_out": "the number of items that are left out",
    "only_voted_items": "whether items without votes are left out",
    "gold": "the number of gold items",
    "gold_positives": "the number of gold positives",
    "reviewed": "the number of reviews",
    "positives_reviewed": "the number of positives among the reviews",
    "worst_cases": "the number of worst cases",
    "flagged": "the number of flagged items",
    "flagged_unreviewed": "the number of flagged items without a review",
    "final_list_sha256": "the final list",
    "repeated": "the number of repeated items",
    "repeated_differently": "the number of repeated items with a different answer",
    "earlier_audits": "the earlier audits",
    "instructions": "the question and the definitions",
    "claim": "the claim",
    "relative_to": "what the claim is relative to",
    "started": "when the audit started",
    "seed": "the seed",
    "labels_sha256": "the SHA-256 of the labels",
    "gold_sha256": "the SHA-256 of the gold",
    "strata_sha256": "the ranking and its strata",
    "plan_sha256": "the SHA-256 of the plan",
}

# Sentences that certificates of earlier versions have in another wording.
_EARLIER_WORDS = {
    "nothing smaller than all items.": "nothing yet.",
    "no assumption on the crowd": "no assumption about the crowd",
    "auditing until one certifies re-rolls the dice, and the confidence holds for each alone.": (
        "the confidence holds for each audit alone, not for the best of several."
    ),
}


class Verdict(tuple[str, ...]):
    """Reasons why a certificate does not follow from a plan; empty if it does.

    Attributes:
        notes: cautions about a certificate that follows.
    """

    notes: tuple[str, ...]

    def __new__(cls, reasons: Iterable[str], notes: Iterable[str] = ()) -> Verdict:
        """A verdict with these reasons."""
        self = super().__new__(cls, reasons)
        self.notes = tuple(notes)
        return self


def verify(
    plan: str | Audit,
    claimed: str | Mapping[str, Any],
    *,
    labels_sha256: str | None = None,
    votes: Annotations | None = None,
) -> Verdict:
    """Reasons why a certificate does not follow from a plan; empty if it does.

    Args:
        labels_sha256: SHA-256 of the labels, to check that the audit used them.
        votes: the labels, read as at the start, to check that the audit covered all of their items.
    """
    try:
        # An audit in memory is also replayed from its log: its current state proves nothing.
        audit = Audit.from_json(plan.to_json() if isinstance(plan, Audit) else plan)
    except InputError as error:
        return Verdict([str(error)])
    record = _record(claimed)
    if record is None:
        return Verdict([f'the certificate is not a JSON object of the format "{FORMAT}", version {VERSION}'])
    reasons, sizes = replan(audit.plan)
    earlier = {**_EARLIER_WORDS, **earlier_claim_words(audit.plan)}
    reasons += _different_claims(record, audit.certificate(), earlier)
    if labels_sha256 is not None and labels_sha256 != audit.plan.labels_sha256:
        reasons.append(f"these labels have the SHA-256 {labels_sha256}, those of the plan {audit.plan.labels_sha256}")
    elif votes is not None:
        reasons += _different_items(audit.plan, votes)
    notes = [
        _items_words(audit.plan),
        *_claim_words(record, audit),
        *_unsure_words(audit),
        *_spelling_words(audit.plan),
        *_cost_words(audit.plan),
        *_sizes_words(sizes),
    ]
    return Verdict(reasons, notes)


def verify_files(
    plan: Path | str,
    claimed: Path | str,
    *,
    labels: Sequence[str | Path] | None = None,
) -> Verdict:
    """:func:`verify` for files; answers in the journal beside the plan count.

    Args:
        labels: the labels of the audit; by default, the files that the plan names, if they exist.

    Raises:
        InputError: a file cannot be read.
    """
    text = read_text(claimed)
    read_text(plan)
    try:
        audit = Audit.load(plan)
    except InputError as error:
        return Verdict([str(error)])
    at_hand = labels_at_hand(audit.plan, Path(plan), labels)
    if at_hand is None:
        verdict = verify(audit, text)
        return Verdict(verdict, [*verdict.notes, "the labels were not found, so they were not compared"])
    verdict = verify(audit, text, labels_sha256=at_hand.sha256, votes=at_hand.votes)
    reasons = [*verdict, *([] if at_hand.fault is None else [at_hand.fault])]
    return Verdict(reasons, [*verdict.notes, *_labels_words(audit.plan, at_hand)])


def _record(claimed: str | Mapping[str, Any]) -> Mapping[str, Any] | None:
    try:
        record = parse_json(claimed, unique_keys=True) if isinstance(claimed, str) else claimed
    except ValueError:
        return None
    sound = isinstance(record, Mapping) and record.get("format") == FORMAT and record.get("version") == VERSION
    return record if sound else None


def _different_claims(record: Mapping[str, Any], replayed: Mapping[str, Any], earlier: Mapping[str, str]) -> list[str]:
    reasons = [
        f"{words}: the certificate says {shown(record.get(name))}, the plan {shown(replayed.get(name))}"
        for name, words in _SAYS.items()
        if _current_words(name, record.get(name), earlier) != _current_words(name, replayed.get(name), earlier)
    ]
    reasons += _different_wealth(record.get("log_wealth"), replayed["log_wealth"])
    if not _same_figures(record.get("estimates"), replayed["estimates"]):
        said, found = shown(record.get("estimates"), 200), shown(replayed["estimates"], 200)
        reasons.append(f"the estimates: the certificate says {said}, the replay gives {found}")
    unknown = [name for name in record if name not in _SAYS and name not in _OTHERWISE]
    if unknown:
        reasons.append(f"the certificate has fields that cannot be checked: {some_names(unknown)}")
    return reasons


def _current_words(name: str, said: Any, earlier: Mapping[str, str]) -> Any:
    """The certificate with its sentences in the wording of this version."""
    if name in ("claim", "relative_to") and isinstance(said, str):
        for before, now in earlier.items():
            said = said.replace(before, now)
    return said


def _different_wealth(claimed: Any, replayed: list[Any]) -> list[str]:
    if not isinstance(claimed, list) or len(claimed) != len(replayed):
        return ["the bets: the certificate does not have one for every set of the plan"]
    for j, (said, found) in enumerate(zip(claimed, replayed, strict=True)):
        if not _are_close(_unbounded(said), _unbounded(found), _TOLERANCE):
            said = shown(said)
            return [f"the bets on set {j}: the certificate says a log wealth of {said}, the replay gives {found}"]
    return []


def _unbounded(value: Any) -> Any:
    return inf if value == "infinity" else value


def _same_figures(said: Any, found: Any) -> bool:
    """Whether two records have the same keys and, up to rounding, the same figures."""
    if isinstance(found, Mapping):
        same_names = isinstance(said, Mapping) and said.keys() == found.keys()
        return same_names and all(_same_figures(said[name], found[name]) for name in found)
    return said is None if found is None else _are_close(said, found, _ESTIMATE_TOLERANCE)


def _are_close(said: Any, found: float, tolerance: float) -> bool:
    try:
        return type(said) in (int, float) and isclose(said, found, rel_tol=tolerance, abs_tol=tolerance)
    except OverflowError:  # an integer too large for a float
        return False


def _different_items(plan: Plan, votes: Annotations) -> list[str]:
    """A reason if the items of the labels are not the strata and the gold of the plan."""
    audited, unvoted = plan.tasks, set(votes.unanswered.tolist())
    at_hand = unvoted.union(votes.tasks.tolist())
    away = at_hand - audited
    if plan.may_leave_out:
        away -= unvoted
    reasons = []
    for tasks, words in (
        (away, "in these labels but neither in the strata nor in the gold of the plan"),
        (audited - at_hand, "in the plan but not in these labels"),
    ):
        if tasks:
            some = some_names(sorted(tasks, key=str)[:3])
            reasons.append(f"{counted(len(tasks), 'item')} {words}, such as {some}")
    return reasons + _different_population(plan, audited, unvoted)


def _different_population(plan: Plan, audited: set[Any], unvoted: set[Any]) -> list[str]:
    """A reason if the plan and the labels differ in the items without votes."""
    said = plan.population
    if said is None:
        return []
    found = (len(unvoted & audited - plan.gold.keys()), len(unvoted - audited))
    if found == (said.unvoted, said.left_out):
        return []
    return [
        f"the plan says that {said.unvoted:,} items of its strata have no votes and that {said.left_out:,} are left "
        f"out; in these labels it is {found[0]:,} and {found[1]:,}"
    ]


def _items_words(plan: Plan) -> str:
    gold = f" and {counted(len(plan.gold), 'gold item')}" if plan.gold else ""
    return f"it covers {population_words(plan)}{gold}"


def _labels_words(plan: Plan, at_hand: LabelsAtHand) -> list[str]:
    read = f", read with {at_hand.options}" if at_hand.options else ""
    left_out = 0
    if at_hand.votes is not None and plan.may_leave_out:
        left_out = len(set(at_hand.votes.unanswered.tolist()) - plan.tasks)
    all_of = f"all their items except {left_out:,} without votes" if left_out else "all their items"
    return [f"the labels are those of the audit, and it covers {all_of}{read}"]


def _claim_words(record: Mapping[str, Any], audit: Audit) -> list[str]:
    """The exact claim, if the certificate has one that an earlier version rounded, or without the grades of a tail."""
    said, exact = record.get("claim"), certified_words(audit)
    if _current_words("claim", said, _EARLIER_WORDS) == exact:
        return []
    return [f"its claim is in the words of an earlier version; exactly it is: {exact.removesuffix('.')}"]


def _unsure_words(audit: Audit) -> list[str]:
    reading = ExpertWords(audit.plan.name, audit.plan.classes, audit.plan.tail)
    unsure = sum(reading.label(label) is None for _, label in audit.plan.labelled())
    if not unsure:
        return []
    return [f'{counted(unsure, "answer")} "unsure", which version 0.2 counted as not {shown(audit.plan.name)}']


def _spelling_words(plan: Plan) -> list[str]:
    """Classes that a reader of the claim could take for one."""
    return [
        f"its classes {', '.join(map(repr, group))} differ only in spelling, and count as different classes"
        for group in spellings_of_one(plan.classes or [])
    ]


def _cost_words(plan: Plan) -> list[str]:
    if plan.flag_cost == FLAG_COST:
        return []
    return [f"it was planned with a cost of {plan.flag_cost:g} reviews for each flagged item, instead of {FLAG_COST:g}"]


def _sizes_words(sizes: Sequence[UnplannedSize]) -> list[str]:
    if not sizes:
        return []
    said = [f"round {one.number} has {one.size} instead of {one.planned}" for one in sizes[:3]]
    more = ["..."] if len(sizes) > 3 else []
    return [
        f"{counted(len(sizes), 'round')} with a size that differs from the planned one: {', '.join([*said, *more])}"
    ]
