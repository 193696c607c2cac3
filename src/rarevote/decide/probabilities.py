"""The reported probability of every item and class, from the results of any method.

A posterior assumes that errors of annotators are independent: it is too confident, the more so the more
votes an item has. The reported probability discounts further votes and allows for lapses. With ``g`` the shares of
the classes among all votes, ``v_i`` the votes on item ``i``, and ``q_i`` the posterior of a method whose class prior is
``pi`` (uniform if it has none)::

    L_ik = log max(q_ik, 1e-12) - log pi_k
    p_ik ∝ g_k exp(L_ik / (1 + 0.2 (v_i - 1)))
    reported: 0.95 p_ik + 0.05 f_k,      f = mean_i p_i

Voting methods have no posterior. With ``w_ik`` the weights of the votes for class ``k``, scaled so that an item's sum
is ``v_i``, they report ``(w_ik + g_k) / (v_i + 1)``. Items with gold are certain, and an item without votes has ``f``.

Everything that shows or uses a probability reads :class:`Probabilities`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.encoding import is_series
from rarevote.crowd.names import in_kind, object_array, some_names, unmatched, values_by_name
from rarevote.crowd.numerics import FloatArray, IntArray, column_sums, normalise_rows
from rarevote.crowd.rare import RareClass
from rarevote.decide.sampled import DrawsLater, IndependentDraws
from rarevote.errors import ParameterError, shown

#: "estimate" (the probabilities as reported), "gold" (shares among known items), or the shares themselves.
Shares = str | Mapping[Any, float] | Sequence[float] | FloatArray

DISCOUNT, LAPSE = 0.2, 0.05
_LEAST = 1e-12  # lower limit of a posterior, before its logarithm
_CELLS = 1 << 16  # items at a time: the work arrays stay in the cache


class Calibrator(ABC):
    """Turns what a method computes for some items into reported probabilities.

    There are two steps, so that items can be distributed: :meth:`discounted` needs a single item, :meth:`reported` the
    mean of the first over all items.
    """

    @abstractmethod
    def discounted(self, posterior: FloatArray, n_votes: IntArray) -> FloatArray:
        """Probabilities before lapses, (n, K), of items with ``n_votes`` votes each, (n)."""

    def reported(self, discounted: FloatArray, mean: FloatArray) -> FloatArray:
        """Reported probabilities, (n, K); ``mean`` is the mean of all discounted probabilities, (K)."""
        del mean
        return discounted

    def widened(self, kept: IntArray, n_classes: int) -> Calibrator:
        """The calibrator with further, unknown classes; most methods cannot have any."""
        del kept, n_classes
        return self


@dataclass(frozen=True, eq=False)
class Tempered(Calibrator):
    """For a posterior: discounts further votes and allows for lapses.

    Attributes:
        vote_shares: share of each class among all votes, ``g``, (K).
        prior: class prior of the posterior, ``pi``, (K).
    """

    vote_shares: FloatArray
    prior: FloatArray

    def discounted(self, posterior: FloatArray, n_votes: IntArray) -> FloatArray:
        """``p_ik ∝ g_k exp(L_ik / (1 + 0.2 (v_i - 1)))``."""
        n, n_classes = posterior.shape
        found = np.empty((n, n_classes))
        with np.errstate(divide="ignore"):
            log_shares = np.log(self.vote_shares)
        log_prior = np.log(np.maximum(self.prior, _LEAST))
        rows = max(_CELLS // max(n_classes, 1), 1)
        for begin in range(0, n, rows):
            part = slice(begin, begin + rows)
            evidence = np.log(np.maximum(posterior[part], _LEAST), dtype=np.float64) - log_prior
            scores = evidence / (1.0 + DISCOUNT * (n_votes[part, None] - 1.0)) + log_shares
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            found[part] = weights / weights.sum(axis=1, keepdims=True)
        return found

    def reported(self, discounted: FloatArray, mean: FloatArray) -> FloatArray:
        """``0.95 p + 0.05 f``."""
        return np.asarray((1.0 - LAPSE) * discounted + LAPSE * mean)


@dataclass(frozen=True, eq=False)
class Smoothed(Calibrator):
    """For shares of weighted votes: adds one vote, split like all votes.

    Attributes:
        vote_shares: share of each class among all votes, ``g``, (K).
    """

    vote_shares: FloatArray

    def discounted(self, posterior: FloatArray, n_votes: IntArray) -> FloatArray:
        """``(w_ik + g_k) / (v_i + 1)``, with the posterior ``w_ik / v_i``."""
        votes = n_votes[:, None].astype(np.float64)
        return np.asarray((votes * posterior + self.vote_shares) / (votes + 1.0))

    def widened(self, kept: IntArray, n_classes: int) -> Smoothed:
        """The calibrator with further classes, which have no share of the votes."""
        shares = np.zeros(n_classes)
        shares[kept] = self.vote_shares
        return Smoothed(shares)


@dataclass(frozen=True, eq=False)
class AsReported(Calibrator):
    """For a method that reports calibrated probabilities itself, with their ``mean``."""

    def discounted(self, posterior: FloatArray, n_votes: IntArray) -> FloatArray:
        """The method's own probabilities."""
        del n_votes
        return posterior


