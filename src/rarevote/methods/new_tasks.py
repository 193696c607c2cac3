"""Label new tasks of known workers with what a fit learned about these workers.

A method that can do so mixes in :class:`PredictsNewTasks` and says how the votes on new tasks become a posterior;
this module reads the data, matches names and returns results in the type of the data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import UnionType
from typing import Any, ClassVar, Literal, Union, Unpack, cast, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations, smallest_unsigned
from rarevote.crowd.arguments import named_arguments
from rarevote.crowd.encoding import joined_names
from rarevote.crowd.names import in_kind, positions_of
from rarevote.crowd.numerics import FloatArray, IntArray
from rarevote.crowd.words import counted
from rarevote.decide.columns import result_rows
from rarevote.decide.decider import Decider
from rarevote.decide.decision import confidence_of
from rarevote.decide.probabilities import FitCalibration, Smoothed, Tempered
from rarevote.decide.rules import ItemBatch
from rarevote.errors import InputError, ParameterError, shown, warn_user
from rarevote.features.model import FeatureModel
from rarevote.io.model_files import SavedModel, damaged, read_model, write_model
from rarevote.io.read.crowd import read, read_or_empty
from rarevote.io.read.frames import Origin
from rarevote.io.read.labels import one_problem
from rarevote.io.read.options import ReadArguments, ReadOptions
from rarevote.io.tables import Table
from rarevote.methods.base import Estimator, Fit
from rarevote.methods.registry import METHODS, methods_that

_SUM_TOLERANCE = 1e-3  # single precision and approximate exponentials stay far below it

# How probabilities are reported is stored in the file beside the arrays of the method; version 0.2 did not store it.
_OF_CALIBRATION = {"vote_shares": "k:share", "mean_p": "k:share"}


def posterior_from_log_scores(scores: FloatArray) -> FloatArray:
    """Rows ``exp(scores)`` normalised to sum to one, (n_tasks, n_classes)."""
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def posterior_from_votes(annotations: Annotations, of_votes: FloatArray, log_prior: FloatArray) -> FloatArray:
    """``q_k ∝ pi_k prod_j P(vote j | k)``, from the log probability of every vote under each class, (n_votes, K)."""
    task, n_tasks = annotations.task_of_annotation(), annotations.n_tasks
    by_class = [np.bincount(task, of_votes[:, k], minlength=n_tasks) for k in range(annotations.n_classes)]
    return posterior_from_log_scores(log_prior + np.column_stack(by_class))


@dataclass(frozen=True, eq=False)
class NewTasks:
    """New tasks with their results.

    Attributes:
        annotations: their votes, numbered by the classes of the fit.
        source: the original form of the data.
        posterior: probability of every class, (n_tasks, n_classes).
        codes: class number of every task, (n_tasks).
        n_unseen_workers: workers that the fit had not seen.
    """

    annotations: Annotations
    source: Origin
    posterior: FloatArray
    codes: IntArray
    n_unseen_workers: int


class PredictsNewTasks(Estimator):
    """Adds ``predict`` and ``predict_proba`` to a method that learns about workers."""

    #: whether the method has a value for workers that the fit did not see
    takes_unseen_workers: ClassVar[bool] = False
    #: whether a label that the fit did not see can be a class: True if a vote has the same weight for all classes
    takes_new_labels: ClassVar[bool] = False
    #: fitted arrays that new tasks need, with their axes: w for workers, k for classes, c for classes or 1; behind a
    #: colon what they hold, if not just any number: p for probabilities, share for those that sum to one,
    #: log for logarithms of probabilities, n for counts
    saved_arrays: ClassVar[Mapping[str, str]] = {}

    def save(self, path: str | Path) -> None:
        """Write what the fit learned about the workers to a file; :func:`rarevote.load` reads it.

        The file holds method, parameters, classes, names of the workers and arrays about them, but no task and no
        vote. Nothing is pickled.

        Raises:
            InputError: the file cannot be written, or ids are neither text nor numbers.
            NotFittedError: the method is not fitted yet.
        """
        crowd = self.annotations_
        if not self._result.parameters:
            raise InputError("a fit without votes has nothing to save")
        arrays: dict[str, NDArray[Any]] = {}
        notes: dict[str, Any] = {}
        if self.feature_model is not None:
            arrays, of_features = self.feature_model.saved()
            notes = {"features": of_features}
        write_model(
            path,
            SavedModel(
                self.method_name,
                self.get_params(),
                crowd.classes,
                crowd.workers,
                {name: np.asarray(self._result.parameters[name]) for name in self.saved_arrays}
                | _kept(self.calibration_)
                | arrays,
                {"n_iter": self.n_iter_, "converged": bool(self.converged_), "status": self.status_, **notes},
            ),
        )

    def _posterior_of(self, annotations: Annotations, worker: IntArray) -> FloatArray:
        """Posterior of new tasks, (n_tasks, n_classes).

        Args:
            annotations: the new votes; classes are those of the fit (and new ones if the method supports them),
                workers have their own numbers.
            worker: the fit's number of each of these workers, or -1.
        """
        raise NotImplementedError

    def predict_proba(self, data: Any, **options: Any) -> Any:
        """Probability of every class for new tasks, with the workers as they were fitted.

        Only votes count: the gold of the fit is not stored.

        Args:
            data: annotations, in any form that :meth:`fit` takes.
            **options: how to read them, as in :meth:`fit`.

        Returns:
            A frame task x class, of the same type as ``data``.

        Raises:
            InputError: a label or a worker that the fit has not seen, unless the method supports them.
        """
        found = self.label_new(data, **options)
        crowd, source = found.annotations, found.source
        values = {name: found.posterior[:, k] for k, name in enumerate(crowd.classes.tolist())}
        return source.deliver(Table({"task": crowd.task_names()}, values, columns_name="label", dtypes=source.dtypes))

    def predict(self, data: Any, **options: Any) -> Any:
        """One label per new task; arguments are as for :meth:`predict_proba`."""
        found = self.label_new(data, **options)
        crowd, source = found.annotations, found.source
        labels = crowd.classes[found.codes]
        names = {"task": crowd.task_names()}
        return source.deliver(Table(names, {"agg_label": labels}, series=True, dtypes=source.dtypes))

    def label_new(self, data: Any, **options: Any) -> NewTasks:
        """Labels, probabilities and votes of new tasks, as arrays; arguments are as for :meth:`predict`."""
        fitted = self.annotations_
        found = one_problem(read_or_empty(data, **options))
        crowd, source = found.annotations, found.source
        if not crowd.n_annotations:
            crowd = replace(crowd, classes=fitted.classes)
            return NewTasks(crowd, source, np.empty((0, fitted.n_classes)), np.empty(0, dtype=np.int64), 0)
        classes = fitted.classes
        # A text file has "7" where Parquet or JSON has 7.
        answers, workers = (
            in_kind(new.tolist(), known) for new, known in ((crowd.classes, classes), (crowd.workers, fitted.workers))
        )
        unseen = [name for name, k in zip(answers, positions_of(classes, answers).tolist(), strict=True) if k < 0]
        if unseen and not self.takes_new_labels:
            raise InputError(
                f"label {unseen[0]!r} was not among the classes of the fit ({', '.join(map(str, classes))}): "
                "fit again with these data, or name it in abstain if it is not a vote"
            )
        if unseen:
            classes = joined_names(classes, unseen, "label")
        class_number = positions_of(classes, answers)
        worker = positions_of(fitted.workers, workers)
        if not self.takes_unseen_workers and (worker < 0).any():
            first = crowd.workers.tolist()[int(worker.argmin())]
            raise InputError(
                f"{counted((worker < 0).sum(), 'worker was', 'workers were')} not in the fit (first: {first!r}): "
                f"{type(self).__name__} knows nothing about them; leave their votes out or fit again"
            )
        label = class_number[crowd.label].astype(smallest_unsigned(len(classes)))
        crowd = replace(crowd, label=label, classes=classes)
        posterior = self._posterior_of(crowd, worker)
        # Written so that NaN fails; a model from a file can hold numbers that no fit produces.
        wrong = ~(np.abs(posterior.sum(axis=1) - 1.0) < _SUM_TOLERANCE)
        if wrong.any():
            first = crowd.task_names()[int(wrong.argmax())]
            raise InputError(
                f"the model gives task {shown(first)} no probabilities: its file is damaged or was altered; fit again"
            )
        return NewTasks(crowd, source, posterior, self._choose(posterior, crowd), int((worker < 0).sum()))


# The contents of an array, and their bounds; rounding can move a logarithm slightly above 0.
_RANGES = {
    "": (-np.inf, np.inf),
    "p": (0.0, 1.0 + 1e-9),
    "share": (0.0, 1.0 + 1e-9),
    "log": (-np.inf, 1e-9),
    "n": (0.0, np.inf),
}


def load(path: str | Path) -> PredictsNewTasks:
    """The fitted method that ``model.save(path)`` or ``rarevote aggregate --model-out`` wrote.

    It labels new tasks exactly as the saved one did, to the last bit. It has the workers and the classes, but none of
    the tasks that it was fitted on: ``labels_`` and ``probas_`` are empty.

    Raises:
        InputError: the file is absent, damaged, not a model, or of a newer version.

    Example:
        >>> from rarevote import CCRasch
        >>> import rarevote, tempfile, os
        >>> votes = ([0, 0, 0, 1, 1, 1], ["ann", "bob", "cy"] * 2, ["yes", "yes", "no", "no", "no", "no"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     CCRasch().fit(votes).save(os.path.join(folder, "model"))
        ...     model = rarevote.load(os.path.join(folder, "model"))
        >>> model.predict((["new", "new"], ["ann", "bob"], ["no", "no"])).to_dict()
        {'new': 'no'}
    """
    saved = read_model(path)
    if saved.method not in methods_that("predict"):
        raise InputError(
            f"{path}: a model of {saved.method!r}, which is not a method of this rarevote that labels new tasks"
        )
    kind = cast("type[PredictsNewTasks]", METHODS[saved.method].load())
    try:
        notes = {name: saved.notes[name] for name in ("n_iter", "converged", "status")}
        known = set(_OF_CALIBRATION) <= set(saved.arrays)
        arrays = _checked(saved, {**kind.saved_arrays, **(_OF_CALIBRATION if known else {})})
        known_arrays: dict[str, Any] = {name: arrays[name] for name in kind.saved_arrays}
        if "features" in saved.notes:
            of_features = FeatureModel.loaded(saved.arrays, saved.notes["features"], len(saved.classes))
            known_arrays["feature_model"] = of_features
        fit = Fit(np.empty((0, len(saved.classes))), known_arrays, **notes)
        hints = get_type_hints(kind)
        for name, value in saved.parameters.items():
            if name in hints and not _is_of(value, hints[name]):
                raise ValueError(f"parameter {name} cannot be {value!r:.60}")
        model = kind().set_params(**saved.parameters)._about_workers(saved.workers, saved.classes, fit)
        model._validate(model.annotations_)
        if known:
            calibration = FitCalibration(model._calibrator(arrays["vote_shares"]), arrays["mean_p"])
            model._fitted = replace(model._fitted, calibration=calibration)
    except ParameterError as error:
        raise InputError(f"{path}: {error}") from None
    except (KeyError, TypeError, ValueError) as error:
        raise damaged(path, str(error)) from None
    return model


def _kept(calibration: FitCalibration | None) -> dict[str, FloatArray]:
    """The arrays in a file that say how probabilities are reported; none if the method reports them itself."""
    if calibration is None or not isinstance(calibration.calibrator, (Tempered, Smoothed)):
        return {}
    return {"vote_shares": calibration.calibrator.vote_shares, "mean_p": calibration.mean}


def _checked(saved: SavedModel, wanted: Mapping[str, str]) -> dict[str, FloatArray]:
    """The arrays that the method needs, each checked for its shape and for values that are not numbers."""
    size = {"w": {len(saved.workers)}, "k": {len(saved.classes)}, "c": {1, len(saved.classes)}}
    arrays = {}
    for name, declared in wanted.items():
        if name not in saved.arrays:
            raise ValueError(f"{name} is missing")
        array = saved.arrays[name]
        axes, _, kind = declared.partition(":")
        fits = array.ndim == len(axes) and all(n in size[axis] for n, axis in zip(array.shape, axes, strict=True))
        if not fits or array.dtype.kind not in "iuf" or not np.isfinite(array).all():
            raise ValueError(f"{name} does not fit {saved.method}")
        low, high = _RANGES[kind]
        if array.size and not (low <= array.min() and array.max() <= high):
            raise ValueError(f"{name} is out of range")
        if kind == "share" and np.abs(array.sum(axis=-1) - 1.0).max(initial=0.0) > _SUM_TOLERANCE:
            raise ValueError(f"{name} are shares, and do not sum to 1")
        arrays[name] = array
    return arrays


def _is_of(value: Any, hint: Any) -> bool:
    """Whether a parameter from a file has the type that the constructor declares."""
    if hint is Any:
        return True
    origin, options = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(_is_of(value, option) for option in options)
    if origin is Literal:
        return value in options
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    kind = origin or hint
    return not isinstance(kind, type) or isinstance(value, kind)


@named_arguments(ReadOptions)
def predict(model: Any, data: Any, **reading: Unpack[ReadArguments]) -> tuple[NewTasks, dict[str, Any]]:
    """Label new tasks of workers that a model knows; also returns the rows for a file.

    Args:
        model: a fitted method that labels new tasks, such as :func:`rarevote.load` returns.
        data: anything that :func:`read` takes.
    """
    crowd = one_problem(read(data, **reading))
    fitted = model.annotations_
    found = model.label_new(crowd.annotations)
    new = found.annotations
    n_votes = np.diff(new.task_ptr)
    calibration = model.calibration_
    if calibration is None:
        warn_user("this model was saved by rarevote 0.2: its probabilities are not calibrated; fit and save it again")
        p, shares = found.posterior, np.full(new.n_classes, 1.0 / max(new.n_classes, 1))
    else:
        if new.n_classes > len(calibration.mean):
            calibration = calibration.widened(positions_of(new.classes, fitted.classes.tolist()), new.n_classes)
        p, shares = calibration.of_new(found.posterior, n_votes), calibration.mean
    unknown = np.full(new.n_tasks, -1)
    part = ItemBatch(p, new.votes(), found.codes, unknown, p)
    codes, _ = Decider(model.own_rule().ready(new.classes), shares).codes(part)
    labels = new.classes[codes]
    rows = result_rows(new.tasks, new.classes, labels, p, confidence_of(p, codes), n_votes, crowd.shown)
    if model.grades is not None:
        rows["grade"] = model.grades.means(p, new.classes)
    return replace(found, codes=codes), rows
