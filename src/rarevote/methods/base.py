"""The face that every method shows: ``fit``, ``fit_predict``, ``labels_``, ``probas_``, parameters.

The conventions are those of scikit-learn (parameters stored as given, fitted attributes end in an underscore,
``get_params``, ``set_params``, ``clone``) and of crowd-kit (names and layouts of the results, ``n_iter`` first, gold as
``true_labels``). A method subclasses :class:`Estimator`, or :class:`EMEstimator` if it is fitted by the EM loop, and
says how to compute a :class:`Fit` from :class:`~rarevote.crowd.annotations.Annotations`; everything else is here.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations, Keep, Missing
from rarevote.crowd.gold import with_gold
from rarevote.crowd.numerics import first_of_best
from rarevote.em.checkpoint import Checkpoint, digest_of, identity_of
from rarevote.em.local import LocalEngine
from rarevote.em.loop import Callback, Model, Outcome, Status, StoppingRule, run_em
from rarevote.errors import (
    ConvergenceWarning,
    NotFittedError,
    ParameterError,
    warn_user,
)
from rarevote.io.read.frames import Origin, read_annotations, read_truth
from rarevote.io.tables import Table

FloatArray = NDArray[Any]


@dataclass(frozen=True)
class Fit:
    """What a method computed, in arrays.

    Attributes:
        posterior: (n_tasks, n_classes), rows sum to one.
        parameters: arrays of the method's own, by name.
        history: objective per iteration, larger is better.
        n_iter: iterations done.
        n_passes: passes over the data.
        converged: whether the stopping rule was met.
        status: how it ended, in words.
    """

    posterior: FloatArray
    parameters: dict[str, Any] = field(default_factory=dict)
    history: list[float] = field(default_factory=list)
    n_iter: int = 1
    n_passes: int = 1
    converged: bool = True
    status: str = "converged"

    @classmethod
    def of(cls, outcome: Outcome[Any], posterior: FloatArray, parameters: dict[str, Any]) -> Fit:
        """The result of a run of the EM loop."""
        return cls(
            posterior,
            parameters,
            outcome.history,
            outcome.n_iter,
            outcome.n_passes,
            outcome.status is not Status.LIMIT,
            outcome.status.value,
        )


def fitted_only(name: str) -> NotFittedError:
    """The error for a result that was asked for before ``fit``."""
    return NotFittedError(f"{name} has no results yet: call fit(data) first")


class Estimator:
    """Base of all aggregation methods."""

    #: name on the command line
    method_name: ClassVar[str] = ""
    #: whether the method can use known labels in the fit
    uses_gold: ClassVar[bool] = False
    #: the rule behind :attr:`labels_`, by its name in :mod:`rarevote.meaning.rules`
    own_decision: str = "argmax"

    # -- fitting -----------------------------------------------------------------------------------------------------

    def _fit(self, annotations: Annotations, gold: NDArray[np.int32], callback: Callback | None) -> Fit:
        """Compute the result; ``gold`` has the known class per task or -1, or is of size 0."""
        raise NotImplementedError

    def _validate(self, annotations: Annotations) -> None:
        """Check the parameters against the data; raises ParameterError."""

    def fit(
        self,
        data: Any,
        true_labels: Any = None,
        *,
        columns: Mapping[str, str] | None = None,
        classes: Sequence[Any] | None = None,
        abstain: Sequence[Any] = (),
        keep: Keep = "all",
        missing: Missing = "error",
        callback: Callback | None = None,
    ) -> Self:
        """Aggregate the annotations.

        Args:
            data: a pandas, polars or pyarrow frame with columns task, worker, label; anything with
                ``__arrow_c_stream__``; a tuple of three arrays; a mapping of columns; a path; or Annotations.
            true_labels: known labels (gold): a Series indexed by task, a mapping, a frame, or a path.
            columns: which column is which, such as ``{"task": "image"}``.
            classes: classes that exist whether or not anybody voted for them.
            abstain: answers that are no votes, such as "not sure".
            keep: which of repeated (task, worker) pairs count: "all", "first", "last" or "error".
            missing: "error" or "drop", for rows with a missing id or label.
            callback: called with a :class:`~rarevote.em.loop.Progress` after each iteration.
        """
        truth = None if true_labels is None else read_truth(true_labels)
        if truth is not None and not self.uses_gold:
            raise ParameterError(f"{type(self).__name__} cannot use true_labels")
        annotations, source = read_annotations(
            data, columns=columns, classes=classes, abstain=abstain, keep=keep, missing=missing
        )
        gold = np.empty(0, dtype=np.int32)
        if truth is not None:
            annotations, gold = with_gold(annotations, truth)
        return self._fit_annotations(annotations, gold, source, callback)

    def _fit_annotations(
        self,
        annotations: Annotations,
        gold: NDArray[np.int32],
        source: Origin,
        callback: Callback | None,
    ) -> Self:
        self._validate(annotations)
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("__")]:
            delattr(self, name)
        if annotations.n_annotations:
            fit = self._fit(annotations, gold, callback)
        else:
            fit = self._fit_nothing(annotations)
        self._annotations_ = annotations
        self._source_ = source
        self._fit_ = fit
        self.classes_ = annotations.classes
        self.n_iter_ = fit.n_iter
        self.converged_ = fit.converged
        return self

    def _fit_nothing(self, annotations: Annotations) -> Fit:
        """The result for a crowd without any vote: no tasks, no iterations."""
        return Fit(np.empty((0, annotations.n_classes)), n_iter=0, n_passes=0)

    def fit_predict(self, data: Any, *args: Any, **options: Any) -> Any:
        """``fit``, then :attr:`labels_`."""
        return self.fit(data, *args, **options).labels_

    def fit_predict_proba(self, data: Any, *args: Any, **options: Any) -> Any:
        """``fit``, then :attr:`probas_`."""
        return self.fit(data, *args, **options).probas_

    def save(self, path: str | Path) -> None:
        """Write what the fit learned about the workers to a file, for new tasks: see :func:`rarevote.load`.

        Raises:
            ParameterError: the method cannot label new tasks.
        """
        del path
        raise ParameterError(
            f"{type(self).__name__} cannot label new tasks, so there is no model to save; CCRasch, MACE, Wawa and "
            "others can"
        )

    # -- results -----------------------------------------------------------------------------------------------------

    @property
    def annotations_(self) -> Annotations:
        """The encoded crowd that was fitted."""
        self._check_fitted()
        return self._annotations_

    def _check_fitted(self) -> None:
        if not hasattr(self, "_fit_"):
            raise fitted_only(type(self).__name__)

    def _parameter(self, name: str) -> Any:
        """A fitted array; one that an empty crowd or a loaded model does not have is an empty array."""
        self._check_fitted()
        if not self._annotations_.n_annotations and name not in self._fit_.parameters:
            return np.empty((0, self._annotations_.n_classes))
        return self._fit_.parameters[name]

    @property
    def fitted_parameters(self) -> dict[str, Any]:
        """Arrays of the method's own, by name; empty for an empty crowd."""
        self._check_fitted()
        return self._fit_.parameters

    @property
    def posterior_(self) -> FloatArray:
        """Class probabilities as an array, (n_tasks, n_classes), in the order of :attr:`annotations_`."""
        self._check_fitted()
        return self._fit_.posterior

    def label_codes(self) -> NDArray[np.int64]:
        """Class number of every task; ties go to the first class in sorted order."""
        return self._choose(self.posterior_, self.annotations_)

    def _choose(self, posterior: FloatArray, annotations: Annotations) -> NDArray[np.int64]:
        """Class numbers from the posterior of some tasks."""
        del annotations
        return first_of_best(posterior)

    @property
    def labels_table(self) -> Table:
        """:attr:`labels_` before it has a kind."""
        crowd = self.annotations_
        return Table(
            {"task": crowd.task_names()},
            {"agg_label": crowd.classes[self.label_codes()]},
            series=True,
            dtypes=self._source_.dtypes,
        )

    @cached_property
    def _labels_in_kind_(self) -> Any:
        return self._source_.deliver(self.labels_table)

    @property
    def labels_(self) -> Any:
        """One label per task."""
        self._check_fitted()
        return self._labels_in_kind_

    @cached_property
    def _probas_in_kind_(self) -> Any:
        return self._task_by_class(self.posterior_)

    @property
    def probas_(self) -> Any:
        """Probability of every class per task: a frame task x class."""
        self._check_fitted()
        return self._probas_in_kind_

    @property
    def loss_history_(self) -> list[float]:
        """The objective after each iteration; larger is better (crowd-kit's name for it)."""
        self._check_fitted()
        return list(self._fit_.history)

    @property
    def status_(self) -> str:
        """How the fit ended, in words."""
        self._check_fitted()
        return self._fit_.status

    # -- shapes of results -------------------------------------------------------------------------------------------

    def _task_by_class(self, values: FloatArray) -> Any:
        crowd = self.annotations_
        return self._source_.deliver(self._by_class("task", crowd.task_names(), values))

    def _worker_by_class(self, values: FloatArray) -> Any:
        crowd = self.annotations_
        return self._source_.deliver(self._by_class("worker", crowd.workers, values))

    def _by_class(self, role: str, names: NDArray[Any], values: FloatArray) -> Table:
        columns = {name: values[:, k] for k, name in enumerate(self.classes_.tolist())}
        return Table({role: names}, columns, columns_name="label", dtypes=self._source_.dtypes)

    def _series(self, role: str, values: FloatArray, name: str) -> Any:
        crowd = self.annotations_
        names = crowd.task_names() if role == "task" else crowd.workers if role == "worker" else crowd.classes
        if not crowd.n_annotations:
            values = np.full(len(names), np.nan)  # classes may be known although nobody voted
        return self._source_.deliver(Table({role: names}, {name: values}, series=True, dtypes=self._source_.dtypes))

    # -- parameters --------------------------------------------------------------------------------------------------

    @classmethod
    def parameter_defaults(cls) -> dict[str, Any]:
        """Names of the constructor's parameters and their defaults."""
        if cls.__init__ is object.__init__:
            return {}
        signature = inspect.signature(cls.__init__)
        return {name: entry.default for name, entry in signature.parameters.items() if name != "self"}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name (scikit-learn)."""
        del deep
        return {name: getattr(self, name) for name in self.parameter_defaults()}

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name (scikit-learn)."""
        known = self.parameter_defaults()
        for name, value in params.items():
            if name not in known:
                raise ParameterError(
                    f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(known) or 'none'}"
                )
            setattr(self, name, value)
        return self

    def __sklearn_tags__(self) -> Any:
        # Only scikit-learn asks, so it is loaded already; it is never imported from here.
        utils = sys.modules["sklearn.utils"]
        return utils.Tags(
            estimator_type=None,
            target_tags=utils.TargetTags(required=False),
            transformer_tags=None,
            regressor_tags=None,
            classifier_tags=None,
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_fit_")

    def __repr__(self) -> str:
        changed = {
            name: value
            for name, value in self.get_params().items()
            if not _same(value, self.parameter_defaults()[name])
        }
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in changed.items())})"


