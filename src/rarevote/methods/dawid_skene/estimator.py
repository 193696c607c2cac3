"""The estimators of Dawid–Skene: a full confusion matrix per annotator, or one accuracy, fitted by EM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.numerics import FloatArray, IntArray
from rarevote.em.loop import Callback, StoppingRule
from rarevote.em.model import CrowdFacts
from rarevote.errors import InputError, ParameterError, how, warn_user
from rarevote.io.tables import Table
from rarevote.methods.base import Fit, Request, fitted_result
from rarevote.methods.dawid_skene.model import Bound, DawidSkeneModel, InitialError, OneCoinModel
from rarevote.methods.em_estimator import EMEstimator, saved_in
from rarevote.methods.evidence import Evidence, WeighsVotes
from rarevote.methods.new_tasks import PredictsNewTasks, posterior_from_votes
from rarevote.methods.parameters import check_choice, resolve_prior, state_dtype
from rarevote.methods.vote_model import SomeVotes, VoteModel

Strategy = Literal["assign", "addition"] | None

_SHOWN = 3  # how many names a message quotes
# From this number of classes on, with at most one vote per worker and class, up to half of the unanimous labels
# changed.
_MANY_CLASSES = 5


class ConfusionEstimator(EMEstimator, PredictsNewTasks, WeighsVotes):
    """Base of the methods with a confusion matrix per annotator."""

    takes_unseen_workers = True
    memory_model: ClassVar[Mapping[str, float]] = {"tk": 2, "wkk": 4, "vk": 3}
    saved_arrays: ClassVar[Mapping[str, str]] = {
        "log_confusion": "wkk:log",
        "log_average": "kk:log",
        "log_prior": "k:log",
        "worker_votes": "wk:n",
    }

    def _model(self, request: Request) -> DawidSkeneModel:
        raise NotImplementedError

    def _validate(self, crowd: CrowdFacts) -> None:
        if not self.tol >= 0:
            raise ParameterError(f"tol must be at least 0, got {self.tol!r}")
        state_dtype(self.dtype)

    def _fit(self, request: Request) -> Fit:
        model = self._model(request)
        run = self._em(request, model, StoppingRule(self.n_iter, np.inf, self.tol))
        outcome, votes = run.outcome, request.runner.worker_votes(request.crowd)
        # crowd-kit's history holds its bound; the objective is stored separately.
        fit = self._ended(
            replace(run, outcome=replace(outcome, history=outcome.values)),
            {
                "log_confusion": outcome.updated.log_confusion,
                "log_average": model.log_average(outcome.updated, votes),
                "log_prior": outcome.updated.log_prior,
                "objective_history": outcome.history,
                "worker_votes": votes,
            },
        )
        self._warn_of_few_votes(votes)
        return fit

    def _warn_of_few_votes(self, votes: NDArray[Any]) -> None:
        """Hook: warn if workers' confusions cannot be learned from these numbers of votes, (n_workers, n_classes)."""

    def _posterior_of(self, annotations: Annotations, worker: IntArray) -> FloatArray:
        """``q_k ∝ pi_k prod_r e_{r, y_r, k}``; a label that a worker never gave in the fit has no weight."""
        log_confusion = self._parameter("log_confusion")[worker]
        log_confusion[worker < 0] = self._parameter("log_average")
        of_votes = log_confusion[annotations.worker, annotations.label]
        return posterior_from_votes(annotations, of_votes, self._parameter("log_prior"))

    def _evidence(self, task: int, worker: IntArray, label: IntArray) -> Evidence:
        log_confusion = self._parameter("log_confusion")
        own = np.arange(self.annotations_.n_classes)
        ability = np.exp(log_confusion[worker[:, None], own, own])
        # A label that a worker never used has no probability, and its row of the table has no meaning.
        ability = np.where(self._parameter("worker_votes")[worker] > 0, ability, 0.0)
        return Evidence(self._parameter("log_prior"), log_confusion[worker, label], ability)

    def vote_model(self, votes: SomeVotes) -> VoteModel:
        """Votes drawn from the confusions; a label that a worker never used has probability 0."""
        log_confusion, used = self._parameter("log_confusion"), self._parameter("worker_votes") > 0
        own = np.arange(votes.n_classes)
        total = np.zeros(used.shape)
        for label in own:  # avoids a second table of (m, K, K)
            total += np.exp(log_confusion[:, label]) * used[:, [label]]
        right = np.exp(log_confusion[:, own, own]) * used
        chance = np.divide(right, total, out=np.zeros_like(total), where=total > 0)
        return VoteModel(
            votes,
            self.posterior_,
            right=lambda truth, _: chance[votes.worker, truth[votes.task]],
            errors=lambda worker, z: np.exp(log_confusion[worker, :, z]) * used[worker],
        )

    # -- results -----------------------------------------------------------------------------------------------------

    def _reported_labels(self) -> NDArray[np.bool_]:
        """Which (worker, label) pairs have a row in :attr:`errors_`, (n_workers, n_classes)."""
        return np.asarray(self._parameter("worker_votes") > 0)

    @fitted_result
    def errors_(self) -> Any:
        """Confusion matrices: rows (worker, label given), columns true classes, P(label | worker, true class).

        A label that a worker never used has no row: within a worker, each column sums to one.
        """
        crowd = self.annotations_
        worker, label = np.nonzero(self._reported_labels())
        shape = (crowd.n_workers, crowd.n_classes, crowd.n_classes)
        rows = np.exp(self._parameter("log_confusion").reshape(shape)[worker, label])
        return self._by_class({"worker": crowd.workers[worker], "label": crowd.classes[label]}, rows)

    @property
    def priors_(self) -> Any:
        """The class prior after the last iteration."""
        return self._series("label", np.exp(self._parameter("log_prior")), "prior")

    @property
    def objective_history_(self) -> list[float]:
        """The objective after each iteration, which never falls (:attr:`loss_history_` has the stopping value)."""
        return list(self._result.parameters.get("objective_history", []))


