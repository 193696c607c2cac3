"""One answer per item from many annotators, without losing the rare class.

>>> from rarevote import CCRasch
>>> model = CCRasch().fit(frame)      # columns task, worker, label       # doctest: +SKIP
>>> model.labels_                                                         # doctest: +SKIP

Names load when they are first used, so that ``import rarevote`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from rarevote.methods.registry import METHODS

if TYPE_CHECKING:
    from rarevote.api import Crowd as Crowd
    from rarevote.api import Fitted as Fitted
    from rarevote.api import Result as Result
    from rarevote.api import fit as fit
    from rarevote.api import read as read
    from rarevote.api import read_each as read_each
    from rarevote.crowd.annotations import Annotations as Annotations
    from rarevote.meaning.agreement import agreement as agreement
    from rarevote.meaning.crowdkit_metrics import accuracy_on_aggregates as accuracy_on_aggregates
    from rarevote.meaning.crowdkit_metrics import alpha_krippendorff as alpha_krippendorff
    from rarevote.meaning.crowdkit_metrics import consistency as consistency
    from rarevote.meaning.crowdkit_metrics import entropy_threshold as entropy_threshold
    from rarevote.meaning.crowdkit_metrics import uncertainty as uncertainty
    from rarevote.meaning.metrics import score as score
    from rarevote.methods.new_tasks import load as load
    from rarevote.methods.registry import *  # noqa: F403 - the classes of all methods
    from rarevote.simulate.crowds import simulate_cc_rasch as simulate_cc_rasch
    from rarevote.simulate.crowds import simulate_crowd as simulate_crowd
    from rarevote.simulate.juries import simulate_jury as simulate_jury
    from rarevote.study.datasets import load_dataset as load_dataset

__version__ = "0.3.0"

_HOME = {entry.class_name: f"methods.{entry.module}" for entry in METHODS.values()} | {
    "Annotations": "crowd.annotations",
    "Crowd": "api",
    "Fitted": "api",
    "Result": "api",
    "accuracy_on_aggregates": "meaning.crowdkit_metrics",
    "agreement": "meaning.agreement",
    "alpha_krippendorff": "meaning.crowdkit_metrics",
    "consistency": "meaning.crowdkit_metrics",
    "entropy_threshold": "meaning.crowdkit_metrics",
    "uncertainty": "meaning.crowdkit_metrics",
    "fit": "api",
    "read": "api",
    "read_each": "api",
    "load": "methods.new_tasks",
    "load_dataset": "study.datasets",
    "score": "meaning.metrics",
    "simulate_cc_rasch": "simulate.crowds",
    "simulate_crowd": "simulate.crowds",
    "simulate_jury": "simulate.juries",
}

__all__ = ["__version__", *sorted(_HOME)]


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(import_module(f"rarevote.{_HOME[name]}"), name)
    raise AttributeError(f"module 'rarevote' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
