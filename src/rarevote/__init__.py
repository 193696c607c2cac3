"""One answer per item from many annotators, without losing the rare class.

>>> from rarevote import CCRasch
>>> model = CCRasch().fit(frame)      # columns task, worker, label       # doctest: +SKIP
>>> model.labels_                                                         # doctest: +SKIP

Names load when they are first used, so that ``import rarevote`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rarevote.annotations import Annotations as Annotations
    from rarevote.methods.cc_rasch import CCRasch as CCRasch
    from rarevote.methods.majority import MajorityVote as MajorityVote
    from rarevote.metrics import score as score
    from rarevote.simulate import simulate_cc_rasch as simulate_cc_rasch
    from rarevote.simulate import simulate_crowd as simulate_crowd

__version__ = "0.1.0"

_HOME = {
    "Annotations": "annotations",
    "CCRasch": "methods.cc_rasch",
    "MajorityVote": "methods.majority",
    "score": "metrics",
    "simulate_cc_rasch": "simulate",
    "simulate_crowd": "simulate",
}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(import_module(f"rarevote.{_HOME[name]}"), name)
    raise AttributeError(f"module 'rarevote' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
