"""The estimator of MACE: workers who copy the truth or spam (Hovy, Berg-Kirkpatrick, Vaswani and Hovy 2013)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.arguments import check_count, check_number
from rarevote.crowd.numerics import FloatArray, IntArray
from rarevote.em.checkpoint import Checkpoint
from rarevote.em.engine import Run
from rarevote.em.loop import Callback, Progress, StoppingRule
from rarevote.em.model import CrowdFacts
from rarevote.methods.base import Fit, Request
from rarevote.methods.em_estimator import EMEstimator
from rarevote.methods.evidence import Evidence, WeighsVotes
from rarevote.methods.mace.model import COPIES, SPAMS, MaceMethod, MaceModel, log_weights
from rarevote.methods.new_tasks import PredictsNewTasks, posterior_from_log_scores
from rarevote.methods.parameters import check_choice

Start = Literal["crowd-kit", "votes"]

# A restart must beat an earlier one by this much, relative to the objective: rounding must not decide.
_CLEARLY_BETTER = 1e-9
_GAIN_PER_ANNOTATION = 1e-7


@dataclass(eq=False, repr=False)
class MACE(PredictsNewTasks, EMEstimator, WeighsVotes):
    """Multi-annotator competence estimation: separates competent workers from spammers.

    On every annotation a worker either copies the true label or spams, and then answers from their
    own label distribution::

        P(worker r says y | the truth is k) = s_r theta_ry + (1 - s_r) [y = k]

    with a uniform class prior. Fitted by variational Bayes (``method="vb"``: Beta(alpha, beta) on ``s_r``, symmetric
    Dirichlet on ``theta_r``) or by EM with smoothed counts (``method="em"``).

    By default, results equal those of crowd-kit's class of this name if workers and labels first appear in sorted
    order (on other data crowd-kit 1.4.2 confuses the spamming distributions of workers): noisy parameters to start
    from, drawn in the order of the names, and exactly ``n_iter`` steps. Its restarts are all identical, so one is made.
    Unlike in crowd-kit, ``smoothing`` is used as given.

    With ``start="votes"`` nothing depends on names: the first run starts from the soft majority vote, the other
    ``n_restarts - 1`` from parameters with noise that is drawn per distinct voting record (counts of votes and of
    agreement); each continues until the objective stops changing, and the best one is used (on a tie, the earlier one).

    Args:
        n_restarts: number of runs, with ``start="votes"``.
        n_iter: iterations per run; with ``start="votes"``, the largest number: reaching it is common and gives no
            warning.
        method: "vb" or "em".
        smoothing: with "em", the number above 0 that is added to every expected count.
        default_noise: the starting parameters are proportional to ``1 + default_noise * U(0, 1)``.
        alpha: with "vb", prior count of spamming.
        beta: with "vb", prior count of copying.
        random_state: seed of the restarts.
        verbose: accepted for compatibility with crowd-kit; has no effect (see ``callback`` in :meth:`fit`).
        strategy_prior: with "vb", prior count of every label that a spammer can give.
        start: "crowd-kit" or "votes".
        n_jobs: threads; None or -1 for all cores. The result does not depend on it.

    Example:
        >>> from rarevote.methods.mace.estimator import MACE
        >>> task = [i for i in range(6) for _ in range(3)]
        >>> worker = ["ann", "bob", "spam"] * 6
        >>> label = [name for i in range(6) for name in ("ny"[i % 2], "ny"[i % 2], "y")]
        >>> model = MACE().fit((task, worker, label))
        >>> "".join(model.labels_.to_dict().values())
        'nynyny'
        >>> skills = model.skills_.to_dict()
        >>> skills["spam"] < skills["ann"]
        True
    """

    method_name = "mace"
    memory_model: ClassVar[Mapping[str, float]] = {"tk": 4, "wk": 10, "vk": 2}
    saved_arrays: ClassVar[Mapping[str, str]] = {"spams": "w", "copies": "w", "thetas": "wk:n", "bonus": "wk"}

    n_restarts: int = 10
    n_iter: int = 50
    method: MaceMethod = "vb"
    smoothing: float = 0.1
    default_noise: float = 0.5
    alpha: float = 0.5
    beta: float = 0.5
    random_state: int | None = 0
    verbose: int = 0
    _: KW_ONLY
    strategy_prior: float = 10.0
    start: Start = "crowd-kit"
    n_jobs: int | None = None

    def _validate(self, crowd: CrowdFacts) -> None:
        check_choice("method", self.method, "vb", "em")
        check_choice("start", self.start, "crowd-kit", "votes")
        check_count("n_restarts", self.n_restarts)
        for name in ("smoothing", "alpha", "beta", "strategy_prior"):
            check_number(name, getattr(self, name), above=0)
        check_number("default_noise", self.default_noise, at_least=0)

    def _fit(self, request: Request) -> Fit:
        gain = _GAIN_PER_ANNOTATION * request.crowd.n_annotations
        rule = StoppingRule(self.n_iter, np.inf, gain if self.start == "votes" else 0.0)
        callback = request.callback
        best: Run | None = None
        for number, model in enumerate(self._models(request)):
            told = None if callback is None else _over_all_runs(callback, number, self._n_runs)
            run = self._em(replace(request, callback=told, checkpoint=_of_run(request, number)), model, rule)
            if best is None or _is_better(run.outcome.history, best.outcome.history):
                best = run
        assert best is not None
        if request.checkpoint is not None:
            Checkpoint(*request.checkpoint).clear()
        shared = best.outcome.shared
        return Fit.of(
            best,
            {
                "spams": np.exp(shared.log_state[:, SPAMS]),
                "copies": np.exp(shared.log_state[:, COPIES]),
                "thetas": np.exp(shared.log_strategy),
                "bonus": log_weights(shared)[1],
            },
        )

    @property
    def _n_runs(self) -> int:
        return self.n_restarts if self.start == "votes" else 1

    def _models(self, request: Request) -> Iterator[MaceModel]:
        """The model once per run, each with its own start."""
        votes = request.runner.worker_votes(request.crowd).astype(np.float64)
        if self.method == "vb":
            model = MaceModel(votes, np.array([self.alpha, self.beta]), self.strategy_prior, "vb")
        else:
            model = MaceModel(votes, np.full(2, self.smoothing), self.smoothing, "em")
        if self.start == "crowd-kit":
            yield replace(model, parameters=self._noisy_parameters(*votes.shape))
            return
        yield model
        if self.n_restarts == 1:
            return
        worker_record, cell_record = _voting_records(request.annotations, votes)
        random = np.random.default_rng(self.random_state)
        for _ in range(1, self.n_restarts):
            of_state = random.random((worker_record.max() + 1, 2))[worker_record]
            of_strategy = random.random(cell_record.max() + 1)[cell_record]
            yield replace(model, noise=1.0 + self.default_noise * np.hstack([of_state, of_strategy]))

    def _noisy_parameters(self, n_workers: int, n_classes: int) -> FloatArray:
        """The numbers that crowd-kit draws, (m, 2 + K): both tables come from the same stream."""

        def drawn(width: int) -> FloatArray:
            noise = 1.0 + (1.0 + self.default_noise) * np.random.RandomState(self.random_state).random_sample(
                (n_workers, width)
            )
            return np.asarray(noise / noise.sum(axis=1, keepdims=True))

        return np.hstack([drawn(2), drawn(n_classes)])

    def _posterior_of(self, annotations: Annotations, worker: IntArray) -> FloatArray:
        bonus = self._parameter("bonus")[worker]
        return posterior_from_log_scores(annotations.votes(bonus[annotations.worker, annotations.label]))

    def _evidence(self, task: int, worker: IntArray, label: IntArray) -> Evidence:
        n_classes = self.annotations_.n_classes
        spams, copies = (self._parameter(name)[worker][:, None] for name in ("spams", "copies"))
        # A vote is evidence only for the class that it names.
        for_named = np.zeros((len(worker), n_classes))
        for_named[np.arange(len(worker)), label] = self._parameter("bonus")[worker, label]
        return Evidence(
            log_prior=np.full(n_classes, -np.log(n_classes)),
            of_votes=for_named,
            ability=copies + spams * self._parameter("thetas")[worker],
        )

    # -- results -----------------------------------------------------------------------------------------------------

    @property
    def spamming_(self) -> Any:
        """Weights of spamming and of copying, (workers, 2), in the order of the workers' names.

        With "vb" these are exponentials of expected logarithms, as crowd-kit shows them, and sum to a little less than
        one; :attr:`skills_` has the shares with names.
        """
        if not self.annotations_.n_workers:
            return np.empty((0, 2))
        return np.column_stack([self._parameter("spams"), self._parameter("copies")])

    @property
    def thetas_(self) -> Any:
        """Weight of each class in what a worker says when spamming, (workers, classes), in the order of the names."""
        return self._parameter("thetas")

    @property
    def skills_(self) -> Any:
        """Share of a worker's votes that copy the truth."""
        spams, copies = self._parameter("spams"), self._parameter("copies")
        return self._series("worker", copies / (spams + copies), "skill")


