"""All methods by the name they have on the command line."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from importlib import import_module

from rarevote.errors import ParameterError
from rarevote.estimator import Estimator


@dataclass(frozen=True)
class MethodEntry:
    """A method before it is loaded."""

    name: str
    class_name: str
    module: str
    summary: str

    def load(self) -> type[Estimator]:
        """The estimator class."""
        module = import_module(f"rarevote.methods.{self.module}")
        return getattr(module, self.class_name)  # type: ignore[no-any-return]


METHODS: dict[str, MethodEntry] = {
    entry.name: entry
    for entry in (
        MethodEntry("cc-rasch", "CCRasch", "cc_rasch", "ability and difficulty per class; finds the rare class"),
        MethodEntry("majority-vote", "MajorityVote", "majority", "the class with the most votes"),
        MethodEntry("dawid-skene", "DawidSkene", "dawid_skene", "a confusion matrix per annotator"),
        MethodEntry("one-coin", "OneCoinDawidSkene", "one_coin", "one accuracy per annotator"),
        MethodEntry("glad", "GLAD", "glad", "one ability per annotator, one difficulty per item"),
        MethodEntry("plat", "PLAT", "plat", "a threshold on the share of positive votes; two classes"),
        MethodEntry("crowdfm", "CrowdFM", "crowdfm", "a pretrained graph network; needs its weights file"),
        MethodEntry(
            "class-conditional", "ClassConditional", "class_conditional", "one accuracy per annotator and class"
        ),
        MethodEntry("mace", "MACE", "mace", "tells annotators who know from those who guess"),
        MethodEntry("wawa", "Wawa", "wawa", "votes weighed by agreement with the majority"),
        MethodEntry(
            "zero-based-skill", "ZeroBasedSkill", "zero_based_skill", "votes weighed by skills learned in turns"
        ),
        MethodEntry(
            "gold-majority-vote", "GoldMajorityVote", "gold", "votes weighed by accuracy on known items; needs gold"
        ),
        MethodEntry(
            "gold-dawid-skene", "GoldDawidSkene", "gold", "confusion matrices from known items alone; needs gold"
        ),
        MethodEntry("rasch", "Rasch", "rasch", "abilities and difficulties where all truth is known; needs gold"),
    )
}


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
