"""Does a certificate follow from its plan? For third parties: nothing but the two files is needed.

Draws are regenerated from the seed, the bets replayed from the answers, and what the certificate says compared with
what comes out. What nobody can check from files is whether the answers are the expert's: the plan's SHA-256 in a
certificate that was handed over shows that they have not changed since.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, isclose
from pathlib import Path
from typing import Any

from rarevote.errors import InputError, shown
from rarevote.io.json_text import parse_json
from rarevote.meaning.audit.audit import Audit
from rarevote.meaning.audit.plan_file import read_text
from rarevote.meaning.audit.words import FORMAT, VERSION

# Logarithms differ in the last place between machines.
_TOLERANCE = 1e-9

_SAYS = {
    "class": "the class",
    "target": "the target",
    "confidence": "the confidence",
    "certified": "whether anything is certified",
    "certified_set": "the certified set",
    "items": "the number of items",
    "gold": "the number of gold items",
    "gold_positives": "the number of gold positives",
    "reviewed": "the number of reviews",
    "positives_reviewed": "the number of positives among the reviews",
    "worst_cases": "the number of worst cases",
    "flagged": "the number of flagged items",
    "flagged_unreviewed": "the number of flagged items that nobody reviewed",
    "final_list_sha256": "the final list",
    "repeated": "the number of repeated items",
    "repeated_differently": "the number of items that got another answer",
    "earlier_audits": "the earlier audits",
    "claim": "the claim",
    "relative_to": "what the claim is relative to",
    "started": "when the audit started",
    "seed": "the seed",
    "labels_sha256": "the SHA-256 of the labels",
    "gold_sha256": "the SHA-256 of the gold",
    "strata_sha256": "the ranking and its strata",
    "plan_sha256": "the SHA-256 of the plan",
}


def verify(plan: str | Audit, claimed: str | Mapping[str, Any], *, labels_sha256: str | None = None) -> tuple[str, ...]:
    """Reasons why a certificate does not follow from a plan; empty if it does.

    Args:
        labels_sha256: SHA-256 of the labels at hand, to check that the audit was about them.
    """
    try:
        # An audit in memory is replayed from its log too: its own state proves nothing.
        audit = Audit.from_json(plan.to_json() if isinstance(plan, Audit) else plan)
    except InputError as error:
        return (str(error),)
    record = _record(claimed)
    if record is None:
        return (f'the certificate is no JSON object of the format "{FORMAT}", version {VERSION}',)
    replayed = audit.certificate()
    reasons = [
        f"{words}: the certificate says {shown(record.get(name))}, the plan {shown(replayed[name])}"
        for name, words in _SAYS.items()
        if record.get(name) != replayed[name]
    ]
    reasons += _different_wealth(record.get("log_wealth"), replayed["log_wealth"])
    if labels_sha256 is not None and labels_sha256 != audit.plan.labels_sha256:
        reasons.append(
            f"the labels at hand have the SHA-256 {labels_sha256}, those of the plan {audit.plan.labels_sha256}"
        )
    return tuple(reasons)


def verify_files(plan: Path | str, claimed: Path | str, *, labels_sha256: str | None = None) -> tuple[str, ...]:
    """The same for files; answers in the journal beside the plan count.

    Raises:
        InputError: a file cannot be read.
    """
    text = read_text(claimed)
    read_text(plan)
    try:
        audit = Audit.load(plan)
    except InputError as error:
        return (str(error),)
    return verify(audit, text, labels_sha256=labels_sha256)


def _record(claimed: str | Mapping[str, Any]) -> Mapping[str, Any] | None:
    try:
        record = parse_json(claimed) if isinstance(claimed, str) else claimed
    except ValueError:
        return None
    sound = isinstance(record, Mapping) and record.get("format") == FORMAT and record.get("version") == VERSION
    return record if sound else None


def _different_wealth(claimed: Any, replayed: list[Any]) -> list[str]:
    if not isinstance(claimed, list) or len(claimed) != len(replayed):
        return ["the bets: the certificate has not one for every set of the plan"]
    for j, (said, found) in enumerate(zip(claimed, replayed, strict=True)):
        if not _are_close(*(inf if value == "infinity" else value for value in (said, found))):
            said = shown(said)
            return [f"the bets on set {j}: the certificate says a log wealth of {said}, the replay gives {found}"]
    return []


def _are_close(said: Any, found: float) -> bool:
    try:
        return isinstance(said, (int, float)) and isclose(said, found, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
    except OverflowError:  # a whole number beyond all floats
        return False