@dataclass(eq=False, repr=False)
class DawidSkene(ConfusionEstimator):
    """Dawid–Skene: every annotator has a confusion matrix, the class prior is learned.

    ::

        P(worker r says l | the truth is k) = e_rlk,     P(truth is k) = pi_k

    EM maximises ``sum_i log sum_k pi_k prod_r e_{r, y_ir, k}`` (plus ``smoothing * sum log e``, the log density of a
    Dirichlet prior), from the soft majority vote. The objective never falls. With the defaults, results equal those of
    crowd-kit's class of this name, and this is a drop-in replacement: labels, probabilities, ``errors_``,
    ``priors_``, ``loss_history_`` and the number of iterations. This needs two peculiarities: counts are raised to
    1e-10 before they are normalised over the labels that the worker used, and the stopping rule uses crowd-kit's
    bound, which counts the log prior once per annotation. ``bound="exact"`` uses the objective instead; it
    usually takes longer.

    The learned prior works against rare classes: see :class:`rarevote.CCRasch` if they matter. Memory: a few times
    ``n_workers * n_classes**2`` numbers.

    Args:
        n_iter: the largest number of EM iterations.
        tol: stop when the bound per annotation gains less than this. 0 never stops: all ``n_iter`` iterations are made
            without a warning, and ``converged_`` is False (crowd-kit stops at the first gain that rounding makes
            negative).
        initial_error_strategy: what ``initial_error`` in :meth:`fit` means: "assign" takes it as the confusion
            matrices to start from, "addition" adds it to the counts of the first iteration; None leaves it unused.
        smoothing: pseudo-count added to every (label, truth) pair of every annotator. Above 0, all labels share the
            probability, used or not.
        prior: class prior: "estimate", "uniform", or values (sequence in class order, or mapping by class).
        bound: the value that the stopping rule uses: "crowd-kit" or "exact".
        dtype: "float64", or "float32" for posteriors that take half the memory.
        n_jobs: threads; None or -1 for all cores. The result does not depend on it.

    Example:
        >>> from rarevote.methods.dawid_skene.estimator import DawidSkene
        >>> task = [0, 0, 0, 1, 1, 1]
        >>> worker = ["ann", "bob", "cy", "ann", "bob", "cy"]
        >>> label = ["yes", "yes", "no", "no", "no", "no"]
        >>> model = DawidSkene().fit((task, worker, label))
        >>> model.labels_.to_dict()
        {0: 'yes', 1: 'no'}
    """

    method_name = "dawid-skene"
    worker_table = "errors_"

    n_iter: int = 100
    tol: float = 1e-5
    initial_error_strategy: Strategy = None
    _: KW_ONLY
    smoothing: float = 0.0
    prior: Any = "estimate"
    bound: Bound = "crowd-kit"
    dtype: str = "float64"
    n_jobs: int | None = None

    def fit(
        self,
        data: Any,
        true_labels: Any = None,
        initial_error: Any = None,
        *,
        checkpoint: str | Path | None = None,
        checkpoint_every: int = 10,
        callback: Callback | None = None,
        **options: Any,
    ) -> Self:
        """Aggregate the annotations.

        Arguments that are not named here are as in :meth:`EMEstimator.fit`.

        Args:
            initial_error: prior knowledge of the workers, in the layout of :attr:`errors_`: a pandas frame indexed by
                (worker, label) with a column per true class, or any other frame with columns worker, label and one
                per class. To "assign", every label that a worker uses needs a row, and values are either counts or
                probabilities that sum to one per worker and column; for "addition", values are counts, and
                missing ones count as 0.
        """
        asked = {"checkpoint": saved_in(checkpoint, checkpoint_every), "initial_error": initial_error}
        return self.fit_request(data, true_labels, options, callback=callback, **asked)

    def _validate(self, crowd: CrowdFacts) -> None:
        super()._validate(crowd)
        check_choice("initial_error_strategy", self.initial_error_strategy, "assign", "addition", None)
        check_choice("bound", self.bound, "crowd-kit", "exact")
        if not 0 <= self.smoothing < np.inf:
            raise ParameterError(f"smoothing must be at least 0 and finite, got {self.smoothing!r}")
        resolve_prior(self.prior, crowd.classes)

    def _warn_of_few_votes(self, votes: NDArray[Any]) -> None:
        n_votes, n_workers, n_classes = int(votes.sum()), *(int(votes.any(axis=axis).sum()) for axis in (1, 0))
        if n_classes >= _MANY_CLASSES and n_votes <= n_workers * n_classes:
            other = how("OneCoinDawidSkene or AnchoredRasch", "--method one-coin or --method anchored-rasch")
            warn_user(
                f"{n_votes:,} votes of {n_workers:,} workers are few for {n_classes:,} classes: DawidSkene learns "
                "confusions for every worker and class, and from one vote each or none it may change labels on which "
                f"all annotators agree. Use {other} for such crowds"
            )

    def _model(self, request: Request) -> DawidSkeneModel:
        crowd = request.crowd
        log_prior, estimate = resolve_prior(self.prior, crowd.classes)
        return DawidSkeneModel(
            crowd.n_workers,
            crowd.n_classes,
            crowd.n_annotations,
            log_prior,
            estimate,
            float(self.smoothing),
            self.bound,
            self._known_errors(request),
            state_dtype(self.dtype),
        )

    def _known_errors(self, request: Request) -> InitialError | None:
        if request.initial_error is None:
            return None
        if self.initial_error_strategy is None:
            warn_user('initial_error has no effect: set initial_error_strategy to "assign" or "addition"')
            return None
        used = request.runner.worker_votes(request.crowd) > 0
        return read_initial_error(
            request.initial_error, request.crowd, used, replaces=self.initial_error_strategy == "assign"
        )

    def _reported_labels(self) -> NDArray[np.bool_]:
        used = super()._reported_labels()
        return np.ones_like(used) if self.smoothing > 0 else used


