"""Cost matrices as users write them: the cost of deciding one class if another is true."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.encoding import is_series
from rarevote.crowd.names import find_name, some_names, unmatched
from rarevote.crowd.numerics import FloatArray
from rarevote.errors import InputError, ParameterError, shown

#: Text or a file, costs by (true, decided), rows by true class, or an array in the order of the classes.
Costs = str | Path | Mapping[Any, Any] | Sequence[Sequence[float]] | FloatArray


def cost_matrix(costs: Costs, classes: NDArray[Any]) -> FloatArray:
    """The costs as a matrix: rows are true classes, columns decided ones.

    Args:
        costs: one of

            - text, ``"sound:defect=1,defect:sound=20"``: deciding defect for a sound rail costs 1, missing a defect 20;
            - a CSV file whose header names the decided classes and whose first column the true ones;
            - a mapping ``{("sound", "defect"): 1, ...}`` or ``{"sound": {"defect": 1}, ...}``, true class first, or a
              Series of pandas with such an index;
            - a DataFrame of pandas whose index names the true classes and whose columns the decided ones;
            - an array in the order of the classes.

            Every pair of different classes needs a cost; a right decision costs nothing by default.
        classes: names of the classes.

    Returns:
        Costs, (n_classes, n_classes).

    Raises:
        ParameterError: wrong shape, unknown or missing classes, or a cost that is negative or not a finite number.
        InputError: a file that cannot be read.

    Example:
        >>> cost_matrix("sound:defect=1,defect:sound=20", np.array(["defect", "sound"])).tolist()
        [[0.0, 20.0], [1.0, 0.0]]
    """
    names = [str(name) for name in classes.tolist()]
    if isinstance(costs, str) and "=" in costs:
        return _from_pairs(_inline_pairs(costs), classes, "the costs")
    if isinstance(costs, (str, Path)):
        return _from_pairs(_file_pairs(Path(costs), len(names)), classes, str(costs))
    if isinstance(costs, Mapping) or is_series(costs):
        return _from_pairs(_mapping_pairs(costs), classes, "the costs")
    if hasattr(costs, "columns") and not _is_numbered(costs, names):
        return _from_pairs(_frame_pairs(costs, classes), classes, "the costs")
    try:
        matrix = np.asarray(np.ma.filled(np.ma.array(costs, dtype=np.float64), np.nan))
    except (TypeError, ValueError):
        raise ParameterError(f"a cost matrix must hold numbers, got {costs!r}") from None
    if matrix.shape != (len(names), len(names)):
        raise ParameterError(
            f"the cost matrix must be {len(names)} x {len(names)} (true class x decided class, in the order "
            f"{', '.join(names)}), but its shape is {matrix.shape}"
        )
    return _checked(matrix, names, "the cost matrix")


Pair = tuple[Any, Any, Any]


def _inline_pairs(text: str) -> Iterable[Pair]:
    for part in text.split(","):
        pair, sign, cost = part.partition("=")
        true, colon, decided = pair.partition(":")
        if not (sign and colon and true.strip() and decided.strip() and cost.strip()) or ":" in decided:
            raise ParameterError(
                f"costs are written TRUE:DECIDED=COST with commas between, such as sound:defect=1,defect:sound=20; got "
                f"{part.strip()!r}. Class names with a colon, comma or equals sign need a CSV file."
            )
        yield true.strip(), decided.strip(), cost.strip()


def _mapping_pairs(costs: Any) -> Iterable[Pair]:
    for key, value in costs.items():
        if isinstance(value, Mapping) or is_series(value):
            for decided, cost in value.items():
                yield key, decided, cost
        elif isinstance(key, tuple) and len(key) == 2:
            yield *key, value
        else:
            raise ParameterError(f"costs by class need (true, decided) pairs, got {key!r}")


def _is_numbered(frame: Any, names: Sequence[str]) -> bool:
    """Whether pandas only numbered the rows and columns of a frame, because it was made without names."""
    axes: tuple[Any, ...] = (getattr(frame, "index", None), frame.columns)
    given = all(type(axis).__name__ == "RangeIndex" and list(axis) == list(range(len(axis))) for axis in axes)
    return given and set(map(str, frame.columns)) != set(names)


def _frame_pairs(frame: Any, classes: NDArray[Any]) -> Iterable[Pair]:
    """The costs in a frame of pandas by the names of its rows and columns; other frames have no names of rows."""
    rows = list(getattr(frame, "index", ()))
    strange = unmatched([*rows, *frame.columns], classes) if rows else []
    if strange or not rows:
        reason = f"{shown(strange[0])} is not a class" if strange else "its rows have no names"
        raise ParameterError(
            f"the costs in a frame are read by the names of its rows (true classes) and columns (decided ones), and "
            f"{reason}; the classes are {some_names(classes.tolist())}. Give a pandas frame with both, or an array in "
            "the order of the classes"
        )
    for true, costs in zip(rows, frame.itertuples(index=False, name=None), strict=True):
        for decided, cost in zip(frame.columns, costs, strict=True):
            yield true, decided, cost


def _file_pairs(path: Path, size: int) -> list[Pair]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as handle:
            rows = [[cell.strip() for cell in row] for row in csv.reader(handle) if any(cell.strip() for cell in row)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not CSV text"
        raise InputError(f"{path}: the cost matrix cannot be read ({reason})") from None
    if len(rows) != size + 1 or any(len(row) != size + 1 for row in rows):
        shape = f"{len(rows)} rows of {', '.join(str(n) for n in sorted({len(row) for row in rows}))} cells"
        raise ParameterError(
            f"{path}: a cost matrix for {size} classes has a header and {size} rows of {size + 1} cells (the true "
            f"class, then a cost for each decided class), but there are {shape}"
        )
    decided = rows[0][1:]
    return [(row[0], name, cost) for row in rows[1:] for name, cost in zip(decided, row[1:], strict=True)]


def _from_pairs(pairs: Iterable[Pair], classes: NDArray[Any], where: str) -> FloatArray:
    names = [str(name) for name in classes.tolist()]
    matrix = np.full((len(names), len(names)), np.nan)
    np.fill_diagonal(matrix, 0.0)
    seen: set[tuple[int, ...]] = set()
    for true, decided, cost in pairs:
        place = tuple(_class_number(name, classes, where) for name in (true, decided))
        if place in seen:
            raise ParameterError(f"{where}: the cost of {true}:{decided} is given twice")
        seen.add(place)
        try:
            matrix[place] = float(cost)
        except (TypeError, ValueError, OverflowError):
            raise ParameterError(f"{where}: the cost of {true}:{decided} must be a number, got {shown(cost)}") from None
        if np.isnan(matrix[place]):
            raise ParameterError(f"{where}: the cost of {true}:{decided} is not a number")
    missing = [f"{names[row]}:{names[column]}" for row, column in np.argwhere(np.isnan(matrix))]
    if missing:
        more = ", ..." if len(missing) > 5 else ""
        raise ParameterError(f"{where}: no cost for {', '.join(missing[:5])}{more} (true class : decided class)")
    return _checked(matrix, names, where)


def _class_number(name: Any, classes: NDArray[Any], where: str) -> int:
    number = find_name(name, classes)
    if number is None:
        raise ParameterError(f"{where}: {name!r} is not a class; the classes are {some_names(classes.tolist())}")
    return number


def _checked(matrix: FloatArray, names: Sequence[str], where: str) -> FloatArray:
    bad = np.argwhere(~(np.isfinite(matrix) & (matrix >= 0)))
    if len(bad):
        row, column = bad[0]
        raise ParameterError(
            f"{where}: the cost of {names[row]}:{names[column]} must be finite and not negative, "
            f"got {matrix[row, column]:g}"
        )
    return matrix
