"""The start of an audit: what it was told is checked, and everything it depends on is frozen before any answer."""

from __future__ import annotations

import datetime
import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rarevote.audit.answers import ExpertWords
from rarevote.audit.plan_file import PLANNER, Aim, Plan, Population, plain_name
from rarevote.audit.strata import build_strata
from rarevote.audit.wealth import check_digits
from rarevote.crowd.names import as_name_array, in_kind
from rarevote.decide.floor import Share, exact_share
from rarevote.errors import InputError, ParameterError


def open_plan(
    tasks: Sequence[Any],
    scores: ArrayLike,
    *,
    name: Any,
    target: Share,
    confidence: Share,
    flag_cost: float,
    aim: Aim,
    budget: int | None,
    gold: Mapping[Any, Any] | None,
    classes: Iterable[Any] | None,
    seed: int | None,
    labels_sha256: str | None,
    gold_sha256: str | None,
    source: dict[str, Any] | None,
    earlier: Sequence[dict[str, Any]],
    unvoted: Collection[Any] | None,
    only_voted_items: bool,
    score: str | None,
) -> Plan:
    """A plan without rounds; the arguments are those of :meth:`rarevote.audit.audit.Audit.start`.

    Raises:
        ParameterError: a parameter is out of range.
        InputError: tasks and scores do not fit together, a task stands twice, or no gold task is among the tasks.
    """
    rho, sure = exact_share(target, "target"), exact_share(confidence, "confidence")
    if not 0 < rho <= 1:
        raise ParameterError(f"target must be a recall above 0 and at most 1, got {target}")
    check_digits(rho)
    if not 0 < sure < 1:
        raise ParameterError(f"confidence must lie between 0 and 1, got {confidence}")
    if not (isfinite(flag_cost) and flag_cost > 0):
        raise ParameterError(f"flag_cost must be above 0 (in reviews), got {flag_cost}")
    if aim not in ("certificate", "estimate"):
        raise ParameterError(f'aim must be "certificate" or "estimate", got {aim!r}')
    check_whole("budget", budget, 1, None)
    check_whole("seed", seed, 0, 2**64 - 1)
    seed = secrets.randbits(64) if seed is None else int(seed)
    names = [plain_name(task, "task") for task in tasks]
    seen: set[Any] = set()
    for task in names:
        if task in seen:
            raise InputError(f"task {task!r} is listed twice: an audit draws every task once")
        seen.add(task)
    p: Any = np.asarray(scores, dtype=np.float64)
    if p.shape != (len(names),):
        raise InputError(f"an audit needs a score for every task, got {p.size:,} for {len(names):,} tasks")
    silent = _silent(unvoted, seen, only_voted_items)
    if only_voted_items:
        kept = [i for i, task in enumerate(names) if task not in silent]
        names, p = [names[i] for i in kept], p[kept]
    reading = ExpertWords(name, classes)
    known = _known(gold, names, reading)
    population = [i for i, task in enumerate(names) if task not in known]
    if not population:
        raise InputError("all tasks are gold: there is nothing to audit")
    return Plan(
        name=reading.name,
        classes=reading.classes,
        target=rho,
        confidence=sure,
        flag_cost=float(flag_cost),
        aim=aim,
        budget=None if budget is None else int(budget),
        seed=seed,
        started=now(),
        labels_sha256=labels_sha256,
        gold_sha256=gold_sha256,
        source=source,
        earlier=list(earlier),
        gold=known,
        strata=build_strata([names[i] for i in population], p[population], seed),
        score=score,
        population=None if unvoted is None else _counted([names[i] for i in population], silent, only_voted_items),
        planner=PLANNER,
    )


def _silent(unvoted: Collection[Any] | None, names: set[Any], only_voted_items: bool) -> set[Any]:
    """Tasks that have no votes."""
    if unvoted is None:
        if only_voted_items:
            raise ParameterError("only_voted_items needs unvoted: which tasks have no votes")
        return set()
    silent = {plain_name(task, "task") for task in unvoted}
    strange = next((task for task in silent if task not in names), None)
    if strange is not None:
        raise InputError(f"task {strange!r} of unvoted is not among the tasks: check ids and their types")
    return silent


def _counted(population: list[Any], silent: set[Any], only_voted_items: bool) -> Population:
    n_silent = sum(task in silent for task in population)
    left_out = len(silent) if only_voted_items else 0
    return Population(len(population) - n_silent, n_silent, left_out, only_voted_items)


def _known(gold: Mapping[Any, Any] | None, names: list[Any], reading: ExpertWords) -> dict[Any, Any]:
    """Gold labels of tasks that are in the crowd."""
    if not gold:
        return {}
    given = dict(zip(in_kind(list(gold), as_name_array(names)), gold.values(), strict=True))
    known = {task: reading.label(given[task]) for task in names if task in given}
    known = {task: label for task, label in known.items() if label is not None}
    if not known:
        raise InputError(f"none of the {len(gold):,} gold tasks is among the tasks: check ids and their types")
    return known


def check_whole(what: str, value: Any, least: int, most: int | None) -> None:
    """Refuse what is given and no whole number within limits."""
    if value is None:
        return
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or value < least or (most is not None and value > most):
        limits = f"of at least {least}" if most is None else f"between {least} and {most}"
        raise ParameterError(f"{what} must be a whole number {limits}, got {value!r}")


def now() -> str:
    """The time, UTC, to the second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