# --------------------------------------------------------------------------------------------------------------------
# prior knowledge of the workers


def read_initial_error(data: Any, crowd: CrowdFacts, used: NDArray[np.bool_], *, replaces: bool) -> InitialError:
    """Confusion counts in the layout of ``errors_``, checked against the crowd.

    Workers that are not in the crowd are left out.

    Args:
        data: as given to :meth:`DawidSkene.fit`.
        crowd: the crowd with the workers and classes.
        used: which labels each worker used, (n_workers, n_classes).
        replaces: whether the data replace the counts of the first step, or add to them.

    Raises:
        InputError: the layout is wrong, a class is unknown, a value is negative or missing, or, if the data
            replace the counts, a label that a worker used has no row or probabilities do not sum to one.
    """
    classes = crowd.classes.tolist()
    workers, labels, columns = _split_layout(data, classes)
    unknown = [name for name in [*columns, *dict.fromkeys(labels)] if name not in set(classes)]
    if unknown:
        raise InputError(
            f"initial_error names {unknown[0]!r}, which is not one of the classes {classes}: leave it out, or add it "
            "to the classes with classes="
        )
    values = np.zeros((len(workers), len(classes)))
    for k, name in enumerate(classes):
        if name in columns:
            values[:, k] = columns[name]
        elif replaces:
            raise InputError(f"initial_error has no column for the class {name!r}")
    if not replaces:
        values = np.nan_to_num(values, nan=0.0, posinf=np.inf)
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise InputError("initial_error must hold counts or probabilities: finite and at least 0")
    if replaces and (values <= 1.0).all():
        _check_sums(workers, values)

    position = {name: r for r, name in enumerate(crowd.workers.tolist())}
    code = {name: k for k, name in enumerate(classes)}
    known = [row for row, name in enumerate(workers) if name in position]
    rows = np.array([position[workers[row]] for row in known], dtype=np.int64)
    answers = np.array([code[labels[row]] for row in known], dtype=np.int64)
    counts = np.zeros((crowd.n_workers, len(classes), len(classes)))
    given = np.zeros((crowd.n_workers, len(classes)), dtype=bool)
    np.add.at(counts, (rows, answers), values[known])
    given[rows, answers] = True
    if given.sum() < len(known):
        raise InputError("initial_error has several rows for one worker and label")
    if replaces:
        lacking = np.flatnonzero((used & ~given).any(axis=1))
        if lacking.size:
            named = ", ".join(repr(name) for name in crowd.workers[lacking[:_SHOWN]].tolist())
            raise InputError(
                f"initial_error must have a row for every label that a worker used, to be assigned; {lacking.size:,} "
                f"workers lack one ({named}{', ...' if lacking.size > _SHOWN else ''})"
            )
    return InitialError(counts, given, replaces)


