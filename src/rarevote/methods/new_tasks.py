"""New tasks of known workers: what a fit learned about people, used on tasks that it has not seen.

A method that can do so mixes in :class:`PredictsNewTasks` and says how the votes on new tasks become a posterior;
reading the data, matching names and giving results back in kind is done here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations, smallest_unsigned
from rarevote.crowd.names import as_name_array, sort_labels
from rarevote.crowd.numerics import FloatArray
from rarevote.errors import InputError, shown
from rarevote.io.model_files import SavedModel, write_model
from rarevote.io.read.crowd import read
from rarevote.io.read.frames import Origin
from rarevote.io.tables import Table
from rarevote.methods.base import Estimator

_SUM_TOLERANCE = 1e-3  # single precision and approximate exponentials are far within it


# With the workers held, tasks settle on their own and quickly: this is close to rounding.
PREDICT_CHANGE = 1e-9


def posterior_from_log_scores(scores: FloatArray) -> FloatArray:
    """Rows ``exp(scores)`` normalised to sum to one, (n_tasks, n_classes)."""
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class NewTasks:
    """New tasks as a fitted method sees them.

    Attributes:
        annotations: their votes, numbered by the classes of the fit.
        source: what the data came as.
        posterior: probability of every class, (n_tasks, n_classes).
        codes: class number of every task, (n_tasks).
        n_unseen_workers: workers that the fit had not seen.
    """

    annotations: Annotations
    source: Origin
    posterior: FloatArray
    codes: NDArray[np.int64]
    n_unseen_workers: int


class PredictsNewTasks(Estimator):
    """Adds ``predict`` and ``predict_proba`` to a method whose workers are known after the fit."""

    #: whether the method has a value for workers that the fit did not see
    takes_unseen_workers: ClassVar[bool] = False
    #: whether a label that the fit did not see is a class like any other: so where a vote has the same weight for all
    takes_new_labels: ClassVar[bool] = False
    #: fitted arrays that new tasks need, with their axes: w for workers, k for classes, c for classes or 1; behind a
    #: colon what they hold, where that is not just any number: p for probabilities, share for those that sum to one,
    #: log for logarithms of probabilities, n for counts
    remembers: ClassVar[Mapping[str, str]] = {}

    def save(self, path: str | Path) -> None:
        """Write what the fit learned about the workers to a file; :func:`rarevote.load` reads it.

        The file holds method, parameters, classes, names of the workers and arrays about them, but no task and no
        vote. Nothing is pickled.

        Raises:
            InputError: the file cannot be written, or ids are neither text nor numbers.
            NotFittedError: there is nothing to save yet.
        """
        crowd = self.annotations_
        if not self._result.parameters:
            raise InputError("a fit without any vote has learned nothing that could be saved")
        write_model(
            path,
            SavedModel(
                self.method_name,
                self.get_params(),
                crowd.classes,
                crowd.workers,
                {name: np.asarray(self._result.parameters[name]) for name in self.remembers},
                {"n_iter": self.n_iter_, "converged": bool(self.converged_), "status": self.status_},
            ),
        )

    def _posterior_of(self, annotations: Annotations, worker: NDArray[np.int64]) -> FloatArray:
        """Posterior of new tasks, (n_tasks, n_classes).

        Args:
            annotations: the new votes; classes are those of the fit (and new ones where the method takes them),
                workers are numbered on their own.
            worker: the fit's number of each of these workers, or -1.
        """
        raise NotImplementedError

    def predict_proba(self, data: Any, **options: Any) -> Any:
        """Probability of every class for new tasks, with the workers as they were fitted.

        Votes alone decide: gold that the fit was given is not remembered.

        Args:
            data: annotations, in any form that :meth:`fit` takes.
            **options: how to read them, as in :meth:`fit`.

        Returns:
            A frame task x class, of the kind that ``data`` is.

        Raises:
            InputError: a label or a worker that the fit has not seen, unless the method has a use for them.
        """
        found = self.label_new(data, **options)
        crowd, source = found.annotations, found.source
        values = {name: found.posterior[:, k] for k, name in enumerate(crowd.classes.tolist())}
        return source.deliver(Table({"task": crowd.task_names()}, values, columns_name="label", dtypes=source.dtypes))

    def predict(self, data: Any, **options: Any) -> Any:
        """One label per new task; arguments as for :meth:`predict_proba`."""
        found = self.label_new(data, **options)
        crowd, source = found.annotations, found.source
        labels = crowd.classes[found.codes]
        names = {"task": crowd.task_names()}
        return source.deliver(Table(names, {"agg_label": labels}, series=True, dtypes=source.dtypes))

    def label_new(self, data: Any, **options: Any) -> NewTasks:
        """New tasks with labels, probabilities and what they came from, in arrays; arguments as for :meth:`predict`."""
        fitted = self.annotations_
        found = read(data, **options)
        crowd, source = found.annotations, found.source
        if not crowd.n_annotations:
            crowd = replace(crowd, classes=fitted.classes)
            return NewTasks(crowd, source, np.empty((0, fitted.n_classes)), np.empty(0, dtype=np.int64), 0)
        classes = fitted.classes
        unseen = [name for name in crowd.classes.tolist() if name not in set(classes.tolist())]
        if unseen and not self.takes_new_labels:
            raise InputError(
                f"label {unseen[0]!r} was not among the classes of the fit ({', '.join(map(str, classes))}): "
                "fit again with these data, or name it in abstain if it is no vote"
            )
        if unseen:
            classes = as_name_array(sort_labels([*classes.tolist(), *unseen]))
        class_number = _numbers(crowd.classes, classes)
        worker = _numbers(crowd.workers, fitted.workers)
        if not self.takes_unseen_workers and (worker < 0).any():
            first = crowd.workers.tolist()[int(worker.argmin())]
            raise InputError(
                f"{int((worker < 0).sum()):,} workers were not in the fit (first: {first!r}): "
                f"{type(self).__name__} knows nothing about them; leave their votes out or fit again"
            )
        label = class_number[crowd.label].astype(smallest_unsigned(len(classes)))
        crowd = replace(crowd, label=label, classes=classes)
        posterior = self._posterior_of(crowd, worker)
        # Written so that NaN fails; a model from a file may hold numbers that no fit gives.
        wrong = ~(np.abs(posterior.sum(axis=1) - 1.0) < _SUM_TOLERANCE)
        if wrong.any():
            first = crowd.task_names()[int(wrong.argmax())]
            raise InputError(
                f"the model gives task {shown(first)} no probabilities: its file is damaged or was altered; fit again"
            )
        return NewTasks(crowd, source, posterior, self._choose(posterior, crowd), int((worker < 0).sum()))


def _numbers(names: NDArray[Any], known: NDArray[Any]) -> NDArray[np.int64]:
    """Position of each name among the known ones, or -1."""
    position = {name: number for number, name in enumerate(known.tolist())}
    return np.array([position.get(name, -1) for name in names.tolist()], dtype=np.int64)
