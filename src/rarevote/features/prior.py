"""The prior of every item, from its features and from the votes on all items.

Steps 2 to 5 of the method: columns in standard form, cross-fitted scores, their weight, the guard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.numerics import FloatArray, IntArray, sigmoid
from rarevote.errors import InputError
from rarevote.features.columns import Columns
from rarevote.features.join import ItemFeatures
from rarevote.features.record import (
    IN_SAMPLE,
    ONE_VOTE,
    FeatureRecord,
    coverage,
    in_words_of_predictions,
    pool_note,
    subsample_note,
    too_few,
    verdict,
)
from rarevote.features.scorer import Scorer, Scoring
from rarevote.features.settings import FeatureSettings
from rarevote.features.weight import Candidate, Weight, candidate, choose, standard_error

_MAX_CELLS = 1e8  # slopes of all folds
_MANY_VOTES = 3.0  # votes per item from which they show whether a model saw them
_SUSPICION = -2.0  # standard errors


@dataclass(frozen=True, eq=False)
class VoteEvidence:
    """The evidence of the votes alone on all items of the population, those with votes first.

    Attributes:
        posterior: q, (n, K); not used for items without votes and gold.
        log_likelihood: log likelihood of the votes on each item given its class, (n, K); 0 and -50 if the class is
            known.
        prior: pi, (K).
        speaks: items with votes or gold, (n).
        n_votes: number of votes on each item, (n).
        task: task of each vote, (N).
        label: label of each vote, (N).
        ability: alpha of the worker of each vote, for every class, computed on use, (N, K).
    """

    posterior: FloatArray
    log_likelihood: FloatArray
    prior: FloatArray
    speaks: NDArray[np.bool_]
    n_votes: IntArray
    task: IntArray
    label: IntArray
    ability: Callable[[IntArray], FloatArray]

    @property
    def n_voted(self) -> int:
        """Number of items with votes or gold."""
        return int(self.speaks.sum())


@dataclass(frozen=True, eq=False)
class FeaturePrior:
    """The outcome of using features.

    Attributes:
        record: the record of how they were used.
        priors: pi_i of every item, (n, K): pi if it has no features, or if they were left out.
        has_row: items with features, (n).
        scorer: computes the scores of new items; None if features were left out.
        weight: turns them into priors; likewise.
    """

    record: FeatureRecord
    priors: FloatArray
    has_row: NDArray[np.bool_]
    scorer: Scorer | None = None
    weight: Weight | None = None


@dataclass(eq=False)
class _Found:
    """The figures so far, as in the record."""

    items: int
    unmatched: int
    pool_items: int
    columns: int = 0
    dropped_columns: int = 0
    missing_cells: int = 0
    gain: float | None = None
    se: float | None = None
    lam: float | None = None
    tau2: float | None = None

    def record(self, reason: str, *, used: bool, predictions: bool) -> FeatureRecord:
        said = in_words_of_predictions(reason) if predictions else reason
        return FeatureRecord(used=used, reason=said, **vars(self))


# Called with the steps done, the largest number of steps, and the largest change of a score in the last one.
StepReport = Callable[[int, int, float], None]


def feature_prior(
    features: ItemFeatures,
    evidence: VoteEvidence,
    settings: FeatureSettings,
    classes: list[Any],
    report: StepReport | None = None,
) -> FeaturePrior:
    """The prior of every item.

    Args:
        features: features of the items.
        evidence: evidence of the votes.
        settings: the constants.
        classes: names of the classes of the evidence, (K).
        report: called after each step of the cross-fit.
    """
    n, K = evidence.posterior.shape
    has_row = np.zeros(n, dtype=bool)
    has_row[features.item] = True
    in_fit = evidence.speaks[features.item]
    found = _Found(int(in_fit.sum()), int((evidence.speaks & ~has_row).sum()), int((~in_fit).sum()))
    only_predictions = features.values is None
    pi = np.broadcast_to(evidence.prior, (n, K))

    def ended(*said: str, used: bool = False, **more: Any) -> FeaturePrior:
        record = found.record("; ".join(said), used=used, predictions=only_predictions)
        return FeaturePrior(record, **{"priors": pi, "has_row": has_row, **more})

    items = features.item[in_fit]
    n_classes = int((evidence.posterior[items].sum(axis=0) >= settings.least_mass).sum())
    if found.items < settings.least_items or n_classes < 2:
        return ended(too_few(settings))
    predictions = None if features.predictions is None else features.predictions.scores(classes)
    scoring = _scoring(features, predictions, K, settings)
    if scoring is not None:
        found.columns, found.dropped_columns = (
            scoring.columns.n_columns,
            len(features.names) - scoring.columns.n_columns,
        )
        found.missing_cells = scoring.columns.n_missing
    elif predictions is not None:
        found.columns = K if np.ptp(predictions, axis=0).max() > 0 else 0
    if not found.columns:
        return ended("the features do not vary")
    weighing = _Weighing(features, scoring, predictions, in_fit, evidence, settings, report)
    chosen, eta, scorer = weighing.chosen()
    found.gain, found.se = chosen.gain, standard_error(chosen.gains)
    found.lam, found.tau2 = chosen.weight.lam, chosen.weight.tau2
    used = found.gain >= max(settings.least_gain, settings.least_errors * found.se)
    said = [*coverage(found.items, evidence.n_voted), verdict(used, found.gain, found.se, settings)]
    said += pool_note(found.pool_items) if used else []
    if found.items > settings.subsample:
        said.append(subsample_note(settings.subsample, found.items))
    if predictions is not None and _in_sample(features.item, predictions, evidence):
        said.append(IN_SAMPLE)
    if (evidence.n_votes[items] <= 1).all():
        said.append(ONE_VOTE)
    if not used:
        return ended(*said)
    priors = pi.copy()
    priors[features.item] = chosen.weight.priors(eta)
    return ended(*said, used=True, priors=priors, scorer=scorer, weight=chosen.weight)


def _scoring(
    features: ItemFeatures, predictions: FloatArray | None, K: int, settings: FeatureSettings
) -> Scoring | None:
    """The columns to fit on; None if there are only predictions, which are scores already."""
    if features.values is None:
        return None
    columns = Columns.of(features.values, features.row, features.names)
    if K * settings.folds * columns.n_columns > _MAX_CELLS:
        raise InputError(
            f"features: {columns.n_columns:,} columns and {K:,} classes are too many for {settings.folds} folds: "
            "project the features on fewer columns (PCA)"
        )
    beside = None
    if predictions is not None:
        beside = Columns.of(predictions, np.arange(len(predictions)), ["predicted"] * K)
    return Scoring(tuple(features.names), columns, beside)


@dataclass(frozen=True, eq=False)
class _Weighing:
    """The choice of a weight on the rows of features, (n)."""

    features: ItemFeatures
    scoring: Scoring | None
    predictions: FloatArray | None
    in_fit: NDArray[np.bool_]
    evidence: VoteEvidence
    settings: FeatureSettings
    report: StepReport | None

    def chosen(self) -> tuple[Candidate, FloatArray, Scorer]:
        """The candidate on all items with votes, the scores of all items, and the scorer of new ones."""
        settings, every = self.settings, np.arange(len(self.in_fit))
        inside = np.flatnonzero(self.in_fit)
        is_part = len(inside) > settings.subsample
        rows = np.sort(self.features.by_code(inside)[: settings.subsample]) if is_part else every
        most = settings.steps * (len(settings.tau2) + is_part)
        tried = list(self._cross_fits(rows, settings.tau2, 0, most))
        weights = settings.lam_of_predictions if self.scoring is None else settings.lam
        best = choose(self._candidate(rows, eta, tau2, lam) for tau2, eta, _ in tried for lam in weights)
        tau2 = best.weight.tau2
        if is_part:
            tried = list(self._cross_fits(every, () if tau2 is None else (tau2,), most - settings.steps, most))
            best = self._candidate(every, tried[0][1], tau2, best.weight.lam)
        eta, slopes = next((eta, slopes) for of, eta, slopes in tried if of == tau2)
        return best, eta, Scorer((), None, None) if self.scoring is None else self.scoring.scorer(slopes)

    def _cross_fits(
        self, rows: IntArray, variances: tuple[float, ...], done: int, most: int
    ) -> Iterator[tuple[float | None, FloatArray, FloatArray]]:
        """For each ``tau2``, the scores of these rows and the mean slopes; larger ones start from smaller ones.

        ``done`` of at most ``most`` steps precede these.
        """
        if self.scoring is None:
            assert self.predictions is not None
            yield None, self.predictions[rows], np.empty(0)
            return
        soft = np.where(self.in_fit[rows, None], self.evidence.posterior[self.features.item[rows]], 0.0)
        fit = self.scoring.rows(rows).fit(self.features.fold[rows], self.in_fit[rows], soft, self.settings)
        for number, tau2 in enumerate(variances):
            begin = done + number * self.settings.steps

            def after_step(change: float, begin: int = begin) -> None:
                if self.report is not None:
                    self.report(begin + fit.n_steps, most, change)

            fit.solve(tau2, self.settings.steps, self.settings.tol, after_step)
            yield tau2, fit.scores, fit.slopes.mean(axis=0)

    def _candidate(self, rows: IntArray, eta: FloatArray, tau2: float | None, lam: float) -> Candidate:
        inside, evidence = self.in_fit[rows], self.evidence
        known = evidence.log_likelihood[self.features.item[rows[inside]]]
        return candidate(tau2, lam, eta[inside], evidence.prior, known, self.settings.lapse)


def _in_sample(item: IntArray, predictions: FloatArray, evidence: VoteEvidence) -> bool:
    """Whether a model agrees with single votes suspiciously often: it may have been trained on them."""
    predicted = np.full(len(evidence.posterior), -1)
    predicted[item] = predictions.argmax(axis=1)
    votes = np.flatnonzero(predicted[evidence.task] >= 0)
    task = evidence.task[votes]
    if not len(votes) or len(votes) < _MANY_VOTES * len(np.unique(task)):
        return False
    right = (evidence.posterior[task] * sigmoid(evidence.ability(votes))).sum(axis=1)
    excess = (evidence.label[votes] == predicted[task]) - right
    return bool(excess.mean() > _SUSPICION * excess.std() / np.sqrt(len(votes)))
