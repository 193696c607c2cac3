"""Engines and runners: an engine does single passes for the loop, a runner a whole fit for a method.

A method gets a :class:`Runner` and does not need to know whether the votes are in this process or on other machines.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic

from rarevote.crowd.numerics import IntArray
from rarevote.em.model import CrowdFacts, EMModel, FloatArray, Gold, Local, Offsets, Passes, Shared, Start, Stats
from rarevote.errors import RarevoteError

if TYPE_CHECKING:
    from rarevote.em.checkpoint import Checkpoint
    from rarevote.em.loop import Callback, Outcome, StoppingRule


class Engine(ABC, Generic[Shared, Local, Stats]):
    """Runs a model's step over all shards and holds the local state: previous, current and proposed."""

    @abstractmethod
    def run(self, shared: Shared, *, refresh: bool, damping: float) -> tuple[Stats, float]:
        """One pass; returns the sums over all shards and the largest change of a posterior probability."""

    @abstractmethod
    def advance(self) -> None:
        """Make the proposed local state the current one."""

    @abstractmethod
    def retreat(self) -> None:
        """Return to the local state before the last advance."""

    @abstractmethod
    def local_distances(self, offsets: Offsets) -> tuple[float, float]:
        """As ``shared_distances``, summed over the previous, current and proposed local parameters."""

    @abstractmethod
    def extrapolate(self, offsets: Offsets, length: float) -> tuple[FloatArray, ...]:
        """Propose the extrapolated point and save what was proposed; returns the means of each array."""

    @abstractmethod
    def take_plain(self) -> None:
        """After an advance to the extrapolated point: make the saved state the current one instead."""

    def save(self, folder: Path) -> None:
        """Write the current local state to files in ``folder``."""
        raise RarevoteError(f"{type(self).__name__} does not support checkpoints")

    def load(self, folder: Path) -> None:
        """Read the current local state from the files that :meth:`save` wrote."""
        raise RarevoteError(f"{type(self).__name__} does not support checkpoints")


@dataclass(frozen=True, eq=False)
class Run:
    """The result of a runner.

    Attributes:
        outcome: where the loop ended.
        posterior: posterior of the last pass, (n_tasks, n_classes); without rows if it stays on other machines.
        local: the local parameters behind it, one array each; likewise.
    """

    outcome: Outcome[Any]
    posterior: FloatArray
    local: tuple[FloatArray, ...]


class Runner(ABC):
    """Runs models over the shards of a crowd."""

    @abstractmethod
    def run(
        self,
        model: EMModel[Any, Any, Any],
        crowd: CrowdFacts,
        gold: Gold,
        rule: StoppingRule,
        *,
        checkpoint: Checkpoint | None = None,
        callback: Callback | None = None,
        is_last: bool = True,
        **options: Any,
    ) -> Run:
        """Fit a model; ``options`` are those of :func:`~rarevote.em.loop.run_em`.

        With ``is_last``, the posterior is the result; otherwise a :meth:`report` follows.
        """

    @abstractmethod
    def sums(self, model: Passes[Any, Any, Any], crowd: CrowdFacts, gold: Gold, shared: Any) -> Any:
        """The sums of a single pass with the starting posterior of the tasks."""

    @abstractmethod
    def report(
        self,
        model: Passes[Any, Any, Any],
        crowd: CrowdFacts,
        gold: Gold,
        shared: Any,
        then: Callable[[Any], Any],
    ) -> FloatArray:
        """Two passes: the sums of the first give parameters of the second.

        The second starts from the state that the first has written.
        """

    @abstractmethod
    def start(self, model: Start, crowd: CrowdFacts, gold: Gold) -> FloatArray:
        """The starting posterior of the tasks, (n_tasks, n_classes): the result of a method without a loop."""

    @abstractmethod
    def worker_votes(self, crowd: CrowdFacts) -> IntArray:
        """How often each worker gave each label, (n_workers, n_classes); on a cluster, available after a run."""

    @abstractmethod
    def digest(self, crowd: CrowdFacts, gold: Gold) -> str:
        """Identifies a crowd with its gold, so that a checkpoint is resumed only with the same votes."""
