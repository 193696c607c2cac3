"""The constants of the feature prior."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from rarevote.crowd.arguments import check_count, check_number
from rarevote.errors import ParameterError


@dataclass(frozen=True)
class FeatureSettings:
    """Constants of the feature prior; the defaults were chosen by measurement.

    Attributes:
        folds: number of folds of the cross-fit.
        tau2: candidates for the variance of the logit that features can cause.
        lam: candidates for the weight of cross-fitted scores.
        lam_of_predictions: candidates for the weight of predicted probabilities: an inverse temperature.
        lapse: weight of the class prior in the prior of every item.
        least_gain: nats of held-out gain below which features are left out.
        least_errors: the same, in standard errors of the gain.
        steps: the largest number of steps of the solver.
        tol: change of a score, over all items of a fit, at which the solver stops.
        subsample: the largest number of items on which candidates are compared.
        least_items: number of items with votes and features below which features are left out.
        least_mass: expected number of items of a second class, likewise.
    """

    folds: int = 5
    tau2: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0, 10.0)
    lam: tuple[float, ...] = (0.5, 1.0, 1.5, 2.0, 3.0, 4.5)
    lam_of_predictions: tuple[float, ...] = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
    lapse: float = 0.05
    least_gain: float = 5.0
    least_errors: float = 3.5
    steps: int = 20
    tol: float = 1e-3
    subsample: int = 50_000
    least_items: int = 50
    least_mass: float = 5.0

    def __post_init__(self) -> None:
        for name in ("folds", "steps", "subsample", "least_items"):
            check_count(name, getattr(self, name), at_least=2 if name == "folds" else 1)
        for name in ("tau2", "lam", "lam_of_predictions"):
            given = getattr(self, name)
            if isinstance(given, (str, Mapping, Set)) or not isinstance(given, Iterable):
                raise ParameterError(f"{name} must be a list of numbers, got {given!r}")
            object.__setattr__(self, name, tuple(given))
            if not getattr(self, name):
                raise ParameterError(f"{name} must name at least one candidate")
            for value in getattr(self, name):
                check_number(name, value, above=0)
        check_number("lapse", self.lapse, at_least=0, at_most=1)
        for name in ("least_gain", "least_errors", "tol", "least_mass"):
            check_number(name, getattr(self, name), at_least=0)