def _is_better(history: list[float], than: list[float]) -> bool:
    """Whether a run ended with a clearly higher objective; False for a run without a step."""
    return bool(history) and history[-1] > than[-1] + _CLEARLY_BETTER * (1.0 + abs(than[-1]))


def _of_run(request: Request, number: int) -> tuple[Path, int] | None:
    """A separate place in the checkpoint's folder: a run must not resume what another run saved."""
    if request.checkpoint is None:
        return None
    folder, every = request.checkpoint
    return Path(folder) / f"run-{number:03d}", every


def _over_all_runs(callback: Callback, run: int, n_runs: int) -> Callback:
    """The callback, called with the progress of all runs together."""

    def told(progress: Progress) -> None:
        done = run * progress.n_iter + progress.iteration
        callback(Progress(done, n_runs * progress.n_iter, progress.objective, progress.change))

    return told


def _voting_records(annotations: Annotations, votes: FloatArray) -> tuple[IntArray, IntArray]:
    """Numbers of the distinct voting records: of workers, (m), and of workers' votes for a class, (m, K).

    A record is made of whole numbers that do not depend on names or order: how much a worker voted, how large the
    tasks were, how often others gave the same answer, how often the worker and how often the crowd named the class.
    """
    votes_of_task = annotations.votes()
    task = annotations.task_of_annotation()

    def per_worker(counts: FloatArray) -> FloatArray:
        return np.bincount(annotations.worker, counts, minlength=annotations.n_workers).astype(np.float64, copy=False)

    same_answer = per_worker(votes_of_task[task, annotations.label])
    all_answers = per_worker(votes_of_task.sum(axis=1)[task])
    of_worker = _number_rows(np.column_stack([votes.sum(axis=1), same_answer, all_answers]))
    shape = votes.shape
    columns = (np.broadcast_to(of_worker[:, None], shape), np.broadcast_to(votes.sum(axis=0), shape), votes)
    of_cell = _number_rows(np.column_stack([column.reshape(-1) for column in columns]))
    return of_worker, of_cell.reshape(shape)


def _number_rows(rows: NDArray[Any]) -> IntArray:
    """The rank of every row among the distinct rows."""
    return np.asarray(np.unique(rows, axis=0, return_inverse=True)[1]).reshape(-1)
