"""From a model file back to a method that labels new tasks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rarevote.errors import InputError, ParameterError
from rarevote.io.model_files import SavedModel, damaged, read_model
from rarevote.methods.base import Fit
from rarevote.methods.new_tasks import PredictsNewTasks
from rarevote.methods.registry import METHODS


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
    for name, axes in kind.remembers.items():
        if name not in saved.arrays:
            raise ValueError(f"{name} is missing")
        array = saved.arrays[name]
        fits = array.ndim == len(axes) and all(n in size[axis] for n, axis in zip(array.shape, axes, strict=True))
        if not fits or array.dtype.kind not in "iuf" or not np.isfinite(array).all():
            raise ValueError(f"{name} is not what {saved.method} has")
        arrays[name] = array
    return arrays