def _check_sums(workers: list[Any], values: FloatArray) -> None:
    number = {name: row for row, name in enumerate(dict.fromkeys(workers))}
    sums = np.zeros((len(number), values.shape[1]))
    np.add.at(sums, [number[name] for name in workers], values)
    wrong = ~np.isclose(sums, 1.0).all(axis=1)
    if wrong.any():
        first = list(number)[int(wrong.argmax())]
        raise InputError(
            "probabilities in initial_error must sum to 1 per worker and true class; those of "
            f"{first!r} sum to {np.round(sums[int(wrong.argmax())], 6).tolist()}"
        )


def _split_layout(data: Any, classes: list[Any]) -> tuple[list[Any], list[Any], dict[Any, Any]]:
    """Worker and label of every row, and the columns of values by class."""
    roles = ["worker", "label"]
    try:
        if hasattr(data, "reset_index"):
            names = list(data.index.names)
            if names != roles:
                raise InputError(f"initial_error must be indexed by worker and label, got an index of {names}")
            workers, labels = (data.index.get_level_values(name).tolist() for name in roles)
            return workers, labels, dict(zip(data.columns, data.to_numpy(dtype=float).T, strict=True))
        if isinstance(data, Table) and list(data.index) == roles:
            workers, labels = (data.index[name].tolist() for name in roles)
            return workers, labels, dict(data.values)

        import narwhals as nw

        frame = nw.from_native(data, eager_only=True)
        if not set(roles) <= set(frame.columns):
            raise InputError("initial_error needs columns worker and label, and one per class")
        # Only pandas has column names that are not text, so compare as text for other frames.
        by_text = {str(name): name for name in classes}
        values = {name: frame[name].cast(nw.Float64).to_numpy() for name in frame.columns if name not in roles}
        return (
            frame["worker"].to_list(),
            frame["label"].to_list(),
            {by_text.get(name, name): column for name, column in values.items()},
        )
    except (TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"initial_error must be a frame of numbers in the layout of errors_: {error}") from None


@dataclass(eq=False, repr=False)
class OneCoinDawidSkene(ConfusionEstimator):
    """Dawid–Skene with one accuracy per annotator for all classes; errors are uniform over the other classes.

    ::

        P(worker r says l | the truth is k) = s_r if l = k, else (1 - s_r)/(K - 1)

    The class prior is learned. Results equal those of crowd-kit's class of this name, including its start (the soft
    majority vote) and stopping rule: see :class:`~rarevote.DawidSkene`. Unlike in crowd-kit, gold can be
    given.

    Args:
        n_iter: the largest number of EM iterations.
        tol: stop when crowd-kit's bound, per annotation, gains less than this; 0 never stops.
        initial_error_strategy: accepted for compatibility with crowd-kit; has no effect in either.
        dtype: "float64", or "float32" for posteriors that take half the memory.
        n_jobs: threads; None or -1 for all cores. The result does not depend on it.

    Example:
        >>> from rarevote.methods.dawid_skene.estimator import OneCoinDawidSkene
        >>> task = [0, 0, 0, 1, 1, 1]
        >>> worker = ["ann", "bob", "cy", "ann", "bob", "cy"]
        >>> label = ["yes", "yes", "no", "no", "no", "no"]
        >>> model = OneCoinDawidSkene().fit((task, worker, label))
        >>> model.labels_.to_dict()
        {0: 'yes', 1: 'no'}
    """

    method_name = "one-coin"
    worker_table = "skills_"

    n_iter: int = 100
    tol: float = 1e-5
    initial_error_strategy: Strategy = None
    _: KW_ONLY
    dtype: str = "float64"
    n_jobs: int | None = None

    def _model(self, request: Request) -> OneCoinModel:
        crowd = request.crowd
        log_prior, estimate = resolve_prior("estimate", crowd.classes)
        sizes = (crowd.n_workers, crowd.n_classes, crowd.n_annotations)
        return OneCoinModel(*sizes, log_prior, estimate, dtype=state_dtype(self.dtype))

    @property
    def skills_(self) -> Any:
        """Accuracy of every annotator after the last iteration."""
        log_confusion = self._parameter("log_confusion")
        accuracy = np.exp(log_confusion[:, 0, 0]) if log_confusion.ndim == 3 else np.empty(0)
        return self._series("worker", accuracy, "skill")
