"""The runner of a fit on dask: models run over the shards of a staged crowd, and their posteriors stay there."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from rarevote.cluster.data import StagedCrowd
from rarevote.cluster.engine import DaskEngine
from rarevote.cluster.shard_labels import keep_posterior
from rarevote.em.checkpoint import Checkpoint
from rarevote.em.engine import Run, Runner
from rarevote.em.loop import Callback, StoppingRule, run_em
from rarevote.em.model import CrowdFacts, EMModel, FloatArray, Passes, Shard, Start


class DaskRunner(Runner):
    """Runs models over the shards of one staged crowd, whose gold is with its votes; a context manager.

    The engine of the last run stays open: its hosts hold the posteriors behind the labels.

    Args:
        client: a ``distributed.Client``.
        crowd: the crowd with the encoded shards.
        posteriors: a folder for posteriors that a report replaces; without it, they are not kept.
    """

    def __init__(self, client: Any, crowd: StagedCrowd, posteriors: Path | None = None) -> None:
        self._client, self._crowd, self._posteriors = client, crowd, posteriors
        self._open = ExitStack()
        self._engine: DaskEngine[Any, Any, Any] | None = None
        self._votes: NDArray[np.int64] | None = None
        self.of_last_pass = True
        self.kept_posteriors: Path | None = None

    def __enter__(self) -> DaskRunner:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def _opened(self, model: Passes[Any, Any, Any]) -> DaskEngine[Any, Any, Any]:
        """An engine that stays open until the next one is opened, or everything is done."""
        self._open.close()
        self._engine = self._open.enter_context(DaskEngine(self._client, model, self._crowd))
        return self._engine

    @property
    def engine(self) -> DaskEngine[Any, Any, Any]:
        """The engine of the last run."""
        if self._engine is None:
            raise RuntimeError("nothing has run on the cluster yet: read the votes after the run")
        return self._engine

    def run(
        self,
        model: EMModel[Any, Any, Any],
        crowd: CrowdFacts,
        gold: NDArray[np.int32],
        rule: StoppingRule,
        *,
        checkpoint: Checkpoint | None = None,
        callback: Callback | None = None,
        is_last: bool = True,
        **options: Any,
    ) -> Run:
        """Fit a model; a checkpoint stays until all results are written."""
        outcome = run_em(
            model, self._opened(model), model.start(), rule, callback=callback, checkpoint=checkpoint, **options
        )
        self.of_last_pass = True
        posterior, *local = _of_no_tasks(model, gold)
        return Run(outcome, posterior, tuple(local))

    def start(self, model: Start, crowd: CrowdFacts, gold: NDArray[np.int32]) -> FloatArray:
        """Compute the starting posterior, which stays on the hosts."""
        self._opened(cast("Passes[Any, Any, Any]", model))
        self.of_last_pass = False
        return _of_no_tasks(model, gold)[0]

    def sums(self, model: Passes[Any, Any, Any], crowd: CrowdFacts, gold: NDArray[np.int32], shared: Any) -> Any:
        """The sums of a single pass."""
        with DaskEngine(self._client, model, self._crowd) as engine:
            return engine.run(shared, refresh=False, damping=0.0)[0]

    def report(
        self,
        model: Passes[Any, Any, Any],
        crowd: CrowdFacts,
        gold: NDArray[np.int32],
        shared: Any,
        then: Callable[[Any], Any],
    ) -> FloatArray:
        """Run two passes; the result of the second stays on the hosts."""
        if self._posteriors is not None:
            self.engine.ask(partial(keep_posterior, self._posteriors))
            self.kept_posteriors = self._posteriors
        engine = self._opened(model)
        second = then(engine.run(shared, refresh=True, damping=0.0)[0])
        engine.advance()
        engine.run(second, refresh=True, damping=0.0)
        self.of_last_pass = True
        return _of_no_tasks(model, gold)[0]

    def worker_votes(self, crowd: CrowdFacts) -> NDArray[np.int64]:
        """How often each worker gave each label, (n_workers, n_classes); available after a run."""
        if self._votes is None:
            self._votes = self.engine.count_votes()
        return self._votes

    def digest(self, crowd: CrowdFacts, gold: NDArray[np.int32]) -> str:
        """The identity of the encoded crowd."""
        return self._crowd.identity


def _of_no_tasks(model: Any, gold: NDArray[np.int32]) -> tuple[FloatArray, ...]:
    """The local arrays of a model without rows, the posterior first."""
    empty = np.empty(0, dtype=np.uint8)
    arrays: tuple[FloatArray, ...] = model.start_local(Shard(np.zeros(1, dtype=np.int64), empty, empty, gold))
    return arrays
