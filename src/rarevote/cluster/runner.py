"""The runner of the dask engine: results go to files where the shards are; what is about workers comes back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from rarevote.cluster.data import StagedCrowd
from rarevote.cluster.engine import DaskEngine
from rarevote.crowd.numerics import Chooser
from rarevote.em.checkpoint import Checkpoint
from rarevote.em.engine import Run, Runner
from rarevote.em.loop import Callback, StoppingRule, run_em
from rarevote.em.model import CrowdFacts, FloatArray, Model, Shard, Start


class DaskRunner(Runner):
    """Runs a model over the shards of one staged crowd, whose gold is with its votes.

    Args:
        client: a ``distributed.Client``.
        crowd: where the encoded shards are.
        folder: where the dask workers write one row per task.
        chooser: how labels follow from probabilities; the most probable class without one.
        only_voted: whether a label must be one that somebody gave to the task.
    """

    def __init__(
        self,
        client: Any,
        crowd: StagedCrowd,
        folder: Path,
        chooser: Chooser | None = None,
        *,
        only_voted: bool = False,
    ) -> None:
        self._client, self._crowd, self._folder, self._chooser = client, crowd, folder, chooser
        self._only_voted = only_voted
        self._votes: NDArray[np.int64] | None = None
        self.labels = np.zeros(crowd.n_classes, dtype=np.int64)  # how many tasks got each

    def run(
        self,
        model: Model[Any, Any, Any],
        crowd: CrowdFacts,
        gold: NDArray[np.int32],
        rule: StoppingRule,
        *,
        checkpoint: Checkpoint | None = None,
        callback: Callback | None = None,
        is_last: bool = True,
        **options: Any,
    ) -> Run:
        """Fit a model and write what it says of the tasks; a checkpoint stays until all results are written."""
        with DaskEngine(self._client, model, self._crowd) as engine:
            shared = model.start()
            outcome = run_em(model, engine, shared, rule, callback=callback, checkpoint=checkpoint, **options)
            if is_last:
                self._finish(engine, self._chooser)
        posterior, *local = model.start_local(_no_tasks(gold))
        return Run(outcome, posterior, tuple(local))

    def start(self, model: Start, crowd: CrowdFacts, gold: NDArray[np.int32]) -> FloatArray:
        """Write the posterior that the tasks begin with."""
        with DaskEngine(self._client, cast("Model[Any, Any, Any]", model), self._crowd) as engine:
            self._finish(engine, self._chooser, of_last_pass=False)
        posterior: FloatArray = model.start_local(_no_tasks(gold))[0]
        return posterior

    def sums(self, model: Any, crowd: CrowdFacts, gold: NDArray[np.int32], shared: Any) -> Any:
        """The sums of a single pass."""
        with DaskEngine(self._client, model, self._crowd) as engine:
            return engine.run(shared, refresh=False, damping=0.0)[0]

    def report(
        self,
        model: Any,
        crowd: CrowdFacts,
        gold: NDArray[np.int32],
        shared: Any,
        then: Callable[[Any], tuple[Any, Chooser]],
    ) -> FloatArray:
        """Two passes; the dask workers write what the second gives."""
        with DaskEngine(self._client, model, self._crowd) as engine:
            second, chooser = then(engine.run(shared, refresh=True, damping=0.0)[0])
            engine.run(second, refresh=True, damping=0.0)
            self._finish(engine, chooser, calibrated=True)
        posterior: FloatArray = model.start_local(_no_tasks(gold))[0]
        return posterior

    def worker_votes(self, crowd: CrowdFacts) -> NDArray[np.int64]:
        """How often each worker gave each label, (n_workers, n_classes); known after a run."""
        assert self._votes is not None
        return self._votes

    def digest(self, crowd: CrowdFacts, gold: NDArray[np.int32]) -> str:
        """What the encoded crowd was made from."""
        return self._crowd.identity

    def _finish(
        self,
        engine: DaskEngine[Any, Any, Any],
        chooser: Chooser | None,
        *,
        of_last_pass: bool = True,
        calibrated: bool = False,
    ) -> None:
        how = {"of_last_pass": of_last_pass, "calibrated": calibrated, "only_voted": self._only_voted}
        self.labels = engine.write_results(self._folder, chooser=chooser, **how)
        self._votes = engine.count_votes()


def _no_tasks(gold: NDArray[np.int32]) -> Shard:
    empty = np.empty(0, dtype=np.uint8)
    return Shard(np.zeros(1, dtype=np.int64), empty, empty, gold)
