"""From a model file back to a method that labels new tasks."""

from __future__ import annotations

from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from rarevote.errors import InputError, ParameterError
from rarevote.io.model_files import SavedModel, damaged, read_model
from rarevote.methods.base import Fit
from rarevote.methods.new_tasks import PredictsNewTasks
from rarevote.methods.registry import METHODS

# What an array holds, and between which bounds; roundings of a logarithm may lead a little above 0.
_RANGES = {
    "": (-np.inf, np.inf),
    "p": (0.0, 1.0 + 1e-9),
    "share": (0.0, 1.0 + 1e-9),
    "log": (-np.inf, 1e-9),
    "n": (0.0, np.inf),
}
# Of single precision and of many classes, sums of shares are not exactly one.
_SUM_TOLERANCE = 1e-3


def load(path: str | Path) -> PredictsNewTasks:
    """The fitted method that ``model.save(path)`` or ``rarevote aggregate --model-out`` wrote.

    It labels new tasks exactly as the saved one did, to the last bit. It knows the workers and the classes, but none of
    the tasks that it was fitted on: ``labels_`` and ``probas_`` are empty.

    Raises:
        InputError: the file is absent, damaged, no model, or of a newer version.

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
    entry = METHODS.get(saved.method)
    kind = None if entry is None else entry.load()
    if kind is None or not issubclass(kind, PredictsNewTasks):
        raise InputError(
            f"{path}: a model of {saved.method!r}, which is no method of this rarevote that labels new tasks"
        )
    try:
        notes = {name: saved.notes[name] for name in ("n_iter", "converged", "status")}
        fit = Fit(np.empty((0, len(saved.classes))), _checked(saved, kind), **notes)
        hints = get_type_hints(kind.__init__)
        for name, value in saved.parameters.items():
            if name in hints and not _is_of(value, hints[name]):
                raise ValueError(f"parameter {name} cannot be {value!r:.60}")
        model = kind().set_params(**saved.parameters)._about_workers(saved.workers, saved.classes, fit)
        model._validate(model.annotations_)
    except ParameterError as error:
        raise InputError(f"{path}: {error}") from None
    except (KeyError, TypeError, ValueError) as error:
        raise damaged(path, str(error)) from None
    return model


def _checked(saved: SavedModel, kind: type[PredictsNewTasks]) -> dict[str, NDArray[np.float64]]:
    """The arrays that the method needs, each of the right shape and without anything that is no number."""
    size = {"w": {len(saved.workers)}, "k": {len(saved.classes)}, "c": {1, len(saved.classes)}}
    arrays = {}
    for name, declared in kind.remembers.items():
        if name not in saved.arrays:
            raise ValueError(f"{name} is missing")
        array = saved.arrays[name]
        axes, _, holds = declared.partition(":")
        fits = array.ndim == len(axes) and all(n in size[axis] for n, axis in zip(array.shape, axes, strict=True))
        if not fits or array.dtype.kind not in "iuf" or not np.isfinite(array).all():
            raise ValueError(f"{name} is not what {saved.method} has")
        low, high = _RANGES[holds]
        if array.size and not (low <= array.min() and array.max() <= high):
            raise ValueError(f"{name} is out of range")
        if holds == "share" and np.abs(array.sum(axis=-1) - 1.0).max(initial=0.0) > _SUM_TOLERANCE:
            raise ValueError(f"{name} are shares, and do not sum to 1")
        arrays[name] = array
    return arrays


def _is_of(value: Any, hint: Any) -> bool:
    """Whether a parameter from a file is of the type that the constructor declares."""
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
