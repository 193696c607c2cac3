"""Which world the evidence favours: do the votes look like shared errors or like independent errors?

Expectations come from both worlds (:mod:`rarevote.decide.expectations`), and votes cannot show a mistake that all
annotators share. They can show whether some annotators make the same mistakes more often than by chance
(:mod:`rarevote.diagnose.shared_errors`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.numerics import IntArray
from rarevote.crowd.words import counted
from rarevote.decide.decision import Decision
from rarevote.decide.expectations import IN_WORDS, World
from rarevote.diagnose.shared_errors import ErrorsAlike, errors_alike


class Leaning(NamedTuple):
    """The world that the evidence favours.

    Attributes:
        world: None if the votes do not show it.
        description: the reason, as a sentence without its full stop.
    """

    world: World | None
    description: str


def leaning_of(alike: ErrorsAlike) -> Leaning:
    """The world that the evidence favours, from which annotators make the same mistakes."""
    if not np.isfinite(alike.n_effective):
        return Leaning(None, "the evidence leans to neither: too few items have votes of the same annotators")
    if alike.clusters:
        n_alike = counted(sum(len(cluster.names) for cluster in alike.clusters), "annotator")
        return Leaning(
            "shared",
            f"the evidence leans to shared errors: {n_alike} make the same mistakes more often than chance explains",
        )
    return Leaning(
        "independent",
        "the evidence leans to independent errors: no two annotators make the same mistakes more often "
        "than chance explains; votes cannot show a mistake that all annotators share",
    )


def leaning_of_votes(votes: Annotations, gold: IntArray, models: Iterable[Any]) -> Leaning:
    """:func:`leaning_of` for votes; ``gold`` has the known class of each item or -1, items with votes first."""
    return leaning_of(errors_alike(votes, gold=gold[: votes.n_tasks], models=models))


def world_sentences(decision: Decision, leaning: Leaning) -> tuple[str, ...]:
    """What to expect of the class that matters in each world, and which one the evidence favours.

    Sentences without full stops; if there is only the world of shared errors, the reason for that.
    """
    expected, accuracy = decision.of_rare, decision.accuracy
    figures = {f"recall of {expected.name}": expected.recall, "precision": expected.precision}
    figures |= {"share": expected.prevalence, "accuracy of all labels": accuracy}
    said = [
        f"{IN_WORDS[world]}: {', '.join(f'{what} {one.worlds[world].figures}' for what, one in figures.items())}"
        for world in accuracy.worlds
    ]
    only_shared = f"independent errors are left out: {decision.only_shared}"
    return (*said, only_shared if decision.only_shared else leaning.description)
