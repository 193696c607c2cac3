"""The start of an audit: its options are checked, and its population is frozen before any answer."""

from __future__ import annotations

import datetime
import secrets
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from math import isfinite
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from rarevote.audit.answers import ExpertWords
from rarevote.audit.plan_file import Aim, Population, json_name
from rarevote.audit.planning import MAX_FLAG_COST, MIN_FLAG_COST
from rarevote.audit.wealth import check_digits
from rarevote.crowd.arguments import check_count
from rarevote.crowd.names import as_name_array, in_kind, values_by_name
from rarevote.crowd.numerics import FloatArray
from rarevote.decide.floor import Share, exact_share
from rarevote.errors import InputError, ParameterError

_MAX_SEED = 2**64 - 1


def checked_options(
    target: Share, confidence: Share, flag_cost: float, aim: Aim, budget: int | None, seed: int | None
) -> tuple[Fraction, Fraction, int]:
    """Target and confidence as rational numbers, and the seed; by default from the operating system.

    Raises:
        ParameterError: one is out of range.
    """
    rho, sure = exact_share(target, "target"), exact_share(confidence, "confidence")
    if not 0 < rho <= 1:
        raise ParameterError(f"target must be a recall above 0 and at most 1, got {target}")
    check_digits(rho)
    if not 0 < sure < 1:
        raise ParameterError(f"confidence must lie between 0 and 1, got {confidence}")
    if not (isfinite(flag_cost) and flag_cost > 0):
        raise ParameterError(f"flag_cost must be above 0 (in reviews), got {flag_cost}")
    if not MIN_FLAG_COST <= flag_cost <= MAX_FLAG_COST:
        raise ParameterError(
            f"flag_cost must lie between {MIN_FLAG_COST:f} and {MAX_FLAG_COST:,.0f} reviews, got {flag_cost}"
        )
    if aim not in get_args(Aim):
        raise ParameterError(f'aim must be "certificate" or "estimate", got {aim!r}')
    if budget is not None:
        check_count("budget", budget)
    if seed is None:
        return rho, sure, secrets.randbits(64)
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed <= _MAX_SEED:
        raise ParameterError(f"seed must be a whole number between 0 and {_MAX_SEED}, got {seed!r}")
    return rho, sure, int(seed)


class Audited(NamedTuple):
    """The population of an audit.

    Attributes:
        tasks: the tasks to rank and draw from.
        scores: scores of the tasks.
        gold: gold labels, by task; these tasks are not in ``tasks``.
        population: the counts of tasks with and without votes, if these are known.
    """

    tasks: list[Any]
    scores: FloatArray
    gold: dict[Any, Any]
    population: Population | None


def audited(
    tasks: Sequence[Any],
    scores: ArrayLike,
    gold: Mapping[Any, Any] | None,
    reading: ExpertWords,
    unvoted: Collection[Any] | None,
    only_voted_items: bool,
) -> Audited:
    """The population of an audit; the arguments are those of :meth:`rarevote.audit.audit.Audit.start`.

    Raises:
        ParameterError: items without votes should be left out, but it is not known which these are.
        InputError: tasks and scores do not match, a task occurs twice, or no gold task is among the tasks.
    """
    names = [json_name(task, "task") for task in tasks]
    seen: set[Any] = set()
    for task in names:
        if task in seen:
            raise InputError(f"task {task!r} is listed twice: an audit draws every task once")
        seen.add(task)
    p: FloatArray = np.asarray(scores, dtype=np.float64)
    if p.shape != (len(names),):
        raise InputError(f"an audit needs a score for every task, got {p.size:,} for {len(names):,} tasks")
    silent = _silent(unvoted, seen, only_voted_items)
    left_out = silent if only_voted_items else set()
    known = _known(gold, [task for task in names if task not in left_out], reading)
    kept = [i for i, task in enumerate(names) if task not in left_out and task not in known]
    if not kept:
        raise InputError("all tasks are gold: there is nothing to audit")
    population = None
    if unvoted is not None:
        n_silent = sum(names[i] in silent for i in kept)
        population = Population(len(kept) - n_silent, n_silent, len(left_out), only_voted_items)
    return Audited([names[i] for i in kept], p[kept], known, population)


def _silent(unvoted: Collection[Any] | None, names: set[Any], only_voted_items: bool) -> set[Any]:
    """Tasks that have no votes."""
    if unvoted is None:
        if only_voted_items:
            raise ParameterError("only_voted_items needs unvoted: which tasks have no votes")
        return set()
    silent = {json_name(task, "task") for task in unvoted}
    strange = next((task for task in silent if task not in names), None)
    if strange is not None:
        raise InputError(f"task {strange!r} of unvoted is not among the tasks: check ids and their types")
    return silent


def _known(gold: Mapping[Any, Any] | None, names: list[Any], reading: ExpertWords) -> dict[Any, Any]:
    """Gold labels of tasks that are in the crowd."""
    if not gold:
        return {}
    given = values_by_name(zip(in_kind(gold, as_name_array(names)), gold.values(), strict=True), "task")
    known = {task: reading.label(given[task]) for task in names if task in given}
    known = {task: label for task, label in known.items() if label is not None}
    if not known:
        raise InputError(f"none of the {len(gold):,} gold tasks is among the tasks: check ids and their types")
    return known


def now() -> str:
    """The time, UTC, to the second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