class FitCalibration(NamedTuple):
    """How a fit reports probabilities, with the means over its items.

    Attributes:
        calibrator: turns what the method computes into reported probabilities.
        mean: mean probability of every class over the items of the fit, before lapses, (K).
    """

    calibrator: Calibrator
    mean: FloatArray

    def of_new(self, posterior: FloatArray, n_votes: IntArray) -> FloatArray:
        """Reported probabilities of items that the fit did not see, (n, K)."""
        return self.calibrator.reported(self.calibrator.discounted(posterior, n_votes), self.mean)

    def widened(self, kept: IntArray, n_classes: int) -> FitCalibration:
        """The calibration with further classes, without votes in the fit; ``kept`` are the old classes."""
        mean = np.zeros(n_classes)
        mean[kept] = self.mean
        return FitCalibration(self.calibrator.widened(kept, n_classes), mean)


def certain(probabilities: FloatArray, gold: NDArray[Any]) -> FloatArray:
    """The probabilities with known items at 0 and 1; ``gold`` has the class of each or -1, (n), or is empty."""
    rows = np.flatnonzero(gold >= 0)
    if not rows.size:
        return probabilities
    found = probabilities.copy()
    found[rows] = np.eye(probabilities.shape[1])[gold[rows]]
    return found


def calibrated(
    calibrator: Calibrator, posterior: FloatArray, n_votes: IntArray, gold: NDArray[Any]
) -> tuple[FloatArray, FloatArray]:
    """The reported probabilities of all items with votes, (n, K), and their mean before lapses, (K).

    Args:
        calibrator: the calibrator of the method.
        posterior: what the method computes, (n, K).
        n_votes: votes on each item, (n).
        gold: known class of each item or -1, (n), or empty.

    Example:
        >>> q = np.array([[0.9, 0.1], [0.001, 0.999]])
        >>> p, mean = calibrated(Tempered(np.array([0.4, 0.6]), np.array([0.5, 0.5])), q, np.array([1, 6]), np.empty(0))
        >>> p.round(3).tolist(), mean.round(3).tolist()
        ([[0.836, 0.164], [0.042, 0.958]], [0.439, 0.561])
    """
    discounted = certain(calibrator.discounted(posterior, n_votes), gold)
    mean = column_sums(discounted) / max(len(discounted), 1)
    return certain(calibrator.reported(discounted, mean), gold), mean


@dataclass(frozen=True, eq=False)
class Probabilities:
    """The reported probability of every item and class, with related facts.

    Attributes:
        classes: names of the classes, (K).
        p: probability of every class, (n, K); items with votes first, then those without; known items are 0 or 1.
        mean: mean probability of every class, (K): the probabilities of an item without votes.
        gold: known class of each item or -1, (n).
        how: where the class shares come from, as text.
        is_given: whether the user gave the class shares.
        is_default: whether the default method reported them; how far they are trusted depends on it.
        is_jury: whether models cast most of the votes; how far labels are trusted depends on it.
        blind: the probabilities of a fit without the gold, (n, K); None if not needed.
        free: items whose label needs no vote, because their features are used, (n); None without features.
        has_features: whether features are used.
        draws: makes the draws with independent errors; None if there are none.
    """

    classes: NDArray[Any]
    p: FloatArray
    mean: FloatArray
    gold: IntArray
    how: str = "estimated from the votes"
    is_given: bool = False
    is_default: bool = False
    is_jury: bool = False
    blind: FloatArray | None = None
    free: NDArray[np.bool_] | None = None
    has_features: bool = False
    draws: DrawsLater | None = None

    def __len__(self) -> int:
        return len(self.p)

    @property
    def independent(self) -> IndependentDraws:
        """The true classes of the same items if errors are independent, drawn on first use."""
        if self.draws is None:
            return IndependentDraws.none(len(self), "the votes are not in memory")
        if self.how != Probabilities.how:
            return IndependentDraws.none(len(self), f"the class shares are {self.how}")
        return self.draws().first(len(self))

    @property
    def ranking(self) -> FloatArray:
        """The values that rank items if gold guarantees a recall: a fit ranks its own gold above other items."""
        return self.p if self.blind is None else self.blind

    def first(self, n: int) -> Probabilities:
        """The probabilities of the first ``n`` items."""
        if n == len(self):
            return self
        blind = None if self.blind is None else self.blind[:n]
        free = None if self.free is None else self.free[:n]
        return replace(self, p=self.p[:n], gold=self.gold[:n], blind=blind, free=free)

    def against_the_rest(self, rare: RareClass) -> Probabilities:
        """The probabilities of two classes: the rare class (or all grades of its tail), and everything else."""

        def both(table: FloatArray) -> FloatArray:
            mass = rare.mass(table)
            return np.stack([mass, 1.0 - mass], axis=-1)

        def draws() -> IndependentDraws:
            found = self.independent
            return replace(found, classes=np.asarray(~rare.holds(found.classes), dtype=np.uint8))

        return replace(
            self,
            classes=object_array([rare.name, None]),
            p=both(self.p),
            mean=both(self.mean),
            gold=np.where(self.gold < 0, self.gold, ~rare.holds(self.gold)),
            blind=None if self.blind is None else both(self.blind),
            draws=None if self.draws is None else draws,
        )

    def with_shares(self, shares: Shares) -> Probabilities:
        """The probabilities if classes have other shares, by Bayes' rule: ``p'_ik ∝ p_ik shares_k / mean_k``.

        Args:
            shares: "estimate" leaves them unchanged; "gold" takes the shares among known items, which must then be a
                random sample of all items; or the shares themselves, by class or in the order of the classes.

        Raises:
            ParameterError: the shares are not valid.
        """
        counts = np.bincount(self.gold[self.gold >= 0], minlength=len(self.classes)).astype(np.float64)
        wanted, how = shares_wanted(shares, self.classes, counts)
        if wanted is None:
            return self
        p = certain(reweighted(self.p, self.mean, wanted), self.gold)
        blind = None if self.blind is None else reweighted(self.blind, self.mean, wanted)
        return replace(self, p=p, mean=wanted, how=how, is_given=not isinstance(shares, str), blind=blind)


