"""Acceleration of a slow EM loop: extrapolated steps, or mixtures of the last steps.

**SQUAREM** (Varadhan and Roland 2008): every second step of a slow EM loop is extrapolated. From three consecutive
points ``t0, t1, t2`` with ``r = t1 - t0`` and ``v = (t2 - t1) - r`` the loop jumps to ``t0 + 2 a r + a^2 v``, ``a = |r|
/ |v|``, over shared and local parameters. Only two sums over the local state are needed to compute ``a``.

**Anderson's mixing** (1965) of the shared parameters, for models that profile out their local parameters. With local
parameters at their best for given shared ones, EM is a map of the shared parameters alone, ``x -> G(x)``. From the last
few points ``x_j`` with steps ``f_j = G(x_j) - x_j``, the loop moves to

    G(x) - sum_j c_j (dx_j + df_j),    c = the least squares of  f - sum_j c_j df_j

where ``dx_j`` and ``df_j`` are differences of consecutive points and steps. Nothing is stored per task: the local state
that a pass proposes is the same whether the shared parameters are mixed or not, so that a mixture that lowers the
objective is simply replaced by the plain step.
"""

from __future__ import annotations

from math import sqrt
from typing import Any, Generic, cast

import numpy as np

from rarevote.crowd.numerics import FloatArray
from rarevote.em.engine import Engine
from rarevote.em.model import EMModel, Offsets, Shared, Stats

# The largest length of a jump, in steps; the limit grows while jumps reach it and shrinks when one is rejected.
_SHORTEST_LIMIT = 4.0
_LIMIT_FACTOR = 4.0


class Squarem(Generic[Shared, Stats]):
    """Decides when to jump, and how far."""

    def __init__(self, model: EMModel[Shared, Any, Stats], engine: Engine[Shared, Any, Stats]) -> None:
        self._model, self._engine = model, engine
        self._since_jump = 0
        self.limit = _SHORTEST_LIMIT  # the limit of the next jump

    def restart(self) -> None:
        """Drop the points so far: the next jump needs new ones."""
        self._since_jump = 0

    def refuse(self) -> None:
        """Reject the last jump: return to the plain step, and make the next jumps shorter."""
        self._engine.take_plain()
        self.limit = max(_SHORTEST_LIMIT, self.limit / _LIMIT_FACTOR)

    def extrapolated(self, previous: Shared | None, current: Shared, proposed: Shared, stats: Stats) -> Shared | None:
        """The point to jump to from three consecutive points, every second time; None for the plain step."""
        self._since_jump += 1
        if self._since_jump < 2 or previous is None:
            return None
        points = (previous, current, proposed)
        offsets = cast("Offsets", tuple(self._model.local_offsets(point) for point in points))
        shared, local = self._model.shared_distances(*points), self._engine.local_distances(offsets)
        first, second = shared[0] + local[0], shared[1] + local[1]
        length = sqrt(first / second) if second > 0.0 else 1.0
        if length >= self.limit:
            length = self.limit
            self.limit *= _LIMIT_FACTOR
        if length <= 1.0:
            return None  # not longer than the step itself
        self._since_jump = 0
        return self._model.extrapolate(points, length, self._engine.extrapolate(offsets, length))


_MAX_DEPTH = 5
# Differences that are this close to others, relative and squared, are noise.
_SAME = 1e-13


class Anderson(Generic[Shared, Stats]):
    """Chooses the next point from the last points and their steps."""

    limit = 1.0  # of a jump; there is no limit

    def __init__(self, model: EMModel[Shared, Any, Stats]) -> None:
        self._model = model
        self._points: list[FloatArray] = []
        self._steps: list[FloatArray] = []

    def restart(self) -> None:
        """Drop the points so far."""
        self._points, self._steps = [], []

    def refuse(self) -> None:
        """Reject the last mixture: only its starting point is kept."""
        self._points, self._steps = self._points[-1:], self._steps[-1:]

    def extrapolated(self, previous: Shared | None, current: Shared, proposed: Shared, stats: Stats) -> Shared:
        """The point to move to instead of ``proposed``; from the first point on, passes solve for the tasks."""
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


def _least_squares(columns: list[FloatArray], target: FloatArray, weight: FloatArray) -> list[float]:
    """Coefficients of the columns whose sum is nearest to the target, by weighted least squares.

    Sums use NumPy, whose order of addition depends only on the length.
    """
    scales = [float(np.sqrt((weight * column * column).sum())) or 1.0 for column in columns]
    gram = np.array([[float((weight * one * other).sum()) for other in columns] for one in columns])
    right = np.array([float((weight * column * target).sum()) for column in columns])
    gram = gram / np.outer(scales, scales)
    found: list[float] = (np.linalg.lstsq(gram, right / scales, rcond=_SAME)[0] / scales).tolist()
    return found
