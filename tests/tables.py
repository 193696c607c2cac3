"""The table of methods that the contract tests run over: a new method is one row here."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np

from rarevote.methods.base import Estimator
from rarevote.methods.registry import find_method
from tests.methods.test_crowdfm_network import random_tensors


@dataclass(frozen=True)
class MethodRow:
    """How to make a method for the contracts, and what holds for it."""

    name: str
    parameters: dict[str, Any] = field(default_factory=dict)
    binary: bool = False
    # Decisions inside the method fall at ties, so that another order of the classes may give another result there.
    sees_ties: bool = False
    # The start is drawn in the order of the votes, so that another order of names may give another result.
    drawn_start: bool = False
    # The number of classes is part of the model, those without a vote included: errors, or what is left to chance, are
    # spread over all.
    counts_classes: bool = False
    # Probabilities are reported with the class prior of the model.
    has_prior: bool = False
    # What must never fall, if the method climbs something.
    climbs: Callable[[Estimator], list[float]] | None = None

    @property
    def needs_gold(self) -> bool:
        return find_method(self.name).capabilities.needs_gold

    def make(self) -> Estimator:
        parameters = dict(self.parameters)
        if self.name == "crowdfm":
            parameters["weights"] = small_network()
        return find_method(self.name).load()(**parameters)


def history(model: Estimator) -> list[float]:
    return model.loss_history_


def objective(model: Estimator) -> list[float]:
    return list(model._result.parameters["objective_history"])


ORDERED = [*"abcde", "no", "maybe", "yes", "c0", "c1", "c2", "c3", "c4", 0, 1, 2, 3, 4]

METHOD_ROWS = [
    # Tight tolerances: where a fit stops must not depend on the order of names.
    MethodRow("cc-rasch", {"tol": 0, "n_iter": 40}, counts_classes=True, has_prior=True, climbs=history),
    # As fitted: its report and its decision are not the largest posterior, and have tests of their own.
    MethodRow("anchored-rasch", {"tol": 0, "n_iter": 40, "rho": 0, "lapse": 0, "cap": 1}, climbs=history),
    # Grades as the crowds of the tests name their classes; those without votes are gaps.
    MethodRow("anchored-ordered", {"tol": 0, "n_iter": 40, "rho": 0, "lapse": 0, "ordered": ORDERED}, climbs=history),
    MethodRow("class-conditional", {"tol": 0, "n_iter": 40}, counts_classes=True, has_prior=True, climbs=history),
    MethodRow("majority-vote"),
    MethodRow("dawid-skene", {"tol": 0, "n_iter": 40}, has_prior=True, climbs=objective),
    MethodRow("one-coin", {"tol": 0, "n_iter": 40}, counts_classes=True, has_prior=True, climbs=objective),
    MethodRow("glad", {"tol": 0, "n_iter": 40}, counts_classes=True, has_prior=True, climbs=history),
    MethodRow("plat", binary=True, sees_ties=True),
    MethodRow("crowdfm", {"n_seeds": 2}, counts_classes=True),
    MethodRow("mace", {"n_restarts": 3, "n_iter": 30, "start": "votes"}, counts_classes=True, climbs=history),
    MethodRow("kos", binary=True, sees_ties=True, drawn_start=True),
    MethodRow("wawa", sees_ties=True),
    MethodRow("zero-based-skill", sees_ties=True),
    MethodRow("gold-majority-vote", counts_classes=True),
    MethodRow("gold-dawid-skene", counts_classes=True),
    MethodRow("rasch", counts_classes=True),
]


@cache
def small_network() -> str:
    """A weights file with random numbers in the shape of the published ones."""
    path = Path(mkdtemp(prefix="rarevote-test-")) / "weights.safetensors"
    header: dict[str, Any] = {}
    content = b""
    for name, tensor in random_tensors().items():
        data = np.ascontiguousarray(tensor, dtype="<f4").tobytes()
        header[name] = {
            "dtype": "F32",
            "shape": list(tensor.shape),
            "data_offsets": [len(content), len(content) + len(data)],
        }
        content += data
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content)
    return str(path)
