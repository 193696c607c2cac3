"""crowd-kit's metrics of votes and workers, under its names and with its arguments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.names import numbered
from rarevote.crowd.numerics import FloatArray
from rarevote.crowd.words import counted
from rarevote.errors import InputError, ParameterError, warn_user
from rarevote.io.read.crowd import Crowd, read, read_or_empty
from rarevote.io.tables import Table
from rarevote.methods.majority import Answers, MajorityVote

# The number that crowd-kit adds to a sum before it divides by it.
_AGAINST_ZERO = 1e-6


def alpha_krippendorff(answers: Any, distance: Callable[[Any, Any], float] | None = None) -> float:
    """Krippendorff's alpha of all votes, including repeated ones, with a custom distance.

    :func:`rarevote.agreement` has intervals, levels and all other coefficients.

    Args:
        answers: anything that :func:`rarevote.read` takes.
        distance: a function of two labels that returns their distance; by default, 0 for equal labels and 1 for others.

    Returns:
        Alpha; 1 if all votes on tasks with several votes are equal.

    Raises:
        InputError: there are no votes.

    >>> alpha_krippendorff([("x", "a", "yes"), ("x", "b", "yes"), ("y", "a", "no"), ("y", "b", "no")])
    1.0
    """
    crowd = read_or_empty(answers).annotations
    if not crowd.n_annotations:
        raise InputError("no annotations, so agreement is undefined")
    votes = crowd.votes()
    votes = votes[votes.sum(axis=1) > 1]
    total = votes.sum(axis=0)
    if (total > 0).sum() < 2:
        return 1.0
    names = crowd.classes.tolist()
    apart = 1.0 - np.eye(len(names))
    if distance is not None:
        apart = np.array([[float(distance(a, b)) for b in names] for a in names])
    within = ((votes @ apart) * votes).sum(axis=1) - votes @ np.diag(apart)
    observed = float((within / (votes.sum(axis=1) - 1)).sum())
    expected = float(total @ apart @ total - total @ np.diag(apart)) / float(total.sum() - 1)
    return 1.0 - observed / expected


def consistency(answers: Any, workers_skills: Any = None, aggregator: Any = None, by_task: bool = False) -> Any:
    """How probable the aggregated label is, given the skills of those who voted.

    A vote of a worker with skill s gives its label the probability s, and each of the K - 1 others (1 - s) / (K - 1);
    the consistency of a task is the share of its aggregated label in the products over its votes, 0 if all are 0.

    Args:
        answers: anything that :func:`rarevote.read` takes.
        workers_skills: a Series or mapping from worker to skill; by default, those of the aggregator.
        aggregator: the method that labels the tasks; by default, a majority vote.
        by_task: whether to return one value per task instead of their mean.
    """
    aggregator = MajorityVote() if aggregator is None else aggregator
    labels = _as_mapping(aggregator.fit_predict(answers))
    if workers_skills is None:
        workers_skills = _skills_of(aggregator)
    crowd = read_or_empty(answers)
    votes = crowd.annotations
    products = np.ones((votes.n_tasks, votes.n_classes))
    np.multiply.at(products, votes.task_of_annotation(), _label_shares(votes, workers_skills))
    code = numbered(votes.classes.tolist())
    chosen = np.array([code[labels[task]] for task in votes.task_names().tolist()], dtype=np.int64)
    total = products.sum(axis=1)
    values = products[np.arange(votes.n_tasks), chosen] / np.where(total > 0, total, 1.0)
    return _series(crowd, "task", values) if by_task else float(values.mean())


def uncertainty(
    answers: Any,
    workers_skills: Any = None,
    aggregator: Any = None,
    compute_by: Literal["task", "worker"] = "task",
    aggregate: bool = True,
) -> Any:
    """Entropy of the labels of a task or of a worker, with votes weighted as in :func:`consistency`.

    Args:
        answers: anything that :func:`rarevote.read` takes.
        workers_skills: a Series or mapping from worker to skill; by default, those of the aggregator, or 1 for all.
        aggregator: the method that learns skills, if none are given.
        compute_by: "task" or "worker".
        aggregate: whether to return the mean instead of one value each.

    >>> round(uncertainty([("x", "a", "yes"), ("x", "b", "no"), ("x", "c", "maybe")]), 6)
    1.098612
    """
    if compute_by not in ("task", "worker"):
        raise ParameterError(f'compute_by must be "task" or "worker", got {compute_by!r}')
    if workers_skills is None and aggregator is not None:
        workers_skills = _skills_of(aggregator.fit(answers))
    crowd = read(answers)
    votes = crowd.annotations
    shares = _label_shares(votes, workers_skills)
    by_task = compute_by == "task"
    group = votes.task_of_annotation() if by_task else votes.worker
    n = votes.n_tasks if by_task else votes.n_workers
    summed = np.column_stack([np.bincount(group, shares[:, k], minlength=n) for k in range(votes.n_classes)])
    summed = summed / (summed.sum(axis=1, keepdims=True) + _AGAINST_ZERO)
    part = summed / np.maximum(summed.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    values = -(part * np.log(np.where(part > 0, part, 1.0))).sum(axis=1) + 0.0
    return float(values.mean()) if aggregate else _series(crowd, compute_by, values)


def accuracy_on_aggregates(answers: Any, aggregator: Any = None, aggregates: Any = None, by: str | None = None) -> Any:
    """Share of the answers that equal the aggregated label; an identical repeated answer counts once.

    Args:
        answers: anything that :func:`rarevote.read` takes.
        aggregator: the method that labels the tasks, if labels are not given; by default, a majority vote.
        aggregates: labels by task.
        by: "worker" or "task" for one value each.
    """
    if by not in (None, "worker", "task"):
        raise ParameterError(f'by must be "worker", "task" or None, got {by!r}')
    if aggregates is None:
        aggregates = (MajorityVote() if aggregator is None else aggregator).fit_predict(answers)
    labels = _as_mapping(aggregates)
    crowd = read_or_empty(answers)
    votes = crowd.annotations
    found = Answers.of(votes)
    code = numbered(votes.classes.tolist())
    known = [task in labels for task in votes.task_names().tolist()]
    wanted = np.array([code.get(labels.get(task), -1) for task in votes.task_names().tolist()], dtype=np.int64)
    counted = np.array(known, dtype=bool)[found.task]
    right = (found.label == wanted[found.task])[counted]
    if by is None:
        return float(right.mean()) if right.size else float("nan")
    group, n = (found.worker, votes.n_workers) if by == "worker" else (found.task, votes.n_tasks)
    given = np.bincount(group[counted], minlength=n)
    values = np.bincount(group[counted], right, minlength=n) / np.maximum(given, 1)
    return _series(crowd, by, values, given > 0)


def entropy_threshold(answers: Any, workers_skills: Any = None, percentile: int = 10, min_answers: int = 2) -> Any:
    """Leave out all votes of the workers whose answers vary least: those at or below a percentile of entropy.

    Args:
        answers: a pandas, polars or pyarrow frame.
        workers_skills: as in :func:`uncertainty`.
        percentile: percentile of the entropies, 0 to 100.
        min_answers: workers with fewer votes are kept.

    Returns:
        The remaining rows, as the same type of frame.
    """
    import narwhals as nw

    from rarevote.io.read.columns import find_columns

    frame = nw.from_native(answers, eager_only=True)
    worker = frame[find_columns(frame.columns, None, where="the frame")["worker"]].to_list()
    n_votes = Counter(worker)
    enough = frame.filter([n_votes[name] >= min_answers for name in worker])
    found = _as_mapping(uncertainty(enough.to_native(), workers_skills, compute_by="worker", aggregate=False))
    if not found:
        return answers
    cutoff = np.percentile(list(found.values()), percentile)
    removed = {name for name, value in found.items() if value <= cutoff}
    left = frame.filter([name not in removed for name in worker])
    if len(left) <= len(frame) // 2:
        warn_user(
            "entropy_threshold removed half of the votes or more, so the result may be poor. Lower percentile, or "
            "raise min_answers"
        )
    return left.to_native()


# --------------------------------------------------------------------------------------------------------------------


def _as_mapping(given: Any) -> dict[Any, Any]:
    if isinstance(given, Mapping):
        return dict(given)
    return dict(given.to_dict() if isinstance(given, Table) else given.items())


def _skills_of(aggregator: Any) -> Any:
    if not hasattr(aggregator, "skills_"):
        raise ParameterError(f"{type(aggregator).__name__} has no skills_: give workers_skills")
    return aggregator.skills_


def _label_shares(votes: Annotations, workers_skills: Any) -> FloatArray:
    """The probability of each class given each vote, (n_annotations, K)."""
    names, K = votes.workers.tolist(), votes.n_classes
    skill = np.ones(len(names))
    if workers_skills is not None:
        known = _as_mapping(workers_skills)
        lacking = [name for name in names if name not in known or known[name] != known[name]]
        if lacking:
            raise ParameterError(
                f"{counted(len(lacking), 'worker has', 'workers have')} no skill (first: {lacking[0]!r})"
            )
        skill = np.array([float(known[name]) for name in names])
    own = skill[votes.worker]
    shares = np.repeat(((1 - own) / max(K - 1, 1))[:, None], K, axis=1)
    shares[np.arange(votes.n_annotations), votes.label] = own
    return shares


def _series(crowd: Crowd, role: str, values: FloatArray, shown: NDArray[np.bool_] | None = None) -> Any:
    """Values by task or worker, in the type of the data."""
    names = crowd.annotations.task_names() if role == "task" else crowd.annotations.workers
    if shown is not None:
        names, values = names[shown], values[shown]
    made = crowd.source.deliver(Table({role: names}, {"value": values}, series=True, dtypes=crowd.source.dtypes))
    return made.rename(None) if crowd.source.kind == "pandas" else made  # crowd-kit's series have no name
