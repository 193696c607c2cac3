"""The runner of the dask engine: results go to files where the shards are; what is about workers comes back."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from rarevote.cluster.data import StagedCrowd
from rarevote.cluster.engine import DaskEngine
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
        tie_margin: how near probabilities must be for the votes to decide; None for never.
    """

    def __init__(self, client: Any, crowd: StagedCrowd, folder: Path, tie_margin: float | None) -> None:
        self._client, self._crowd, self._folder, self._tie_margin = client, crowd, folder, tie_margin
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
        **options: Any,
    ) -> Run:
        """Fit a model and write what it says of the tasks; a checkpoint stays until all results are written."""
        with DaskEngine(self._client, model, self._crowd) as engine:
            shared = model.start()
            outcome = run_em(model, engine, shared, rule, callback=callback, checkpoint=checkpoint, **options)
            self._finish(engine, of_last_pass=True)
        posterior, *local = model.start_local(_no_tasks(gold))
        return Run(outcome, posterior, tuple(local))

    def start(self, model: Start, crowd: CrowdFacts, gold: NDArray[np.int32]) -> FloatArray:
        """Write the posterior that the tasks begin with."""
        with DaskEngine(self._client, cast("Model[Any, Any, Any]", model), self._crowd) as engine:
            self._finish(engine, of_last_pass=False)
        posterior: FloatArray = model.start_local(_no_tasks(gold))[0]
        return posterior

    def worker_votes(self, crowd: CrowdFacts) -> NDArray[np.int64]:
        """How often each worker gave each label, (n_workers, n_classes); known after a run."""
        assert self._votes is not None
        return self._votes

    def digest(self, crowd: CrowdFacts, gold: NDArray[np.int32]) -> str:
        """What the encoded crowd was made from."""
        return self._crowd.identity

    def _finish(self, engine: DaskEngine[Any, Any, Any], *, of_last_pass: bool) -> None:
        self.labels = engine.write_results(self._folder, of_last_pass=of_last_pass, tie_margin=self._tie_margin)
        self._votes = engine.count_votes()


def _no_tasks(gold: NDArray[np.int32]) -> Shard:
    empty = np.empty(0, dtype=np.uint8)
    return Shard(np.zeros(1, dtype=np.int64), empty, empty, gold)
