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
