"""The interface of every method: ``fit``, ``fit_predict``, ``labels_``, ``probas_``, parameters.

The conventions are those of scikit-learn (parameters stored as given, fitted attributes end in an underscore,
``get_params``, ``set_params``, ``clone``) and of crowd-kit (names and layouts of the results, ``n_iter`` first, gold
as ``true_labels``). A method subclasses :class:`Estimator`, or :class:`~rarevote.methods.em_estimator.EMEstimator` if
it is fitted by the EM loop, and says how to compute a :class:`Fit` from a :class:`Request`; everything else is here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations, smallest_unsigned
from rarevote.crowd.gold import with_gold
from rarevote.crowd.grades import Grades
from rarevote.crowd.numerics import Chooser, IntArray, first_of_best
from rarevote.crowd.words import counted, facts_html
from rarevote.decide.probabilities import Calibrator, FitCalibration, Smoothed, Tempered, calibrated
from rarevote.decide.rules import Rule
from rarevote.decide.selection import parse_rule
from rarevote.em.engine import Run, Runner
from rarevote.em.local import LocalRunner
from rarevote.em.loop import Callback, Status
from rarevote.em.model import CrowdFacts, Gold
from rarevote.errors import NotEnoughMemoryError, NotFittedError, ParameterError, warn_user
from rarevote.io.read.crowd import read_or_empty
from rarevote.io.read.frames import Origin, read_truths
from rarevote.io.read.labels import one_problem
from rarevote.io.tables import Table
from rarevote.methods.memory import Sizes, out_of_memory, require_memory
from rarevote.methods.parameters import HasParameters
from rarevote.methods.registry import cannot, require_capability

if TYPE_CHECKING:
    from rarevote.features.join import ItemFeatures
    from rarevote.features.model import FeatureModel
    from rarevote.methods.anchored_rasch.with_features import FeatureOutcome
    from rarevote.methods.evidence import Evidence
    from rarevote.methods.vote_model import SomeVotes, VoteModel

FloatArray = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Request:
    """Everything that a fit is asked for.

    Attributes:
        crowd: sizes and names of the crowd; also the votes, if they are on this machine.
        gold: class number of every task or -1; of size 0 if nothing is known, or if it is stored with the votes.
        runner: where to run the EM loop.
        callback: called after every iteration.
        checkpoint: the folder in which to save the fit, and the iterations between two checkpoints.
        initial_error: prior knowledge of the workers' confusions (:class:`~rarevote.DawidSkene`).
        skills: weights of the workers (:class:`~rarevote.MajorityVote`).
        more_gold: further gold labels of tasks that have several, by name (:class:`~rarevote.GoldMajorityVote`).
        features: features of the items (:class:`~rarevote.AnchoredRasch`).
    """

    crowd: CrowdFacts
    gold: Gold = field(default_factory=lambda: np.empty(0, dtype=np.int32))
    runner: Runner = field(default_factory=LocalRunner)
    callback: Callback | None = None
    checkpoint: tuple[str | Path, int] | None = None
    initial_error: Any = None
    skills: Any = None
    more_gold: tuple[tuple[Any, Any], ...] = ()
    features: ItemFeatures | None = None

    @property
    def annotations(self) -> Annotations:
        """The votes; for methods that run on a single machine only."""
        assert isinstance(self.crowd, Annotations)
        return self.crowd


@dataclass(frozen=True)
class Fit:
    """The arrays that a method computed.

    Attributes:
        posterior: (n_tasks, n_classes), rows sum to one.
        parameters: the method's parameter arrays, by name.
        history: objective per iteration, larger is better.
        n_iter: number of iterations.
        n_passes: passes over the data.
        converged: whether the stopping rule was met.
        status: how it ended, as text.
    """

    posterior: FloatArray
    parameters: dict[str, Any] = field(default_factory=dict)
    history: list[float] = field(default_factory=list)
    n_iter: int = 1
    n_passes: int = 1
    converged: bool = True
    status: str = "converged"

    @classmethod
    def of(cls, run: Run, parameters: dict[str, Any]) -> Fit:
        """The result of a run of the EM loop."""
        outcome = run.outcome
        return cls(
            run.posterior,
            parameters,
            outcome.history,
            outcome.n_iter,
            outcome.n_passes,
            outcome.status is not Status.LIMIT,
            outcome.status.value,
        )


@dataclass(frozen=True, eq=False)
class FitRecord:
    """A fit together with its crowd.

    Attributes:
        annotations: the votes.
        source: the original form of the data.
        fit: what the method computed.
        gold: known class of every task or -1; of size 0 if nothing is known.
        calibration: how probabilities are reported, if the votes are not available.
        delivered: the results computed so far, in the type of the data.
    """

    annotations: Annotations
    source: Origin
    fit: Fit
    gold: Gold = field(default_factory=lambda: np.empty(0, dtype=np.int32))
    calibration: FitCalibration | None = None
    delivered: dict[str, Any] = field(default_factory=dict)


def _without_tasks(workers: NDArray[Any], classes: NDArray[Any]) -> Annotations:
    return Annotations(
        np.zeros(1, dtype=np.int64),
        np.empty(0, dtype=smallest_unsigned(len(workers))),
        np.empty(0, dtype=smallest_unsigned(len(classes))),
        np.empty(0, dtype=object),
        workers,
        classes,
    )


def fitted_result(make: Callable[[Any], Any]) -> property:
    """A property that is computed once per fit."""

    @wraps(make)
    def get(self: Estimator) -> Any:
        delivered = self._record.delivered
        if make.__name__ not in delivered:
            delivered[make.__name__] = make(self)
        return delivered[make.__name__]

    return property(get)


class Estimator(HasParameters):
    """Base of all aggregation methods."""

    #: the rule behind :attr:`labels_`, by its name in :mod:`rarevote.decide.rules`
    own_decision: str = "labels"
    #: whether :attr:`posterior_` weighs evidence; otherwise it holds shares of weighted votes
    has_posterior: ClassVar[bool] = True
    #: tables that a fit has in memory at the same time, by shape: see :mod:`rarevote.methods.memory`
    memory_model: ClassVar[Mapping[str, float]] = {"tk": 2}
    #: the result with the method's estimates about workers
    worker_table: ClassVar[str | None] = None

    # The value for methods without such a parameter.
    n_jobs: int | None = None
    dtype: str = "float64"
    _fitted: FitRecord

    @property
    def grades(self) -> Grades | None:
        """The order of the classes, if the method has one."""
        return None

    def order_figures(self) -> dict[str, Any]:
        """Figures that the method learned from the order of the classes, by name."""
        return {}

    def relative_leans(self) -> FloatArray | None:
        """How many grades above the crowd's median each worker rates, (n_workers), if the method estimates it."""
        return None

    def own_rule(self) -> Rule:
        """The rule behind :attr:`labels_`."""
        return parse_rule(self.own_decision, self.grades)

    # -- fitting -----------------------------------------------------------------------------------------------------

    def _fit(self, request: Request) -> Fit:
        """Compute the result, without changing the estimator."""
        raise NotImplementedError

    def _validate(self, crowd: CrowdFacts) -> None:
        """Check the parameters against the data; raises ParameterError."""

    def _given_per_task(self) -> str | None:
        """The parameter that has a value per task, if there is one: it is not supported on dask."""
        return None

    def fit(self, data: Any, true_labels: Any = None, *, callback: Callback | None = None, **options: Any) -> Self:
        """Aggregate the annotations.

        Args:
            data: anything that :func:`rarevote.read` takes: a pandas, polars or pyarrow frame with columns task,
                worker, label; anything with ``__arrow_c_stream__``; a tuple of three arrays; a mapping of columns;
                rows; a file, several files, a folder, a platform's export; a crowd or Annotations.
            true_labels: gold: a Series indexed by task, a mapping, a frame, or a path. By default, the gold
                in the data, if the method uses gold.
            callback: called with a :class:`~rarevote.em.loop.Progress` after each iteration.
            **options: how to read: ``columns``, ``classes``, ``abstain``, ``keep``, ``missing`` and the other fields of
                :class:`~rarevote.io.read.options.ReadOptions`.
        """
        return self.fit_request(data, true_labels, options, callback=callback)

    def fit_request(
        self, data: Any, true_labels: Any = None, options: Mapping[str, Any] | None = None, **asked: Any
    ) -> Self:
        """The common part of every :meth:`fit`: read the data, and fit them as a :class:`Request` specifies.

        Args:
            data: as for :meth:`fit`.
            true_labels: as for :meth:`fit`.
            options: how to read.
            **asked: further fields of the :class:`Request`.
        """
        options = options or {}
        truth, also = (None, []) if true_labels is None else read_truths(true_labels)
        if truth is not None:
            require_capability(self, "gold", "true_labels")
        if "checkpoint" in options:
            require_capability(self, "checkpoint", "checkpoint")
        if "features" in options or "pred_probs" in options:
            require_capability(self, "features", "features")
            raise ParameterError(
                "features and pred_probs are joined with the items by rarevote.fit: use "
                f"rarevote.fit(data, {type(self).__name__}(), features=...)"
            )
        crowd = one_problem(read_or_empty(data, **options))
        annotations, gold = crowd.annotations, np.empty(0, dtype=np.int32)
        if truth is None and self.capabilities.gold and crowd.gold:
            truth = crowd.gold
        if truth is not None:
            annotations, gold = with_gold(annotations, truth)
        if also:
            several = counted(len({task for task, _ in also}), "task has", "tasks have")
            warn_user(f"{several} several gold labels (first: {also[0][0]!r})")
            asked["more_gold"] = tuple(also)
        self._validate(annotations)
        require_memory(self, Sizes.of(annotations))
        vars(self).pop("_fitted", None)
        if annotations.n_annotations:
            try:
                fit = self._fit(Request(annotations, gold, LocalRunner(self.n_jobs), **asked))
            except NotEnoughMemoryError:
                raise
            except MemoryError as error:
                raise out_of_memory(self, Sizes.of(annotations)) from error
        else:
            fit = Fit(np.empty((0, annotations.n_classes)), n_iter=0, n_passes=0)
        self._fitted = FitRecord(annotations, crowd.source, fit, gold)
        return self

    def _about_workers(
        self, workers: NDArray[Any], classes: NDArray[Any], fit: Fit, calibration: FitCalibration | None = None
    ) -> Self:
        """A new estimator with these parameters and a fit that has workers but no tasks."""
        made = type(self)().set_params(**self.get_params())
        made._fitted = FitRecord(_without_tasks(workers, classes), Origin(), fit, calibration=calibration)
        return made

    def fit_predict(self, data: Any, *args: Any, **options: Any) -> Any:
        """``fit``, then :attr:`labels_`."""
        return self.fit(data, *args, **options).labels_

    def fit_predict_proba(self, data: Any, *args: Any, **options: Any) -> Any:
        """``fit``, then :attr:`probas_`."""
        return self.fit(data, *args, **options).probas_

    # The mixins PredictsNewTasks and WeighsVotes add these methods; here they raise an error that names methods that
    # can.

    def predict(self, data: Any, **options: Any) -> Any:
        """One label per new task; only for methods with :class:`~rarevote.methods.new_tasks.PredictsNewTasks`."""
        raise cannot(self, "predict")

    def predict_proba(self, data: Any, **options: Any) -> Any:
        """Probability of every class for new tasks; see :meth:`predict`."""
        raise cannot(self, "predict")

    def label_new(self, data: Any, **options: Any) -> Any:
        """Labels and probabilities of new tasks, as arrays; see :meth:`predict`."""
        raise cannot(self, "predict")

    def save(self, path: str | Path) -> None:
        """Write what the fit learned about the workers to a file, to label new tasks: see :func:`rarevote.load`."""
        raise cannot(self, "predict")

    def evidence(self, task: int) -> Evidence:
        """The evidence on the task with this number; see :mod:`rarevote.methods.evidence`."""
        raise cannot(self, "explain")

    def vote_model(self, votes: SomeVotes) -> VoteModel:
        """The model of how annotators vote, from which votes can be drawn again to check the fit."""
        raise cannot(self, "replicate")

    # -- results -----------------------------------------------------------------------------------------------------

    @property
    def _record(self) -> FitRecord:
        if "_fitted" not in vars(self):
            raise NotFittedError(f"{type(self).__name__} has no results yet: call fit(data) first")
        return self._fitted

    @property
    def _result(self) -> Fit:
        return self._record.fit

    def _parameter(self, name: str) -> Any:
        """A fitted array; it is empty if an empty crowd or a loaded model does not have it."""
        parameters, crowd = self._result.parameters, self._fitted.annotations
        if not crowd.n_annotations and name not in parameters:
            return np.empty((0, crowd.n_classes))
        return parameters[name]

    @property
    def annotations_(self) -> Annotations:
        """The encoded crowd that was fitted."""
        return self._record.annotations

    def on(self, annotations: Annotations) -> Self:
        """The same fit of the same votes, with other names."""
        made = copy(self)
        made._fitted = replace(self._record, annotations=annotations)
        return made

    @property
    def classes_(self) -> NDArray[Any]:
        """Names of the classes, sorted."""
        return self.annotations_.classes

    @property
    def n_iter_(self) -> int:
        """Number of iterations."""
        return self._result.n_iter

    @property
    def converged_(self) -> bool:
        """Whether the stopping rule was met."""
        return self._result.converged

    @property
    def fitted_parameters(self) -> dict[str, Any]:
        """The method's parameter arrays, by name; empty for an empty crowd."""
        return self._result.parameters

    @property
    def posterior_(self) -> FloatArray:
        """Class probabilities as an array, (n_tasks, n_classes), in the order of :attr:`annotations_`."""
        return self._result.posterior

    @property
    def feature_outcome(self) -> FeatureOutcome | None:
        """The outcome of using features of the items; None if there are none."""
        return self._result.parameters.get("features")

    @property
    def feature_model(self) -> FeatureModel | None:
        """The model that turns features of new items into probabilities; None if the fit had no features."""
        outcome = self.feature_outcome
        return self._result.parameters.get("feature_model") if outcome is None else outcome.model

    @property
    def gold_codes_(self) -> Gold:
        """Known class of every task, or -1, (n_tasks)."""
        gold = self._record.gold
        return gold if len(gold) else np.full(self.annotations_.n_tasks, -1, dtype=np.int32)

    # -- the one probability (rarevote.decide.probabilities) ---------------------------------------------------------

    def _class_prior(self) -> FloatArray | None:
        """The class prior behind the posterior, (n_classes); None if the method has none."""
        log_prior = self.fitted_parameters.get("log_prior")
        return None if log_prior is None else np.exp(log_prior)

    def _calibrator(self, vote_shares: FloatArray) -> Calibrator:
        """How probabilities follow from the posterior, given the classes' shares of the votes, (n_classes)."""
        if not self.has_posterior:
            return Smoothed(vote_shares)
        prior = self._class_prior()
        return Tempered(vote_shares, np.full(len(vote_shares), 1.0 / len(vote_shares)) if prior is None else prior)

    def _to_calibrate(self) -> FloatArray:
        """The array from which probabilities are computed, (n_tasks, n_classes)."""
        return self.posterior_

    @fitted_result
    def _report(self) -> tuple[FloatArray, FitCalibration]:
        crowd = self.annotations_
        calibrator = self._calibrator(crowd.class_votes / max(crowd.n_annotations, 1))
        p, mean = calibrated(calibrator, self._to_calibrate(), np.diff(crowd.task_ptr), self._fitted.gold)
        return p, FitCalibration(calibrator, mean)

    @property
    def reported_(self) -> FloatArray:
        """Calibrated probabilities, (n_tasks, n_classes), in the order of :attr:`annotations_`.

        Results show these probabilities; see :mod:`rarevote.decide.probabilities`. :attr:`posterior_` is what the
        authors of the method publish.
        """
        return self._report[0]  # type: ignore[no-any-return]

    @property
    def calibration_(self) -> FitCalibration | None:
        """How probabilities are reported; None for a model that was saved by version 0.2, which did not store it."""
        if self.annotations_.n_annotations:
            return self._report[1]  # type: ignore[no-any-return]
        return self._fitted.calibration

    @property
    def chooser(self) -> Chooser | None:
        """How labels follow from probabilities, on every engine; None for the most probable class."""
        return None

    def label_codes(self) -> IntArray:
        """Class number of every task; ties go to the first class in sorted order."""
        return self._choose(self.posterior_, self.annotations_)

    def _choose(self, posterior: FloatArray, annotations: Annotations) -> IntArray:
        """Class numbers from the posterior of some tasks."""
        chooser = self.chooser
        return first_of_best(posterior) if chooser is None else chooser.codes(posterior, annotations.votes)

    @property
    def labels_table(self) -> Table:
        """:attr:`labels_` before the conversion to the type of the data."""
        crowd = self.annotations_
        labels = {"agg_label": crowd.classes[self.label_codes()]}
        return Table({"task": crowd.task_names()}, labels, series=True, dtypes=self._fitted.source.dtypes)

    @fitted_result
    def labels_(self) -> Any:
        """One label per task."""
        return self._fitted.source.deliver(self.labels_table)

    @property
    def published(self) -> FloatArray:
        """The array behind :attr:`probas_`: the posterior, as the method's authors publish it."""
        return self.posterior_

    @fitted_result
    def probas_(self) -> Any:
        """Probability of every class per task: a frame task x class."""
        return self._task_by_class(self.published)

    @property
    def loss_history_(self) -> list[float]:
        """The objective after each iteration; larger is better (crowd-kit's name for it)."""
        return list(self._result.history)

    @property
    def status_(self) -> str:
        """How the fit ended, as text."""
        return self._result.status

    # -- layout of results -------------------------------------------------------------------------------------------

    def _task_by_class(self, values: FloatArray) -> Any:
        return self._by_class({"task": self.annotations_.task_names()}, values, "label")

    def _worker_by_class(self, values: FloatArray) -> Any:
        return self._by_class({"worker": self.annotations_.workers}, values, "label")

    def _worker_label_by_class(self, values: FloatArray) -> Any:
        """A frame (worker, label) x class from an array with these axes; an empty crowd gives no rows."""
        crowd = self.annotations_
        n_workers = len(values) if values.ndim == 3 else 0
        names = np.repeat(crowd.workers[:n_workers], crowd.n_classes), np.tile(crowd.classes, n_workers)
        rows = values.reshape(-1, crowd.n_classes)
        return self._by_class(dict(zip(("worker", "label"), names, strict=True)), rows)

    def _by_class(self, index: dict[str, NDArray[Any]], values: FloatArray, columns_name: str | None = None) -> Any:
        """A frame with a column per class, in the type of the data."""
        columns = {name: values[:, k] for k, name in enumerate(self.classes_.tolist())}
        source = self._fitted.source
        return source.deliver(Table(index, columns, columns_name=columns_name, dtypes=source.dtypes))

    def _series(self, role: str, values: FloatArray, name: str, shown: NDArray[np.bool_] | None = None) -> Any:
        crowd, source = self.annotations_, self._fitted.source
        names = crowd.task_names() if role == "task" else crowd.workers if role == "worker" else crowd.classes
        if not len(values):
            values = np.full(len(names), np.nan)  # classes can be known although there are no votes
        if shown is not None:
            names, values = names[shown], values[shown]
        return source.deliver(Table({role: names}, {name: values}, series=True, dtypes=source.dtypes))

    def __sklearn_tags__(self) -> Any:
        # Only scikit-learn calls this, so it is already loaded; this module never imports it.
        utils = sys.modules["sklearn.utils"]
        return utils.Tags(
            estimator_type=None,
            target_tags=utils.TargetTags(required=False),
            transformer_tags=None,
            regressor_tags=None,
            classifier_tags=None,
        )

    def __sklearn_is_fitted__(self) -> bool:
        return "_fitted" in vars(self)

    def _repr_html_(self) -> str:
        facts: dict[str, Any] = {name: repr(value) for name, value in self.get_params().items()}
        if not self.__sklearn_is_fitted__():
            return facts_html(f"{type(self).__name__}, not fitted", facts)
        crowd = self.annotations_
        facts |= {"tasks": crowd.n_tasks, "workers": crowd.n_workers, "votes": crowd.n_annotations}
        return facts_html(f"{type(self).__name__}, {self.status_} in {self.n_iter_} iterations", facts)
