"""One answer per item from many annotators, without losing the rare class.

>>> from rarevote import CCRasch
>>> model = CCRasch().fit(frame)      # columns task, worker, label       # doctest: +SKIP
>>> model.labels_                                                         # doctest: +SKIP

Names load when they are first used, so that ``import rarevote`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from rarevote.compat.moved import forward
from rarevote.methods.registry import METHODS

if TYPE_CHECKING:
    from rarevote.api import Crowd as Crowd
    from rarevote.api import Fitted as Fitted
    from rarevote.api import Result as Result
    from rarevote.api import fit as fit
    from rarevote.api import read as read
    from rarevote.api import read_each as read_each
    from rarevote.compat.crowdkit import accuracy_on_aggregates as accuracy_on_aggregates
    from rarevote.compat.crowdkit import alpha_krippendorff as alpha_krippendorff
    from rarevote.compat.crowdkit import consistency as consistency
    from rarevote.compat.crowdkit import entropy_threshold as entropy_threshold
    from rarevote.compat.crowdkit import uncertainty as uncertainty
    from rarevote.crowd.annotations import Annotations as Annotations
    from rarevote.diagnose.agreement import agreement as agreement
    from rarevote.methods.anchored_rasch import AnchoredRasch as AnchoredRasch
    from rarevote.methods.cc_rasch import CCRasch as CCRasch
    from rarevote.methods.class_conditional import ClassConditional as ClassConditional
    from rarevote.methods.crowdfm import CrowdFM as CrowdFM
    from rarevote.methods.dawid_skene import DawidSkene as DawidSkene
    from rarevote.methods.dawid_skene.estimator import OneCoinDawidSkene as OneCoinDawidSkene
    from rarevote.methods.glad import GLAD as GLAD
    from rarevote.methods.gold import GoldDawidSkene as GoldDawidSkene
    from rarevote.methods.gold import GoldMajorityVote as GoldMajorityVote
    from rarevote.methods.kos import KOS as KOS
    from rarevote.methods.mace import MACE as MACE
    from rarevote.methods.majority import MajorityVote as MajorityVote
    from rarevote.methods.new_tasks import load as load
    from rarevote.methods.plat import PLAT as PLAT
    from rarevote.methods.rasch import Rasch as Rasch
    from rarevote.methods.weighted import Wawa as Wawa
    from rarevote.methods.weighted import ZeroBasedSkill as ZeroBasedSkill
    from rarevote.scoring.metrics import score as score
    from rarevote.simulate.crowds import simulate_cc_rasch as simulate_cc_rasch
    from rarevote.simulate.crowds import simulate_crowd as simulate_crowd
    from rarevote.simulate.files import example_files as example_files
    from rarevote.simulate.juries import simulate_jury as simulate_jury
    from rarevote.study.datasets import load_dataset as load_dataset

__version__ = "0.3.0"

forward()

_HOME = {entry.class_name: f"methods.{entry.module}" for entry in METHODS.values()} | {
    "Annotations": "crowd.annotations",
    "Crowd": "api",
    "Fitted": "api",
    "Result": "api",
    "accuracy_on_aggregates": "compat.crowdkit",
    "agreement": "diagnose.agreement",
    "alpha_krippendorff": "compat.crowdkit",
    "consistency": "compat.crowdkit",
    "entropy_threshold": "compat.crowdkit",
    "uncertainty": "compat.crowdkit",
    "example_files": "simulate.files",
    "fit": "api",
    "read": "api",
    "read_each": "api",
    "load": "methods.new_tasks",
    "load_dataset": "study.datasets",
    "score": "scoring.metrics",
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