def reweighted(p: FloatArray, mean: FloatArray, wanted: FloatArray) -> FloatArray:
    """Reweight probabilities from the class shares ``mean`` to the shares ``wanted``, by Bayes' rule."""
    return normalise_rows(p * (wanted / np.maximum(mean, 1e-300)))


def shares_wanted(shares: Shares, names: NDArray[Any], counts: FloatArray) -> tuple[FloatArray | None, str]:
    """Shares of the classes (None to leave them unchanged), and where they come from, as text."""
    n_gold = int(counts.sum())
    if isinstance(shares, str):
        if shares == "estimate":
            return None, ""
        if shares != "gold":
            raise _not_shares(shares)
        if not n_gold:
            raise ParameterError("prevalence from gold, but no task has a gold label")
        smoothed = (counts + 0.5) / (n_gold + 0.5 * len(names))
        return smoothed, f"from {n_gold:,} known tasks, taken as a random sample of all tasks"
    by_name = isinstance(shares, Mapping) or is_series(shares)
    given = _shares_by_name(shares, names) if by_name else _numbers(shares, shares)
    if given.shape != (len(names),):
        raise ParameterError(f"prevalence must have {len(names)} shares, one per class, got {given.size}")
    if not ((given > 0) & (given < 1)).all() or abs(given.sum() - 1.0) > 1e-6:
        raise ParameterError(f"prevalence must be shares between 0 and 1 that sum to 1, got {given.tolist()}")
    return given, "given"


def _not_shares(given: Any) -> ParameterError:
    return ParameterError(f'prevalence must be "estimate", "gold" or shares of the classes, got {shown(given)}')


def _numbers(values: Any, shares: Any) -> FloatArray:
    """Values of shares as an array; text is refused, and so are masked values."""
    try:
        given = np.asarray(values)
        if given.ndim < 2 and given.dtype.kind in "biufO" and not np.ma.is_masked(values):
            return given.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    raise _not_shares(shares)


def _shares_by_name(shares: Any, names: NDArray[Any]) -> FloatArray:
    """Shares in the order of the classes, from a mapping or a Series; one class may be left out."""
    given, values = list(shares.keys()), list(shares.values if is_series(shares) else shares.values())
    unknown = unmatched(given, names)
    if unknown:
        raise ParameterError(f"prevalence: {unknown[0]!r} is not a class ({some_names(names.tolist())})")
    numbers = _numbers(values, shares)
    if np.isnan(numbers).any():
        raise _not_shares(shares)
    by_name = values_by_name(zip(in_kind(given, names), numbers.tolist(), strict=True), "prevalence: class")
    missing = [name for name in names.tolist() if name not in by_name]
    if len(missing) > 1:
        raise ParameterError(f"prevalence lacks the classes {some_names(missing)}: at most one may be left out")
    if missing:
        by_name[missing[0]] = 1.0 - sum(by_name.values())
    return np.array([by_name[name] for name in names.tolist()])
