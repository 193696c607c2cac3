"""An audit of a fitted method: items are ranked by its probability of the class, and its gold is already known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rarevote.audit.audit import Audit
from rarevote.audit.plan_file import json_name
from rarevote.crowd.names import as_name_array
from rarevote.crowd.population import population
from rarevote.crowd.rare import RareClass
from rarevote.decide.floor import Share
from rarevote.decide.probabilities import certain
from rarevote.errors import how

if TYPE_CHECKING:
    from rarevote.api import Fitted
    from rarevote.crowd.annotations import Annotations


def audit_of_fit(
    fitted: Fitted,
    name: Any,
    target: Share,
    *,
    files: Mapping[str, Any] | None = None,
    **options: Any,
) -> Audit:
    """Start an audit of one class.

    Items without votes are part of the population unless ``only_voted_items``: they form a separate last stratum.

    Args:
        fitted: the fit. Its gold is removed from the population, and positives in it count as found.
        name: the class, as in the data or as text; for grades also a tail such as ``">=severe"``.
        target: the recall to prove.
        files: what the plan records about the files, besides every task's best other class.
        **options: as in :meth:`Audit.start`.

    Raises:
        ParameterError: no class has this name, or a parameter is out of range.
    """
    votes = fitted.annotations
    rare = fitted.rare_class(name, what=how("name", "--find"))
    probabilities, score = ranking_score(fitted)
    classes = votes.classes.tolist()
    return Audit.start(
        population(votes).tolist(),
        np.concatenate([rare.mass(probabilities), _scores_without_votes(fitted, rare)]),
        name=rare.name,
        target=target,
        gold=fitted.gold,
        classes=classes,
        tail=[classes[k] for k in rare.codes] if rare.is_tail else None,
        source={**(files or {}), **_best_labels(votes, fitted.probabilities[: votes.n_tasks], rare)},
        unvoted=votes.unanswered.tolist(),
        score=score,
        **options,
    )


def ranking_score(fitted: Fitted) -> tuple[NDArray[np.float64], str]:
    """The probabilities by which an audit ranks tasks with votes, (n, K), and the name of this score.

    Only here the reported probability of a fit is not used: any ranking is valid, and these make audits cheapest.
    "sampler" is a short run of the sampler, which is enough for a ranking. For a large crowd, this would take minutes:
    then "posterior", the method's own, is used. The reported probabilities allow for correlated errors and lapses,
    which raises all items that the method is sure about; an audit ranked by them is as valid but searches where there
    are no positives.
    """
    # The sampler does not use the order: on real ratings, the posterior of a method for grades ranks every tail better.
    score = np.empty(0) if fitted.method.capabilities.ordered else fitted.independent.score
    if len(score):
        return certain(score, fitted.method.gold_codes_), "sampler"
    return np.asarray(fitted.method.posterior_, dtype=np.float64), "posterior"


def _scores_without_votes(fitted: Fitted, rare: RareClass) -> NDArray[np.float64]:
    """The probabilities by which items without votes are ranked; NaN if nothing is known about them."""
    outcome = fitted.method.feature_outcome
    unknown = np.full(len(fitted.annotations.unanswered), np.nan)
    if outcome is None or not outcome.record.used:
        return unknown
    has_row = outcome.found.has_row[fitted.annotations.n_tasks :]
    return np.where(has_row, rare.mass(outcome.pool_posterior), unknown)


def _best_labels(votes: Annotations, posterior: NDArray[np.float64], rare: RareClass) -> dict[str, Any]:
    """The most probable other class of every task; for a tail, also the most probable of its grades."""
    if votes.n_classes < 2:
        return {"other": None, "others": []}
    own = rare.holds(np.arange(votes.n_classes))
    other, others = _best_of(votes, np.where(own, -1.0, posterior))
    if not rare.is_tail:
        return {"other": other, "others": others}
    grade, grades = _best_of(votes, np.where(own, posterior, -1.0))
    return {"other": other, "others": others, "grade": grade, "grades": grades}


def _best_of(votes: Annotations, scores: NDArray[np.float64]) -> tuple[Any, list[Any]]:
    """The class with the best score of every task, stored as the most frequent one and the tasks that have another."""
    best = scores.argmax(axis=1)
    usual = int(np.bincount(best).argmax())
    names = [json_name(one, "class") for one in votes.classes.tolist()]
    unusual = [int(code) for code in np.unique(best) if code != usual]
    return names[usual], [[names[code], np.asarray(votes.tasks)[best == code].tolist()] for code in unusual]


def result_columns(
    audit: Audit, votes: Annotations, shown: Mapping[str, NDArray[Any]] | None = None
) -> dict[str, NDArray[Any]]:
    """The result of the audit for every task: task, label, decision, then the columns to show.

    The label is that of the expert or the gold if there is one, the class for the rest of the final list, and the
    best other class for all others; ``decision`` says which: "expert", "gold", "audit" or "crowd". An item without
    votes that is not on the final list has no label: "no votes", or "left out" if it was not part of the audit.

    Args:
        audit: started by :func:`audit_of_fit`.
        votes: the votes that it was started with.
        shown: columns carried along, a text for each of the first tasks; blank for the others.
    """
    plan, source = audit.plan, audit.plan.source or {}
    other, grade = (
        {task: name for name, group in source.get(key, []) for task in group} for key in ("others", "grades")
    )
    flagged, answers, audited = set(audit.final_list()), audit.answers, audit.plan.tasks
    scored = plan.scored
    labels: list[Any] = []
    decisions: list[Any] = []
    tasks = population(votes).tolist()
    for row, task in enumerate(tasks):
        by_crowd = other.get(task, source.get("other")) if scored or row < votes.n_tasks else ""
        best = by_crowd
        if task in flagged:
            best = grade.get(task, source.get("grade", plan.name))  # only a tail has these
        # "No" to one of many classes does not name another: use the best other class.
        named = task in answers and (plan.classes is None or answers[task] in plan.classes)
        labels.append(plan.gold.get(task, answers[task] if named else best))
        silent = "crowd" if row < votes.n_tasks else "no votes" if task in audited else "left out"
        silent = "score" if scored and task in audited else silent
        by_list = "audit" if task in flagged else silent
        decisions.append("gold" if task in plan.gold else "expert" if task in answers else by_list)
    columns = {"task": as_name_array(tasks), "label": as_name_array(labels), "decision": as_name_array(decisions)}
    for name, texts in (shown or {}).items():
        blank = [""] * (len(tasks) - len(texts))
        columns[f"show:{name}" if name in columns else name] = as_name_array([*texts, *blank])
    return columns


def summary(audit: Audit) -> dict[str, Any]:
    """The state of the audit as figures for JSON."""
    stands, forecast = audit.certificate(), None if audit.stopped else audit.forecast
    kept = ("class", "target", "confidence", "items", "population", "voted", "unvoted", "left_out", "only_voted_items",
            "instructions", "gold", "reviewed", "positives_reviewed", "worst_cases", "certified", "flagged",
            "flagged_unreviewed", "claim", "relative_to", "estimates")  # fmt: skip
    return {
        **{name: stands[name] for name in kept if name in stands},
        "supported_flagged": len(audit.final_list(audit.supported)),
        "most_positives": audit.most_positives,
        "slope": audit.recalibration.slope,
        "rounds": len(audit.plan.rounds),
        "pending": len(audit.pending),
        "stopped": audit.stopped,
        "forecast": forecast and {"reviews": round(forecast.reviews), "flagged": forecast.flagged},
    }
