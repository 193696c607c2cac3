"""Class-conditional Dawid–Skene: one accuracy per worker and class, no difficulty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from rarevote.methods.cc_rasch.estimator import CCRasch
from rarevote.methods.cc_rasch.model import Ability, Difficulty


@dataclass(eq=False, repr=False)
class ClassConditional(CCRasch):
    """Dawid–Skene with K numbers per worker in place of a K x K matrix; CC-Rasch with difficulty switched off.

    ::

        P(worker r labels a task correctly | its class is k) = sigmoid(alpha_rk)

    with errors uniform over the other classes and Gaussian priors on ``alpha`` around class means. If votes per
    item are few, difficulty cannot be separated from bad luck, and this is the safer model.

    Args:
        n_iter: the largest number of EM iterations.
        tol: stop when no posterior probability changes by this much (and the likelihood stops rising); 0 never stops.
        sigma_alpha: spread of abilities around their class mean; a number, one per class, or a mapping by class.
        sigma_alpha_mu: spread of the class means around 0.
        prior: class prior: "uniform", "estimate", or values (sequence in class order, or mapping by class).
        m_step: "fused" takes one Newton step per pass (fast); "exact" solves every M-step to ``m_step_tol``.
        m_step_tol: with "exact", the Euclidean norm of the gradient at which an M-step counts as solved.
        accelerate: extrapolate every second step of the fused iteration if that raises the likelihood.
        dtype: "float64", or "float32" for posteriors that take half the memory.
        n_jobs: threads; None or -1 for all cores. The result does not depend on it.

    Example:
        >>> from rarevote.methods.class_conditional import ClassConditional
        >>> task, worker = [0, 0, 0, 1, 1, 1], ["ann", "bob", "cy"] * 2
        >>> model = ClassConditional().fit((task, worker, ["yes", "yes", "no", "no", "no", "no"]))
        >>> model.labels_.to_dict()
        {0: 'yes', 1: 'no'}
        >>> model.skills_["yes"].shape
        (3,)
    """

    method_name = "class-conditional"
    memory_model: ClassVar[Mapping[str, float]] = {"tk": 4, "wk": 8, "vk": 8}

    # Not parameters here; the parent reads the spreads of difficulties, but without difficulties they have no effect.
    ability: Ability = field(default="per-class", init=False)
    difficulty: Difficulty = field(default=None, init=False)
    sigma_beta: Any = field(default=1.0, init=False)
    sigma_beta_mu: Any = field(default=1.0, init=False)

    @property
    def skills_(self) -> Any:
        """Accuracy of every worker per class, ``sigmoid(alpha_rk)``: a frame worker x class."""
        alpha = self._parameter("mu_alpha") + self._parameter("ability_deviation")
        return self._worker_by_class(np.asarray(1.0 / (1.0 + np.exp(-alpha))))
