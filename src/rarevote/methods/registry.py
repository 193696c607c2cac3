"""All methods: the one list that the package, the command line, dask and the study read.

Loaded by ``import rarevote``, so it imports nothing heavy.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from rarevote.errors import ParameterError

if TYPE_CHECKING:
    from rarevote.methods.base import Estimator


@dataclass(frozen=True)
class MethodEntry:
    """A method before it is loaded.

    Attributes:
        name: on the command line.
        class_name: in Python.
        module: below ``rarevote.methods``.
        summary: what it is, in half a line.
        title: in prose, tables and charts; the name if empty.
    """

    name: str
    class_name: str
    module: str
    summary: str
    title: str = ""

    def load(self) -> type[Estimator]:
        """The estimator class."""
        module = import_module(f"rarevote.methods.{self.module}")
        return getattr(module, self.class_name)  # type: ignore[no-any-return]


_LISTED = (
    ("anchored-rasch", "AnchoredRasch", "anchored_rasch", "calibrated; few false alarms", "Anchored Rasch"),
    ("cc-rasch", "CCRasch", "cc_rasch", "ability and difficulty per class; finds the rare class", "CC-Rasch"),
    ("majority-vote", "MajorityVote", "majority", "the class with the most votes", "Majority Vote"),
    ("dawid-skene", "DawidSkene", "dawid_skene", "a confusion matrix per annotator", "Dawid–Skene"),
    ("one-coin", "OneCoinDawidSkene", "dawid_skene", "one accuracy per annotator"),
    ("glad", "GLAD", "glad", "one ability per annotator, one difficulty per item", "GLAD"),
    ("plat", "PLAT", "plat", "a threshold on the share of positive votes; two classes", "PLAT"),
    ("crowdfm", "CrowdFM", "crowdfm", "a pretrained graph network; needs its weights file", "CrowdFM"),
    ("class-conditional", "ClassConditional", "class_conditional", "one accuracy per annotator and class"),
    ("mace", "MACE", "mace", "tells annotators who know from those who guess"),
    ("kos", "KOS", "kos", "messages between tasks and annotators; two classes", "KOS"),
    ("wawa", "Wawa", "weighted", "votes weighed by agreement with the majority"),
    ("zero-based-skill", "ZeroBasedSkill", "weighted", "votes weighed by skills learned in turns"),
    ("gold-majority-vote", "GoldMajorityVote", "gold", "votes weighed by accuracy on known items; needs gold"),
    ("gold-dawid-skene", "GoldDawidSkene", "gold", "confusion matrices from known items alone; needs gold"),
    ("rasch", "Rasch", "rasch", "abilities and difficulties where all truth is known; needs gold"),
)
#: what is fitted when nobody chose a method
DEFAULT_METHOD = "anchored-rasch"
METHODS: dict[str, MethodEntry] = {row[0]: MethodEntry(*row) for row in _LISTED}


def method_title(name: str) -> str:
    """What prose, tables and charts call a method."""
    return (METHODS[name].title if name in METHODS else "") or name


def find_method(name: str) -> MethodEntry:
    """The method of that name.

    Raises:
        ParameterError: there is none; the message names the nearest.
    """
    if name in METHODS:
        return METHODS[name]
    near = difflib.get_close_matches(name.lower().replace("_", "-"), METHODS, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(METHODS)}"
    raise ParameterError(f"unknown method {name!r}: {hint}")
