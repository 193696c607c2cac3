"""Honest probabilities: how likely is each class of each task, and how many tasks of each class are there?

CC-Rasch is fitted under a uniform class prior, which finds the rare class but gives no probabilities: where 3% of the
tasks are positive, its posteriors average 49%. Two ways lead from there to probabilities.

*Held*: abilities and difficulties stay as fitted and only the class prior moves, ``q'_ik ~ q_ik pi'_k / pi_k``, until
``pi'`` is the mean of ``q'`` (EM on ``pi`` alone). This needs nothing but the posterior. It cannot undo that abilities
were fitted under the wrong prior: the 3% become 46%. It is right for a method that was fitted with the right one.

*Refitted* (the default wherever the votes are at hand): the votes are explained again by a relative of CC-Rasch in
which nothing is maximised and everything uncertain stays uncertain (:mod:`rarevote.meaning.vote_sampler`). Each draw
is one way in which the crowd may have come about if people err independently of one another. What to expect of real
ones is in :mod:`rarevote.meaning.expect`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.names import in_kind, some_names, unmatched
from rarevote.crowd.numerics import TINY, FloatArray, IntArray, normalise_rows
from rarevote.errors import InputError, ParameterError
from rarevote.methods.base import Estimator

Shares = str | Mapping[Any, float] | Sequence[float] | FloatArray
Abilities = Literal["refitted", "held"]

#: Share of intervals that should contain the truth.
COVERAGE = 0.95

_N_DRAWS = 400
_MAX_ANNOTATIONS = 1_000_000
_MAX_CELLS = 20_000_000  # workers x classes x classes; the sampler keeps a few tables of this size
_PARAMETER_DRAWS = 20  # for tasks outside the sample that the sampler learns from


@dataclass(frozen=True, eq=False)
class CalibratedPosterior:
    """Probabilities to decide with, beside the posterior they came from.

    Attributes:
        classes: names of the classes, (K).
        method: the method's own posterior, (n, K); what ``probas_`` shows.
        posterior: calibrated probability of every class, (n, K); known tasks have 0 and 1.
        score: the same from the votes alone, known tasks not imposed, (n, K).
        prevalence: expected share of tasks of each class, (K).
        low: lower end of the 95% interval of each share, (K).
        high: upper end, (K).
        how: how the shares were obtained, in words.
        gold: known class of each task or -1, (n).
        draws: class of each of ``drawn_tasks`` in every draw, (n_draws, n_drawn); of size 0 without sampling.
        drawn_tasks: which tasks the draws are about, ascending, (n_drawn).
        abilities: mean ability of every worker per class on the logit scale, (m, K); of size 0 without sampling.
        is_reported: whether the method itself reports these probabilities as calibrated.
        is_given: whether the class shares were given.
    """

    classes: NDArray[Any]
    method: FloatArray
    posterior: FloatArray
    score: FloatArray
    prevalence: FloatArray
    low: FloatArray
    high: FloatArray
    how: str
    gold: NDArray[np.int32]
    draws: NDArray[Any] = field(default_factory=lambda: np.empty((0, 0), dtype=np.uint8))
    drawn_tasks: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    abilities: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    is_reported: bool = False
    is_given: bool = False

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return len(self.posterior)

    @property
    def counts(self) -> FloatArray:
        """Expected number of tasks of each class, (K)."""
        return self.prevalence * self.n_tasks


def calibrated(
    posterior: FloatArray,
    prior: FloatArray | None = None,
    *,
    prevalence: Shares = "estimate",
    gold: NDArray[np.int32] | Mapping[Any, Any] | None = None,
    classes: NDArray[Any] | None = None,
    annotations: Annotations | None = None,
    abilities: Abilities | None = None,
    n_sweeps: int | None = None,
    random_state: int = 0,
) -> CalibratedPosterior:
    """Turn a method's posterior into probabilities under the right class prior.

    Args:
        posterior: the method's posterior, (n_tasks, n_classes).
        prior: the class prior that it was computed with, (n_classes); uniform if not given.
        prevalence: "estimate" from the crowd; "gold" for the shares among the known tasks, which must then be a random
            sample of all tasks; or the shares themselves, by class or in the order of the classes.
        gold: known class of each task or -1, (n_tasks), or with ``annotations`` a mapping from task to label; these
            tasks are no longer in doubt.
        classes: names of the classes; their numbers if not given.
        annotations: the votes behind the posterior; needed for "refitted".
        abilities: "refitted" explains the votes again (default if ``annotations`` are given and workers times classes
            squared stay below 20 million), "held" keeps what the method fitted and moves the class prior alone (see the
            module for what that costs).
        n_sweeps: sweeps of the sampler; by default until the shares of the classes are known well enough.
        random_state: seed of the sampler.

    Raises:
        ParameterError: a prevalence or a mode that makes no sense.
        InputError: arrays that do not fit together.

    Example:
        >>> votes = np.array([[0.9, 0.1], [0.9, 0.1], [0.9, 0.1], [0.2, 0.8]])
        >>> calibrated(votes, prevalence=[0.9, 0.1]).posterior.round(2).tolist()
        [[0.99, 0.01], [0.99, 0.01], [0.99, 0.01], [0.69, 0.31]]
    """
    posterior = np.asarray(posterior, dtype=np.float64)
    n, K = posterior.shape
    names = annotations.classes if annotations is not None else np.arange(K) if classes is None else np.asarray(classes)
    known = _known_classes(gold, annotations, n)
    if len(names) != K or known.shape != (n,) or (known >= K).any():
        raise InputError(f"{len(names)} classes and {known.size} gold entries do not fit a posterior of shape {n, K}")
    if annotations is not None and annotations.n_tasks != n:
        raise InputError(f"the posterior has {n:,} tasks, the annotations {annotations.n_tasks:,}")
    fits = annotations is not None and annotations.n_workers * K * K <= _MAX_CELLS
    mode = abilities or ("refitted" if fits else "held")
    if mode not in ("refitted", "held") or (mode == "refitted" and annotations is None):
        raise ParameterError(f'abilities must be "refitted" (with annotations) or "held", got {abilities!r}')
    counts = np.bincount(known[known >= 0], minlength=K).astype(np.float64)
    fixed, words = _fixed_prevalence(prevalence, names, counts)
    if n == 0 or K < 2:
        return _nothing_to_do(names, posterior, known)
    if mode == "held" or annotations is None:
        given = np.full(K, 1.0 / K) if prior is None else np.asarray(prior, dtype=np.float64)
        return _held(names, posterior, given, fixed, words, known, counts if prevalence == "gold" else None)
    shares_from = counts if prevalence == "gold" else None
    return _refitted(annotations, posterior, known, fixed, shares_from, words, n_sweeps, random_state)


def calibrate_fit(
    estimator: Estimator,
    gold: Mapping[Any, Any] | None = None,
    *,
    prevalence: Shares = "estimate",
    sampled: bool = False,
    n_sweeps: int | None = None,
    random_state: int = 0,
) -> CalibratedPosterior:
    """Probabilities for a fitted method, with the class prior that it was fitted with.

    A method that reports calibrated probabilities itself (``reported_``) is taken at its word unless ``sampled``; any
    other method's votes are explained again, or with very many workers and classes its posterior is reweighted.

    Arguments that are not named here are as in :func:`calibrated`.

    Args:
        gold: labels that the fit was given, by task.
        sampled: whether draws are wanted, for intervals and recall targets, whatever the method reports.
    """
    crowd = estimator.annotations_
    known = _known_classes(gold, crowd, crowd.n_tasks)
    reported = getattr(estimator, "reported_", None)
    if reported is None or sampled:
        return calibrated(
            estimator.posterior_,
            _prior_of(estimator),
            prevalence=prevalence,
            gold=known,
            annotations=crowd,
            n_sweeps=n_sweeps,
            random_state=random_state,
        )
    return _as_reported(estimator, np.asarray(reported, dtype=np.float64), known, prevalence)


def _prior_of(estimator: Estimator) -> FloatArray | None:
    """The class prior behind a posterior; None where the method has none."""
    log_prior = estimator.fitted_parameters.get("log_prior")
    return None if log_prior is None else np.asarray(np.exp(log_prior))


def _as_reported(
    estimator: Estimator, reported: FloatArray, known: NDArray[np.int32], prevalence: Shares
) -> CalibratedPosterior:
    """Probabilities that the method itself calibrated; another prevalence only reweights them."""
    crowd = estimator.annotations_
    counts = np.bincount(known[known >= 0], minlength=crowd.n_classes).astype(np.float64)
    score = reported
    if (known >= 0).any() and estimator.capabilities.predict:
        # What the votes alone say of known tasks; what the workers learned from them is still in it.
        score = np.where((known >= 0)[:, None], estimator.label_new(crowd).posterior, reported)
    share = reported.mean(axis=0) if len(reported) else np.full(crowd.n_classes, np.nan)
    fixed, words = _fixed_prevalence(prevalence, crowd.classes, counts)
    if not isinstance(prevalence, str) or prevalence != "estimate":
        wanted = counts if prevalence == "gold" else None
        held = _held(crowd.classes, score, np.maximum(share, TINY), fixed, words, known, wanted)
        return replace(held, is_reported=True)
    unknown = np.full(crowd.n_classes, np.nan)
    return CalibratedPosterior(
        crowd.classes,
        estimator.posterior_,
        _imposed(reported, known),
        score,
        share,
        unknown,
        unknown,
        "as the method reports them, which is near the shares of the votes",
        known,
        is_reported=True,
    )


def _known_classes(gold: Any, annotations: Annotations | None, n: int) -> NDArray[np.int32]:
    """Known class of each task or -1."""
    if gold is None or not len(gold):
        return np.full(n, -1, dtype=np.int32)
    if not isinstance(gold, Mapping):
        return np.asarray(gold, dtype=np.int32)
    if annotations is None:
        raise ParameterError("gold by task needs the annotations that name the tasks")
    number = {name: k for k, name in enumerate(annotations.classes.tolist())}
    strange = [label for label in gold.values() if label not in number]
    if strange:
        raise InputError(f"gold label {strange[0]!r} is no class ({', '.join(map(str, number))})")
    known = [number[gold[task]] if task in gold else -1 for task in annotations.tasks.tolist()]
    if max(known, default=-1) < 0:
        raise InputError(f"none of the {len(gold):,} gold tasks is in the annotations: check ids and their types")
    return np.array(known, dtype=np.int32)


def reweighted(posterior: FloatArray, prior: FloatArray, prevalence: FloatArray) -> FloatArray:
    """The posterior under another class prior, ``q'_ik ~ q_ik prevalence_k / prior_k``."""
    return normalise_rows(posterior * (np.asarray(prevalence) / np.maximum(prior, TINY)))


