"""A method defined outside the package: it states a model, and fit, check, predict, explain and checkpoints follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

import rarevote
from rarevote.crowd.annotations import Annotations
from rarevote.em.loop import StoppingRule
from rarevote.em.model import EMModel, Shard, soft_majority
from rarevote.errors import ParameterError
from rarevote.methods.base import Fit, Request
from rarevote.methods.capabilities import Capabilities
from rarevote.methods.em_estimator import EMEstimator
from rarevote.methods.evidence import Evidence, WeighsVotes, right_or_uniform
from rarevote.methods.new_tasks import PredictsNewTasks, posterior_from_log_scores
from rarevote.methods.vote_model import SomeVotes, VoteModel
from rarevote.simulate.crowds import simulate_crowd

Floats = NDArray[Any]


class Tasks(NamedTuple):
    posterior: Floats


class Sums(NamedTuple):
    right: Floats  # (m)
    log_likelihood: Floats  # (1)


def posterior_of(votes: Annotations | Shard, log_odds: Floats, n_classes: int) -> tuple[Floats, float]:
    """Class probabilities of tasks by the votes of workers with these log odds; their log likelihood, up to a sum."""
    begin, end = votes.task_ptr[[0, -1]]
    task = np.repeat(np.arange(len(votes.task_ptr) - 1), np.diff(votes.task_ptr))
    cell = task * n_classes + votes.label[begin:end]
    weights = (log_odds + np.log(n_classes - 1))[votes.worker[begin:end]]
    scores: Floats = np.bincount(cell, weights, minlength=(len(votes.task_ptr) - 1) * n_classes).reshape(-1, n_classes)
    return posterior_from_log_scores(scores), float(np.logaddexp.reduce(scores, axis=1).sum())


@dataclass(frozen=True)
class OddsModel(EMModel[Floats, Tasks, Sums]):
    """One probability of being right per worker, with a Beta(2, 2) prior; classes are equally likely."""

    n_votes: Floats  # (m)
    n_classes: int

    def start(self) -> Floats:
        return np.ones(len(self.n_votes))

    def start_local(self, shard: Shard) -> Tasks:
        return Tasks(soft_majority(shard, self.n_classes))

    def empty_stats(self, shared: Floats) -> Sums:
        return Sums(np.zeros(len(shared)), np.zeros(1))

    def step(
        self, shared: Floats, shard: Shard, local: Tasks, out: Tasks, stats: Sums, refresh: bool, damping: float
    ) -> float:
        posterior, log_likelihood = posterior_of(shard, shared, self.n_classes)
        out.posterior[...] = posterior if refresh else local.posterior
        task = np.repeat(np.arange(len(posterior)), np.diff(shard.task_ptr))
        begin, end = shard.task_ptr[[0, -1]]
        met = out.posterior[task, shard.label[begin:end]]
        stats.right[:] += np.bincount(shard.worker[begin:end], met, minlength=len(shared))
        stats.log_likelihood[:] += log_likelihood
        return float(np.abs(posterior - local.posterior).max(initial=0.0))

    def objective(self, shared: Floats, stats: Sums) -> float:
        log_right, log_wrong = -np.logaddexp(0.0, -shared), -np.logaddexp(0.0, shared)
        return float(stats.log_likelihood[0] + (self.n_votes * log_wrong + log_right + log_wrong).sum())

    def update(self, shared: Floats, stats: Sums, damping: float) -> Floats:
        return np.asarray(np.log((stats.right + 1.0) / (self.n_votes - stats.right + 1.0)))


@dataclass(eq=False, repr=False)
class Toy(EMEstimator, PredictsNewTasks, WeighsVotes):
    method_name = "toy"
    capabilities: ClassVar[Capabilities] = Capabilities(predict=True, explain=True, checkpoint=True, replicate=True)
    saved_arrays: ClassVar[Mapping[str, str]] = {"log_odds": "w"}

    n_iter: int = 200
    tol: float = 1e-9

    def _fit(self, request: Request) -> Fit:
        votes = request.runner.worker_votes(request.crowd).sum(axis=1)
        run = self._em(request, OddsModel(votes, request.crowd.n_classes), StoppingRule(self.n_iter, np.inf, self.tol))
        return self._ended(run, {"log_odds": run.outcome.shared})

    def _posterior_of(self, annotations: Annotations, worker: NDArray[np.int64]) -> Floats:
        return posterior_of(annotations, self._parameter("log_odds")[worker], annotations.n_classes)[0]

    def _evidence(self, task: int, worker: NDArray[np.int64], label: NDArray[np.int64]) -> Evidence:
        K = self.annotations_.n_classes
        log_odds = np.repeat(self._parameter("log_odds")[worker][:, None], K, axis=1)
        return Evidence(np.full(K, -np.log(K)), right_or_uniform(log_odds, label), 1 / (1 + np.exp(-log_odds)))

    def vote_model(self, votes: SomeVotes) -> VoteModel:
        right = 1 / (1 + np.exp(-self._parameter("log_odds")))
        return VoteModel(votes, self.posterior_, right=lambda truth, rng: right[votes.worker])


CROWD = simulate_crowd(300, 12, n_classes=3, votes_per_task=5, random_state=1)


@pytest.fixture(scope="module")
def fitted() -> rarevote.Fitted:
    return rarevote.fit(CROWD.arrays, Toy())


def test_it_fits(fitted: rarevote.Fitted) -> None:
    model = fitted.method
    assert model.converged_
    assert (np.diff(model.loss_history_) >= -1e-9).all()
    crowd = model.annotations_
    met = model.posterior_[crowd.task_of_annotation(), crowd.label]
    right, given = np.bincount(crowd.worker, met), np.bincount(crowd.worker)
    expected = np.log((right + 1) / (given - right + 1))
    np.testing.assert_allclose(model.fitted_parameters["log_odds"], expected, atol=1e-3)
    assert fitted.decide().labels.shape == (300,)


def test_it_is_checked_by_the_votes_that_it_casts(fitted: rarevote.Fitted) -> None:
    model = fitted.method
    found = fitted.check().fit
    assert found is not None
    votes = SomeVotes.of(model.annotations_)
    label = model.vote_model(votes).draw(np.random.default_rng(0))
    again = rarevote.fit((votes.task, votes.worker, label), Toy()).check().fit
    assert again is not None
    assert again.off == (), "votes that the model has cast are explained by it"


def test_it_labels_new_tasks_and_explains_them(fitted: rarevote.Fitted) -> None:
    model = fitted.method
    np.testing.assert_allclose(model.label_new(CROWD.arrays).posterior, model.posterior_, atol=1e-12)
    evidence = model.evidence(7)
    scores = evidence.log_prior + evidence.of_votes.sum(axis=0)
    np.testing.assert_allclose(posterior_from_log_scores(scores[None])[0], model.posterior_[7], atol=1e-12)


def test_it_is_saved_and_resumed(fitted: rarevote.Fitted, tmp_path: Path) -> None:
    def stop(progress: Any) -> None:
        if progress.iteration == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Toy().fit(CROWD.arrays, checkpoint=tmp_path / "saved", checkpoint_every=2, callback=stop)
    resumed = Toy().fit(CROWD.arrays, checkpoint=tmp_path / "saved", checkpoint_every=2)
    np.testing.assert_array_equal(resumed.posterior_, fitted.method.posterior_)
    fitted.method.save(tmp_path / "toy.model")
    assert (tmp_path / "toy.model").stat().st_size > 0


def test_a_request_without_gold_has_an_empty_array() -> None:
    crowd = Annotations.from_arrays(["a", "a", "b"], ["u", "v", "u"], ["yes", "no", "yes"])
    request = Request(crowd)
    assert (request.gold.tolist(), request.annotations) == ([], crowd)


def test_what_it_does_not_declare_is_refused() -> None:
    with pytest.raises(ParameterError, match="toy cannot learn from gold"):
        Toy().fit(CROWD.arrays, {0: 1})
