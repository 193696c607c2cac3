"""New tasks of known workers: what a fit learned about people, used on tasks that it has not seen.

A method that can do so mixes in :class:`PredictsNewTasks` and says how the votes on new tasks become a posterior;
reading the data, matching names and giving results back in kind is done here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rarevote.annotations import Annotations, Keep, Missing, as_name_array, smallest_unsigned, sort_labels
from rarevote.errors import InputError
from rarevote.estimator import Estimator
from rarevote.io.frames import Source, read_annotations
from rarevote.io.tables import Table

FloatArray = NDArray[np.float64]


def posterior_from_log_scores(scores: FloatArray) -> FloatArray:
    """Rows ``exp(scores)`` normalised to sum to one, (n_tasks, n_classes)."""
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


class PredictsNewTasks(Estimator):
    """Adds ``predict`` and ``predict_proba`` to a method whose workers are known after the fit."""

    #: whether the method has a value for workers that the fit did not see
    takes_strangers: ClassVar[bool] = False
    #: whether a label that the fit did not see is a class like any other: so where a vote has the same weight for all
    takes_new_labels: ClassVar[bool] = False

    def _posterior_of(self, annotations: Annotations, worker: NDArray[np.int64]) -> FloatArray:
        """Posterior of new tasks, (n_tasks, n_classes).

        Args:
            annotations: the new votes; classes are those of the fit (and new ones where the method takes them),
                workers are numbered on their own.
            worker: the fit's number of each of these workers, or -1.
        """
        raise NotImplementedError

    def predict_proba(
        self,
        data: Any,
        *,
        columns: Mapping[str, str] | None = None,
        abstain: Sequence[Any] = (),
        keep: Keep = "all",
        missing: Missing = "error",
    ) -> Any:
        """Probability of every class for new tasks, with the workers as they were fitted.

        Votes alone decide: known labels that the fit was given are not remembered.

        Args:
            data: annotations, in any form that :meth:`fit` takes.
            columns: as in :meth:`fit`.
            abstain: as in :meth:`fit`.
            keep: as in :meth:`fit`.
            missing: as in :meth:`fit`.

        Returns:
            A frame task x class, of the kind that ``data`` is.

        Raises:
            InputError: a label or a worker that the fit has not seen, unless the method has a use for them.
        """
        crowd, source, posterior = self._predict(data, columns=columns, abstain=abstain, keep=keep, missing=missing)
        values = {name: posterior[:, k] for k, name in enumerate(crowd.classes.tolist())}
        return source.deliver(Table({"task": crowd.task_names()}, values, columns_name="label", dtypes=source.dtypes))

    def predict(self, data: Any, **options: Any) -> Any:
        """One label per new task; arguments as for :meth:`predict_proba`."""
        crowd, source, posterior = self._predict(data, **options)
        labels = crowd.classes[self._choose(posterior, crowd)]
        names = {"task": crowd.task_names()}
        return source.deliver(Table(names, {"agg_label": labels}, series=True, dtypes=source.dtypes))

    def _predict(self, data: Any, **options: Any) -> tuple[Annotations, Source, FloatArray]:
        fitted = self.annotations_
        crowd, source = read_annotations(data, **options)
        if not crowd.n_annotations:
            return replace(crowd, classes=fitted.classes), source, np.empty((0, fitted.n_classes))
        classes = fitted.classes
        strangers = [name for name in crowd.classes.tolist() if name not in set(classes.tolist())]
        if strangers and not self.takes_new_labels:
            raise InputError(
                f"label {strangers[0]!r} was not among the classes of the fit ({', '.join(map(str, classes))}): "
                "fit again with these data, or name it in abstain if it is no vote"
            )
        if strangers:
            classes = as_name_array(sort_labels([*classes.tolist(), *strangers]))
        class_number = _numbers(crowd.classes, classes)
        worker = _numbers(crowd.workers, fitted.workers)
        if not self.takes_strangers and (worker < 0).any():
            stranger = crowd.workers.tolist()[int(worker.argmin())]
            raise InputError(
                f"{int((worker < 0).sum()):,} workers were not in the fit (first: {stranger!r}): "
                f"{type(self).__name__} knows nothing about them; leave their votes out or fit again"
            )
        label = class_number[crowd.label].astype(smallest_unsigned(len(classes)))
        crowd = replace(crowd, label=label, classes=classes)
        return crowd, source, self._posterior_of(crowd, worker)


def _numbers(names: NDArray[Any], known: NDArray[Any]) -> NDArray[np.int64]:
    """Position of each name among the known ones, or -1."""
    position = {name: number for number, name in enumerate(known.tolist())}
    return np.array([position.get(name, -1) for name in names.tolist()], dtype=np.int64)
