"""The contents of a page about one result, with or without the annotators' names."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rarevote.crowd.names import name_key, object_array
from rarevote.crowd.words import capital, counted
from rarevote.diagnose.verdict import chance_agreement
from rarevote.errors import RarevoteWarning
from rarevote.page.proved import audit_action, proved_section
from rarevote.page.report import PageParts
from rarevote.page.sentences import Basis, TargetStep

if TYPE_CHECKING:
    from rarevote.audit import Audit
    from rarevote.crowd.annotations import Annotations
    from rarevote.diagnose.diagnosis import Diagnosis
    from rarevote.result import Result

# Shown after the reason if the votes cannot show which labels are right.
_CONSEQUENCE = ", so no method"
_TARGETS = (0.8, 0.9, 0.95)


def page_parts(
    result: Result,
    truth: Mapping[Any, Any] | None = None,
    audit: Audit | None = None,
    *,
    aliases: Mapping[Any, str] | None = None,
) -> PageParts:
    """The contents of the page about a result.

    Args:
        result: the result.
        truth: true labels by item.
        audit: an audit of these labels.
        aliases: other names of the annotators (:func:`aliases_of`); by default, their own names.
    """
    if aliases is not None:
        result = _anonymous(result, aliases)
    fitted, target = result.fitted, result.target
    caution = [] if target is None or target.promised else [capital(target.description)]
    promised = "" if target is None or caution else f"; {target.description}"
    cost = f"; {result.decision.cost_description}" if result.rule.name == "cost" else ""
    reason = next((note.description for note in result.notes if note.kind == "no answer"), "")
    found = fitted.diagnose(result, truth)
    basis = Basis(
        cannot_answer=reason.partition(_CONSEQUENCE)[0] or chance_agreement(found.agreement),
        is_unproved_jury=result.probabilities.is_jury and not (result.probabilities.gold >= 0).any(),
        takes_gold=fitted.method.capabilities.gold,
        has_costs=result.rule.name == "cost",
        aggregate=fitted.crowd.aggregate_arguments,
        audit_arguments=fitted.crowd.arguments,
        audit_action=None if audit is None else audit_action(audit),
        targets=_targets(result, found),
    )
    return PageParts(
        found,
        fitted.method,
        n_gold=len(fitted.gold),
        shown=fitted.crowd.shown,
        decision=f"{result.description}{cost}{promised}",
        features=_features_sentence(result),
        # The headline already says why the votes cannot show which labels are right.
        cautions=(*caution, *(capital(note.description) for note in result.notes if note.kind != "no answer")),
        basis=basis,
        extra=() if audit is None else (proved_section(audit, anonymous=aliases is not None),),
    )


def _targets(result: Result, found: Diagnosis) -> tuple[TargetStep, ...]:
    """What recall targets of the main class would flag; empty if the truth shows the recall, or nothing does."""
    head = found.head
    if head.leading is None or found.truth is not None or result.cannot_answer:
        return ()
    if not head.expected[head.rare].recall.is_told:
        return ()
    fitted, steps = result.fitted, []
    for wanted in _TARGETS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RarevoteWarning)
            step = fitted.decide(min_recall={fitted.rare.name: wanted})
        expected = step.expect()
        steps.append(TargetStep(wanted, int(step.flagged.sum()), expected.recall, expected.precision))
    return tuple(steps)


def _features_sentence(result: Result) -> str:
    """How features were used, and how many labels come from features alone; empty if there are none."""
    record, n_unvoted = result.fitted.features_, result.n_without_a_vote
    if record is None:
        return ""
    theirs = f"; {counted(n_unvoted, 'label')} of items with votes {'has' if n_unvoted == 1 else 'have'} no vote"
    return capital(record.reason) + (theirs if record.used and n_unvoted else "")


def aliases_of(*crowds: Annotations) -> dict[Any, str]:
    """A1, A2, ... for all annotators of some crowds, those with the most votes first, by :func:`name_key`."""
    votes: dict[Any, int] = {}
    for crowd in crowds:
        for name, number in zip(
            crowd.workers.tolist(), np.bincount(crowd.worker, minlength=crowd.n_workers), strict=True
        ):
            votes[name_key(name)] = votes.get(name_key(name), 0) + number
    most_first = sorted(votes, key=lambda name: -votes[name])
    return {name: f"A{number}" for number, name in enumerate(most_first, 1)}


def _anonymous(result: Result, aliases: Mapping[Any, str]) -> Result:
    """The result with other names of the annotators; no number changes."""
    fitted, votes = result.fitted, result.fitted.annotations
    called = {name: aliases[name_key(name)] for name in votes.workers.tolist()}
    # For annotators who only abstained, only the number of abstentions is shown.
    silent = {called.get(name, f"silent {place}"): n for place, (name, n) in enumerate(votes.abstentions.items())}
    renamed = replace(votes, workers=object_array(list(called.values())), abstentions=silent)
    models = frozenset(called[name] for name in fitted.crowd.models if name in called)
    crowd = replace(fitted.crowd, annotations=renamed, models=models)
    notes = tuple(note._replace(description=_renamed(note.description, called)) for note in result.notes)
    return replace(result, fitted=replace(fitted, crowd=crowd, method=fitted.method.on(renamed)), notes=notes)


def _renamed(sentence: str, called: Mapping[Any, str]) -> str:
    """A sentence that names an annotator in parentheses, with the other name."""
    for name, alias in called.items():
        sentence = sentence.replace(f"({name})", f"({alias})")
    return sentence
