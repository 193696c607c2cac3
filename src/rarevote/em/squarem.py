"""SQUAREM: every second step of a creeping EM is extrapolated (Varadhan and Roland 2008).

From three consecutive points ``t0, t1, t2`` with ``r = t1 - t0`` and ``v = (t2 - t1) - r`` the loop jumps to
``t0 + 2 a r + a^2 v``, ``a = |r| / |v|``, over shared and local parameters alike. Local state needs nothing but two
sums to agree on ``a``.
"""

from __future__ import annotations

from math import sqrt
from typing import Any, Generic, cast

from rarevote.em.engine import Engine
from rarevote.em.model import AcceleratedModel, Offsets, Shared, Stats

# A jump may be this many steps long; the limit grows while jumps reach it and shrinks when one is not taken.
_SHORTEST_LIMIT = 4.0
_LIMIT_FACTOR = 4.0


class Squarem(Generic[Shared, Stats]):
    """Decides when to jump, and how far."""

    def __init__(self, model: AcceleratedModel[Shared, Any, Stats], engine: Engine[Shared, Any, Stats]) -> None:
        self._model, self._engine = model, engine
        self._since_jump = 0
        self.limit = _SHORTEST_LIMIT  # that the next jump has to keep

    def restart(self) -> None:
        """Forget the points so far: the next jump needs new ones."""
        self._since_jump = 0

    def refuse(self) -> None:
        """The last jump was not taken: back to the plain step, and the next ones are shorter."""
        self._engine.take_plain()
        self.limit = max(_SHORTEST_LIMIT, self.limit / _LIMIT_FACTOR)

    def extrapolated(self, previous: Shared | None, current: Shared, proposed: Shared, stats: Stats) -> Shared | None:
        """Where to jump from three consecutive points, every second time; None for the plain step."""
        del stats
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
