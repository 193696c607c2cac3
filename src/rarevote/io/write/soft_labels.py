"""Soft labels: the probability of every class per task, as arrays for training.

A classifier trained on probabilities learns which items are doubtful. ``.npz`` contains three
arrays, without pickle: ``task`` (n), ``classes`` (K) and ``p`` (n, K), whose rows sum to one; ``.parquet`` contains a
column ``task`` and a column ``p:<class>`` for each class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.errors import InputError
from rarevote.io.write.atomic import replacing
from rarevote.io.write.columns import check_columns, check_place, write_columns
from rarevote.io.write.overwrite import refuse_overwriting

ENDINGS = (".npz", ".parquet")


@dataclass(frozen=True, eq=False)
class SoftLabels:
    """Probabilities of the classes.

    Attributes:
        tasks: names of the tasks, (n).
        classes: names of the classes, (K).
        probabilities: of each class for each task, (n, K).
        files: the input files, which are never overwritten.

    Example:
        >>> import numpy as np
        >>> soft = SoftLabels(["a", "b"], ["no", "yes"], np.array([[0.9, 0.1], [0.25, 0.75]]))
        >>> soft.arrays()["p"].dtype, soft.arrays()["task"].tolist()
        (dtype('float32'), ['a', 'b'])
    """

    tasks: Any
    classes: Sequence[Any] | NDArray[Any]
    probabilities: NDArray[Any]
    files: tuple[str, ...] = ()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """``task``, ``classes`` and ``p``, as in the ``.npz`` file: numbers, or text of fixed width."""
        probabilities = np.asarray(self.probabilities, dtype=np.float32)
        return {"task": _names(self.tasks), "classes": _names(self.classes), "p": probabilities}

    def write(self, path: str | Path) -> None:
        """Write them to a ``.npz`` or ``.parquet`` file, completely or not at all."""
        path = Path(path)
        refuse_overwriting(path, self.files)
        check_soft_file(path)
        arrays = self.arrays()
        if path.suffix.lower() == ".parquet":
            columns = {name: arrays["p"][:, k] for k, name in enumerate(_titles(self.classes))}
            check_soft_classes(self.classes, path)
            write_columns({"task": np.asarray(self.tasks), **columns}, path)
            return
        with replacing(path) as temporary, temporary.open("wb") as handle:
            np.savez_compressed(handle, **arrays)  # type: ignore[arg-type]


def check_soft_file(path: Path) -> None:
    """Refuse a file that soft labels cannot be written to, before any work is done.

    Raises:
        InputError: the ending is not supported, or the path cannot be written to.
    """
    if path.suffix.lower() not in ENDINGS:
        raise InputError(f"{path}: soft labels are written as {' or '.join(ENDINGS)}")
    check_place(path)


def check_soft_classes(classes: Sequence[Any] | NDArray[Any], path: Path) -> None:
    """Refuse classes whose columns the file cannot have; an array of ``.npz`` can have any.

    Raises:
        InputError: two classes differ only in case.
    """
    if path.suffix.lower() == ".parquet":
        check_columns(_titles(classes), path, otherwise="write .npz")


def _titles(classes: Sequence[Any] | NDArray[Any]) -> list[str]:
    return [f"p:{name}" for name in np.asarray(classes).tolist()]


def _names(names: Any) -> NDArray[Any]:
    """Names as an array that needs no pickle: numbers unchanged, everything else as text."""
    array = np.asarray(names)
    if array.dtype.kind in "iufb":
        return array
    values = array.tolist()
    if values and all(type(value) is int for value in values):
        return np.array(values)
    return np.array([str(value) for value in values], dtype=np.str_)