# --------------------------------------------------------------------------------------------------------------------
# prevalence as given


def _fixed_prevalence(prevalence: Shares, names: NDArray[Any], counts: FloatArray) -> tuple[FloatArray | None, str]:
    """Given shares (None if they are to be estimated), and how they come about in words."""
    K, n_gold = len(names), int(counts.sum())
    if isinstance(prevalence, str):
        if prevalence == "estimate":
            return None, "estimated from the votes" + (f" and {n_gold:,} known tasks" if n_gold else "")
        if prevalence != "gold":
            raise ParameterError(f'prevalence must be "estimate", "gold" or shares of the classes, got {prevalence!r}')
        if not n_gold:
            raise ParameterError("prevalence from gold, but no task has a gold label")
        return None, f"from {n_gold:,} known tasks, taken as a random sample of all tasks"
    if isinstance(prevalence, Mapping):
        unknown = unmatched(list(prevalence), names)
        if unknown:
            raise ParameterError(f"prevalence names {unknown[0]!r}, which is no class ({some_names(names.tolist())})")
        by_name = dict(zip(in_kind(prevalence, names), prevalence.values(), strict=True))
        missing = [name for name in names.tolist() if name not in by_name]
        if len(missing) > 1:
            raise ParameterError(f"prevalence lacks the classes {some_names(missing)}: at most one may be left out")
        if missing:
            by_name[missing[0]] = 1.0 - sum(by_name.values())
        prevalence = np.array([by_name[name] for name in names.tolist()], dtype=np.float64)
    shares = np.asarray(prevalence, dtype=np.float64)
    if shares.shape != (K,):
        raise ParameterError(f"prevalence must have {K} shares, one per class, got {shares.size}")
    if not ((shares > 0) & (shares < 1)).all() or abs(shares.sum() - 1.0) > 1e-6:
        raise ParameterError(f"prevalence must be shares between 0 and 1 that sum to 1, got {shares.tolist()}")
    return shares, "given"


