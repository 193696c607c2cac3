"""Anderson's mixing of the shared parameters, for models that profile their local ones out (Anderson 1965).

With local parameters at their best for given shared ones, EM is a map of the shared parameters alone, ``x -> G(x)``.
From the last few points ``x_j`` with steps ``f_j = G(x_j) - x_j`` the loop goes to

    G(x) - sum_j c_j (dx_j + df_j),    c = the least squares of  f - sum_j c_j df_j

where ``dx_j`` and ``df_j`` are differences of consecutive points and steps. Nothing is kept per task: the local state
that a pass proposes is the same whether the shared parameters are mixed or not, so that a mixture that lowers the
objective is taken back by taking the plain step instead.
"""

from __future__ import annotations

from typing import Any, Generic

import numpy as np
from numpy.typing import NDArray

from rarevote.em.model import ProfiledModel, Shared, Stats

_MAX_DEPTH = 5
# Differences that are this much like others, relative and squared, are noise.
_SAME = 1e-13


class Anderson(Generic[Shared, Stats]):
    """Decides where to go from the last points and the steps from there."""

    limit = 1.0  # of a jump; there is none to keep

    def __init__(self, model: ProfiledModel[Shared, Any, Stats]) -> None:
        self._model = model
        self._points: list[NDArray[np.float64]] = []
        self._steps: list[NDArray[np.float64]] = []

    def restart(self) -> None:
        """Forget the points so far."""
        self._points, self._steps = [], []

    def refuse(self) -> None:
        """The last mixture was not taken: only its origin is worth remembering."""
        self._points, self._steps = self._points[-1:], self._steps[-1:]

    def extrapolated(self, previous: Shared | None, current: Shared, proposed: Shared, stats: Stats) -> Shared:
        """Where to go instead of ``proposed``; from the first point on, tasks are to be solved."""
        del previous
        begin, end = self._model.coordinates(current), self._model.coordinates(proposed)
        self._points = [*self._points[-_MAX_DEPTH:], begin]
        self._steps = [*self._steps[-_MAX_DEPTH:], end - begin]
        changes = [after - before for before, after in zip(self._steps, self._steps[1:], strict=False)]
        if changes:
            moves = [after - before for before, after in zip(self._points, self._points[1:], strict=False)]
            shares = _least_squares(changes, end - begin, self._model.metric(stats))
            for share, move, change in zip(shares, moves, changes, strict=True):
                end = end - share * (move + change)
        return self._model.profiled(end, proposed)


def _least_squares(
    columns: list[NDArray[np.float64]], target: NDArray[np.float64], weight: NDArray[np.float64]
) -> list[float]:
    """Coefficients of the columns whose sum is nearest to the target, squares weighted.

    Sums are those of NumPy, whose order depends on nothing but the length.
    """
    scales = [float(np.sqrt((weight * column * column).sum())) or 1.0 for column in columns]
    gram = np.array([[float((weight * one * other).sum()) for other in columns] for one in columns])
    right = np.array([float((weight * column * target).sum()) for column in columns])
    gram = gram / np.outer(scales, scales)
    found: list[float] = (np.linalg.lstsq(gram, right / scales, rcond=_SAME)[0] / scales).tolist()
    return found
