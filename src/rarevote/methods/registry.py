"""All methods and what each can do: the list that the package, the command line, dask, docs and the study use.

Loaded by ``import rarevote``, so it imports nothing heavy.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING

from rarevote.errors import ParameterError
from rarevote.methods.capabilities import Capabilities

if TYPE_CHECKING:
    from rarevote.methods.base import Estimator
    from rarevote.methods.parameters import HasParameters

_NONE = Capabilities()


@dataclass(frozen=True)
class MethodEntry:
    """A method in the registry; its module is not loaded.

    Attributes:
        name: name on the command line.
        class_name: name in Python.
        module: below ``rarevote.methods``.
        summary: a summary of half a line.
        capabilities: what it can do; the class reads them from here.
        title: name in prose, tables and charts; empty for ``name``.
    """

    name: str
    class_name: str
    module: str
    summary: str
    capabilities: Capabilities = _NONE
    title: str = ""

    def load(self) -> type[Estimator]:
        """The estimator class."""
        module = import_module(f"rarevote.methods.{self.module}")
        return getattr(module, self.class_name)  # type: ignore[no-any-return]


_PREDICT = Capabilities(predict=True)
_EM = Capabilities(predict=True, explain=True, gold=True, checkpoint=True)
_EM_ON_DASK = replace(_EM, dask=True)
_ALL = replace(_EM_ON_DASK, replicate=True, float32=True)

_LISTED = (
    ("anchored-rasch", "AnchoredRasch", "anchored_rasch", "calibrated; few false alarms",
     replace(_ALL, features=True), "Anchored Rasch"),
    ("cc-rasch", "CCRasch", "cc_rasch", "ability and difficulty per class; finds the rare class", _ALL, "CC-Rasch"),
    ("anchored-ordered", "AnchoredOrdered", "anchored_ordered", "grades in order: ratings, severity; needs an order",
     replace(_ALL, ordered=True), "Anchored Ordered"),
    ("majority-vote", "MajorityVote", "majority", "the class with the most votes", Capabilities(dask=True),
     "Majority Vote"),
    ("dawid-skene", "DawidSkene", "dawid_skene", "a confusion matrix per annotator", _ALL, "Dawid–Skene"),
    ("one-coin", "OneCoinDawidSkene", "dawid_skene", "one accuracy per annotator", _ALL),
    ("glad", "GLAD", "glad", "one ability per annotator, one difficulty per item", _EM_ON_DASK, "GLAD"),
    ("plat", "PLAT", "plat", "a threshold on the share of positive votes; two classes", _NONE, "PLAT"),
    ("crowdfm", "CrowdFM", "crowdfm", "a pretrained graph network; needs its weights file", _NONE, "CrowdFM"),
    ("class-conditional", "ClassConditional", "class_conditional", "one accuracy per annotator and class", _ALL),
    ("mace", "MACE", "mace", "separates annotators who know from those who guess", _EM),
    ("kos", "KOS", "kos", "messages between tasks and annotators; two classes", _NONE, "KOS"),
    ("wawa", "Wawa", "weighted", "votes weighted by agreement with the majority", _PREDICT),
    ("zero-based-skill", "ZeroBasedSkill", "weighted", "votes weighted by skills learned step by step", _PREDICT),
    ("gold-majority-vote", "GoldMajorityVote", "gold", "votes weighted by accuracy on known items; needs gold",
     replace(_PREDICT, gold=True, needs_gold=True)),
    ("gold-dawid-skene", "GoldDawidSkene", "gold", "confusion matrices from known items alone; needs gold",
     replace(_PREDICT, explain=True, gold=True, needs_gold=True)),
    ("rasch", "Rasch", "rasch", "abilities and difficulties where all truth is known; needs gold",
     replace(_EM, needs_gold=True)),
)  # fmt: skip
#: the default method
DEFAULT_METHOD = "anchored-rasch"
#: the default method if classes are grades
ORDERED_METHOD = "anchored-ordered"
METHODS: dict[str, MethodEntry] = {row[0]: MethodEntry(*row) for row in _LISTED}


def method_title(name: str) -> str:
    """The name of a method in prose, tables and charts."""
    return (METHODS[name].title if name in METHODS else "") or name


def find_method(name: str) -> MethodEntry:
    """The method with this name.

    Raises:
        ParameterError: there is no such method; the message names the most similar one.
    """
    if name in METHODS:
        return METHODS[name]
    near = difflib.get_close_matches(name.lower().replace("_", "-"), METHODS, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(METHODS)}"
    raise ParameterError(f"unknown method {name!r}: {hint}")


# --------------------------------------------------------------------------------------------------------------------
# what methods can do


class DeclaredCapabilities:
    """The capabilities of a class of estimators, from its entry in the list; none for a class that is not listed."""

    def __get__(self, instance: HasParameters | None, owner: type[HasParameters]) -> Capabilities:
        return METHODS[owner.method_name].capabilities if owner.method_name in METHODS else _NONE


def methods_that(capability: str) -> list[str]:
    """Names of the methods with a capability.

    >>> methods_that("needs_gold")
    ['gold-majority-vote', 'gold-dawid-skene', 'rasch']
    """
    return [name for name, entry in METHODS.items() if entry.capabilities.has(capability)]


def which_methods(capability: str) -> str:
    """The methods with a capability, for a help text: their names, or those of the exceptions if these are fewer."""
    can = methods_that(capability)
    cannot = [name for name in METHODS if name not in can]
    return ", ".join(can) if len(can) <= len(cannot) else f"all methods except {', '.join(cannot)}"


def cannot(method: HasParameters, capability: str, option: str = "") -> ParameterError:
    """The error that says what a method cannot do, and names methods that can.

    Args:
        option: the argument that needs it, as the user wrote it.
    """
    name = method.method_name or type(method).__name__
    leave = f"leave {option} out, or " if option else ""
    others = ", ".join(methods_that(capability))
    return ParameterError(f"{name} cannot {Capabilities.verb(capability)}: {leave}choose one of {others}")


def require_capability(method: HasParameters, capability: str, option: str = "") -> None:
    """Check that a method has a capability.

    Raises:
        ParameterError: it does not; see :func:`cannot`.
    """
    if not method.capabilities.has(capability):
        raise cannot(method, capability, option)


def capability_table() -> tuple[list[str], list[list[str]]]:
    """Header and rows of the table of methods and capabilities; a capability that no method has gets no column."""
    shown = [name for name in Capabilities.names() if methods_that(name)]

    def cell(can: Capabilities, name: str) -> str:
        return "needs" if name == "gold" and can.needs_gold else "yes" if can.has(name) else ""

    rows = [[name, *(cell(entry.capabilities, one) for one in shown)] for name, entry in METHODS.items()]
    return ["method", *shown], rows
