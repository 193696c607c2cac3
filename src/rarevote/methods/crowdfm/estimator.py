"""CrowdFM: a graph network trained once on simulated crowds, applied without fitting."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rarevote.crowd.arguments import check_count
from rarevote.crowd.numerics import FloatArray
from rarevote.em.loop import Progress
from rarevote.em.model import CrowdFacts
from rarevote.errors import ParameterError, WeightsError
from rarevote.methods.base import Estimator, Fit, Request
from rarevote.methods.new_tasks import posterior_from_log_scores

if TYPE_CHECKING:
    from rarevote.methods.crowdfm.network import CrowdFMWeights

WEIGHTS_VARIABLE = "RAREVOTE_CROWDFM"
_OPTION_SIZE = 32

_HOW_TO_GET_WEIGHTS = (
    "CrowdFM needs the weights that its authors publish; they state no licence, so rarevote does not ship them. "
    "Download checkpoint.pt from the repository liiuhaao/CrowdFM on GitHub, then set "
    f"{WEIGHTS_VARIABLE}=/where/it/is/checkpoint.pt or pass CrowdFM(weights=...) (--set weights=...)"
)


@dataclass(eq=False, repr=False)
class CrowdFM(Estimator):
    """A graph network over the annotation graph: workers, tasks and options exchange messages in ten layers.

    Every option starts from a random vector ``z_o ~ N(0, I)``, so results vary with the seed; the logits of several
    seeds are averaged. Nothing is fitted: the weights come from a file.

    Args:
        n_seeds: how many draws of the option vectors to average.
        random_state: seed of the first draw; draw ``s`` uses ``random_state + s``.
        weights: path of the authors' ``checkpoint.pt`` or of a safetensors file with the same tensors;
            by default the environment variable RAREVOTE_CROWDFM.
        option_vectors: the vectors themselves, (K, 32) or (n_seeds, K, 32), in place of random ones.

    Reference: Liu et al., CrowdFM, ICLR 2026.
    """

    method_name = "crowdfm"

    n_seeds: int = 4
    _: KW_ONLY
    random_state: int = 0
    weights: str | os.PathLike[str] | None = None
    option_vectors: Any = None

    def _validate(self, crowd: CrowdFacts) -> None:
        check_count("n_seeds", self.n_seeds)
        self._draws(crowd.n_classes)

    def _draws(self, n_classes: int) -> FloatArray:
        """Option vectors of every seed, (n_seeds, K, 32)."""
        if self.option_vectors is not None:
            given = np.asarray(self.option_vectors, dtype=np.float64)
            given = given[None] if given.ndim == 2 else given
            if given.ndim != 3 or given.shape[1:] != (n_classes, _OPTION_SIZE):
                raise ParameterError(f"option_vectors must be ({n_classes}, {_OPTION_SIZE}), got {given.shape}")
            return given
        if not isinstance(self.random_state, (int, np.integer)) or self.random_state < 0:
            raise ParameterError(f"random_state must be a whole number of at least 0, got {self.random_state!r}")
        seeds: Sequence[int] = range(self.random_state, self.random_state + self.n_seeds)
        return np.stack([np.random.default_rng(seed).normal(size=(n_classes, _OPTION_SIZE)) for seed in seeds])

    def _fit(self, request: Request) -> Fit:
        from rarevote.methods.crowdfm.network import task_option_logits

        annotations, callback = request.annotations, request.callback
        network = load_weights(self.weights)
        draws = self._draws(annotations.n_classes)
        logits = np.zeros((annotations.n_tasks, annotations.n_classes))
        for number, vectors in enumerate(draws, 1):
            logits += task_option_logits(
                annotations.task_ptr,
                annotations.worker,
                annotations.label,
                annotations.n_workers,
                annotations.n_classes,
                network,
                vectors,
            )
            if callback is not None:
                callback(Progress(number, len(draws), 0.0, 1.0 - number / len(draws)))
        logits /= len(draws)
        return Fit(posterior_from_log_scores(logits), {"logits": logits}, n_iter=len(draws))

    @property
    def logits_(self) -> Any:
        """The network's scores, averaged over seeds: a frame task x class."""
        return self._task_by_class(self._parameter("logits"))


def load_weights(path: str | os.PathLike[str] | None = None) -> CrowdFMWeights:
    """The network from a file, or from the one that RAREVOTE_CROWDFM names.

    Raises:
        WeightsError: no file is named, or the file cannot be used.
    """
    named = path if path is not None else os.environ.get(WEIGHTS_VARIABLE)
    if not named:
        raise WeightsError(_HOW_TO_GET_WEIGHTS)
    found = Path(named)
    if not found.is_file():
        raise WeightsError(f"{found}: no such file. {_HOW_TO_GET_WEIGHTS}")
    return _load(str(found.resolve()), found.stat().st_mtime_ns)


@lru_cache(maxsize=2)
def _load(path: str, _modified: int) -> CrowdFMWeights:
    from rarevote.methods.crowdfm.network import CrowdFMWeights
    from rarevote.methods.crowdfm.weights import read_tensors

    return CrowdFMWeights.from_tensors(read_tensors(path))