def _same(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and bool(np.all(value == default)))


class EMEstimator(Estimator):
    """Base of the methods that the EM loop fits."""

    uses_gold: ClassVar[bool] = True

    n_iter: int
    n_jobs: int | None

    def fit(
        self,
        data: Any,
        true_labels: Any = None,
        *,
        checkpoint: str | Path | None = None,
        checkpoint_every: int = 10,
        **options: Any,
    ) -> Self:
        """Aggregate the annotations.

        Args:
            data: as in :meth:`Estimator.fit`.
            true_labels: as in :meth:`Estimator.fit`.
            checkpoint: a folder that keeps the fit now and then; the same call goes on from there after a crash.
            checkpoint_every: iterations between two checkpoints.
            **options: as in :meth:`Estimator.fit`.
        """
        self._kept_in = None if checkpoint is None else (checkpoint, checkpoint_every)
        try:
            return super().fit(data, true_labels, **options)
        finally:
            del self._kept_in

    def _em(
        self,
        model: Model[Any, Any, Any],
        annotations: Annotations,
        gold: NDArray[np.int32],
        rule: StoppingRule,
        callback: Callback | None,
        **options: Any,
    ) -> tuple[Any, FloatArray, tuple[FloatArray, ...]]:
        """Run the loop; returns its outcome, the posterior, and the local parameters behind it."""
        if not (isinstance(rule.n_iter, (int, np.integer)) and rule.n_iter >= 1):
            raise ParameterError(f"n_iter must be a whole number of at least 1, got {rule.n_iter!r}")
        checkpoint = None
        if getattr(self, "_kept_in", None) is not None:
            folder, every = self._kept_in  # type: ignore[misc]
            identity = identity_of(self.method_name, self.get_params(), digest_of(annotations, gold))
            checkpoint = options["checkpoint"] = Checkpoint(folder, every, identity)
        with LocalEngine(model, annotations, gold, self.n_jobs) as engine:
            outcome = run_em(model, engine, model.start(annotations), rule, callback=callback, **options)
            posterior, local = engine.posterior(), engine.local_parameters()
        if checkpoint is not None:
            checkpoint.clear()
        return outcome, posterior, local

    def _warn_unless_converged(self, fit: Fit, tol: float) -> None:
        if not fit.converged and tol > 0:
            warn_user(
                f"{type(self).__name__} {fit.status} ({fit.n_iter} iterations); raise n_iter for a settled result",
                ConvergenceWarning,
            )