def _nothing_to_do(names: NDArray[Any], posterior: FloatArray, known: NDArray[np.int32]) -> CalibratedPosterior:
    share = np.ones(len(names)) if len(names) == 1 else np.full(len(names), np.nan)
    return CalibratedPosterior(
        names, posterior, posterior, posterior, share, share, share, "nothing to estimate", known
    )


def _imposed(posterior: FloatArray, known: NDArray[np.int32]) -> FloatArray:
    """The posterior with known tasks at 0 and 1."""
    rows = np.flatnonzero(known >= 0)
    if not rows.size:
        return posterior
    result = posterior.copy()
    result[rows] = np.eye(posterior.shape[1])[known[rows]]
    return result


# --------------------------------------------------------------------------------------------------------------------
# abilities held


def _held(
    names: NDArray[Any],
    posterior: FloatArray,
    prior: FloatArray,
    fixed: FloatArray | None,
    words: str,
    known: NDArray[np.int32],
    gold_counts: FloatArray | None,
) -> CalibratedPosterior:
    """EM on the class prior alone, with an interval from the information that the tasks carry about each share."""
    if gold_counts is not None:
        fixed = (gold_counts + 0.5) / (gold_counts.sum() + 0.5 * len(names))
    share = posterior.mean(axis=0) if fixed is None else fixed
    for _ in range(10_000 if fixed is None else 1):
        score = reweighted(posterior, prior, share)
        result = _imposed(score, known)
        updated = np.maximum(result.mean(axis=0), TINY) if fixed is None else share
        moved, share = float(np.abs(updated - share).max()), updated
        if moved < 1e-10:
            break
    z = NormalDist().inv_cdf((1.0 + COVERAGE) / 2)
    if gold_counts is not None:
        error = np.sqrt(share * (1 - share) / gold_counts.sum())
    else:
        # A share s against the rest has the score (q - s) / (s (1 - s)) per task; its square sums to the information.
        information = ((result - share) ** 2).sum(axis=0) / np.maximum(share * (1 - share), TINY) ** 2
        error = 1.0 / np.sqrt(np.maximum(information, TINY))
    if fixed is not None and gold_counts is None:
        error = np.zeros_like(share)
    low, high = np.clip(share - z * error, 0.0, 1.0), np.clip(share + z * error, 0.0, 1.0)
    return CalibratedPosterior(
        names,
        posterior,
        result,
        score,
        share,
        low,
        high,
        f"{words}, abilities held as fitted",
        known,
        is_given=fixed is not None and gold_counts is None,
    )


