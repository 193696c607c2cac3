"""The columns of a result: one row per item."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.grades import Grades
from rarevote.crowd.names import as_name_array
from rarevote.crowd.rare import RareClass


def result_rows(
    tasks: Any,
    classes: NDArray[Any],
    labels: NDArray[Any],
    p: NDArray[Any],
    confidence: NDArray[Any],
    n_votes: NDArray[np.int64],
    shown: Mapping[str, NDArray[Any]],
) -> dict[str, Any]:
    """One row per item: task, label, confidence, votes, ``p:<class>``, then the columns to show."""
    rows: dict[str, Any] = {"task": tasks, "label": labels, "confidence": confidence, "votes": n_votes}
    for k, name in enumerate(classes.tolist()):
        rows[f"p:{name}"] = p[:, k]
    for name, texts in shown.items():
        rows[name if name not in rows else f"show:{name}"] = texts[: len(labels)]
    return rows


def result_names(classes: Sequence[Any], shown: Iterable[str]) -> list[str]:
    """The names of the columns of :func:`result_rows`, for a check before anything is computed.

    >>> result_names(["no", "yes"], ["text", "label"])
    ['task', 'label', 'confidence', 'votes', 'p:no', 'p:yes', 'text', 'show:label']
    """
    nothing = np.empty(0, dtype=np.int64)
    p = np.empty((0, len(classes)))
    return list(result_rows([], as_name_array(classes), nothing, p, nothing, nothing, dict.fromkeys(shown, nothing)))


def grade_columns(
    grades: Grades, rare: RareClass, p: NDArray[Any], flagged: NDArray[np.bool_], classes: NDArray[Any]
) -> dict[str, NDArray[Any]]:
    """The extra columns for grades: ``grade``, and for the tail that matters ``p>=c`` and ``flag>=c``."""
    columns = {"grade": grades.means(p, classes)}
    if rare.is_tail:
        columns |= {f"p{rare.name}": rare.mass(p), f"flag{rare.name}": np.where(flagged, "yes", "no").astype(object)}
    return columns
