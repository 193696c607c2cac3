"""The certificate of an audit: a record of what is proved, for others to verify."""

from __future__ import annotations

from dataclasses import asdict
from math import isinf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rarevote.audit.plan_file import fingerprint, to_text
from rarevote.audit.words import certified_words, n_contradicted, population_words, relative_to
from rarevote.io.write.atomic import replacing

if TYPE_CHECKING:
    from rarevote.audit.audit import Audit

FORMAT, VERSION = "rarevote certificate", 1


def certificate(audit: Audit) -> dict[str, Any]:
    """The certificate of the audit in its current state.

    Returns:
        A record for a JSON file. ``certified`` is false while only the set of all items is proved;
        ``log_wealth`` has the bets of every set but the last, "infinity" if no remaining item could make it fail.
    """
    plan, wealth = audit.plan, audit.wealth
    first, flagged = audit.answers, audit.final_list()
    return {
        "format": FORMAT,
        "version": VERSION,
        "claim": certified_words(audit),
        "relative_to": relative_to(audit),
        "class": plan.name,
        **({} if plan.tail is None else {"tail": plan.tail}),
        **({} if plan.instructions is None else {"instructions": plan.instructions.as_json()}),
        "target": str(plan.target),
        "confidence": str(plan.confidence),
        "certified": audit.is_certified,
        "certified_set": audit.certified,
        "items": plan.strata.n_tasks,
        **({} if plan.population is None else {"population": population_words(plan), **asdict(plan.population)}),
        "gold": len(plan.gold),
        "gold_positives": wealth.known_positives,
        "reviewed": audit.n_reviewed,
        "positives_reviewed": audit.n_positives,
        "worst_cases": int(wealth.worst.sum()),
        "flagged": len(flagged),
        "flagged_unreviewed": sum(task not in first for task in flagged),
        "final_list_sha256": fingerprint(flagged),
        "estimates": _without_nan(asdict(audit.estimate)),
        "repeated": len(plan.repeats),
        "repeated_differently": n_contradicted(audit),
        "earlier_audits": plan.earlier,
        "log_wealth": ["infinity" if isinf(value) else value for value in wealth.log_wealth.tolist()],
        "seed": f"{plan.seed:016x}",
        "started": plan.started,
        "labels_sha256": plan.labels_sha256,
        "gold_sha256": plan.gold_sha256,
        "strata_sha256": fingerprint(plan.frozen()["strata"]),
        "plan_sha256": audit.sha256,
    }


def write_certificate(audit: Audit, path: Path) -> None:
    """Write the certificate, completely or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(to_text(certificate(audit)), encoding="utf-8")


def _without_nan(record: Any) -> Any:
    """The record with None for NaN, which JSON does not support."""
    if isinstance(record, dict):
        return {name: _without_nan(value) for name, value in record.items()}
    return None if isinstance(record, float) and record != record else record