# --------------------------------------------------------------------------------------------------------------------
# abilities refitted


def _refitted(
    annotations: Annotations,
    posterior: FloatArray,
    known: NDArray[np.int32],
    fixed: FloatArray | None,
    gold_counts: FloatArray | None,
    words: str,
    n_sweeps: int | None,
    seed: int,
) -> CalibratedPosterior:
    """Draw how the votes may have come about, and count the draws."""
    from rarevote.meaning.vote_sampler import Votes, VoteSampler

    n, K = posterior.shape
    tasks = np.arange(n)
    if annotations.n_annotations > _MAX_ANNOTATIONS:
        size = max(int(n * _MAX_ANNOTATIONS / annotations.n_annotations), 1)
        tasks = np.sort(np.random.default_rng(seed).choice(n, size, replace=False))
        words += f"; learned from {size:,} tasks drawn at random"
    sampler = VoteSampler(annotations, tasks, known, fixed, gold_counts, seed)
    drawn = sampler.run(_N_DRAWS, n_sweeps)
    score = drawn.score
    if tasks.size < n:
        votes = Votes.of(annotations, np.arange(n))
        mean = np.zeros((K, n))
        for _ in range(_PARAMETER_DRAWS):
            for _ in range(10):  # draws in a row are much alike
                sampler.sweep()
            mean += sampler.class_probability(sampler.likelihood(votes))
        score = np.empty((n, K))
        score[votes.tasks] = normalise_rows(mean.T)
    result = _imposed(score, known)
    shares = np.stack([(drawn.classes == k).mean(axis=1) for k in range(K)], axis=1)
    tail = (1.0 - COVERAGE) / 2
    low, high = np.quantile(shares, [tail, 1.0 - tail], axis=0)
    return CalibratedPosterior(
        annotations.classes,
        posterior,
        result,
        score,
        result.mean(axis=0),
        low,
        high,
        words,
        known,
        drawn.classes,
        tasks,
        drawn.ability,
        is_given=fixed is not None,
    )
