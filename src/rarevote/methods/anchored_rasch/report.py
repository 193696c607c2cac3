"""From the evidence of the votes to probabilities that may be read as such.

::

    l_ik = log(q_ik / pi_k)                             taken from the log-sum-exp, never from a rounded posterior
    p_ik ~ pi_k exp(l_ik / (1 + rho (v_i - 1)))         votes on one item err together
    f = mean_i p_i,   reported = (1 - lapse) p_i + lapse f;   gold tasks are certain

Two passes, because ``f`` is a sum over all tasks: the first counts it, the second writes with it. Both are passes of
any engine, like those of the fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarevote.em.model import Shard
from rarevote.methods.anchored_rasch.anchors import passes_for
from rarevote.methods.anchored_rasch.model import AnchoredLocal, AnchoredModel, AnchoredShared

FloatArray = NDArray[np.float64]


class ReportSums(NamedTuple):
    """Sums over tasks."""

    class_mass: FloatArray  # (K): sum of p


class ReportShared(NamedTuple):
    """What every task sees."""

    fitted: AnchoredShared
    shares: FloatArray  # (K): f


@dataclass(frozen=True)
class AnchoredReport:
    """The reporting pass as an engine sees it: its local state is the reported probability.

    Attributes:
        model: that was fitted.
        discount: rho.
        lapse: weight of the shares.
    """

    model: AnchoredModel
    discount: float
    lapse: float

    def start_local(self, shard: Shard) -> AnchoredLocal:
        """Room for the probabilities."""
        return AnchoredLocal(np.empty((shard.task_ptr.size - 1, self.model.n_classes), dtype=self.model.dtype))

    def empty_stats(self, shared: ReportShared) -> ReportSums:
        """Zeros to add to."""
        del shared
        return ReportSums(np.zeros(self.model.n_classes))

    def step(
        self,
        shared: ReportShared,
        shard: Shard,
        local: AnchoredLocal,
        out: AnchoredLocal,
        stats: ReportSums,
        refresh: bool,
        damping: float,
    ) -> float:
        """Write the probabilities of a shard, and add up what they are before the lapse."""
        del local, refresh, damping
        model = self.model
        passes_for(shard).report_pass(
            shard,
            *model.tables(shared.fitted),
            model.anchors.log_prior,
            model.weights,
            model.nodes,
            self.discount,
            self.lapse,
            shared.shares,
            out.posterior,
            *stats,
        )
        return 0.0
