"""A fitted model in one file: a JSON description and arrays, in NumPy's ``.npz`` format, without pickle.

``model.save(path)`` writes it and :func:`rarevote.load` reads it. It contains what a fit learned about workers: the
method and its parameters, the classes, the names of the workers, and arrays per worker and class. It contains no tasks
and no votes.

A model file can come from anywhere, so nothing in it is trusted: arrays are read without pickle, the description
is checked entry by entry, and anything invalid raises an error that names the file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.names import as_name_array
from rarevote.errors import InputError, ParameterError
from rarevote.io.arrays import NotArraysError, load_arrays, save_arrays
from rarevote.io.json_text import parse_json
from rarevote.io.read.detect import refuse_address

FORMAT = "rarevote model"
#: version of the file format; a reader supports its own and older ones
VERSION = 1

_DESCRIPTION = "description"
_ARRAY = "parameter:"
_BY_NAME = "by name"  # marks a mapping, because JSON would turn its keys into text
_NOTHING_BUT = (str, int, float, bool)


@dataclass(frozen=True, eq=False)
class SavedModel:
    """The contents of a model file.

    Attributes:
        method: name of the method on the command line.
        parameters: parameters of its constructor.
        classes: names of the classes.
        workers: names of the workers.
        arrays: the fitted arrays, by name.
        notes: how the fit went: ``n_iter``, ``converged``, ``status``.
    """

    method: str
    parameters: dict[str, Any]
    classes: NDArray[Any]
    workers: NDArray[Any]
    arrays: dict[str, NDArray[Any]]
    notes: dict[str, Any]


def write_model(path: str | Path, model: SavedModel) -> None:
    """Write the file, completely or not at all.

    Raises:
        InputError: the file cannot be written, or a name is neither text nor a number.
        ParameterError: a parameter has a type that JSON does not support.
    """
    from rarevote import __version__

    path = Path(path)
    description: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "written_by": f"rarevote {__version__}",
        "method": model.method,
        "parameters": {name: _plain(value, name) for name, value in model.parameters.items()},
        "notes": model.notes,
    }
    arrays = {f"{_ARRAY}{name}": value for name, value in model.arrays.items()}
    for role, names in (("classes", model.classes), ("workers", model.workers)):
        if names.dtype == object:
            description[role] = _plain_names(names, role)
        else:
            arrays[role] = names
    text = json.dumps(description, ensure_ascii=False).encode()
    save_arrays(path, {**arrays, _DESCRIPTION: np.frombuffer(text, dtype=np.uint8)})


def read_model(path: str | Path) -> SavedModel:
    """Read what :func:`write_model` wrote.

    Raises:
        InputError: the file is absent, damaged, of a newer format, or not a model.
    """
    refuse_address(path, "download the model first")
    path = Path(path)
    try:
        found = load_arrays(path, damaged)
    except NotArraysError:
        found = {}
    try:
        description = parse_json(found.pop(_DESCRIPTION).astype(np.uint8).tobytes().decode())
        is_model = description["format"] == FORMAT
        version = description["version"]
    except (KeyError, ValueError, TypeError, AttributeError):
        is_model, version, description = False, 0, {}
    if not is_model:
        raise InputError(f"{path}: not a rarevote model; aggregate --model-out and model.save(path) write models")
    if not isinstance(version, int) or version > VERSION:
        raise InputError(
            f"{path}: a model of layout {version!r}, written by {description.get('written_by')!r}, and this rarevote "
            f"reads layouts up to {VERSION}: install a newer rarevote, or save the model again with this one"
        )
    try:
        return SavedModel(
            str(description["method"]),
            {str(name): _value(value) for name, value in description["parameters"].items()},
            _read_names(found, description, "classes"),
            _read_names(found, description, "workers"),
            {name.removeprefix(_ARRAY): array for name, array in found.items() if name.startswith(_ARRAY)},
            dict(description["notes"]),
        )
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise damaged(path, f"{type(error).__name__}: {error}") from None


def damaged(path: str | Path, reason: str) -> InputError:
    """The error for an incomplete model file."""
    return InputError(f"{path}: the model is damaged ({reason}); save it again")


# --------------------------------------------------------------------------------------------------------------------
# names and parameters as JSON


def _plain_names(names: NDArray[Any], role: str) -> list[Any]:
    for name in names.tolist():
        if not isinstance(name, _NOTHING_BUT):
            raise InputError(
                f"{role} named by {type(name).__name__} values ({name!r}) cannot be saved: use text or numbers"
            )
    return list(names.tolist())


def _read_names(found: Mapping[str, NDArray[Any]], description: Mapping[str, Any], role: str) -> NDArray[Any]:
    if role in found:
        names = found[role]
        if names.ndim != 1 or names.dtype.kind not in "iubfM":
            raise ValueError(f"{role} are not names")
        return names
    listed = description[role]
    if not isinstance(listed, list) or not all(isinstance(name, _NOTHING_BUT) for name in listed):
        raise ValueError(f"{role} are not names")
    names = np.empty(len(listed), dtype=object)
    names[:] = listed
    return names if any(isinstance(name, str) for name in listed) else as_name_array(listed)


def _plain(value: Any, parameter: str) -> Any:
    """A parameter in JSON; a mapping keeps the types of its keys."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.dtype):
        value = str(value)
    if value is None or isinstance(value, _NOTHING_BUT):
        return value
    if hasattr(value, "to_dict"):
        value = value.to_dict()
    if isinstance(value, Mapping):
        return {_BY_NAME: [[_plain(key, parameter), _plain(entry, parameter)] for key, entry in value.items()]}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(entry, parameter) for entry in value]
    raise ParameterError(f"parameter {parameter} is a {type(value).__name__}, which cannot be saved")


def _value(plain: Any) -> Any:
    if isinstance(plain, dict):
        return {key: _value(entry) for key, entry in plain[_BY_NAME]}
    return [_value(entry) for entry in plain] if isinstance(plain, list) else plain
